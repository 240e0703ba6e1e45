//! An agent over Anthropic's Messages API, with parallel calls: Offcut joins
//! their results into one message.
//!
//! ```sh
//! export ANTHROPIC_API_KEY=…
//! cargo run -p offcut-examples --features services --example anthropic -- MODEL . "Which functions retry?"
//! ```
//!
//! Lines that end in `// offcut` are the ones that Offcut adds to the loop.

use std::error::Error;

use offcut::ToolReduction; // offcut
use offcut::format::{Anthropic, LoopFormat}; // offcut
use offcut_examples::{Api, Task, grep, print};
use serde_json::{Value, json};

async fn converse(api: &Api, task: &Task) -> Result<String, Box<dyn Error>> {
    let reduction = ToolReduction::in_dir(".offcut")?; // offcut
    let mut tools = vec![
        json!({"name": grep::NAME, "description": grep::DESCRIPTION, "input_schema": grep::parameters()}),
    ];
    tools.push(reduction.reader(Anthropic)); // offcut
    let mut messages = vec![json!({"role": "user", "content": task.question})];
    loop {
        reduction.before_model(Anthropic, &mut messages).await?; // offcut
        let request =
            json!({"model": task.model, "max_tokens": 4096, "messages": messages, "tools": tools});
        let mut reply = api.post("/v1/messages", &request).await?;
        let message = json!({"role": "assistant", "content": reply["content"].take()});
        let (calls, answer) = (Anthropic.tool_calls(&message), text(&message));
        messages.push(message);
        if calls.is_empty() {
            return Ok(answer);
        }
        for call in &calls {
            let run = async || grep::run(&task.directory, call);
            messages.push(reduction.wrap_tool_call(Anthropic, call, run).await?); // offcut
        }
    }
}

/// The text of `message`.
fn text(message: &Value) -> String {
    let blocks = message["content"].as_array().into_iter().flatten();
    blocks.filter_map(|block| block["text"].as_str()).collect()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let task = Task::from_args()?;
    let api = Api::from_env_or("ANTHROPIC_BASE_URL", "https://api.anthropic.com")?;
    let api = api.key("x-api-key", "", "ANTHROPIC_API_KEY")?;
    let api = api.header("anthropic-version", "2023-06-01")?;
    print(&converse(&api, &task).await?)?;
    Ok(())
}
