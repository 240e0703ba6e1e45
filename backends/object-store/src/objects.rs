//! The store: what it is made of, and the contract over it.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use offcut::backend::{
    Backend, BackendError, Entry, ErrorKind, Fs, Key, Location, Page, Put, Writer,
};
use sha2::{Digest, Sha256};
use tokio::sync::{OnceCell, Semaphore};

use crate::builder::Builder;
use crate::error::{Kind, Trouble};
use crate::limited::{blocking, limited};
use crate::names;
use crate::open::{OpenError, open_with};
use crate::put::missing_bucket;
use crate::upload::Content;
use crate::writer::ObjectWriter;

/// The object that shows that nothing is overwritten. It begins with a dot, so it is no key: never
/// listed, never read.
const PROBE: &str = ".offcut-create-only";

/// Content up to so many bytes is one object from one request; what is longer is uploaded in parts.
pub(crate) const WHOLE: u64 = 8 << 20;

/// Keeps each content as one object in an object store: S3, Google Cloud Storage, Azure, and all
/// else that `object_store` knows.
///
/// ```
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// use offcut::backend::{Backend, Key, Put};
/// use offcut_object_store::Objects;
///
/// # let home = tempfile::tempdir()?;
/// # let url = format!("memory:/agents?spool={}", home.path().display());
/// let store = Objects::open(&url)?; // url: s3://bucket/agents
/// let key = Key::new("trunc/call_1")?;
/// assert_eq!(store.put(&key, "the whole result".into()).await?, Put::Stored);
/// assert_eq!(store.locate(&key).as_str(), "memory:/agents/trunc/call_1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`open`](Self::open) takes a URL; [`builder`](Self::builder) takes a store of `object_store`
/// that you have set up yourself. Both list the defaults.
///
/// # Guarantees
///
/// - **Create-only.** What is up to 8 MiB long is put with `If-None-Match: *`, or what other stores
///   have for it. That the store heeds it is tried before anything else is stored, with one small
///   object below the prefix, `.offcut-create-only`, which stays; a store that would overwrite is
///   refused. What is longer is uploaded in parts, for which no store has such a mode: it is stored
///   only under keys that [name their content](Key::names_content), where others can store nothing
///   but the same bytes, and only if nothing is there right before the upload is complete.
/// - **Says the truth.** Where a store answers that something is there already, or nothing in time,
///   or that it failed, what is there is read and compared before anything is claimed or tried
///   again.
/// - **Atomic.** An object appears whole or not at all. An upload that fails or is dropped is
///   aborted; where even that can't be done, its parts are invisible, and a lifecycle rule removes
///   them.
/// - **Bounded.** Each call ends within the [time-out](Builder::timeout), an upload within that for
///   each of its parts. Uploads hold [`PARTS`](crate::PARTS) parts of 5 MiB at most, all of the
///   clones of a store together, and other calls what they are given or asked for. A result may
///   have 48 GiB.
/// - **Nothing is lost with the network.** Writers write to a private file in the
///   [spool](Builder::spool) and upload from it. If that fails for good, the file gets a name
///   ([`Writer::keep`]).
///
/// It needs a tokio runtime with time and, for all but memory and files, I/O.
#[derive(Clone)]
pub struct Objects {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn ObjectStore>,
    /// What names of objects begin with: empty, or a path that ends in `/`.
    pub(crate) prefix: String,
    /// What locations begin with; ends in `/`. The prefix is in it.
    pub(crate) shown: String,
    pub(crate) identity: usize,
    pub(crate) spool: Fs,
    pub(crate) retry: Retry,
    /// One permit for each part that may be held in memory.
    pub(crate) parts: Arc<Semaphore>,
    /// Set once the store has shown that it does not overwrite.
    pub(crate) proven: OnceCell<()>,
}

/// How often and how long something is tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retry {
    /// How long a call may take in all.
    pub(crate) timeout: Duration,
    /// How often it is tried again.
    pub(crate) retries: u32,
    /// The pause before the first time. Each later one is twice as long.
    pub(crate) backoff: Duration,
}

/// The longest pause between two attempts.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(15);

