//! L7: no input panics.

use bytes::Bytes;
use futures_util::stream;
use offcut::agent::Tool as _;
use offcut::backend::Memory;
use offcut::format::{Format as _, Message, Messages, Plain};
use offcut::{Chunk, TokenCounter, ToolCall, ToolOutput, ToolPolicy, ToolReduction, Turn};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use serde_json::{Value, json};

use super::pass::pass_over;
use super::subject::OffcutSubject;
use super::text::{Kind, Text, texts};
use super::wire::{Anthropic, Gemini, OpenAiChat, Responses};
use super::world::{World, setups};
use super::{STORE, block_on, hold, require};

const WORDS: [&str; 64] = [
    "role",
    "content",
    "tool_calls",
    "function",
    "arguments",
    "type",
    "text",
    "image_url",
    "url",
    "id",
    "tool_call_id",
    "name",
    "custom",
    "input",
    "input_audio",
    "data",
    "format",
    "file",
    "file_data",
    "function_call",
    "extra_content",
    "reasoning_content",
    "refusal",
    "cache_control",
    "tool",
    "assistant",
    "user",
    "system",
    "index",
    "_cleared",
    "image/png",
    "mp3",
    "",
    "call_0",
    // Fields of other formats.
    "call_id",
    "output",
    "summary",
    "input_text",
    "output_text",
    "input_image",
    "input_file",
    "tool_result",
    "tool_use",
    "tool_use_id",
    "is_error",
    "thinking",
    "signature",
    "image",
    "document",
    "source",
    "base64",
    "media_type",
    "parts",
    "functionCall",
    "functionResponse",
    "function_response",
    "args",
    "response",
    "result",
    "error",
    "inlineData",
    "mimeType",
    "fileData",
    "fileUri",
];

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|quarters| Value::from(f64::from(quarters) / 4.0)),
        (0..WORDS.len()).prop_map(|at| json!(WORDS[at])),
        texts().prop_map(|text| json!(text.render())),
        vec(any::<u8>(), 0..400).prop_map(|data| json!(format!(
            "data:image/png;base64,{}",
            "Qk1".repeat(data.len())
        ))),
        vec(any::<char>(), 0..20)
            .prop_map(|chars| json!(format!("data:{}", chars.into_iter().collect::<String>()))),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let object = vec(((0..WORDS.len()).prop_map(|at| WORDS[at]), inner.clone()), 0..7);
        prop_oneof![
            1 => vec(inner, 0..5).prop_map(Value::Array),
            2 => object.prop_map(|fields| fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

/// Generates almost valid messages.
fn malformed() -> impl Strategy<Value = Value> {
    let role = prop_oneof![
        Just("tool"),
        Just("assistant"),
        Just("user"),
        Just("function"),
        Just("other")
    ];
    let field = |name: &'static str| values().prop_map(move |value| (name.to_owned(), value));
    let fields = vec(
        prop_oneof![
            field("content"),
            field("tool_calls"),
            vec(values(), 0..4).prop_map(|calls| ("tool_calls".to_owned(), Value::Array(calls))),
            field("tool_call_id"),
            field("function_call"),
            field("name"),
        ],
        0..4,
    );
    let nearly = (role, fields).prop_map(|(role, fields)| {
        let mut message = json!({"role": role});
        message.as_object_mut().unwrap().extend(fields);
        message
    });
    prop_oneof![8 => nearly, 1 => values()]
}

/// Generates objects with a type and that type's fields, which hold anything.
fn typed(
    types: &'static [&'static str],
    fields: &'static [&'static str],
) -> impl Strategy<Value = Value> {
    let field = (0..fields.len(), values()).prop_map(|(at, value)| (fields[at].to_owned(), value));
    ((0..types.len()), vec(field, 0..5)).prop_map(|(at, fields)| {
        let mut object = json!({"type": types[at]});
        object.as_object_mut().unwrap().extend(fields);
        object
    })
}

fn malformed_items() -> impl Strategy<Value = Value> {
    const TYPES: &[&str] = &[
        "function_call_output",
        "custom_tool_call_output",
        "function_call",
        "message",
        "reasoning",
    ];
    let fields = &[
        "output",
        "call_id",
        "arguments",
        "input",
        "name",
        "content",
        "role",
        "summary",
        "id",
    ];
    prop_oneof![8 => typed(TYPES, fields), 1 => values()]
}

