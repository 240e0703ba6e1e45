//! The store fails while a stream runs (T8, T12).

use std::error::Error as _;

use futures_util::stream;
use offcut::backend::ErrorKind;
use offcut::hint::Hint;
use offcut::preview::Preview;
use offcut::report::{Outcome, Reason};
use offcut::{Chunk, OffloadError, OnOffloadError, Part, ToolError, ToolOutput, ToolReduction};
use offcut_testkit::Fault;

use super::rigged::Rigged;
use super::{LIMIT, PREVIEW, Shown, chunks, go, link, most_held, output};
use crate::common::{call, lines, stored, text};

fn reduction(store: &Rigged, then: OnOffloadError) -> ToolReduction {
    let builder = ToolReduction::builder()
        .backend(store.clone())
        .token_counter(offcut::TokenCounter::Estimate);
    builder
        .max_length_for_trunc(LIMIT)
        .preview_length(PREVIEW)
        .on_offload_error(then)
        .build()
        .unwrap()
}

/// The point at which the store fails.
#[derive(Clone, Copy, Debug)]
enum At {
    Opening,
    /// The n-th chunk that it is given.
    Chunk(u64),
    Finish,
}

const FAULTS: [Fault; 2] = [Fault::Fail(ErrorKind::Full), Fault::ApplyThenFail];

/// Every point at which the store can fail, with a store that fails there.
fn places(chunks: u64) -> Vec<(At, Fault, Rigged)> {
    let mut places = vec![(
        At::Opening,
        Fault::Fail(ErrorKind::Unavailable),
        Rigged::shut(),
    )];
    for fault in FAULTS {
        for n in 1..=chunks {
            let rigged = Rigged::new();
            rigged.store.fault_on_chunk(n, fault);
            places.push((At::Chunk(n), fault, rigged));
        }
        let rigged = Rigged::new();
        rigged.store.fault_on_every_write(fault);
        places.push((At::Finish, fault, rigged));
    }
    places
}

/// Number of chunks of `content` that the store is given: those over what is held. The first of them
/// also carries everything held before.
fn spilled(content: &str, size: usize) -> u64 {
    (content.len().div_ceil(size) - most_held(LIMIT) / size) as u64
}

const SIZE: usize = 97;

#[tokio::test]
async fn t12_by_default_everything_recoverable_is_kept() {
    let content = lines(400);
    for (at, fault, store) in places(spilled(&content, SIZE)) {
        let reduction = reduction(&store, OnOffloadError::KeepOriginal);
        let shown = go(&reduction, &call("a", "f"), output(chunks(&content, SIZE))).await;
        let Shown {
            parts,
            error,
            report,
        } = &shown;
        assert!(
            error.is_none() && report.as_ref().unwrap().decisions[0].error.is_some(),
            "{at:?} {fault:?}"
        );
        assert_eq!(text(parts), content, "{at:?} {fault:?}");
        assert_eq!(
            shown.outcome(),
            Outcome::Kept(Reason::StoreFailed),
            "{at:?} {fault:?}"
        );
    }
}

#[tokio::test]
async fn t12_content_that_left_memory_and_cannot_be_read_back_is_lost() {
    let content = lines(400);
    for (at, fault, store) in places(spilled(&content, SIZE)) {
        store
            .store
            .fault_on_every_read(Fault::Fail(ErrorKind::Unavailable));
        let reduction = reduction(&store, OnOffloadError::KeepOriginal);
        let shown = go(&reduction, &call("a", "f"), output(chunks(&content, SIZE))).await;
        match at {
            At::Opening | At::Chunk(1) => {
                assert_eq!(text(&shown.parts), content, "{at:?} {fault:?}");
            }
            At::Chunk(_) | At::Finish => is_lost(&shown, &content),
        }
    }
}

#[tokio::test]
async fn t12_a_stream_too_long_to_be_shown_goes_to_a_second_writer() {
    let content = "a line of a long log\n".repeat(900_000);
    let store = Rigged::new();
    store
        .store
        .fault_on_next_write(Fault::Fail(ErrorKind::Unavailable));
    let reduction = reduction(&store, OnOffloadError::KeepOriginal);
    let shown = go(
        &reduction,
        &call("a", "f"),
        output(chunks(&content, 1 << 20)),
    )
    .await;
    assert_eq!(shown.outcome(), Outcome::Truncated);
    let stored = stored(&store).await;
    assert!(stored.len() == 1 && stored[0].1 == content.as_bytes());
}

