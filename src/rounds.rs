//! Rounds of a conversation: the call that each result answers, and how old the result is.

use std::collections::{BTreeSet, HashMap};

use crate::format::{Call, Conversation, Format, PartRef, Piece, ResultHead, Role};

/// The place of a tool result, and of the call that it answers. Numbers count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResultPlace {
    /// The index of the message that holds the result.
    pub message: usize,
    /// The result's slot in its message.
    pub slot: usize,
    /// The call that it answers; `None` for a result without a call.
    pub call: Option<CallPlace>,
}

/// The place of a tool call. Numbers count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallPlace {
    /// The index of the message that holds the call.
    pub message: usize,
    /// The number of the call within its message.
    pub call: usize,
}

/// Finds the call that each result of `messages` answers, and returns the results in order.
///
/// A result answers the call with its id. Without an id, name and order decide. Where ids repeat,
/// it answers the first call of the latest turn that has one without a result yet.
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
/// assert_eq!(results[0].call.map(|call| (call.message, call.call)), Some((1, 0)));
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
    let Outline { slots, calls } = reader.finish();
    slots
        .into_iter()
        .map(|slot| ResultPlace {
            message: slot.message,
            slot: slot.slot,
            call: slot.call.map(|at| CallPlace {
                message: calls[at].message,
                call: calls[at].call,
            }),
        })
        .collect()
}

/// Every result of a conversation, in order, with its call and its age.
#[derive(Debug, Default)]
pub(crate) struct Outline<'c> {
    pub(crate) slots: Vec<Slot<'c>>,
    pub(crate) calls: Vec<CallSite<'c>>,
}

/// A result and its place.
#[derive(Debug)]
pub(crate) struct Slot<'c> {
    pub(crate) message: usize,
    pub(crate) slot: usize,
    pub(crate) head: ResultHead<'c>,
    pub(crate) parts: Vec<PartRef<'c>>,
    /// The index of its call in the outline's calls.
    pub(crate) call: Option<usize>,
    /// How many rounds had begun when it came, or, if its call is known, when the call was made.
    round: usize,
    is_answered: bool,
}

/// A call and its place.
#[derive(Debug)]
pub(crate) struct CallSite<'c> {
    pub(crate) message: usize,
    pub(crate) call: usize,
    pub(crate) is: Call<'c>,
    turn: usize,
    round: usize,
}

/// Where the last assistant turn begins, and how many have begun. Allocates nothing.
pub(crate) fn last_turn(conversation: &dyn Conversation) -> Option<(usize, usize)> {
    let mut turns = Turns::default();
    for message in 0..conversation.len() {
        conversation.visit(message, &mut |piece| turns.see(message, piece));
    }
    turns.last.map(|last| (last, turns.begun))
}

/// Assistant turns as they come: maximal runs of assistant items, which a result or a user item
/// ends.
#[derive(Default)]
struct Turns {
    is_open: bool,
    begun: usize,
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
            Piece::Role(_) | Piece::Call(_) | Piece::Content(_) => {}
        }
    }
}

/// How old a result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Age {
    /// No assistant turn follows it yet.
    Unanswered,
    /// It belongs to one of the newest rounds.
    Recent,
    /// It may be cleared.
    Old,
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

    /// How old a result is when the newest `keep` rounds are recent.
    pub(crate) fn age(&self, slot: &Slot<'_>, keep: usize) -> Age {
        let rounds = self.calls.last().map_or(0, |call| call.round);
        match () {
            () if !slot.is_answered => Age::Unanswered,
            () if rounds - slot.round < keep => Age::Recent,
            () => Age::Old,
        }
    }

    /// The name of the tool whose result it is, as the message or its call has it.
    pub(crate) fn tool(&self, slot: &Slot<'c>) -> &'c str {
        let by_call = || slot.call.map(|call| self.calls[call].is.name);
        slot.head.name.or_else(by_call).unwrap_or_default()
    }
}

