//! L9: a stream is never held whole. The allocator counts a stream's peak, in a separate process.
#![cfg(feature = "fs")]
// Helpers may unwrap, as tests may.
#![allow(clippy::unwrap_used)]

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use offcut::backend::{
    Backend, BackendError, Entry, ErrorKind, Fs, Key, Location, PutOutcome, ReadRange, Writer,
};
use offcut::hint::Hint;
use offcut::preview::Preview;
use offcut::report::Outcome;
use offcut::{Chunk, Part, TokenCounter, ToolCall, ToolError, ToolOutput, ToolReduction};
use peak_alloc::PeakAlloc;
use serde_json::json;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const LIMIT: usize = 50_000;
const PREVIEW: usize = 8_000;
const CHUNK: usize = 64 << 10;
/// Upper bound on a stream's memory, in bytes: a few times the limit, what a preview looks at, in a buffer that doubles and is
/// copied, and a few chunks in flight.
const AT_MOST: usize = 8 * LIMIT + (12 << 20) + (1 << 20);

const LINE: &[u8] = b"a line of it\n";
/// Number of texts in a long stream, and the bytes of each.
const TEXTS: usize = 100;
const TEXT: usize = 64 << 10;

/// A store that counts the bytes it is given and keeps none.
#[derive(Clone, Debug, Default)]
struct Counting {
    bytes: Arc<AtomicU64>,
    /// True if it takes nothing.
    is_full: bool,
}

#[async_trait]
impl Backend for Counting {
    fn locate(&self, key: &Key) -> Location {
        Location::new(format!("counting:/{key}"))
    }

    fn resolve(&self, location: &str) -> Option<Key> {
        Key::new(location.strip_prefix("counting:/")?).ok()
    }

    async fn put(&self, _: &Key, content: Bytes) -> Result<PutOutcome, BackendError> {
        self.bytes
            .fetch_add(content.len() as u64, Ordering::Relaxed);
        Ok(PutOutcome::Stored)
    }

    async fn writer(&self) -> Result<Box<dyn Writer>, BackendError> {
        if self.is_full {
            return Err(BackendError::new(ErrorKind::Full, "nothing is taken"));
        }
        Ok(Box::new(CountingWriter {
            store: self.clone(),
            written: 0,
        }))
    }

    async fn read(&self, _: &Key, _: Range<u64>) -> Result<ReadRange, BackendError> {
        Err(BackendError::new(ErrorKind::NotFound, "nothing is kept"))
    }

    fn list(&self) -> BoxStream<'_, Result<Entry, BackendError>> {
        stream::empty().boxed()
    }
}

#[derive(Debug)]
struct CountingWriter {
    store: Counting,
    written: u64,
}

#[async_trait]
impl Writer for CountingWriter {
    async fn write(&mut self, chunk: Bytes) -> Result<(), BackendError> {
        self.written += chunk.len() as u64;
        Ok(())
    }

    /// Returns as many bytes as are asked for; their values do not matter.
    async fn read(&mut self, range: Range<u64>) -> Result<Bytes, BackendError> {
        let length = range.end.min(self.written).saturating_sub(range.start);
        Ok(vec![b' '; usize::try_from(length).unwrap()].into())
    }

    async fn finish(&mut self, _: &Key) -> Result<PutOutcome, BackendError> {
        self.store.bytes.fetch_add(self.written, Ordering::Relaxed);
        Ok(PutOutcome::Stored)
    }
}

fn reduction(store: impl Backend, limit: usize) -> ToolReduction {
    let builder = ToolReduction::builder()
        .backend(store)
        .token_counter(TokenCounter::Estimate);
    builder
        .max_length_for_trunc(limit)
        .preview_length(PREVIEW)
        .build()
        .unwrap()
}

/// A stream that makes each chunk on demand.
fn made<T>(
    chunks: impl Iterator<Item = T> + Send + 'static,
    make: impl Fn(T) -> Chunk + Send + 'static,
) -> ToolOutput
where
    T: Send + 'static,
{
    ToolOutput::stream(stream::iter(chunks.map(move |chunk| Ok(make(chunk)))))
}

fn bytes(pattern: &[u8], length: usize) -> Chunk {
    let mut bytes = pattern.repeat(length.div_ceil(pattern.len()));
    bytes.truncate(length);
    Chunk::Bytes(bytes.into())
}

fn link() -> Chunk {
    Chunk::Part(Part::Link {
        mime: None,
        url: "https://example.org".into(),
    })
}

