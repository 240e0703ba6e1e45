//! Conversations whose results must be cut, and what holds of all that reaches the provider.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::http::{self, Message};

pub const CONVERSATIONS: usize = 5;
pub const CALLS: usize = 20;
/// The start of all credentials.
pub const KEY: &str = "sk-planted";

/// Settings that cut these conversations, before the provider of `url`.
pub fn settings(url: &str) -> String {
    format!(
        "preset = \"recommended\"\nmax_tokens_for_clear = 6000\n[serve]\ntenant_key = \"0123456789abcdef\"\n[serve.upstreams]\nanthropic = \"{url}\"\n"
    )
}

/// The request for a turn of a conversation.
fn request(conversation: usize, call: usize) -> String {
    let mut messages =
        vec![json!({"role": "user", "content": format!("Task {conversation}: go on.")})];
    for round in 0..=call {
        let id = format!("toolu_{conversation}_{round}");
        let lines = [3, 400, 20, 90][round % 4];
        let line = |line: usize| {
            format!(
                "{line}: the value_{line} of round {round}, {conversation}, is {}\n",
                line * 7
            )
        };
        let text: String = (0..lines).map(line).collect();
        let call = json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": format!("run {round}")}});
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": text});
        messages.push(json!({"role": "assistant", "content": [call]}));
        messages.push(json!({"role": "user", "content": [result]}));
    }
    let tools = json!([{"name": "Bash", "input_schema": {"type": "object"}}, {"name": "Read", "input_schema": {"type": "object"}}]);
    json!({"model": "m", "max_tokens": 9, "messages": messages, "tools": tools}).to_string()
}

/// Sends a turn of a conversation.
///
/// # Errors
///
/// The connection broke.
pub fn ask(server: SocketAddr, conversation: usize, call: usize) -> io::Result<()> {
    let (key, place) = (
        format!("{KEY}-{conversation}"),
        format!("{conversation} {call}"),
    );
    let headers = [("x-api-key", key.as_str()), ("x-place", place.as_str())];
    let body = request(conversation, call);
    let reply = http::post(server, "/anthropic/v1/messages", &headers, &body)?;
    assert!(reply.head.starts_with("HTTP/1.1 200 "), "{reply:?}");
    assert!(reply.body.starts_with(r#"{"number":"#), "{reply:?}");
    let outcome = reply.header("x-offcut").unwrap();
    assert!(["reduced", "unchanged"].contains(&outcome), "{outcome}");
    Ok(())
}

/// Checks that a turn that came twice came with the same bytes, and that each goes on where the one before ended.
pub fn are_the_same(seen: &[Message]) {
    let mut turns: HashMap<(usize, usize), &str> = HashMap::new();
    for message in seen {
        let (conversation, call) = message.header("x-place").unwrap().split_once(' ').unwrap();
        let place = (conversation.parse().unwrap(), call.parse().unwrap());
        let before = turns.entry(place).or_insert(&message.body);
        assert!(
            *before == message.body,
            "turn {place:?} was sent twice, and not with the same bytes"
        );
    }
    let (mut breaks, mut cleared) = (0, 0);
    for conversation in 0..CONVERSATIONS {
        let messages = |call: usize| -> Vec<Value> {
            let mut body: Value = serde_json::from_str(turns[&(conversation, call)]).unwrap();
            serde_json::from_value(body["messages"].take()).unwrap()
        };
        let hints = |call: usize| {
            turns[&(conversation, call)]
                .matches("[offcut/1 cleared")
                .count()
        };
        for call in 1..CALLS {
            let (before, now) = (messages(call - 1), messages(call));
            if !now.starts_with(&before) {
                breaks += 1;
                assert!(hints(call) > hints(call - 1), "{conversation}, {call}");
            }
            cleared += usize::from(hints(call) > hints(call - 1));
        }
    }
    assert!(
        cleared > 0 && breaks <= cleared,
        "{breaks} breaks, {cleared} passes"
    );
}

/// Checks that each hint leads to a text that a client sent.
pub fn are_whole(seen: &[Message]) {
    let mut count = 0;
    for message in seen {
        let body: Value = serde_json::from_str(&message.body).unwrap();
        let place = message.header("x-place").unwrap();
        let (conversation, call) = place.split_once(' ').unwrap();
        let asked = request(conversation.parse().unwrap(), call.parse().unwrap());
        let asked: Value = serde_json::from_str(&asked).unwrap();
        let results = |body: &Value| -> Vec<String> {
            let messages = body["messages"].as_array().unwrap().iter();
            let texts = messages.filter_map(|message| message["content"][0]["content"].as_str());
            texts.map(str::to_owned).collect()
        };
        for (sent, original) in results(&body).iter().zip(results(&asked)) {
            if *sent == original {
                continue;
            }
            let hint = offcut::hint::Hint::parse(sent).expect("a hint");
            let path = hint.location.expect("stored").to_string();
            assert_eq!(std::fs::read_to_string(path).unwrap(), original);
            count += 1;
        }
    }
    assert!(count > CALLS, "{count} hints");
}