#[tokio::test]
async fn t12_preview_only_reports_the_loss() {
    let content = lines(400);
    for (_, _, store) in places(spilled(&content, SIZE)) {
        let reduction = reduction(&store, OnOffloadError::PreviewOnly);
        let shown = go(&reduction, &call("a", "f"), output(chunks(&content, SIZE))).await;
        is_lost(&shown, &content);
    }
}

#[track_caller]
fn is_lost(shown: &Shown, content: &str) {
    assert!(shown.error.is_none());
    assert_eq!(shown.outcome(), Outcome::Lost);
    let hint = Hint::parse(text(&shown.parts)).unwrap();
    assert_eq!((hint.location, hint.bytes), (None, content.len() as u64));
    assert_eq!(hint.preview, Preview::HeadTail.show(content, PREVIEW));
    assert_eq!(
        hint.prose,
        "It could not be stored; what is not shown is lost."
    );
}

#[tokio::test]
async fn t12_with_fail_the_stream_ends_with_the_error() {
    let content = lines(400);
    for (at, fault, store) in places(spilled(&content, SIZE)) {
        let reduction = reduction(&store, OnOffloadError::Fail);
        let shown = go(&reduction, &call("a", "f"), output(chunks(&content, SIZE))).await;
        let error = shown.error.unwrap();
        let cause = error
            .source()
            .unwrap()
            .downcast_ref::<OffloadError>()
            .unwrap();
        assert!(
            matches!(cause, OffloadError { call_id, .. } if call_id == "a"),
            "{at:?} {fault:?}"
        );
        // The text already shown is its beginning.
        let shown = if shown.parts.is_empty() {
            ""
        } else {
            text(&shown.parts)
        };
        assert!(
            content.starts_with(shown) && shown.len() <= PREVIEW / 2,
            "{at:?} {fault:?}"
        );
        let is_done = matches!((at, fault), (At::Finish, Fault::ApplyThenFail));
        assert_eq!(
            stored(&store).await.len(),
            usize::from(is_done),
            "{at:?} {fault:?}"
        );
    }
}

/// If the id is not a safe name, the digest names the content, which is not read back for it.
#[tokio::test]
async fn t12_a_writer_that_can_not_be_read() {
    let content = lines(400);
    let store = Rigged::new();
    store
        .store
        .fault_on_every_read(Fault::Fail(ErrorKind::Unavailable));
    let keeping = reduction(&store, OnOffloadError::KeepOriginal);
    let shown = go(&keeping, &call("../a", "f"), output(chunks(&content, SIZE))).await;
    assert_eq!(shown.outcome(), Outcome::Truncated);
    let report = shown.report.unwrap();
    assert!(report.decisions[0].error.is_none() && report.decisions[0].locations.len() == 1);
}

/// The writer has the only copy after the store has failed, so one failed read must not lose it.
#[tokio::test]
async fn l1_content_that_only_the_writer_has_is_read_again() {
    let content = lines(400);
    for (at, fault, store) in places(spilled(&content, SIZE)) {
        for read in 1..8 {
            store
                .store
                .fault_on_read(read, Fault::Fail(ErrorKind::Denied));
        }
        let reduction = reduction(&store, OnOffloadError::KeepOriginal);
        let shown = go(&reduction, &call("a", "f"), output(chunks(&content, SIZE))).await;
        assert_eq!(text(&shown.parts), content, "{at:?} {fault:?}");
        assert_eq!(
            shown.outcome(),
            Outcome::Kept(Reason::StoreFailed),
            "{at:?} {fault:?}"
        );
    }
}

/// Chunks of 64 KiB with `bytes` bytes in all.
fn long(bytes: usize) -> Vec<Chunk> {
    let line = "a line of it, with some words\n";
    chunks(line.repeat(bytes / line.len()), 64 << 10)
}

