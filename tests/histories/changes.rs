//! Histories that clients change a little between calls.

use offcut::Part;
use offcut::format::{Anthropic, Message, Plain};
use offcut::handler::{Action, Replacement, ToolOutcome};
use serde_json::{Value, json};

use super::{history, memory, new_process, reduce, round, small};
use crate::common::{call, lines};

/// A history of `rounds` rounds in Anthropic's format, each with thinking, a call and its result.
fn anthropic(rounds: usize) -> Vec<Value> {
    let mut messages = vec![json!({"role": "user", "content": [{"type": "text", "text": "go"}]})];
    for number in 0..rounds {
        let id = format!("toolu_{number:020}");
        let length = if number % 3 == 0 { 350 } else { 110 };
        messages.push(json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": format!("{number}?"), "signature": "c2lnbmVk"},
            {"type": "tool_use", "id": id, "name": "grep", "input": {"pattern": number}},
        ]}));
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": format!("{number}: {}", lines(length))},
        ]}));
    }
    messages
}

/// Marks the last block of the last two messages of the user, as clients do at each call.
fn mark(messages: &mut [Value]) {
    let users = messages.iter_mut().rev();
    for message in users.filter(|message| message["role"] == "user").take(2) {
        let last = message["content"].as_array_mut().unwrap().last_mut();
        last.unwrap()["cache_control"] = json!({"type": "ephemeral"});
    }
}

fn without_marks(mut messages: Vec<Value>) -> Vec<Value> {
    for block in blocks(&mut messages) {
        block.as_object_mut().unwrap().remove("cache_control");
    }
    messages
}

/// Drops all thinking but that of the last answer.
fn drop_thinking(messages: &mut [Value]) {
    let answers = messages.iter_mut().rev();
    for message in answers
        .filter(|message| message["role"] == "assistant")
        .skip(1)
    {
        let blocks = message["content"].as_array_mut().unwrap();
        blocks.retain(|block| block["type"] != "thinking");
    }
}

fn blocks(messages: &mut [Value]) -> impl Iterator<Item = &mut Value> {
    messages
        .iter_mut()
        .flat_map(|message| message["content"].as_array_mut().unwrap())
}

/// The results and the calls of `messages`, as they are sent.
fn slots(messages: &[Value]) -> Vec<Value> {
    let mut messages = without_marks(messages.to_vec());
    blocks(&mut messages)
        .filter(|block| block["type"] != "thinking")
        .map(Value::take)
        .collect()
}

#[tokio::test]
async fn b2_moved_marks_and_dropped_thinking_move_nothing_else() {
    let (plain, changed) = (memory(), memory());
    let mut cleared = 0;
    for rounds in 1..24 {
        let original = anthropic(rounds);
        let mut expected = original.clone();
        let report = new_process(&plain).reduce(Anthropic, &mut expected).await;
        cleared += report.unwrap().cleared_tool_uses();

        let mut given = original.clone();
        mark(&mut given);
        let marked = given.clone();
        new_process(&changed)
            .reduce(Anthropic, &mut given)
            .await
            .unwrap();
        assert_eq!(without_marks(given.clone()), expected, "{rounds} rounds");
        let marks = |messages: &[Value]| {
            let mut messages = messages.to_vec();
            blocks(&mut messages)
                .map(|block| block.get("cache_control").cloned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            marks(&given),
            marks(&marked),
            "each mark stays in its place"
        );

        // Thinking counts, so with less of it a pass may come later, but none undoes another.
        let mut thoughtless = original;
        drop_thinking(&mut thoughtless);
        new_process(&changed)
            .reduce(Anthropic, &mut thoughtless)
            .await
            .unwrap();
        assert_eq!(slots(&thoughtless), slots(&expected), "{rounds} rounds");
    }
    assert!(cleared > 5, "{cleared} were cleared");
}

#[tokio::test]
async fn b2_forks_and_steps_back_begin_with_what_was_sent() {
    let store = memory();
    let (trunk, _) = reduce(&new_process(&store), &history(16)).await;
    // A fork goes on from the tenth round with calls of its own.
    let mut fork = history(10);
    let shared = fork.len();
    for number in 0..3 {
        let id = format!("other_{number}");
        fork.extend(round(&id, "sed", &*lines(110)));
        let (sent, _) = reduce(&new_process(&store), &fork).await;
        assert_eq!(sent[..shared], trunk[..shared], "{number}");
    }
    // Decisions of the fork change nothing for the trunk.
    let (again, _) = reduce(&new_process(&store), &history(16)).await;
    assert_eq!(again, trunk);
    let (back, _) = reduce(&new_process(&store), &history(14)).await;
    let (last, begins): (&Message, _) = back.split_last().unwrap();
    assert_eq!(begins, &trunk[..begins.len()]);
    assert!(matches!(last, Message::Tool { .. }));
}

#[tokio::test]
async fn b2_a_result_that_a_client_doubles_on_resume_gets_the_same_place() {
    let store = memory();
    let messages = history(8);
    let mut sent = messages.clone();
    new_process(&store).reduce(Plain, &mut sent).await.unwrap();
    let mut doubled = messages.clone();
    doubled.insert(3, messages[2].clone());
    new_process(&store)
        .reduce(Plain, &mut doubled)
        .await
        .unwrap();
    let extra = doubled.remove(3);
    assert_eq!(doubled, sent);
    assert_ne!(extra, messages[2], "it is over the limit, so it is cut too");
}

#[tokio::test]
async fn b2_documents_that_a_handler_shows_again_are_repeated_byte_for_byte() {
    let store = memory();
    let shorten = async |outcome: ToolOutcome| {
        let mut parts = outcome.parts;
        parts[0] = "short".into();
        Ok(Action::Replace(Replacement::discarding(parts)))
    };
    let call = call("call_1", "query");
    let (long, short) = (json!({"rows": lines(400)}), json!({"rows": 1}));
    let parts = vec![lines(400).into(), Part::Json(long), Part::Json(short)];
    let messages = [
        Message::calls(vec![call.clone()]),
        Message::tool(&call, parts, false),
    ];
    let mut sent = Vec::new();
    for _ in 0..2 {
        let process = small(store.clone()).trunc_handler(shorten).build();
        sent.push(reduce(&process.unwrap(), &messages).await.0);
    }
    assert!(sent[0] != messages && sent[0] == sent[1]);
}
