//! A model without a network: a script that reacts to its input.
//!
//! It treats hints as models do: where a result was truncated or cleared, it takes the location
//! from the hint and asks for the page or the lines that it needs. Each step of the script runs at
//! most once, so the script always ends with an answer.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use offcut::agent::{ChatModel, ModelError, ModelReply, ModelRequest};
use offcut::format::Message;
use offcut::hint::{Hint, Kind};
use offcut::{Part, ToolCall, ToolReduction};
use serde_json::{Value, json};

use crate::messages::{READER, count_tokens, text_of};

/// Matches lines with a definition, in many languages.
const DEFINITIONS: &str = r"^\s*(pub(\(\w+\))? |async |export |static )*(fn|struct|enum|trait|class|def|function|interface|func) \w+";
/// Matches the definitions that a reader of a new tree looks for first.
const CONTRACTS: &str = r"\b(trait|class|interface) \w+";
const LOOSE_ENDS: &str = r"\b(TODO|FIXME|HACK|unsafe|unwrap|panic|expect)\b";
/// In bytes. A model would not ask for a longer text as a whole.
const MAX_READ: u64 = 256 * 1024;

const SCRIPT: &[fn(&View) -> Option<Turn>] = &[
    look_around,
    rest_of_the_listing,
    history,
    |view| read("The largest files first.", &view.notes.largest(), 0..2),
    middle_of_a_truncated_file,
    |view| read("Where does it begin?", &view.notes.entries(), 0..3),
    definitions,
    contracts,
    |view| read("Some medium-sized files.", &view.notes.middling(), 0..3),
    |view| read("The next largest files.", &view.notes.largest(), 2..4),
    loose_ends,
    tests_in_what_was_cleared,
    |view| read("More medium-sized files.", &view.notes.middling(), 3..6),
    |view| read("More large files.", &view.notes.largest(), 4..6),
    middle_of_a_truncated_file,
    |view| read("The last medium-sized files.", &view.notes.middling(), 6..9),
    back_to_a_cleared_file,
];

/// The text and the calls of one turn.
struct Turn {
    says: String,
    calls: Vec<(&'static str, Value)>,
}

/// The model's knowledge at the start of a turn.
struct View<'a> {
    notes: &'a Notes,
    /// Results that are shown shortened, oldest first, each with its tool.
    hints: &'a [(String, Hint)],
}

fn look_around(_: &View) -> Option<Turn> {
    ask(
        "Let me look around.",
        vec![("list_files", json!({})), run("ls", &["-la"])],
    )
}

/// Asks for the large files in a listing of which only the two ends are shown.
fn rest_of_the_listing(view: &View) -> Option<Turn> {
    let path = view
        .newest(Kind::Truncated, "list_files")?
        .location
        .as_ref()?
        .as_str();
    ask(
        "The listing is cut. Which files are large?",
        vec![(READER, json!({"path": path, "pattern": "^ *[0-9]{5,6} "}))],
    )
}

/// Also reads a guessed file name, as models do. The error is short and stays in the context.
fn history(_: &View) -> Option<Turn> {
    let log = run("git", &["log", "--stat", "--max-count=30", "--", "."]);
    ask(
        "What changed recently?",
        vec![log, ("read", json!({"path": "docs/overview.txt"}))],
    )
}

fn read(says: &str, files: &[&str], which: Range<usize>) -> Option<Turn> {
    let files = files.get(which.start..which.end.min(files.len()))?;
    ask(
        says,
        files
            .iter()
            .map(|path| ("read", json!({"path": path})))
            .collect(),
    )
}

fn middle_of_a_truncated_file(view: &View) -> Option<Turn> {
    let hint = view.newest(Kind::Truncated, "read")?;
    let path = hint.location.as_ref()?.as_str();
    // A text with few, very long lines is paged by bytes.
    let offset = match hint.lines? {
        0..3 => json!(format!("1+{}", hint.bytes / 2)),
        lines => json!(lines / 2),
    };
    ask(
        "What is in the middle?",
        vec![(READER, json!({"path": path, "offset": offset, "limit": 40}))],
    )
}

