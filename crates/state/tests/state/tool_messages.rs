//! `remove_tool_messages` (Agentflow) and the bound that keeps pairs whole (S7).

use std::num::NonZeroUsize;

use offcut::ToolCall;
use offcut::format::{Message, OpenAiChat, Plain, WireFormat};
use offcut_state::{BoundedMessages, Reducer, RemoveToolMessages, remove_tool_messages};
use serde_json::{Value, json};

use crate::{fails, reduce};

/// A conversation in short: `u` a user message, `a` an answer, `c1+2` calls 1 and 2, `r1` the
/// result of call 1, `s` instructions.
fn script(script: &str) -> Vec<Value> {
    script
        .split_whitespace()
        .enumerate()
        .map(|(n, word)| message(n, word))
        .collect()
}

fn message(n: usize, word: &str) -> Value {
    let (kind, ids) = word.split_at(1);
    match kind {
        "u" => json!({"role": "user", "content": format!("{n}")}),
        "s" => json!({"role": "system", "content": format!("{n}")}),
        "a" => json!({"role": "assistant", "content": format!("{n}")}),
        "r" => json!({"role": "tool", "tool_call_id": ids, "content": format!("{n}")}),
        _ => {
            let calls = ids
                .split('+')
                .map(|id| json!({"id": id, "function": {"name": "f", "arguments": "{}"}}));
            json!({"role": "assistant", "content": "let me see", "tool_calls": calls.collect::<Vec<_>>()})
        }
    }
}

/// Returns the messages that are left, in the same words.
fn left(conversation: &str) -> String {
    let mut messages = script(conversation);
    let words: Vec<_> = conversation.split_whitespace().collect();
    let all = messages.clone();
    let gone = remove_tool_messages(&OpenAiChat, &mut messages);
    assert_eq!(all.len(), messages.len() + gone);
    let mut rest = messages.iter().peekable();
    let kept: Vec<_> = all
        .iter()
        .zip(words)
        .filter(|(message, _)| rest.next_if_eq(message).is_some())
        .map(|(_, word)| word)
        .collect();
    assert!(
        rest.next().is_none(),
        "what is left was there, in its order"
    );
    kept.join(" ")
}

/// Agentflow's three examples: complete, no result yet, no answer yet.
#[test]
fn agentflows_examples_hold() {
    assert_eq!(left("u c1 r1 a"), "u a");
    assert_eq!(left("u c1"), "u c1");
    assert_eq!(left("u c1 r1"), "u c1 r1");
    assert_eq!(left(""), "");
}

/// Agentflow: "Multiple tool calls in one AI message", "one or more tool result messages", matched
/// by id.
#[test]
fn several_calls_in_a_turn() {
    assert_eq!(left("u c1+2 r2 r1 a"), "u a");
    assert_eq!(left("u c1+2 r2 a"), "u a", "at least one result");
    assert_eq!(left("u c1+2 a"), "u c1+2 a", "zero results");
    assert_eq!(
        left("u c1 c2 r1 r2 a"),
        "u a",
        "calls of one turn in two messages are one round"
    );
}

/// A chain is removed whole, or not at all.
#[test]
fn chains() {
    assert_eq!(left("u c1 r1 c2 r2 c3+4 r3 r4 a"), "u a");
    assert_eq!(left("u c1 r1 c2 a"), "u c1 r1 c2 a");
    assert_eq!(left("u c1 r1 c2 r2"), "u c1 r1 c2 r2");
}

/// Agentflow: "Consecutive tool sequences: Each evaluated independently".
#[test]
fn every_sequence_is_decided_by_itself() {
    assert_eq!(left("u c1 r1 a u c2 r2"), "u a u c2 r2");
    assert_eq!(left("u c1 a u c2 r2 a"), "u c1 a u a");
    assert_eq!(left("c1 r1 a c2 r2 a"), "a a");
    assert_eq!(left("c1 r1 a c2"), "a c2");
}

/// Anything in between makes a sequence incomplete.
#[test]
fn messages_in_between_keep_a_sequence() {
    for kept in [
        "u c1 u r1 a",
        "u c1 r1 u a",
        "u c1 s r1 a",
        "u c1 r1 s a",
        "u c1 a r1 a",
        "u c1 r2 a",
        "u c1 r1 r2 a",
        "u r1 a",
        "u c1 r1 r1 a",
        "u c1 r1 c2 r1 a",
        "u c1+2 r1 u r2 a",
    ] {
        assert_eq!(left(kept), kept);
    }
    assert_eq!(
        left("u c1 r9 a c2 r2 a"),
        "u c1 r9 a a",
        "only the disturbed one"
    );
    assert_eq!(
        left("u a c1 r1 a"),
        "u a a",
        "what is said before the calls stays"
    );
}

/// Several providers count from `call_0` in every turn.
#[test]
fn repeated_ids_pair_by_occurrence() {
    assert_eq!(left("u c0 r0 a u c0 r0 a"), "u a u a");
    assert_eq!(left("u c0 u c0 r0 a"), "u c0 u a");
}

