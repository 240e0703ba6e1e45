//! The part of a request that the model gets: only that counts, and only that is changed.

use offcut::format::{Messages, WireFormat};
use offcut::{Report, ToolCall, ToolReduction, Turn};
use serde_json::{Value, json};

use crate::common::{lines, memory};

/// A reduction that clears whatever it may, and truncates at 2 kB.
fn eager(threshold: u64) -> ToolReduction {
    ToolReduction::builder()
        .backend(memory())
        .token_counter(offcut::TokenCounter::Estimate)
        .max_length_for_trunc(2_000)
        .preview_length(200)
        .max_tokens_for_clear(threshold)
        .clear_retention_suffix_limit(1)
        .clear_tool_inputs(true)
        .clear_tool_inputs_above(100)
        .build()
        .unwrap()
}

async fn clear_with(
    reduction: &ToolReduction,
    format: WireFormat,
    messages: &mut [Value],
    tools: &[Value],
) -> Report {
    let mut conversation = Messages::new(&format, messages);
    let mut turn = Turn {
        tools,
        ..Turn::new(&mut conversation)
    };
    reduction.clear_turn(&mut turn).await.unwrap()
}

/// The tokens of messages in which nothing can be cleared.
async fn counted(format: WireFormat, messages: Vec<Value>, tools: &[Value]) -> u64 {
    let (reduction, mut messages) = (eager(1), messages);
    let all = reduction.count_tokens(&Messages::new(format, &mut messages), tools);
    let report = clear_with(&reduction, format, &mut messages, tools).await;
    assert_eq!(report.tokens.unwrap().counted, all);
    all
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "so that `json!` can stand there"
)]
fn anthropic_round(id: &str, more: Value, content: Value) -> [Value; 2] {
    let mut call = json!({"type": "tool_use", "id": id, "name": "f", "input": {"text": lines(60)}});
    call.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    [
        json!({"role": "assistant", "content": [call]}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": content}]}),
    ]
}

fn chat_round(id: &str, content: &str) -> [Value; 2] {
    [
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "f", "arguments": json!({"text": lines(60)}).to_string()}},
        ]}),
        json!({"role": "tool", "tool_call_id": id, "content": content}),
    ]
}

#[tokio::test]
async fn media_count_by_their_kind_wherever_they_stand() {
    use WireFormat::{Anthropic, OpenAiChat, Responses};
    let bytes = "QUJD".repeat(40_000);
    let png = format!("data:image/png;base64,{bytes}");
    let pdf = format!("data:application/pdf;base64,{bytes}");
    let cases = [
        (
            Responses,
            json!({"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot", "image_url": png}}),
        ),
        (
            Responses,
            json!({"type": "image_generation_call", "id": "i", "result": format!("iVBOR{bytes}")}),
        ),
        (
            Responses,
            json!({"role": "user", "content": [{"type": "input_file", "filename": "a.pdf", "file_data": pdf}]}),
        ),
        (
            Responses,
            json!({"type": "compaction", "encrypted_content": bytes}),
        ),
        (
            OpenAiChat,
            json!({"role": "user", "content": [{"type": "file", "file": {"filename": "a.pdf", "file_data": pdf}}]}),
        ),
        (
            Anthropic,
            json!({"role": "user", "content": [
                {"type": "document", "title": "t", "source": {"type": "base64", "media_type": "application/pdf", "data": bytes}},
            ]}),
        ),
        (
            Anthropic,
            json!({"role": "assistant", "content": [{"type": "redacted_thinking", "data": bytes}]}),
        ),
        (
            OpenAiChat,
            json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": format!("DATA:image/png;BASE64,{bytes}")}}]}),
        ),
        (
            Responses,
            json!({"type": "computer_call_output", "call_id": "c", "output": {"image_url": format!("Data:image/png;Base64,{bytes}")}}),
        ),
        (
            Anthropic,
            json!({"role": "assistant", "content": [
                {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"title": "t", "encrypted_content": bytes}]},
            ]}),
        ),
    ];
    for (format, message) in cases {
        let tokens = counted(format, vec![message.clone()], &[]).await;
        assert!(tokens < 4_000, "{tokens} {:.90}", message.to_string());
    }
    let redacted = |data: &str| json!({"role": "assistant", "content": [{"type": "redacted_thinking", "data": data}]});
    let [short, none] =
        [&bytes[..200], ""].map(|data| counted(Anthropic, vec![redacted(data)], &[]));
    assert_eq!(short.await, none.await);
    // One screenshot of 150 kB leaves the older results alone.
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    for n in 0..8 {
        messages.extend([
            json!({"type": "function_call", "call_id": format!("c{n}"), "name": "f", "arguments": "{}"}),
            json!({"type": "function_call_output", "call_id": format!("c{n}"), "output": lines(40)}),
        ]);
    }
    messages.push(json!({"type": "computer_call_output", "call_id": "s", "output": {"type": "computer_screenshot", "image_url": png}}));
    let before = messages.clone();
    clear_with(&eager(10_000), Responses, &mut messages, &[]).await;
    assert_eq!(messages, before);
}