fn malformed_blocks() -> impl Strategy<Value = Value> {
    const TYPES: &[&str] = &[
        "tool_result",
        "tool_result",
        "tool_use",
        "thinking",
        "image",
        "text",
        "document",
    ];
    let block = typed(
        TYPES,
        &[
            "content",
            "tool_use_id",
            "id",
            "name",
            "input",
            "is_error",
            "source",
            "text",
            "thinking",
        ],
    );
    let role = prop_oneof![Just("user"), Just("assistant"), Just("other")];
    let nearly = (role, vec(prop_oneof![6 => block, 1 => values()], 0..4))
        .prop_map(|(role, blocks)| json!({"role": role, "content": blocks}));
    prop_oneof![8 => nearly, 1 => values()]
}

fn malformed_parts() -> impl Strategy<Value = Value> {
    const NAMES: [&str; 6] = [
        "functionResponse",
        "function_response",
        "functionCall",
        "text",
        "inlineData",
        "fileData",
    ];
    let inner = typed(
        &["x"],
        &[
            "response", "parts", "name", "id", "args", "mimeType", "data", "fileUri",
        ],
    );
    let part = (0..NAMES.len(), prop_oneof![4 => inner, 1 => values()])
        .prop_map(|(at, value)| json!({NAMES[at]: value}));
    let role = prop_oneof![Just("user"), Just("model"), Just("function")];
    let nearly = (role, vec(prop_oneof![6 => part, 1 => values()], 0..4))
        .prop_map(|(role, parts)| json!({"role": role, "parts": parts}));
    prop_oneof![8 => nearly, 1 => values()]
}

#[test]
fn l7_no_message_panics() {
    let cases = || (setups(STORE), vec(malformed(), 1..8));
    hold(60, cases, |(setup, messages)| {
        block_on(pass_over(OpenAiChat, setup, messages))
    });
}

#[test]
fn l7_no_item_panics() {
    let cases = || (setups(STORE), vec(malformed_items(), 1..8));
    hold(15, cases, |(setup, items)| {
        block_on(pass_over(Responses, setup, items))
    });
}

#[test]
fn l7_no_block_panics() {
    let cases = || (setups(STORE), vec(malformed_blocks(), 1..6));
    hold(15, cases, |(setup, messages)| {
        block_on(pass_over(Anthropic, setup, messages))
    });
}

#[test]
fn l7_no_part_panics() {
    let cases = || (setups(STORE), vec(malformed_parts(), 1..6));
    hold(15, cases, |(setup, contents)| {
        block_on(pass_over(Gemini, setup, contents))
    });
}

/// Generates small, large and extreme numbers.
fn extremes() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(2),
        3_u64..2_000,
        Just(u64::MAX / 2),
        Just(u64::MAX - 1),
        Just(u64::MAX)
    ]
}

#[test]
fn l7_no_setting_panics() {
    let cases = || {
        (
            vec(extremes(), 8),
            any::<[bool; 5]>(),
            option::of(extremes()),
            values(),
        )
    };
    hold(40, cases, |(n, is, usage, tool)| {
        let size = |at: usize| usize::try_from(n[at]).unwrap();
        let builder = ToolReduction::builder()
            .backend(Memory::new())
            .token_counter(TokenCounter::Estimate)
            .max_length_for_trunc(size(0))
            .preview_length(size(1))
            .stub_length(size(2))
            .max_tokens_for_clear(n[3])
            .clear_retention_suffix_limit(size(4))
            .clear_at_least_tokens(n[5])
            .clear_tool_inputs(is[2])
            .skip_truncation(is[3])
            .tool(
                "cat",
                ToolPolicy::new()
                    .max_length_for_trunc(size(7))
                    .preview_length(size(2)),
            );
        let Ok(reduction) = builder.build() else {
            return Ok(());
        };
        block_on(async {
            let mut messages = Vec::new();
            for tool in ["grep", "cat"] {
                let call = ToolCall::new("", tool, "x".repeat(600));
                let text = Text::new(Kind::Chinese, 4_000, 0).render();
                let shown = reduction.truncate(&call, text).await.unwrap();
                messages.extend([
                    Message::calls(vec![call.clone()]),
                    Message::tool(&call, shown.into(), false),
                ]);
            }
            messages.push(Message::assistant("done"));
            let mut conversation = Messages::new(Plain, &mut messages);
            let mut turn = Turn::new(&mut conversation);
            turn.last_usage = usage;
            let tools = [tool];
            turn.tools = &tools;
            let report = reduction.clear_turn(&mut turn).await.unwrap();
            require(report.tokens.is_some(), "L12", || {
                "nothing was counted".into()
            })
        })
    });
}

