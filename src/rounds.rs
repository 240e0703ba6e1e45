//! Rounds of a conversation: the call that each result answers, and the age of the result.

use std::collections::HashMap;

use serde_json::Value;

use crate::format::{
    Call, Conversation, Format, JsonRef, PartRef, Piece, Place, Places, ResultHead, Role,
};
use crate::report::Reason;

/// The place of a tool result, and of the call that it answers. Indices count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResultPlace {
    /// Index of the message that holds the result.
    pub message: usize,
    /// Index of the result within its message.
    pub slot: usize,
    /// Index of the message that holds the answered call, and the call's index within that message;
    /// `None` for a result without a call.
    pub call: Option<(usize, usize)>,
}

/// Finds the call that each result of `messages` answers, and returns the results in order.
///
/// A result answers the call with its id. Without an id, name and order decide. If ids repeat, it
/// answers the first open call of the latest turn that still has an open one.
///
/// ```
/// use offcut::ToolCall;
/// use offcut::format::{Message, Plain};
///
/// let call = ToolCall::new("call_1", "grep", "{}");
/// let messages = [
///     Message::user("Where?"),
///     Message::calls(vec![call.clone()]),
///     Message::tool(&call, vec!["src/pool.rs:7".into()], false),
/// ];
/// let results = offcut::rounds::pair_results(&Plain, &messages);
/// assert_eq!((results[0].message, results[0].slot), (2, 0));
/// assert_eq!(results[0].call, Some((1, 0)));
/// ```
pub fn pair_results<'m, F: Format>(
    format: &F,
    messages: impl IntoIterator<Item = &'m F::Message>,
) -> Vec<ResultPlace>
where
    F::Message: 'm,
{
    let mut reader = Reader::default();
    for (at, message) in messages.into_iter().enumerate() {
        reader.begin(at);
        format.visit(message, &mut |piece| reader.see(piece));
    }
    let Outline { slots, calls, .. } = reader.finish();
    slots
        .into_iter()
        .map(|slot| ResultPlace {
            message: slot.place.message,
            slot: slot.place.index,
            call: slot
                .call
                .map(|at| (calls[at].place.message, calls[at].place.index)),
        })
        .collect()
}

/// Every result, call and user's text of a conversation, in order.
#[derive(Debug, Default)]
pub(crate) struct Outline<'c> {
    pub(crate) slots: Vec<Slot<'c>>,
    pub(crate) calls: Vec<CallSite<'c>>,
    pub(crate) texts: Vec<UserText<'c>>,
    turns: Turns,
}

/// A result and its place.
#[derive(Debug)]
pub(crate) struct Slot<'c> {
    pub(crate) place: Place,
    pub(crate) head: ResultHead<'c>,
    pub(crate) parts: Vec<PartRef<'c>>,
    /// The name of the tool, from the message or else from a call with its id.
    pub(crate) tool: &'c str,
    /// Index of its call in the outline's calls.
    pub(crate) call: Option<usize>,
    /// Number of rounds that had begun when its call was made, or, without a known call, when the
    /// result arrived.
    round: usize,
    /// Number of turns that had begun before it.
    pub(crate) turn: usize,
}

/// A call and its place.
#[derive(Debug)]
pub(crate) struct CallSite<'c> {
    pub(crate) place: Place,
    pub(crate) call: Call<'c>,
    turn: usize,
    round: usize,
}

/// A text of a user and its place.
#[derive(Debug)]
pub(crate) struct UserText<'c> {
    pub(crate) place: Place,
    pub(crate) text: &'c str,
    /// Number of turns that had begun before it.
    pub(crate) turn: usize,
    /// True if the provider ignores it.
    pub(crate) is_fixed: bool,
}

/// The message in which the last assistant turn begins.
pub(crate) fn last_turn(conversation: &dyn Conversation) -> Option<usize> {
    let mut turns = Turns::default();
    for message in 0..conversation.len() {
        conversation.visit(message, &mut |piece| turns.see(message, piece));
    }
    turns.last
}

/// Counts assistant turns: maximal runs of assistant pieces, each ended by a result or a user's
/// piece.
#[derive(Clone, Copy, Debug, Default)]
struct Turns {
    is_open: bool,
    /// Number of turns begun.
    begun: usize,
    /// The message in which the last turn began.
    last: Option<usize>,
}

impl Turns {
    fn see(&mut self, message: usize, piece: Piece<'_>) {
        match piece {
            Piece::Role(Role::Assistant) | Piece::Call(_) if !self.is_open => {
                self.is_open = true;
                self.begun += 1;
                self.last = Some(message);
            }
            Piece::Role(Role::User) | Piece::Result(_) => self.is_open = false,
            _ => {}
        }
    }
}

impl<'c> Outline<'c> {
    /// Reads the conversation once. An assistant turn is a maximal run of assistant items; a result
    /// or a user item ends it. A round is a turn with calls, and the results of those calls.
    pub(crate) fn of(conversation: &'c dyn Conversation) -> Self {
        let mut reader = Reader::default();
        for message in 0..conversation.len() {
            reader.begin(message);
            conversation.visit(message, &mut |piece| reader.see(piece));
        }
        reader.finish()
    }

    /// Fixes all of it, since a provider ignores it.
    fn fix(&mut self) {
        for slot in &mut self.slots {
            slot.head.is_fixed = true;
        }
        for site in &mut self.calls {
            site.call.is_fixed = true;
        }
        for text in &mut self.texts {
            text.is_fixed = true;
        }
    }

    /// Number of rounds begun.
    fn rounds(&self) -> usize {
        self.calls.last().map_or(0, |call| call.round)
    }

    /// Returns true if the model has answered what came after so many turns had begun.
    pub(crate) fn is_answered(&self, turn: usize) -> bool {
        turn < self.turns.begun
    }