/// The messages of each round that holds one of `slots`, given as message and slot: those of its
/// turn, and those of the results of its calls. A round that shares a message with a person or with
/// another round is not among them.
pub(crate) fn rounds_of(
    conversation: &dyn Conversation,
    slots: &[(usize, usize)],
) -> Vec<Vec<usize>> {
    let outline = Outline::of(conversation);
    let wanted: BTreeSet<usize> = outline
        .slots
        .iter()
        .filter(|slot| slot.call.is_some() && slots.contains(&(slot.message, slot.slot)))
        .map(|slot| slot.round)
        .collect();
    let rounds: HashMap<usize, usize> = outline
        .calls
        .iter()
        .map(|call| (call.turn, call.round))
        .collect();
    // Which rounds a message is part of; `None` is somebody else.
    let mut parts: Vec<BTreeSet<Option<usize>>> = vec![BTreeSet::new(); conversation.len()];
    for slot in &outline.slots {
        parts[slot.message].insert(slot.call.map(|_| slot.round));
    }
    let mut turns = Turns::default();
    for (message, of) in parts.iter_mut().enumerate() {
        let (mut role, mut is_result) = (Role::User, false);
        conversation.visit(message, &mut |piece| {
            turns.see(message, piece);
            match piece {
                Piece::Role(new) => {
                    (role, is_result) = (new, false);
                    // An item of the turn that shows nothing, such as encrypted reasoning, goes
                    // with it all the same.
                    if new == Role::Assistant {
                        of.insert(rounds.get(&turns.begun).copied());
                    }
                }
                Piece::Result(_) => is_result = true,
                Piece::Call(_) | Piece::Content(_) if is_result => {}
                Piece::Call(_) | Piece::Content(_) => {
                    let is_turn = role == Role::Assistant || matches!(piece, Piece::Call(_));
                    of.insert(rounds.get(&turns.begun).copied().filter(|_| is_turn));
                }
            }
        });
    }
    let members = |round: &usize| {
        let messages: Vec<usize> = (0..parts.len())
            .filter(|message| parts[*message].contains(&Some(*round)))
            .collect();
        messages
            .iter()
            .all(|message| parts[*message].len() == 1)
            .then_some(messages)
    };
    wanted.iter().filter_map(members).collect()
}

#[derive(Default)]
struct Reader<'c> {
    outline: Outline<'c>,
    /// Calls without a result yet, by id, oldest first.
    open: HashMap<&'c str, Vec<usize>>,
    turns: Turns,
    rounds: usize,
    /// The turn that has the calls of the last round.
    round_turn: Option<usize>,
    message: usize,
    slots_in_message: usize,
    calls_in_message: usize,
    result_is_open: bool,
    /// Results up to here are followed by an assistant item.
    answered: usize,
}

impl<'c> Reader<'c> {
    fn begin(&mut self, message: usize) {
        self.message = message;
        self.slots_in_message = 0;
        self.calls_in_message = 0;
        self.result_is_open = false;
    }

    fn see(&mut self, piece: Piece<'c>) {
        let turns = self.turns.begun;
        self.turns.see(self.message, piece);
        if self.turns.begun > turns || matches!(piece, Piece::Role(Role::Assistant)) {
            self.answered = self.outline.slots.len();
        }
        match piece {
            Piece::Role(_) => self.result_is_open = false,
            Piece::Call(call) => self.call(call),
            Piece::Result(head) => self.result(head),
            Piece::Content(part) => {
                if self.result_is_open
                    && let Some(slot) = self.outline.slots.last_mut()
                {
                    slot.parts.push(part);
                }
            }
        }
    }

    fn call(&mut self, call: Call<'c>) {
        if self.round_turn != Some(self.turns.begun) {
            self.round_turn = Some(self.turns.begun);
            self.rounds += 1;
        }
        self.open
            .entry(call.id)
            .or_default()
            .push(self.outline.calls.len());
        let (turn, round) = (self.turns.begun, self.rounds);
        self.outline.calls.push(CallSite {
            message: self.message,
            call: self.calls_in_message,
            is: call,
            turn,
            round,
        });
        self.calls_in_message += 1;
    }

    fn result(&mut self, head: ResultHead<'c>) {
        self.result_is_open = true;
        let call = self.pair(head);
        let round = call.map_or(self.rounds, |call| self.outline.calls[call].round);
        let (message, slot) = (self.message, self.slots_in_message);
        self.outline.slots.push(Slot {
            message,
            slot,
            head,
            parts: Vec::new(),
            call,
            round,
            is_answered: false,
        });
        self.slots_in_message += 1;
    }

    /// The call that a result answers: by id, and by name and order where there is none. Where ids
    /// repeat, it is the first unanswered call of the latest turn that has one, so that a call that
    /// was never answered does not shift the others.
    fn pair(&mut self, head: ResultHead<'c>) -> Option<usize> {
        let calls = &self.outline.calls;
        let open = self.open.get_mut(head.id)?;
        let has_name = |index: &usize| {
            head.id.is_empty() && head.name.is_some_and(|name| calls[*index].is.name == name)
        };
        let named = open.iter().any(has_name);
        let fits = |index: &usize| !named || has_name(index);
        let turn = open
            .iter()
            .rev()
            .find(|index| fits(index))
            .map(|index| calls[*index].turn)?;
        let at = open
            .iter()
            .position(|index| fits(index) && calls[*index].turn == turn)?;
        Some(open.remove(at))
    }

