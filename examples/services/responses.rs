//! An agent over OpenAI's Responses API that sends its whole history and stores nothing at the
//! provider.
//!
//! ```sh
//! export OPENAI_API_KEY=…
//! cargo run -p offcut-examples --features services --example responses -- MODEL . "Which functions retry?"
//! ```
//!
//! Lines that end in `// offcut` are the ones that Offcut adds to the loop.

use std::error::Error;

use offcut::ToolReduction; // offcut
use offcut::format::{LoopFormat, Responses}; // offcut
use offcut_examples::{Api, Task, grep, print};
use serde_json::{Value, json};

async fn converse(api: &Api, task: &Task) -> Result<String, Box<dyn Error>> {
    let reduction = ToolReduction::in_dir(".offcut")?; // offcut
    let mut tools = vec![
        json!({"type": "function", "name": grep::NAME, "description": grep::DESCRIPTION, "parameters": grep::parameters(), "strict": false}),
    ];
    tools.push(reduction.reader(Responses)); // offcut
    let mut items = vec![json!({"role": "user", "content": task.question})];
    loop {
        reduction.before_model(Responses, &mut items).await?; // offcut
        // `include` requests encrypted reasoning, so that it can be sent back.
        let request = json!({
            "model": task.model, "input": items, "tools": tools,
            "store": false, "include": ["reasoning.encrypted_content"],
        });
        let reply = api.post("/responses", &request).await?;
        let output = reply["output"].as_array().cloned().unwrap_or_default();
        let calls: Vec<_> = output
            .iter()
            .flat_map(|item| Responses.tool_calls(item))
            .collect();
        let answer = text(&output);
        items.extend(output);
        if calls.is_empty() {
            return Ok(answer);
        }
        for call in &calls {
            let run = async || grep::run(&task.directory, call);
            items.push(reduction.wrap_tool_call(Responses, call, run).await?); // offcut
        }
    }
}

/// The text of the messages among `output`.
fn text(output: &[Value]) -> String {
    let content = output.iter().filter_map(|item| item["content"].as_array());
    content
        .flatten()
        .filter_map(|part| part["text"].as_str())
        .collect()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let task = Task::from_args()?;
    let api = Api::from_env_or("OPENAI_BASE_URL", "https://api.openai.com/v1")?;
    let api = api.key("authorization", "Bearer ", "OPENAI_API_KEY")?;
    print(&converse(&api, &task).await?)?;
    Ok(())
}
