//! Whole transcripts as rig's messages. Over originals, as rig passes them, the requests equal
//! those with messages changed in place. They stay valid, lossless and stable.
//!
//! `OFFCUT_TRACES` names a folder of JSON files, each `{"messages": [chat-completions messages]}`.
//! Without it the test reports that it was skipped, and passes.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::Write;

use offcut::backend::Memory;
use offcut::format::{LoopFormat, OpenAiChat};
use offcut::hint::Hint;
use offcut::{Body, Part, TokenCounter, ToolCall, ToolOutput, ToolReduction};
use offcut_rig::{Reduction, RigMessages};
use offcut_testkit::replaced_arguments;
use rig::message::{
    AssistantContent, AssistantMessage, CallId, Message, ToolFunction, ToolName, ToolResult,
    ToolResultContent, UserContent,
};
use serde_json::Value;

/// The settings to test.
#[derive(Clone, Copy)]
enum Setup {
    Recommended,
    /// Reduces everything early, arguments too.
    Tight,
}

fn reduction(store: &Memory, setup: Setup) -> ToolReduction {
    let builder = ToolReduction::recommended(store.clone()).token_counter(TokenCounter::Estimate);
    let builder = match setup {
        Setup::Recommended => builder,
        Setup::Tight => builder
            .max_length_for_trunc(2_000)
            .preview_length(600)
            .max_tokens_for_clear(8_000)
            .clear_tool_inputs(true)
            .stub_length(150),
    };
    builder.build().unwrap()
}

/// The transcript as rig's loop keeps it: the results of a turn are one message.
fn converted(messages: &[Value]) -> Vec<Message> {
    let mut out: Vec<Message> = Vec::new();
    let mut asked: Vec<ToolCall> = Vec::new();
    for message in messages {
        let text = message["content"].as_str().unwrap_or_default();
        match message["role"].as_str().unwrap() {
            "assistant" => {
                asked = OpenAiChat.tool_calls(message);
                let said = (!text.is_empty()).then(|| AssistantContent::text(text));
                let calls = asked.iter().map(|call| {
                    let function =
                        ToolFunction::parse(ToolName::new(&*call.name).unwrap(), &call.arguments);
                    AssistantContent::ToolCall(rig::message::ToolCall::from_wire(
                        &*call.id, function,
                    ))
                });
                out.push(Message::Assistant(AssistantMessage::new(
                    said.into_iter().chain(calls).collect(),
                )));
            }
            "tool" => {
                let id = message["tool_call_id"].as_str().unwrap();
                let name = asked
                    .iter()
                    .find(|call| call.id == id)
                    .map_or("unknown", |call| &*call.name);
                let result = UserContent::ToolResult(ToolResult {
                    call: CallId::from_wire(id),
                    name: ToolName::new(name).unwrap(),
                    content: vec![ToolResultContent::text(text)],
                    is_error: false,
                });
                match out.last_mut() {
                    Some(Message::User { content })
                        if matches!(content[0], UserContent::ToolResult(_)) =>
                    {
                        content.push(result);
                    }
                    _ => out.push(Message::User {
                        content: vec![result],
                    }),
                }
            }
            "system" => out.push(Message::system(text)),
            _ => out.push(Message::user(text)),
        }
    }
    out
}

/// Truncates the results of `message` as when they arrive.
async fn truncated(reduction: &ToolReduction, message: &Message) -> Message {
    let mut message = message.clone();
    if let Message::User { content } = &mut message {
        for item in content {
            if let UserContent::ToolResult(result) = item {
                let call = ToolCall::new(result.call.wire(), result.name.as_str(), "{}");
                let text = result.content[0].as_text().unwrap();
                let given = ToolOutput {
                    body: Body::Parts(vec![text.into()]),
                    is_error: false,
                };
                let shown = reduction.truncate(&call, given).await.unwrap();
                let [Part::Text(text)] = &shown.parts[..] else {
                    panic!("one text stays one")
                };
                result.content = vec![ToolResultContent::text(text)];
            }
        }
    }
    message
}

/// Counts breaks: requests that do not begin with all of the previous one.
#[derive(Default)]
struct Wire {
    last: Vec<String>,
    breaks: usize,
}

impl Wire {
    fn send(&mut self, messages: &[Message]) {
        let sent: Vec<String> = messages
            .iter()
            .map(|message| serde_json::to_string(message).unwrap())
            .collect();
        self.breaks += usize::from(!sent.starts_with(&self.last));
        self.last = sent;
    }
}

