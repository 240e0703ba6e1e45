//! A store in a directory.

mod directory;
mod error;
mod list;
mod place;
mod stage;
mod writer;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;

use self::directory::{Directory, Found};
use self::error::{Doing, blocking, failed};
use self::stage::Stage;
use self::writer::FsWriter;
use crate::backend::home::refuse_home;
use crate::backend::range::within;
use crate::backend::{
    Backend, BackendError, Entry, ErrorKind, Key, Location, PutOutcome, ReadRange, Writer,
};

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
/// - **Confined to its directory.** Nothing outside is read or written. Symbolic links are not
///   followed out of the directory. A link in place of content is neither followed nor replaced:
///   the name counts as taken.
/// - **Private.** Files are created with mode 0600 and directories with 0700 (Unix). Existing ones
///   keep their mode.
/// - **Bounded.** Reading needs memory for the requested range, streaming to a file for 2 MiB and
///   one chunk, listing for 256 entries.
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
    path: Arc<str>,
    /// Prefix of locations; ends in `/`.
    shown_as: Arc<str>,
    durable: bool,
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

    fn over(path: &Path) -> Result<Self, BackendError> {
        let place = Location::new(format!("{path:?}"));
        // Made absolute now, as the process may change its working directory later.
        let path = std::path::absolute(path).and_then(|path| place::resolve(&path));
        let path = path.map_err(|source| failed(source, Doing::Open, &place))?;
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

    /// Tries out everything that storing needs: makes a file, a directory and a hard link, and
    /// removes them again. Does not create the store: if the directory is missing, it tries the
    /// nearest existing parent.
    ///
    /// Call this at program start to find a missing permission, or a file system without hard links,
    /// early.
    ///
    /// # Errors
    ///
    /// The reason why the store can't store, and how to fix it.
    pub async fn check(&self) -> Result<(), BackendError> {
        let store = self.clone();
        blocking(move || store.check_now()).await
    }

    fn check_now(&self) -> Result<(), BackendError> {
        let there = self.path().ancestors().find(|path| path.exists());
        let tried = match there {
            Some(nearest) if nearest != self.path() => Self::over(nearest)?,
            _ => self.clone(),
        };
        stage::try_out(&tried).map_err(|source| failed(source, Doing::Check, &self.place()))
    }

    /// The store itself, as errors name it.
    fn place(&self) -> Location {
        Location::new(&*self.shown_as)
    }

    fn put_now(&self, key: &Key, content: &[u8]) -> Result<PutOutcome, BackendError> {
        let put = || {
            // Compare first, so that content already stored succeeds even on a full disk.
            if let Some(put) = stage::compare(self, key, content, content.len() as u64)? {
                return Ok(put);
            }
            let mut stage = Stage::create(self)?;
            stage.write(content)?;
            stage.name(key)
        };
        put().map_err(|source| failed(source, Doing::Store, &self.locate(key)))
    }

    fn remove_now(&self, key: &Key, before: SystemTime) -> io::Result<()> {
        let Some(directory) = Directory::open_existing(self)? else {
            return Ok(());
        };
        if directory.remove(key, before)? {
            if self.durable {
                // Otherwise the file could reappear after a power loss, in place of newer content.
                directory.sync(key).or_else(error::default_if_absent)?;
            }
            directory.remove_empty_parents(key);
        }
        Ok(())
    }

    fn read_now(&self, key: &Key, range: &Range<u64>) -> Result<ReadRange, BackendError> {
        let location = self.locate(key);
        let failed = |source| failed(source, Doing::Read, &location);
        let not_found = |why| {
            let why = format!("nothing is stored as {location}{why}");
            Err(BackendError::new(ErrorKind::NotFound, why))
        };
        let (mut file, metadata) = match directory::find(self, key).map_err(failed)? {
            Found::File(file, metadata) => (file, metadata),
            Found::Nothing => return not_found(""),
            Found::Foreign => return not_found(": it is not a regular file"),
        };
        let Range { start, end } = within(range, metadata.len());
        let length = end - start;
        let mut bytes = Vec::new();
        // `with_capacity` would abort the process if the range is larger than the memory.
        usize::try_from(length).ok().and_then(|length| bytes.try_reserve_exact(length).ok()).ok_or_else(|| {
            let why = format!("reading {location} failed: {length} bytes do not fit into memory; read a smaller range");
            BackendError::new(ErrorKind::Other, why)
        })?;
        if length > 0 {
            file.seek(SeekFrom::Start(start)).map_err(failed)?;
            file.take(length).read_to_end(&mut bytes).map_err(failed)?;
        }
        Ok(ReadRange {
            bytes: bytes.into(),
            total: metadata.len(),
            stored_at: metadata.modified().map_err(failed)?.into_std(),
        })
    }
}

#[async_trait]
impl Backend for Fs {
    fn locate(&self, key: &Key) -> Location {
        Location::new(format!("{}{key}", self.shown_as))
    }

    fn resolve(&self, location: &str) -> Option<Key> {
        // Compares text only. No location that this store gave out relies on `..`, on links, or on
        // the file system ignoring case.
        let under = |prefix: &str| Key::new(location.strip_prefix(prefix)?).ok();
        under(&self.shown_as).or_else(|| under(&self.path))
    }

    /// Derived from the directory, since two directories may be shown with the same prefix.
    fn store_id(&self) -> Option<usize> {
        let mut hash = DefaultHasher::new();
        self.path.hash(&mut hash);
        usize::try_from(hash.finish() & u64::from(u32::MAX)).ok()
    }

    async fn put(&self, key: &Key, content: Bytes) -> Result<PutOutcome, BackendError> {
        let (store, key) = (self.clone(), key.clone());
        blocking(move || store.put_now(&key, &content)).await
    }

    async fn writer(&self) -> Result<Box<dyn Writer>, BackendError> {
        let store = self.clone();
        Ok(Box::new(blocking(move || FsWriter::open(&store)).await?))
    }

    async fn read(&self, key: &Key, range: Range<u64>) -> Result<ReadRange, BackendError> {
        let (store, key) = (self.clone(), key.clone());
        blocking(move || store.read_now(&key, &range)).await
    }

    fn list(&self) -> BoxStream<'_, Result<Entry, BackendError>> {
        list::list(self.clone())
    }

    async fn remove(&self, key: &Key, before: SystemTime) -> Result<(), BackendError> {
        let (store, key) = (self.clone(), key.clone());
        blocking(move || {
            store
                .remove_now(&key, before)
                .map_err(|source| failed(source, Doing::Remove, &store.locate(&key)))
        })
        .await
    }

    /// Removes staging files of killed processes.
    async fn tidy(&self, before: SystemTime) -> Result<u64, BackendError> {
        let store = self.clone();
        blocking(move || {
            stage::tidy(&store, before)
                .map_err(|source| failed(source, Doing::Tidy, &store.place()))
        })
        .await
    }
}
