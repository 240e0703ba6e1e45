//! Typed messages are read and changed like their JSON.
// Helpers may unwrap, as tests may.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use async_openai::types::chat::{ChatCompletionMessageToolCalls, ChatCompletionRequestMessage};
use async_openai::types::responses::InputItem;
use offcut::backend::Memory;
use offcut::format::{Conversation, LoopFormat, Messages, NewPiece, OpenAiChat, Piece, Responses};
use offcut::{Part, TokenCounter, ToolCall, ToolReduction};
use offcut_async_openai::{TypedChat, TypedMessage, TypedMessages, TypedResponses};
use serde_json::{Value, json};

fn typed<M: serde::de::DeserializeOwned>(messages: &Value) -> Vec<M> {
    messages
        .as_array()
        .unwrap()
        .iter()
        .map(|message| {
            serde_json::from_value(message.clone())
                .unwrap_or_else(|error| panic!("{error}: {message}"))
        })
        .collect()
}

const IMAGE: &str = "data:image/png;base64,AAAA";

fn chat() -> Value {
    let mark = json!({"mode": "explicit"});
    json!([
        {"role": "system", "content": "be brief"},
        {"role": "developer", "content": [{"type": "text", "text": "be brief"}]},
        {"role": "user", "content": [{"type": "text", "text": "go"}, {"type": "image_url", "image_url": {"url": IMAGE}}]},
        {"role": "assistant", "content": "Looking.", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "grep", "arguments": "{\"pattern\":\"x\"}"}},
            {"id": "b", "type": "custom", "custom_tool": {"name": "cat", "input": "{}"}},
        ]},
        {"role": "tool", "tool_call_id": "a", "content": "3 hits"},
        {"role": "tool", "tool_call_id": "b", "content": [
            {"type": "text", "text": "one", "prompt_cache_breakpoint": mark}, {"type": "text", "text": "two"},
        ]},
        {"role": "assistant", "content": [{"type": "text", "text": "x"}, {"type": "refusal", "refusal": "no"}]},
        {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "r"},
    ])
}

fn items() -> Value {
    let mark = json!({"mode": "explicit"});
    json!([
        {"type": "message", "role": "user", "content": "go"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "e30="},
        {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "grep", "arguments": "{}", "status": "completed"},
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "b", "name": "patch", "input": "*** Begin"},
        {"type": "function_call_output", "call_id": "a", "output": "3 hits"},
        {"type": "function_call_output", "call_id": "a", "id": "fco_1", "status": "completed", "output": [
            {"type": "input_text", "text": "one", "prompt_cache_breakpoint": mark},
            {"type": "input_image", "image_url": IMAGE, "detail": "auto"},
        ]},
        {"type": "custom_tool_call_output", "call_id": "b", "output": "done"},
        {"type": "custom_tool_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "done"}]},
        {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed", "content": [
            {"type": "output_text", "text": "x", "annotations": [], "logprobs": null}, {"type": "refusal", "refusal": "no"},
        ]},
        {"type": "item_reference", "id": "x"},
        {"id": "y"},
    ])
}

/// A change of a message.
type Change = fn(&mut dyn Conversation, usize);

/// Asserts that messages show and change the same as their JSON.
fn keeps_the_contract<M: TypedMessage>(messages: &Value) {
    let before: Vec<M> = typed(messages);
    let written = serde_json::to_value(&before).unwrap();
    assert_eq!(
        &written, messages,
        "the samples hold nothing that the types drop"
    );
    let seen = |conversation: &dyn Conversation, message: usize| {
        let mut seen = String::new();
        conversation.visit(message, &mut |piece: Piece<'_>| {
            seen += &format!("{piece:?}\n");
        });
        seen + &format!("{}", conversation.has_text(message, 0))
    };
    let changes: [Change; 7] = [
        |_, _| {},
        |all, message| all.replace(message, 0, NewPiece::Result(vec!["hint".into()])),
        |all, message| {
            all.replace(
                message,
                0,
                NewPiece::Result(vec!["one".into(), "hint".into()]),
            );
        },
        |all, message| all.replace(message, 0, NewPiece::Result(Vec::new())),
        |all, message| all.replace(message, 0, NewPiece::Arguments("{\"hint\":1}".into())),
        |all, message| all.replace(message, 1, NewPiece::Arguments("{\"hint\":1}".into())),
        |all, message| all.replace(message, 0, NewPiece::UserText("hint".into())),
    ];
    let mut changed = 0;
    for change in changes {
        for nth in 0..before.len() + 1 {
            let (mut all, mut raw): (Vec<M>, _) = (typed(messages), messages.clone());
            let mut conversation = TypedMessages::new(&mut all);
            change(&mut conversation, nth);
            let mut expected = Messages::new(M::FORMAT, raw.as_array_mut().unwrap());
            change(&mut expected, nth);
            // Old functions' messages hold one text alone.
            if serde_json::from_value::<Vec<M>>(raw.clone()).is_err() {
                raw = messages.clone();
            }
            let expected = Messages::new(M::FORMAT, raw.as_array_mut().unwrap());
            assert_eq!(seen(&conversation, nth), seen(&expected, nth));
            changed += usize::from(raw != *messages);
            assert_eq!(serde_json::to_value(&all).unwrap(), raw);
        }
    }
    assert!(changed > 10, "{changed}");
}