fn definitions(view: &View) -> Option<Turn> {
    let files: Vec<&str> = view.notes.largest().into_iter().take(30).collect();
    let mut calls = vec![("grep", json!({"pattern": DEFINITIONS}))];
    if !files.is_empty() {
        calls.push(run("wc", &[&["-l", "--"], files.as_slice()].concat()));
    }
    ask("What is defined here, and how long is it?", calls)
}

fn contracts(view: &View) -> Option<Turn> {
    let path = view
        .newest(Kind::Truncated, "grep")?
        .location
        .as_ref()?
        .as_str();
    ask(
        "Too many. Only the traits and classes.",
        vec![(READER, json!({"path": path, "pattern": CONTRACTS}))],
    )
}

fn loose_ends(_: &View) -> Option<Turn> {
    ask(
        "Are there loose ends?",
        vec![("grep", json!({"pattern": LOOSE_ENDS}))],
    )
}

fn tests_in_what_was_cleared(view: &View) -> Option<Turn> {
    let (_, hint) = view
        .hints
        .iter()
        .find(|(_, hint)| hint.kind == Kind::Cleared)?;
    let path = hint.location.as_ref()?.as_str();
    ask(
        "Were there tests in the first result?",
        vec![(READER, json!({"path": path, "pattern": "(?i)test"}))],
    )
}

fn back_to_a_cleared_file(view: &View) -> Option<Turn> {
    let (_, hint) = view
        .hints
        .iter()
        .find(|(tool, hint)| hint.kind == Kind::Cleared && tool == "read")?;
    let path = hint.location.as_ref()?.as_str();
    ask(
        "Back to the first file, now cleared.",
        vec![(READER, json!({"path": path, "offset": 1, "limit": 30}))],
    )
}

fn ask(says: &str, calls: Vec<(&'static str, Value)>) -> Option<Turn> {
    Some(Turn {
        says: says.to_owned(),
        calls,
    })
    .filter(|turn| !turn.calls.is_empty())
}

fn run(program: &str, args: &[&str]) -> (&'static str, Value) {
    ("run", json!({"program": program, "args": args}))
}

impl View<'_> {
    /// The newest result of `tool` whose hint is of this kind.
    fn newest(&self, kind: Kind, tool: &str) -> Option<&Hint> {
        self.hints
            .iter()
            .rev()
            .find(|(of, hint)| of == tool && hint.kind == kind)
            .map(|(_, hint)| hint)
    }
}

/// The model's memory, from which the script draws its conclusions.
#[derive(Debug, Default)]
struct Notes {
    /// Index of the next step of the script.
    step: usize,
    /// Number of calls made so far.
    calls: usize,
    /// The files seen in listings, with their sizes in bytes.
    files: BTreeMap<String, u64>,
    /// First lines of the definitions found.
    found: Vec<String>,
}

impl Notes {
    /// Records the new facts in the last results.
    fn look(&mut self, messages: &[Message]) {
        let new = messages
            .iter()
            .rev()
            .take_while(|message| matches!(message, Message::Tool { .. }));
        for (name, text) in new.filter_map(result) {
            let hint = Hint::parse(text);
            let shown = hint.as_ref().map_or(text, |hint| &hint.preview);
            let is_matches = hint.as_ref().is_some_and(|hint| hint.kind == Kind::Matches);
            if name == "list_files" || self.step == 2 && is_matches {
                self.files.extend(shown.lines().filter_map(listed));
            } else if is_matches && self.found.is_empty() {
                self.found = shown
                    .lines()
                    .take(3)
                    .map(|line| without_number(line).to_owned())
                    .collect();
            }
        }
    }

    /// The files worth reading, largest first.
    fn largest(&self) -> Vec<&str> {
        let is_source = |path: &str| {
            ![".lock", ".snap", ".jsonl"]
                .iter()
                .any(|ending| path.ends_with(ending))
        };
        let mut files: Vec<_> = self
            .files
            .iter()
            .filter(|(path, size)| is_source(path) && **size <= MAX_READ)
            .collect();
        files.sort_by_key(|(path, size)| (Reverse(**size), path.as_str()));
        files.into_iter().map(|(path, _)| path.as_str()).collect()
    }

