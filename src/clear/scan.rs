//! Counts the tokens of a conversation. Known texts cost a hash of their bytes, and no allocation.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;
use tokio::runtime::Handle;

use super::pass::Pass;
use crate::fingerprint::Fingerprint;
use crate::format::{Call, Conversation, PartRef, Piece};
use crate::middleware::Turn;
use crate::report::CountKind;
use crate::rounds::{is_compaction, last_turn, unknown_with};
use crate::slots::Anchor;
use crate::tokens::{Meter, PER_MESSAGE, Text, media_cost};

/// If new texts have at least this many bytes in total, they are counted off the async thread:
/// about two milliseconds of work.
const LARGE: u64 = 32 * 1024;

/// The findings of one visit of a conversation.
pub(super) struct Scan<'c> {
    /// Tokens of all messages and tools; with an anchor, only of those added since.
    pub(super) tokens: u64,
    pub(super) count_kind: CountKind,
    pub(super) anchor: Option<Anchor>,
    /// Texts that were never counted before.
    new: Vec<(Fingerprint, Text<'c>)>,
}

impl<'c> Scan<'c> {
    /// Visits a conversation and counts new texts, on a blocking thread if that takes long. `None`
    /// if nothing is ever cleared.
    pub(super) async fn counted(pass: &Pass, turn: &'c Turn<'_>) -> Option<Self> {
        let mut scan = pass.session.clears().then(|| Self::new(pass, turn))?;
        scan.prepare(&pass.session.meter).await;
        scan.count(&pass.session.meter);
        Some(scan)
    }

    /// Visits what must be counted. A conversation that is known to be within the threshold is not
    /// counted.
    fn new(pass: &Pass, turn: &'c Turn<'_>) -> Self {
        let meter = &pass.session.meter;
        let conversation: &'c dyn Conversation = &*turn.conversation;
        // The last request ended where the last assistant turn begins.
        let anchor = turn.last_usage.and_then(|usage| {
            let last_turn = last_turn(conversation)?;
            Some(Anchor { usage, last_turn })
        });
        let from = anchor.map_or(0, |anchor| anchor.last_turn);
        let tools = if anchor.is_some() { &[] } else { turn.tools };
        let threshold = pass.threshold();
        let limit = match anchor {
            // Tokens that may have been added since.
            Some(anchor) => threshold
                .saturating_add(pass.memory.known().saved_since(anchor))
                .checked_sub(anchor.usage),
            None => Some(threshold),
        };
        let mut scan = Self::empty(anchor);
        if let Some(bound) = limit.and_then(|limit| meter.bound(conversation, from, tools, limit)) {
            (scan.tokens, scan.count_kind) = (bound, CountKind::UpperBound);
            return scan;
        }
        scan.visit(meter, conversation, from, tools)
    }

    fn empty(anchor: Option<Anchor>) -> Self {
        Self {
            tokens: 0,
            count_kind: CountKind::Counted,
            anchor,
            new: Vec::new(),
        }
    }

    /// Visits `tools`, and the messages starting at `from`.
    fn visit(
        self,
        meter: &Meter,
        conversation: &'c dyn Conversation,
        from: usize,
        tools: &'c [Value],
    ) -> Self {
        let mut visitor = Visitor {
            meter,
            in_result: false,
            programs: HashSet::new(),
            is_for_program: false,
            found: self,
        };
        for message in from..conversation.len() {
            visitor.message(conversation, message);
        }
        for tool in loaded(tools, conversation) {
            visitor.text(tool.to_string().into());
        }
        visitor.found
    }

    /// Counts the new texts.
    fn count(&mut self, meter: &Meter) {
        for (print, text) in self.new.drain(..) {
            self.tokens = self.tokens.saturating_add(meter.count(print, &text));
        }
    }

    /// Counts the new texts on a blocking thread if that takes long. The meter keeps the counts.
    async fn prepare(&self, meter: &Meter) {
        let bytes: u64 = self.new.iter().map(|(print, _)| print.bytes()).sum();
        if bytes >= LARGE
            && let Ok(runtime) = Handle::try_current()
        {
            let texts: Vec<_> = (self.new.iter())
                .map(|(print, text)| (*print, text.clone().into_owned()))
                .collect();
            let own = meter.clone();
            let count = move || {
                for (print, text) in &texts {
                    own.count(*print, text);
                }
            };
            // If this fails, `count` does it here.
            let _ = runtime.spawn_blocking(count).await;
        }
    }
}

