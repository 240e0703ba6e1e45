//! The directory of a store, out of which no name leads.

use std::io;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, File};
use tempfile::TempDir;

use super::error::{Doing, failed};
use crate::backend::{BackendError, ErrorKind, Key, Location};

/// A directory that was opened once. Paths are relative to it from then on.
#[derive(Debug)]
pub(super) struct Root {
    // Before `temporary`: Windows does not remove a directory that is open.
    dir: Dir,
    prefix: String,
    temporary: Option<TempDir>,
}

/// What is under a key.
pub(super) enum Found {
    Nothing,
    /// A regular file and its length.
    File(File, u64),
    /// A directory, a link, a device: nothing that a store has stored.
    Foreign,
}

impl Root {
    pub(super) fn open(path: &Path) -> Result<Self, BackendError> {
        let place = Location::new(format!("{path:?}"));
        let failed = |source| failed(source, Doing::Open, &place);
        // Absolute at once: the process may change its directory later.
        let path = std::path::absolute(path).map_err(failed)?;
        // The directories in which others are made: without a sync of these, a new store is lost with the power.
        let parents: Vec<PathBuf> =
            path.ancestors().take_while(|dir| !dir.exists()).filter_map(Path::parent).map(Into::into).collect();
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path).map_err(failed)?;
        // By who made them: another handle does not know that they are new.
        if cfg!(unix) {
            for parent in &parents {
                std::fs::File::open(parent).and_then(|parent| sync(&parent)).map_err(failed)?;
            }
        }
        let path = path.canonicalize().map_err(failed)?;
        let prefix = path.to_str().filter(|path| !path.contains(char::is_control)).ok_or_else(|| {
            let why =
                "its absolute path is not UTF-8 or has control characters, so no hint can show it; choose another path";
            BackendError::new(ErrorKind::Other, format!("opening the store in {place} failed: {why}"))
        })?;
        let dir = Dir::open_ambient_dir(&path, ambient_authority()).map_err(failed)?;
        Ok(Self { dir, prefix: ending_in_slash(portable(prefix)), temporary: None })
    }

    pub(super) fn temporary() -> Result<Self, BackendError> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("offcut-");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let place = Location::new(format!("{:?}", std::env::temp_dir()));
        let temporary = builder.tempdir().map_err(|source| failed(source, Doing::Open, &place))?;
        let mut root = Self::open(temporary.path())?;
        root.temporary = Some(temporary);
        Ok(root)
    }

    pub(super) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// The absolute, canonical path as text; ends in `/`.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(super) fn is_temporary(&self) -> bool {
        self.temporary.is_some()
    }

    /// What is under `key`. Never follows a link at the key itself.
    pub(super) fn find(&self, key: &Key) -> io::Result<Found> {
        let path = Path::new(key.as_str());
        // Looked at before it is opened: opening a pipe waits until somebody writes to it.
        match self.dir.symlink_metadata(path) {
            Ok(metadata) if metadata.is_file() => {}
            Ok(_) => return Ok(Found::Foreign),
            Err(error) if is_absent(&error) => return Ok(Found::Nothing),
            Err(error) => return Err(error),
        }
        let file = match self.dir.open(path) {
            Ok(file) => file,
            Err(error) if is_absent(&error) => return Ok(Found::Nothing),
            Err(error) => return Err(error),
        };
        // Asked of what is open: the name may have changed hands.
        let metadata = file.metadata()?;
        Ok(if metadata.is_file() { Found::File(file, metadata.len()) } else { Found::Foreign })
    }

    /// Makes the directory `path`, private, if nothing is there.
    pub(super) fn make_directory(&self, path: &str) -> io::Result<Made> {
        #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has modes"))]
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        cap_std::fs::DirBuilderExt::mode(&mut builder, 0o700);
        match self.dir.create_dir_with(path, &builder) {
            Ok(()) => {
                #[cfg(unix)]
                self.give_to_owner(path);
                Ok(Made::New)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Made::Before),
            Err(error) => Err(error),
        }
    }

    /// What root makes in somebody else's store, as it sweeps it, has to be open to whose it is.
    #[cfg(unix)]
    fn give_to_owner(&self, path: &str) {
        use cap_std::fs::MetadataExt;
        let given = (|| {
            let (owner, made) = (self.dir.dir_metadata()?, self.dir.open(path)?);
            if made.metadata()?.uid() == owner.uid() {
                return Ok(());
            }
            std::os::unix::fs::fchown(&made, Some(owner.uid()), Some(owner.gid()))
        })();
        if let Err(error) = given {
            tracing::warn!(%error, path, "a directory could not be given to the owner of the store");
        }
    }

    /// Makes the directories that `key` lies in.
    pub(super) fn make_parents(&self, key: &Key) -> io::Result<()> {
        let key = key.as_str();
        key.match_indices('/').try_for_each(|(end, _)| self.make_directory(&key[..end]).map(drop))
    }

    /// Removes the file under `key`, if there is one, and says whether there was.
    pub(super) fn remove(&self, key: &Key) -> io::Result<bool> {
        match self.dir.symlink_metadata(key.as_str()) {
            Ok(metadata) if metadata.is_file() => {}
            // Nothing that a store has stored.
            Ok(_) => return Ok(false),
            Err(error) if is_absent(&error) => return Ok(false),
            Err(error) => return Err(error),
        }
        match self.dir.remove_file(key.as_str()) {
            Err(error) if is_absent(&error) => Ok(false),
            removed => removed.map(|()| true),
        }
    }

    /// Syncs the directory that `key` lies in, if it is still there.
    pub(super) fn sync_parent(&self, key: &Key) -> io::Result<()> {
        let parent = key.as_str().rsplit_once('/').map_or(".", |(parent, _)| parent);
        match if cfg!(unix) { self.dir.open(parent) } else { return Ok(()) } {
            Err(error) if is_absent(&error) => Ok(()),
            opened => sync(&opened?.into_std()),
        }
    }

    /// Removes the directories that `key` lay in, as far as they are empty and as this store makes them: one with another mode is
    /// somebody's own.
    pub(super) fn remove_empty_parents(&self, key: &Key) {
        let key = key.as_str();
        for (end, _) in key.rmatch_indices('/') {
            let is_ours = self.dir.symlink_metadata(&key[..end]).is_ok_and(|metadata| {
                #[cfg(unix)]
                let is_private = cap_std::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777 == 0o700;
                #[cfg(not(unix))]
                let is_private = true;
                metadata.is_dir() && is_private
            });
            if !is_ours || self.dir.remove_dir(&key[..end]).is_err() {
                return;
            }
        }
    }

    /// Syncs the directories on the way to `key`. All of them, for one that is not new may be another process's that has not
    /// synced it yet.
    pub(super) fn sync_directories(&self, key: &Key) -> io::Result<()> {
        // Elsewhere a directory can't be opened as a file.
        if cfg!(unix) {
            let key = key.as_str();
            for (end, _) in key.rmatch_indices('/') {
                sync(&self.dir.open(&key[..end])?.into_std())?;
            }
            sync(&self.dir.open(".")?.into_std())?;
        }
        Ok(())
    }
}

/// Whether a directory is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    New,
    Before,
}

/// Whether `error` says that nothing has that name. Below a file there is nothing either.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn sync(directory: &std::fs::File) -> io::Result<()> {
    match directory.sync_all() {
        // A file system that can't sync directories; there is nothing more to be done.
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        other => other,
    }
}

/// `prefix` as what locations begin with.
pub(super) fn ending_in_slash(mut prefix: String) -> String {
    if !prefix.ends_with('/') {
        prefix.push('/');
    }
    prefix
}

/// `path` with the separators that keys have. Windows canonicalises to `\\?\C:\store`, a form in which it takes no `/`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end_in_one_slash() {
        for (given, made) in
            [("/", "/"), (".offcut", ".offcut/"), (".offcut/", ".offcut/"), ("offcut:", "offcut:/"), ("", "/")]
        {
            assert_eq!(ending_in_slash(given.to_owned()), made);
        }
    }
}