    /// Reason why a result stays if the newest `keep` rounds are recent; `None` for an old one.
    pub(crate) fn keeps(&self, slot: &Slot<'_>, keep: usize) -> Option<Reason> {
        self.reason_to_stay(slot.turn, self.rounds() - slot.round, keep)
    }

    /// Reason why a user's text stays if the newest `keep` turns are recent; `None` for an old one.
    pub(crate) fn keeps_text(&self, text: &UserText<'_>, keep: usize) -> Option<Reason> {
        self.reason_to_stay(text.turn, self.turns.begun - text.turn, keep)
    }

    fn reason_to_stay(&self, turn: usize, newer: usize, keep: usize) -> Option<Reason> {
        if !self.is_answered(turn) {
            return Some(Reason::Unanswered);
        }
        (newer < keep).then_some(Reason::Recent)
    }
}

/// Returns true if a part stands for all of the conversation before it, which the provider then
/// ignores.
pub(crate) fn is_compaction(part: PartRef<'_>) -> bool {
    unknown_with(part, "compaction").is_some_and(|value| {
        // Anthropic returns a failed one as null, and ignores it.
        matches!(
            value["type"].as_str(),
            Some("compaction" | "compaction_summary")
        ) && (value.get("content") != Some(&Value::Null) || value["encrypted_content"].is_string())
    })
}

/// The value of a part that the format does not know, if `word` may be in it. A search costs less
/// than reading all of it.
pub(crate) fn unknown_with(part: PartRef<'_>, word: &str) -> Option<Value> {
    let PartRef::Opaque(json) = part else {
        return None;
    };
    let may_have = !matches!(json, JsonRef::Spelled(text) if !text.contains(word));
    may_have.then(|| json.to_value())?
}

/// Reads one piece after the other into an [`Outline`].
#[derive(Default)]
struct Reader<'c> {
    outline: Outline<'c>,
    /// Calls without a result yet, by id, oldest first.
    open: HashMap<&'c str, Vec<usize>>,
    /// The last call that has a result, by id.
    closed: HashMap<&'c str, usize>,
    places: Places,
}

impl<'c> Reader<'c> {
    fn begin(&mut self, message: usize) {
        self.places = Places::of(message);
    }

    fn see(&mut self, piece: Piece<'c>) {
        self.outline.turns.see(self.places.message, piece);
        match (self.places.see(piece), piece) {
            (Some(place), Piece::Call(call)) => self.call(place, call),
            (Some(place), Piece::Result(head)) => self.result(place, head),
            (Some(place), Piece::Content(PartRef::Text(text))) => {
                self.outline.texts.push(UserText {
                    place,
                    text,
                    turn: self.outline.turns.begun,
                    is_fixed: false,
                });
            }
            (_, Piece::Content(part)) => {
                if self.places.in_result
                    && let Some(slot) = self.outline.slots.last_mut()
                {
                    slot.parts.push(part);
                } else if is_compaction(part) {
                    self.outline.fix();
                }
            }
            _ => {}
        }
    }

    fn call(&mut self, place: Place, mut call: Call<'c>) {
        call.is_fixed |= call.is_for_program;
        let turn = self.outline.turns.begun;
        let last = self.outline.calls.last();
        let is_first = last.is_none_or(|last| last.turn != turn);
        let round = self.outline.rounds() + usize::from(is_first);
        let open = self.open.entry(call.id).or_default();
        open.push(self.outline.calls.len());
        self.outline.calls.push(CallSite {
            place,
            call,
            turn,
            round,
        });
    }

    fn result(&mut self, place: Place, mut head: ResultHead<'c>) {
        let call = self.pair(head);
        // Of several results of a call, the others are still that tool's.
        let same_id = call.or_else(|| self.closed.get(head.id).copied());
        if let Some(call) = call.filter(|_| !head.id.is_empty()) {
            self.closed.insert(head.id, call);
        }
        let calls = &self.outline.calls;
        let site = call.map(|call| &calls[call]);
        head.is_fixed |= head.is_for_program || site.is_some_and(|site| site.call.is_for_program);
        let by_call = || Some(calls[same_id?].call.name);
        let slot = Slot {
            place,
            head,
            parts: Vec::new(),
            tool: head.name.or_else(by_call).unwrap_or_default(),
            call,
            round: site.map_or(self.outline.rounds(), |site| site.round),
            turn: self.outline.turns.begun,
        };
        self.outline.slots.push(slot);
    }

    /// The call that a result answers: found by id, or by name and order if there is none. If ids
    /// repeat, it is the first unanswered call of the latest turn that has one, so that a call that
    /// is never answered does not shift the others.
    fn pair(&mut self, head: ResultHead<'c>) -> Option<usize> {
        let calls = &self.outline.calls;
        let open = self.open.get_mut(head.id)?;
        let has_name = |index: &usize| {
            let name = Some(calls[*index].call.name);
            head.id.is_empty() && head.name == name
        };
        let named = open.iter().any(has_name);
        let fits = |index: &usize| !named || has_name(index);
        let newest = open.iter().rfind(|index| fits(index))?;
        let turn = calls[*newest].turn;
        let is_first = |index: &usize| fits(index) && calls[*index].turn == turn;
        let at = open.iter().position(is_first)?;
        Some(open.remove(at))
    }

    fn finish(mut self) -> Outline<'c> {
        // Google signs only the first of parallel calls, for all of them.
        let calls = &mut self.outline.calls;
        for turn in calls.chunk_by_mut(|one, next| one.turn == next.turn) {
            let are_signed = turn.iter().any(|site| site.call.is_signed);
            for site in turn {
                site.call.is_signed = are_signed;
            }
        }
        self.outline
    }
}

#[cfg(test)]
mod tests;
