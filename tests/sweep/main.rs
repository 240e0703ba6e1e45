//! Tests of sweeping: what goes, what stays, and that nothing named ever becomes unreadable.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that can't be set up has failed, and says what it saw"
)]

#[path = "../common/mod.rs"]
mod common;

mod clocked;
mod crash;
mod model;
mod month;
mod rules;
mod spelled;

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::StreamExt;
use offcut::backend::{Backend, Fs, Key, Memory};
use offcut::{TokenCounter, ToolReduction};

use self::month::{Month, live_through};

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn key(path: &str) -> Key {
    Key::new(path).unwrap()
}

/// A reduction that truncates results over 1 500 bytes.
fn quick(store: impl Backend) -> ToolReduction {
    let builder = ToolReduction::builder()
        .backend(store)
        .token_counter(TokenCounter::Estimate);
    builder
        .max_length_for_trunc(1_500)
        .preview_length(200)
        .max_tokens_for_clear(1_500)
        .build()
        .unwrap()
}

/// Lists everything that is stored.
async fn keys(store: &impl Backend) -> BTreeSet<String> {
    let entries: Vec<_> = store.list().collect().await;
    let keys = entries.into_iter().map(|entry| entry.unwrap().key);
    keys.map(|key| key.to_string()).collect()
}

fn is_a_month(month: &Month) {
    eprintln!("{month:?}");
    assert!(month.hints > 1_000 && month.checked > 5_000, "{month:?}");
    assert!(month.removed > 500, "{month:?}");
    assert!(month.most_bytes < month.stored_bytes / 2, "{month:?}");
}

#[tokio::test]
async fn a_month_of_sessions_leaves_nothing_dangling() {
    is_a_month(&live_through(Memory::named("t").unwrap(), 200).await);
}

#[tokio::test]
async fn a_month_of_sessions_leaves_nothing_dangling_on_files() {
    let home = tempfile::tempdir().unwrap();
    is_a_month(&live_through(Fs::open(home.path()).unwrap(), 200).await);
}
