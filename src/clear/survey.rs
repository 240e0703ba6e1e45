//! The first look at a conversation: what it costs, and whether anything in it has to be replaced
//! again.
//!
//! Old texts cost a hash of their bytes, and nothing is allocated for them.

use tokio::runtime::Handle;

use super::Request;
use super::ledger::{Anchor, Ledger, ResultPrint, print_of_call};
use crate::fingerprint::Fingerprint;
use crate::format::{Call, Conversation, PartRef, Piece};
use crate::report::Certainty;
use crate::rounds::last_turn;
use crate::tokens::{Meter, Of, PER_MESSAGE, Seen, Spot, Text, media_cost};

/// New texts of so many bytes, all together, are not counted on an async thread: that is two
/// milliseconds' work or so.
const LARGE: u64 = 32 * 1024;

/// What a look at a conversation has found, with the texts that were never counted before.
pub(super) struct Survey<'c> {
    found: Found,
    new: Vec<New<'c>>,
}

/// A text that was never counted before.
struct New<'c> {
    print: Fingerprint,
    text: Text<'c>,
    spot: Spot,
}

/// What a look at a conversation has found.
#[derive(Debug)]
pub(super) struct Found {
    /// The tokens of all messages and tools; of those that came since, if there is an anchor.
    pub(super) tokens: u64,
    pub(super) certainty: Certainty,
    pub(super) anchor: Option<Anchor>,
    /// Whether something is there that was replaced before.
    pub(super) has_replaced: bool,
    pub(super) seen: Seen,
}

impl<'c> Survey<'c> {
    /// What is known to be within `limit` tokens is not counted.
    pub(super) fn of(
        meter: &Meter,
        ledger: &Ledger,
        conversation: &'c dyn Conversation,
        request: Request<'c>,
        limit: Option<u64>,
    ) -> Self {
        let seen = meter.begin_pass();
        // The last request ended where the last assistant turn begins.
        let last_turn = request
            .last_usage
            .and_then(|_| last_turn(conversation))
            .map(|(message, _)| message);
        let anchor = request
            .last_usage
            .zip(last_turn)
            .map(|(usage, last_turn)| Anchor { usage, last_turn });
        let from = anchor.map_or(0, |anchor| anchor.last_turn);
        let tools = if anchor.is_some() { &[] } else { request.tools };
        let limit =
            limit.and_then(|limit| anchor.map_or(Some(limit), |anchor| anchor.room(ledger, limit)));
        let bound = limit.and_then(|limit| meter.bound(conversation, from, tools, limit));
        let mut look = Look {
            meter,
            ledger: Some(ledger).filter(|ledger| ledger.has_replacements()),
            counts: false,
            tokens: bound.unwrap_or_default(),
            seen,
            new: Vec::new(),
            in_result: false,
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
            look.counts = true;
            for tool in tools {
                look.text(Of::Other, Text::Of(tool));
            }
        }
        let sees_subjects =
            look.ledger.is_some() || is_counted && from == 0 && !meter.has_free_texts();
        look.seen.has_all_subjects = sees_subjects;
        let Look {
            tokens,
            new,
            has_replaced,
            seen,
            ..
        } = look;
        let certainty = if is_counted {
            Certainty::Counted
        } else {
            Certainty::AtMost
        };
        Self {
            found: Found {
                tokens,
                certainty,
                anchor,
                has_replaced,
                seen,
            },
            new,
        }
    }

    /// Counts what is new, here and now.
    pub(super) fn count(self, meter: &Meter) -> Found {
        let mut found = self.found;
        for New { print, text, spot } in self.new {
            let tokens = meter.count(print, text);
            found.tokens = found.tokens.saturating_add(tokens);
            found.seen.set(spot, tokens);
        }
        found
    }

    /// Counts what is new; if that takes long, on a thread where it may.
    pub(super) async fn count_elsewhere(self, meter: &Meter) -> Found {
        let bytes: u64 = self.new.iter().map(|new| new.print.len()).sum();
        let is_short = bytes < LARGE && meter.is_ready();
        if !self.new.is_empty()
            && !is_short
            && let Ok(runtime) = Handle::try_current()
        {
            let texts: Vec<_> = self
                .new
                .iter()
                .map(|new| (new.print, new.text.read().into_owned()))
                .collect();
            let own = meter.clone();
            let count = move || {
                for (print, text) in &texts {
                    own.count(*print, Text::Is(text));
                }
            };
            // What is not counted there is counted here.
            let _ = runtime.spawn_blocking(count).await;
        }
        self.count(meter)
    }
}

impl Anchor {
    /// How many tokens may have come since, within the threshold.
    fn room(self, ledger: &Ledger, threshold: u64) -> Option<u64> {
        threshold
            .saturating_add(ledger.saved_since(self))
            .checked_sub(self.usage)
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
    seen: Seen,
    new: Vec<New<'c>>,
    in_result: bool,
    /// The open result slot, if the ledger has to know it.
    result: Option<ResultPrint<'l>>,
    has_replaced: bool,
}

impl<'c> Look<'_, 'c> {
    fn message(&mut self, conversation: &'c dyn Conversation, message: usize) {
        if self.counts {
            self.add(PER_MESSAGE);
        }
        conversation.visit(message, &mut |piece| self.see(piece));
        self.end_result();
    }

    fn add(&mut self, tokens: u64) {
        self.tokens = self.tokens.saturating_add(tokens);
    }

    fn see(&mut self, piece: Piece<'c>) {
        match piece {
            Piece::Role(_) => self.end_result(),
            Piece::Result(head) => {
                self.end_result();
                self.in_result = true;
                self.result = self.ledger.map(|_| ResultPrint::of(self.meter, head));
            }
            Piece::Content(part) => self.part(part),
            Piece::Call(call) => self.call(call),
        }
    }

    fn part(&mut self, part: PartRef<'c>) {
        if self.counts {
            self.add(media_cost(part));
        }
        let of = if self.in_result {
            Of::Result
        } else {
            Of::Other
        };
        let print = Text::of_part(part).and_then(|text| self.text(of, text));
        if let Some(result) = &mut self.result {
            result.add(part, print);
        }
    }

    fn call(&mut self, call: Call<'c>) {
        self.text(Of::Other, Text::Is(call.name));
        let print = self.text(Of::Arguments, Text::of_arguments(call.arguments));
        if let Some((print, ledger)) = print.zip(self.ledger) {
            self.has_replaced |= ledger.has_replaced(print_of_call(self.meter, call, print));
        }
    }

    fn end_result(&mut self) {
        self.in_result = false;
        if let Some((result, ledger)) = self.result.take().zip(self.ledger) {
            self.has_replaced |= ledger.has_replaced(result.finish());
        }
    }

    /// Counts a text if that is asked for, and says what it is known by if anybody has to know.
    fn text(&mut self, of: Of, text: Text<'c>) -> Option<Fingerprint> {
        let is_free = self.meter.is_free(text);
        if self.counts && is_free {
            self.add(self.meter.text_of(text));
        }
        let is_counted = self.counts && !is_free;
        let is_compared = self.ledger.is_some() && of != Of::Other;
        if !is_counted && !is_compared {
            return None;
        }
        let print = self.meter.print(text);
        let (spot, known) = self.seen.push(of, print);
        if is_counted {
            match known.or_else(|| self.meter.known(print)) {
                Some(tokens) => {
                    self.add(tokens);
                    self.seen.set(spot, tokens);
                }
                None => self.new.push(New { print, text, spot }),
            }
        }
        Some(print)
    }
}
