//! Counts the tokens of a conversation. Known texts cost a hash of their bytes; JSON as a value becomes a text for it.

use std::collections::HashSet;

use serde_json::Value;
use tokio::runtime::Handle;

use crate::fingerprint::Fingerprint;
use crate::format::{Conversation, Piece};
use crate::middleware::Turn;
use crate::report::{CountKind, TokenCount};
use crate::rounds::{is_compaction, last_turn, unknown_with};
use crate::session::Session;
use crate::slots::{Anchor, Memory};
use crate::tokens::{Meter, PER_MESSAGE, Text, media_cost};

/// If new texts have at least this many bytes in total, they are counted off the async thread:
/// about two milliseconds of work.
const LARGE: u64 = 32 * 1024;

/// Visits a conversation and counts new texts, on a blocking thread if that takes long. A conversation that is known
/// to be within the threshold is not counted. Returns the count, and the provider's that it builds on; `None` if nothing
/// is ever cleared.
pub(super) async fn count(
    session: &Session,
    memory: &Memory,
    conversation: &dyn Conversation,
    turn: &Turn<'_>,
    threshold: u64,
) -> Option<(TokenCount, Option<Anchor>)> {
    if !session.clears() {
        return None;
    }
    let meter = &session.meter;
    // The last request ended where the last assistant turn begins.
    let anchor = turn.last_usage.and_then(|usage| {
        let last_turn = last_turn(conversation)?;
        Some(Anchor { usage, last_turn })
    });
    let saved = anchor.map_or(0, |anchor| memory.known().saved_since(anchor));
    let (from, tools, usage) = match anchor {
        Some(anchor) => (anchor.last_turn, &[][..], anchor.usage),
        None => (0, turn.tools, 0),
    };
    // Tokens that may have been added since.
    let limit = threshold.saturating_add(saved).checked_sub(usage);
    let bound = limit.and_then(|limit| meter.bound(conversation, from, tools, limit));
    let (tokens, count_kind) = match bound {
        Some(bound) => (bound, CountKind::UpperBound),
        None => {
            let visitor = Visitor::of(meter, conversation, from, tools);
            visitor.count_elsewhere().await;
            (visitor.count(), CountKind::Counted)
        }
    };
    let count = TokenCount {
        counted: usage.saturating_add(tokens).saturating_sub(saved),
        count_kind,
        threshold: match threshold {
            0 => session.settings.max_tokens_for_clear,
            threshold => threshold,
        },
        usage: anchor.map(|anchor| anchor.usage),
    };
    Some((count, anchor))
}

/// Counts the tokens of a conversation and of the schemas of its tools.
pub(crate) fn count_tokens(meter: &Meter, conversation: &dyn Conversation, tools: &[Value]) -> u64 {
    Visitor::of(meter, conversation, 0, tools).count()
}

/// The definitions of tools that the model is given: those with `defer_loading` only once a search
/// has loaded them.
fn loaded(tools: &[Value], conversation: &dyn Conversation) -> Vec<String> {
    let texts: Vec<String> = tools.iter().map(Value::to_string).collect();
    if !texts.iter().any(|text| text.contains("defer_loading")) {
        return texts;
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
        let mut places = [tool, &tool["function"]].into_iter();
        let name = places.clone().find_map(|place| place["name"].as_str());
        !places.any(|place| place["defer_loading"] == true)
            || name.is_some_and(|name| names.contains(name))
    };
    let given = tools.iter().filter(|tool| is_loaded(tool)).map(|tool| {
        let mut tool = tool.clone();
        if let Some(tools) = tool.get_mut("tools").and_then(Value::as_array_mut) {
            tools.retain(is_loaded);
        }
        tool.to_string()
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
struct Visitor<'c> {
    meter: &'c Meter,
    in_result: bool,
    /// Ids of calls that programs have made.
    programs: HashSet<&'c str>,
    /// True while the pieces are a program's and not the model's.
    is_for_program: bool,
    /// Tokens of all but the new texts.
    tokens: u64,
    /// Texts that were never counted before.
    new: Vec<(Fingerprint, Text<'c>)>,
}

impl<'c> Visitor<'c> {
    /// Visits `tools`, and the messages starting at `from`.
    fn of(
        meter: &'c Meter,
        conversation: &'c dyn Conversation,
        from: usize,
        tools: &'c [Value],
    ) -> Self {
        let mut visitor = Self {
            meter,
            in_result: false,
            programs: HashSet::new(),
            is_for_program: false,
            tokens: 0,
            new: Vec::new(),
        };
        for message in from..conversation.len() {
            visitor.add(PER_MESSAGE);
            (visitor.in_result, visitor.is_for_program) = (false, false);
            conversation.visit(message, &mut |piece| visitor.see(piece));
        }
        for tool in loaded(tools, conversation) {
            visitor.text(tool.into());
        }
        visitor
    }

    /// Counts the new texts on a blocking thread if that takes long. The meter keeps the counts.
    async fn count_elsewhere(&self) {
        let bytes: u64 = self.new.iter().map(|(_, text)| text.bytes()).sum();
        let Some(runtime) = Handle::try_current().ok().filter(|_| bytes >= LARGE) else {
            return;
        };
        let new = self.new.iter();
        let new: Vec<_> = new
            .map(|(print, text)| (*print, text.clone().into_owned()))
            .collect();
        let meter = self.meter.clone();
        let count = move || {
            for (print, text) in &new {
                meter.count_as(*print, text);
            }
        };
        // If this fails, `count` does it here.
        let _ = runtime.spawn_blocking(count).await;
    }

    /// The tokens of all that was visited.
    fn count(self) -> u64 {
        let new = self.new.into_iter();
        let new = new.map(|(print, text)| self.meter.count_as(print, &text));
        new.fold(self.tokens, u64::saturating_add)
    }

    fn add(&mut self, tokens: u64) {
        self.tokens = self.tokens.saturating_add(tokens);
    }

    fn see(&mut self, piece: Piece<'c>) {
        match piece {
            Piece::Role(_) => (self.in_result, self.is_for_program) = (false, false),
            Piece::Result(head) => {
                self.in_result = true;
                self.is_for_program = head.is_for_program || self.programs.contains(head.id);
            }
            Piece::Content(part) => {
                if !self.in_result && is_compaction(part) {
                    // The provider ignores all that stands before it.
                    self.tokens = PER_MESSAGE;
                    self.new.clear();
                }
                if !self.is_for_program {
                    self.add(media_cost(part));
                    Text::of_part(part)
                        .into_iter()
                        .for_each(|text| self.text(text));
                }
            }
            Piece::Call(call) => {
                self.is_for_program = false;
                if !call.is_for_program {
                    self.text(call.name.into());
                    self.text(call.arguments.text().into());
                } else if !call.id.is_empty() {
                    self.programs.insert(call.id);
                }
            }
        }
    }

    /// Counts a text.
    fn text(&mut self, text: Text<'c>) {
        let print = text.fingerprint();
        match self.meter.known(print) {
            Some(tokens) => self.add(tokens),
            None => self.new.push((print, text)),
        }
    }
}
