use super::*;
use crate::content::ToolCall;
use crate::format::{Message, Messages, Plain};

fn call(id: &str, name: &str) -> ToolCall {
    ToolCall::new(id, name, "{}")
}

/// For each result: the place of its call (message.call) and its age when `keep` rounds are kept.
fn ages(mut messages: Vec<Message>, keep: usize) -> Vec<(String, Option<Reason>)> {
    let conversation = Messages::new(Plain, &mut messages);
    let items = read(&conversation, 0).items;
    let results = items.iter().filter_map(|item| match item.content {
        ItemContent::Result { call, .. } => Some((call, item.reason_of_age(keep))),
        _ => None,
    });
    let place = |call: usize| {
        let Place { message, index, .. } = items[call].place;
        format!("{message}.{index}")
    };
    results
        .map(|(call, age)| (call.map_or_else(String::new, place), age))
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