impl Objects {
    /// Opens the store that `url` names: `s3://bucket/prefix`, `gs://…`, `az://…`,
    /// `file:///directory` or `memory:/prefix`.
    ///
    /// Options are in the query (`?region=eu-central-1&timeout=60s`) or in the environment, under
    /// the names that the store's own tools use; the URL wins. Where one of the credentials is in
    /// the URL, all are taken from there. An endpoint without TLS must be on this machine, or
    /// `allow_http=true` must be set. `docs/object-stores.md` in the repository lists them all.
    ///
    /// Asks nothing of the store: [`check`](Self::check) does. Does blocking I/O in the spool's
    /// directory, and where it reads the system's certificates.
    ///
    /// # Default
    ///
    /// - `timeout=120s`, `backoff=100ms` and `spool`: as [`Builder`] has them.
    /// - `retries=5`; for S3, one less than `AWS_MAX_ATTEMPTS` where that is set.
    /// - `region=us-east-1` for S3.
    ///
    /// # Errors
    ///
    /// An [`OpenError`] that names what is wrong in the URL or the environment, and never a value
    /// that may be secret.
    pub fn open(url: &str) -> Result<Self, OpenError> {
        open_with(url, &|name| std::env::var(name).ok())
    }

    /// Sets up a store over any store of `object_store`.
    ///
    /// `shown` is what locations begin with, and names the store's root: `s3://bucket`. Two stores
    /// that hold different content should not be shown alike; one configuration refuses to have
    /// both.
    pub fn builder(store: Arc<dyn ObjectStore>, shown: impl Into<String>) -> Builder {
        Builder::new(store, shown.into())
    }