    fn finish(mut self) -> Outline<'c> {
        for slot in &mut self.outline.slots[..self.answered] {
            slot.is_answered = true;
        }
        self.outline
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::ToolCall;
    use crate::format::{Message, Messages, Plain};

    fn call(id: &str, name: &str) -> ToolCall {
        ToolCall::new(id, name, "{}")
    }

    /// For each result: the place of its call (message.call) and its age when `keep` rounds are
    /// kept.
    fn ages(mut messages: Vec<Message>, keep: usize) -> Vec<(String, Age)> {
        let conversation = Messages::new(&Plain, &mut messages);
        let outline = Outline::of(&conversation);
        let place = |slot: &Slot<'_>| {
            slot.call.map_or_else(String::new, |c| {
                format!("{}.{}", outline.calls[c].message, outline.calls[c].call)
            })
        };
        outline
            .slots
            .iter()
            .map(|slot| (place(slot), outline.age(slot, keep)))
            .collect()
    }

    fn result(id: &str, name: &str) -> Message {
        Message::tool(&call(id, name), vec!["r".into()], false)
    }

    #[test]
    fn c2_the_newest_rounds_stay_and_what_is_unanswered_whatever_the_limit() {
        let messages = vec![
            Message::user("go"),
            Message::calls(vec![call("a", "f"), call("b", "f")]),
            result("b", "f"),
            result("a", "f"),
            Message::calls(vec![call("c", "f")]),
            result("c", "f"),
        ];
        let at = |place: &str, age| (place.to_owned(), age);
        assert_eq!(
            ages(messages.clone(), 0),
            [
                at("1.1", Age::Old),
                at("1.0", Age::Old),
                at("4.0", Age::Unanswered)
            ]
        );
        assert_eq!(
            ages(messages.clone(), 1),
            [
                at("1.1", Age::Old),
                at("1.0", Age::Old),
                at("4.0", Age::Unanswered)
            ]
        );
        assert_eq!(
            ages(messages, 2),
            [
                at("1.1", Age::Recent),
                at("1.0", Age::Recent),
                at("4.0", Age::Unanswered)
            ]
        );
    }

    #[test]
    fn c2_repeated_ids_pair_by_occurrence() {
        let messages = vec![
            Message::calls(vec![call("call_0", "f")]),
            result("call_0", "f"),
            Message::calls(vec![call("call_0", "f")]),
            Message::user("stop"),
            Message::calls(vec![call("call_0", "f"), call("call_0", "g")]),
            result("call_0", "f"),
            result("call_0", "g"),
            Message::assistant("done"),
        ];
        let places: Vec<_> = ages(messages, 1)
            .into_iter()
            .map(|(place, _)| place)
            .collect();
        assert_eq!(places, ["0.0", "4.0", "4.1"]);
    }

    #[test]
    fn c2_without_ids_name_and_order_pair() {
        let messages = vec![
            Message::calls(vec![call("", "f"), call("", "g"), call("", "g")]),
            result("", "g"),
            result("", "f"),
            result("", ""),
            result("", "g"),
        ];
        let places: Vec<_> = ages(messages, 1)
            .into_iter()
            .map(|(place, _)| place)
            .collect();
        assert_eq!(places, ["0.1", "0.0", "0.2", ""]);
    }

    #[test]
    fn c9_plain_messages_change_no_round() {
        let plain = [
            Message::user("hm"),
            Message::assistant("so"),
            Message::system("be brief"),
        ];
        let rounds = vec![
            Message::calls(vec![call("a", "f")]),
            result("a", "f"),
            Message::calls(vec![call("b", "f")]),
            result("b", "f"),
            Message::assistant("done"),
        ];
        let expected = ages(rounds.clone(), 1);
        for at in [0, 2, 4, 5] {
            for message in &plain {
                let mut with = rounds.clone();
                with.insert(at, message.clone());
                let ages: Vec<_> = ages(with, 1).into_iter().map(|(_, age)| age).collect();
                assert_eq!(
                    ages,
                    expected.iter().map(|(_, age)| *age).collect::<Vec<_>>(),
                    "{message:?} at {at}"
                );
            }
        }
    }
}
