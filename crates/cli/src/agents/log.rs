//! A log of bounded size, which only its user can read.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::{units, visible};

/// Maximum length of a log in bytes. A longer one is moved to `<name>.old`, which it replaces.
const MAX_LENGTH: u64 = 256 * 1024;
/// Maximum length of a line in bytes; more is cut off.
const MAX_LINE: usize = 1_024;

/// Appends a line with the time before it. Control characters in `line` are escaped.
///
/// # Errors
///
/// The file can't be written.
pub(crate) fn append(path: &Path, line: &str) -> io::Result<()> {
    let line: String = visible::visible(line).chars().take(MAX_LINE).collect();
    append_lines(path, &format!("{} {line}\n", units::now()), MAX_LENGTH)
}

/// Appends whole lines to a file that only its user can read. If the file is longer than `max_length` bytes, it
/// is first moved to where [`old`] says.
pub(crate) fn append_lines(path: &Path, lines: &str, max_length: u64) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    refuse_others(path)?;
    if std::fs::symlink_metadata(path).is_ok_and(|log| log.len() > max_length) {
        std::fs::rename(path, old(path))?;
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    // One call, so that lines of hooks that run at once do not mix.
    options.open(path)?.write_all(lines.as_bytes())
}

/// Opens a regular file for reading; `None` if it is missing.
pub(crate) fn open(path: &Path) -> io::Result<Option<File>> {
    refuse_others(path)?;
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        file => file.map(Some),
    }
}

/// Reads the text of a regular file; empty if it is missing.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    open(path)?.map_or_else(|| Ok(String::new()), io::read_to_string)
}

/// Fails for whatever is there in place of a regular file: opening a pipe waits for its other end, and a device may
/// have no end.
fn refuse_others(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        )),
        _ => Ok(()),
    }
}

/// The place of the entries before those at `path`.
pub(crate) fn old(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".old");
    PathBuf::from(name)
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
    fn what_is_not_a_regular_file_is_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hook.log");
        for line in ["ln -s /dev/null", "mkdir", "mkfifo"] {
            let mut words = line.split(' ');
            let mut made = std::process::Command::new(words.next().unwrap());
            assert!(made.args(words).arg(&path).status().unwrap().success());
            assert!(append(&path, "a").is_err(), "{line}");
            assert!(open(&path).is_err(), "{line}");
            _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir(&path));
        }
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
