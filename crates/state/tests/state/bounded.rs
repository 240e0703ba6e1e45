//! Windows of conversations, judged by the rules of the providers.

use std::num::NonZeroUsize;

use offcut::format::WireFormat;
use offcut_state::{BoundedMessages, Reducer};
use offcut_testkit::validate;
use serde_json::{Value, json};

fn windows(format: WireFormat, messages: &[Value]) -> Vec<Vec<Value>> {
    (1..messages.len())
        .map(|max| {
            BoundedMessages::new(format, NonZeroUsize::new(max).unwrap())
                .reduce(Vec::new(), messages.to_vec())
                .unwrap()
        })
        .collect()
}

/// One request that takes many rounds, then a second one.
fn turns(
    round: impl Fn(usize) -> [Value; 2],
    user: impl Fn(&str) -> Value,
    answer: Value,
) -> Vec<Value> {
    let mut messages = vec![user("Find it.")];
    messages.extend((0..4).flat_map(&round));
    messages.extend([answer.clone(), user("And then?")]);
    messages.extend((4..6).flat_map(&round));
    messages.push(answer);
    messages
}

#[test]
fn windows_are_accepted_by_providers() {
    let anthropic = turns(
        |n| {
            [
                json!({"role": "assistant", "content": [{"type": "tool_use", "id": format!("t{n}"), "name": "f", "input": {}}]}),
                json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": format!("t{n}"), "content": "r"}]}),
            ]
        },
        |text| json!({"role": "user", "content": text}),
        json!({"role": "assistant", "content": "done"}),
    );
    let gemini = turns(
        |n| {
            [
                json!({"role": "model", "parts": [{"functionCall": {"id": format!("t{n}"), "name": "f", "args": {}}}]}),
                json!({"role": "user", "parts": [{"functionResponse": {"id": format!("t{n}"), "name": "f", "response": {"output": "r"}}}]}),
            ]
        },
        |text| json!({"role": "user", "parts": [{"text": text}]}),
        json!({"role": "model", "parts": [{"text": "done"}]}),
    );
    for window in windows(WireFormat::Anthropic, &anthropic) {
        validate(WireFormat::Anthropic, &window).unwrap();
    }
    for window in windows(WireFormat::Gemini, &gemini) {
        validate(WireFormat::Gemini, &window).unwrap();
    }
}

#[test]
fn instructions_and_the_request_stay_and_the_bound_holds() {
    let system = json!({"role": "system", "content": "Never delete files."});
    let chat = turns(
        |n| {
            [
                json!({"role": "assistant", "content": null, "tool_calls": [{"id": format!("t{n}"), "type": "function", "function": {"name": "f", "arguments": "{}"}}]}),
                json!({"role": "tool", "tool_call_id": format!("t{n}"), "content": "r"}),
            ]
        },
        |text| json!({"role": "user", "content": text}),
        json!({"role": "assistant", "content": "done"}),
    );
    let all: Vec<Value> = std::iter::once(system.clone()).chain(chat).collect();
    for (window, max) in windows(WireFormat::OpenAiChat, &all).into_iter().zip(1..) {
        validate(WireFormat::OpenAiChat, &window).unwrap();
        assert_eq!(window[0], system, "{max}");
        assert_eq!(window[1]["role"], "user", "{max}");
        // The shortest: instruction, request, and what the model said last.
        assert!(window.len() <= max.max(3), "{max}: {}", window.len());
        assert_eq!(window.last(), all.last(), "{max}");
    }
}
