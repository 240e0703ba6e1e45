use super::*;
use crate::content::ToolCall;
use crate::format::{Message, Messages, Plain};

fn call(id: &str, name: &str) -> ToolCall {
    ToolCall::new(id, name, "{}")
}

/// For each result: the place of its call (message.call) and its age when `keep` rounds are kept.
fn ages(mut messages: Vec<Message>, keep: usize) -> Vec<(String, Option<Reason>)> {
    let conversation = Messages::new(Plain, &mut messages);
    let outline = Outline::of(&conversation);
    let place = |slot: &Slot<'_>| {
        slot.call.map_or_else(String::new, |c| {
            format!("{}.{}", outline.calls[c].message, outline.calls[c].index)
        })
    };
    outline
        .slots
        .iter()
        .map(|slot| (place(slot), outline.keeps(slot, keep)))
        .collect()
}

fn result(id: &str, name: &str) -> Message {
    Message::tool(&call(id, name), vec!["r".into()], false)
}

#[test]
fn c2_the_newest_rounds_and_unanswered_calls_always_stay() {
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
            at("1.1", None),
            at("1.0", None),
            at("4.0", Some(Reason::Unanswered))
        ]
    );
    assert_eq!(
        ages(messages.clone(), 1),
        [
            at("1.1", None),
            at("1.0", None),
            at("4.0", Some(Reason::Unanswered))
        ]
    );
    assert_eq!(
        ages(messages, 2),
        [
            at("1.1", Some(Reason::Recent)),
            at("1.0", Some(Reason::Recent)),
            at("4.0", Some(Reason::Unanswered))
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

/// The beginning of the last turn, found from the front.
fn last_turn_forward(conversation: &dyn Conversation) -> Option<usize> {
    let mut turns = Turns::default();
    for message in 0..conversation.len() {
        conversation.visit(message, &mut |piece| turns.see(message, piece));
    }
    turns.last
}

/// A format whose messages are just the pieces that matter to a turn.
struct Pieces;

impl Format for Pieces {
    type Message = Vec<Role>;

    fn visit<'m>(&self, message: &'m Vec<Role>, see: &mut dyn FnMut(Piece<'m>)) {
        message.iter().for_each(|role| see(Piece::Role(*role)));
    }

    fn replace_result(&self, _: &mut Vec<Role>, _: usize, _: Vec<crate::content::Part>) {}

    fn replace_arguments(&self, _: &mut Vec<Role>, _: usize, _: String) {}
}

#[test]
fn c2_the_last_turn_is_the_same_from_both_ends() {
    // Up to six roles, split into messages anywhere.
    const ROLES: [Role; 3] = [Role::User, Role::Assistant, Role::System];
    for length in 0..=6_u32 {
        for roles in 0..3_usize.pow(length) {
            for ends in 0..1_usize << length {
                let mut messages = vec![Vec::new()];
                for at in 0..length {
                    let role = ROLES[roles / 3_usize.pow(at) % 3];
                    messages.last_mut().unwrap().push(role);
                    if ends >> at & 1 == 1 {
                        messages.push(Vec::new());
                    }
                }
                let conversation = Messages::new(&Pieces, &mut messages);
                assert_eq!(
                    last_turn(&conversation),
                    last_turn_forward(&conversation),
                    "{roles} {ends}"
                );
            }
        }
    }
}
