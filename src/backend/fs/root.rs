//! The directory of a store, confined so that no name leads out of it.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, File};

use super::error::{Doing, failed, moved, unmade};
use super::place::{self, sync};
use crate::backend::{BackendError, ErrorKind, Key, Location};

/// A directory, opened once it exists and kept open. All paths are relative to the open directory.
#[derive(Debug)]
pub(super) struct Root {
    /// Absolute, and free of links when the store was opened.
    path: PathBuf,
    prefix: String,
    dir: OnceLock<Dir>,
    /// True once everything that storing needs has been tried.
    has_been_tried: AtomicBool,
    /// For a disposable directory: true once it was created.
    temporary: Option<Mutex<bool>>,
}

/// The object found under a key.
pub(super) enum Found {
    Nothing,
    /// A regular file and its length.
    File(File, u64),
    /// A directory, a link or a device, which no store creates.
    Foreign,
}

impl Root {
    /// Writes nothing: an agent that restarts on a full disk must still read its content.
    pub(super) fn open(path: &Path) -> Result<Self, BackendError> {
        let root = Self::at(path)?;
        // Holds an existing directory open from now on. An error may be temporary, so ignore it.
        _ = root.dir();
        Ok(root)
    }

    /// A directory with an unguessable name.
    pub(super) fn temporary() -> Result<Self, BackendError> {
        let name = format!("offcut-{:016x}", random());
        let mut root = Self::at(&std::env::temp_dir().join(name))?;
        root.temporary = Some(Mutex::new(false));
        Ok(root)
    }

    fn at(path: &Path) -> Result<Self, BackendError> {
        let place = Location::new(format!("{path:?}"));
        // Made absolute now, as the process may change its working directory later.
        let path = std::path::absolute(path).and_then(|path| place::resolve(&path));
        let path = path.map_err(|source| failed(source, Doing::Open, &place))?;
        let prefix = path.to_str().filter(|path| !path.contains(char::is_control)).ok_or_else(|| {
            let why =
                "its absolute path is not UTF-8 or has control characters, so no hint can show it; choose another path";
            BackendError::new(ErrorKind::Other, format!("opening the store in {place} failed: {why}"))
        })?;
        let prefix = ending_in_slash(portable(prefix));
        Ok(Self {
            path,
            prefix,
            dir: OnceLock::new(),
            has_been_tried: AtomicBool::new(false),
            temporary: None,
        })
    }

    /// The directory; [`io::ErrorKind::NotFound`] if it does not exist yet.
    pub(super) fn dir(&self) -> io::Result<&Dir> {
        match self.dir.get() {
            Some(dir) => Ok(dir),
            None if self.is_temporary() => Err(io::ErrorKind::NotFound.into()),
            None => self.enter(),
        }
    }

    fn enter(&self) -> io::Result<&Dir> {
        let dir = Dir::open_ambient_dir(&self.path, ambient_authority())?;
        // A path that did not exist when the store was opened may now be a link.
        if self.path.canonicalize()? != self.path {
            return Err(moved());
        }
        Ok(self.dir.get_or_init(|| dir))
    }