#[tokio::test]
async fn t12_what_comes_after_16_mib_is_not_held_for_a_store_that_failed_early() {
    // It works again when so much has come.
    let store = Rigged::new();
    store.store.fault_on_chunk(1, Fault::Fail(ErrorKind::Full));
    let keeping = reduction(&store, OnOffloadError::KeepOriginal);
    let shown = go(&keeping, &call("a", "f"), output(long(17 << 20))).await;
    assert_eq!(shown.outcome(), Outcome::Truncated);
    let all = stored(&store).await;
    assert_eq!(all.len(), 1);
    let Chunk::Bytes(first) = &long(17 << 20)[0] else {
        panic!("no bytes")
    };
    assert!(all[0].1.starts_with(first));
    let hint = Hint::parse(text(&shown.parts)).unwrap();
    assert_eq!(hint.bytes, all[0].1.len() as u64);
    assert!(hint.location.is_some() && shown.report.unwrap().decisions[0].error.is_some());

    // It never works again.
    let store = Rigged::shut();
    let keeping = reduction(&store, OnOffloadError::KeepOriginal);
    let mut came = long(17 << 20);
    came.extend([link(), Chunk::Part(Part::Text(lines(300)))]);
    let shown = go(&keeping, &call("a", "f"), output(came)).await;
    assert_eq!(shown.outcome(), Outcome::Lost);
    let [Part::Text(hint), Part::Link { .. }] = &shown.parts[..] else {
        panic!("{:?}", shown.parts)
    };
    assert_eq!(Hint::parse(hint).unwrap().location, None);
    let under = go(&keeping, &call("b", "f"), output(long(15 << 20))).await;
    assert_eq!(under.outcome(), Outcome::Kept(Reason::StoreFailed));
    assert!(text(&under.parts).len() > 14 << 20);
}

#[tokio::test]
async fn t12_bytes_that_are_not_utf8_are_shown_whole() {
    let content = b"caf\xe9 au lait\n".repeat(300);
    for (at, fault, store) in places(4) {
        let reduction = reduction(&store, OnOffloadError::KeepOriginal);
        let shown = go(&reduction, &call("a", "f"), output(chunks(&content, SIZE))).await;
        assert_eq!(
            shown.outcome(),
            Outcome::Kept(Reason::StoreFailed),
            "{at:?} {fault:?}"
        );
        assert_eq!(
            text(&shown.parts),
            String::from_utf8_lossy(&content),
            "{at:?} {fault:?}"
        );
    }
}

#[tokio::test]
async fn t12_a_store_and_a_source_that_both_fail() {
    let content = lines(400);
    for then in [
        OnOffloadError::KeepOriginal,
        OnOffloadError::PreviewOnly,
        OnOffloadError::Fail,
    ] {
        let store = Rigged::new();
        store
            .store
            .fault_on_every_write(Fault::Fail(ErrorKind::Full));
        let failing = chunks(&content, SIZE)
            .into_iter()
            .map(Ok)
            .chain([Err(ToolError::new("the pipe broke"))]);
        let failing = ToolOutput::stream(stream::iter(failing.collect::<Vec<_>>()));
        let shown = go(&reduction(&store, then), &call("a", "f"), failing).await;
        let error = shown.error.unwrap();
        if then == OnOffloadError::Fail {
            assert!(error.source().unwrap().is::<OffloadError>());
        } else {
            assert_eq!(error.to_string(), "the pipe broke", "{then:?}");
        }
    }
}

#[tokio::test]
async fn l1_a_character_split_across_chunks_after_many_texts_is_kept() {
    let texts = (0..300).map(|n| Chunk::Part(Part::Text(format!("part {n} "))));
    let made: Vec<Chunk> = texts
        .chain(
            "€€"
                .as_bytes()
                .chunks(2)
                .map(|b| Chunk::Bytes(b.to_vec().into())),
        )
        .collect();
    for (at, fault, store) in places(200) {
        let reduction = reduction(&store, OnOffloadError::KeepOriginal);
        let shown = go(&reduction, &call("a", "f"), output(made.clone())).await;
        if shown.outcome() != Outcome::Kept(Reason::StoreFailed) {
            continue;
        }
        let texts = shown.parts.iter().map(|part| {
            if let Part::Text(text) = part {
                text.as_str()
            } else {
                ""
            }
        });
        let all = texts.collect::<String>();
        assert!(
            all.contains("part 299") && all.ends_with("€€"),
            "{at:?} {fault:?}: {all:?}"
        );
    }
}