/// Counts the tokens of a conversation and of the schemas of its tools.
pub(crate) fn count_tokens(meter: &Meter, conversation: &dyn Conversation, tools: &[Value]) -> u64 {
    let mut scan = Scan::empty(None).visit(meter, conversation, 0, tools);
    scan.count(meter);
    scan.tokens
}

/// The definitions of tools that the model is given: those with `defer_loading` only once a search
/// has loaded them.
fn loaded<'t>(tools: &'t [Value], conversation: &dyn Conversation) -> Vec<Cow<'t, Value>> {
    let is_deferred = |tool: &Value| {
        let mut places = [tool, &tool["function"]].into_iter();
        places.any(|place| place["defer_loading"] == Value::Bool(true))
    };
    let inner = |tool: &Value| {
        tool["tools"]
            .as_array()
            .is_some_and(|tools| tools.iter().any(is_deferred))
    };
    if !tools.iter().any(|tool| is_deferred(tool) || inner(tool)) {
        return tools.iter().map(Cow::Borrowed).collect();
    }
    let mut names = HashSet::new();
    for message in 0..conversation.len() {
        conversation.visit(message, &mut |piece| {
            if let Piece::Content(part) = piece
                && let Some(value) = unknown_with(part, "tool_reference")
            {
                referenced(&value, &mut names);
            }
        });
    }
    let is_loaded = |tool: &Value| {
        let name = tool["name"].as_str().or(tool["function"]["name"].as_str());
        !is_deferred(tool) || name.is_some_and(|name| names.contains(name))
    };
    let given = tools.iter().filter(|tool| is_loaded(tool)).map(|tool| {
        if !inner(tool) {
            return Cow::Borrowed(tool);
        }
        let mut tool = tool.clone();
        if let Some(tools) = tool["tools"].as_array_mut() {
            tools.retain(is_loaded);
        }
        Cow::Owned(tool)
    });
    given.collect()
}

/// Collects the names of tools to which references in `value` lead.
fn referenced(value: &Value, names: &mut HashSet<String>) {
    match value {
        Value::Object(fields) => {
            if value["type"] == "tool_reference"
                && let Some(name) = value["tool_name"].as_str()
            {
                names.insert(name.to_owned());
            }
            fields.values().for_each(|value| referenced(value, names));
        }
        Value::Array(items) => items.iter().for_each(|value| referenced(value, names)),
        _ => {}
    }
}

/// Visits one piece after the other.
struct Visitor<'l, 'c> {
    meter: &'l Meter,
    in_result: bool,
    /// Ids of calls that programs have made.
    programs: HashSet<&'c str>,
    /// True while the pieces are a program's and not the model's.
    is_for_program: bool,
    found: Scan<'c>,
}

impl<'c> Visitor<'_, 'c> {
    fn add(&mut self, tokens: u64) {
        self.found.tokens = self.found.tokens.saturating_add(tokens);
    }

    fn message(&mut self, conversation: &'c dyn Conversation, message: usize) {
        self.add(PER_MESSAGE);
        conversation.visit(message, &mut |piece| match piece {
            Piece::Role(_) => (self.in_result, self.is_for_program) = (false, false),
            Piece::Result(head) => {
                self.in_result = true;
                self.is_for_program = head.is_for_program || self.programs.contains(head.id);
            }
            Piece::Content(part) => self.part(part),
            Piece::Call(call) => self.call(call),
        });
        (self.in_result, self.is_for_program) = (false, false);
    }

    fn part(&mut self, part: PartRef<'c>) {
        if !self.in_result && is_compaction(part) {
            // The provider ignores all that stands before it.
            self.found.tokens = PER_MESSAGE;
            self.found.new.clear();
        }
        if !self.is_for_program {
            self.add(media_cost(part));
            if let Some(text) = Text::of_part(part) {
                self.text(text);
            }
        }
    }

    fn call(&mut self, call: Call<'c>) {
        self.is_for_program = false;
        if call.is_for_program {
            if !call.id.is_empty() {
                self.programs.insert(call.id);
            }
            return;
        }
        self.text(call.name.into());
        self.text(call.arguments.text().into());
    }

    /// Counts a text.
    fn text(&mut self, text: Text<'c>) {
        let print = text.fingerprint();
        match self.meter.known(print) {
            Some(tokens) => self.add(tokens),
            None => self.found.new.push((print, text)),
        }
    }
}
