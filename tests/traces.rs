//! Whole agent transcripts, replayed as in a loop: results are truncated as they arrive, and a pass
//! runs before each model call.
//!
//! `OFFCUT_TRACES` names a folder of JSON files, each `{"messages": [chat-completions messages],
//! "tools": [schemas]}`. Without it, or with an empty folder, the test says that it was skipped,
//! and passes.
#![cfg(feature = "tiktoken")]
// Helpers may unwrap, as tests may.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use offcut::backend::Memory;
use offcut::format::{LoopFormat, Messages, OpenAiChat};
use offcut::hint::{Hint, Kind};
use offcut::report::{Change, Decision};
use offcut::{Builder, Report, Settings, TokenCounter, ToolCall, ToolReduction, Turn};
use offcut_testkit::replaced_arguments;
use serde::Deserialize;
use serde_json::Value;

/// With optimization, every check runs on every file; without, the slow ones run on some.
const IS_FAST: bool = !cfg!(debug_assertions);
/// One in this many files is counted with the real tokenizer too.
const EXACT_EVERY: usize = if IS_FAST { 1 } else { 12 };
/// Only files up to this size in bytes: without optimization the tokenizer is slow.
const EXACT_UP_TO: u64 = if IS_FAST { u64::MAX } else { 200_000 };
/// While a loop changes nothing, one in this many calls is compared with a loop over originals.
const ORIGINALS_EVERY: usize = if IS_FAST { 1 } else { 16 };
/// One in this many passes that change something is followed by a second one.
const SECOND_PASS_EVERY: usize = if IS_FAST { 1 } else { 4 };

#[derive(Deserialize)]
struct Trace {
    messages: Vec<Value>,
    #[serde(default)]
    tools: Vec<Value>,
}

/// Counts over all replays.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    replays: usize,
    model_calls: usize,
    results: usize,
    truncated: usize,
    cleared: usize,
    arguments: usize,
    passes: usize,
    stored: usize,
    stored_bytes: u64,
    verified: usize,
}

impl Totals {
    fn add(&mut self, other: Self) {
        let Self {
            replays,
            model_calls,
            results,
            truncated,
            cleared,
            arguments,
            passes,
            stored,
            stored_bytes,
            verified,
        } = other;
        self.replays += replays;
        self.model_calls += model_calls;
        self.results += results;
        self.truncated += truncated;
        self.cleared += cleared;
        self.arguments += arguments;
        self.passes += passes;
        self.stored += stored;
        self.stored_bytes += stored_bytes;
        self.verified += verified;
    }
}

fn tight() -> Builder {
    ToolReduction::builder()
        .max_length_for_trunc(2_000)
        .preview_length(600)
        .max_tokens_for_clear(8_000)
        .clear_retention_suffix_limit(1)
        .clear_tool_inputs(true)
        .stub_length(150)
}

fn configurations() -> [(&'static str, Builder); 3] {
    [
        (
            "recommended",
            ToolReduction::builder().settings(Settings::recommended(), offcut::backend::open),
        ),
        (
            "eino",
            ToolReduction::builder().settings(Settings::eino(), offcut::backend::open),
        ),
        ("tight", tight()),
    ]
}

/// A store with the same locations in every replay.
fn store() -> Memory {
    Memory::named("t").expect("a safe name")
}

#[test]
fn transcripts_stay_valid_lossless_and_stable() {
    let files = files();
    if files.is_empty() {
        // Not with `eprintln!`, whose output the harness captures.
        let skipped = "SKIPPED transcripts_stay_valid_lossless_and_stable: OFFCUT_TRACES names no folder with JSON files";
        writeln!(std::io::stderr(), "{skipped}").expect("stderr");
        return;
    }
    let (next, totals, broken) = (
        AtomicUsize::new(0),
        Mutex::new(Totals::default()),
        Mutex::new(Vec::new()),
    );
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(file) = files.get(index) else { break };
                    // A panic prints its own message; the assertion below names the file.
                    match std::panic::catch_unwind(|| replay_file(file, index)) {
                        Ok(more) => totals.lock().expect("no panic").add(more),
                        Err(_) => broken.lock().expect("no panic").push(file),
                    }
                }
            });
        }
    });
    let (totals, broken) = (
        totals.into_inner().expect("no panic"),
        broken.into_inner().expect("no panic"),
    );
    writeln!(std::io::stderr(), "{} files: {totals:?}", files.len()).expect("stderr");
    assert!(
        broken.is_empty(),
        "{} of {} transcripts fail: {broken:#?}",
        broken.len(),
        files.len()
    );
}

