//! The first look at a conversation: what it costs, and whether anything in it has to be replaced again.
//!
//! Old texts cost a hash of their bytes, and nothing is allocated for them.

use tokio::runtime::Handle;

use super::Request;
use super::ledger::{Anchor, Ledger, ResultPrint, print_of_call};
use crate::fingerprint::Fingerprint;
use crate::format::{Call, Conversation, PartRef, Piece};
use crate::report::Certainty;
use crate::rounds::last_turn;
use crate::tokens::{Meter, PER_MESSAGE, Text, media_cost};

/// New texts of so many bytes, all together, are not counted on an async thread: that is two milliseconds' work or so.
const LARGE: u64 = 32 * 1024;

/// What a look at a conversation has found, with the texts that were never counted before.
pub(super) struct Survey<'c> {
    found: Found,
    new: Vec<(Fingerprint, Text<'c>)>,
}

/// What a look at a conversation has found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// The tokens of all messages and tools; of those that came since, if there is an anchor.
    pub(super) tokens: u64,
    pub(super) certainty: Certainty,
    pub(super) anchor: Option<Anchor>,
    /// Whether something is there that was replaced before.
    pub(super) has_replaced: bool,
}

impl<'c> Survey<'c> {
    pub(super) fn of(
        meter: &Meter,
        ledger: &Ledger,
        conversation: &'c dyn Conversation,
        request: Request<'c>,
        threshold: u64,
    ) -> Self {
        meter.begin_pass();
        // The last request ended where the last assistant turn begins.
        let last_turn = request.last_usage.and_then(|_| last_turn(conversation)).map(|(message, _)| message);
        let anchor = request.last_usage.zip(last_turn).map(|(usage, last_turn)| Anchor { usage, last_turn });
        let from = anchor.map_or(0, |anchor| anchor.last_turn);
        let tools = if anchor.is_some() { &[] } else { request.tools };
        let limit = anchor.map_or(Some(threshold), |anchor| anchor.room(ledger, threshold));
        let bound = limit.and_then(|limit| meter.bound(conversation, from, tools, limit));
        let mut look = Look {
            meter,
            ledger: Some(ledger).filter(|ledger| ledger.has_replacements()),
            counts: false,
            tokens: bound.unwrap_or_default(),
            new: Vec::new(),
            result: None,
            has_replaced: false,
        };
        let is_counted = bound.is_none();
        let begin = if look.ledger.is_some() { 0 } else { from };
        if is_counted || look.ledger.is_some() {
            for message in begin..conversation.len() {
                look.counts = is_counted && message >= from;
                look.message(conversation, message);
            }
        }
        if is_counted {
            tools.iter().for_each(|tool| look.count(Text::Of(tool)));
        }
        let Look { tokens, new, has_replaced, .. } = look;
        let certainty = if is_counted { Certainty::Counted } else { Certainty::AtMost };
        Self { found: Found { tokens, certainty, anchor, has_replaced }, new }
    }

    /// Counts what is new, here and now.
    pub(super) fn count(self, meter: &Meter) -> Found {
        let new: u64 = self.new.into_iter().map(|(print, text)| meter.count(print, text)).sum();
        Found { tokens: self.found.tokens + new, ..self.found }
    }

    /// Counts what is new; if that takes long, on a thread where it may.
    pub(super) async fn count_elsewhere(self, meter: &Meter) -> Found {
        let bytes: u64 = self.new.iter().map(|(print, _)| print.len()).sum();
        let is_short = bytes < LARGE && meter.is_ready();
        if !self.new.is_empty()
            && !is_short
            && let Ok(runtime) = Handle::try_current()
        {
            let texts: Vec<_> = self.new.iter().map(|(print, text)| (*print, text.read().into_owned())).collect();
            let own = meter.clone();
            let count = move || {
                for (print, text) in &texts {
                    own.count(*print, Text::Is(text));
                }
            };
            // A counter that panics there is asked again here, where it can be seen.
            let _ = runtime.spawn_blocking(count).await;
        }
        self.count(meter)
    }
}

impl Anchor {
    /// How many tokens may have come since, within the threshold.
    fn room(self, ledger: &Ledger, threshold: u64) -> Option<u64> {
        threshold.saturating_add(ledger.saved_since(self)).checked_sub(self.usage)
    }
}

/// A look at one piece after the other.
struct Look<'l, 'c> {
    meter: &'l Meter,
    /// If it holds anything.
    ledger: Option<&'l Ledger>,
    /// Whether the pieces count.
    counts: bool,
    tokens: u64,
    new: Vec<(Fingerprint, Text<'c>)>,
    /// The open result slot, if the ledger has to know it.
    result: Option<ResultPrint<'l>>,
    has_replaced: bool,
}

impl<'c> Look<'_, 'c> {
    fn message(&mut self, conversation: &'c dyn Conversation, message: usize) {
        if self.counts {
            self.tokens += PER_MESSAGE;
        }
        conversation.visit(message, &mut |piece| self.see(piece));
        self.end_result();
    }

    fn see(&mut self, piece: Piece<'c>) {
        match piece {
            Piece::Role(_) => self.end_result(),
            Piece::Result(head) => {
                self.end_result();
                self.result = self.ledger.map(|_| ResultPrint::of(self.meter, head));
            }
            Piece::Content(part) => self.part(part),
            Piece::Call(call) => self.call(call),
        }
    }

    fn part(&mut self, part: PartRef<'c>) {
        if self.counts {
            self.tokens += media_cost(part);
        }
        let text = Text::of_part(part);
        let Some(result) = &mut self.result else { return text.into_iter().for_each(|text| self.count(text)) };
        let print = text.map(|text| self.meter.print(text));
        result.add(part, print);
        if let Some((text, print)) = text.zip(print) {
            self.count_known(print, text);
        }
    }

    fn call(&mut self, call: Call<'c>) {
        let arguments = Text::of_arguments(call.arguments);
        self.count(Text::Is(call.name));
        let Some(ledger) = self.ledger else { return self.count(arguments) };
        let print = self.meter.print(arguments);
        self.has_replaced |= ledger.has_replaced(print_of_call(self.meter, call, print));
        self.count_known(print, arguments);
    }

    fn end_result(&mut self) {
        if let Some((result, ledger)) = self.result.take().zip(self.ledger) {
            self.has_replaced |= ledger.has_replaced(result.finish());
        }
    }

    fn count(&mut self, text: Text<'c>) {
        if !self.counts {
        } else if self.meter.is_free(text) {
            self.tokens += self.meter.text_of(text);
        } else {
            self.count_known(self.meter.print(text), text);
        }
    }

    fn count_known(&mut self, print: Fingerprint, text: Text<'c>) {
        if !self.counts {
            return;
        }
        match self.meter.known(print) {
            Some(tokens) => self.tokens += tokens,
            None => self.new.push((print, text)),
        }
    }
}
