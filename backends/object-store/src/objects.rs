//! The store: its parts, and the helpers of every call.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{GetOptions, ObjectStore};
use offcut::backend::{Backend, BackendError, ErrorKind, Fs, Key, Location, ReadRange};
use tokio::sync::{OnceCell, Semaphore};

use crate::error::{Kind, Trouble};
use crate::retry::{Retry, limited};

/// The object that proves that nothing is overwritten. Its name begins with a dot, so it is not a
/// key: it is never listed and never read.
pub(crate) const PROBE: &str = ".offcut-create-only";

/// Keeps each content as one object in an object store: S3, Google Cloud Storage, Azure, or any
/// other that `object_store` supports.
///
/// ```
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// use offcut::backend::{Backend, Key, PutOutcome};
/// use offcut_object_store::Objects;
///
/// # let (home, memory) = (tempfile::tempdir()?, std::sync::Arc::new(object_store::memory::InMemory::new()));
/// # let store = Objects::builder(memory, "s3://bucket").prefix("agents").spool(home.path()).build()?; /*
/// let store = Objects::open("s3://bucket/agents")?;
/// # */
/// let key = Key::new("trunc/call_1")?;
/// assert_eq!(store.put(&key, "the whole result".into()).await?, PutOutcome::Stored);
/// assert_eq!(store.locate(&key).as_str(), "s3://bucket/agents/trunc/call_1");
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
/// - **Create-only.** Content up to 8 MiB is put with `If-None-Match: *`, or its equivalent in
///   other stores. Before the first put, one small object below the prefix, `.offcut-create-only`,
///   which stays, proves that the store honours this; a store that would overwrite is rejected.
///   Longer content is uploaded in parts, for which `object_store` has no such mode. So it is
///   stored only under keys that [name their content](Key::is_addressed_by), where others can store
///   only the same bytes, and only if nothing is there right before the upload is complete.
/// - **Truthful.** If a store answers that the name is taken or that it failed, or does not answer
///   in time, the object there is read and compared before anything is reported or retried.
/// - **Atomic.** An object appears whole or not at all. An upload that fails or is dropped is
///   aborted. If even that fails, its parts are invisible, and a lifecycle rule removes them.
/// - **Bounded.** Each call ends within the [timeout](crate::Builder::timeout), and an upload
///   within that time for each of its parts. Uploads hold at most
///   [`MAX_PARTS_IN_MEMORY`](crate::MAX_PARTS_IN_MEMORY) parts of 5 MiB, over all clones of a
///   store; other calls hold the bytes they are given or asked for. A result may have up to 48 GiB.
/// - **Nothing is lost with the network.** Writers write to a private file in the
///   [spool](crate::Builder::spool) and upload from it. If that fails permanently, the file stays,
///   and this machine's stores read, list and sweep it. Only keys that name their content lead to
///   it, so no other machine stores anything else under them.
///
/// Needs a tokio runtime with time enabled and, except for memory, I/O.
#[derive(Clone)]
pub struct Objects {
    pub(crate) objects: Arc<dyn ObjectStore>,
    /// The start of all object names: empty, or a path that ends in `/`.
    pub(crate) prefix: String,
    /// The start of all locations, the prefix included; ends in `/`.
    pub(crate) shown: String,
    pub(crate) store_id: usize,
    pub(crate) spool: Fs,
    pub(crate) retry: Retry,
    /// One permit for each part that may be held in memory.
    pub(crate) parts: Arc<Semaphore>,
    /// Set once the store has proved that it does not overwrite.
    pub(crate) proven: Arc<OnceCell<()>>,
}

impl Objects {
    pub(crate) fn location(&self, key: &Key) -> Location {
        Location::new(format!("{}{key}", self.shown))
    }

    pub(crate) fn path(&self, key: &Key) -> Path {
        self.path_of(key.as_str())
    }

    pub(crate) fn path_of(&self, name: &str) -> Path {
        // Needs no escaping: the prefix is made of safe segments, as keys are.
        Path::from(format!("{}{name}", self.prefix))
    }