/// Returns the number of breaks in one transcript, and of its results and arguments replaced at the
/// end.
async fn replay(messages: &[Message], setup: Setup) -> (usize, usize) {
    let (store, apart) = (Memory::named("t").unwrap(), Memory::named("t").unwrap());
    let (in_place, over) = (
        reduction(&store, setup),
        Reduction::new(reduction(&apart, setup)),
    );
    let truncate_apart = reduction(&apart, setup);
    let (mut live, mut originals) = (Vec::<Message>::new(), Vec::<Message>::new());
    let (mut wire, mut wire_over) = (Wire::default(), Wire::default());
    for message in messages {
        if matches!(message, Message::Assistant(_))
            && let Some((prompt, history)) = originals.split_last()
        {
            in_place.clear(RigMessages, &mut live).await.unwrap();
            let mut sent = over
                .clear(history, prompt, None)
                .await
                .unwrap()
                .unwrap_or_else(|| history.to_vec());
            sent.push(prompt.clone());
            wire.send(&live);
            wire_over.send(&sent);
            assert_eq!(wire.last, wire_over.last, "after {} messages", live.len());
        }
        live.push(truncated(&in_place, message).await);
        originals.push(truncated(&truncate_apart, message).await);
    }
    assert_eq!(wire.breaks, wire_over.breaks);

    // In another process, after a round trip through JSON, nothing is left to do.
    in_place.clear(RigMessages, &mut live).await.unwrap();
    let mut again: Vec<Message> =
        serde_json::from_str(&serde_json::to_string(&live).unwrap()).unwrap();
    let stored = store.len();
    reduction(&store, setup)
        .clear(RigMessages, &mut again)
        .await
        .unwrap();
    assert!(again == live && store.len() == stored);

    let mut replaced = 0;
    for (original, shown) in messages.iter().zip(&mut live) {
        replaced += restore(&in_place, original, shown).await;
        assert!(
            original == shown,
            "only results and arguments were replaced"
        );
    }
    (wire.breaks, replaced)
}

/// Restores the replaced content in `shown` from the locations in its hints, and counts it.
async fn restore(reduction: &ToolReduction, original: &Message, shown: &mut Message) -> usize {
    let mut replaced = 0;
    match (original, shown) {
        (Message::User { content: original }, Message::User { content: shown }) => {
            for (original, shown) in original.iter().zip(shown) {
                if let (UserContent::ToolResult(_), UserContent::ToolResult(result)) =
                    (original, &mut *shown)
                    && let Some(hint) = Hint::parse(result.content[0].as_text().unwrap())
                {
                    result.content = vec![ToolResultContent::text(read(reduction, &hint).await)];
                    replaced += 1;
                }
            }
        }
        (Message::Assistant(original), Message::Assistant(shown)) => {
            for (original, shown) in original.content.iter().zip(&mut shown.content) {
                let AssistantContent::ToolCall(call) = shown else {
                    continue;
                };
                let AssistantContent::ToolCall(asked) = original else {
                    panic!("a call")
                };
                let arguments = |call: &rig::message::ToolCall| {
                    let kept = call.function.invalid_arguments.clone();
                    kept.unwrap_or_else(|| call.function.arguments_value().to_string())
                };
                let texts = replaced_arguments(&arguments(call), &arguments(asked)).unwrap();
                for (shown, text) in &texts {
                    let hint = Hint::parse(shown).unwrap();
                    assert_eq!(read(reduction, &hint).await, *text);
                }
                if !texts.is_empty() {
                    call.function = asked.function.clone();
                    replaced += 1;
                }
            }
        }
        _ => {}
    }
    replaced
}

async fn read(reduction: &ToolReduction, hint: &Hint) -> String {
    let content = reduction
        .read_original(hint.location.as_ref().unwrap())
        .await
        .unwrap()
        .unwrap();
    String::from_utf8(content.to_vec()).unwrap()
}

#[tokio::test]
async fn c13_a_loop_over_originals_equals_one_in_place() {
    let folder = std::env::var_os("OFFCUT_TRACES");
    let entries = folder
        .and_then(|folder| std::fs::read_dir(folder).ok())
        .into_iter()
        .flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "json"));
    files.sort();
    if files.is_empty() {
        // Not with a macro, whose output the harness would capture.
        let skipped = "SKIPPED c13_a_loop_over_originals_equals_one_in_place: OFFCUT_TRACES names no folder with JSON files";
        return writeln!(std::io::stderr(), "{skipped}").unwrap();
    }
    if cfg!(debug_assertions) {
        // Without optimization each file takes a second.
        files = files.into_iter().step_by(3).collect();
    }
    let (mut breaks, mut replaced) = (0, 0);
    for (at, file) in files.iter().enumerate() {
        let trace: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let messages = converted(trace["messages"].as_array().unwrap());
        let setup = if at % 2 == 0 {
            Setup::Tight
        } else {
            Setup::Recommended
        };
        let (more_breaks, more_replaced) = replay(&messages, setup).await;
        breaks += more_breaks;
        replaced += more_replaced;
    }
    writeln!(
        std::io::stderr(),
        "{} files: {breaks} breaks, {replaced} replaced",
        files.len()
    )
    .unwrap();
    assert!(breaks > 0 && replaced > 0);
}
