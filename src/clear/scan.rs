//! Reads a conversation: its token count, and the results and calls in it.
//!
//! One visit counts. Known texts cost a hash of their bytes, and no allocation. The same visit
//! reads results and calls if they are likely to be needed; otherwise a second visit reads them on
//! demand.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;
use tokio::runtime::Handle;

use super::items::{Items, Prints};
use super::ledger::{Anchor, Ledger};
use super::pass::Pass;
use super::print::{ResultPrint, print_of_call};
use crate::decisions::fingerprint::Fingerprint;
use crate::format::{Call, Conversation, JsonRef, PartRef, Piece};
use crate::middleware::Turn;
use crate::report::CountKind;
use crate::rounds::{Outline, Reader, is_compaction, last_turn, unknown_with};
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
    /// True if the conversation holds something that was replaced before.
    pub(super) has_replaced: bool,
    /// The results and calls, if this visit has read them.
    outline: Option<Outline<'c>>,
    /// Their texts, if it has.
    prints: Option<Prints>,
    /// Texts that were never counted before.
    new: Vec<(Fingerprint, Text<'c>)>,
}

impl<'c> Scan<'c> {
    /// Visits a conversation and counts new texts; `None` if nothing is ever cleared.
    pub(super) fn counted(pass: &Pass, turn: &'c Turn<'_>) -> Option<Self> {
        let mut scan = pass.session.clears().then(|| Self::new(pass, turn))?;
        scan.count(pass.session.meter());
        Some(scan)
    }

    /// Visits a conversation and counts new texts, on a blocking thread if that takes long. `None`
    /// if nothing is ever cleared.
    pub(super) async fn counted_elsewhere(pass: &Pass, turn: &'c Turn<'_>) -> Option<Self> {
        let mut scan = pass.session.clears().then(|| Self::new(pass, turn))?;
        scan.prepare(pass.session.meter()).await;
        scan.count(pass.session.meter());
        Some(scan)
    }

    /// Visits what must be counted. A conversation that is known to be within the threshold is not
    /// counted.
    fn new(pass: &Pass, turn: &'c Turn<'_>) -> Self {
        let (meter, settings) = (pass.session.meter(), pass.session.settings());
        let ledger = pass.ledger();
        let conversation: &'c dyn Conversation = &*turn.conversation;
        meter.begin_pass();
        // The last request ended where the last assistant turn begins.
        let anchor = turn.last_usage.and_then(|usage| {
            let last_turn = last_turn(conversation)?;
            Some(Anchor { usage, last_turn })
        });
        let from = anchor.map_or(0, |anchor| anchor.last_turn);
        let tools = if anchor.is_some() { &[] } else { turn.tools };
        let threshold = settings.max_tokens_for_clear;
        let limit = match anchor {
            Some(anchor) => anchor.room(&ledger, threshold),
            None => Some(threshold),
        };
        let bound = limit.and_then(|limit| meter.bound(conversation, from, tools, limit));
        let is_counted = bound.is_none();
        let mut visitor = Visitor {
            meter,
            ledger: Some(&*ledger).filter(|ledger| ledger.has_replacements()),
            counts: false,
            reader: ledger.items_were_read().then(Reader::default),
            in_result: false,
            programs: HashSet::new(),
            is_for_program: false,
            result: None,
            found: Self {
                tokens: bound.unwrap_or_default(),
                count_kind: CountKind::Counted,
                anchor,
                has_replaced: false,
                outline: None,
                prints: None,
                new: Vec::new(),
            },
        };
        let compares = visitor.ledger.is_some();
        if is_counted || compares {
            let reads_all = compares || visitor.reader.is_some();
            visitor.found.prints = reads_all.then(|| Prints::with_capacity(conversation.len()));
            for message in if reads_all { 0 } else { from }..conversation.len() {
                visitor.counts = is_counted && message >= from;
                visitor.message(conversation, message);
            }
        } else {
            visitor.reader = None;
        }
        if is_counted {
            visitor.counts = true;
            for tool in loaded(tools, conversation) {
                match tool {
                    Cow::Borrowed(tool) => {
                        visitor.text(Text::of_json(tool.into()), None);
                    }
                    Cow::Owned(tool) => {
                        visitor.add(meter.count_text(Text::of_json((&tool).into())));
                    }
                }
            }
        }
        let Visitor { reader, found, .. } = visitor;
        let mut scan = found;
        scan.outline = reader.map(Reader::finish);
        if !is_counted {
            scan.count_kind = CountKind::UpperBound;
        }
        scan
    }

    /// Counts the new texts.
    fn count(&mut self, meter: &Meter) {
        for (print, text) in self.new.drain(..) {
            self.tokens = self.tokens.saturating_add(meter.count(print, text));
        }
    }

    /// Counts the new texts on a blocking thread if that takes long. The meter keeps the counts.
    async fn prepare(&self, meter: &Meter) {
        let bytes: u64 = self.new.iter().map(|(print, _)| print.len()).sum();
        let is_short = bytes < LARGE && meter.is_ready();
        if !self.new.is_empty()
            && !is_short
            && let Ok(runtime) = Handle::try_current()
        {
            let texts: Vec<_> = self
                .new
                .iter()
                .map(|(print, text)| {
                    let is_opaque = matches!(text, Text::Opaque(_));
                    (*print, text.read().into_owned(), is_opaque)
                })
                .collect();
            let own = meter.clone();
            let count = move || {
                for (print, text, is_opaque) in &texts {
                    own.count(
                        *print,
                        match is_opaque {
                            true => Text::Opaque(JsonRef::Spelled(text)),
                            false => Text::Is(text),
                        },
                    );
                }
            };
            // If this fails, `count` does it here.
            let _ = runtime.spawn_blocking(count).await;
        }
    }

