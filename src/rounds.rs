//! Rounds of a conversation: the call that each result answers, and the age of the result.

use std::collections::HashMap;

use serde_json::Value;

use crate::fingerprint::{Fingerprint, SlotId};
use crate::format::{
    Call, Conversation, Format, JsonRef, PartRef, Piece, Place, Places, ResultHead, Role,
};
use crate::report::{Change, Decision, Outcome, Reason};
use crate::tokens::Text;

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
        reader.places = Places::of(at);
        format.visit(message, &mut |piece| reader.see(piece));
    }
    let items = reader.finish().items;
    let places = items.iter().filter_map(|item| match item.content {
        ItemContent::Result { call, .. } => Some(ResultPlace {
            message: item.place.message,
            slot: item.place.index,
            call: call.map(|at| (items[at].place.message, items[at].place.index)),
        }),
        _ => None,
    });
    places.collect()
}

/// A result, a call's arguments, or a user's text.
#[derive(Debug)]
pub(crate) struct Item<'c> {
    pub(crate) place: Place,
    pub(crate) content: ItemContent<'c>,
    /// The name of the tool, from the message or else from a call with its id.
    pub(crate) tool: &'c str,
    pub(crate) call_id: &'c str,
    /// True if an earlier result has the same id.
    pub(crate) repeats_id: bool,
    /// Number of turns that had begun before it.
    turn: usize,
    /// Number of rounds that had begun when its call was made, or, without a known call, when it arrived.
    round: usize,
    /// Number of rounds that began after it; of turns, for a user's text.
    newer: usize,
    /// True if the model has answered it.
    pub(crate) is_answered: bool,
    /// True if it must stay as it is.
    pub(crate) is_fixed: bool,
    /// True if it is part of the model's context.
    pub(crate) counts: bool,
    pub(crate) grounds: Grounds,
    /// The identity of its original, which is the same in every process.
    pub(crate) id: SlotId,
    pub(crate) bytes: u64,
    /// Its parts, or a call's arguments, as they are counted.
    pub(crate) texts: Vec<Text<'c>>,
    /// `None` where tokens are not counted.
    pub(crate) tokens: Option<u64>,
}

/// The content of an item.
#[derive(Debug)]
pub(crate) enum ItemContent<'c> {
    Result {
        head: ResultHead<'c>,
        parts: Vec<PartRef<'c>>,
        /// Index of its call among the items.
        call: Option<usize>,
    },
    Call(Call<'c>),
    Text(PartRef<'c>),
}

impl<'c> ItemContent<'c> {
    /// The texts and media that it has.
    pub(crate) fn texts(&self) -> Vec<Text<'c>> {
        match self {
            Self::Call(call) => vec![PartRef::Json(call.arguments).into()],
            content => content.parts().iter().map(|part| (*part).into()).collect(),
        }
    }

    /// The parts of a result, or a user's text.
    pub(crate) fn parts(&self) -> &[PartRef<'c>] {
        match self {
            Self::Result { parts, .. } => parts,
            Self::Text(text) => std::slice::from_ref(text),
            Self::Call(_) => &[],
        }
    }
}

/// All that a decision about an item may look at. Two calls may have the same id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Grounds {
    /// The fingerprint of its id and content.
    pub(crate) print: Fingerprint,
    /// The fingerprint of the call that a result answers, if the conversation has it.
    pub(crate) call: Option<Fingerprint>,
    pub(crate) is_error: bool,
}

impl Item<'_> {
    /// Reason why a result or a text stays if the newest `keep` rounds, or turns, are recent; `None` for an old one.
    pub(crate) fn reason_of_age(&self, keep: usize) -> Option<Reason> {
        if !self.is_answered {
            return Some(Reason::Unanswered);
        }
        (self.newer < keep).then_some(Reason::Recent)
    }

    /// A decision about the item, without the size of what replaces it.
    pub(crate) fn decision(&self, outcome: Outcome) -> Decision {
        let (subject, tool, call_id) = (self.place.subject, self.tool, self.call_id);
        let mut decision = Decision::new(subject, tool, call_id, self.bytes, outcome);
        decision.message = Some(self.place.message);
        decision.tokens = self.tokens.map(Change::none);
        decision
    }
}

/// Reads the messages from the one with index `from` on, without identities and sizes. An assistant turn is a maximal run
/// of assistant items; a result or a user item ends it. A round is a turn with calls, and the results of those calls.
pub(crate) fn read(conversation: &dyn Conversation, from: usize) -> Reader<'_> {
    let mut reader = Reader {
        first: from,
        ..Reader::default()
    };
    for message in from..conversation.len() {
        reader.places = Places::of(message);
        conversation.visit(message, &mut |piece| reader.see(piece));
    }
    reader.finish()
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

/// Returns true if a part stands for all of the conversation before it, which the provider then
/// ignores.
fn is_compaction(part: PartRef<'_>) -> bool {
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

/// Reads one piece after the other.
#[derive(Default)]
pub(crate) struct Reader<'c> {
    /// The items, in order.
    pub(crate) items: Vec<Item<'c>>,
    /// The model's context besides: texts and media of messages, and names of tools in calls.
    pub(crate) others: Vec<PartRef<'c>>,
    /// The first message of the model's context.
    pub(crate) first: usize,
    /// Calls without a result yet, by id, oldest first.
    open: HashMap<&'c str, Vec<usize>>,
    /// The last call that has a result, by id.
    closed: HashMap<&'c str, usize>,
    places: Places,
    turns: Turns,
    /// Number of rounds begun.
    rounds: usize,
    /// The turn that began the last of them.
    called: usize,
}