/// A result in the same message as text from the user can't be removed without that text.
#[test]
fn a_message_that_holds_more_than_results_stays() {
    struct Mixed;
    impl offcut::format::Format for Mixed {
        type Message = &'static str;
        fn visit<'m>(
            &self,
            message: &'m &'static str,
            see: &mut dyn FnMut(offcut::format::Piece<'m>),
        ) {
            use offcut::format::{Call, JsonRef, PartRef, Piece, ResultHead, Role};
            let id = "x";
            match *message {
                "call" => {
                    see(Piece::Role(Role::Assistant));
                    let arguments = JsonRef::Spelled("{}");
                    see(Piece::Call(Call {
                        id,
                        name: "f",
                        arguments,
                        is_signed: false,
                        is_for_program: false,
                        is_fixed: false,
                    }));
                }
                "answer" => see(Piece::Role(Role::Assistant)),
                held => {
                    see(Piece::Role(Role::Tool));
                    see(Piece::Result(ResultHead {
                        id,
                        name: None,
                        is_error: false,
                        is_for_program: false,
                        is_fixed: false,
                    }));
                    see(Piece::Content(PartRef::Text("result")));
                    if held == "result and words" {
                        see(Piece::Role(Role::User));
                        see(Piece::Content(PartRef::Text("words")));
                    }
                }
            }
        }
        fn replace(&self, _: &mut &'static str, _: usize, _: offcut::format::NewPiece) {}
    }
    let mut messages = vec!["call", "result", "answer"];
    assert_eq!(remove_tool_messages(&Mixed, &mut messages), 2);
    let mut messages = vec!["call", "result and words", "answer"];
    assert_eq!(remove_tool_messages(&Mixed, &mut messages), 0);
}

/// Used as a reducer: the update is appended first, and a sequence may begin in the list and end in
/// the update.
#[test]
fn as_a_reducer_it_removes_over_list_and_update() {
    let reducer = RemoveToolMessages::<WireFormat>::default();
    let all = script("u c1 r1 c2 r2 a u");
    for at in 0..all.len() {
        let (existing, update) = (json!(all[..at]), json!(all[at..]));
        assert_eq!(
            reduce(&reducer, existing, update),
            json!([all[0], all[5], all[6]]),
            "split at {at}"
        );
    }
    assert_eq!(
        reduce(&reducer, json!(all), json!([])),
        json!(all),
        "an empty update changes nothing"
    );
    assert_eq!(reduce(&reducer, json!([]), all[0].clone()), json!([all[0]]));
    assert!(
        fails(&reducer, json!([]), json!([{"role": "remove", "id": "x"}])).contains("is a removal")
    );
    assert!(fails(&reducer, json!([]), json!([1])).contains("must be messages"));
    assert!(fails(&reducer, json!(1), json!([])).contains("must be a list"));

    let call = ToolCall::new("1", "f", "{}");
    let typed = vec![
        Message::calls(vec![call.clone()]),
        Message::tool(&call, vec!["r".into()], false),
        Message::assistant("done"),
    ];
    assert_eq!(
        RemoveToolMessages::new(Plain)
            .reduce(Vec::new(), typed)
            .unwrap(),
        [Message::assistant("done")]
    );
}

/// Returns the messages that the bound leaves, which must not depend on the split into list and
/// update.
fn bounded(conversation: &str, max_len: usize) -> String {
    let reducer = BoundedMessages::new(OpenAiChat, NonZeroUsize::new(max_len).unwrap());
    let all = script(conversation);
    let words: Vec<_> = conversation.split_whitespace().collect();
    let mut kept = Vec::new();
    for at in 0..all.len() {
        let list = reduce(&reducer, json!(all[..at]), json!(all[at..]));
        let at = |message| all.iter().position(|one| one == message).unwrap();
        let places = list.as_array().unwrap().iter().map(at);
        kept.push(places.map(|at| words[at]).collect::<Vec<_>>().join(" "));
    }
    kept.dedup();
    assert_eq!(kept.len(), 1, "the same wherever it was split");
    kept.remove(0)
}

/// S7: no pair is split, and the window begins with a user's message.
#[test]
fn s7_the_bound_leaves_a_conversation() {
    assert_eq!(bounded("u a u a u", 3), "u a u");
    assert_eq!(bounded("u a u a u", 2), "u", "not `a u`");
    assert_eq!(bounded("u c1 r1 a", 4), "u c1 r1 a");
    assert_eq!(bounded("u c1 r1 a", 3), "u a", "not `r1 a`");
    assert_eq!(bounded("u c1+2 r1 r2 a u", 3), "u a u");
    assert_eq!(
        bounded("u c1+2 r1 u r2 a", 4),
        "u a",
        "a person may speak between"
    );
    assert_eq!(bounded("u c1 r1 c2 r2", 3), "u c2 r2");
    assert_eq!(bounded("u c1 c2 r1 r2 a", 4), "u a");
    assert_eq!(bounded("u c1 r1 c1 r1 a", 4), "u c1 r1 a", "repeated ids");
    assert_eq!(bounded("c1 r1 c2 r2 a", 3), "c2 r2 a", "nobody has spoken");
}

/// S7: the newest round stays whole with its request, even over the bound.
#[test]
fn s7_the_newest_round_is_never_cut() {
    assert_eq!(bounded("u c1+2+3 r1 r2 r3", 2), "u c1+2+3 r1 r2 r3");
    assert_eq!(bounded("u c1 r1 u c2+3 r2 r3", 2), "u c2+3 r2 r3");
}

#[test]
fn s7_an_empty_update_and_wrong_types() {
    let reducer = BoundedMessages::new(OpenAiChat, NonZeroUsize::MIN);
    let all = json!(script("u a u"));
    assert_eq!(reduce(&reducer, all.clone(), json!([])), all);
    assert!(fails(&reducer, all, json!([null])).contains("item 0 of the update is null"));
}
