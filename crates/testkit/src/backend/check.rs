//! Helpers of the clauses: assertions that name the clause, and calls that must succeed.

use std::collections::BTreeMap;
use std::fmt::Debug;
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
use tokio::task::{JoinSet, yield_now};

/// Ends the suite because the store breaks `clause` by `what`. Content is not shown, since it may
/// be long.
#[track_caller]
pub(super) fn fail_clause(clause: &str, what: impl AsRef<str>) -> ! {
    panic!(
        "the backend breaks the contract, clause `{clause}`: {}",
        what.as_ref()
    )
}

#[track_caller]
pub(super) fn check(holds: bool, clause: &str, what: impl FnOnce() -> String) {
    if !holds {
        fail_clause(clause, what());
    }
}

#[track_caller]
#[expect(
    clippy::needless_pass_by_value,
    reason = "callers have values, as with assert_eq!"
)]
pub(super) fn equal<T: PartialEq + Debug>(is: T, should: T, clause: &str, of: &str) {
    check(is == should, clause, || {
        format!("{of} returned {is:?} instead of {should:?}")
    });
}

#[track_caller]
pub(super) fn succeed<T>(result: Result<T, BackendError>, clause: &str, of: &str) -> T {
    result.unwrap_or_else(|error| {
        fail_clause(clause, format!("{of} failed: {}", error_chain(&error)))
    })
}

/// The error, its kind and the chain of its causes.
pub(super) fn error_chain(error: &BackendError) -> String {
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

pub(super) const ALL: Range<u64> = 0..u64::MAX;

pub(super) async fn put(
    store: &impl Backend,
    key: &Key,
    content: &Bytes,
    should: PutOutcome,
    clause: &str,
) {
    let of = format!(
        "a put of {} bytes under a key of {}",
        content.len(),
        key.as_str().len()
    );
    let is = succeed(store.put(key, content.clone()).await, clause, &of);
    equal(timeless(is), should, clause, &of);
}

/// Stores content that is new.
pub(super) async fn stores(store: &impl Backend, key: &Key, content: &Bytes, clause: &str) {
    put(store, key, content, PutOutcome::Stored, clause).await;
}

/// Finishes what a writer has written.
pub(super) async fn finish(
    writer: &mut Box<dyn Writer>,
    key: &Key,
    should: PutOutcome,
    clause: &str,
) {
    let is = succeed(writer.finish(key).await, clause, "finishing");
    equal(timeless(is), should, clause, "finishing");
}

/// The outcome for equal content, compared after [`timeless`].
pub(super) const THERE: PutOutcome = PutOutcome::AlreadyThere {
    stored_at: SystemTime::UNIX_EPOCH,
};

/// The same outcome without its time.
pub(super) fn timeless(put: PutOutcome) -> PutOutcome {
    match put {
        PutOutcome::AlreadyThere { .. } => THERE,
        put => put,
    }
}

/// Asserts that all of `key` reads as `content`.
pub(super) async fn assert_holds(store: &impl Backend, key: &Key, content: &Bytes, clause: &str) {
    let page = succeed(
        store.read(key, ALL).await,
        clause,
        &format!("reading `{key}`"),
    );
    check(
        page.total == content.len() as u64 && page.bytes == content,
        clause,
        || {
            let ReadRange { bytes, total, .. } = &page;
            let (length, stored) = (bytes.len(), content.len());
            format!(
                "`{key}` reads as {length} bytes of {total}, not as the {stored} bytes that were stored"
            )
        },
    );
}

pub(super) async fn is_not_found(store: &impl Backend, key: &Key, clause: &str) {
    match store.read(key, ALL).await {
        Ok(page) => fail_clause(
            clause,
            format!(
                "`{key}` reads as {} bytes, but should not be found",
                page.bytes.len()
            ),
        ),
        Err(error) => check(error.kind() == ErrorKind::NotFound, clause, || {
            format!(
                "reading `{key}` failed with {}, but should fail as not found",
                error_chain(&error)
            )
        }),
    }
}

pub(super) async fn listed(store: &impl Backend, clause: &str) -> BTreeMap<Key, u64> {
    let entries: Vec<_> = store.list().collect().await;
    let count = entries.len();
    let sizes: BTreeMap<_, _> = entries
        .into_iter()
        .map(|entry| {
            let Entry {
                key,
                bytes,
                stored_at: _,
            } = succeed(entry, clause, "listing");
            (key, bytes)
        })
        .collect();
    check(sizes.len() == count, clause, || {
        format!("{count} entries are listed for {} keys", sizes.len())
    });
    sizes
}

pub(super) async fn written(
    store: &impl Backend,
    chunks: &[Bytes],
    clause: &str,
) -> Box<dyn Writer> {
    let mut writer = succeed(store.writer().await, clause, "opening a writer");
    for chunk in chunks {
        succeed(writer.write(chunk.clone()).await, clause, "writing a chunk");
    }
    writer
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

/// Collects the results of the tasks. A panic in one of them continues here.
pub(super) async fn joined<T: 'static>(mut tasks: JoinSet<T>) -> Vec<T> {
    let mut results = Vec::new();
    while let Some(result) = tasks.join_next().await {
        match result {
            Ok(result) => results.push(result),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
    results
}
