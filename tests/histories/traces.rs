//! Real transcripts, with the originals handed in at every call.
//!
//! `OFFCUT_TRACES` names a folder of transcripts, as for `tests/traces.rs`. Without optimization some
//! of them are tested, with it all. One history at a time is in memory.

use std::collections::HashMap;
use std::fmt;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use offcut::backend::Backend;
use offcut::format::OpenAiChat;
use offcut::tokens::CountTokens;
use offcut::{Settings, TokenCounter, ToolReduction};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::arms::{Arm, Dice, NAMES};

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
        include_str!("../../crates/cli/policies/recommended.toml"),
    ),
    ("eino", include_str!("../../crates/cli/policies/eino.toml")),
    (
        "cache-friendly",
        include_str!("../../crates/cli/policies/cache-friendly.toml"),
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

fn messages_of(file: &Path) -> Vec<Value> {
    let bytes = std::fs::read(file).unwrap();
    let mut trace: Value = serde_json::from_slice(&bytes).unwrap();
    serde_json::from_value(trace["messages"].take()).unwrap()
}

/// The histories of a transcript's calls: everything before each assistant's message. With `dice`, one in
/// ten messages gets a reminder when it is old, and may lose it again later.
fn histories(messages: &[Value], dice: Option<Dice>) -> impl Iterator<Item = Vec<Value>> {
    let has_reminder = reminders(messages, dice);
    let is_call = |at: &usize| *at > 0 && messages[*at]["role"] == "assistant";
    (0..messages.len()).filter(is_call).map(move |at| {
        let mut history = Vec::with_capacity(at);
        let mut waiting = 0;
        for (place, message) in messages[..at].iter().enumerate() {
            // Between a call and its results there is no place for one.
            if message["role"] != "tool" {
                history.extend((0..waiting).map(|_| reminder()));
                waiting = 0;
            }
            history.push(message.clone());
            waiting += usize::from(has_reminder[place].contains(&at));
        }
        history.extend((0..waiting).map(|_| reminder()));
        history
    })
}

fn reminder() -> Value {
    json!({"role": "system", "content": "Remember the list of things to do."})
}

/// For each message, the numbers of the messages before which the history has a reminder after it.
fn reminders(messages: &[Value], dice: Option<Dice>) -> Vec<Range<usize>> {
    let mut reminders = vec![0..0; messages.len()];
    let Some(mut dice) = dice else {
        return reminders;
    };
    for (at, has_reminder) in reminders.iter_mut().enumerate() {
        if dice.roll(10) == 0 {
            let first = at + 2 + dice.roll(messages.len() - at);
            *has_reminder = first..first + 1 + dice.roll(messages.len());
        }
    }
    reminders
}

/// Tells whether two values are written alike, so in the same order.
fn is_written_alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|((name, value), (other, at))| {
                    name == other && is_written_alike(value, at)
                })
        }
        (Value::Array(one), Value::Array(other)) => are_written_alike(one, other),
        (Value::Number(one), Value::Number(other)) => one.to_string() == other.to_string(),
        _ => one == other,
    }
}

fn are_written_alike(one: &[Value], other: &[Value]) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .all(|(one, other)| is_written_alike(one, other))
}

/// Counts over all calls of some conversations.
#[derive(Default, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) calls: usize,
    /// Calls whose bytes differ from those of the process that lives long.
    pub(crate) differing: usize,
    /// Calls whose history does not begin with the whole previous one.
    pub(crate) changed: usize,
    /// For each arm, calls whose request does not begin with the whole previous one.
    pub(crate) breaks: [usize; 3],
    /// Those of them that no change of the history causes.
    pub(crate) own: [usize; 3],
}

impl Found {
    /// Hands in all histories, and looks at what is sent.
    async fn over(
        arms: &mut [Arm; 3],
        histories: impl Iterator<Item = Vec<Value>>,
        what: fmt::Arguments<'_>,
    ) -> Self {
        let mut found = Self::default();
        let mut before: Option<(Vec<Value>, [Vec<Value>; 3])> = None;
        for history in histories {
            let mut sent = [history.clone(), history.clone(), history.clone()];
            for (arm, messages) in arms.iter_mut().zip(&mut sent) {
                let report = arm.next().reduce(OpenAiChat, messages).await.unwrap();
                assert_eq!(report.records_error, None);
            }
            for (other, name) in sent.iter().zip(NAMES).skip(1) {
                if !are_written_alike(other, &sent[0]) {
                    let number = found.calls;
                    say(format_args!("{what}: call {number} differs, {name}"));
                    found.differing += 1;
                }
            }
            if let Some((given, begins)) = &before {
                let is_changed = !history.starts_with(given);
                found.changed += usize::from(is_changed);
                for (arm, (begins, sent)) in begins.iter().zip(&sent).enumerate() {
                    let breaks = usize::from(!sent.starts_with(begins));
                    found.breaks[arm] += breaks;
                    found.own[arm] += if is_changed { 0 } else { breaks };
                }
            }
            found.calls += 1;
            before = Some((history, sent));
        }
        found
    }

    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.differing += other.differing;
        self.changed += other.changed;
        for arm in 0..3 {
            self.breaks[arm] += other.breaks[arm];
            self.own[arm] += other.own[arm];
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} calls, {} with a changed history, {} differing; breaks",
            self.calls, self.changed, self.differing
        )?;
        for (arm, name) in NAMES.iter().enumerate() {
            let (breaks, own) = (self.breaks[arm], self.own[arm]);
            write!(f, ", {name} {breaks} ({own} that no change causes)")?;
        }
        Ok(())
    }
}

/// Writes a line past the test's own capture, for tests that run long.
fn say(line: fmt::Arguments<'_>) {
    writeln!(std::io::stderr(), "{line}").expect("stderr");
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
}

/// Compares all arms over all transcripts, under all policies. Checks what must hold of them, and does
/// nothing without transcripts.
pub(crate) fn compare<B: Backend + Clone>(
    runtime: &Runtime,
    store: &str,
    mut stores: impl FnMut() -> [B; 3],
) {
    let files = files();
    if files.is_empty() {
        say(format_args!(
            "SKIPPED: OFFCUT_TRACES names no folder with JSON files"
        ));
        return;
    }
    let mut found = [[Found::default(); 2]; POLICIES.len()];
    for file in &files {
        let counter = Counted::new();
        let messages = messages_of(file);
        for ((name, policy), found) in POLICIES.iter().zip(&mut found) {
            for (kind, total) in found.iter_mut().enumerate() {
                let mut arms = Arm::all(stores(), make(policy, &counter));
                let histories = histories(&messages, (kind == 1).then_some(Dice(3)));
                let what = format_args!("{}, {name}, {store}", file.display());
                total.add(&runtime.block_on(Found::over(&mut arms, histories, what)));
            }
        }
    }
    say(format_args!("{} transcripts over {store}:", files.len()));
    for ((name, _), [plain, reminded]) in POLICIES.iter().zip(&found) {
        say(format_args!("  {name}: {plain}"));
        say(format_args!("  {name}, with reminders: {reminded}"));
    }
    for [plain, reminded] in &found {
        assert_eq!((plain.differing, reminded.differing), (0, 0));
        for found in [plain, reminded] {
            assert!(found.breaks.iter().all(|breaks| *breaks <= found.breaks[0]));
        }
        let most = plain.own[0] + reminded.calls / 100;
        assert!(reminded.own[0] <= most, "{plain}\n{reminded}");
    }
}