#[tokio::test]
async fn thoughts_count_once_in_whatever_field() {
    let thoughts = lines(300);
    let with = |fields: Value| {
        let mut message = json!({"role": "assistant", "content": "so"});
        message
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        counted(WireFormat::OpenAiChat, vec![message], &[])
    };
    let (first, second) = thoughts.split_at(900);
    let plain = with(json!({"reasoning_content": thoughts})).await;
    assert!(plain > 500, "{plain}");
    for fields in [
        json!({"reasoning": thoughts}),
        json!({"thinking": thoughts}),
        json!({"reasoning_text": thoughts}),
        json!({"reasoning": thoughts, "reasoning_content": thoughts}),
        json!({"reasoning": format!("{thoughts}\n"), "reasoning_content": thoughts.trim()}),
        json!({"reasoning_content": format!("{first}\n{second}"), "thinking_blocks": [{"thinking": first}, {"thinking": second}]}),
        json!({"reasoning_details": [{"type": "reasoning.text", "text": thoughts}]}),
        json!({"thinking_blocks": [{"type": "thinking", "thinking": thoughts, "signature": "c2ln"}]}),
        json!({"reasoning": thoughts, "reasoning_details": [{"text": first}, {"text": second}]}),
        json!({"reasoning_content": thoughts, "thinking_blocks": [{"thinking": thoughts}], "reasoning_details": [{"summary": thoughts}]}),
        json!({"reasoning": thoughts, "reasoning_details": [{"summary": "so"}, {"text": thoughts}]}),
    ] {
        let tokens = with(fields.clone()).await;
        assert!(
            tokens.abs_diff(plain) < 5,
            "{tokens} {plain} {:.60}",
            fields.to_string()
        );
    }
}

#[tokio::test]
async fn images_beside_the_content_count() {
    let image = format!("iVBOR{}", "QUJD".repeat(10_000));
    let listed = json!([{"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{image}")}}]);
    let of = |role: &str, images: Value| {
        let message = json!({"role": role, "content": "x", "images": images});
        counted(WireFormat::OpenAiChat, vec![message], &[])
    };
    let without = of("user", json!([])).await;
    for (role, images) in [("user", json!([image])), ("assistant", listed)] {
        let tokens = of(role, images).await - without;
        assert!((500..4_000).contains(&tokens), "{role}: {tokens}");
    }
}