    /// The results and calls of the same conversation. Visits it again if they were not read yet.
    pub(super) fn items(
        &mut self,
        meter: &Meter,
        ledger: &Ledger,
        conversation: &'c dyn Conversation,
    ) -> Items<'c> {
        let outline = self.outline.take();
        let outline = outline.unwrap_or_else(|| Outline::of(conversation));
        Items::of(
            outline,
            meter,
            ledger,
            self.prints.take().unwrap_or_default(),
        )
    }
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

impl Anchor {
    /// Number of tokens that may have been added since, without exceeding the threshold.
    fn room(self, ledger: &Ledger, threshold: u64) -> Option<u64> {
        threshold
            .saturating_add(ledger.saved_since(self))
            .checked_sub(self.usage)
    }
}

/// A list of texts that may leave.
#[derive(Clone, Copy)]
enum List {
    Results,
    Arguments,
}

/// Visits one piece after the other.
struct Visitor<'l, 'c> {
    meter: &'l Meter,
    /// `None` if the ledger holds no replacements.
    ledger: Option<&'l Ledger>,
    /// True while the pieces count.
    counts: bool,
    reader: Option<Reader<'c>>,
    in_result: bool,
    /// Ids of calls that programs have made.
    programs: HashSet<&'c str>,
    /// True while the pieces are a program's and not the model's.
    is_for_program: bool,
    /// The open result slot, if the ledger needs its fingerprint.
    result: Option<ResultPrint<'l>>,
    found: Scan<'c>,
}

impl<'c> Visitor<'_, 'c> {
    fn message(&mut self, conversation: &'c dyn Conversation, message: usize) {
        if self.counts {
            self.add(PER_MESSAGE);
        }
        if let Some(reader) = &mut self.reader {
            reader.begin(message);
        }
        conversation.visit(message, &mut |piece| self.see(piece));
        self.end_result();
    }

    fn add(&mut self, tokens: u64) {
        self.found.tokens = self.found.tokens.saturating_add(tokens);
    }

    fn see(&mut self, piece: Piece<'c>) {
        if let Some(reader) = &mut self.reader {
            reader.see(piece);
        }
        match piece {
            Piece::Role(_) => self.end_result(),
            Piece::Result(head) => {
                self.end_result();
                self.in_result = true;
                self.is_for_program = head.is_for_program || self.programs.contains(head.id);
                self.result = self.ledger.map(|_| ResultPrint::new(self.meter, head));
            }
            Piece::Content(part) => self.part(part),
            Piece::Call(call) => self.call(call),
        }
    }

    fn part(&mut self, part: PartRef<'c>) {
        if self.counts && !self.in_result && is_compaction(part) {
            // The provider ignores all that stands before it.
            self.found.tokens = PER_MESSAGE;
            self.found.new.clear();
        }
        if self.counts && !self.is_for_program {
            self.add(media_cost(part));
        }
        let list = self.in_result.then_some(List::Results);
        let print = Text::of_part(part).and_then(|text| self.text(text, list));
        if let Some(result) = &mut self.result {
            result.add(part, print);
        }
    }

    fn call(&mut self, call: Call<'c>) {
        self.is_for_program = call.is_for_program;
        if call.is_for_program && !call.id.is_empty() {
            self.programs.insert(call.id);
        }
        self.text(Text::Is(call.name), None);
        let arguments = Text::of_arguments(call.arguments);
        let print = self.text(arguments, Some(List::Arguments));
        if let Some((print, ledger)) = print.zip(self.ledger) {
            self.found.has_replaced |= ledger.has_replaced(print_of_call(self.meter, call, print));
        }
        self.is_for_program = false;
    }

    fn end_result(&mut self) {
        self.in_result = false;
        self.is_for_program = false;
        if let Some((result, ledger)) = self.result.take().zip(self.ledger) {
            self.found.has_replaced |= ledger.has_replaced(result.finish());
        }
    }

    /// Counts a text if required, and returns its fingerprint if it was needed. That of a text in a list is kept if
    /// all are read.
    fn text(&mut self, text: Text<'c>, list: Option<List>) -> Option<Fingerprint> {
        let is_free = self.meter.is_free(text);
        let counts = self.counts && !self.is_for_program;
        if counts && is_free {
            self.add(self.meter.count_text(text));
        }
        let is_counted = counts && !is_free;
        let prints = self.found.prints.as_mut().zip(list);
        if !is_counted && prints.is_none() {
            return None;
        }
        let print = self.meter.fingerprint(text);
        match prints {
            Some((prints, List::Results)) => prints.results.push(print),
            Some((prints, List::Arguments)) => prints.arguments.push(print),
            None => {}
        }
        if is_counted {
            match self.meter.known(print) {
                Some(tokens) => self.add(tokens),
                None => self.found.new.push((print, text)),
            }
        }
        Some(print)
    }
}
