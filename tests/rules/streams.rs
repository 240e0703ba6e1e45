//! Streams, rule by rule (T11–T14, R3): stored content, and failures.
//!
//! Chunk boundaries that change nothing (T2) are a property in `tests/laws/l9`. The memory of a
//! stream is measured in `tests/stream_memory.rs`.
#![cfg(feature = "fs")]

mod dropped;
mod middleware;
mod rigged;
mod store_fails;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use crate::common::{builder, call, clear, lines, memory, round, stored, text};
use futures_util::future::join_all;
use futures_util::{Stream, StreamExt, stream};
use offcut::agent::Tool;
use offcut::backend::{Fs, Memory};
use offcut::format::Message;
use offcut::hint::Hint;
use offcut::preview::Preview;
use offcut::report::{Outcome, Reason};
use offcut::{Chunk, Part, Report, ToolCall, ToolError, ToolOutput, ToolReduction};
use serde_json::{Value, json};

const LIMIT: usize = 1_000;
const PREVIEW: usize = 200;

fn small(store: &Memory) -> offcut::Builder {
    builder(store)
        .max_length_for_trunc(LIMIT)
        .preview_length(PREVIEW)
}

/// Number of bytes of a stream that are held, at most.
fn most_held(limit: usize) -> usize {
    2 * limit + 4
}