#[tokio::test]
async fn tools_count_once_they_are_loaded() {
    let small = json!({"name": "search", "input_schema": {}});
    let large = |deferred: bool| json!({"name": "big", "defer_loading": deferred, "input_schema": {"description": lines(200)}});
    let user = json!({"role": "user", "content": "go"});
    let of = |tools: Vec<Value>, messages: Vec<Value>| async move {
        counted(WireFormat::Anthropic, messages, &tools).await
    };
    let without = of(vec![small.clone()], vec![user.clone()]).await;
    let with = of(vec![small.clone(), large(false)], vec![user.clone()]).await;
    assert!(with > without + 300);
    assert_eq!(
        of(vec![small.clone(), large(true)], vec![user.clone()]).await,
        without
    );
    let inside = json!({"type": "namespace", "name": "n", "tools": [large(true)]});
    let empty = json!({"type": "namespace", "name": "n", "tools": []});
    assert_eq!(
        of(vec![inside], vec![user.clone()]).await,
        of(vec![empty], vec![user.clone()]).await
    );
    let [call, result] = anthropic_round(
        "a",
        json!({}),
        json!([{"type": "tool_reference", "tool_name": "big"}]),
    );
    let loaded = of(
        vec![small.clone(), large(true)],
        vec![user.clone(), call.clone(), result.clone()],
    )
    .await;
    let unloaded = of(vec![small], vec![user, call, result]).await;
    assert!(loaded > unloaded + 300);
}

#[tokio::test]
async fn nothing_before_a_compaction_counts_or_is_cleared() {
    let long = json!(lines(120));
    let mut messages: Vec<Value> = vec![json!({"role": "user", "content": "go"})];
    messages.extend(anthropic_round("a", json!({}), long.clone()));
    messages.push(
        json!({"role": "assistant", "content": [{"type": "compaction", "content": "so far"}]}),
    );
    messages.push(json!({"role": "user", "content": "on"}));
    let after = counted(WireFormat::Anthropic, messages[3..].to_vec(), &[]).await;
    assert_eq!(
        counted(WireFormat::Anthropic, messages.clone(), &[]).await,
        after
    );
    messages.extend(anthropic_round("b", json!({}), long.clone()));
    messages.extend(anthropic_round("c", json!({}), json!("done")));
    messages.push(json!({"role": "assistant", "content": "ok"}));
    let mut sent = messages.clone();
    clear_with(&eager(10), WireFormat::Anthropic, &mut sent, &[]).await;
    assert_eq!(sent[..5], messages[..5]);
    assert_ne!(sent[6], messages[6], "what comes after is cleared");
    // LiteLLM's spelling.
    let mut chat = vec![json!({"role": "user", "content": long})];
    chat.extend(chat_round("a", "r"));
    let mut last = chat_round("b", "r");
    last[0]["provider_specific_fields"] =
        json!({"compaction_blocks": [{"type": "compaction", "content": "so far"}]});
    chat.extend(last);
    let after = counted(WireFormat::OpenAiChat, chat[3..].to_vec(), &[]).await;
    assert_eq!(counted(WireFormat::OpenAiChat, chat, &[]).await, after);
    // A failed one stands for nothing.
    messages[3]["content"][0]["content"] = Value::Null;
    let mut sent = messages.clone();
    clear_with(&eager(10), WireFormat::Anthropic, &mut sent, &[]).await;
    assert_ne!(sent[2], messages[2]);
}

