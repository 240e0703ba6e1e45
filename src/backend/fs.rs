//! A store in a directory.

mod error;
mod list;
mod place;
mod root;
mod stage;
mod writer;

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;

use self::error::{Doing, blocking, failed};
use self::root::{Found, Root};
use self::stage::Stage;
use self::writer::FsWriter;
use super::{Backend, BackendError, Entry, ErrorKind, Key, Location, Page, Put, Writer};

/// Keeps each content as one file in a directory, where people and programs can read it too.
///
/// ```
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// use offcut::backend::{Backend, Fs, Key, Put};
///
/// # let home = tempfile::tempdir()?;
/// # let path = home.path().join(".offcut");
/// let store = Fs::open(&path)?.shown_as(".offcut"); // path: where .offcut is
/// let key = Key::new("trunc/call_1")?;
/// assert_eq!(store.put(&key, "the whole result".into()).await?, Put::Stored);
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
/// - **Swept in place.** What a [sweep](crate::sweep) moves aside is another name of the same file,
///   where the file's owner does it. Directories that are empty then go, if they have the mode with
///   which this store makes them.
/// - **No call blocks the runtime.** All I/O but that of [`open`](Self::open), and removing the
///   staging file of a writer or a disposable store that is dropped, runs on tokio's blocking
///   threads: it needs a tokio runtime.
///
/// A process that is killed may leave a file in `.staging`. It is never listed or read. A sweep
/// removes it, and while no process uses the store, `.staging` can be deleted.
#[derive(Clone)]
pub struct Fs {
    root: Arc<Root>,
    /// What locations begin with; ends in `/`.
    shown: Arc<str>,
    durable: bool,
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
        let store = Self::over(Root::temporary(&stage::unused_name())?);
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

    /// Tries out all that storing needs: a file, a directory and a hard link. Leaves nothing
    /// behind, and makes no store: where the directory is not there yet, it tries the nearest one
    /// above it.
    ///
    /// Storing does the same before the first content of a process. To be called at the start of a
    /// program, so that a missing permission or a file system without hard links is found then.
    ///
    /// # Errors
    ///
    /// What keeps the store from storing, and what to do about it.
    pub async fn check(&self) -> Result<(), BackendError> {
        let store = self.clone();
        blocking(move || store.check_now()).await
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

#[async_trait]
impl Backend for Fs {
    fn locate(&self, key: &Key) -> Location {
        Location::new(format!("{}{key}", self.shown))
    }

    fn resolve(&self, location: &str) -> Option<Key> {
        // By text alone: what the file system would make of `..`, of links or of case is not what
        // this store has named.
        let under = |prefix: &str| Key::new(location.strip_prefix(prefix)?).ok();
        under(&self.shown).or_else(|| under(self.root.prefix()))
    }

    /// The directory: two of them may be shown alike.
    fn identity(&self) -> Option<usize> {
        let mut hash = DefaultHasher::new();
        self.root.prefix().hash(&mut hash);
        usize::try_from(hash.finish() & u64::from(u32::MAX)).ok()
    }

    async fn put(&self, key: &Key, content: Bytes) -> Result<Put, BackendError> {
        let (store, key) = (self.clone(), key.clone());
        blocking(move || {
            store
                .put_now(&key, &content)
                .map_err(|source| failed(source, Doing::Store, &store.locate(&key)))
        })
        .await
    }

    async fn writer(&self) -> Result<Box<dyn Writer>, BackendError> {
        let store = self.clone();
        Ok(Box::new(blocking(move || FsWriter::open(&store)).await?))
    }

    async fn read(&self, key: &Key, range: Range<u64>) -> Result<Page, BackendError> {
        let (store, key) = (self.clone(), key.clone());
        blocking(move || store.read_now(&key, &range)).await
    }

    fn list(&self) -> BoxStream<'_, Result<Entry, BackendError>> {
        list::list(self.clone())
    }

    async fn remove(&self, key: &Key) -> Result<(), BackendError> {
        let (store, key) = (self.clone(), key.clone());
        blocking(move || {
            store
                .remove_now(&key)
                .map_err(|source| failed(source, Doing::Remove, &store.locate(&key)))
        })
        .await
    }

    async fn copy(&self, from: &Key, to: &Key) -> Result<Put, BackendError> {
        let (store, from, to) = (self.clone(), from.clone(), to.clone());
        blocking(move || {
            let copied = stage::copy(&store, &from, &to);
            let put = copied.map_err(|source| failed(source, Doing::Copy, &store.locate(&from)))?;
            put.ok_or_else(|| not_found(&store.locate(&from)))
        })
        .await
    }

    /// Removes staging files: a process that was killed has left them.
    async fn tidy(&self, before: SystemTime) -> Result<u64, BackendError> {
        let store = self.clone();
        blocking(move || {
            let place = Location::new(&*store.shown);
            stage::tidy(&store, before).map_err(|source| failed(source, Doing::Tidy, &place))
        })
        .await
    }
}

fn not_found(location: &Location) -> BackendError {
    BackendError::new(
        ErrorKind::NotFound,
        format!("nothing is stored as {location}"),
    )
}

impl Fs {
    fn check_now(&self) -> Result<(), BackendError> {
        let nearest = self.root.nearest();
        let tried = if nearest == self.root.path() {
            self.clone()
        } else {
            Self::open(nearest)?
        };
        let tried = tried
            .root
            .make()
            .and_then(|()| tried.root.expect_in_place())
            .and_then(|()| stage::try_out(&tried));
        tried.map_err(|source| failed(source, Doing::Check, &Location::new(self.root.prefix())))
    }

    fn put_now(&self, key: &Key, content: &[u8]) -> io::Result<Put> {
        // First, because on a full disk what is stored already still is.
        if let Some(put) = stage::compare(self, key, content, content.len() as u64)? {
            return Ok(put);
        }
        let mut stage = Stage::create(self)?;
        stage.write(content)?;
        stage.name(key)
    }

    fn remove_now(&self, key: &Key) -> io::Result<()> {
        if self.root.remove(key)? {
            if self.durable {
                // What comes back with the power would stand for what was stored there since.
                self.root.sync_parent(key)?;
            }
            self.root.remove_empty_parents(key);
        }
        Ok(())
    }

    fn read_now(&self, key: &Key, range: &Range<u64>) -> Result<Page, BackendError> {
        let location = self.locate(key);
        let failed = |source| failed(source, Doing::Read, &location);
        let (mut file, total) = match self.root.find(key).map_err(failed)? {
            Found::File(file, total) => (file, total),
            Found::Nothing => return Err(not_found(&location)),
            Found::Foreign => {
                let why =
                    format!("nothing is stored as {location}: what is there is not a regular file");
                return Err(BackendError::new(ErrorKind::NotFound, why));
            }
        };
        let end = range.end.min(total);
        let start = range.start.min(end);
        let length = end - start;
        let mut bytes = Vec::new();
        // Not `with_capacity`, which aborts the process where the range is larger than the memory.
        usize::try_from(length).ok().and_then(|length| bytes.try_reserve_exact(length).ok()).ok_or_else(|| {
            let why = format!("reading {location} failed: {length} bytes do not fit into memory; read a smaller range");
            BackendError::new(ErrorKind::Other, why)
        })?;
        if length > 0 {
            file.seek(SeekFrom::Start(start)).map_err(failed)?;
            file.take(length).read_to_end(&mut bytes).map_err(failed)?;
        }
        Ok(Page {
            bytes: bytes.into(),
            total,
        })
    }
}
