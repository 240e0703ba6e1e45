//! The two moments of a loop, in every format that a loop writes in.

use std::cell::Cell;

use offcut::format::{LoopFormat, Plain, WireFormat};
use offcut::hint::Hint;
use offcut::{Part, ToolCall, ToolError, ToolOutput, ToolReduction};
use serde_json::{Value, json};

use crate::common::{builder, lines, memory, stored, text};

fn small() -> ToolReduction {
    let reduction = builder(&memory()).max_length_for_trunc(2_000);
    reduction.preview_length(400).build().unwrap()
}

#[tokio::test]
async fn a_call_is_run_truncated_and_answered_with_a_message() {
    for format in WireFormat::ALL {
        let reduction = small();
        let call = ToolCall::new("call_1", "grep", "{}");
        let run = async || Ok::<_, ToolError>(lines(2_000));
        let message = reduction.wrap_tool_call(format, &call, run);
        let message = message.await.unwrap();
        let by_hand = reduction.truncate(&call, lines(2_000)).await.unwrap();
        assert_eq!(message, format.tool_message(&call, by_hand.parts, false));
        assert!(message.to_string().len() < 2_500, "{message}");
    }
}

#[tokio::test]
async fn a_call_of_the_reader_is_answered_and_runs_nothing() {
    let reduction = small();
    let call = ToolCall::new("call_1", "grep", "{}");
    let shown = reduction.truncate(&call, lines(2_000)).await.unwrap();
    let location = &shown.report.decisions[0].locations[0];
    let has_run = Cell::new(false);
    let ask = async |path: &str| {
        let arguments = json!({"path": path}).to_string();
        let call = ToolCall::new("call_2", "read_file", arguments);
        let run = async || {
            has_run.set(true);
            "the own tool's"
        };
        reduction
            .wrap_tool_call(WireFormat::OpenAiChat, &call, run)
            .await
            .unwrap()
    };
    let page = ask(location.as_str()).await;
    assert!(
        page["content"].as_str().unwrap().contains("\nline 1\n"),
        "{page}"
    );
    assert!(!has_run.get());
    // A tool of the loop may have the reader's name.
    assert_eq!(ask("src/main.rs").await["content"], "the own tool's");
    assert!(has_run.get());
}

#[tokio::test]
async fn media_that_a_format_can_not_hold_are_bytes() {
    let parts = |mime: &str, data: Vec<u8>| {
        let media = Part::Media {
            mime: mime.to_owned(),
            data: data.into(),
        };
        ToolOutput::parts(vec!["exit 0".into(), media, " \n".into()])
    };
    let call = ToolCall::new("call_1", "record", "{}");
    let sound: Vec<u8> = (0..300_000_u32)
        .map(|n| (n.wrapping_mul(n) >> 7) as u8)
        .collect();
    for (mime, data, is_held) in [
        ("audio/wav", sound.clone(), false),
        ("image/svg+xml", lines(2_000).into_bytes(), false),
        ("text/csv", b"a,b\n1,2\n".to_vec(), false),
        ("IMAGE/PNG", sound[..3_000].to_vec(), true),
        ("image/jpg; charset=binary", sound[..3_000].to_vec(), true),
    ] {
        let (store, wire) = (memory(), WireFormat::Anthropic);
        let reduction = builder(&store)
            .max_length_for_trunc(2_000)
            .preview_length(400);
        let reduction = reduction.build().unwrap();
        let run = async || parts(mime, data.clone());
        let message = reduction.wrap_tool_call(wire, &call, run).await.unwrap();
        let content = message["content"][0]["content"].as_array().unwrap();
        let kinds: Vec<&str> = content
            .iter()
            .map(|part| part["type"].as_str().unwrap())
            .collect();
        if is_held {
            assert_eq!(kinds, ["text", "image"], "{message}");
            let mime = content[1]["source"]["media_type"].as_str().unwrap();
            assert!(["image/png", "image/jpeg"].contains(&mime), "{message}");
            // Of an error, the provider takes text alone.
            let fail = async || ToolOutput {
                is_error: true,
                ..parts(mime, data.clone())
            };
            let error = reduction.wrap_tool_call(wire, &call, fail).await.unwrap();
            let content = error["content"][0]["content"].as_array().unwrap();
            assert!(content.iter().all(|part| part["type"] == "text"), "{error}");
            assert!(stored(&store).await.iter().any(|(_, bytes)| *bytes == data));
            continue;
        }
        assert_eq!(kinds, ["text"; 3], "{message}");
        // Without a store for it, it stays as the format spells it.
        let exempt = builder(&memory()).trunc_exclude_tools(["record"]);
        let exempt = exempt.build().unwrap();
        let whole = exempt.wrap_tool_call(wire, &call, run).await.unwrap();
        let spelled = whole["content"][0]["content"][1]["text"].as_str().unwrap();
        assert!(spelled.starts_with(&format!("data:{mime};base64,")));
        let chat = reduction.wrap_tool_call(WireFormat::OpenAiChat, &call, run);
        assert_eq!(chat.await.unwrap()["content"][2]["text"], " \n");
        assert_eq!(content[1]["text"], format!("[{mime}, {} B]", data.len()));
        assert!(message.to_string().len() < 2_500, "{message}");
        let shown = content[2]["text"].as_str().unwrap();
        match Hint::parse(shown) {
            Some(_) => assert!(stored(&store).await.iter().any(|(_, bytes)| *bytes == data)),
            None => assert_eq!(shown.as_bytes(), data),
        }
    }
}

