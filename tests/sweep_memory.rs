//! W3: a sweep takes memory only for the names that it finds, once each, whatever it scans.
//! Measured by the allocator, in a separate process.
// Helpers are part of the tests.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::time::{Duration, SystemTime};

use offcut::backend::{Backend, Key, Memory};
use offcut::sweep::{Live, SweepPolicy};
use offcut::{TokenCounter, ToolReduction};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Limit in bytes for the memory that scanning takes in addition to the text and the names.
const AT_MOST: usize = 3 << 18;
/// Length in bytes of a text that is scanned.
const TEXT: usize = 1 << 20;

/// Texts of at least `bytes` bytes that hold one name or none and could be taken for many.
fn hostile(bytes: usize) -> Vec<(&'static str, Vec<u8>)> {
    let repeat = |begin: &str, part: &str| {
        format!("{begin}{}", part.repeat(bytes / part.len() + 1)).into_bytes()
    };
    let dashes: Vec<String> = (1..bytes.isqrt() * 2)
        .map(|count| format!("/s/trunc/a{} ", "-".repeat(count)))
        .collect();
    vec![
        ("dashes behind a name", repeat("/s/trunc/a", "-")),
        ("ever more dashes", dashes.concat().into_bytes()),
        ("escaped dashes", repeat("/s/trunc/a", r"\-")),
        ("encoded dashes", repeat("/s/trunc/a", "%2D")),
        ("references", repeat("/s/trunc/a", "&lowbar;")),
        ("zeros", repeat("/s/trunc/a&#", "0")),
        ("percent signs", repeat("/s/trunc/a", "%25")),
        ("backslashes", repeat("/s/trunc/a", "\\")),
        ("ampersands", repeat("/s/trunc/a&", "amp;")),
        ("a name without an end", repeat("/s/trunc/a", "x")),
        ("a path without an end", repeat("", "/a")),
        ("slashes", repeat("/s/trunc/a", "/")),
        ("a name again and again", repeat("", "/s/trunc/a ")),
        ("a path of names", repeat("", "/s1/trunc/abc")),
        ("only the begin of a name", repeat("", "trunc/")),
    ]
}

/// Runs `run` and measures its peak of additional memory, in bytes.
fn peak<T>(run: impl FnOnce() -> T) -> (usize, T) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let result = run();
    (MEMORY.peak_usage().saturating_sub(before), result)
}

fn scan_texts() {
    let home = tempfile::tempdir().unwrap();
    for (what, text) in hostile(TEXT) {
        let path = home.path().join("chat.txt");
        std::fs::File::create(&path)
            .unwrap()
            .write_all(&text)
            .unwrap();
        let text = String::from_utf8(text).unwrap();
        let (bytes, _live) = peak(|| Live::new().text(&text));
        assert!(bytes < AT_MOST, "a text of {what} takes {bytes} bytes");
        let (bytes, _live) = peak(|| Live::new().folder(&path).unwrap());
        assert!(bytes < AT_MOST, "a file of {what} takes {bytes} bytes");
    }
    // Names take memory: once each, however often they occur and in any context.
    let names = |times: usize| {
        (0..10_000)
            .map(|n| format!("/store/s1/trunc/call_{n}. "))
            .collect::<String>()
            .repeat(times)
    };
    let [once, often] = [1, 20].map(|times| {
        let text = names(times);
        peak(|| Live::new().text(&text)).0
    });
    assert!(
        often < once + AT_MOST && once < 10_000 * 300,
        "{once} bytes once, {often} often"
    );
}

fn scan_stored_content() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    for (what, text) in hostile(TEXT) {
        let store = Memory::new();
        let reduction = ToolReduction::builder()
            .backend(store.clone())
            .token_counter(TokenCounter::Estimate)
            .build()
            .unwrap();
        let key = Key::new("s/clear/page").unwrap();
        runtime.block_on(store.put(&key, text.into())).unwrap();
        let live = Live::new().text("s/clear/page");
        let policy = SweepPolicy::new();
        let later = SystemTime::now() + Duration::from_secs(40 * 86_400);
        let (bytes, report) = peak(|| {
            runtime
                .block_on(offcut::sweep::sweep(&reduction, &live, &policy, later))
                .unwrap()
        });
        assert_eq!(report.live.count, 1);
        assert!(
            bytes < 2 * AT_MOST,
            "stored content of {what} takes {bytes} bytes"
        );
    }
}

/// A single test: another one running at the same time would be counted too.
#[test]
fn w3_memory_follows_the_names_and_not_the_text() {
    scan_texts();
    scan_stored_content();
}