    /// Creates the directory if it does not exist.
    pub(super) fn make(&self) -> io::Result<()> {
        if self.dir.get().is_some() {
            return Ok(());
        }
        if let Some(is_made) = &self.temporary {
            let mut is_made = is_made.lock().unwrap_or_else(PoisonError::into_inner);
            if !*is_made {
                place::make_new(&self.path).map_err(unmade)?;
                *is_made = true;
            }
            return self.enter().map(drop);
        }
        match self.dir() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if place::resolve(&self.path)? != self.path {
                    return Err(moved());
                }
                place::make(&self.path).map_err(unmade)?;
                self.enter().map(drop)
            }
            there => there.map(drop),
        }
    }

    /// Fails if the directory's path now leads elsewhere, since new hints would be wrong.
    pub(super) fn expect_in_place(&self) -> io::Result<()> {
        if self.is_in_place()? {
            Ok(())
        } else {
            Err(moved())
        }
    }

    /// Returns false if the directory's path now leads elsewhere.
    #[cfg(unix)]
    fn is_in_place(&self) -> io::Result<bool> {
        use cap_std::fs::MetadataExt;
        use std::os::unix::fs::MetadataExt as _;
        let held = self.dir()?.dir_metadata()?;
        match std::fs::metadata(&self.path) {
            Ok(named) => Ok((named.dev(), named.ino()) == (held.dev(), held.ino())),
            Err(error) if is_absent(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Windows does not let anyone move an open directory.
    #[cfg(not(unix))]
    #[expect(
        clippy::unnecessary_wraps,
        clippy::unused_self,
        reason = "on Unix it can fail"
    )]
    fn is_in_place(&self) -> io::Result<bool> {
        Ok(true)
    }

    /// Returns true after [`mark_tried`](Self::mark_tried).
    pub(super) fn has_been_tried(&self) -> bool {
        self.has_been_tried.load(Ordering::Relaxed)
    }

    pub(super) fn mark_tried(&self) {
        self.has_been_tried.store(true, Ordering::Relaxed);
    }

    /// The directory if it exists, otherwise its nearest existing parent.
    pub(super) fn nearest(&self) -> &Path {
        let is_there = |path: &&Path| self.dir.get().is_some() || path.exists();
        self.path.ancestors().find(is_there).unwrap_or(&self.path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The absolute, canonical path as text; ends in `/`.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(super) fn is_temporary(&self) -> bool {
        self.temporary.is_some()
    }

    /// Looks up `key`. Never follows a link at the key itself.
    pub(super) fn find(&self, key: &Key) -> io::Result<Found> {
        let path = Path::new(key.as_str());
        let dir = match self.dir() {
            Ok(dir) => dir,
            Err(error) if is_absent(&error) => return Ok(Found::Nothing),
            Err(error) => return Err(error),
        };
        // A directory that was moved away is still open, but its content is not where hints say.
        if !self.is_in_place()? {
            return Ok(Found::Nothing);
        }
        // Check the type before opening: opening a pipe would block until someone writes to it.
        match dir.symlink_metadata(path) {
            Ok(metadata) if metadata.is_file() => {}
            Ok(_) => return Ok(Found::Foreign),
            Err(error) if is_absent(&error) => return Ok(Found::Nothing),
            Err(error) => return Err(error),
        }
        let file = match dir.open(path) {
            Ok(file) => file,
            Err(error) if is_absent(&error) => return Ok(Found::Nothing),
            Err(error) => return Err(error),
        };
        // Check the open file, since the name may point to another file by now.
        let metadata = file.metadata()?;
        Ok(if metadata.is_file() {
            Found::File(file, metadata.len())
        } else {
            Found::Foreign
        })
    }

    /// Creates the directory `path` with mode 0700 if nothing is there.
    pub(super) fn make_directory(&self, path: &str) -> io::Result<Made> {
        #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has modes"))]
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        cap_std::fs::DirBuilderExt::mode(&mut builder, 0o700);
        match self.dir()?.create_dir_with(path, &builder) {
            Ok(()) => Ok(Made::New),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Made::Before),
            Err(error) => Err(error),
        }
    }

    /// Creates the parent directories of `key`.
    pub(super) fn make_parents(&self, key: &Key) -> io::Result<()> {
        let key = key.as_str();
        key.match_indices('/')
            .try_for_each(|(end, _)| self.make_directory(&key[..end]).map(drop))
    }

    /// Removes the file under `key` if it was written before `before`. Returns whether it did.
    pub(super) fn remove(&self, key: &Key, before: SystemTime) -> io::Result<bool> {
        let dir = match self.dir() {
            Err(error) if is_absent(&error) => return Ok(false),
            dir => dir?,
        };
        let _turn = turn(dir)?;
        match dir.symlink_metadata(key.as_str()) {
            Ok(metadata) if metadata.is_file() => {
                if metadata.modified()?.into_std() >= before {
                    return Ok(false);
                }
            }
            // Not an object that a store creates.
            Ok(_) => return Ok(false),
            Err(error) if is_absent(&error) => return Ok(false),
            Err(error) => return Err(error),
        }
        match dir.remove_file(key.as_str()) {
            Err(error) if is_absent(&error) => Ok(false),
            removed => removed.map(|()| true),
        }
    }

    /// Syncs the parent directory of `key`, if it still exists.
    pub(super) fn sync_parent(&self, key: &Key) -> io::Result<()> {
        let parent = key
            .as_str()
            .rsplit_once('/')
            .map_or(".", |(parent, _)| parent);
        match if cfg!(unix) {
            self.dir()?.open(parent)
        } else {
            return Ok(());
        } {
            Err(error) if is_absent(&error) => Ok(()),
            opened => sync(&opened?.into_std()),
        }
    }

    /// Removes the parent directories of `key` that are empty and have the mode that this store
    /// gives. A directory with another mode belongs to someone else.
    pub(super) fn remove_empty_parents(&self, key: &Key) {
        let (key, Ok(dir)) = (key.as_str(), self.dir()) else {
            return;
        };
        for (end, _) in key.rmatch_indices('/') {
            let is_ours = dir.symlink_metadata(&key[..end]).is_ok_and(|metadata| {
                #[cfg(unix)]
                let is_private =
                    cap_std::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777 == 0o700;
                #[cfg(not(unix))]
                let is_private = true;
                metadata.is_dir() && is_private
            });
            if !is_ours || dir.remove_dir(&key[..end]).is_err() {
                return;
            }
        }
    }

    /// Syncs all parent directories of `key`: another process may have created one without syncing
    /// it yet.
    pub(super) fn sync_directories(&self, key: &Key) -> io::Result<()> {
        // Other systems can't open a directory as a file.
        if cfg!(unix) {
            let (key, dir) = (key.as_str(), self.dir()?);
            for (end, _) in key.rmatch_indices('/') {
                sync(&dir.open(&key[..end])?.into_std())?;
            }
            sync(&dir.open(".")?.into_std())?;
        }
        Ok(())
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let is_made = self
            .temporary
            .as_mut()
            .map(|made| *made.get_mut().unwrap_or_else(PoisonError::into_inner));
        if is_made == Some(true) {
            // Windows does not remove an open directory.
            drop(self.dir.take());
            if let Err(error) = std::fs::remove_dir_all(&self.path) {
                tracing::warn!(%error, root = self.prefix, "could not remove a disposable store");
            }
        }
    }
}

/// Waits until nobody else removes anything. So the file that is removed is the one that was looked
/// at. The lock ends with the process. File systems without locks go without.
#[cfg(unix)]
fn turn(dir: &Dir) -> io::Result<std::fs::File> {
    let file = dir.open(".")?.into_std();
    _ = file.lock();
    Ok(file)
}

/// A directory can't be opened as a file.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "on Unix it can fail")]
fn turn(_: &Dir) -> io::Result<()> {
    Ok(())
}

/// Tells a new directory from an existing one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    New,
    Before,
}

/// Returns true if `error` means that the name does not exist. A path below a file doesn't either.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Makes `prefix` end in a slash.
pub(super) fn ending_in_slash(mut prefix: String) -> String {
    if !prefix.ends_with('/') {
        prefix.push('/');
    }
    prefix
}

/// Replaces the separators of `path` by those of keys. Windows canonicalizes to `\\?\C:\store`, a
/// form that allows no `/`.
fn portable(path: &str) -> String {
    if !cfg!(windows) {
        return path.to_owned();
    }
    let path = match path.strip_prefix(r"\\?\UNC\") {
        Some(share) => format!(r"\\{share}"),
        None => path.strip_prefix(r"\\?\").unwrap_or(path).to_owned(),
    };
    path.replace('\\', "/")
}

/// A random number that no other process has or can guess.
pub(super) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end_in_one_slash() {
        for (given, made) in [
            ("/", "/"),
            (".offcut", ".offcut/"),
            (".offcut/", ".offcut/"),
            ("offcut:", "offcut:/"),
            ("", "/"),
        ] {
            assert_eq!(ending_in_slash(given.to_owned()), made);
        }
    }
}
