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
mod cued;
mod full;
mod model;
mod month;
mod rules;
mod spelled;

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt;
use offcut::backend::{Backend, BackendError, Fs, Key, Location, Memory};
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

/// Reads a key the way a session's reader would.
async fn read<B: Backend + Clone>(store: &B, path: &str) -> Result<String, BackendError> {
    let mut reduction = quick(store.clone());
    let segments: Vec<_> = path.split('/').collect();
    for session in &segments[..segments.len() - 2] {
        reduction = reduction.session(session);
    }
    let content = reduction
        .read_original(&store.locate(&key(path)))
        .await
        .unwrap()?;
    Ok(String::from_utf8(content.to_vec()).unwrap())
}

/// Lists everything that is stored, including the leases of dead sweeps.
async fn contents(store: &impl Backend) -> BTreeMap<String, Location> {
    let entries: Vec<_> = store.list().collect().await;
    entries
        .into_iter()
        .map(|entry| entry.unwrap().key)
        .map(|key| (key.to_string(), store.locate(&key)))
        .collect()
}

fn is_a_month(month: &Month) {
    eprintln!("{month:?}");
    assert!(month.hints > 1_000 && month.checked > 5_000, "{month:?}");
    assert!(
        month.moved > 500 && month.removed > 500 && month.brought_back > 20,
        "{month:?}"
    );
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
