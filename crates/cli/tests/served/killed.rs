//! A server that is killed under load.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::{self, Message, Provider};
use crate::server::Server;

const CONVERSATIONS: usize = 5;
const CALLS: usize = 20;
const KILLS: usize = 4;
/// The start of all credentials.
const KEY: &str = "sk-planted";

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

/// Goes through a conversation as a client that tries again whatever the server did not answer.
fn converse(conversation: usize, server: std::net::SocketAddr) {
    let key = format!("{KEY}-{conversation}");
    for call in 0..CALLS {
        let place = format!("{conversation} {call}");
        let headers = [("x-api-key", key.as_str()), ("x-place", place.as_str())];
        let body = request(conversation, call);
        loop {
            match http::post(server, "/anthropic/v1/messages", &headers, &body) {
                Ok(reply) => {
                    assert!(reply.head.starts_with("HTTP/1.1 200 "), "{reply:?}");
                    assert!(reply.body.starts_with(r#"{"number":"#), "{reply:?}");
                    let outcome = reply.header("x-offcut").unwrap();
                    assert!(["reduced", "unchanged"].contains(&outcome), "{outcome}");
                    break;
                }
                // As clients do, with less patience.
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

#[test]
fn a_server_that_is_killed_under_load_loses_no_request_and_changes_no_byte() {
    let home = tempfile::tempdir().unwrap();
    let provider = Provider::start();
    let settings = format!(
        "preset = \"recommended\"\nmax_tokens_for_clear = 6000\n[serve]\ntenant_key = \"0123456789abcdef\"\n[serve.upstreams]\nanthropic = \"{}\"\n",
        provider.url
    );
    let mut server = Server::start(home.path(), &settings);
    let address = server.address;
    let clients: Vec<_> = (0..CONVERSATIONS)
        .map(|number| std::thread::spawn(move || converse(number, address)))
        .collect();
    let each = CONVERSATIONS * CALLS / (KILLS + 1);
    for kill in 1..=KILLS {
        provider.wait_for(kill * each);
        drop(server);
        server = loop {
            // Meanwhile, a client's own connection may have the port.
            if let Some(server) = Server::listening(home.path(), &settings, address) {
                break server;
            }
        };
    }
    for client in clients {
        client.join().unwrap();
    }
    let metrics = http::post(address, "/metrics", &[], "").unwrap().body;
    drop(server);

    let seen = provider.take();
    assert!(seen.len() >= CONVERSATIONS * CALLS);
    println!(
        "{KILLS} kills: {} turns, {} requests at the provider",
        CONVERSATIONS * CALLS,
        seen.len()
    );
    are_the_same(&seen);
    // Hints name paths of the store, and what they lead to is what the client sent.
    are_whole(&seen);
    has_no_secret(home.path(), &metrics, &seen);
}

/// Checks that a turn that came twice came with the same bytes, and that each goes on where the one before ended.
fn are_the_same(seen: &[Message]) {
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
fn are_whole(seen: &[Message]) {
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

/// Checks that no credential is in the log, in the metrics, in the store or in what was sent as text.
fn has_no_secret(home: &Path, metrics: &str, seen: &[Message]) {
    assert!(metrics.contains("offcut_requests_total"), "{metrics}");
    assert!(!metrics.contains(KEY));
    assert!(seen.iter().all(|message| !message.body.contains(KEY)));
    assert!(std::fs::metadata(home.join("log")).unwrap().len() > 0);
    let (mut folders, mut files) = (vec![home.to_owned()], 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            assert!(!path.to_string_lossy().contains(KEY), "{path:?}");
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            files += 1;
            let bytes = std::fs::read(&path).unwrap();
            let mut windows = bytes.windows(KEY.len());
            assert!(!windows.any(|window| window == KEY.as_bytes()), "{path:?}");
        }
    }
    assert!(files > CONVERSATIONS);
}