#[tokio::test]
async fn results_for_programs_are_whole_and_do_not_count() {
    let long = json!(lines(400));
    let caller = json!({"caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}});
    let direct = json!({"caller": {"type": "direct"}});
    let mut anthropic: Vec<Value> = vec![json!({"role": "user", "content": "go"})];
    anthropic.extend(anthropic_round("a", caller, long.clone()));
    let alone = counted(WireFormat::Anthropic, anthropic.clone(), &[]).await;
    assert!(alone < 60, "{alone}");
    anthropic.extend(anthropic_round("b", direct, long.clone()));
    anthropic.extend(anthropic_round("c", json!({}), json!("done")));
    anthropic.push(json!({"role": "assistant", "content": "ok"}));
    let item = |kind: &str, id: &str, caller: Value| json!({"type": kind, "call_id": id, "name": "f", "arguments": "{}", "output": long, "caller": caller});
    let mut responses = vec![json!({"role": "user", "content": "go"})];
    for (id, caller) in [
        ("a", json!({"type": "program", "caller_id": "p"})),
        ("b", json!({"type": "direct"})),
        ("c", json!({"type": "direct"})),
    ] {
        responses.push(item("function_call", id, caller.clone()));
        responses.push(item("function_call_output", id, caller));
    }
    responses.push(json!({"role": "assistant", "content": "ok"}));
    for (format, messages) in [
        (WireFormat::Anthropic, anthropic),
        (WireFormat::Responses, responses),
    ] {
        let (mut cleared, mut reduced) = (messages.clone(), messages.clone());
        clear_with(&eager(10), format, &mut cleared, &[]).await;
        eager(10).reduce(&format, &mut reduced).await.unwrap();
        for sent in [cleared, reduced] {
            assert_eq!(sent[..3], messages[..3], "{format}");
            assert_ne!(
                sent[4], messages[4],
                "{format}: a direct call's result is replaced"
            );
        }
    }
    // LiteLLM's spellings.
    let caller = json!({"type": "code_execution_20260120", "tool_id": "srvtoolu_1"});
    let within = json!({"caller": caller});
    for (holder, field, value) in [
        ("", "caller", &caller),
        ("/function", "caller", &caller),
        ("", "provider_specific_fields", &within),
        ("/function", "provider_specific_fields", &within),
    ] {
        let mut chat = chat_round("a", &lines(400));
        let call = &mut chat[0]["tool_calls"][0];
        call.pointer_mut(holder).unwrap()[field] = value.clone();
        let mut sent = chat.clone();
        let reduced = eager(10).reduce(&WireFormat::OpenAiChat, &mut sent).await;
        reduced.unwrap();
        assert_eq!(sent, chat, "{holder} {field}");
    }
    // A pass over the threshold, in which nothing may be cleared, reads all; the next one counts beside that.
    let mut again = vec![json!({"role": "user", "content": "go"})];
    for (id, text) in [("a", 400), ("b", 300), ("c", 2)] {
        let caller = match id {
            "a" => json!({"caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}}),
            _ => json!({}),
        };
        again.extend(anthropic_round(id, caller, json!(lines(text))));
    }
    let keeping = ToolReduction::builder().backend(memory());
    let keeping = keeping
        .max_tokens_for_clear(10)
        .clear_at_least_tokens(1_000_000);
    let keeping = keeping.build().unwrap();
    let mut reports = Vec::new();
    for _ in 0..2 {
        let report = clear_with(&keeping, WireFormat::Anthropic, &mut again.clone(), &[]).await;
        reports.push(json!(report.decisions));
    }
    assert_eq!(reports[0], reports[1]);
    assert_ne!(reports[0], json!([]));
    let call = ToolCall {
        is_for_program: true,
        ..ToolCall::new("a", "f", "{}")
    };
    let shown = eager(10).truncate(&call, lines(400)).await.unwrap();
    assert_eq!(shown.parts, [lines(400).into()]);
}

#[tokio::test]
async fn references_to_tools_stay() {
    use WireFormat::{Anthropic, OpenAiChat, Responses};
    let text = json!({"type": "text", "text": lines(200)});
    let reference = json!({"type": "tool_reference", "tool_name": "big"});
    let found = json!({"type": "tool_search_tool_search_result", "tool_references": [reference]});
    let item = |kind: &str, output: Value| json!({"type": kind, "call_id": "a", "name": "f", "arguments": "{}", "output": output});
    for (format, [call, result]) in [
        (
            Anthropic,
            anthropic_round("a", json!({}), json!([text, reference])),
        ),
        (
            Anthropic,
            anthropic_round("a", json!({}), json!([text, found])),
        ),
        (OpenAiChat, {
            let [call, mut result] = chat_round("a", "");
            result["content"] = json!([text, reference]);
            [call, result]
        }),
        (
            Responses,
            ["function_call", "function_call_output"]
                .map(|kind| item(kind, json!([text, reference]))),
        ),
    ] {
        let mut messages: Vec<Value> = vec![json!({"role": "user", "content": "go"}), call, result];
        messages.extend(match format {
            Anthropic => anthropic_round("b", json!({}), json!("done")),
            OpenAiChat => chat_round("b", "done"),
            _ => ["function_call", "function_call_output"].map(|kind| item(kind, json!("done"))),
        });
        messages.push(json!({"role": "assistant", "content": "ok"}));
        let (mut cleared, mut reduced) = (messages.clone(), messages.clone());
        clear_with(&eager(10), format, &mut cleared, &[]).await;
        eager(10).reduce(&format, &mut reduced).await.unwrap();
        for sent in [cleared, reduced] {
            assert_eq!(sent[2], messages[2], "{format}");
        }
    }
}

#[tokio::test]
async fn arguments_keep_their_type_and_signed_ones_stay() {
    let mut messages: Vec<Value> = vec![json!({"role": "user", "content": "go"})];
    let text = lines(60);
    let arguments = json!({"text": text});
    let signature = json!({"google": {"thought_signature": "c2ln"}});
    let (call, function) = ("/tool_calls/0", "/tool_calls/0/function");
    let fields = [
        ("", "x", json!(1)),
        (function, "arguments", arguments.clone()),
        (
            call,
            "provider_specific_fields",
            json!({"thought_signature": "c2ln"}),
        ),
        (
            "",
            "reasoning_details",
            json!([{"type": "reasoning.encrypted", "data": "c2ln"}]),
        ),
        (call, "thought_signature", json!("c2ln")),
        (call, "provider_metadata", signature.clone()),
        (call, "additional_kwargs", signature.clone()),
        (function, "thought_signature", json!("c2ln")),
        (function, "extra_content", signature.clone()),
        ("", "thought_signature", json!("c2ln")),
        ("", "extra_content", signature.clone()),
        (
            "",
            "additional_kwargs",
            json!({"__gemini_thought_signatures__": {"c": "c2ln"}}),
        ),
        ("", "reasoning_opaque", json!("c2ln")),
        (
            "",
            "reasoning_details",
            json!({"format": "google-gemini-v1", "data": "c2ln"}),
        ),
        (
            "",
            "content",
            json!([{"type": "text", "text": "x", "extra_content": signature}]),
        ),
        (
            call,
            "provider_options",
            json!({"google": {"thoughtSignature": "c2ln"}}),
        ),
        (call, "google", json!({"thought_signature": "c2ln"})),
        (call, "metadata", json!({"thought_signature": "c2ln"})),
        (call, "model_extra", json!({"extra_content": signature})),
        (
            "",
            "provider_specific_fields",
            json!({"refusal": null, "thought_signatures": null}),
        ),
        // Without a signature. Those of thoughts, and what a model wrote, sign no call.
        (function, "provider_specific_fields", json!({"x": 1})),
        (call, "extra_content", json!({"google": {}})),
        (
            "",
            "content",
            json!([{"type": "thinking", "thinking": "x", "signature": "c2ln"}]),
        ),
        (
            "",
            "thinking_blocks",
            json!([{"type": "thinking", "thinking": "x", "signature": "c2ln"}]),
        ),
        (
            function,
            "arguments",
            json!({"signature": "fn f()", "text": text}),
        ),
    ];
    let unsigned = fields.len() - 6..fields.len();
    let signed = 2..unsigned.start;
    for (n, (holder, field, value)) in fields.into_iter().enumerate() {
        let mut round = chat_round(&format!("c{n}"), "r");
        round[0].pointer_mut(holder).unwrap()[field] = value;
        messages.extend(round);
    }
    messages.extend(chat_round("call__thought__c2ln", "r"));
    // Google signs only the first of parallel calls.
    let [mut calls, result] = chat_round("first", "r");
    let [other, other_result] = chat_round("second", "r");
    calls["tool_calls"][0]["extra_content"] = signature.clone();
    let second = &other["tool_calls"][0];
    calls["tool_calls"]
        .as_array_mut()
        .unwrap()
        .push(second.clone());
    messages.extend([calls, result, other_result]);
    messages.extend(chat_round("last", "r"));
    messages.push(json!({"role": "assistant", "content": "ok"}));
    let mut sent = messages.clone();
    clear_with(&eager(10), WireFormat::OpenAiChat, &mut sent, &[]).await;
    let of = |n: usize| sent[1 + 2 * n]["tool_calls"][0]["function"]["arguments"].clone();
    assert!(of(0).is_string() && of(0) != json!(arguments.to_string()));
    assert!(of(1).is_object() && of(1) != arguments, "{}", of(1));
    for signed in signed.chain([unsigned.end, unsigned.end + 1]) {
        assert_eq!(sent[1 + 2 * signed], messages[1 + 2 * signed], "{signed}");
    }
    for unsigned in unsigned {
        assert_ne!(
            sent[1 + 2 * unsigned],
            messages[1 + 2 * unsigned],
            "{unsigned}"
        );
    }
}

#[tokio::test]
async fn signed_arguments_stay_in_every_format() {
    let signature = json!({"google": {"thought_signature": "c2ln"}});
    let arguments = json!({"text": lines(60)});
    let fields = [
        ("x", json!(1)),
        ("extra_content", signature.clone()),
        ("provider_specific_fields", signature),
        ("thought_signature", json!("c2ln")),
        ("signature", json!("c2ln")),
    ];
    let (mut anthropic, mut responses) = (Vec::new(), Vec::new());
    let mut add = |id: &str, field: &str, value: &Value| {
        anthropic.extend(anthropic_round(id, json!({field: value}), json!("r")));
        responses.extend([
            json!({"type": "function_call", "call_id": id, "name": "f", "arguments": arguments.to_string(), field: value}),
            json!({"type": "function_call_output", "call_id": id, "output": "r"}),
        ]);
    };
    for (n, (field, value)) in fields.iter().enumerate() {
        add(&format!("c{n}"), field, value);
    }
    add("c__thought__c2ln", "x", &json!(1));
    add("last", "x", &json!(1));
    // Google signs only the first of parallel calls.
    for messages in [&mut anthropic, &mut responses] {
        let (first, end) = (messages[2..4].to_vec(), messages.len() - 2);
        let mut parallel = messages[..2].to_vec();
        match first[0].get("content") {
            Some(call) => {
                let (call, other) = (call[0].clone(), parallel[0]["content"][0].take());
                parallel[0]["content"] = json!([call, other]);
                let (result, other) = (
                    first[1]["content"][0].clone(),
                    parallel[1]["content"][0].take(),
                );
                parallel[1]["content"] = json!([result, other]);
            }
            None => {
                parallel.insert(0, first[0].clone());
                parallel.push(first[1].clone());
            }
        }
        messages.splice(end..end, parallel);
    }
    for (format, mut messages) in [
        (WireFormat::Anthropic, anthropic),
        (WireFormat::Responses, responses),
    ] {
        messages.push(json!({"role": "assistant", "content": "ok"}));
        let mut sent = messages.clone();
        clear_with(&eager(10), format, &mut sent, &[]).await;
        assert_ne!(sent[0], messages[0], "{format}");
        for signed in 1..=fields.len() {
            assert_eq!(sent[2 * signed], messages[2 * signed], "{format}");
        }
        let parallel = 2 * fields.len() + 2..messages.len() - 3;
        assert_eq!(sent[parallel.clone()], messages[parallel], "{format}");
    }
}

#[tokio::test]
async fn a_second_result_of_a_call_is_still_its_tools() {
    let long = lines(400);
    let call =
        json!({"id": "p", "type": "function", "function": {"name": "export", "arguments": "{}"}});
    let result = |content: &str| json!({"role": "tool", "tool_call_id": "p", "content": content});
    let mut messages = vec![
        json!({"role": "assistant", "tool_calls": [call]}),
        result("pending"),
        result(&long),
        json!({"role": "assistant", "content": "so"}),
    ];
    messages.extend(chat_round("a", "r"));
    messages.extend(chat_round("b", "r"));
    messages.push(json!({"role": "assistant", "content": "ok"}));
    let reduction = ToolReduction::builder()
        .backend(memory())
        .max_length_for_trunc(2_000)
        .preview_length(200)
        .max_tokens_for_clear(10)
        .clear_retention_suffix_limit(1)
        .trunc_exclude_tools(["export"])
        .clear_exclude_tools(["export"])
        .build()
        .unwrap();
    let mut sent = messages.clone();
    reduction
        .reduce(&WireFormat::OpenAiChat, &mut sent)
        .await
        .unwrap();
    clear_with(&reduction, WireFormat::OpenAiChat, &mut sent, &[]).await;
    assert_eq!(sent[..3], messages[..3]);
}

#[tokio::test]
async fn results_of_the_local_shell_grow_old() {
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    for n in 0..8 {
        messages.extend([
            json!({"type": "local_shell_call", "call_id": format!("c{n}"), "action": {"type": "exec", "command": ["echo", lines(60)]}}),
            json!({"type": "function_call_output", "call_id": format!("c{n}"), "output": lines(100)}),
        ]);
    }
    let mut sent = messages.clone();
    clear_with(&eager(10), WireFormat::Responses, &mut sent, &[]).await;
    assert_ne!(sent[2], messages[2]);
    assert_eq!(sent[1], messages[1], "a command has a prescribed shape");
    assert_eq!(sent[15..], messages[15..], "the newest stay");
}

#[tokio::test]
async fn the_oldest_errors_go_when_nothing_else_is_left() {
    let mut messages: Vec<Value> = vec![json!({"role": "user", "content": "go"})];
    for n in 0..30 {
        messages.extend([
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": format!("t{n}"), "name": "f", "input": {}}]}),
            json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": format!("t{n}"), "is_error": true, "content": format!("{n} {}", "failed ".repeat(27))},
            ]}),
        ]);
    }
    messages.push(json!({"role": "assistant", "content": "ok"}));
    let total = counted(WireFormat::Anthropic, messages.clone(), &[]).await;
    let reduction = |threshold| {
        ToolReduction::builder()
            .backend(memory())
            .token_counter(offcut::TokenCounter::Estimate)
            .preview_length(300)
            .stub_length(0)
            .max_tokens_for_clear(threshold)
            .clear_retention_suffix_limit(1)
            .build()
            .unwrap()
    };
    let mut sent = messages.clone();
    let report = clear_with(
        &reduction(total - 60),
        WireFormat::Anthropic,
        &mut sent,
        &[],
    )
    .await;
    assert!(report.is_change());
    let changed: Vec<usize> = (0..sent.len())
        .filter(|at| sent[*at] != messages[*at])
        .collect();
    assert!(!changed.is_empty() && changed.len() < 20, "{changed:?}");
    assert!(
        changed.iter().zip(0..).all(|(at, n)| *at == 2 + 2 * n),
        "oldest first: {changed:?}"
    );
    for at in &changed {
        assert_eq!(sent[*at]["content"][0]["is_error"], true);
    }
    // With something else to clear, they stay.
    let mut other = messages.clone();
    other.splice(1..1, anthropic_round("x", json!({}), json!(lines(400))));
    let mut sent = other.clone();
    clear_with(
        &reduction(total + 400),
        WireFormat::Anthropic,
        &mut sent,
        &[],
    )
    .await;
    assert_eq!(sent[3..], other[3..]);
}
