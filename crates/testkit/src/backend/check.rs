//! A clause that a store is held to: assertions that name it, and calls that must succeed.

use std::collections::BTreeMap;
use std::fmt::{Debug, Display};
use std::future::poll_fn;
use std::ops::Range;
use std::pin::pin;
use std::task::Poll;
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::StreamExt;
use offcut::backend::{
    Backend, BackendError, Entry, ErrorChain, ErrorKind, Key, PutOutcome, ReadRange, Writer,
};
use tokio::task::yield_now;

pub(super) const ALL: Range<u64> = 0..u64::MAX;

/// The outcome for equal content, compared after [`timeless`].
pub(super) const THERE: PutOutcome = PutOutcome::AlreadyThere {
    stored_at: SystemTime::UNIX_EPOCH,
};

/// A store, and the clause of the contract that it is held to.
#[derive(Clone)]
pub(super) struct Clause<B> {
    pub(super) store: B,
    name: &'static str,
}

impl<B: Backend> Clause<B> {
    pub(super) fn new(store: B, name: &'static str) -> Self {
        Self { store, name }
    }

    /// Ends the suite because the store breaks the clause by `what`. Content is not shown, since it
    /// may be long.
    #[track_caller]
    pub(super) fn fail(&self, what: impl Display) -> ! {
        let clause = self.name;
        panic!("the backend breaks the contract, clause `{clause}`: {what}")
    }

    #[track_caller]
    pub(super) fn check(&self, holds: bool, what: impl Display) {
        if !holds {
            self.fail(what);
        }
    }

    #[track_caller]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "callers have values, as with assert_eq!"
    )]
    pub(super) fn equal<T: PartialEq + Debug>(&self, is: T, should: T, of: impl Display) {
        let holds = is == should;
        self.check(
            holds,
            format_args!("{of} returned {is:?} instead of {should:?}"),
        );
    }

    #[track_caller]
    pub(super) fn succeed<T>(&self, result: Result<T, BackendError>, of: impl Display) -> T {
        result
            .unwrap_or_else(|error| self.fail(format_args!("{of} failed: {}", error_chain(&error))))
    }

    pub(super) async fn put(&self, key: &Key, content: &Bytes, should: PutOutcome) {
        let put = self.store.put(key, content.clone()).await;
        let (length, name) = (content.len(), key.as_str().len());
        let of = format!("a put of {length} bytes under a key of {name}");
        self.equal(timeless(self.succeed(put, &of)), should, of);
    }

    /// Stores content that is new.
    pub(super) async fn stores(&self, key: &Key, content: &Bytes) {
        self.put(key, content, PutOutcome::Stored).await;
    }

    pub(super) async fn read(&self, key: &Key, range: Range<u64>) -> ReadRange {
        let page = self.store.read(key, range.clone()).await;
        self.succeed(page, format_args!("reading {range:?} of `{key}`"))
    }

    /// Asserts that all of `key` reads as `content`.
    pub(super) async fn holds(&self, key: &Key, content: &Bytes) {
        let page = self.store.read(key, ALL).await;
        let ReadRange { bytes, total, .. } = self.succeed(page, format_args!("reading `{key}`"));
        let (length, stored) = (bytes.len(), content.len());
        self.check(
            total == stored as u64 && bytes == content,
            format_args!("`{key}` reads as {length} bytes of {total}, not as the {stored} bytes that were stored"),
        );
    }

    pub(super) async fn is_not_found(&self, key: &Key) {
        match self.store.read(key, ALL).await {
            Ok(page) => self.fail(format_args!(
                "`{key}` reads as {} bytes, but should not be found",
                page.bytes.len()
            )),
            Err(error) => self.check(
                error.kind() == ErrorKind::NotFound,
                format_args!(
                    "reading `{key}` failed with {}, but should fail as not found",
                    error_chain(&error)
                ),
            ),
        }
    }

    pub(super) async fn listed(&self) -> BTreeMap<Key, u64> {
        let entries: Vec<_> = self.store.list().collect().await;
        let count = entries.len();
        let size = |entry| {
            let Entry { key, bytes, .. } = self.succeed(entry, "listing");
            (key, bytes)
        };
        let sizes: BTreeMap<_, _> = entries.into_iter().map(size).collect();
        let keys = sizes.len();
        self.check(
            keys == count,
            format_args!("{count} entries are listed for {keys} keys"),
        );
        sizes
    }

    pub(super) async fn writer(&self) -> Box<dyn Writer> {
        self.succeed(self.store.writer().await, "opening a writer")
    }

    pub(super) async fn write(&self, writer: &mut Box<dyn Writer>, chunk: &Bytes) {
        self.succeed(writer.write(chunk.clone()).await, "writing a chunk");
    }

    /// A writer that has written `chunks`.
    pub(super) async fn written(&self, chunks: &[Bytes]) -> Box<dyn Writer> {
        let mut writer = self.writer().await;
        for chunk in chunks {
            self.write(&mut writer, chunk).await;
        }
        writer
    }

    /// Finishes what a writer has written.
    pub(super) async fn finish(&self, writer: &mut Box<dyn Writer>, key: &Key, should: PutOutcome) {
        let is = self.succeed(writer.finish(key).await, "finishing");
        self.equal(timeless(is), should, "finishing");
    }
}

/// The error, its kind and the chain of its causes.
fn error_chain(error: &BackendError) -> String {
    format!("{} ({:?})", ErrorChain(error), error.kind())
}

pub(super) fn key(path: impl Into<String>) -> Key {
    Key::new(path).expect("the suite's own keys are safe")
}

/// Content with all byte values and no repetition.
pub(super) fn noise(length: usize, seed: u64) -> Bytes {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// The same outcome without its time.
pub(super) fn timeless(put: PutOutcome) -> PutOutcome {
    match put {
        PutOutcome::AlreadyThere { .. } => THERE,
        put => put,
    }
}

/// Drops `future` after `polls` polls, or when it is done; returns true if it was done. Pauses in
/// between for the work that it has started.
pub(super) async fn abandon<T>(future: impl Future<Output = T>, polls: usize) -> bool {
    let mut future = pin!(future);
    for _ in 0..polls {
        if poll_fn(|context| Poll::Ready(future.as_mut().poll(context)))
            .await
            .is_ready()
        {
            return true;
        }
        yield_now().await;
    }
    false
}
