//! The clear pass: before a model call, over the token threshold, old results are stored and
//! replaced by hints.
//!
//! Three steps, each its own type: a [`Plan`] is decided without I/O, [`Plan::commit`] stores,
//! [`Committed::apply`] changes the messages and cannot fail.

mod apply;
mod choice;
mod commit;
mod compare;
mod decisions;
mod gain;
mod given;
mod known;
mod ledger;
mod lines;
mod outages;
mod pays;
mod plan;
mod planner;
mod repeat;
mod rewrite;
mod survey;

use std::fmt;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use serde_json::Value;

use crate::backend::{Backend, Location};
use crate::config::Policy;
use crate::fingerprint::Fingerprint;
use crate::handler::Replacement;
use crate::hint::{Facts, Hint, Kind};
use crate::preview::Previewer;
use crate::report::{Decision, Reason, Report};
use crate::session::Session;
use crate::store::Stored;
use crate::store::Target;
use choice::Choice;
use ledger::{Anchor, Origin, Put};

pub(crate) use ledger::Ledger;
pub(crate) use rewrite::pass;

/// What a loop knows of the model call beside its messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// The schemas of the tools, as they are sent. They count against the threshold.
    pub tools: &'a [Value],
    /// The input tokens that the provider counted for the last request, cached ones included. With
    /// it, the pass counts only what came since.
    pub last_usage: Option<u64>,
    /// Whether the provider has nothing of the last request in its cache any more: see
    /// [`BeforeModel`](crate::BeforeModel).
    pub cache_is_cold: bool,
}

/// What a pass is going to do. Nothing is stored and nothing is changed yet.
#[must_use = "a plan does nothing until it is committed and applied"]
pub struct Plan {
    session: Session,
    ledger: Arc<Mutex<Ledger>>,
    edits: Vec<Edit>,
    /// How many of the edits are taken.
    choice: Choice,
    /// What the count was anchored to.
    anchor: Option<Anchor>,
    report: Report,
}

impl Plan {
    /// What is going to happen, with sizes as they will be where a name is not taken.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }
}

/// What a pass has stored and is going to change.
#[must_use = "what is stored does nothing until it is applied"]
pub struct Committed {
    session: Session,
    ledger: Arc<Mutex<Ledger>>,
    ready: Vec<Ready>,
    /// What was compared, and stays for good.
    settled: Vec<(Fingerprint, Reason)>,
    anchor: Option<Anchor>,
    report: Report,
}

/// Content is not shown.
impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("edits", &self.edits.len())
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}

/// Content is not shown.
impl fmt::Debug for Committed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Committed")
            .field("ready", &self.ready.len())
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}

/// One result or one call's arguments that are to be replaced.
#[derive(Debug)]
struct Edit {
    /// Its index among the report's decisions.
    decision: usize,
    place: Place,
    /// What stands there now.
    original: Origin,
    action: Action,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    Result { message: usize, slot: usize },
    Arguments { message: usize, call: usize },
}

#[derive(Debug)]
enum Action {
    /// Put there what was put there before.
    Repeat(Arc<Put>),
    /// Put there one line for each part, if this is one of the oldest that are enough.
    Hints(Decision, Vec<Line>),
    /// The same, but what a handler wants.
    Given(Decision, Box<Given>),
}

/// What a handler wants to be put in the place of a result.
#[derive(Debug)]
struct Given {
    replacement: Replacement,
    /// Where its content is going to be stored.
    store: Option<(Arc<dyn Backend>, Target)>,
    /// The call whose arguments are replaced with it.
    arguments: Option<Box<GivenArguments>>,
}

#[derive(Debug)]
struct GivenArguments {
    /// Its index among the report's decisions.
    index: usize,
    decision: Decision,
    place: Place,
    original: Origin,
    text: String,
}

/// What one part of a result becomes.
#[derive(Debug)]
enum Line {
    /// A hint at where the content is going to be stored.
    Store(Box<ToStore>),
    /// A short hint at where the original is already, once what is stored there has been compared
    /// with what is shown.
    Shorten(Box<ToShorten>),
    /// A text that needs no store, and where the originals of it are.
    Ready(String, Vec<Location>),
}

#[derive(Debug)]
struct ToStore {
    backend: Arc<dyn Backend>,
    target: Target,
    content: Bytes,
    draft: Draft,
}

#[derive(Debug)]
struct ToShorten {
    /// What is shown: one hint or several.
    hints: Vec<Shown>,
    /// What to do if what is stored does not match: it is a text like any other.
    otherwise: Box<Line>,
}

/// A hint that is shown.
#[derive(Debug)]
struct Shown {
    hint: Hint,
    /// What it leads to; `None` if it stays as it is.
    stored: Option<Stored>,
    draft: Draft,
    /// How what is stored is previewed, and in how many bytes.
    preview: (Previewer, usize),
    /// The bytes that a preview of it took when it was truncated.
    was_previewed_in: usize,
}

/// The hint that is to be, but for its location.
#[derive(Clone, Debug)]
struct Draft {
    hint: Hint,
    tool: String,
    mime: Option<String>,
    is_arguments: bool,
    /// How many texts were joined, once that is known.
    parts: usize,
    /// What it says, if that is not to be said anew.
    words: Option<String>,
}

impl Draft {
    fn render(&self, session: &Session, location: Option<Location>) -> String {
        let mut hint = self.hint.clone();
        hint.location = location;
        if let Some(words) = &self.words {
            hint.prose.clone_from(words);
            return hint.render();
        }
        let facts = Facts {
            tool: &self.tool,
            reader: session.reader(),
            mime: self.mime.as_deref(),
            is_arguments: self.is_arguments,
            parts: self.parts,
        };
        hint.prose = session.prose().of_hint(&hint, facts);
        hint.render()
    }
}

/// An edit whose content is stored.
#[derive(Debug)]
struct Ready {
    decision: usize,
    place: Place,
    original: Origin,
    replacement: Arc<Put>,
    /// Whether the ledger has it already.
    is_repeat: bool,
    /// The decision without which this is not done, nor that without this.
    with: Option<usize>,
}

/// Cleared arguments, as JSON that any provider accepts.
fn cleared_arguments(hint: &str) -> String {
    serde_json::json!({"_cleared": hint}).to_string()
}

/// Whether arguments were cleared. Their hints show no preview, and are not much longer in any
/// spelling of the JSON.
fn is_cleared(session: &Session, policy: &Policy, arguments: &str) -> bool {
    let value: Option<Value> = serde_json::from_str(arguments).ok();
    let hint = value
        .as_ref()
        .and_then(|value| value.get("_cleared")?.as_str())
        .unwrap_or_default();
    let is_short = arguments.len() <= cleared_arguments(hint).len() * 2;
    let hints = session
        .own_hints(policy, hint)
        .filter(|_| is_short)
        .unwrap_or_default();
    matches!(&hints[..], [own] if own.hint.kind == Kind::Cleared && own.hint.preview.is_empty())
}
