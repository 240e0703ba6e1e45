//! Streams, rule by rule (T10–T14, R3): live output, stored content, and failures.
//!
//! Chunk boundaries that change nothing (T2) are a property in `tests/laws/l9`. The memory of a
//! stream is measured in `tests/stream_memory.rs`.
#![cfg(feature = "fs")]

mod dropped;
mod middleware;
mod rigged;
mod spool;
mod store_fails;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use crate::common::{builder, call, lines, memory, stored, text};
use futures_util::future::join_all;
use futures_util::{FutureExt, Stream, StreamExt, stream};
use offcut::backend::{Fs, Memory};
use offcut::hint::{Hint, Placement};
use offcut::preview::Preview;
use offcut::report::{Outcome, Reason};
use offcut::{
    Chunk, Part, Report, ToolCall, ToolError, ToolOutput, ToolReduction, TruncatedStream,
};

const LIMIT: usize = 1_000;
const PREVIEW: usize = 200;

fn small(store: &Memory) -> offcut::Builder {
    builder(store)
        .max_length_for_trunc(LIMIT)
        .preview_length(PREVIEW)
}

type Item = Result<Chunk, ToolError>;

fn chunks(content: impl AsRef<[u8]>, size: usize) -> Vec<Chunk> {
    content
        .as_ref()
        .chunks(size)
        .map(|bytes| Chunk::Bytes(bytes.to_vec().into()))
        .collect()
}

fn output(chunks: Vec<Chunk>) -> ToolOutput {
    ToolOutput::stream(stream::iter(chunks.into_iter().map(Ok)))
}

/// The outcome of a stream, or of a result that was read to its end.
struct Shown {
    parts: Vec<Part>,
    error: Option<ToolError>,
    report: Option<Report>,
}

impl Shown {
    fn outcome(&self) -> Outcome {
        self.report.as_ref().unwrap().decisions[0].outcome
    }
}

/// The two ways to pass a stream on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// `truncate` reads it to its end.
    Read,
    /// `truncate_stream` shows it as it arrives.
    Shown,
}

impl Way {
    const BOTH: [Self; 2] = [Self::Read, Self::Shown];

    fn placement(self) -> Placement {
        match self {
            Self::Read => Placement::First,
            Self::Shown => Placement::Last,
        }
    }

    async fn go(self, reduction: &ToolReduction, call: &ToolCall, output: ToolOutput) -> Shown {
        match self {
            Self::Read => match reduction.truncate(call, output).await {
                Ok(shown) => Shown {
                    parts: shown.parts,
                    error: shown.interrupted,
                    report: Some(shown.report),
                },
                Err(error) => Shown {
                    parts: Vec::new(),
                    error: Some(error.into()),
                    report: None,
                },
            },
            Self::Shown => to_the_end(reduction.truncate_stream(call, output)).await,
        }
    }
}

async fn to_the_end(mut shown: TruncatedStream) -> Shown {
    let mut items: Vec<Item> = Vec::new();
    while let Some(item) = shown.next().await {
        assert!(
            !matches!(items.last(), Some(Err(_))),
            "nothing comes behind an error"
        );
        items.push(item);
    }
    let report = shown.report().cloned();
    let (parts, error) = ToolOutput::stream(stream::iter(items)).into_parts().await;
    Shown {
        parts,
        error,
        report,
    }
}

/// A tool output that yields chunks as they are fed, waits in between, and counts the chunks taken.
#[derive(Clone, Default)]
struct Feed {
    waiting: Arc<Mutex<VecDeque<Item>>>,
    taken: Arc<AtomicUsize>,
}

impl Feed {
    fn of(chunks: Vec<Chunk>) -> Self {
        Self {
            waiting: Arc::new(Mutex::new(chunks.into_iter().map(Ok).collect())),
            taken: Arc::default(),
        }
    }

    fn give(&self, chunk: Chunk) {
        self.waiting.lock().unwrap().push_back(Ok(chunk));
    }

    fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    fn chunks(&self) -> impl Stream<Item = Item> + Send + 'static {
        let feed = self.clone();
        stream::poll_fn(move |_| match feed.waiting.lock().unwrap().pop_front() {
            None => Poll::Pending,
            item => {
                feed.taken.fetch_add(1, Ordering::Relaxed);
                Poll::Ready(item)
            }
        })
    }
}

