//! An agent over chat completions, at OpenAI or any compatible server.
//!
//! ```sh
//! export OPENAI_API_KEY=…
//! export OPENAI_BASE_URL=http://127.0.0.1:11434/v1   # for another server than OpenAI's
//! cargo run -p offcut-examples --features services --example chat_completions -- MODEL . "Which functions retry?"
//! ```
//!
//! Lines that end in `// offcut` are the ones that Offcut adds to the loop.

use std::error::Error;

use offcut::ToolReduction; // offcut
use offcut::format::{LoopFormat, OpenAiChat}; // offcut
use offcut_examples::{Api, Task, grep, print};
use serde_json::json;

async fn converse(api: &Api, task: &Task) -> Result<String, Box<dyn Error>> {
    let reduction = ToolReduction::in_dir(".offcut")?; // offcut
    let function = json!({"name": grep::NAME, "description": grep::DESCRIPTION, "parameters": grep::parameters()});
    let mut tools = vec![json!({"type": "function", "function": function})];
    tools.push(reduction.reader(OpenAiChat)); // offcut
    let mut messages = vec![json!({"role": "user", "content": task.question})];
    loop {
        reduction.before_model(OpenAiChat, &mut messages).await?; // offcut
        let request = json!({"model": task.model, "messages": messages, "tools": tools});
        let mut reply = api.post("/chat/completions", &request).await?;
        let message = reply["choices"][0]["message"].take();
        let calls = OpenAiChat.tool_calls(&message);
        messages.push(message.clone());
        if calls.is_empty() {
            return Ok(message["content"].as_str().unwrap_or_default().to_owned());
        }
        for call in &calls {
            let run = async || grep::run(&task.directory, call);
            messages.push(reduction.wrap_tool_call(OpenAiChat, call, run).await?); // offcut
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let task = Task::from_args()?;
    let api = Api::from_env_or("OPENAI_BASE_URL", "https://api.openai.com/v1")?;
    let api = api.key("authorization", "Bearer ", "OPENAI_API_KEY")?;
    print(&converse(&api, &task).await?)?;
    Ok(())
}
