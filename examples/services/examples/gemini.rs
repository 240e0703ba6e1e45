//! An agent over the Gemini API, with parallel calls: all their responses go into one content.
//!
//! ```sh
//! export GEMINI_API_KEY=…
//! cargo run -p offcut-services --example gemini -- MODEL . "Which functions retry?"
//! ```
//!
//! Lines that end in `// offcut` are the ones that Offcut adds to the loop.

use std::error::Error;

use offcut::ToolReduction; // offcut
use offcut::backend::Fs; // offcut
use offcut::format::Gemini; // offcut
use offcut_services::{Api, Task, grep, print};
use serde_json::{Value, json};

async fn converse(api: &Api, task: &Task) -> Result<String, Box<dyn Error>> {
    let reduction = ToolReduction::recommended(Fs::open(".offcut")?).build()?; // offcut
    let mut functions = vec![
        json!({"name": grep::NAME, "description": grep::DESCRIPTION, "parametersJsonSchema": grep::parameters()}),
    ];
    let mut reader = Gemini::tool(&reduction.read_file_tool()); // offcut
    functions.push(reader["functionDeclarations"][0].take()); // offcut
    // One tool with all functions: some endpoints refuse several tools in a request.
    let tools = json!([{"functionDeclarations": functions}]);
    let mut contents = vec![json!({"role": "user", "parts": [{"text": task.question}]})];
    let path = format!("/v1beta/models/{}:generateContent", task.model);
    loop {
        reduction.clear(&Gemini, &mut contents).await?; // offcut
        let request = json!({"contents": contents, "tools": tools});
        let mut reply = api.post(&path, &request).await?;
        // Keeps its `thoughtSignature`s, which the API requires back.
        let content = reply["candidates"][0]["content"].take();
        let (calls, answer) = (Gemini::tool_calls(&content), text(&content));
        contents.push(content);
        if calls.is_empty() {
            return Ok(answer);
        }
        let mut responses = Vec::new();
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
            responses.push(Gemini::tool_response(&call, shown, is_error));
        }
        contents.push(Gemini::tool_message(responses));
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