#[tokio::test]
async fn t10_the_head_is_shown_before_the_end_is_known() {
    let store = memory();
    let reduction = small(&store).build().unwrap();
    let feed = Feed::default();
    let mut shown = reduction.truncate_stream(&call("a", "f"), ToolOutput::stream(feed.chunks()));
    let mut seen = Vec::new();
    for chunk in chunks(lines(400), 10) {
        feed.give(chunk);
        while let Some(item) = shown.next().now_or_never() {
            seen.push(item.unwrap().unwrap());
        }
    }
    let (parts, _) = output(seen).into_parts().await;
    assert_eq!(
        text(&parts),
        lines(13),
        "the lines that fit into half of the preview"
    );
    assert!(
        stored(&store).await.is_empty(),
        "it has no name before its end"
    );
}

#[tokio::test]
async fn t10_the_tail_and_the_hint_come_last() {
    let reduction = small(&memory()).build().unwrap();
    let shown = Way::Shown
        .go(
            &reduction,
            &call("call_1", "f"),
            output(chunks(lines(400), 64)),
        )
        .await;
    insta::assert_snapshot!(text(&shown.parts), @r#"
    line 1
    line 2
    line 3
    line 4
    line 5
    line 6
    line 7
    line 8
    line 9
    line 10
    line 11
    line 12
    line 13
    [… 3325 B, L14-392 …]
    line 393
    line 394
    line 395
    line 396
    line 397
    line 398
    line 399
    line 400

    [offcut/1 truncated 3492B/400L 39-193 "memory://t/trunc/call_1"] Stored in full. Read it with read_file.
    "#);
}

#[tokio::test]
async fn t10_parts_before_the_text_go_out_at_once_and_those_after_it_wait() {
    let reduction = small(&memory()).build().unwrap();
    let feed = Feed::default();
    let mut shown = reduction.truncate_stream(&call("a", "f"), ToolOutput::stream(feed.chunks()));
    let link = |n: usize| {
        Chunk::Part(Part::Link {
            mime: None,
            url: format!("https://example.org/{n}"),
        })
    };
    feed.give(link(1));
    assert_eq!(
        shown.next().now_or_never().unwrap().unwrap().unwrap(),
        link(1)
    );
    feed.give(Chunk::Bytes(lines(400).into()));
    assert!(matches!(
        shown.next().now_or_never(),
        Some(Some(Ok(Chunk::Bytes(_))))
    ));
    feed.give(link(2));
    assert!(shown.next().now_or_never().is_none());
}

#[tokio::test]
async fn t11_a_source_that_fails_at_every_chunk() {
    let content = lines(400);
    let all = chunks(&content, 97);
    for way in Way::BOTH {
        for before in 0..=all.len() {
            let store = memory();
            let reduction = small(&store).build().unwrap();
            let failing = all[..before]
                .iter()
                .cloned()
                .map(Ok)
                .chain([Err(ToolError::new("the pipe broke"))]);
            let failing = ToolOutput::stream(stream::iter(failing.collect::<Vec<_>>()));
            let shown = way.go(&reduction, &call("a", "f"), failing).await;
            let came = &content[..content.len().min(before * 97)];
            assert_eq!(
                shown.error.as_ref().unwrap().to_string(),
                "the pipe broke",
                "{way:?} {before}"
            );
            if came.len() <= LIMIT {
                let whole: Vec<Part> = (!came.is_empty())
                    .then(|| came.into())
                    .into_iter()
                    .collect();
                assert_eq!(shown.parts, whole, "{way:?} {before}");
                assert_eq!(shown.outcome(), Outcome::Kept(Reason::WithinLimit));
                assert!(stored(&store).await.is_empty(), "{way:?} {before}");
            } else {
                let hint = Hint::parse(text(&shown.parts)).unwrap();
                assert_eq!(
                    (hint.placement, hint.bytes),
                    (way.placement(), came.len() as u64)
                );
                assert_eq!(
                    hint.preview,
                    Preview::HeadTail.show(came, PREVIEW),
                    "{way:?} {before}"
                );
                assert!(
                    hint.flags.interrupted
                        && hint
                            .prose
                            .contains(&format!("broke off after {} bytes", came.len()))
                );
                assert_eq!(
                    stored(&store).await,
                    [("memory://t/trunc/a".into(), came.into())],
                    "{way:?} {before}"
                );
            }
        }
    }
}

#[tokio::test]
async fn t11_only_the_text_that_broke_off_says_so() {
    let link = || {
        Ok(Chunk::Part(Part::Link {
            mime: None,
            url: "https://example.org".into(),
        }))
    };
    let broke = || Err(ToolError::new("the pipe broke"));
    let bytes = |text: String| Ok(Chunk::Bytes(text.into()));
    let whole = |text: String| Ok(Chunk::Part(Part::Text(text)));
    let cases: Vec<(&str, Vec<Item>, Vec<bool>)> = vec![
        (
            "the last",
            vec![bytes(lines(400)), link(), bytes(lines(500)), broke()],
            vec![false, true],
        ),
        (
            "none: a link follows",
            vec![bytes(lines(400)), link(), broke()],
            vec![false],
        ),
        (
            "none: it came whole",
            vec![whole(lines(400)), whole(lines(500)), broke()],
            vec![false, false],
        ),
        (
            "after one that came whole",
            vec![whole(lines(400)), bytes(lines(500)), broke()],
            vec![false, true],
        ),
    ];
    for (what, items, expected) in cases {
        for way in Way::BOTH {
            let reduction = builder(&memory())
                .max_length_for_trunc(3_000)
                .preview_length(300)
                .build()
                .unwrap();
            let items: Vec<Item> = items
                .iter()
                .map(|item| match item {
                    Ok(chunk) => Ok(chunk.clone()),
                    Err(error) => Err(ToolError::new(error.to_string())),
                })
                .collect();
            let shown = way
                .go(
                    &reduction,
                    &call("a", "f"),
                    ToolOutput::stream(stream::iter(items)),
                )
                .await;
            let hints = shown.parts.iter().filter_map(|part| match part {
                Part::Text(text) => Hint::parse(text),
                _ => None,
            });
            let said: Vec<bool> = hints.map(|hint| hint.flags.interrupted).collect();
            assert_eq!(said, expected, "{what} {way:?}");
            assert_eq!(shown.error.unwrap().to_string(), "the pipe broke");
        }
    }
}

#[tokio::test]
async fn t14_bytes_that_are_not_utf_8_are_stored_unchanged() {
    for size in [1, 2, 3, 1_000] {
        let store = memory();
        let reduction = small(&store).build().unwrap();
        let short = b"caf\xe9 au lait \xf0\x9f\x98".to_vec();
        let shown = Way::Shown
            .go(&reduction, &call("a", "f"), output(chunks(&short, size)))
            .await;
        let hint = Hint::parse(text(&shown.parts)).unwrap();
        assert!(hint.flags.not_utf8);
        assert_eq!(hint.preview, "caf\u{fffd} au lait \u{fffd}");
        assert_eq!(stored(&store).await, [("memory://t/trunc/a".into(), short)]);

        let long = [
            b"\xff\xfe".to_vec(),
            lines(400).into_bytes(),
            b"\xe2\x82".to_vec(),
        ]
        .concat();
        let shown = Way::Shown
            .go(&reduction, &call("b", "f"), output(chunks(&long, size)))
            .await;
        let hint = Hint::parse(text(&shown.parts)).unwrap();
        assert!(hint.flags.not_utf8 && hint.preview.starts_with("\u{fffd}\u{fffd}line 1\n"));
        assert!(
            hint.preview.ends_with("line 400\n\u{fffd}"),
            "{}",
            hint.preview
        );
        assert_eq!(stored(&store).await[1], ("memory://t/trunc/b".into(), long));
    }
}

/// Yields to other tasks before each chunk.
fn in_turns(chunks: Vec<Chunk>) -> ToolOutput {
    ToolOutput::stream(stream::iter(chunks).then(|chunk| async {
        tokio::task::yield_now().await;
        Ok(chunk)
    }))
}

#[tokio::test]
async fn many_streams_of_one_id_overwrite_nothing() {
    let memory = small(&memory()).build().unwrap();
    let fs = ToolReduction::builder().backend(Fs::temporary().unwrap());
    let fs = fs
        .max_length_for_trunc(LIMIT)
        .preview_length(PREVIEW)
        .build()
        .unwrap();
    for reduction in [memory, fs] {
        // Each content comes twice, and every third id is not a safe name.
        let contents: Vec<String> = (0..24).map(|n| lines(400 + n / 2)).collect();
        let runs = contents.iter().enumerate().map(|(n, content)| {
            let id = if n % 3 == 0 { "../call_0" } else { "call_0" };
            let (reduction, size) = (&reduction, 50 + n);
            async move {
                Way::Shown
                    .go(reduction, &call(id, "f"), in_turns(chunks(content, size)))
                    .await
            }
        });
        for (shown, content) in join_all(runs).await.into_iter().zip(&contents) {
            let location = Hint::parse(text(&shown.parts)).unwrap().location.unwrap();
            assert_eq!(
                reduction.read_original(&location).await.unwrap().unwrap(),
                *content,
                "{location}"
            );
        }
    }
}
