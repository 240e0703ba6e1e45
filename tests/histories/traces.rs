//! Real transcripts, with the originals handed in at every call.
//!
//! `OFFCUT_TRACES` names a folder of transcripts, as for `tests/traces.rs`. Without optimization some
//! of them are tested, with it all.

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use offcut::backend::Backend;
use offcut::format::OpenAiChat;
use offcut::tokens::CountTokens;
use offcut::{Settings, TokenCounter, ToolReduction};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::arms::{Arm, Dice};

/// One in this many transcripts is tested.
const EVERY: usize = if cfg!(debug_assertions) { 12 } else { 1 };
/// Longer transcripts in bytes are left out.
const UP_TO: u64 = if cfg!(debug_assertions) {
    300_000
} else {
    u64::MAX
};

const POLICIES: [(&str, &str); 3] = [
    (
        "recommended",
        include_str!("../../cli/policies/recommended.toml"),
    ),
    ("eino", include_str!("../../cli/policies/eino.toml")),
    (
        "cache-friendly",
        include_str!("../../cli/policies/cache-friendly.toml"),
    ),
];

fn files() -> Vec<PathBuf> {
    let entries =
        std::env::var_os("OFFCUT_TRACES").and_then(|folder| std::fs::read_dir(folder).ok());
    let paths = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .filter(|path| {
            path.metadata()
                .is_ok_and(|metadata| metadata.len() <= UP_TO)
        })
        .collect();
    files.sort();
    files.into_iter().step_by(EVERY).collect()
}

fn messages_of(file: &PathBuf) -> Vec<Value> {
    let bytes = std::fs::read(file).unwrap();
    let mut trace: Value = serde_json::from_slice(&bytes).unwrap();
    serde_json::from_value(trace["messages"].take()).unwrap()
}

/// The history of each call: everything before an assistant's message. With `dice`, one in ten
/// messages gets or loses a reminder before each call.
fn histories(messages: &[Value], mut dice: Option<Dice>) -> Vec<Vec<Value>> {
    let mut calls = Vec::new();
    let mut has_reminder = vec![false; messages.len()];
    for (at, message) in messages.iter().enumerate() {
        if message["role"] != "assistant" || at == 0 {
            continue;
        }
        if let Some(dice) = &mut dice {
            let changed = dice.roll(at);
            if dice.roll(10) == 0 {
                has_reminder[changed] ^= true;
            }
        }
        let mut history = Vec::new();
        for (message, has_reminder) in messages[..at].iter().zip(&has_reminder) {
            // Between a call and its results there is no place for one.
            if *has_reminder && message["role"] != "tool" {
                history.push(
                    json!({"role": "system", "content": "Remember the list of things to do."}),
                );
            }
            history.push(message.clone());
        }
        calls.push(history);
    }
    calls
}

/// Number of calls whose request does not begin with the whole previous one.
fn breaks(sent: &[Vec<Value>]) -> usize {
    sent.windows(2)
        .filter(|pair| !pair[1].starts_with(&pair[0]))
        .count()
}

/// Hands in all histories. Returns what was sent.
async fn send(arm: &mut Arm, histories: &[Vec<Value>]) -> Vec<Vec<Value>> {
    let mut sent = Vec::new();
    for history in histories {
        let mut messages = history.clone();
        let report = arm.next().reduce(&OpenAiChat, &mut messages).await.unwrap();
        assert_eq!(report.records_error, None);
        sent.push(messages);
    }
    sent
}

fn make<B: Backend>(
    policy: &'static str,
    counter: &Counted,
) -> impl Fn(B) -> ToolReduction + Clone + use<B> {
    let counter = counter.clone();
    move |store| {
        let settings = Settings::from_toml(policy).unwrap();
        let builder = ToolReduction::builder().settings(settings, offcut::backend::open);
        let builder = builder.count_tokens_with(counter.clone());
        builder.backend(store).build().unwrap()
    }
}

/// An exact counter that counts each text once, however many processes a test has: a new process for
/// each call would count all that came before.
#[derive(Clone)]
struct Counted {
    exact: Arc<dyn CountTokens>,
    known: Arc<Mutex<HashMap<String, u64>>>,
}

impl Counted {
    fn new() -> Self {
        Self {
            exact: TokenCounter::default().build().unwrap(),
            known: Arc::default(),
        }
    }
}

impl CountTokens for Counted {
    fn count(&self, text: &str) -> u64 {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tokens) = known().get(text) {
            return *tokens;
        }
        let tokens = self.exact.count(text);
        known().insert(text.to_owned(), tokens);
        tokens
    }

    fn never_exceeds_bytes(&self) -> bool {
        self.exact.never_exceeds_bytes()
    }

    fn costs_at_most(&self, short: &str, long: &str) -> bool {
        self.exact.costs_at_most(short, long)
    }
}

/// Compares all arms over all transcripts, under all policies. Returns calls, breaks, and breaks with reminders that
/// the reminders do not cause.
pub(crate) fn compare<B: Backend + Clone>(
    runtime: &Runtime,
    mut stores: impl FnMut() -> [B; 3],
) -> Option<[usize; 3]> {
    let files = files();
    if files.is_empty() {
        let skipped = "SKIPPED: OFFCUT_TRACES names no folder with JSON files";
        writeln!(std::io::stderr(), "{skipped}").expect("stderr");
        return None;
    }
    let mut totals = [0; 3];
    for file in &files {
        let counter = Counted::new();
        let messages = messages_of(file);
        let (plain, reminded) = (
            histories(&messages, None),
            histories(&messages, Some(Dice(3))),
        );
        for (name, policy) in POLICIES {
            let mut sends = |histories: &[Vec<Value>]| {
                let mut arms = Arm::all(stores(), make(policy, &counter));
                let sent = arms
                    .each_mut()
                    .map(|arm| runtime.block_on(send(arm, histories)));
                for (number, call) in sent[0].iter().enumerate() {
                    for (arm, other) in ["new process", "replicas"].iter().zip(&sent[1..]) {
                        let same = serde_json::to_string(call).unwrap()
                            == serde_json::to_string(&other[number]).unwrap();
                        assert!(
                            same,
                            "{}: call {number} differs, {name}, {arm}",
                            file.display()
                        );
                    }
                }
                breaks(&sent[0])
            };
            totals[0] += plain.len();
            totals[1] += sends(&plain);
            totals[2] += sends(&reminded).saturating_sub(breaks(&reminded));
        }
    }
    writeln!(
        std::io::stderr(),
        "{} transcripts: {} calls, {} breaks; with reminders {} that they do not cause",
        files.len(),
        totals[0],
        totals[1],
        totals[2]
    )
    .expect("stderr");
    Some(totals)
}
