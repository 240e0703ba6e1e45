//! An agent over Anthropic's Messages API, with parallel calls: all their results go into one
//! message.
//!
//! ```sh
//! export ANTHROPIC_API_KEY=…
//! cargo run -p offcut-services --example anthropic -- MODEL . "Which functions retry?"
//! ```
//!
//! Lines that end in `// offcut` are the ones that Offcut adds to the loop.

use std::error::Error;

use offcut::ToolReduction; // offcut
use offcut::backend::Fs; // offcut
use offcut::format::Anthropic; // offcut
use offcut_services::{Api, Task, grep, print};
use serde_json::{Value, json};

async fn converse(api: &Api, task: &Task) -> Result<String, Box<dyn Error>> {
    let reduction = ToolReduction::recommended(Fs::open(".offcut")?).build()?; // offcut
    let mut tools = vec![
        json!({"name": grep::NAME, "description": grep::DESCRIPTION, "input_schema": grep::parameters()}),
    ];
    tools.push(Anthropic::tool(&reduction.read_file_tool())); // offcut
    let mut messages = vec![json!({"role": "user", "content": task.question})];
    loop {
        reduction.clear(&Anthropic, &mut messages).await?; // offcut
        let request =
            json!({"model": task.model, "max_tokens": 4096, "messages": messages, "tools": tools});
        let mut reply = api.post("/v1/messages", &request).await?;
        let message = json!({"role": "assistant", "content": reply["content"].take()});
        let (calls, answer) = (Anthropic::tool_calls(&message), text(&message));
        messages.push(message);
        if calls.is_empty() {
            return Ok(answer);
        }
        let mut results = Vec::new();
        for call in calls {
            let page = reduction.answer(&call).await?; // offcut
            let shown = match page {
                Some(page) => page, // offcut
                None => {
                    let result = grep::run(&task.directory, &call);
                    reduction.truncate(&call, result).await? // offcut
                }
            };
            let is_error = shown.is_error; // offcut
            results.push(Anthropic::tool_result(&call, shown, is_error));
        }
        messages.push(Anthropic::tool_message(results));
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