/// Runs `output` through a reduction. Returns the peak growth in bytes, and the parts shown.
async fn cost(reduction: &ToolReduction, id: &str, output: ToolOutput) -> (usize, Vec<Part>) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let call = ToolCall::new(id, "build", "{}");
    let parts = reduction.truncate(&call, output).await.unwrap().parts;
    (MEMORY.peak_usage().saturating_sub(before), parts)
}

/// Checks that `make`'s output of `length` bytes takes little memory, and that all of it is stored. `texts` is the
/// number of texts below twice the limit.
async fn costs_little(
    what: &str,
    limit: usize,
    id: &str,
    (texts, length): (usize, u64),
    make: impl Fn() -> ToolOutput,
) {
    // A short text takes more than its bytes.
    let at_most = AT_MOST + (texts - 1) * 200;
    let store = Counting::default();
    let (peak, parts) = cost(&reduction(store.clone(), limit), id, make()).await;
    assert!(
        peak <= at_most,
        "{what}: {peak} bytes of {at_most} were in use at once"
    );
    let Part::Text(text) = &parts[0] else {
        panic!("{what}: no text")
    };
    assert!(Hint::parse(text).unwrap().location.is_some(), "{what}");
    assert!(
        store.bytes.load(Ordering::Relaxed) >= length,
        "{what}: not all of it was stored"
    );
}

/// A single test, so that nothing else is counted.
#[test]
fn l9_a_stream_costs_a_few_times_the_limit() {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(async {
            let limit = LIMIT;
            // Compiling the patterns of previews takes memory once in a process.
            _ = Preview::HeadTail.show(&"a line of it\n".repeat(1_000), PREVIEW);
            let lines = |mib: usize| made(0..(mib << 20) / CHUNK, |_| bytes(LINE, CHUNK));
            costs_little("lines", limit, "a", (1, 16 << 20), || lines(16)).await;
            costs_little("an id that is no name", limit, "../a", (1, 4 << 20), || {
                lines(4)
            })
            .await;
            let odd: [(&str, &[u8]); 4] = [
                ("one line", b"x"),
                ("NUL", b"\0"),
                ("Chinese", "字".as_bytes()),
                ("no UTF-8", b"\xff"),
            ];
            for (what, pattern) in odd {
                let make = || made(0..(4 << 20) / CHUNK, move |_| bytes(pattern, CHUNK));
                costs_little(what, limit, "a", (1, 4 << 20), make).await;
            }
            costs_little("byte by byte", limit, "a", (1, 1 << 18), || {
                made(0..1 << 18, |_| bytes(LINE, 1))
            })
            .await;
            let broken = || {
                let chunks = (0..1 << 9).map(|_| Ok(bytes(LINE, CHUNK / 8)));
                ToolOutput::stream(stream::iter(
                    chunks.chain([Err(ToolError::new("the pipe broke"))]),
                ))
            };
            costs_little("a stream that breaks off", limit, "a", (1, 4 << 20), broken).await;

            let texts = || {
                made(0..2 * TEXTS, |n| {
                    if n % 2 == 0 {
                        bytes(LINE, TEXT)
                    } else {
                        link()
                    }
                })
            };
            costs_little(
                "texts between links",
                limit,
                "a",
                (1, (TEXTS * TEXT) as u64),
                texts,
            )
            .await;
            let parts = || made(0..TEXTS, |_| Chunk::Part(Part::Text("x".repeat(TEXT))));
            costs_little(
                "texts that come whole",
                limit,
                "a",
                (1, (TEXTS * TEXT) as u64),
                parts,
            )
            .await;

            // Even the shortest texts add up, so over the limit they are one.
            let many = || made(0..200_000, |n| Chunk::Part(Part::Text(format!("text {n}"))));
            costs_little("many texts", limit, "a", (2 * LIMIT / 9, 200_000 * 6), many).await;
            let mixed = || {
                made(0..200_000, |n| {
                    if n % 2 == 0 {
                        bytes(LINE, 9)
                    } else {
                        Chunk::Part("text".into())
                    }
                })
            };
            costs_little(
                "many texts in both ways",
                limit,
                "a",
                (4 * LIMIT / 13, 100_000 * 13),
                mixed,
            )
            .await;

            // A full store leaves little in memory too, of one text or of many.
            let full = Counting {
                is_full: true,
                ..Counting::default()
            };
            for every in [usize::MAX, 64] {
                let output = made(0..(64 << 20) / CHUNK, move |n| match n % every {
                    1 => link(),
                    _ => bytes(LINE, CHUNK),
                });
                let (peak, _) = cost(&reduction(full.clone(), limit), "a", output).await;
                // A buffer that grows is twice as large, and is copied.
                let at_most = AT_MOST + 3 * (16 << 20);
                assert!(
                    peak <= at_most,
                    "a full store: {peak} bytes of {at_most} were in use at once"
                );
            }

            let home = tempfile::tempdir().unwrap();
            let run = reduction(Fs::open(home.path()).unwrap(), limit);
            let (peak, _) = cost(&run, "a", lines(16)).await;
            // A writer of files fills one buffer of 1 MiB while another is being written.
            let at_most = AT_MOST + (1 << 20);
            assert!(
                peak <= at_most,
                "files: {peak} bytes of {at_most} were in use at once"
            );
            names_stored_content(limit).await;
            shapes_cost_a_few_times_the_text().await;
        });
}

