//! Files that say which servers run, for `offcut status`.
//!
//! A server holds a lock on its file. The system drops it with the process, however that ends, so a file
//! without a lock is one that a killed server has left.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::agents::layout::{self, Home};
use crate::agents::log;

/// Beginning of the names of files that are not locked yet.
const NEW: &str = ".";

/// The file of a server that runs, in a folder of its user's own: it holds the address of the page, with
/// the token. It goes once this is dropped.
pub(crate) struct Running {
    path: PathBuf,
    /// Holds the lock.
    _file: File,
}

impl Running {
    /// Writes the file for the server with this page; `None` if it can't be written, for a server runs
    /// without it too.
    pub(crate) fn note(page: &str) -> Option<Self> {
        let folder = Home::from_env()?.servers();
        // The number alone may be that of a process in another container.
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_nanos();
        let path = folder.join(format!("{}-{now}", std::process::id()));
        match write(&folder, &path, page) {
            Ok(file) => Some(Self { path, _file: file }),
            Err(error) => {
                tracing::warn!(error = %error, path = %path.display(), "`offcut status` will not find this server");
                None
            }
        }
    }

    /// The addresses of the pages of all servers that run. Files of others are removed.
    pub(crate) fn all(home: &Home) -> io::Result<Vec<String>> {
        let mut paths = layout::paths_in(&home.servers())?;
        let is_new = |name: &OsStr| name.to_string_lossy().starts_with(NEW);
        paths.retain(|path| !path.file_name().is_some_and(is_new));
        paths.sort();
        // A file may go in the meantime.
        let pages = paths.iter().filter_map(|path| page_in(path).ok().flatten());
        Ok(pages.collect())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        _ = fs::remove_file(&self.path);
    }
}

/// The address in a file, unless its server is gone: then the file is removed.
fn page_in(path: &Path) -> io::Result<Option<String>> {
    let Some(file) = log::open(path)? else {
        return Ok(None);
    };
    match file.try_lock() {
        Ok(()) => {
            fs::remove_file(path)?;
            Ok(None)
        }
        // A file that can't be locked at all: the server itself has to be asked.
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {
            io::read_to_string(&file).map(Some)
        }
    }
}

/// Writes and locks the file, and only then gives it its name.
fn write(folder: &Path, path: &Path, page: &str) -> io::Result<File> {
    let mut folders = DirBuilder::new();
    folders.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folders, 0o700);
    folders.create(folder)?;
    // Only its user can read it.
    let mut file = tempfile::Builder::new().prefix(NEW).tempfile_in(folder)?;
    file.write_all(page.as_bytes())?;
    // Shared, so that others can read it where a lock forbids that too.
    _ = file.as_file().lock_shared();
    Ok(file.persist(path)?)
}