fn files() -> Vec<PathBuf> {
    let Some(folder) = std::env::var_os("OFFCUT_TRACES") else {
        return Vec::new();
    };
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    // The largest files first, so that the threads end at about the same time.
    files.sort_by_key(|file| {
        (
            std::cmp::Reverse(file.metadata().map_or(0, |metadata| metadata.len())),
            file.clone(),
        )
    });
    files
}

fn replay_file(file: &Path, index: usize) -> Totals {
    let bytes = std::fs::read(file).expect("a readable file");
    let is_exact = index.is_multiple_of(EXACT_EVERY) && bytes.len() as u64 <= EXACT_UP_TO;
    let trace: Trace = serde_json::from_slice(&bytes).expect("a transcript");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let mut totals = Totals::default();
    let mut counters = vec![TokenCounter::Estimate];
    counters.extend(is_exact.then_some(TokenCounter::O200kBase));
    for counter in counters {
        for (number, (name, builder)) in configurations().into_iter().enumerate() {
            let at = format!("{} with {name}, {counter:?}", file.display());
            let builder = builder.token_counter(counter);
            let extra = Extra {
                from_scratch: IS_FAST || (index + number).is_multiple_of(3),
                originals: IS_FAST || (index + number) % 3 == 1,
            };
            totals.add(runtime.block_on(check(&trace, &builder, &at, extra)));
        }
    }
    totals
}

/// Checks besides the live loop.
#[derive(Clone, Copy)]
struct Extra {
    /// A loop that passes in the originals.
    originals: bool,
    /// A replay over the content that the live loop has stored.
    from_scratch: bool,
}

/// Checks one configuration over one transcript.
async fn check(trace: &Trace, builder: &Builder, at: &str, extra: Extra) -> Totals {
    let store = store();
    let make = |store: &Memory| {
        builder
            .clone()
            .backend(store.clone())
            .build()
            .expect("a configuration")
    };
    let mut live = Loop::new(make(&store), trace, at);
    // It has its own store, so that content stored by the other loop can't help it.
    let mut originals = extra
        .originals
        .then(|| OverOriginals(Loop::new(make(&self::store()), trace, at)));
    for message in &trace.messages {
        if message["role"] == "assistant" {
            let (report, changed) = live.before_model(&store).await;
            if report.is_change() && live.totals.passes.is_multiple_of(SECOND_PASS_EVERY) {
                // Another process finds nothing left to do.
                assert_stable(&make(&store), &live, live.messages.clone(), &store).await;
            }
            // While one loop changes nothing, the other could only repeat: some checks are enough.
            let is_due =
                report.is_change() || live.totals.model_calls.is_multiple_of(ORIGINALS_EVERY);
            if let Some(originals) = originals.as_ref().filter(|_| is_due) {
                originals.assert_sends_the_same(&live, &changed).await;
            }
        }
        live.receive(message).await;
        if let Some(OverOriginals(originals)) = &mut originals {
            originals.receive(message).await;
        }
    }
    live.before_model(&store).await;
    if let Some(originals) = &originals {
        originals.assert_sends_the_same(&live, &[]).await;
    }
    let over_the_wire = || serde_json::from_str(&json(&live.messages)).expect("JSON");
    assert_stable(&live.reduction, &live, over_the_wire(), &store).await;
    assert_stable(&make(&store), &live, over_the_wire(), &store).await;

    let count = store.len();
    let mut totals = live.verify().await;
    totals.stored = count;
    totals.stored_bytes = store.bytes();
    totals.replays += usize::from(extra.originals);
    if !extra.from_scratch {
        return totals;
    }

    totals.replays += 1;
    let mut again = Loop::new(make(&store), trace, at);
    for message in &trace.messages {
        if message["role"] == "assistant" {
            again.before_model(&store).await;
        }
        again.receive(message).await;
    }
    again.before_model(&store).await;
    assert!(
        again.edits == live.edits,
        "{at}: a replay from scratch edits differently"
    );
    assert_eq!(
        json(&again.messages),
        json(&live.messages),
        "{at}: a replay from scratch sends something else"
    );
    assert_eq!(
        store.len(),
        count,
        "{at}: a replay from scratch stores something new"
    );
    totals
}