#[test]
fn l5_chat_messages_keep_the_contract() {
    keeps_the_contract::<ChatCompletionRequestMessage>(&chat());
}

#[test]
fn l5_response_items_keep_the_contract() {
    keeps_the_contract::<InputItem>(&items());
}

#[test]
fn content_that_a_type_can_not_hold_is_not_put_in() {
    let mut messages: Vec<ChatCompletionRequestMessage> = typed(&chat());
    let image = Part::Media {
        mime: "image/png".into(),
        data: vec![0; 3].into(),
    };
    TypedChat::new(&mut messages).replace(4, 0, NewPiece::Result(vec![image]));
    assert_eq!(serde_json::to_value(&messages).unwrap(), chat());
}

#[test]
fn calls_of_programs_are_the_programs() {
    let caller = json!({"type": "program", "caller_id": "prog_1"});
    let call = json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}", "caller": caller});
    let mut items: Vec<InputItem> = typed(&json!([call]));
    let mut is_for_program = false;
    TypedResponses::new(&mut items).visit(0, &mut |piece| {
        if let Piece::Call(call) = piece {
            is_for_program = call.is_for_program;
        }
    });
    assert!(is_for_program);
}

#[test]
fn l5_a_cache_breakpoint_stays() {
    let mut messages: Vec<ChatCompletionRequestMessage> = typed(&chat());
    TypedChat::new(&mut messages).replace(5, 0, NewPiece::Result(vec!["hint".into()]));
    let part =
        json!([{"type": "text", "text": "hint", "prompt_cache_breakpoint": {"mode": "explicit"}}]);
    assert_eq!(serde_json::to_value(&messages[5]).unwrap()["content"], part);
    let mut items: Vec<InputItem> = typed(&items());
    TypedResponses::new(&mut items).replace(6, 0, NewPiece::Result(vec!["hint".into()]));
    let part = json!([{"type": "input_text", "text": "hint", "prompt_cache_breakpoint": {"mode": "explicit"}}]);
    assert_eq!(serde_json::to_value(&items[6]).unwrap()["output"], part);
}

#[test]
fn l5_parts_that_stay_are_as_they_were() {
    let mark = json!({"mode": "explicit"});
    let output = |text: &str| {
        json!([{"type": "custom_tool_call_output", "call_id": "b", "output": [
            {"type": "input_file", "file_data": "data:application/pdf;base64,AAAA", "filename": "x.pdf"},
            {"type": "input_text", "text": text, "prompt_cache_breakpoint": mark},
            {"type": "input_image", "image_url": IMAGE, "file_id": "file_1", "detail": "original"},
        ]}])
    };
    let mut items: Vec<InputItem> = typed(&output("long"));
    let before = serde_json::to_value(&items).unwrap();
    let opaque = |nth: usize| Part::Opaque(before[0]["output"][nth].clone());
    let parts = vec![opaque(0), "hint".into(), opaque(2)];
    TypedResponses::new(&mut items).replace(0, 0, NewPiece::Result(parts));
    assert_eq!(
        serde_json::to_value(&items).unwrap(),
        serde_json::to_value(typed::<InputItem>(&output("hint"))).unwrap(),
    );
}

