//! Streams between a loop and its tools: the middleware, the agent, readers (R3), skipped tools.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use offcut::agent::{Agent, ChatModel, ModelError, ModelReply, ModelRequest, Tool, ToolDefinition};
use offcut::format::Message;
use offcut::hint::{Hint, Kind};
use offcut::report::Outcome;
use offcut::{
    Body, Chunk, Middleware, Next, Part, ToolCall, ToolError, ToolHandler, ToolOutput, ToolPolicy,
    ToolReduction,
};
use serde_json::json;

use super::{chunks, go, output, small};
use crate::common::{call, content, lines, memory, stored, text};

async fn wrapped(
    reduction: &ToolReduction,
    call: &ToolCall,
    tool: &dyn for<'a> ToolHandler<'a>,
) -> ToolOutput {
    Middleware::wrap_tool_call(reduction, call, Next::new(&[], tool))
        .await
        .unwrap()
}

#[tokio::test]
async fn a_stream_is_read_to_its_end_and_keeps_its_error_flag() {
    let reduction = small(&memory()).build().unwrap();
    for is_error in [false, true] {
        let streams = move |_: ToolCall| async move {
            Ok(ToolOutput {
                is_error,
                ..output(chunks(lines(400), 64))
            })
        };
        let streamed = wrapped(&reduction, &call("a", "f"), &streams).await;
        assert!(matches!(streamed.body, Body::Parts(_)));
        assert_eq!(streamed.is_error, is_error);
        let (parts, _) = streamed.into_parts().await;
        assert!(Hint::parse(text(&parts)).is_some());
    }
}

/// A model that calls the tool once and records the messages shown to it.
#[derive(Clone, Default)]
struct Once(Arc<Mutex<Vec<Message>>>);

#[async_trait]
impl ChatModel for Once {
    async fn complete(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        *self.0.lock().unwrap() = request.messages.to_vec();
        let message = match request.messages.len() {
            1 => Message::calls(vec![call("call_1", "build")]),
            _ => Message::assistant("done"),
        };
        Ok(ModelReply {
            message,
            input_tokens: None,
        })
    }
}

struct Build {
    fails: bool,
}

#[async_trait]
impl Tool for Build {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: "build".into(),
            description: "builds".into(),
            parameters: json!({"type": "object"}),
        }
    }

    async fn call(&self, _: &ToolCall) -> Result<ToolOutput, ToolError> {
        let error = self.fails.then(|| Err(ToolError::new("the pipe broke")));
        let chunks: Vec<_> = chunks(lines(400), 64)
            .into_iter()
            .map(Ok)
            .chain(error)
            .collect();
        Ok(ToolOutput::stream(stream::iter(chunks)))
    }
}

#[tokio::test]
async fn an_agent_shows_what_is_left_of_a_stream() {
    for fails in [false, true] {
        let store = memory();
        let (model, reduction) = (Once::default(), small(&store).build().unwrap());
        let reader = reduction.read_file_tool();
        let agent = Agent::builder(model.clone())
            .tool(Build { fails })
            .tool(reader)
            .middleware(reduction);
        agent
            .build()
            .unwrap()
            .run(&mut vec![Message::user("build it")])
            .await
            .unwrap();
        let seen = model.0.lock().unwrap().clone();
        let Message::Tool {
            content, is_error, ..
        } = &seen[2]
        else {
            panic!("no result")
        };
        let Part::Text(shown) = &content[0] else {
            panic!("no text")
        };
        let hint = Hint::parse(shown).unwrap();
        assert_eq!((hint.flags.interrupted, *is_error), (fails, fails));
        assert_eq!(
            content[1..],
            fails
                .then(|| Part::from("the pipe broke"))
                .into_iter()
                .collect::<Vec<_>>()
        );
        assert_eq!(
            stored(&store).await,
            [("memory://t/trunc/call_1".into(), lines(400).into_bytes())]
        );
    }
}

#[tokio::test]
async fn r3_another_readers_stream_is_cut_to_a_page() {
    let store = memory();
    let reduction = small(&store).build().unwrap();
    let original = lines(2_000);
    let shown = go(&reduction, &call("a", "f"), output(chunks(&original, 100))).await;
    let location = Hint::parse(text(&shown.parts)).unwrap().location.unwrap();
    let cat = ToolCall::new(
        "b",
        "shell",
        json!({ "command": format!("cat {location} | head") }).to_string(),
    );
    let before = stored(&store).await;
    for size in [1, 100, 50_000] {
        let shown = go(&reduction, &cat, output(chunks(&original, size))).await;
        assert_eq!(shown.outcome(), Outcome::Paged);
        let page = Hint::parse(text(&shown.parts)).unwrap();
        assert!(matches!(page.kind, Kind::Page { .. }));
        assert_eq!(page.location.as_ref(), Some(&location));
        assert!(original.starts_with(&page.preview) && !page.preview.is_empty());
        assert!(stored(&store).await == before, "nothing is stored");
    }
    // Other content is treated as an ordinary result.
    let other = go(&reduction, &cat, output(chunks("other ".repeat(900), 100))).await;
    assert_eq!(other.outcome(), Outcome::Truncated);
    assert_eq!(stored(&store).await.len(), 2);
}

#[tokio::test]
async fn a_skipped_tools_stream_passes_chunk_by_chunk() {
    let store = memory();
    let reduction = small(&store)
        .tool("raw", ToolPolicy::new().skip_truncation(true))
        .build()
        .unwrap();
    let odd = Chunk::Part(Part::Opaque(json!({"x": 1})));
    let mut all = chunks(lines(400).into_bytes(), 333);
    all.insert(3, odd);
    all.push(Chunk::Bytes(b"\xff\xfe".to_vec().into()));

    let given = all.clone();
    let tool = move |_: ToolCall| {
        let given = given.clone();
        async move { Ok(output(given)) }
    };
    let Body::Stream(passed) = wrapped(&reduction, &call("a", "raw"), &tool).await.body else {
        panic!("no stream")
    };
    assert_eq!(passed.map(Result::unwrap).collect::<Vec<_>>().await, all);
    assert!(stored(&store).await.is_empty());
}

/// Checks the content of a result's message, as text.
#[tokio::test]
async fn a_stream_within_the_limit_is_one_text() {
    let reduction = small(&memory()).build().unwrap();
    for size in [1, 7, 500] {
        let shown = go(
            &reduction,
            &call("a", "f"),
            output(chunks(lines(100), size)),
        )
        .await;
        let message = Message::tool(&call("a", "f"), shown.parts, false);
        assert_eq!(text(content(&message)), lines(100));
    }
}
