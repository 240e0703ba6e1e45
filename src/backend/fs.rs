//! A store in a directory.

mod directory;
mod error;
mod list;
mod stage;
mod store;
mod writer;

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io;
use std::ops::Range;
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;

use self::directory::{Directory, Found};
use self::error::{READING, failed, none_if_absent};
use self::stage::Stage;
pub use self::store::Fs;
use self::writer::FsWriter;
use crate::backend::{
    Backend, BackendError, Entry, ErrorKind, Key, Location, PutOutcome, ReadRange, Writer,
};

impl Fs {
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
        self.blocking(Self::check_now).await
    }

    fn check_now(&self) -> Result<(), BackendError> {
        let there = self.path().ancestors().find(|path| path.exists());
        let tried = match there {
            Some(nearest) if nearest != self.path() => Self::open(nearest)?,
            _ => self.clone(),
        };
        let place = Location::new(&*self.path);
        stage::try_out(&tried).map_err(|source| failed(source, "trying out the store in", &place))
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
        put().map_err(|source| failed(source, "storing", &self.locate(key)))
    }

    fn remove_now(&self, key: &Key, before: SystemTime) -> io::Result<()> {
        let remove = || {
            let directory = Directory::open(self)?;
            if directory.remove_if_older(key.as_str(), before)? {
                if self.durable {
                    // Otherwise the file could reappear after a power loss, in place of newer content.
                    directory.sync(key)?;
                }
                directory.remove_empty_parents(key);
            }
            Ok(())
        };
        none_if_absent(remove()).map(Option::unwrap_or_default)
    }

    fn read_now(&self, key: &Key, range: &Range<u64>) -> Result<ReadRange, BackendError> {
        let location = self.locate(key);
        let failed = |source| failed(source, READING, &location);
        let not_found = |why| {
            let why = format!("nothing is stored as {location}{why}");
            Err(BackendError::new(ErrorKind::NotFound, why))
        };
        let (mut file, metadata) = match directory::find(self, key).map_err(failed)? {
            Found::File(file, metadata) => (file, metadata),
            Found::Nothing => return not_found(""),
            Found::Foreign => return not_found(": it is not a regular file"),
        };
        Ok(ReadRange {
            bytes: directory::read(&mut file, range).map_err(failed)?.into(),
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
        Some(BuildHasherDefault::<DefaultHasher>::new().hash_one(&self.path) as u32 as usize)
    }

    async fn put(&self, key: &Key, content: Bytes) -> Result<PutOutcome, BackendError> {
        let key = key.clone();
        self.blocking(move |store| store.put_now(&key, &content))
            .await
    }

    async fn writer(&self) -> Result<Box<dyn Writer>, BackendError> {
        Ok(Box::new(self.blocking(FsWriter::open).await?))
    }

    async fn read(&self, key: &Key, range: Range<u64>) -> Result<ReadRange, BackendError> {
        let key = key.clone();
        self.blocking(move |store| store.read_now(&key, &range))
            .await
    }

    fn list(&self) -> BoxStream<'_, Result<Entry, BackendError>> {
        list::list(self.clone())
    }

    async fn remove(&self, key: &Key, before: SystemTime) -> Result<(), BackendError> {
        let key = key.clone();
        self.blocking(move |store| {
            store
                .remove_now(&key, before)
                .map_err(|source| failed(source, "removing", &store.locate(&key)))
        })
        .await
    }

    /// Removes staging files of killed processes.
    async fn tidy(&self, before: SystemTime) -> Result<u64, BackendError> {
        self.blocking(move |store| {
            stage::tidy(store, before)
                .map_err(|source| failed(source, "tidying up in", &store.place()))
        })
        .await
    }
}
