//! A folder with transcripts, read while agents write in it.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::file;
use super::live_error::{LiveError, Problem};
use super::names::Names;

/// How often a folder is looked at again in which something has changed. Who is still writing then
/// writes what is new.
const WALKS: usize = 16;
/// No file system's times are coarser. Within this, two changes may have the same time.
const COARSEST: Duration = Duration::from_secs(2);

/// Takes for live what is named in all files below `path`.
pub(super) fn read(path: &Path, names: &mut Names) -> Result<(), LiveError> {
    let mut folder = Folder::default();
    // Who writes a transcript anew puts it in the place of the old one, which may hide both from a
    // walk: so what has changed since it was looked at is looked at again.
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
    /// What was read to its end, as it was before.
    files: BTreeMap<PathBuf, Version>,
}

/// What tells two states of a file or a folder apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    modified: Option<SystemTime>,
    length: u64,
    /// Another one in its place may be as old and as long.
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

    /// Whether a change at `now` would be seen by its time.
    fn is_settled(&self, now: SystemTime) -> bool {
        self.modified
            .and_then(|modified| now.duration_since(modified).ok())
            .is_some_and(|age| age > COARSEST)
    }
}

impl Folder {
    /// Reads what `path` leads to and has not been read as it is now, and says whether anything has
    /// changed meanwhile.
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

    /// Looks until it is one of the two: there, or gone.
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
                // Moved away, and back. A link that leads nowhere is not.
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
            // Each once, for links may lead round in a circle.
            let real = at.canonicalize().map_err(Problem::Io)?;
            if folders.contains_key(&real) {
                return Ok(Looked::Folder(Vec::new()));
            }
            let entries = std::fs::read_dir(at).map_err(Problem::Io)?;
            let paths = entries
                .map(|entry| entry.map(|entry| entry.path()))
                .collect::<Result<_, _>>();
            let paths = paths.map_err(Problem::Io)?;
            // Only once that is known: it may be looked at again.
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
        file::read(&file, names)?;
        let after = file.metadata().map_err(Problem::Io)?;
        self.files.insert(at.to_owned(), before);
        Ok(Looked::Read {
            has_changed: Version::of(&after) != before,
        })
    }
}

/// What there was.
enum Looked {
    /// A file, which was read.
    Read { has_changed: bool },
    /// What is in a folder.
    Folder(Vec<PathBuf>),
    /// Nothing has this name any more.
    Gone(io::Error),
}

fn is_not_found(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

#[cfg(test)]
mod tests {
    use offcut::backend::Key;

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

    // Elsewhere a directory can't be opened as a file.
    #[cfg(unix)]
    #[test]
    fn l1_a_folder_that_has_just_changed_is_looked_at_again() {
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
        // A file that is moved out of it by now leaves it the same time, where times are in whole
        // seconds or two.
        assert!(changes_at(now) && changes_at(now - Duration::from_secs(1)));
        assert!(
            changes_at(now + Duration::from_secs(60)),
            "nobody can say how old it is"
        );
    }
}
