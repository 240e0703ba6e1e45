//! Whole agent transcripts, converted to every wire format and replayed as in a loop: they stay
//! valid, lossless and stable.
//!
//! `OFFCUT_TRACES` names a folder as for the test `traces`. Without it, the test says that it was
//! skipped, and passes.
// Helpers may unwrap, as tests may.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "trace_formats/convert.rs"]
mod convert;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use offcut::backend::Memory;
use offcut::format::{Format, PartRef, Piece, WireFormat};
use offcut::hint::Hint;
use offcut::{TokenCounter, ToolReduction};
use offcut_testkit::replaced_arguments;
use serde_json::Value;

use convert::{Converter, Step};

/// Number of formats replayed for each file: all with optimization, one without.
const FORMATS_EACH: usize = if cfg!(debug_assertions) {
    1
} else {
    WireFormat::ALL.len()
};

#[test]
fn l1_l4_l5_transcripts_stay_valid_lossless_and_stable_in_every_format() {
    let files = files();
    if files.is_empty() {
        let skipped = "SKIPPED trace_formats: OFFCUT_TRACES names no folder with JSON files";
        writeln!(std::io::stderr(), "{skipped}").expect("stderr");
        return;
    }
    let (next, totals) = (
        AtomicUsize::new(0),
        Mutex::new([Totals::default(); WireFormat::ALL.len()]),
    );
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(file) = files.get(index) else { break };
                    for nth in (index..index + FORMATS_EACH).map(|nth| nth % WireFormat::ALL.len())
                    {
                        let done = replay(file, WireFormat::ALL[nth]);
                        totals.lock().unwrap()[nth].add(done);
                    }
                }
            });
        }
    });
    for (format, totals) in WireFormat::ALL.iter().zip(*totals.lock().unwrap()) {
        writeln!(std::io::stderr(), "{format}: {totals:?}").expect("stderr");
        assert!(
            files.len() < 40 || totals.results > 0 && totals.arguments > 0,
            "nothing was replaced in {format}"
        );
    }
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
    files.sort();
    files
}

/// Counts of replacements that read back byte for byte.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    messages: usize,
    passes: usize,
    results: usize,
    arguments: usize,
}

impl Totals {
    fn add(&mut self, other: Self) {
        let Self {
            messages,
            passes,
            results,
            arguments,
        } = other;
        self.messages += messages;
        self.passes += passes;
        self.results += results;
        self.arguments += arguments;
    }
}

fn replay(file: &Path, format: WireFormat) -> Totals {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let trace: Value = serde_json::from_slice(&std::fs::read(file).expect("a readable file"))
        .expect("a transcript");
    let at = format!("{} as {format}", file.display());
    let turns = convert::turns(trace["messages"].as_array().expect("messages"));
    runtime.block_on(live(&turns, format, &at))
}

fn reduction(store: &Memory) -> ToolReduction {
    let builder = ToolReduction::builder()
        .token_counter(TokenCounter::Estimate)
        .max_length_for_trunc(2_000)
        .preview_length(600)
        .max_tokens_for_clear(8_000)
        .clear_tool_inputs(true)
        .stub_length(150);
    builder
        .backend(store.clone())
        .build()
        .expect("a configuration")
}

async fn live(turns: &[Step], format: WireFormat, at: &str) -> Totals {
    let store = Memory::named("t").expect("a safe name");
    let reduction = reduction(&store);
    let (mut untouched, mut live) = (Converter::new(format), Converter::new(format));
    let mut totals = Totals::default();
    for turn in turns {
        match turn {
            Step::Answer(call, text) => {
                untouched.answer(call, vec![text.as_str().into()]);
                let shown = reduction
                    .truncate(call, text.as_str())
                    .await
                    .expect("a store that works");
                live.answer(call, shown.parts);
            }
            Step::Say(role, text) => {
                untouched.say(role, text);
                live.say(role, text);
            }
            Step::Ask(text, calls) => {
                assert_eq!(
                    offcut_testkit::validate(format, &live.messages),
                    Ok(()),
                    "{at}: before a call of the model"
                );
                let report = reduction
                    .clear(&format, &mut live.messages)
                    .await
                    .expect("a store that works");
                assert_eq!(
                    offcut_testkit::validate(format, &live.messages),
                    Ok(()),
                    "{at}: after a pass"
                );
                totals.passes += usize::from(report.is_change());
                untouched.ask(text, calls);
                live.ask(text, calls);
            }
        }
    }
    reduction
        .clear(&format, &mut live.messages)
        .await
        .expect("a store that works");
    assert_eq!(
        offcut_testkit::validate(format, &untouched.messages),
        Ok(()),
        "{at}: as it was converted"
    );
    assert_eq!(
        offcut_testkit::validate(format, &live.messages),
        Ok(()),
        "{at}: at the end"
    );

    lossless(
        &reduction,
        format,
        &untouched.messages,
        &live.messages,
        at,
        &mut totals,
    )
    .await;
    stable(&store, format, &live.messages, at).await;
    changes_nothing_where_nothing_is_to_do(format, &untouched.messages, at).await;
    totals.messages = live.messages.len();
    totals
}