    /// The error of a call about `key`. If there is no bucket, the error names the store instead.
    pub(crate) fn failed(&self, doing: &str, key: &Key, trouble: Trouble) -> BackendError {
        match trouble.kind {
            Kind::NoBucket => trouble.while_doing(format_args!("{doing} in {}", self.shown)),
            _ => trouble.while_doing(format_args!("{doing} {}", self.location(key))),
        }
    }

    /// Cancels `call` when the time for a whole call is over.
    pub(crate) async fn within_timeout<T>(
        &self,
        call: impl Future<Output = Result<T, Trouble>>,
    ) -> Result<T, Trouble> {
        limited(self.retry.timeout, call).await
    }

    /// Reads the bytes of `range` that exist, from the spool if it has the content.
    pub(crate) async fn page_of(&self, key: &Key, range: Range<u64>) -> Result<ReadRange, Trouble> {
        let spooled = match self.spool.read(key, range.clone()).await {
            Ok(page) => return Ok(page),
            Err(error) => error,
        };
        match self.page(&self.path(key), range).await {
            // It may be what the spool failed to read.
            Err(Trouble {
                kind: Kind::NotFound,
                ..
            }) if spooled.kind() != ErrorKind::NotFound => Err(Trouble::of_spool(&spooled)),
            page => page,
        }
    }

    /// Reads the bytes of `range` that exist in the store.
    pub(crate) async fn page(&self, path: &Path, range: Range<u64>) -> Result<ReadRange, Trouble> {
        // Some servers accept numbers of 63 bits only, and no object is longer than that.
        let range = range.start..range.end.min(i64::MAX as u64);
        let read = async {
            if range.is_empty() {
                return self.read_length(path).await;
            }
            match self.get(path, range.clone()).await {
                // Stores refuse a range that begins past the end, and every range of an empty object.
                Err(trouble) if trouble.kind == Kind::Range => {
                    match self.read_length(path).await? {
                        page if page.total <= range.start => Ok(page),
                        _ => Err(trouble),
                    }
                }
                done => done,
            }
        };
        self.within_timeout(read).await
    }

    async fn get(&self, path: &Path, range: Range<u64>) -> Result<ReadRange, Trouble> {
        let options = GetOptions::default().with_range(Some(range.clone()));
        let found = self.objects.get_opts(path, options).await?;
        let (total, stored_at) = (found.meta.size, found.meta.last_modified.into());
        let end = range.end.min(total).max(range.start);
        let length = end - range.start;
        let other = "the store returned other bytes than those of the range";
        if found.range != (range.start..end) {
            return Err(Trouble::new(Kind::Unreachable, other));
        }
        // `bytes` aborts the process if the range is larger than the memory.
        let reserved =
            usize::try_from(length).map(|length| Vec::<u8>::new().try_reserve_exact(length));
        if !matches!(reserved, Ok(Ok(()))) {
            let cause = "the range does not fit into memory; read a smaller one";
            return Err(Trouble::new(Kind::Other, cause));
        }
        let bytes = found.bytes().await?;
        if bytes.len() as u64 != length {
            return Err(Trouble::new(Kind::Unreachable, other));
        }
        Ok(ReadRange {
            bytes,
            total,
            stored_at,
        })
    }

    /// Reads only the total length, no bytes.
    pub(crate) async fn read_length(&self, path: &Path) -> Result<ReadRange, Trouble> {
        let options = GetOptions::default().with_head(true);
        let found = self.objects.get_opts(path, options).await?;
        Ok(ReadRange {
            bytes: Bytes::new(),
            total: found.meta.size,
            stored_at: found.meta.last_modified.into(),
        })
    }
}

/// Names the store, never the URL or the credentials it was opened with.
impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects")
            .field("shown", &self.shown)
            .finish_non_exhaustive()
    }
}

/// Turns "not found" into a missing bucket. For calls that store: these need no existing object, so
/// only the bucket can be missing.
pub(crate) fn missing_bucket(mut trouble: Trouble) -> Trouble {
    if trouble.kind == Kind::NotFound {
        trouble.kind = Kind::NoBucket;
    }
    trouble
}
