//! A stream that is dropped before its end (T13), and a slow store.

use std::future::poll_fn;
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::Poll;

use futures_util::{FutureExt, StreamExt, stream};
use offcut::backend::{Backend, Fs, Memory};
use offcut::{Chunk, ToolOutput, ToolReduction};
use offcut_testkit::{Fault, Faulty};

use super::{Feed, LIMIT, PREVIEW, chunks, go, most_held};
use crate::common::{call, lines, memory, stored};

/// A tool output that makes its reader wait, and a handle that tells whether it was dropped.
fn slow(chunks: Vec<Chunk>) -> (ToolOutput, Weak<()>) {
    let alive = Arc::new(());
    let dropped = Arc::downgrade(&alive);
    let output = ToolOutput::stream(stream::iter(chunks).then(move |chunk| {
        let alive = alive.clone();
        async move {
            tokio::task::yield_now().await;
            drop(alive);
            Ok(chunk)
        }
    }));
    (output, dropped)
}

/// Polls `future` at most `polls` times, each time after it was woken, and drops it. Returns
/// whether it was done.
async fn abandon(future: impl Future, polls: usize) -> bool {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending if left == 0 => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

fn reduction(store: impl Backend) -> ToolReduction {
    let builder = ToolReduction::builder()
        .backend(store)
        .token_counter(offcut::TokenCounter::Estimate);
    builder
        .max_length_for_trunc(LIMIT)
        .preview_length(PREVIEW)
        .build()
        .unwrap()
}

#[tokio::test]
async fn t13_dropped_at_every_await_nothing_half_written_is_visible() {
    let mut polls = 0;
    loop {
        let store = memory();
        let (output, source) = slow(chunks(lines(400), 97));
        let is_done = abandon(
            go(&reduction(store.clone()), &call("a", "f"), output),
            polls,
        )
        .await;
        assert!(source.upgrade().is_none(), "{polls}");
        let stored = stored(&store).await;
        if is_done {
            assert_eq!(
                stored,
                [("memory://t/trunc/a".into(), lines(400).into_bytes())]
            );
            break;
        }
        assert!(stored.is_empty(), "{polls}");
        polls += 1;
    }
    assert!(polls > 36, "each chunk was waited for");
}

/// The files below `root` with their content. A store that has taken nothing does not exist.
fn files(root: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(root)
        .into_iter()
        .flatten()
        .map(Result::unwrap)
    {
        if entry.file_type().unwrap().is_dir() {
            files.extend(self::files(&entry.path()));
        } else {
            files.push((
                entry.file_name().into_string().unwrap(),
                std::fs::read(entry.path()).unwrap(),
            ));
        }
    }
    files
}

/// Runs `future` on a runtime that waits for its blocking threads when dropped.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}

#[test]
fn t13_dropped_at_every_await_no_file_is_left() {
    // More than the writer buffers.
    let content = lines(40_000);
    let home = tempfile::tempdir().unwrap();
    for id in ["a", "../hostile"] {
        let mut polls = 0;
        loop {
            let root = home.path().join(format!("{}-{polls}", id.len()));
            let (output, source) = slow(chunks(&content, 50_000));
            let reduction = reduction(Fs::open(&root).unwrap());
            let is_done = block_on(abandon(go(&reduction, &call(id, "f"), output), polls));
            assert!(source.upgrade().is_none(), "{polls}");
            let files = files(&root);
            // A call dropped while naming the file may have named it.
            assert!(
                files.len() <= 1 && files.iter().all(|(_, bytes)| *bytes == content.as_bytes()),
                "{polls}"
            );
            assert!(
                files.iter().all(|(name, _)| !name.starts_with('.')),
                "{polls}"
            );
            if is_done {
                assert_eq!(files.len(), 1);
                break;
            }
            polls += 1;
        }
        assert!(polls > 8, "{polls} were too few");
    }
}

#[test]
fn t13_dropped_while_the_store_hangs() {
    let content = lines(400);
    for fault in [Fault::Hang, Fault::ApplyThenHang] {
        for chunk in 1..=16 {
            let home = tempfile::tempdir().unwrap();
            let store = Faulty::new(Fs::open(home.path().join("root")).unwrap());
            store.fault_on_chunk(chunk, fault);
            let (output, source) = slow(chunks(&content, 97));
            let run = reduction(store.clone());
            block_on(drop_once(go(&run, &call("a", "f"), output), || {
                store.chunks() == chunk
            }));
            assert!(source.upgrade().is_none());
            assert_eq!(files(home.path()), [], "{fault:?} {chunk}");
        }
        let home = tempfile::tempdir().unwrap();
        let store = Faulty::new(Fs::open(home.path().join("root")).unwrap());
        store.fault_on_every_write(fault);
        let (output, source) = slow(chunks(&content, 97));
        let run = reduction(store.clone());
        block_on(drop_once(go(&run, &call("a", "f"), output), || {
            store.writes() == 1
        }));
        assert!(source.upgrade().is_none());
        let files = files(home.path());
        let may_be_named = fault == Fault::ApplyThenHang
            && files == [("a".to_owned(), content.clone().into_bytes())];
        assert!(files.is_empty() || may_be_named, "{fault:?}");
    }
}

/// Polls `future` until `is_so`, then drops it. It must not be done before.
async fn drop_once(future: impl Future, is_so: impl Fn() -> bool) {
    let mut future = pin!(future);
    poll_fn(|context| {
        assert!(future.as_mut().poll(context).is_pending(), "it hangs");
        if is_so() {
            return Poll::Ready(());
        }
        // A blocking thread may be working.
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[tokio::test]
async fn a_slow_store_slows_the_source() {
    let all = chunks(lines(400), 97);
    for fault in [Fault::Hang, Fault::ApplyThenHang] {
        // The store's first chunk holds everything held so far plus the chunk that went over that.
        let first = most_held(LIMIT) / 97 + 1;
        for (chunk, taken) in [(1, first), (2, first + 1), (12, first + 11)] {
            let store = Faulty::new(Memory::new());
            store.fault_on_chunk(chunk, fault);
            let feed = Feed::of(all.clone());
            let (reduction, call) = (reduction(store), call("a", "f"));
            let mut shown = pin!(reduction.truncate(&call, ToolOutput::stream(feed.chunks())));
            for _ in 0..50 {
                assert!(shown.as_mut().now_or_never().is_none());
            }
            assert_eq!(feed.taken(), taken, "{fault:?}");
        }
    }
}
