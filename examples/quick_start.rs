//! A complete loop, with a scripted model and a tool with long results. Prints the
//! messages at the end.
//!
//! ```sh
//! cargo run --example quick_start
//! ```

use std::error::Error;
use std::io::Write;

use offcut::format::{LoopFormat, OpenAiChat};
use offcut::{ToolCall, ToolError, ToolReduction};
use serde_json::{Value, json};

/// Yours: the client of a provider.
struct Model;

struct Reply {
    message: Value,
    calls: Vec<ToolCall>,
}

impl Model {
    /// Asks for one search, then finishes.
    async fn complete(&self, messages: &[Value], _tools: &[Value]) -> Result<Reply, ToolError> {
        let call = json!({"id": "call_1", "type": "function", "function": {"name": "grep", "arguments": "{}"}});
        let message = match messages.len() {
            1 => json!({"role": "assistant", "content": null, "tool_calls": [call]}),
            _ => json!({"role": "assistant", "content": "Done."}),
        };
        let calls = OpenAiChat.tool_calls(&message);
        Ok(Reply { message, calls })
    }
}

/// Yours: the tools.
async fn run(_call: &ToolCall) -> Result<String, ToolError> {
    Ok((1..=400)
        .map(|n| format!("src/orders/ship_{n}.rs:{n}:    fn retry_{n}(&self) -> Order {{\n"))
        .collect())
}

async fn converse(
    model: &Model,
    mut tools: Vec<Value>,
    messages: &mut Vec<Value>,
) -> Result<(), Box<dyn Error>> {
    let reduction = ToolReduction::in_dir(".offcut")?;
    reduction.check_stores().await?; // a store that can't be written to ends here
    tools.push(reduction.reader(OpenAiChat));
    loop {
        reduction.before_model(OpenAiChat, messages).await?;
        let reply = model.complete(messages, &tools).await?;
        messages.push(reply.message);
        if reply.calls.is_empty() {
            return Ok(());
        }
        for call in &reply.calls {
            let result = reduction.wrap_tool_call(OpenAiChat, call, || run(call));
            messages.push(result.await?);
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let home = tempfile::tempdir()?;
    std::env::set_current_dir(&home)?;
    let mut messages = vec![json!({"role": "user", "content": "Where are orders shipped?"})];
    converse(&Model, Vec::new(), &mut messages).await?;
    let mut out = std::io::stdout();
    for message in &messages {
        let said = message["content"].as_str().unwrap_or("(calls grep)");
        writeln!(
            out,
            "{}: {said}\n",
            message["role"].as_str().unwrap_or_default()
        )?;
    }
    Ok(())
}