/// A loop over typed messages sends the same bytes as a loop over JSON.
#[tokio::test]
async fn l4_a_loop_over_typed_messages_sends_what_one_over_json_sends() {
    let reduction = || {
        let builder = ToolReduction::recommended(Memory::named("t").unwrap())
            .token_counter(TokenCounter::Estimate);
        builder
            .max_tokens_for_clear(3_000)
            .clear_tool_inputs(true)
            .build()
            .unwrap()
    };
    let (typed_one, json_one) = (reduction(), reduction());
    let (mut typed_items, mut json_items): (Vec<InputItem>, Vec<Value>) =
        (typed(&json!([items()[0]])), vec![items()[0].clone()]);
    let (mut typed_chat, mut json_chat): (Vec<ChatCompletionRequestMessage>, Vec<Value>) =
        (Vec::new(), Vec::new());
    let (chat_one, chat_two) = (reduction(), reduction());
    let mut cleared = 0;
    for n in 0..12 {
        let asked = json!({"n": n, "why": "because ".repeat(200)}).to_string();
        let call = ToolCall::new(format!("call_{n}"), "grep", asked);
        let raw = json!({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments});
        typed_items.extend(typed(&json!([raw])));
        json_items.push(raw);
        let function = json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}});
        let calls: Vec<ChatCompletionMessageToolCalls> = typed(&json!([function]));
        assert_eq!(TypedChat::tool_calls(&calls), std::slice::from_ref(&call));
        let raw = json!({"role": "assistant", "tool_calls": [function]});
        typed_chat.extend(typed(&json!([raw])));
        json_chat.push(raw);

        let output: String = (0..n * 150)
            .map(|line| format!("line {line} of {n}\n"))
            .collect();
        typed_items.push(TypedResponses::tool_output(
            &call,
            typed_one.truncate(&call, output.as_str()).await.unwrap(),
        ));
        let shown = json_one.truncate(&call, output.as_str()).await.unwrap();
        json_items.push(Responses.tool_message(&call, shown.into(), false));
        typed_chat.push(TypedChat::tool_message(
            &call,
            chat_one.truncate(&call, output.as_str()).await.unwrap(),
        ));
        let shown = chat_two.truncate(&call, output.as_str()).await.unwrap();
        json_chat.push(OpenAiChat.tool_message(&call, shown.into(), false));

        cleared += TypedResponses::new(&mut typed_items)
            .clear(&typed_one)
            .await
            .unwrap()
            .cleared_tool_uses();
        json_one.clear(Responses, &mut json_items).await.unwrap();
        TypedChat::new(&mut typed_chat)
            .clear(&chat_one)
            .await
            .unwrap();
        chat_two.clear(OpenAiChat, &mut json_chat).await.unwrap();
        assert_eq!(
            serde_json::to_value(&typed_items).unwrap(),
            Value::from(json_items.clone())
        );
        assert_eq!(
            serde_json::to_value(&typed_chat).unwrap(),
            Value::from(json_chat.clone())
        );
    }
    assert!(cleared > 3, "{cleared}");
}

#[test]
fn media_that_tool_messages_cannot_hold_are_named() {
    let call = ToolCall::new("a", "look", "{}");
    let image = Part::Media {
        mime: "image/png".into(),
        data: vec![0; 9].into(),
    };
    let message =
        serde_json::to_value(TypedChat::tool_message(&call, vec![image.clone()])).unwrap();
    assert_eq!(
        message["content"],
        "[image/png of 9 bytes, which can't be shown here]"
    );
    let sound = Part::Media {
        mime: "audio/mpeg".into(),
        data: vec![0; 9].into(),
    };
    let parts = vec![
        "hint".into(),
        image,
        sound,
        Part::Opaque(json!({"type": "resource_link", "uri": "a"})),
    ];
    let item = serde_json::to_value(TypedResponses::tool_output(&call, parts)).unwrap();
    assert_eq!(
        item["output"],
        json!([
            {"type": "input_text", "text": "hint"},
            {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,AAAAAAAAAAAA"},
            {"type": "input_text", "text": "[audio/mpeg of 9 bytes, which can't be shown here]"},
            {"type": "input_text", "text": "{\"type\":\"resource_link\",\"uri\":\"a\"}"},
        ])
    );
}