/// The contents that a pass may replace, and all else as text.
#[derive(Default)]
struct Seen {
    slots: Vec<String>,
    arguments: Vec<String>,
    rest: String,
}

fn seen(format: WireFormat, messages: &[Value]) -> Seen {
    let mut all = Seen::default();
    for message in messages {
        let mut is_open = false;
        format.visit(message, &mut |piece| match piece {
            Piece::Result(_) => {
                is_open = true;
                all.slots.push(String::new());
                all.rest.push_str(&format!("{piece:?}\n"));
            }
            Piece::Role(_) => {
                is_open = false;
                all.rest.push_str(&format!("{piece:?}\n"));
            }
            Piece::Content(PartRef::Text(text)) if is_open => {
                all.slots.last_mut().expect("a slot").push_str(text);
            }
            Piece::Call(call) => {
                all.rest
                    .push_str(&format!("call {:?} {:?}\n", call.id, call.name));
                all.arguments.push(call.arguments.to_string());
            }
            _ => all.rest.push_str(&format!("{piece:?}\n")),
        });
    }
    all
}

/// Checks that every replacement reads back byte for byte and that all else is unchanged.
async fn lossless(
    reduction: &ToolReduction,
    format: WireFormat,
    before: &[Value],
    after: &[Value],
    at: &str,
    totals: &mut Totals,
) {
    let [before, after] = [before, after].map(|messages| seen(format, messages));
    assert!(
        before.rest == after.rest,
        "{at}: something else than results and arguments changed"
    );
    assert_eq!(
        (before.slots.len(), before.arguments.len()),
        (after.slots.len(), after.arguments.len()),
        "{at}"
    );
    for (original, shown) in before
        .slots
        .iter()
        .zip(&after.slots)
        .filter(|(original, shown)| original != shown)
    {
        read_back(reduction, shown, original, at).await;
        totals.results += 1;
    }
    for (original, shown) in before
        .arguments
        .iter()
        .zip(&after.arguments)
        .filter(|(original, shown)| original != shown)
    {
        let replaced = replaced_arguments(shown, original)
            .unwrap_or_else(|| panic!("{at}: not only texts: {shown:.300}"));
        for (shown, original) in replaced {
            read_back(reduction, &shown, &original, at).await;
        }
        totals.arguments += 1;
    }
}

async fn read_back(reduction: &ToolReduction, shown: &str, original: &str, at: &str) {
    let hint = Hint::parse(shown).unwrap_or_else(|| panic!("{at}: no hint: {shown:.300}"));
    let location = hint
        .location
        .unwrap_or_else(|| panic!("{at}: not saved: {shown:.300}"));
    let content = reduction
        .read_original(&location)
        .await
        .expect("our own")
        .expect("stored");
    assert!(
        content == original && shown.len() < original.len(),
        "{at}: {location} is not what was replaced"
    );
}

/// Checks that another process finds nothing left to do after a JSON round trip.
async fn stable(store: &Memory, format: WireFormat, messages: &[Value], at: &str) {
    let stored = store.len();
    let written = serde_json::to_string(messages).expect("JSON");
    let mut again: Vec<Value> = serde_json::from_str(&written).expect("JSON");
    let report = reduction(store)
        .clear(&format, &mut again)
        .await
        .expect("a store that works");
    assert!(
        !report.is_change() && store.len() == stored,
        "{at}: a second pass changes something"
    );
    assert!(
        serde_json::to_string(&again).expect("JSON") == written,
        "{at}: a second pass changes bytes"
    );
}

/// Checks that a pass with nothing to do leaves the bytes of a plain JSON round trip.
async fn changes_nothing_where_nothing_is_to_do(format: WireFormat, messages: &[Value], at: &str) {
    let written = serde_json::to_string(messages).expect("JSON");
    let mut parsed: Vec<Value> = serde_json::from_str(&written).expect("JSON");
    let store = Memory::new();
    let reduction = ToolReduction::recommended(store.clone())
        .max_tokens_for_clear(u64::MAX)
        .build()
        .expect("a configuration");
    let report = reduction
        .clear(&format, &mut parsed)
        .await
        .expect("a store that works");
    assert!(
        !report.is_change() && store.is_empty(),
        "{at}: nothing was to do"
    );
    assert!(
        serde_json::to_string(&parsed).expect("JSON") == written,
        "{at}: a pass with nothing to do changes bytes"
    );
}