fn link() -> Chunk {
    Chunk::Part(Part::Link {
        mime: None,
        url: "https://example.org".into(),
    })
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

/// The outcome of a stream.
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

async fn go(reduction: &ToolReduction, call: &ToolCall, output: ToolOutput) -> Shown {
    match reduction.truncate(call, output).await {
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
async fn t11_a_source_that_fails_at_every_chunk() {
    let content = lines(400);
    let all = chunks(&content, 97);
    for before in 0..=all.len() {
        let store = memory();
        let reduction = small(&store).build().unwrap();
        let failing = all[..before]
            .iter()
            .cloned()
            .map(Ok)
            .chain([Err(ToolError::new("the pipe broke"))]);
        let failing = ToolOutput::stream(stream::iter(failing.collect::<Vec<_>>()));
        let shown = go(&reduction, &call("a", "f"), failing).await;
        let came = &content[..content.len().min(before * 97)];
        assert_eq!(
            shown.error.as_ref().unwrap().to_string(),
            "the pipe broke",
            "{before}"
        );
        if came.len() <= LIMIT {
            let whole: Vec<Part> = (!came.is_empty())
                .then(|| came.into())
                .into_iter()
                .collect();
            assert_eq!(shown.parts, whole, "{before}");
            assert_eq!(shown.outcome(), Outcome::Kept(Reason::WithinLimit));
            assert!(stored(&store).await.is_empty(), "{before}");
        } else {
            let hint = Hint::parse(text(&shown.parts)).unwrap();
            assert_eq!(hint.bytes, came.len() as u64);
            assert_eq!(
                hint.preview,
                Preview::HeadTail.show(came, PREVIEW),
                "{before}"
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
                "{before}"
            );
        }
    }
}

#[tokio::test]
async fn t11_only_the_text_that_broke_off_says_so() {
    let link = || Ok(link());
    let broke = || Err(ToolError::new("the pipe broke"));
    let bytes = |text: String| Ok(Chunk::Bytes(text.into()));
    let whole = |text: String| Ok(Chunk::Part(Part::Text(text)));
    // Held or not, which makes several texts one.
    let (held, long) = (3_940, 1_000);
    let cases: Vec<(&str, usize, Vec<Item>, Vec<bool>)> = vec![
        (
            "the last",
            held,
            vec![bytes(lines(400)), link(), bytes(lines(500)), broke()],
            vec![false, true],
        ),
        (
            "none: a link follows",
            held,
            vec![bytes(lines(500)), link(), broke()],
            vec![false],
        ),
        (
            "none: it came whole",
            held,
            vec![whole(lines(400)), whole(lines(500)), broke()],
            vec![false, false],
        ),
        (
            "after one that came whole",
            held,
            vec![whole(lines(400)), bytes(lines(500)), broke()],
            vec![false, true],
        ),
        (
            "in one with another",
            long,
            vec![bytes(lines(400)), link(), bytes(lines(500)), broke()],
            vec![true],
        ),
        (
            "none of both in one",
            long,
            vec![bytes(lines(400)), whole(lines(500)), link(), broke()],
            vec![false],
        ),
    ];
    for (what, limit, items, expected) in cases {
        let reduction = builder(&memory())
            .max_length_for_trunc(limit)
            .preview_length(limit / 8)
            .build()
            .unwrap();
        let items: Vec<Item> = items
            .iter()
            .map(|item| match item {
                Ok(chunk) => Ok(chunk.clone()),
                Err(error) => Err(ToolError::new(error.to_string())),
            })
            .collect();
        let shown = go(
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
        assert_eq!(said, expected, "{what}");
        assert_eq!(shown.error.unwrap().to_string(), "the pipe broke");
    }
}

#[tokio::test]
async fn t14_bytes_that_are_not_utf_8_are_stored_unchanged() {
    for size in [1, 2, 3, 1_000] {
        let store = memory();
        let reduction = small(&store).build().unwrap();
        let short = b"caf\xe9 au lait \xf0\x9f\x98".to_vec();
        let shown = go(&reduction, &call("a", "f"), output(chunks(&short, size))).await;
        let hint = Hint::parse(text(&shown.parts)).unwrap();
        assert!(hint.flags.not_utf8);
        assert_eq!(hint.preview, "caf\u{fffd} au lait \u{fffd}");
        assert_eq!(stored(&store).await, [("memory://t/trunc/a".into(), short)]);

        let long = [
            b"\xff\xff".to_vec(),
            lines(400).into_bytes(),
            b"\xe2\x82".to_vec(),
        ]
        .concat();
        let shown = go(&reduction, &call("b", "f"), output(chunks(&long, size))).await;
        let hint = Hint::parse(text(&shown.parts)).unwrap();
        assert!(hint.flags.not_utf8 && hint.preview.starts_with("1|\u{fffd}\u{fffd}line 1\n"));
        assert!(
            hint.preview.contains("line 400\n\u{fffd}\n[… "),
            "{}",
            hint.preview
        );
        assert_eq!(stored(&store).await[1], ("memory://t/trunc/b".into(), long));
    }
}

#[tokio::test]
async fn t14_bytes_of_an_exempt_tool_are_stored_and_shown_whole() {
    let store = memory();
    let reduction = small(&store).trunc_exclude_tools(["f"]).preview_above(9);
    let reduction = reduction.build().unwrap();
    let bytes = [lines(4_000).into_bytes(), b"caf\xe9".to_vec()].concat();
    let shown = go(&reduction, &call("a", "f"), output(chunks(&bytes, 999))).await;
    let hint = Hint::parse(text(&shown.parts)).unwrap();
    assert!(hint.flags.not_utf8);
    assert_eq!(hint.preview, lines(4_000) + "caf\u{fffd}");
    assert_eq!(stored(&store).await, [("memory://t/trunc/a".into(), bytes)]);
    let text_alone = output(chunks(lines(4_000).as_bytes(), 999));
    let shown = go(&reduction, &call("b", "f"), text_alone).await;
    assert_eq!(text(&shown.parts), lines(4_000));
    assert_eq!(stored(&store).await.len(), 1);
}

#[tokio::test]
async fn t10_the_texts_of_a_long_stream_are_one() {
    let store = memory();
    let reduction = small(&store).build().unwrap();
    let long = json!({"rows": (0..400).collect::<Vec<_>>()});
    let short = Part::Json(json!({"small": 1}));
    let link = link();
    let mut came = vec![link.clone()];
    came.extend(chunks(lines(300), 7));
    came.extend([Chunk::Part(short.clone()), Chunk::Part(lines(2).into())]);
    came.extend([Chunk::Part(Part::Json(long.clone())), link.clone()]);
    came.extend(chunks("the end", 3));
    let shown = go(&reduction, &call("a", "f"), output(came)).await;

    let content = [lines(300), lines(2), long.to_string(), "the end".into()].join("\n");
    let all = stored(&store).await;
    assert_eq!(all, [("memory://t/trunc/a".into(), content.clone().into())]);
    let [Part::Link { .. }, Part::Text(hint), json, Part::Link { .. }] = &shown.parts[..] else {
        panic!("{:?}", shown.parts)
    };
    assert_eq!(*json, short);
    let decision = &shown.report.as_ref().unwrap().decisions[0];
    let feeds = 3;
    let before = content.len() - feeds + r#"{"small":1}"#.len();
    assert_eq!(decision.bytes.before, before as u64);
    let hint = Hint::parse(hint).unwrap();
    assert_eq!(hint.bytes, content.len() as u64);
    assert_eq!(hint.preview, Preview::HeadTail.show(&content, PREVIEW));
    assert!(!hint.flags.joined);
}

/// Yields to other tasks before each chunk.
fn in_turns(chunks: Vec<Chunk>) -> ToolOutput {
    ToolOutput::stream(stream::iter(chunks).then(|chunk| async {
        tokio::task::yield_now().await;
        Ok(chunk)
    }))
}

#[tokio::test]
async fn t14_utf16_is_stored_as_it_is_and_shown_counted_and_searched_as_text() {
    let mut all: Vec<String> = (0..1_500)
        .map(|n| format!("[{n}] built part {} 好", n * 7))
        .collect();
    all[700] = "ERROR service 700 failed to start: port 8443 already in use".to_owned();
    let text_of = format!("\u{feff}{}", all.join("\r\n"));
    let encoded =
        |unit: fn(u16) -> [u8; 2]| -> Vec<u8> { text_of.encode_utf16().flat_map(unit).collect() };
    let (little, big) = (encoded(u16::to_le_bytes), encoded(u16::to_be_bytes));
    for bytes in [&little, &little[2..].to_vec(), &big, &big[2..].to_vec()] {
        for size in [3, 1_000, bytes.len()] {
            let store = memory();
            let reduction = small(&store).preview_length(500).build().unwrap();
            let shown = go(&reduction, &call("a", "f"), output(chunks(bytes, size))).await;
            let hint = Hint::parse(text(&shown.parts)).unwrap();
            assert!(
                hint.flags.not_utf8 && hint.preview.contains("port 8443"),
                "{size} {hint:?}"
            );
            assert_eq!(hint.lines, Some(1_500));
            assert!(hint.preview.starts_with("1|[0] built part 0 好"));
            assert_eq!(
                stored(&store).await,
                [("memory://t/trunc/a".into(), bytes.clone())]
            );
            let read = async |arguments: Value| {
                let reader = reduction.read_file_tool();
                let call = ToolCall::new("r", "read_file", arguments.to_string());
                let (parts, _) = reader.call(&call).await.unwrap().into_parts().await;
                text(&parts).to_owned()
            };
            let (whole, _) = output(chunks(bytes, size)).into_parts().await;
            assert_eq!(text(&whole).trim_start_matches('\u{feff}'), &text_of[3..]);
            let path = hint.location.unwrap();
            let found = read(json!({"path": path, "pattern": "ERROR"})).await;
            assert!(
                found.contains("701:ERROR service 700 failed to start"),
                "{found}"
            );
            let page = read(json!({"path": path, "offset": 1_400})).await;
            assert!(
                page.contains("\n[1399] built part 9793 好\r\n[1400]"),
                "{page}"
            );
            let eager = builder(&store)
                .max_tokens_for_clear(1)
                .clear_retention_suffix_limit(0)
                .stub_length(160)
                .build()
                .unwrap();
            let mut messages = Vec::from(round("a", "f", text(&shown.parts).to_owned()));
            messages.push(Message::assistant("so"));
            clear(&eager, &mut messages).await;
            let Message::Tool { content, .. } = &messages[1] else {
                panic!("{messages:?}")
            };
            let cleared = Hint::parse(text(content)).unwrap().preview;
            assert!(
                cleared.contains("built part") && !cleared.contains('\u{fffd}'),
                "{cleared}"
            );
            // A page and matches are ours, and never stored again.
            for own in [found, page] {
                let size_said = Hint::parse(&own).unwrap().bytes;
                assert_eq!(size_said, bytes.len() as u64, "what is stored: {own}");
                let again = reduction.truncate(&call("b", "f"), own).await.unwrap();
                assert_eq!(store.len(), 1, "{:?}", again.report.decisions);
            }
        }
    }
}

#[tokio::test]
async fn many_streams_of_one_id_overwrite_nothing() {
    let memory = small(&memory()).build().unwrap();
    let home = tempfile::tempdir().unwrap();
    let fs = ToolReduction::builder().backend(Fs::open(home.path()).unwrap());
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
            async move { go(reduction, &call(id, "f"), in_turns(chunks(content, size))).await }
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
