//! The directory of a store, open, so that no name leads out of it.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::time::SystemTime;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, File, Metadata};

use super::error::{link_found, none_if_absent};
use super::store::{self, Fs, sync};
use crate::backend::Key;
use crate::backend::range::within;

/// A store's directory. All paths are relative to it. It is opened for each call, so that content is
/// always where hints say, even if somebody moves or replaces the directory.
#[derive(Debug)]
pub(super) struct Directory(pub(super) Dir);

/// The object found under a key.
pub(super) enum Found {
    Nothing,
    File(File, Metadata),
    /// A directory, a link or a device, which no store creates.
    Foreign,
}

/// Looks up `key`. Never follows a link at the key itself.
pub(super) fn find(store: &Fs, key: &Key) -> io::Result<Found> {
    let find = || {
        let Directory(dir) = Directory::open(store)?;
        // Check the type before opening: opening a pipe would block until someone writes to it.
        if !dir.symlink_metadata(key.as_str())?.is_file() {
            return Ok(Found::Foreign);
        }
        let file = dir.open(key.as_str())?;
        // Check the open file, since the name may point to another file by now.
        let metadata = file.metadata()?;
        Ok(if metadata.is_file() {
            Found::File(file, metadata)
        } else {
            Found::Foreign
        })
    };
    Ok(none_if_absent(find())?.unwrap_or(Found::Nothing))
}

/// Reads the bytes in `range` of an open file. Memory is taken as they arrive, so a range may be longer.
pub(super) fn read(file: &mut File, range: &Range<u64>) -> io::Result<Vec<u8>> {
    let Range { start, end } = within(range, file.metadata()?.len());
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(start))?;
    Read::take(file, end - start).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl Directory {
    /// Opens the directory; [`io::ErrorKind::NotFound`] if it does not exist.
    pub(super) fn open(store: &Fs) -> io::Result<Self> {
        let dir = Dir::open_ambient_dir(store.path(), ambient_authority())?;
        // A path that did not exist when the store was opened may now be a link.
        let path = store.path().canonicalize()?;
        if store::shown(&path).as_deref() == Some(&*store.path) {
            Ok(Self(dir))
        } else {
            Err(link_found())
        }
    }

    /// Opens the directory, and creates it if it does not exist.
    pub(super) fn make(store: &Fs) -> io::Result<Self> {
        if let Some(directory) = none_if_absent(Self::open(store))? {
            return Ok(directory);
        }
        if store::shown(&store::resolve(store.path())?).as_deref() != Some(&*store.path) {
            return Err(link_found());
        }
        store::make(store.path()).map_err(|source| match source.kind() {
            // Happens below `/proc`. As it is, the error would read as if content were missing.
            io::ErrorKind::NotFound => io::Error::new(io::ErrorKind::NotADirectory, source),
            _ => source,
        })?;
        Self::open(store)
    }

    /// Creates the directory `path` with mode 0700. Returns whether it is new.
    pub(super) fn make_directory(&self, path: &str) -> io::Result<bool> {
        #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has modes"))]
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        cap_std::fs::DirBuilderExt::mode(&mut builder, 0o700);
        match self.0.create_dir_with(path, &builder) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Creates the parent directories of `key`.
    pub(super) fn make_parents(&self, key: &Key) -> io::Result<()> {
        let key = key.as_str();
        key.match_indices('/')
            .try_for_each(|(end, _)| self.make_directory(&key[..end]).map(drop))
    }

    /// Removes the file `path` if it was last written before `before`. Returns whether it did.
    pub(super) fn remove_if_older(
        &self,
        path: impl AsRef<Path>,
        before: SystemTime,
    ) -> io::Result<bool> {
        // Elsewhere a directory can't be opened as a file.
        #[cfg(unix)]
        let _turn = self.turn()?;
        let metadata = self.0.symlink_metadata(&path)?;
        let is_older = metadata.is_file() && metadata.modified()?.into_std() < before;
        if is_older {
            self.0.remove_file(&path)?;
        }
        Ok(is_older)
    }

    /// Waits until nobody else removes anything. So the file that is removed is the one that was
    /// looked at. The lock ends with the process. File systems without locks go without.
    #[cfg(unix)]
    fn turn(&self) -> io::Result<std::fs::File> {
        let file = self.0.open(".")?.into_std();
        _ = file.lock();
        Ok(file)
    }

    /// Removes the parent directories of `key` that are empty.
    pub(super) fn remove_empty_parents(&self, key: &Key) {
        let mut parents = key.as_str().rmatch_indices('/');
        _ = parents.try_for_each(|(end, _)| self.0.remove_dir(&key.as_str()[..end]));
    }

    /// Syncs all parent directories of `key`: another process may have created one without syncing
    /// it yet.
    pub(super) fn sync(&self, key: &Key) -> io::Result<()> {
        // Other systems can't open a directory as a file.
        if cfg!(unix) {
            let parents = Path::new(key.as_str()).ancestors().skip(1);
            for parent in parents {
                let parent = Path::new(".").join(parent);
                sync(&self.0.open(parent)?.into_std())?;
            }
        }
        Ok(())
    }
}
