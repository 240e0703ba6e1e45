//! The store: what it is made of, and what every call about it needs.

use std::fmt;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::path::Path;
use offcut::backend::{BackendError, Fs, Key, Location};
use tokio::sync::{OnceCell, Semaphore};

use crate::error::{Kind, Trouble};
use crate::limited::limited;
use crate::names;
use crate::retry::{Pauses, Retry};

/// The object that shows that nothing is overwritten. It begins with a dot, so it is no key: never
/// listed, never read.
pub(crate) const PROBE: &str = ".offcut-create-only";

/// Keeps each content as one object in an object store: S3, Google Cloud Storage, Azure, and all
/// else that `object_store` knows.
///
/// ```
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// use offcut::backend::{Backend, Key, PutOutcome};
/// use offcut_object_store::Objects;
///
/// # let home = tempfile::tempdir()?;
/// # let url = format!("memory:/agents?spool={}", home.path().display());
/// let store = Objects::open(&url)?; // url: s3://bucket/agents
/// let key = Key::new("trunc/call_1")?;
/// assert_eq!(store.put(&key, "the whole result".into()).await?, PutOutcome::Stored);
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
///   only under keys that [name their content](Key::is_addressed_by), where others can store nothing
///   but the same bytes, and only if nothing is there right before the upload is complete.
/// - **Says the truth.** Where a store answers that something is there already, or nothing in time,
///   or that it failed, what is there is read and compared before anything is claimed or tried
///   again.
/// - **Atomic.** An object appears whole or not at all. An upload that fails or is dropped is
///   aborted; where even that can't be done, its parts are invisible, and a lifecycle rule removes
///   them.
/// - **Bounded.** Each call ends within the [time-out](crate::Builder::timeout), an upload within
///   that for each of its parts. Uploads hold [`PARTS`](crate::PARTS) parts of 5 MiB at most, all
///   of the clones of a store together, and other calls what they are given or asked for. A result
///   may have 48 GiB.
/// - **Nothing is lost with the network.** Writers write to a private file in the
///   [spool](crate::Builder::spool) and upload from it. If that fails for good, the file gets a
///   name ([`Writer::finish_in_spool`](offcut::backend::Writer::finish_in_spool)).
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
    pub(crate) store_id: usize,
    pub(crate) spool: Fs,
    pub(crate) retry: Retry,
    /// One permit for each part that may be held in memory.
    pub(crate) parts: Arc<Semaphore>,
    /// Set once the store has shown that it does not overwrite.
    pub(crate) proven: OnceCell<()>,
}

impl Objects {
    pub(crate) fn over(inner: Inner) -> Self {
        Self {
            inner: Arc::new(inner),
        }
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    pub(crate) fn shown(&self) -> &str {
        &self.inner.shown
    }

    pub(crate) fn location(&self, key: &Key) -> Location {
        Location::new(format!("{}{key}", self.shown()))
    }

    /// Where [`PROBE`] is.
    pub(crate) fn probe(&self) -> Path {
        self.below(PROBE)
    }

    pub(crate) fn path(&self, key: &Key) -> Path {
        self.below(&names::of(key))
    }

    pub(crate) fn below(&self, name: &str) -> Path {
        // Nothing in it needs to be escaped: the prefix is made of safe segments, as keys are.
        Path::from(format!("{}{name}", self.inner.prefix))
    }

    pub(crate) fn storing(&self, key: &Key, trouble: Trouble) -> BackendError {
        self.failed("storing", key, trouble)
    }

    /// The error of a call about `key`. Where there is no bucket, the store is what it is about,
    /// whatever was asked of it.
    pub(crate) fn failed(&self, doing: &str, key: &Key, trouble: Trouble) -> BackendError {
        match trouble.kind {
            Kind::NoBucket => trouble.while_doing(format_args!("{doing} in {}", self.shown())),
            _ => trouble.while_doing(format_args!("{doing} {}", self.location(key))),
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
        self.inner.retry.pauses()
    }
}

/// Names the store and never what it was opened with.
impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            store: _,
            prefix: _,
            shown,
            store_id: _,
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

/// Where something is stored, it can't be the object that is not found.
pub(crate) fn missing_bucket(mut trouble: Trouble) -> Trouble {
    if trouble.kind == Kind::NotFound {
        trouble.kind = Kind::NoBucket;
    }
    trouble
}
