//! An agent over the Gemini API, with parallel calls: Offcut joins their responses into one
//! content.
//!
//! ```sh
//! export GEMINI_API_KEY=…
//! cargo run -p offcut-examples --features services --example gemini -- MODEL . "Which functions retry?"
//! ```
//!
//! Lines that end in `// offcut` are the ones that Offcut adds to the loop.

use std::error::Error;

use offcut::ToolReduction; // offcut
use offcut::format::{Gemini, LoopFormat}; // offcut
use offcut_examples::{Api, Task, grep, print};
use serde_json::{Value, json};

async fn converse(api: &Api, task: &Task) -> Result<String, Box<dyn Error>> {
    let reduction = ToolReduction::in_dir(".offcut")?; // offcut
    let mut functions = vec![
        json!({"name": grep::NAME, "description": grep::DESCRIPTION, "parametersJsonSchema": grep::parameters()}),
    ];
    let mut reader = reduction.reader(Gemini); // offcut
    functions.push(reader["functionDeclarations"][0].take()); // offcut
    // One tool with all functions: some endpoints refuse several tools in a request.
    let tools = json!([{"functionDeclarations": functions}]);
    let mut contents = vec![json!({"role": "user", "parts": [{"text": task.question}]})];
    let path = format!("/v1beta/models/{}:generateContent", task.model);
    loop {
        reduction.before_model(Gemini, &mut contents).await?; // offcut
        let request = json!({"contents": contents, "tools": tools});
        let mut reply = api.post(&path, &request).await?;
        // Keeps its `thoughtSignature`s, which the API requires back.
        let content = reply["candidates"][0]["content"].take();
        let (calls, answer) = (Gemini.tool_calls(&content), text(&content));
        contents.push(content);
        if calls.is_empty() {
            return Ok(answer);
        }
        for call in &calls {
            let run = async || grep::run(&task.directory, call);
            contents.push(reduction.wrap_tool_call(Gemini, call, run).await?); // offcut
        }
    }
}

/// The text of `content`.
fn text(content: &Value) -> String {
    let parts = content["parts"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let task = Task::from_args()?;
    let base = "https://generativelanguage.googleapis.com";
    let api = Api::from_env_or("GOOGLE_GEMINI_BASE_URL", base)?;
    let api = api.key("x-goog-api-key", "", "GEMINI_API_KEY")?;
    print(&converse(&api, &task).await?)?;
    Ok(())
}