/// An edit of the live messages: the number of messages by then, the index of the edited one, and
/// its new content.
type Edit = (usize, usize, String);

/// A loop that changes its one list of messages in place.
struct Loop<'t> {
    reduction: ToolReduction,
    trace: &'t Trace,
    at: &'t str,
    messages: Vec<Value>,
    /// Calls without a result so far.
    open: Vec<ToolCall>,
    edits: Vec<Edit>,
    totals: Totals,
}

impl<'t> Loop<'t> {
    fn new(reduction: ToolReduction, trace: &'t Trace, at: &'t str) -> Self {
        let totals = Totals {
            replays: 1,
            ..Totals::default()
        };
        Self {
            reduction,
            trace,
            at,
            messages: Vec::new(),
            open: Vec::new(),
            edits: Vec::new(),
            totals,
        }
    }

    /// Appends the next message of the transcript. Truncates it if it is a result.
    async fn receive(&mut self, message: &Value) {
        let mut message = message.clone();
        if message["role"] == "assistant" {
            self.open = OpenAiChat.tool_calls(&message);
        }
        if message["role"] == "tool"
            && let Some(content) = message["content"].as_str()
        {
            self.totals.results += 1;
            let open = self
                .open
                .iter()
                .position(|call| message["tool_call_id"] == call.id);
            let call = open
                .map(|index| self.open.remove(index))
                .unwrap_or_default();
            let shown = self
                .reduction
                .truncate(&call, content)
                .await
                .expect("a store that works");
            let text = shown.text();
            assert_eq!(shown.parts.len(), 1, "{}", self.at);
            assert_eq!(
                shown.report.is_change(),
                text != content,
                "{}: the report says what was done",
                self.at
            );
            if text != content {
                assert!(
                    text.len() < content.len(),
                    "{}: {} is no gain",
                    self.at,
                    text.len()
                );
                self.totals.truncated += 1;
                self.edits
                    .push((self.messages.len(), self.messages.len(), text.clone()));
                message["content"] = Value::String(text);
            }
        }
        self.messages.push(message);
    }

    /// Runs the pass before a model call. Returns its report and the changed messages' indexes.
    async fn before_model(&mut self, store: &Memory) -> (Report, Vec<usize>) {
        self.totals.model_calls += 1;
        let (before, stored) = (self.messages.clone(), store.len());
        let report = pass(&self.reduction, &self.trace.tools, &mut self.messages).await;
        assert_eq!(before.len(), self.messages.len(), "{}", self.at);
        let changed: Vec<usize> = (0..before.len())
            .filter(|index| before[*index] != self.messages[*index])
            .collect();
        let mut reported: Vec<usize> = report
            .decisions
            .iter()
            .filter(|decision| decision.outcome.is_change())
            .map(|decision| decision.message.expect("a pass names the message"))
            .collect();
        reported.sort_unstable();
        reported.dedup();
        assert_eq!(
            changed, reported,
            "{}: what changed is what the report says",
            self.at
        );
        if changed.is_empty() {
            assert_eq!(
                store.len(),
                stored,
                "{}: a pass that changes nothing stores nothing",
                self.at
            );
            return (report, changed);
        }
        self.totals.passes += 1;
        self.assert_sums(&report, before);
        for index in &changed {
            self.edits.push((
                self.messages.len(),
                *index,
                self.messages[*index].to_string(),
            ));
        }
        (report, changed)
    }

    /// Checks that the report's sums are the difference between the two conversations.
    fn assert_sums(&self, report: &Report, mut before: Vec<Value>) {
        let mut after = self.messages.clone();
        let count = |messages: &mut Vec<Value>| {
            self.reduction
                .count_tokens(&Messages::new(OpenAiChat, messages), &self.trace.tools)
        };
        let (before, after) = (count(&mut before), count(&mut after));
        assert_eq!(before - after, report.cleared_input_tokens(), "{}", self.at);
        for Decision {
            bytes,
            tokens,
            outcome,
            ..
        } in &report.decisions
        {
            let tokens = tokens.unwrap_or_default();
            let is_less = |change: Change| {
                if outcome.is_change() {
                    change.after < change.before
                } else {
                    true
                }
            };
            assert!(
                is_less(*bytes) && tokens.after <= tokens.before,
                "{}: {bytes:?} {tokens:?}",
                self.at
            );
        }
    }

