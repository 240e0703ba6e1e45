//! The store type: its directory and its options.

use std::path::Path;
use std::sync::Arc;

use super::error::{BlockingThreads, failed};
use super::place;
use crate::backend::home::refuse_home;
use crate::backend::{BackendError, ErrorKind, Location};

/// A store with one file per content in a directory, which people and programs can read too.
///
/// ```
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// use offcut::backend::{Backend, Fs, Key, PutOutcome};
///
/// # let home = tempfile::tempdir()?;
/// # let path = home.path().join(".offcut");
/// let store = Fs::open(&path)?.shown_as(".offcut"); // path: where .offcut is
/// let key = Key::new("trunc/call_1")?;
/// assert_eq!(store.put(&key, "the whole result".into()).await?, PutOutcome::Stored);
/// assert_eq!(store.locate(&key).as_str(), ".offcut/trunc/call_1");
/// assert_eq!(std::fs::read(path.join("trunc/call_1"))?, b"the whole result");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Default
///
/// - locations are absolute paths: [`shown_as`](Self::shown_as) shortens them.
/// - not durable: content outlives the process, but survives a power loss only with
///   [`durable`](Self::durable).
///
/// # Guarantees
///
/// - **Create-only and atomic.** Content is written to its own file under `.staging`, then
///   hard-linked to its name, which fails if the name is in use. So the file system must support
///   hard links. Any number of processes may share a directory.
/// - **Confined to its directory.** Nothing outside is read or written, but by a
///   check of one that does not exist yet. Symbolic links are not
///   followed out of the directory. A link in place of content is neither followed nor replaced:
///   the name counts as taken.
/// - **Private.** Files are created with mode 0600 and directories with 0700 (Unix). Existing ones
///   keep their mode.
/// - **Bounded.** Reading needs memory for the requested range, streaming to a file for 2 MiB and
///   one chunk, listing for all entries.
/// - **Swept in place.** Directories that a sweep leaves empty are removed if they have the mode with
///   which this store creates them.
/// - **Non-blocking.** I/O runs on tokio's blocking threads, so a tokio runtime is required.
///   Exceptions are [`open`](Self::open), and removing the file of a dropped writer.
///
/// A killed process may leave a file in `.staging`. It is never listed or read. A sweep removes it.
/// You can also delete `.staging` while no process uses the store.
#[derive(Clone, Debug)]
pub struct Fs {
    /// The directory, absolute and free of links when the store was opened; ends in `/`.
    pub(super) path: Arc<str>,
    /// Prefix of locations; ends in `/`.
    pub(super) shown_as: Arc<str>,
    pub(super) durable: bool,
    pub(super) threads: BlockingThreads,
}

impl Fs {
    /// Opens the store in the directory `path`, which need not exist: the first content creates it
    /// and its parents, all with mode 0700 (Unix). A relative path begins in the working directory
    /// that the process has now.
    ///
    /// Opening writes nothing, so content on a full or read-only disk stays readable. A store
    /// without write access fails when storing, and works once access is granted; use
    /// [`check`](Self::check) to find out early. A symbolic link in `path` is followed once, now;
    /// changing it later does not move the store. Does blocking I/O.
    ///
    /// # Errors
    ///
    /// `path` can never be a directory, for example because it is below a file or is a dangling
    /// link; or it can't be shown in a hint, because it is not UTF-8 or has control characters; or
    /// it begins with `~`, which only shells expand.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, BackendError> {
        refuse_home(path.as_ref())?;
        Self::over(path.as_ref())
    }

    pub(super) fn over(path: &Path) -> Result<Self, BackendError> {
        let place = Location::new(format!("{path:?}"));
        // Made absolute now, as the process may change its working directory later.
        let path = std::path::absolute(path).and_then(|path| place::resolve(&path));
        let path = path.map_err(|source| failed(source, "opening the store in", &place))?;
        let path = place::shown(&path).ok_or_else(|| {
            let why =
                "its absolute path is not UTF-8 or has control characters, so no hint can show it; choose another path";
            BackendError::new(ErrorKind::Other, format!("opening the store in {place} failed: {why}"))
        })?;
        let path: Arc<str> = path.into();
        Ok(Self {
            shown_as: path.clone(),
            path,
            durable: false,
            threads: BlockingThreads::new(),
        })
    }

    /// The absolute path of the directory, free of symbolic links when it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        Path::new(&*self.path)
    }

    /// Sets the prefix that hints show instead of the directory's absolute path: with `.offcut`,
    /// locations read `.offcut/trunc/call_1`.
    ///
    /// `prefix` should be one line that tells the reader where to look. A missing `/` at its end is
    /// added. Locations in both forms resolve; an ambiguous one is read with this prefix.
    #[must_use]
    pub fn shown_as(mut self, prefix: impl Into<String>) -> Self {
        self.shown_as = place::ending_in_slash(prefix.into()).into();
        self
    }

    /// Makes stored content survive a power loss or a crash of the machine.
    ///
    /// Without it, content stored in the seconds before a power loss may be missing, empty or cut
    /// short. With it, a call returns only after the file and all its parent directories are synced
    /// (`fsync`). That takes a few milliseconds per put on an SSD and some ten on a hard disk.
    /// Directories are synced on Unix only; Windows journals their entries.
    #[must_use]
    pub fn durable(mut self, durable: bool) -> Self {
        self.durable = durable;
        self
    }

    /// The store itself, as errors name it.
    pub(super) fn place(&self) -> Location {
        Location::new(&*self.shown_as)
    }
}