#[tokio::test]
async fn a_failed_call_is_marked_where_the_format_has_a_mark() {
    let reduction = small();
    let call = ToolCall::new("call_1", "grep", "{}");
    let fail = async || Err::<String, _>(ToolError::new("no such directory"));
    let message = reduction
        .wrap_tool_call(WireFormat::Anthropic, &call, fail)
        .await
        .unwrap();
    let block = &message["content"][0];
    assert_eq!(
        *block,
        json!({"type": "tool_result", "tool_use_id": "call_1", "content": "no such directory", "is_error": true})
    );
    let message = reduction.wrap_tool_call(Plain, &call, fail).await.unwrap();
    assert!(matches!(
        message,
        offcut::format::Message::Tool { is_error: true, .. }
    ));
}

#[tokio::test]
async fn parallel_results_are_joined_and_old_ones_cleared() {
    for format in [WireFormat::Anthropic, WireFormat::Gemini] {
        let reduction = builder(&memory())
            .max_tokens_for_clear(1_000)
            .build()
            .unwrap();
        let mut messages =
            vec![json!({"role": "user", "content": "go", "parts": [{"text": "go"}]})];
        for round in 0..3 {
            let calls = [0, 1].map(|n| ToolCall::new(format!("call_{round}_{n}"), "grep", "{}"));
            messages.push(asks(format, &calls));
            for call in &calls {
                let run = async || lines(300);
                messages.push(reduction.wrap_tool_call(format, call, run).await.unwrap());
            }
            reduction.before_model(format, &mut messages).await.unwrap();
        }
        assert_eq!(messages.len(), 7, "{format}");
        let of_one = |message: &Value| message.to_string().len();
        assert!(
            of_one(&messages[2]) < 1_000 && of_one(&messages[6]) > 5_000,
            "{format}"
        );
    }
}

fn asks(format: WireFormat, calls: &[ToolCall]) -> Value {
    let calls = calls.iter().map(|ToolCall { id, name, .. }| match format {
        WireFormat::Anthropic => json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
        _ => json!({"functionCall": {"id": id, "name": name, "args": {}}}),
    });
    match format {
        WireFormat::Anthropic => json!({"role": "assistant", "content": calls.collect::<Value>()}),
        _ => json!({"role": "model", "parts": calls.collect::<Value>()}),
    }
}

#[cfg(feature = "fs")]
#[tokio::test]
async fn a_directory_that_cannot_be_opened_is_named() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = ToolReduction::in_dir(&file).unwrap_err().to_string();
    assert!(
        error.contains("can't be opened") && error.contains("not a directory"),
        "{error}"
    );
    let reduction = ToolReduction::in_dir(home.path().join("new")).unwrap();
    let shown = reduction
        .truncate(&ToolCall::new("a", "f", "{}"), lines(5_000))
        .await
        .unwrap();
    assert!(text(&shown.parts).starts_with("[offcut/1 truncated"));
    assert!(home.path().join("new/trunc/a").is_file());
}