    pub(crate) fn over(inner: Inner) -> Self {
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Finds out whether the store works: reaches it, stores the object that shows that it
    /// overwrites nothing, reads it back, and asks for one that is not there. Then tries out the
    /// spool.
    ///
    /// To be called once at the start of a program, so that a wrong bucket or wrong credentials are
    /// found then. Without it, the first call that stores finds them.
    ///
    /// # Errors
    ///
    /// What is wrong, and what to do about it: no such bucket, wrong credentials, another region,
    /// an endpoint that can't be reached, a store that overwrites; or a spool that can't be written
    /// to.
    pub async fn check(&self) -> Result<(), BackendError> {
        let checked = self.within(self.check_now()).await;
        checked
            .map_err(|trouble| trouble.while_doing(format_args!("checking {}", self.shown())))?;
        self.inner.spool.check().await
    }

    async fn check_now(&self) -> Result<(), Trouble> {
        self.prove_create_only().await?;
        self.page(&self.probe(), 0..u64::MAX).await?;
        // Without the right to list, S3 calls what is not there forbidden.
        match self.page(&self.below(".offcut-nothing"), 0..1).await {
            Err(trouble) if trouble.kind != Kind::NotFound => Err(trouble),
            _ => Ok(()),
        }
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    pub(crate) fn shown(&self) -> &str {
        &self.inner.shown
    }

    /// Where [`PROBE`] is.
    pub(crate) fn probe(&self) -> Path {
        self.below(PROBE)
    }

    pub(crate) fn path(&self, key: &Key) -> Path {
        self.below(&names::of(key))
    }

    fn below(&self, name: &str) -> Path {
        // Nothing in it needs to be escaped: the prefix is made of safe segments, as keys are.
        Path::from(format!("{}{name}", self.inner.prefix))
    }

    /// The entry for an object, if it was stored under a key.
    fn entry(&self, meta: &ObjectMeta) -> Option<Result<Entry, BackendError>> {
        let name = meta.location.as_ref().strip_prefix(&self.inner.prefix)?;
        if let Some(prefix) = name
            .strip_suffix(PROBE)
            .filter(|prefix| prefix.ends_with('/'))
        {
            // What is in there has other names where its own agents opened it.
            let why = format!("there is a store of its own in it, `{prefix}`: open that one");
            return Some(Err(BackendError::new(
                ErrorKind::Other,
                format!("listing {} failed: {why}", self.shown()),
            )));
        }
        let stored_at = SystemTime::from(meta.last_modified);
        Some(Ok(Entry {
            key: names::key(name)?,
            bytes: meta.size,
            stored_at,
        }))
    }

    pub(crate) fn storing(&self, key: &Key, trouble: Trouble) -> BackendError {
        self.failed("storing", key, trouble)
    }

    /// The error of a call about `key`. Where there is no bucket, the store is what it is about,
    /// whatever was asked of it.
    fn failed(&self, doing: &str, key: &Key, trouble: Trouble) -> BackendError {
        match trouble.kind {
            Kind::NoBucket => trouble.while_doing(format_args!("{doing} in {}", self.shown())),
            _ => trouble.while_doing(format_args!("{doing} {}", self.locate(key))),
        }
    }

    /// Gives up `call` when the time for a whole call is over.
    pub(crate) async fn within<T>(
        &self,
        call: impl Future<Output = Result<T, Trouble>>,
    ) -> Result<T, Trouble> {
        limited(self.inner.retry.timeout, call).await
    }

    /// Gives up one attempt early enough that another one can be made.
    pub(crate) async fn attempt<T>(
        &self,
        call: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, Trouble> {
        limited(self.inner.retry.attempt(), call).await
    }

    pub(crate) fn pauses(&self) -> Pauses {
        let Retry {
            retries, backoff, ..
        } = self.inner.retry;
        Pauses {
            left: retries,
            next: backoff,
        }
    }
}

impl Retry {
    /// How long one attempt may take.
    pub(crate) fn attempt(&self) -> Duration {
        self.timeout / 4
    }
}

/// The pauses between attempts.
#[derive(Debug)]
pub(crate) struct Pauses {
    left: u32,
    next: Duration,
}

impl Pauses {
    /// Waits for the next attempt; false if there is none.
    pub(crate) async fn wait(&mut self) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        tokio::time::sleep(self.next).await;
        self.next = self.next.saturating_mul(2).min(LONGEST_PAUSE);
        true
    }
}

/// Names the store and never what it was opened with.
impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            store: _,
            prefix: _,
            shown,
            identity: _,
            spool,
            retry,
            parts: _,
            proven,
        } = &*self.inner;
        f.debug_struct("Objects")
            .field("shown", shown)
            .field("spool", &spool.path())
            .field("retry", retry)
            .field("proven", &proven.initialized())
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Backend for Objects {
    fn locate(&self, key: &Key) -> Location {
        Location::new(format!("{}{key}", self.shown()))
    }

    fn resolve(&self, location: &str) -> Option<Key> {
        Key::new(location.strip_prefix(self.shown())?).ok()
    }

    /// The endpoint and the bucket, or for a store that was handed in, which one it is: two of them
    /// may be shown alike.
    fn identity(&self) -> Option<usize> {
        Some(self.inner.identity)
    }

    fn spool(&self) -> Option<Arc<dyn Backend>> {
        Some(Arc::new(self.inner.spool.clone()))
    }

    async fn put(&self, key: &Key, content: Bytes) -> Result<Put, BackendError> {
        let failed = |trouble: Trouble| self.storing(key, trouble);
        if content.len() as u64 <= WHOLE {
            return self
                .within(self.put_whole(key, &content))
                .await
                .map_err(failed);
        }
        // Hashing takes a third of a second for each 100 MB, too long for a thread that others wait
        // for.
        let hashed = content.clone();
        let sha256 = blocking(move || Sha256::digest(&hashed).into())
            .await
            .map_err(failed)?;
        if !key.names_content(&sha256) {
            return Ok(Put::Taken);
        }
        self.upload(key, &mut Content::Whole(content)).await
    }

    async fn writer(&self) -> Result<Box<dyn Writer>, BackendError> {
        Ok(Box::new(ObjectWriter::new(
            self.clone(),
            self.inner.spool.writer().await?,
        )))
    }

    async fn read(&self, key: &Key, range: Range<u64>) -> Result<Page, BackendError> {
        let page = self.page(&self.path(key), range).await;
        page.map_err(|trouble| self.failed("reading", key, trouble))
    }

    fn list(&self) -> BoxStream<'_, Result<Entry, BackendError>> {
        let prefix = self.inner.prefix.strip_suffix('/').map(Path::from);
        let objects = self.inner.store.list(prefix.as_ref());
        // The time-out is for each wait, of which a long list has many. After an error there is
        // nothing more.
        stream::unfold(Some(objects), async |objects| {
            let mut objects = objects?;
            // A list that is not found means that the bucket is missing.
            let next = async {
                objects
                    .next()
                    .await
                    .transpose()
                    .map_err(|error| missing_bucket(error.into()))
            };
            match self.within(next).await {
                Ok(meta) => Some((self.entry(&meta?), Some(objects))),
                Err(trouble) => Some((
                    Some(Err(
                        trouble.while_doing(format_args!("listing {}", self.shown()))
                    )),
                    None,
                )),
            }
        })
        .filter_map(std::future::ready)
        .boxed()
    }

    async fn remove(&self, key: &Key) -> Result<(), BackendError> {
        let removed = self.within(self.remove_with_retries(key)).await;
        removed.map_err(|trouble| self.failed("removing", key, trouble))
    }
}

impl Objects {
    async fn remove_with_retries(&self, key: &Key) -> Result<(), Trouble> {
        let path = self.path(key);
        let mut pauses = self.pauses();
        loop {
            match self.attempt(self.inner.store.delete(&path)).await {
                // Some stores say so, S3 does not.
                Err(trouble) if trouble.kind == Kind::NotFound => return Ok(()),
                Err(trouble) if trouble.kind.is_passing() && pauses.wait().await => {}
                done => return done,
            }
        }
    }
}
