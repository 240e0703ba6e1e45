//! A list of messages that a model compacts: the recipe of docs/state.md.

use std::num::NonZeroUsize;

use offcut::ToolReduction;
use offcut::agent::{ChatModel, ModelError, ModelReply, ModelRequest};
use offcut::backend::Memory;
use offcut::format::{Message, OpenAiChat};
use offcut_state::{BoundedMessages, ReduceNode, Reducer};
use serde_json::{Map, Value, json};

/// Replaces all but about the newest `keep` messages by one that sums them up. Instructions are
/// outside of the list.
async fn compact(
    model: impl ChatModel + 'static,
    reduction: &ToolReduction,
    messages: &mut Vec<Value>,
    keep: NonZeroUsize,
) -> Result<(), Box<dyn std::error::Error>> {
    let recent = BoundedMessages::new(OpenAiChat, keep).reduce(Vec::new(), messages.clone())?;
    let old = &messages[..messages.len() - recent.len()];
    if old.is_empty() {
        return Ok(());
    }
    let node = ReduceNode::builder(
        model,
        "Sum up what was asked, done, found and left open:\n\n{old}",
    )
    .input_keys(["old"])
    .output_key("summary")
    .reduction(reduction.clone())
    .build()?;
    let mut state = Map::from_iter([("old".to_owned(), json!(old))]);
    node.run(&mut state).await?; // after an error, `messages` is as it was
    let summary = json!({"role": "user", "content": state["summary"]});
    *messages = std::iter::once(summary).chain(recent).collect();
    Ok(())
}

/// Yours: any model; `offcut-async-openai` has one.
struct Model;

#[async_trait::async_trait]
impl ChatModel for Model {
    async fn complete(&self, _: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        Ok(ModelReply {
            message: Message::assistant("The leak was looked for in the pool."),
            input_tokens: None,
        })
    }
}

#[tokio::test]
async fn a_compacted_list_keeps_whole_rounds_and_names_what_was_stored()
-> Result<(), Box<dyn std::error::Error>> {
    let call = json!({"id": "call_1", "type": "function", "function": {"name": "grep", "arguments": "{}"}});
    let mut messages = vec![
        json!({"role": "user", "content": "Where is the leak?"}),
        json!({"role": "assistant", "content": "In the pool, I think."}),
        json!({"role": "user", "content": "Look."}),
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": "call_1", "content": "src/pool.rs:7"}),
    ];
    let store = Memory::new();
    let chat = ToolReduction::recommended(store.clone())
        .build()?
        .session("chat");
    compact(Model, &chat, &mut messages, NonZeroUsize::MIN).await?;
    assert_eq!(messages.len(), 4); // the summary, the newest request, and its round whole
    let summary = messages[0]["content"].as_str().unwrap_or_default();
    assert!(summary.starts_with("The leak was looked for in the pool."));
    assert!(summary.contains("memory:/chat/clear/old-"));
    assert_eq!(store.len(), 1);
    Ok(())
}