    /// The files of a few thousand bytes, largest first.
    fn middling(&self) -> Vec<&str> {
        let is_middling =
            |path: &&str| (2_000..7_500).contains(&self.files[*path]) && !is_entry(path);
        self.largest().into_iter().filter(is_middling).collect()
    }

    /// The files that newcomers open first.
    fn entries(&self) -> Vec<&str> {
        let mut files: Vec<_> = self
            .largest()
            .into_iter()
            .filter(|path| is_entry(path))
            .collect();
        files.sort_by_key(|path| (path.matches(['/', '\\']).count(), *path));
        files
    }

    fn answer(&self) -> String {
        if self.files.is_empty() {
            return "There are no text files here.".to_owned();
        }
        let bytes: u64 = self.files.values().sum();
        let largest: Vec<_> = self.largest().into_iter().take(3).collect();
        let (count, largest) = (self.files.len(), largest.join(", "));
        let mut answer = format!(
            "I saw {count} text files of {bytes} bytes in total. The largest are {largest}."
        );
        if !self.found.is_empty() {
            answer.push_str(
                "\nOne result was too long to show. I read this part of the stored copy:\n",
            );
            answer.push_str(&self.found.join("\n"));
        }
        answer
    }
}

fn is_entry(path: &str) -> bool {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let stem = name.split('.').next().unwrap_or(name);
    [
        "README",
        "DESIGN",
        "Cargo",
        "package",
        "pyproject",
        "lib",
        "main",
        "index",
        "__init__",
    ]
    .contains(&stem)
}

/// Parses `   1234  src/lib.rs`, perhaps after a line number and a colon.
fn listed(line: &str) -> Option<(String, u64)> {
    let (size, path) = without_number(line).trim_start().split_once("  ")?;
    Some((path.to_owned(), size.parse().ok()?))
}

fn without_number(line: &str) -> &str {
    line.split_once(':')
        .filter(|(number, _)| number.parse::<u64>().is_ok())
        .map_or(line, |(_, text)| text)
}

/// The tool's name and the text shown of its result.
fn result(message: &Message) -> Option<(&str, &str)> {
    match message {
        Message::Tool { name, content, .. } => Some((name, text_of(content)?)),
        _ => None,
    }
}

/// The model: the script and its memory.
#[derive(Debug)]
pub(crate) struct ScriptedModel {
    notes: Mutex<Notes>,
    /// Counts the model's input, as a provider would.
    reduction: ToolReduction,
}

impl ScriptedModel {
    pub(crate) fn new(reduction: ToolReduction) -> Self {
        Self {
            notes: Mutex::default(),
            reduction,
        }
    }

    fn next(&self, messages: &[Message]) -> Message {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.look(messages);
        let hints: Vec<_> = messages
            .iter()
            .filter_map(result)
            .filter_map(|(tool, text)| Some((tool.to_owned(), Hint::parse(text)?)))
            .collect();
        while let Some(step) = SCRIPT.get(notes.step) {
            notes.step += 1;
            let Some(Turn { says, calls }) = step(&View {
                notes: &notes,
                hints: &hints,
            }) else {
                continue;
            };
            let first = notes.calls + 1;
            notes.calls += calls.len();
            let calls = calls.into_iter().zip(first..);
            let calls = calls.map(|((tool, arguments), n)| {
                ToolCall::new(format!("call_{n}"), tool, arguments.to_string())
            });
            return Message::Assistant {
                content: vec![Part::Text(says)],
                calls: calls.collect(),
            };
        }
        Message::assistant(notes.answer())
    }
}

#[async_trait]
impl ChatModel for ScriptedModel {
    async fn complete(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let input_tokens = Some(count_tokens(
            &self.reduction,
            request.messages,
            request.tools,
        ));
        Ok(ModelReply {
            message: self.next(request.messages),
            input_tokens,
        })
    }
}