#[test]
fn l7_the_reader_takes_any_arguments() {
    let cases = || {
        let offsets = prop_oneof![
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            values()
        ];
        let paths = prop_oneof![4 => Just(None), 1 => values().prop_map(Some)];
        let patterns = option::of(prop_oneof![
            values(),
            "[a-z(|)*+?.\\[\\]{}0-9^$]{0,12}".prop_map(Value::from),
            Just(json!("((a{1000}){1000}){1000}")),
        ]);
        (
            setups(STORE),
            texts(),
            paths,
            option::of(offsets),
            option::of(values()),
            patterns,
        )
    };
    hold(40, cases, |(setup, text, path, offset, limit, pattern)| {
        block_on(async {
            let subject = OffcutSubject::new(World::new(setup));
            let call = ToolCall::new("call_0", "grep", "{}");
            let shown = subject
                .reduction
                .truncate(&call, text.render().repeat(4))
                .await
                .unwrap();
            let location = shown.report.decisions[0]
                .locations
                .first()
                .map_or("", |location| location.as_str());
            let path = path.unwrap_or_else(|| json!(location));
            let mut arguments =
                json!({"path": path, "offset": offset, "limit": limit, "pattern": pattern});
            arguments
                .as_object_mut()
                .unwrap()
                .retain(|_, value| !value.is_null());
            let call = ToolCall::new("call_1", "read_file", arguments.to_string());
            let writes = subject.world.stores[0].writes();
            let page: ToolOutput = subject.reduction.read_file_tool().call(&call).await.into();
            let (parts, _) = page.into_parts().await;
            let again = subject
                .reduction
                .truncate(&call, ToolOutput::parts(parts.clone()))
                .await
                .unwrap();
            let is_whole = again.parts == parts && subject.world.stores[0].writes() == writes;
            require(is_whole, "R3", || {
                format!("a page was truncated: {parts:.500?}")
            })
        })
    });
}

#[test]
fn l4_the_chunks_of_a_stream_do_not_matter() {
    let cases = || {
        (
            setups(STORE),
            vec(any::<u8>(), 0..40),
            texts(),
            vec(1_usize..900, 1..9),
            any::<bool>(),
        )
    };
    hold(20, cases, |(setup, noise, text, cuts, is_noisy)| {
        let mut bytes = text.render().into_bytes();
        if is_noisy {
            bytes.splice(bytes.len() / 3..bytes.len() / 3, noise);
        }
        let mut chunks = Vec::new();
        let mut rest = Bytes::from(bytes.clone());
        for at in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            chunks.push(Ok(Chunk::Bytes(rest.split_to((*at).min(rest.len())))));
        }
        block_on(async {
            let [whole, pieces] = [(), ()].map(|()| OffcutSubject::new(World::new(setup.clone())));
            let call = ToolCall::new("call_0", "grep", "{}");
            let whole_shown = whole
                .reduction
                .truncate(&call, ToolOutput::bytes(bytes))
                .await
                .unwrap();
            let pieces_shown = pieces
                .reduction
                .truncate(&call, ToolOutput::stream(stream::iter(chunks)))
                .await
                .unwrap();
            require(
                whole.world.stored().await == pieces.world.stored().await,
                "L4",
                || "other bytes are stored".into(),
            )?;
            // No chunks mean no text; a whole result may have an empty one.
            let is_same = whole_shown.parts == pieces_shown.parts || whole_shown.text().is_empty();
            require(is_same, "L4", || {
                format!(
                    "{:.300?}\nis not {:.300?}",
                    whole_shown.parts, pieces_shown.parts
                )
            })
        })
    });
}

#[test]
fn l7_megabytes_of_one_character_are_counted() {
    let reduction = ToolReduction::recommended(Memory::new()).build().unwrap();
    block_on(async {
        for unit in [" ", "\n", "x", "字"] {
            let text = unit.repeat(400_000 / unit.len());
            let call = ToolCall::new("call_0", "grep", text.clone());
            let shown = reduction.truncate(&call, text.clone()).await.unwrap();
            assert!(shown.text().len() <= 8_000);
            let mut messages = vec![
                Message::calls(vec![call.clone()]),
                Message::tool(&call, vec![text.into()], false),
                Message::assistant(""),
            ];
            let report = reduction.clear(Plain, &mut messages).await.unwrap();
            assert!(
                report.tokens.unwrap().counted > 1_000,
                "{unit:?}: {report:?}"
            );
        }
    });
}

#[test]
fn l7_malformed_messages_are_only_read() {
    hold(20, malformed, |message| {
        let mut pieces = 0;
        OpenAiChat.visit(&message, &mut |_| pieces += 1);
        require(pieces > 0, "L7", || "a message without a role".into())
    });
}
