//! The contract of [`Backend`], as a suite that any store can be held to.

mod content;
mod names;
mod races;
mod removal;
mod writers;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::poll_fn;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use futures_util::StreamExt;
use tokio::task::yield_now;

use crate::backend::{Backend, BackendError, Entry, ErrorKind, Key, Page, Put, Writer};

/// Holds a store to every clause of [`Backend`]'s contract that can be tested from outside.
///
/// `make` is called once for each clause, and must make an empty store each time: a new directory,
/// a prefix of its own.
///
/// ```
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// use offcut::backend::Memory;
/// use offcut::testkit;
///
/// // In `#[tokio::test(flavor = "multi_thread")]`, so that what races really does:
/// testkit::backend::conformance(async || Memory::new()).await;
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Clauses about removing are left out for a store that says of itself that it is never swept, or
/// that it has no [`remove`](Backend::remove).
///
/// It needs a tokio runtime, writes some 50 MiB in all, and calls the store some thousand times.
/// What it can't test: a crash, two processes, and that no call waits for ever; give the test a
/// time-out.
///
/// # Panics
///
/// Where the store breaks the contract. The message names the clause.
pub async fn conformance<B: Backend>(make: impl AsyncFn() -> B) {
    names::names_are_inverse(&make().await);
    names::what_was_not_named_resolves_to_none(&make().await);
    content::stored_content_is_read(&make().await).await;
    content::any_key_can_be_stored(&make().await).await;
    content::ranges_are_cut_at_the_end(&make().await).await;
    content::nothing_is_not_found(&make().await).await;
    content::stored_content_never_changes(&make().await).await;
    content::keys_that_differ_in_case_lose_nothing(&make().await).await;
    content::keys_within_keys_lose_nothing(&make().await).await;
    races::one_of_many_puts_is_stored(&Arc::new(make().await)).await;
    writers::a_writer_stores_its_chunks(&make().await).await;
    writers::a_writer_is_unseen_until_it_finishes(&make().await).await;
    writers::a_writer_finds_a_second_name(&make().await).await;
    writers::a_writer_reads_what_it_has(&make().await).await;
    writers::a_finished_writer_changes_nothing(&make().await).await;
    writers::a_dropped_writer_leaves_nothing(&make().await).await;
    races::a_dropped_put_is_all_or_nothing(&make().await).await;
    races::a_dropped_finish_is_all_or_nothing(&make().await).await;
    content::the_list_is_what_is_stored(&make().await).await;
    if removal::can_remove(&make().await).await {
        removal::what_is_removed_is_gone(&make().await).await;
        removal::a_copy_outlives_its_original(&make().await).await;
        removal::a_copy_overwrites_nothing(&make().await).await;
        removal::a_copy_is_new(&make().await).await;
        removal::tidying_keeps_what_is_stored(&make().await).await;
        removal::a_dropped_move_loses_nothing(&make().await).await;
        removal::storing_where_something_is_removed_is_safe(&Arc::new(make().await)).await;
    }
}

/// Ends the suite: the store breaks `clause` by `what`. Content is never shown, it may be long.
#[track_caller]
fn broken(clause: &str, what: impl AsRef<str>) -> ! {
    panic!(
        "the backend breaks the contract, clause `{clause}`: {}",
        what.as_ref()
    )
}

#[track_caller]
fn check(holds: bool, clause: &str, what: impl FnOnce() -> String) {
    if !holds {
        broken(clause, what());
    }
}

#[track_caller]
#[expect(
    clippy::needless_pass_by_value,
    reason = "callers have values, as with assert_eq!"
)]
fn equal<T: PartialEq + Debug>(is: T, should: T, clause: &str, of: &str) {
    check(is == should, clause, || {
        format!("{of} gave {is:?} instead of {should:?}")
    });
}

#[track_caller]
fn succeed<T>(result: Result<T, BackendError>, clause: &str, of: &str) -> T {
    result.unwrap_or_else(|error| {
        broken(clause, format!("{of} failed: {error} ({:?})", error.kind()))
    })
}

fn key(path: impl Into<String>) -> Key {
    Key::new(path).expect("the suite's own keys are safe")
}

/// Content with all byte values, and with no two places alike.
fn noise(length: usize, seed: u64) -> Bytes {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..length).map(|_| next()).collect()
}

const ALL: Range<u64> = 0..u64::MAX;

async fn put(store: &impl Backend, key: &Key, content: &Bytes, should: Put, clause: &str) {
    let is = succeed(store.put(key, content.clone()).await, clause, "a put");
    equal(is, should, clause, "a put");
}

/// That `key` reads as `content`, whole.
async fn holds(store: &impl Backend, key: &Key, content: &Bytes, clause: &str) {
    let page = succeed(
        store.read(key, ALL).await,
        clause,
        &format!("reading `{key}`"),
    );
    check(
        page.total == content.len() as u64 && page.bytes == content,
        clause,
        || {
            let Page { bytes, total } = &page;
            let (length, stored) = (bytes.len(), content.len());
            format!(
                "`{key}` reads as {length} bytes of {total}, and is not the {stored} bytes that were stored"
            )
        },
    );
}

async fn is_not_found(store: &impl Backend, key: &Key, clause: &str) {
    match store.read(key, ALL).await {
        Ok(page) => broken(
            clause,
            format!(
                "`{key}` reads as {} bytes instead of not found",
                page.bytes.len()
            ),
        ),
        Err(error) => equal(
            error.kind(),
            ErrorKind::NotFound,
            clause,
            &format!("reading `{key}`"),
        ),
    }
}

async fn listed(store: &impl Backend, clause: &str) -> BTreeMap<Key, u64> {
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

async fn written(store: &impl Backend, chunks: &[Bytes], clause: &str) -> Box<dyn Writer> {
    let mut writer = succeed(store.writer().await, clause, "opening a writer");
    for chunk in chunks {
        succeed(writer.write(chunk.clone()).await, clause, "writing a chunk");
    }
    writer
}

/// Drops `future` after `polls` polls, or when it is done, with time in between for what it has set
/// going.
async fn abandon<T>(future: impl Future<Output = T>, polls: usize) {
    let mut future = pin!(future);
    for _ in 0..polls {
        if poll_fn(|context| Poll::Ready(future.as_mut().poll(context)))
            .await
            .is_ready()
        {
            return;
        }
        yield_now().await;
    }
}
