//! A rig agent whose context stays small: `cargo run -p offcut-rig --example agent`.
//!
//! The model is a script on loopback, so that it runs without a key. Set
//! `OPENAI_BASE_URL=http://…`, `OPENAI_API_KEY` and the model's name in `OFFCUT_MODEL` to use any
//! server with chat completions.
#![allow(clippy::print_stdout)]

#[allow(dead_code, clippy::unwrap_used)]
#[path = "../tests/common/model.rs"]
mod model;

use std::path::Path;

use model::{ModelServer, Reply};
use offcut::backend::Memory;
use offcut::hint::Hint;
use offcut::{Report, ToolReduction};
use offcut_rig::Reduction;
use rig::DynModel;
use rig::agent::AgentBuilder;
use rig::operation::Completion;
use rig::providers::openai::{OpenAIConfig, Route};
use rig::tool::{Tool, ToolContext};
use serde_json::{Value, json};

/// Lists every file under the working directory.
struct ListFiles;

impl Tool for ListFiles {
    const NAME: &'static str = "list_files";
    type Args = Value;
    type Output = String;
    type Error = std::io::Error;

    fn description(&self) -> String {
        "Lists all files.".into()
    }

    fn parameters(&self) -> Value {
        json!({"type": "object", "properties": {}})
    }

    async fn call(&self, _: &mut ToolContext, _: Value) -> Result<String, std::io::Error> {
        let mut found = String::new();
        list(Path::new("."), &mut found)?;
        Ok(found)
    }
}

fn list(folder: &Path, found: &mut String) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let is_hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.is_dir() && !path.is_symlink() && !is_hidden && !path.ends_with("target") {
            list(&path, found)?;
        } else {
            found.push_str(&format!("{}\n", path.display()));
        }
    }
    Ok(())
}

/// Lists the files, looks something up in the stored result, answers.
fn script(messages: &[Value]) -> Reply {
    let last = messages
        .last()
        .and_then(|message| message["content"].as_str())
        .unwrap_or_default();
    println!(
        "the model is sent {} messages; the last one reads\n{last}\n",
        messages.len()
    );
    match (
        messages.len(),
        Hint::parse(last).and_then(|hint| hint.location),
    ) {
        (2, _) => Reply::Calls(vec![("call_1".into(), "list_files", json!({}))]),
        (4, Some(location)) => {
            let arguments = json!({"path": location.to_string(), "pattern": "Cargo\\.toml$"});
            Reply::Calls(vec![("call_2".into(), "read_file", arguments)])
        }
        _ => Reply::Answer("Each Cargo.toml is listed above."),
    }
}

async fn model() -> Result<DynModel<Completion>, Box<dyn std::error::Error>> {
    if std::env::var_os("OPENAI_BASE_URL").is_none() {
        return Ok(ModelServer::start(script).await.model());
    }
    let name = std::env::var("OFFCUT_MODEL").unwrap_or_else(|_| "gpt-5-mini".into());
    Ok(OpenAIConfig::from_env()?
        .with_route(Route::Chat)
        .client()
        .completion(name)
        .into())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let report = |report: &Report| {
        if report.is_change() {
            println!("{:?}: {} bytes less", report.phase, report.saved_bytes());
        }
    };
    let tools = ToolReduction::recommended(Memory::new())
        .max_length_for_trunc(4_000)
        .on_report(report)
        .build()?;
    let reduction = Reduction::new(tools);
    let agent = AgentBuilder::new(model().await?)
        .preamble("Answer with the help of your tools.")
        .tool(ListFiles)
        .dynamic_tool(reduction.reader()?)
        .add_hook(reduction)
        .build();
    println!(
        "{}",
        agent
            .prompt("Which packages are here?")
            .max_turns(10)
            .await?
            .output()
    );
    Ok(())
}
