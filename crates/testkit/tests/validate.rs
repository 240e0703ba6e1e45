//! Messages that each provider accepts or rejects.
// Helpers may unwrap, as tests may.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use offcut::format::WireFormat;
use offcut_testkit::validate;
use serde_json::{Value, json};

/// Checks a conversation that every provider accepts, and mistakes in it: the index and the problem
/// that the error must name.
fn check(format: WireFormat, valid: &Value, wrong: &[(&str, Value, usize, &str)]) {
    let list = |value: &Value| value.as_array().unwrap().clone();
    assert_eq!(validate(format, &list(valid)), Ok(()));
    assert_eq!(validate(format, &[]), Ok(()));
    for (pointer, value, at, problem) in wrong {
        let mut changed = valid.clone();
        let (holder, field) = pointer.rsplit_once('/').unwrap();
        match changed.pointer_mut(holder).unwrap() {
            Value::Array(items) if value == "REMOVED" => drop(items.remove(field.parse().unwrap())),
            Value::Object(fields) if value == "REMOVED" => drop(fields.remove(field)),
            Value::Array(items) => items[field.parse::<usize>().unwrap()] = value.clone(),
            holder => holder[field] = value.clone(),
        }
        let error = validate(format, &list(&changed)).expect_err(&format!("{pointer} = {value}"));
        assert_eq!(error.message, *at, "{pointer} = {value}: {error}");
        assert!(
            error.problem.contains(problem),
            "{pointer} = {value}: {error}"
        );
    }
}

#[test]
fn l5_chat_completions() {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let valid = json!([
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": null, "tool_calls": [call("a"), call("b")]},
        {"role": "tool", "tool_call_id": "b", "content": "x"},
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "y"}]},
        {"role": "assistant", "content": "done"},
    ]);
    check(
        WireFormat::OpenAiChat,
        &valid,
        &[
            (
                "/3",
                json!("REMOVED"),
                2,
                "the call \"b\" has no tool message",
            ),
            ("/4", json!({"role": "user", "content": "stop"}), 2, "\"a\""),
            ("/4/tool_call_id", json!("c"), 4, "\"c\""),
            ("/4/tool_call_id", json!("b"), 4, "\"b\""),
            ("/4/content", json!([]), 4, "empty"),
            ("/4/content", json!({}), 4, "string or a list"),
            (
                "/2",
                json!({"role": "assistant", "content": "x"}),
                3,
                "\"b\"",
            ),
            (
                "/2/tool_calls/0/function/arguments",
                json!({}),
                2,
                "`arguments`",
            ),
            ("/2/tool_calls", json!([]), 2, "non-empty"),
            (
                "/5",
                json!({"role": "assistant"}),
                5,
                "content or tool calls",
            ),
            ("/5/role", json!("model"), 5, "`role`"),
            (
                "/5",
                json!({"role": "assistant", "tool_calls": [call("a")], "content": null}),
                5,
                "no tool message",
            ),
            ("/1/content", json!(null), 1, "`content`"),
            ("/1", json!("go"), 1, "`role`"),
        ],
    );
}

#[test]
fn l5_responses() {
    let valid = json!([
        {"role": "user", "content": "go"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "b", "name": "g", "input": "x"},
        {"type": "function_call_output", "call_id": "a", "output": "x"},
        {"role": "user", "content": [{"type": "input_text", "text": "and"}]},
        {"type": "custom_tool_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "y"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done", "annotations": []}]},
    ]);
    check(
        WireFormat::Responses,
        &valid,
        &[
            ("/4", json!("REMOVED"), 2, "the call \"a\" has no output"),
            ("/2", json!("REMOVED"), 3, "\"a\""),
            ("/6/type", json!("function_call_output"), 6, "\"b\""),
            ("/6/output/0/type", json!("text"), 6, "\"text\""),
            ("/6/output", json!([]), 6, "empty"),
            ("/4/output", json!({"a": 1}), 4, "`output`"),
            ("/2/arguments", json!({}), 2, "`arguments`"),
            ("/3/input", json!("REMOVED"), 3, "`input`"),
            ("/7/role", json!("tool"), 7, "`role`"),
            ("/0", json!([]), 0, "object"),
        ],
    );
}

