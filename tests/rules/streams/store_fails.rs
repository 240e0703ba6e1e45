//! The store fails while a stream runs (T8, T12).

use std::error::Error as _;

use futures_util::stream;
use offcut::backend::ErrorKind;
use offcut::hint::Hint;
use offcut::preview::Preview;
use offcut::report::{Outcome, Reason};
use offcut::{Chunk, OffloadError, OnStoreFailure, Part, ToolError, ToolOutput, ToolReduction};
use offcut_testkit::Fault;

use super::rigged::Rigged;
use super::{LIMIT, PREVIEW, Shown, chunks, go, output};
use crate::common::{call, lines, stored, text};

fn reduction(store: &Rigged, then: OnStoreFailure) -> ToolReduction {
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

/// Number of chunks of `content` that the store is given: those over the limit. The first of them
/// also carries everything held before.
fn spilled(content: &str, size: usize) -> u64 {
    (content.len().div_ceil(size) - LIMIT / size) as u64
}

const SIZE: usize = 97;

#[tokio::test]
async fn t12_by_default_everything_recoverable_is_kept() {
    let content = lines(400);
    for (at, fault, store) in places(spilled(&content, SIZE)) {
        let reduction = reduction(&store, OnStoreFailure::KeepOriginal);
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
        let reduction = reduction(&store, OnStoreFailure::KeepOriginal);
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
    let reduction = reduction(&store, OnStoreFailure::KeepOriginal);
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
        let reduction = reduction(&store, OnStoreFailure::PreviewOnly);
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
        let reduction = reduction(&store, OnStoreFailure::Fail);
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
    let keeping = reduction(&store, OnStoreFailure::KeepOriginal);
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
        let reduction = reduction(&store, OnStoreFailure::KeepOriginal);
        let shown = go(&reduction, &call("a", "f"), output(chunks(&content, SIZE))).await;
        assert_eq!(text(&shown.parts), content, "{at:?} {fault:?}");
        assert_eq!(
            shown.outcome(),
            Outcome::Kept(Reason::StoreFailed),
            "{at:?} {fault:?}"
        );
    }
}

fn link() -> Chunk {
    Chunk::Part(Part::Link {
        mime: None,
        url: "https://example.org".into(),
    })
}

#[tokio::test]
async fn t12_lost_content_is_reported_although_the_rest_passes() {
    let (first, second) = (lines(300), lines(301));
    let store = Rigged::new();
    store.store.fault_on_chunk(2, Fault::Fail(ErrorKind::Full));
    // Eight reads for the first text, which can't be recovered. The next failure is the second
    // text's first chunk.
    for read in 1..=8 {
        store
            .store
            .fault_on_read(read, Fault::Fail(ErrorKind::Denied));
    }
    store
        .store
        .fault_on_chunk(spilled(&first, SIZE) + 1, Fault::Fail(ErrorKind::Full));
    store.store.fault_on_chunk(3, Fault::Fail(ErrorKind::Full));
    let all = chunks(&first, SIZE)
        .into_iter()
        .chain([link()])
        .chain(chunks(&second, SIZE));
    let shown = go(
        &reduction(&store, OnStoreFailure::KeepOriginal),
        &call("a", "f"),
        output(all.collect()),
    )
    .await;
    let [Part::Text(lost), Part::Link { .. }, Part::Text(kept)] = &shown.parts[..] else {
        panic!("{:?}", shown.parts)
    };
    let hint = Hint::parse(lost).unwrap_or_else(|| panic!("no hint: {lost}"));
    assert_eq!((hint.location, hint.bytes), (None, first.len() as u64));
    assert_eq!(*kept, second);
    let decision = &shown.report.as_ref().unwrap().decisions[0];
    assert_eq!(decision.outcome, Outcome::Lost);
    assert_eq!(decision.bytes.before, (first.len() + second.len()) as u64);
    assert_eq!(decision.bytes.after, (lost.len() + kept.len()) as u64);
}

#[tokio::test]
async fn t12_a_short_text_is_kept_however_long_another_is() {
    let (short, long) = ("short ".repeat(160), "x".repeat(17 << 20));
    let store = Rigged::new();
    // The short text is stored with `put`, which fails; the long one has a writer.
    store
        .store
        .fault_on_write(1, Fault::Fail(ErrorKind::Unavailable));
    let came = vec![
        Chunk::Part(Part::Text(short.clone())),
        Chunk::Bytes(long.into()),
    ];
    let shown = go(
        &reduction(&store, OnStoreFailure::KeepOriginal),
        &call("a", "f"),
        output(came),
    )
    .await;
    assert_eq!(shown.parts[0], Part::Text(short));
    let Part::Text(hint) = &shown.parts[1] else {
        panic!("no text")
    };
    assert!(Hint::parse(hint).unwrap().location.is_some());
    assert_eq!(stored(&store).await.len(), 1);
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
    let keeping = reduction(&store, OnStoreFailure::KeepOriginal);
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
    let keeping = reduction(&store, OnStoreFailure::KeepOriginal);
    let mut came = long(17 << 20);
    came.extend([link(), Chunk::Part(Part::Text(lines(300)))]);
    let shown = go(&keeping, &call("a", "f"), output(came)).await;
    assert_eq!(shown.outcome(), Outcome::Lost);
    for part in [&shown.parts[0], &shown.parts[2]] {
        let Part::Text(hint) = part else {
            panic!("no text")
        };
        assert_eq!(Hint::parse(hint).unwrap().location, None);
    }
    let under = go(&keeping, &call("b", "f"), output(long(15 << 20))).await;
    assert_eq!(under.outcome(), Outcome::Kept(Reason::StoreFailed));
    assert!(text(&under.parts).len() > 14 << 20);
}

#[tokio::test]
async fn t12_bytes_that_are_not_utf8_are_shown_whole() {
    let content = b"caf\xe9 au lait\n".repeat(300);
    for (at, fault, store) in places(4) {
        let reduction = reduction(&store, OnStoreFailure::KeepOriginal);
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

/// A long text, then many short ones, all of which have left memory when the store fails.
#[tokio::test]
async fn t12_many_lost_texts_share_the_preview() {
    for (preview, texts) in [(PREVIEW, 5), (PREVIEW, 40), (800, 40), (800, 400)] {
        let mut came = vec![Chunk::Bytes(lines(400).into())];
        for n in 1..texts {
            came.extend([
                link(),
                Chunk::Bytes(format!("text {n} {}", "x".repeat(60)).into()),
            ]);
        }
        let store = Rigged::new();
        store
            .store
            .fault_on_chunk(texts, Fault::Fail(ErrorKind::Full));
        store
            .store
            .fault_on_every_read(Fault::Fail(ErrorKind::Full));
        let builder = ToolReduction::builder()
            .backend(store)
            .token_counter(offcut::TokenCounter::Estimate);
        let reduction = builder
            .max_length_for_trunc(LIMIT + preview)
            .preview_length(preview)
            .build()
            .unwrap();
        let shown = go(&reduction, &call("a", "f"), output(came.clone())).await;
        assert_eq!(shown.outcome(), Outcome::Lost);
        let hints: Vec<Hint> = shown
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Text(text) => {
                    Some(Hint::parse(text).unwrap_or_else(|| panic!("no hint: {text}")))
                }
                _ => None,
            })
            .collect();
        assert_eq!(hints.len() as u64, texts);
        assert!(hints.iter().all(|hint| hint.location.is_none()));
        let shown: usize = hints.iter().map(|hint| hint.preview.len()).sum();
        assert!(shown <= preview, "{shown} of {preview}");
    }
}

#[tokio::test]
async fn t12_a_store_and_a_source_that_both_fail() {
    let content = lines(400);
    for then in [
        OnStoreFailure::KeepOriginal,
        OnStoreFailure::PreviewOnly,
        OnStoreFailure::Fail,
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
        if then == OnStoreFailure::Fail {
            assert!(error.source().unwrap().is::<OffloadError>());
        } else {
            assert_eq!(error.to_string(), "the pipe broke", "{then:?}");
        }
    }
}

#[tokio::test]
async fn t12_a_text_that_comes_when_the_store_has_recovered_is_stored() {
    let (first, second) = (lines(300), lines(301));
    let store = Rigged::new();
    store.store.fault_on_chunk(2, Fault::Fail(ErrorKind::Full));
    let link = || {
        Chunk::Part(Part::Link {
            mime: None,
            url: "https://example.org".into(),
        })
    };
    let all = chunks(&first, SIZE)
        .into_iter()
        .chain([link()])
        .chain(chunks(&second, SIZE));
    let reduction = reduction(&store, OnStoreFailure::PreviewOnly);
    let shown = go(&reduction, &call("a", "f"), output(all.collect())).await;
    let hints: Vec<Hint> = shown
        .parts
        .iter()
        .filter_map(|part| {
            if let Part::Text(text) = part {
                Hint::parse(text)
            } else {
                None
            }
        })
        .collect();
    assert!(hints[0].location.is_none(), "what was lost is said to be");
    let location = hints[1].location.as_ref().expect("a location");
    let original = reduction.read_original(location).await.unwrap().unwrap();
    assert_eq!(original, second);
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
        let reduction = reduction(&store, OnStoreFailure::KeepOriginal);
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
