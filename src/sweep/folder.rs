//! Reads a folder of transcripts while agents write to it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::names::{NameScanner, Names};
use super::report::SweepError;

/// Maximum number of walks over a folder that keeps changing. Whatever an agent writes after that
/// is new.
const WALKS: usize = 16;

/// Adds everything that the files below `path` name to `names`.
pub(super) fn read(path: &Path, names: &mut Names) -> Result<(), SweepError> {
    let mut files = Files::new();
    // A file that is moved can hide from a walk, and from another if it is moved back. So there are two after each
    // that has found anything.
    let mut quiet = 0;
    for _ in 0..WALKS {
        quiet = match walk(path, &mut files, names)? {
            true => 0,
            false => quiet + 1,
        };
        if quiet == 2 {
            break;
        }
    }
    if files.is_empty() {
        let why = io::Error::other("it holds no files: name the folder that holds the transcripts");
        return Err(unread(path, why));
    }
    Ok(())
}

/// Files that were read to their end, with their version before the read.
type Files = BTreeMap<PathBuf, Version>;

/// Time, length and inode of a file. A file that replaces another may have the same time and length.
type Version = (Option<SystemTime>, u64, Option<u64>);

fn version(metadata: &Metadata) -> Version {
    #[cfg(unix)]
    let inode = Some(std::os::unix::fs::MetadataExt::ino(metadata));
    #[cfg(not(unix))]
    let inode = None;
    (metadata.modified().ok(), metadata.len(), inode)
}

/// Reads every file below `path` that is new or has changed since it was last read. Returns true if there
/// was one, or one has gone in the meantime.
fn walk(path: &Path, files: &mut Files, names: &mut Names) -> Result<bool, SweepError> {
    let (mut todo, mut folders, mut has_changed) = (vec![path.to_owned()], BTreeSet::new(), false);
    while let Some(at) = todo.pop() {
        // Links are followed: what they lead to may be the only transcript.
        let looked = std::fs::metadata(&at).and_then(|metadata| {
            if !metadata.is_dir() {
                return read_file(&at, &metadata, files, names);
            }
            // Each folder once: links may form a cycle.
            if folders.insert(at.canonicalize()?) {
                for entry in std::fs::read_dir(&at)? {
                    todo.push(entry?.path());
                }
            }
            Ok(false)
        });
        has_changed |= match looked {
            Err(error) if at != path && is_gone(&at, &error) => true,
            looked => looked.map_err(|source| unread(&at, source))?,
        };
    }
    Ok(has_changed)
}

/// Reads the file `at`, unless it was read as it is. Returns true if it was not.
fn read_file(
    at: &Path,
    metadata: &Metadata,
    files: &mut Files,
    names: &mut Names,
) -> io::Result<bool> {
    if !metadata.is_file() {
        let why = "it is neither a file nor a folder: move it out of the folder";
        return Err(io::Error::other(why));
    }
    let version = version(metadata);
    let is_new = files.get(at) != Some(&version);
    if is_new {
        // Claude Code keeps what its tools put out, of any bytes, in folders of this name.
        let folder = at.parent().and_then(Path::file_name);
        let is_output = folder.is_some_and(|name| name == "tool-results");
        read_text(File::open(at)?, is_output, names)?;
        files.insert(at.to_owned(), version);
    }
    Ok(is_new)
}

/// Number of bytes of a file that are held at once.
pub(super) const BUFFER: usize = 64 << 10;

/// Reads `file` to its end and adds what it names to `names`. Bytes other than text are searched as they are in a
/// tool's output; a transcript of them may name content in another way.
fn read_text(mut file: impl Read, is_output: bool, names: &mut Names) -> io::Result<()> {
    let not_text =
        "it is not UTF-8 text: unpack it, or move it out of the folder if it is not a transcript";
    let (mut buffer, mut filled) = (vec![0; BUFFER], 0);
    let mut scanner = NameScanner::default();
    loop {
        let read = match file.read(&mut buffer[filled..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        let bytes = &buffer[..filled + read];
        let whole = match std::str::from_utf8(bytes) {
            Ok(text) => text.len(),
            // The last character is incomplete. The file may still be being written.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) if is_output => bytes.len(),
            Err(_) => return Err(io::Error::other(not_text)),
        };
        if bytes.contains(&0) && !is_output {
            return Err(io::Error::other(not_text));
        }
        scanner.push(&bytes[..whole], &mut |name| names.take(name));
        if read == 0 {
            scanner.finish(&mut |name| names.take(name));
            return Ok(());
        }
        let end = filled + read;
        buffer.copy_within(whole..end, 0);
        filled = end - whole;
    }
}

/// Returns true if `at`, which could not be looked at, was moved away. It may be back by now: the next
/// walk finds it. A dangling link is not gone.
fn is_gone(at: &Path, error: &io::Error) -> bool {
    match at.symlink_metadata() {
        Err(gone) => is_not_found(&gone),
        Ok(there) => is_not_found(error) && !there.is_symlink(),
    }
}

fn unread(path: &Path, source: io::Error) -> SweepError {
    let path = path.to_owned();
    SweepError::Unread { path, source }
}

fn is_not_found(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

#[cfg(test)]
mod tests {
    use crate::backend::Key;

    use super::super::index::tests::are_named;
    use super::*;

    fn keeps(names: &Names, key: &str) -> bool {
        are_named(names, &Key::new(key).unwrap())
    }

    #[cfg(unix)]
    #[test]
    fn l1_another_transcript_of_the_same_time_and_length_is_read() {
        let home = tempfile::tempdir().unwrap();
        let (at, time) = (home.path().join("log.1"), SystemTime::UNIX_EPOCH);
        let (mut files, mut names) = (Files::new(), Names::default());
        for name in ["s1/trunc/a", "s1/trunc/b"] {
            let new = home.path().join("log");
            std::fs::write(&new, name).unwrap();
            File::open(&new).unwrap().set_modified(time).unwrap();
            std::fs::rename(new, &at).unwrap();
            assert!(walk(home.path(), &mut files, &mut names).unwrap());
            assert!(keeps(&names, name), "{name}");
        }
    }

    #[test]
    fn l1_a_folder_is_walked_until_nothing_is_new() {
        let home = tempfile::tempdir().unwrap();
        let at = |path: &str| home.path().join(path);
        let (mut files, mut names) = (Files::new(), Names::default());
        let mut walk = || walk(home.path(), &mut files, &mut names).unwrap();
        std::fs::create_dir(at("done")).unwrap();
        std::fs::write(at("one"), "s1/trunc/a").unwrap();
        assert!(walk() && !walk());
        std::fs::rename(at("one"), at("done/one")).unwrap();
        assert!(walk() && !walk(), "a file that moves may have hidden");
        std::fs::write(at("done/one"), "s1/trunc/a and s1/trunc/b").unwrap();
        assert!(walk() && !walk());
        assert!(keeps(&names, "s1/trunc/a") && keeps(&names, "s1/trunc/b"));
    }
}
