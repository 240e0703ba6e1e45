//! A log of bounded size, which only its user can read.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Maximum length of a log in bytes. A longer one is moved to `<name>.old`, which it replaces.
const MAX_LENGTH: u64 = 256 * 1024;
/// Maximum length of a line in bytes; more is cut off.
const MAX_LINE: usize = 1_024;

/// Appends a line with the time before it. Control characters in `line` are escaped.
///
/// # Errors
///
/// The file can't be written.
pub fn append(path: &Path, line: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    if std::fs::symlink_metadata(path).is_ok_and(|log| log.len() > MAX_LENGTH) {
        std::fs::rename(path, path.with_extension("log.old"))?;
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let line: String = line.chars().flat_map(visible).take(MAX_LINE).collect();
    let line = format!("{} {line}\n", now.unwrap_or_default().as_secs());
    // One call, so that lines of hooks that run at once do not mix.
    options.open(path)?.write_all(line.as_bytes())
}

fn visible(character: char) -> impl Iterator<Item = char> {
    let escaped = character.is_control().then(|| character.escape_default());
    let plain = escaped.is_none().then_some(character);
    escaped.into_iter().flatten().chain(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_stays_bounded_and_each_entry_is_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("home/hook.log");
        append(&path, "first\nforged").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.ends_with(" first\\nforged\n"), "{text:?}");
        for _ in 0..2_000 {
            append(&path, &"x".repeat(5_000)).unwrap();
        }
        let total: u64 = std::fs::read_dir(path.parent().unwrap())
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .sum();
        assert!(total < 3 * MAX_LENGTH, "{total}");
    }

    #[cfg(unix)]
    #[test]
    fn only_its_user_can_read_a_log() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hook.log");
        append(&path, "a").unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