#[test]
fn l5_anthropic() {
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "x"});
    let text = |text: &str| json!({"type": "text", "text": text});
    let valid = json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}, call("a"), call("b")]},
        {"role": "user", "content": [result("b")]},
        {"role": "user", "content": [result("a"), text("and")]},
        {"role": "assistant", "content": [text("once more"), call("c")]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "is_error": true}]},
        {"role": "assistant", "content": "done"},
    ]);
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}});
    check(
        WireFormat::Anthropic,
        &valid,
        &[
            ("/0", json!("REMOVED"), 0, "first message"),
            ("/2", json!("REMOVED"), 1, "\"b\" has no result"),
            ("/3/content/0", text("x"), 1, "\"a\" has no result"),
            (
                "/3/content",
                json!([text("and"), result("a")]),
                3,
                "before everything else",
            ),
            ("/3/content/0/tool_use_id", json!("b"), 3, "\"b\""),
            ("/5/content/0/content", json!([image]), 5, "only text"),
            ("/5/content/0/content", json!([text(" ")]), 5, "empty"),
            ("/5/content/0/content", json!(7), 5, "`content`"),
            ("/4/content/1/id", json!("a"), 4, "two calls"),
            ("/4/content/1/id", json!("a.b"), 4, "letters"),
            ("/4/content/1/input", json!("{}"), 4, "`input`"),
            ("/1/content/0/signature", json!("REMOVED"), 1, "`signature`"),
            ("/0/content", json!(""), 0, "empty"),
            ("/0/role", json!("system"), 0, "`role`"),
            (
                "/6",
                json!({"role": "assistant", "content": [call("d")]}),
                6,
                "\"d\"",
            ),
            ("/2/role", json!("assistant"), 2, "user messages"),
        ],
    );
}

#[test]
fn l5_gemini() {
    let response =
        |name: &str| json!({"functionResponse": {"name": name, "response": {"output": "x"}}});
    let valid = json!([
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [{"text": "hm", "thought": true}, {"functionCall": {"name": "f", "args": {}}}, {"functionCall": {"name": "g"}}]},
        {"role": "user", "parts": [response("g"), response("f")]},
        {"role": "model", "parts": [{"text": "done"}]},
    ]);
    check(
        WireFormat::Gemini,
        &valid,
        &[
            ("/2/parts/0", json!("REMOVED"), 2, "1 function responses"),
            ("/2", json!("REMOVED"), 1, "0 function responses"),
            ("/1", json!("REMOVED"), 1, "2 function responses"),
            ("/0", json!("REMOVED"), 0, "follow a user content"),
            ("/2/parts/0/functionResponse/name", json!("h"), 2, "\"h\""),
            (
                "/2/parts/0/functionResponse/response",
                json!("x"),
                2,
                "`response`",
            ),
            ("/1/parts/1/functionCall/args", json!("{}"), 1, "`args`"),
            ("/3/parts", json!([]), 3, "`parts`"),
            ("/3/parts/0", json!({}), 3, "a part"),
            ("/3/role", json!("assistant"), 3, "`role`"),
            (
                "/3/parts/0",
                json!({"functionCall": {"name": "f"}}),
                3,
                "no responses",
            ),
        ],
    );
}

#[test]
fn l7_json_that_is_not_a_message_is_refused_without_panicking() {
    for format in WireFormat::ALL {
        for odd in [
            json!(null),
            json!(1),
            json!("x"),
            json!([]),
            json!({}),
            json!({"role": 1}),
            json!({"role": "user", "type": 1}),
        ] {
            assert!(
                validate(format, std::slice::from_ref(&odd)).is_err(),
                "{format}: {odd}"
            );
        }
    }
}

#[test]
fn an_error_shows_no_more_than_the_beginning_of_an_id() {
    let message = json!({"role": "tool", "tool_call_id": "呼".repeat(1_000), "content": "secret"});
    let error = validate(WireFormat::OpenAiChat, &[message])
        .unwrap_err()
        .to_string();
    assert!(error.len() < 300 && !error.contains("secret"), "{error}");
}
