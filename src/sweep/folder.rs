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
        let (mut todo, mut folders, mut has_changed) =
            (vec![path.to_owned()], BTreeMap::new(), false);
        while let Some(at) = todo.pop() {
            match self.look_again(&at, names, &mut folders) {
                Ok(Looked::Read {
                    has_changed: file_has,
                }) => has_changed |= file_has,
                Ok(Looked::Folder(entries)) => todo.extend(entries),
                Ok(Looked::Gone(_)) if at != path => has_changed = true,
                Ok(Looked::Gone(error)) => {
                    return Err(LiveError {
                        path: at,
                        problem: Problem::Io(error),
                    });
                }
                Err(problem) => return Err(LiveError { path: at, problem }),
            }
        }
        let is_as_it_was = |(path, (before, looked_at)): (&PathBuf, &(Version, SystemTime))| {
            let now = std::fs::metadata(path).map(|now| Version::of(&now));
            before.is_settled(*looked_at) && now.is_ok_and(|now| now == *before)
        };
        Ok(has_changed || !folders.iter().all(is_as_it_was))
    }

    /// Looks until `at` is certain to be there or to be gone.
    fn look_again(
        &mut self,
        at: &Path,
        names: &mut Names,
        folders: &mut BTreeMap<PathBuf, (Version, SystemTime)>,
    ) -> Result<Looked, Problem> {
        let mut last = io::ErrorKind::NotFound.into();
        for _ in 0..WALKS {
            let error = match self.look(at, names, folders) {
                Err(Problem::Io(error)) => error,
                looked => return looked,
            };
            match at.symlink_metadata() {
                Err(gone) if is_not_found(&gone) => return Ok(Looked::Gone(error)),
                // Moved away and back in the meantime. A dangling link is not gone.
                Ok(there) if is_not_found(&error) && !there.is_symlink() => last = error,
                _ => return Err(Problem::Io(error)),
            }
        }
        Err(Problem::Io(last))
    }

    fn look(
        &mut self,
        at: &Path,
        names: &mut Names,
        folders: &mut BTreeMap<PathBuf, (Version, SystemTime)>,
    ) -> Result<Looked, Problem> {
        // Links are followed: what they lead to may be the only transcript.
        let now = SystemTime::now();
        let metadata = std::fs::metadata(at).map_err(Problem::Io)?;
        let before = Version::of(&metadata);
        if metadata.is_dir() {
            // Each folder once: links may form a cycle.
            let real = at.canonicalize().map_err(Problem::Io)?;
            if folders.contains_key(&real) {
                return Ok(Looked::Folder(Vec::new()));
            }
            let entries = std::fs::read_dir(at).map_err(Problem::Io)?;
            let paths = entries
                .map(|entry| entry.map(|entry| entry.path()))
                .collect::<Result<_, _>>();
            let paths = paths.map_err(Problem::Io)?;
            // Only after listing has succeeded, since `look_again` may try again.
            folders.insert(real, (before, now));
            return Ok(Looked::Folder(paths));
        }
        if !metadata.is_file() {
            return Err(Problem::NoFile);
        }
        if self.files.get(at) == Some(&before) {
            return Ok(Looked::Read { has_changed: false });
        }
        let file = File::open(at).map_err(Problem::Io)?;
        // Claude Code keeps what its tools put out, of any bytes, in folders of this name.
        let folder = at.parent().and_then(Path::file_name);
        let is_output = folder.is_some_and(|name| name == "tool-results");
        file::read(&file, is_output, names)?;
        let after = file.metadata().map_err(Problem::Io)?;
        self.files.insert(at.to_owned(), before);
        Ok(Looked::Read {
            has_changed: Version::of(&after) != before,
        })
    }
}

/// State of a path.
enum Looked {
    /// A file, which was read.
    Read { has_changed: bool },
    /// The entries of a folder.
    Folder(Vec<PathBuf>),
    /// Nothing has this name any more.
    Gone(io::Error),
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
