//! Reads a folder of transcripts while agents write to it.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::file;
use super::live_error::{LiveError, Problem};
use super::names::Names;

/// Maximum number of walks over a folder that keeps changing. Whatever an agent writes after that
/// is new.
const WALKS: usize = 16;
/// Coarsest time stamp of any file system. Two changes within this span may have the same time.
const COARSEST: Duration = Duration::from_secs(2);

/// Adds everything that the files below `path` name to `names`.
pub(super) fn read(path: &Path, names: &mut Names) -> Result<(), LiveError> {
    let mut folder = Folder::default();
    // A transcript may be rewritten by replacing the file, which can hide both files from a walk.
    // So everything that has changed since it was read is read again.
    for _ in 0..WALKS {
        if !folder.walk(path, names)? {
            break;
        }
    }
    if folder.files.is_empty() {
        return Err(LiveError {
            path: path.to_owned(),
            problem: Problem::Empty,
        });
    }
    Ok(())
}

/// A folder that may be written to while it is read.
#[derive(Debug, Default)]
struct Folder {
    /// Files that were read to their end, with their version before the read.
    files: BTreeMap<PathBuf, Version>,
}

/// Metadata that distinguishes two states of a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    modified: Option<SystemTime>,
    length: u64,
    /// A file that replaces another may have the same time and length.
    #[cfg(unix)]
    inode: u64,
}

impl Version {
    fn of(metadata: &Metadata) -> Self {
        Self {
            modified: metadata.modified().ok(),
            length: metadata.len(),
            #[cfg(unix)]
            inode: std::os::unix::fs::MetadataExt::ino(metadata),
        }
    }

    /// Returns true if a later change would show in the modification time.
    fn is_settled(&self, now: SystemTime) -> bool {
        self.modified
            .and_then(|modified| now.duration_since(modified).ok())
            .is_some_and(|age| age > COARSEST)
    }
}

impl Folder {
    /// Reads every file below `path` that is new or has changed since it was last read. Returns
    /// true if anything has changed in the meantime.
    fn walk(&mut self, path: &Path, names: &mut Names) -> Result<bool, LiveError> {
        let mut walk = Walk {
            todo: vec![path.to_owned()],
            files: &mut self.files,
            folders: BTreeMap::new(),
            has_changed: false,
            names,
        };
        while let Some(at) = walk.todo.pop() {
            match walk.look(&at) {
                Err(Problem::Io(error)) if at != path && is_gone(&at, &error) => {
                    walk.has_changed = true;
                }
                looked => looked.map_err(|problem| LiveError { path: at, problem })?,
            }
        }
        let is_as_it_was = |(path, (before, looked_at)): (&PathBuf, &(Version, SystemTime))| {
            let now = std::fs::metadata(path).map(|now| Version::of(&now));
            before.is_settled(*looked_at) && now.is_ok_and(|now| now == *before)
        };
        Ok(walk.has_changed || !walk.folders.iter().all(is_as_it_was))
    }
}

/// A walk over a folder.
struct Walk<'w> {
    /// Paths that were not looked at yet.
    todo: Vec<PathBuf>,
    files: &'w mut BTreeMap<PathBuf, Version>,
    /// Folders that were listed, with their version before and the time of it.
    folders: BTreeMap<PathBuf, (Version, SystemTime)>,
    has_changed: bool,
    names: &'w mut Names,
}

impl Walk<'_> {
    /// Lists the folder `at`, or reads the file `at`.
    fn look(&mut self, at: &Path) -> Result<(), Problem> {
        // Links are followed: what they lead to may be the only transcript.
        let now = SystemTime::now();
        let metadata = std::fs::metadata(at)?;
        let before = Version::of(&metadata);
        if metadata.is_dir() {
            // Each folder once: links may form a cycle.
            let real = at.canonicalize()?;
            if !self.folders.contains_key(&real) {
                for entry in std::fs::read_dir(at)? {
                    self.todo.push(entry?.path());
                }
                self.folders.insert(real, (before, now));
            }
            return Ok(());
        }
        if !metadata.is_file() {
            return Err(Problem::NoFile);
        }
        if self.files.get(at) != Some(&before) {
            let file = File::open(at)?;
            // Claude Code keeps what its tools put out, of any bytes, in folders of this name.
            let folder = at.parent().and_then(Path::file_name);
            let is_output = folder.is_some_and(|name| name == "tool-results");
            file::read(&file, is_output, self.names)?;
            self.has_changed |= Version::of(&file.metadata()?) != before;
            self.files.insert(at.to_owned(), before);
        }
        Ok(())
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

fn is_not_found(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

#[cfg(test)]
mod tests {
    use crate::backend::Key;

    use super::super::index::are_named;
    use super::*;

    fn keeps(names: &Names, key: &str) -> bool {
        are_named(names, &Key::new(key).unwrap())
    }

    fn set_time(path: &Path, time: SystemTime) {
        File::open(path).unwrap().set_modified(time).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn l1_another_transcript_of_the_same_time_and_length_is_read() {
        let home = tempfile::tempdir().unwrap();
        let (at, time) = (
            home.path().join("log.1"),
            SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000),
        );
        let (mut folder, mut names) = (Folder::default(), Names::default());
        for name in ["s1/trunc/a", "s1/trunc/b"] {
            let new = home.path().join("log");
            std::fs::write(&new, name).unwrap();
            set_time(&new, time);
            std::fs::rename(new, &at).unwrap();
            folder.walk(home.path(), &mut names).unwrap();
            assert!(keeps(&names, name), "{name}");
        }
    }

    // On other systems a directory can't be opened as a file.
    #[cfg(unix)]
    #[test]
    fn l1_a_folder_that_has_just_changed_is_read_again() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("one"), "s1/trunc/a").unwrap();
        let changes_at = |time| {
            set_time(home.path(), time);
            Folder::default()
                .walk(home.path(), &mut Names::default())
                .unwrap()
        };
        let now = SystemTime::now();
        assert!(!changes_at(now - Duration::from_secs(60)));
        // With time stamps in steps of one or two seconds, moving a file out of the folder now
        // leaves its time unchanged.
        assert!(changes_at(now) && changes_at(now - Duration::from_secs(1)));
        assert!(
            changes_at(now + Duration::from_secs(60)),
            "nobody can say how old it is"
        );
    }
}