impl<'c> Reader<'c> {
    fn see(&mut self, piece: Piece<'c>) {
        self.turns.see(self.places.message, piece);
        match (self.places.see(piece), piece) {
            (Some(place), Piece::Call(call)) => self.call(place, call),
            (Some(place), Piece::Result(head)) => self.result(place, head),
            (Some(place), Piece::Content(text)) => {
                let item = self.item(place, ItemContent::Text(text));
                self.items.push(item);
            }
            (_, Piece::Content(part)) if self.places.in_result => {
                for item in self.items.iter_mut().rev() {
                    if let ItemContent::Result { parts, .. } = &mut item.content {
                        return parts.push(part);
                    }
                }
            }
            (_, Piece::Content(part)) => {
                // The provider ignores all that stands before it.
                if is_compaction(part) {
                    for item in &mut self.items {
                        (item.is_fixed, item.counts) = (true, false);
                    }
                    self.others.clear();
                    self.first = self.places.message;
                }
                self.others.push(part);
            }
            _ => {}
        }
    }

    fn item(&self, place: Place, content: ItemContent<'c>) -> Item<'c> {
        Item {
            place,
            content,
            tool: "",
            call_id: "",
            repeats_id: false,
            turn: self.turns.begun,
            round: self.rounds,
            newer: 0,
            is_answered: false,
            is_fixed: false,
            counts: true,
            grounds: Grounds::default(),
            id: SlotId::default(),
            bytes: 0,
            texts: Vec::new(),
            tokens: None,
        }
    }

    fn call(&mut self, place: Place, call: Call<'c>) {
        if self.called != self.turns.begun {
            (self.called, self.rounds) = (self.turns.begun, self.rounds + 1);
        }
        let open = self.open.entry(call.id).or_default();
        open.push(self.items.len());
        if !call.is_for_program {
            self.others.push(PartRef::Text(call.name));
        }
        self.items.push(Item {
            tool: call.name,
            call_id: call.id,
            is_fixed: call.is_fixed || call.is_for_program,
            counts: !call.is_for_program,
            ..self.item(place, ItemContent::Call(call))
        });
    }

    fn result(&mut self, place: Place, head: ResultHead<'c>) {
        let call = self.pair(head);
        // Of several results of a call, the others are still that tool's.
        let same_id = call.or_else(|| self.closed.get(head.id).copied());
        if let Some(call) = call.filter(|_| !head.id.is_empty()) {
            self.closed.insert(head.id, call);
        }
        let of_call = call.map(|at| &self.items[at]);
        let is_for_program = head.is_for_program
            || of_call.is_some_and(
                |item| matches!(item.content, ItemContent::Call(call) if call.is_for_program),
            );
        let by_call = || Some(self.items[same_id?].tool);
        let parts = Vec::new();
        let item = Item {
            tool: head.name.or_else(by_call).unwrap_or_default(),
            call_id: head.id,
            round: of_call.map_or(self.rounds, |item| item.round),
            is_fixed: head.is_fixed || is_for_program,
            counts: !is_for_program,
            ..self.item(place, ItemContent::Result { head, parts, call })
        };
        self.items.push(item);
    }

    /// The call that a result answers: found by id, or by name and order if there is none. If ids
    /// repeat, it is the first unanswered call of the latest turn that has one, so that a call that
    /// is never answered does not shift the others.
    fn pair(&mut self, head: ResultHead<'c>) -> Option<usize> {
        let items = &self.items;
        let open = self.open.get_mut(head.id)?;
        let has_name = |at: &usize| head.id.is_empty() && head.name == Some(items[*at].tool);
        let named = open.iter().any(has_name);
        let fits = |at: &usize| !named || has_name(at);
        let newest = open.iter().rfind(|at| fits(at))?;
        let turn = items[*newest].turn;
        let is_first = |at: &usize| fits(at) && items[*at].turn == turn;
        let at = open.iter().position(is_first)?;
        Some(open.remove(at))
    }

    fn finish(mut self) -> Self {
        let items = &mut self.items;
        // Google signs only the first of parallel calls, for all of them.
        for turn in items.chunk_by_mut(|one, next| one.turn == next.turn) {
            let is_signed =
                |item: &Item<'_>| matches!(item.content, ItemContent::Call(call) if call.is_signed);
            let are_signed = turn.iter().any(is_signed);
            for item in turn {
                if let ItemContent::Call(call) = &mut item.content {
                    call.is_signed = are_signed;
                    item.is_fixed |= are_signed;
                }
            }
        }
        for at in 0..items.len() {
            let item = &mut items[at];
            let is_answered = item.turn < self.turns.begun;
            match item.content {
                ItemContent::Result { call, .. } => {
                    item.is_answered = is_answered;
                    item.newer = self.rounds - item.round;
                    if let Some(call) = call {
                        items[call].is_answered |= is_answered;
                    }
                }
                ItemContent::Text(_) => {
                    item.is_answered = is_answered;
                    item.newer = self.turns.begun - item.turn;
                }
                // A result answers it.
                ItemContent::Call(_) => {}
            }
        }
        self
    }
}

#[cfg(test)]
mod tests;