    /// Checks that every replacement reads back byte for byte and that all else is unchanged.
    async fn verify(&self) -> Totals {
        let mut totals = self.totals;
        assert_eq!(
            self.messages.len(),
            self.trace.messages.len(),
            "{}",
            self.at
        );
        for (now, original) in self.messages.iter().zip(&self.trace.messages) {
            let mut restored = now.clone();
            if let (Some(shown), Some(content)) =
                (now["content"].as_str(), original["content"].as_str())
                && shown != content
            {
                assert_eq!(
                    now["role"], "tool",
                    "{}: only results are replaced",
                    self.at
                );
                let hint = self.read_back(shown, content).await;
                totals.cleared += usize::from(hint.kind == Kind::Cleared);
                totals.verified += 1;
                restored["content"] = original["content"].clone();
            }
            let calls = original["tool_calls"].as_array().map_or(0, Vec::len);
            for call in 0..calls {
                let arguments =
                    |message: &Value| message["tool_calls"][call]["function"]["arguments"].clone();
                let (shown, asked) = (arguments(now), arguments(original));
                if shown == asked {
                    continue;
                }
                let [shown, original] = [&shown, &asked].map(|text| text.as_str().expect("text"));
                let replaced = replaced_arguments(shown, original)
                    .unwrap_or_else(|| panic!("{}: not only texts: {shown:.300}", self.at));
                for (shown, original) in replaced {
                    self.read_back(&shown, &original).await;
                }
                totals.arguments += 1;
                totals.verified += 1;
                restored["tool_calls"][call]["function"]["arguments"] = asked;
            }
            // Compared as text, because the order of keys counts.
            assert_eq!(
                restored.to_string(),
                original.to_string(),
                "{}: something else was changed",
                self.at
            );
        }
        totals
    }

    async fn read_back(&self, shown: &str, original: &str) -> Hint {
        let hint =
            Hint::parse(shown).unwrap_or_else(|| panic!("{}: no hint: {shown:.300}", self.at));
        let location = hint
            .location
            .as_ref()
            .unwrap_or_else(|| panic!("{}: not saved: {shown:.300}", self.at));
        let content = self
            .reduction
            .read_original(location)
            .await
            .expect("our own")
            .expect("stored");
        assert!(
            content == original,
            "{}: what is stored at {location} is not what was replaced",
            self.at
        );
        assert_eq!(hint.bytes, original.len() as u64, "{}", self.at);
        assert!(shown.len() < original.len(), "{}: never longer", self.at);
        hint
    }
}

/// A loop that passes in the untouched history every turn (C13).
struct OverOriginals<'t>(Loop<'t>);

impl OverOriginals<'_> {
    async fn assert_sends_the_same(&self, live: &Loop<'_>, changed: &[usize]) {
        let mut sent = self.0.messages.clone();
        pass(&self.0.reduction, &live.trace.tools, &mut sent).await;
        let other = sent
            .iter()
            .zip(&live.messages)
            .position(|(one, two)| one != two);
        if let Some(index) = other {
            let (one, two) = (&sent[index], &live.messages[index]);
            let turn = live.messages.len();
            panic!(
                "{}: after {turn} messages, message {index} is\n{one:.600}\nover originals and in place\n{two:.600}",
                live.at
            );
        }
        for index in changed {
            assert_eq!(
                sent[*index].to_string(),
                live.messages[*index].to_string(),
                "{}",
                live.at
            );
        }
    }
}

async fn pass(reduction: &ToolReduction, tools: &[Value], messages: &mut [Value]) -> Report {
    let mut conversation = Messages::new(OpenAiChat, messages);
    let mut turn = Turn {
        tools,
        ..Turn::new(&mut conversation)
    };
    reduction
        .clear_turn(&mut turn)
        .await
        .expect("a store that works")
}

/// Checks that a pass over the output of a pass changes nothing and stores nothing.
async fn assert_stable(
    reduction: &ToolReduction,
    live: &Loop<'_>,
    mut messages: Vec<Value>,
    store: &Memory,
) {
    let stored = store.len();
    let report = pass(reduction, &live.trace.tools, &mut messages).await;
    assert!(
        !report.is_change(),
        "{}: a second pass changes {:?}",
        live.at,
        report.decisions
    );
    assert!(
        messages == live.messages,
        "{}: a second pass changes messages and does not say so",
        live.at
    );
    assert_eq!(store.len(), stored, "{}: a second pass stores", live.at);
}

fn json(messages: &[Value]) -> String {
    serde_json::to_string(messages).expect("JSON")
}