/// Checks that texts which look like records cost no more memory than others do, however few of their fields they
/// have, or however often these have to be named.
async fn shapes_cost_a_few_times_the_text() {
    const MOST: usize = 2 << 20;
    let builder = ToolReduction::builder()
        .backend(Counting::default())
        .token_counter(TokenCounter::Estimate);
    let run = builder
        .max_length_for_trunc(LIMIT)
        .preview(Preview::Mixed)
        .preview_length(PREVIEW)
        .build()
        .unwrap();
    let names = |count: usize, length: usize| -> Vec<String> {
        (0..count)
            .map(|n| format!("{:x<length$}", format!("n{n}")))
            .collect()
    };
    let fill = |first: String, row: &str| {
        let rows = (MOST - 3 - first.len()) / row.len();
        first + &row.repeat(rows)
    };
    let object: Vec<String> = names(40, 1)
        .iter()
        .map(|name| format!("\"{name}\":1"))
        .collect();
    let fields: String = names(60_000, 8)
        .iter()
        .map(|name| format!("{name}: 1\n"))
        .collect();
    let few = "{\"n0\":10000},";
    for (what, text) in [
        (
            "few of many fields",
            fill(format!("[{{{}}},", object.join(",")), few) + "{}]",
        ),
        (
            "blocks with few of many fields",
            fill(format!("a: 1\nb: 1\nc: 1\n{fields}"), "a: 1\nb: 1\nc: 1\n"),
        ),
        (
            "long names",
            fill(names(26, 64).join(",") + "\n", &("1,".repeat(25) + "1\n")),
        ),
        ("no cells", fill("a,b\n".to_owned(), ",\n")),
        (
            "borders",
            fill(
                "| a | b |\n|---|---|\n| 1 | 2 |\n| 1 | 2 |\n| 1 | 2 |\n".to_owned(),
                "|",
            ),
        ),
        ("commas", fill("a,b\n1,2\n1,2\n1,2\n".to_owned(), ",")),
    ] {
        let (peak, _) = cost(&run, "a", ToolOutput::from(text)).await;
        let at_most = 28 * MOST;
        assert!(
            peak <= at_most,
            "{what}: {peak} bytes of {at_most} were in use at once"
        );
    }
}

/// Checks that a stream whose call names stored content is compared with it at little more than the memory
/// of both, whether or not it becomes a page of that content.
async fn names_stored_content(limit: usize) {
    let home = tempfile::tempdir().unwrap();
    let run = reduction(Fs::open(home.path()).unwrap(), limit);
    let row = |n: usize| Chunk::Bytes(format!("{n:07} {}\n", "x".repeat(1_015)).into());
    let stored = run
        .truncate(&ToolCall::new("a", "build", "{}"), made(0..16 << 10, row))
        .await
        .unwrap();
    let arguments = json!({"file": stored.report.decisions[0].locations[0]}).to_string();
    for (step, outcome) in [(1, Outcome::Paged), (2, Outcome::Truncated)] {
        let cat = ToolCall::new(step.to_string(), "cat", arguments.clone());
        let output = made((0..16 << 10).step_by(step), row);
        let before = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let report = run.truncate(&cat, output).await.unwrap().report;
        let peak = MEMORY.peak_usage().saturating_sub(before);
        // A writer of files fills one buffer of 1 MiB while another is being written.
        let at_most = AT_MOST + (2 << 20) + (16 << 20) + (16 << 20) / step;
        assert!(
            peak <= at_most,
            "{outcome:?}: {peak} bytes of {at_most} were in use at once"
        );
        assert_eq!(report.decisions[0].outcome, outcome);
    }
}
