//! The store itself: its directory, and how it is used.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::root::{self, Root};
use crate::backend::BackendError;

/// Keeps each content as one file in a directory, where people and programs can read it too.
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
/// - not durable: what is stored outlives the process, and a loss of power only with
///   [`durable`](Self::durable).
///
/// # Guarantees
///
/// - **Create-only and atomic.** Content is written to a file of its own under `.staging`, then
///   given its name by a hard link, which fails where the name is in use. So it needs a file system
///   with hard links. Any number of processes may share a directory.
/// - **Nothing outside of the directory** is read or written. Symbolic links within it are not
///   followed out of it, and one where content should be is never followed nor replaced: the name
///   counts as taken.
/// - **Private.** Files are made with mode 0600, directories with 0700 (Unix). What was there keeps
///   its mode.
/// - **Bounded.** Reading costs memory for the range asked for, streaming to a file for 2 MiB and
///   one chunk, listing for 256 entries.
/// - **Swept in place.** What a sweep moves aside is another name of the same file, where the file's
///   owner does it. Directories that are empty then go, if they have the mode with which this store
///   makes them.
/// - **No call blocks the runtime.** All I/O but that of [`open`](Self::open), and removing the
///   staging file of a writer or a disposable store that is dropped, runs on tokio's blocking
///   threads: it needs a tokio runtime.
///
/// A process that is killed may leave a file in `.staging`. It is never listed or read. A sweep
/// removes it, and while no process uses the store, `.staging` can be deleted.
#[derive(Clone)]
pub struct Fs {
    pub(super) root: Arc<Root>,
    /// What locations begin with; ends in `/`.
    pub(super) shown: Arc<str>,
    pub(super) durable: bool,
}

impl Fs {
    /// The directory: absolute, and free of symbolic links when it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        Path::new(self.root.prefix())
    }

    /// Opens the store in the directory `path`, which need not be there: the first content makes
    /// it, with its parents, all with mode 0700 (Unix).
    ///
    /// Writes nothing, so what is stored can be read on a disk that is full or read-only. A store
    /// that can't be written to fails when it is to store something, and works as soon as that is
    /// mended; [`check`](Self::check) finds out before. A symbolic link in `path` is followed once,
    /// now: it may point elsewhere later without moving the store. Does blocking I/O.
    ///
    /// # Errors
    ///
    /// `path` can never be a directory, such as one below a file or at a link that leads nowhere;
    /// or no hint can show it: it is not UTF-8, or has control characters.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, BackendError> {
        Root::open(path.as_ref()).map(Self::over)
    }

    /// A disposable store: a new private directory under the system's temporary one, made for the
    /// first content, and **removed with all its content** when the last clone and the last writer
    /// are dropped.
    ///
    /// For tests and trials. A hint that outlives it points to nothing; a `tracing` event says so
    /// at level `WARN`. A process that is killed, and a store that is kept in a `static`, leave the
    /// directory behind.
    ///
    /// # Errors
    ///
    /// No hint can show the path of the temporary directory, or it can never be a directory.
    pub fn temporary() -> Result<Self, BackendError> {
        let store = Self::over(Root::temporary()?);
        tracing::warn!(root = %store.shown, "this store is disposable: its content is removed when it is dropped");
        Ok(store)
    }

    fn over(root: Root) -> Self {
        Self {
            shown: root.prefix().into(),
            root: Arc::new(root),
            durable: false,
        }
    }

    /// What hints show in place of the directory's absolute path: with `.offcut`, locations read
    /// `.offcut/trunc/call_1`.
    ///
    /// `prefix` should be a line of text that tells the reader where to look. Where it does not end
    /// in `/`, one is added. Both forms, this and the absolute one, resolve; where a text could be
    /// either, it is this one.
    #[must_use]
    pub fn shown_as(mut self, prefix: impl Into<String>) -> Self {
        self.shown = root::ending_in_slash(prefix.into()).into();
        self
    }

    /// Whether what is stored must outlive a crash of the machine.
    ///
    /// Without it, content that was stored in the seconds before a loss of power may be missing, or
    /// empty, or cut short. With it, an answer comes only after the file and every directory on the
    /// way to it have been synced (`fsync`): a few milliseconds for each put on an SSD, some ten on
    /// a disk. Directories are synced on Unix only; Windows keeps their entries in a journal.
    #[must_use]
    pub fn durable(mut self, durable: bool) -> Self {
        self.durable = durable;
        self
    }
}

impl fmt::Debug for Fs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            root,
            shown,
            durable,
        } = self;
        f.debug_struct("Fs")
            .field("root", &root.prefix())
            .field("shown_as", shown)
            .field("durable", durable)
            .field("disposable", &root.is_temporary())
            .finish()
    }
}
