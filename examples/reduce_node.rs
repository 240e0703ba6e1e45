//! Two long texts in an agent's state are condensed into one, and can still be read back.
//!
//! ```text
//! cargo run --example reduce_node
//! cargo run --example reduce_node -- ollama run llama3.2      # a real model: a command that reads a prompt and answers
//! ```
//!
//! Without a command it needs no network: its model lists the definitions in the two files.

#![allow(clippy::print_stdout, reason = "a program that talks to a person")]

use std::error::Error;
use std::process::Stdio;

use async_trait::async_trait;
use offcut::agent::{ChatModel, ModelError, ModelReply, ModelRequest, Tool};
use offcut::backend::Memory;
use offcut::format::Message;
use offcut::{Part, ToolCall, ToolReduction};
use offcut_state::ReduceNode;
use serde_json::{Map, Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// The results of two tools: files of this repository.
const FILES: [(&str, &str); 2] = [
    ("first", include_str!("../src/agent.rs")),
    ("second", include_str!("../src/middleware.rs")),
];

/// Condenses both files in `state` and reads the originals back.
async fn condense(model: Model, state: &mut Map<String, Value>) -> Result<(), Box<dyn Error>> {
    let reduction = ToolReduction::builder().backend(Memory::new()).build()?;
    let node = ReduceNode::builder(
        model,
        "Say in a few lines what these two files are for and what they define.\n\n--- first ---\n{first}\n\n--- second ---\n{second}\n",
    )
    .system_instruction("You keep an agent's notes short. Facts only.")
    .input_keys(["first", "second"])
    .output_key("summary")
    .reduction(reduction.clone())
    .build()?;
    let reduced = node.run(state).await?;

    // The agent's reader also finds the dropped originals at the locations in the output.
    let reader = reduction.read_file_tool();
    for ((key, location), (_, content)) in reduced.stored.iter().zip(FILES) {
        let arguments = json!({"path": location.as_str(), "limit": 1}).to_string();
        let call = ToolCall::new("", "read_file", arguments);
        let (page, _) = reader.call(&call).await?.into_parts().await;
        let first = content.lines().next().unwrap_or_default();
        if !text(&page).contains(first) {
            return Err(format!("{key} can't be read back from {location}").into());
        }
        println!("{key} is stored at {location}");
    }
    Ok(())
}

fn state() -> Map<String, Value> {
    let files = FILES.map(|(key, content)| (key.to_owned(), content.into()));
    Map::from_iter(files)
}

/// The model: a command, or a substitute that needs none.
struct Model {
    command: Vec<String>,
}

#[async_trait]
impl ChatModel for Model {
    async fn complete(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let said = request.messages.iter().map(|message| match message {
            Message::System { content } | Message::User { content } => text(content),
            Message::Assistant { content, .. } | Message::Tool { content, .. } => text(content),
        });
        let said: Vec<_> = said.collect();
        let answer = match self.command.split_first() {
            Some((program, arguments)) => ask(program, arguments, &said.join("\n\n")).await?,
            None => list_definitions(&said.join("\n")),
        };
        Ok(ModelReply {
            message: Message::assistant(answer),
            input_tokens: None,
        })
    }
}

async fn ask(program: &str, arguments: &[String], prompt: &str) -> Result<String, ModelError> {
    let failed = |error: std::io::Error| {
        ModelError::new(format!("`{program}` could not be run")).with_source(error)
    };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let stdin = child.stdin.take();
    let write = async {
        match stdin {
            Some(mut stdin) => stdin.write_all(prompt.as_bytes()).await,
            None => Ok(()),
        }
    };
    // Both at once: a command may answer before it has read everything.
    let (written, output) = tokio::join!(write, child.wait_with_output());
    let output = written.and(output).map_err(failed)?;
    if !output.status.success() {
        return Err(ModelError::new(format!(
            "`{program}` ended with {}",
            output.status
        )));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Stands in for a model: lists the first comment of each file and the names that it defines.
fn list_definitions(prompt: &str) -> String {
    let mut lines = Vec::new();
    for file in prompt.split("\n--- ").skip(1) {
        let purpose = file.lines().find_map(|line| line.strip_prefix("//! "));
        let kinds = ["pub struct ", "pub trait ", "pub enum "];
        let defined = file
            .lines()
            .filter_map(|line| kinds.iter().find_map(|kind| line.strip_prefix(kind)));
        let names: Vec<_> = defined
            .filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric()).next())
            .collect();
        let purpose = purpose.unwrap_or("A file.");
        lines.push(format!("{purpose} Defines {}.", names.join(", ")));
    }
    lines.join("\n")
}

fn text(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(&**text),
        _ => None,
    });
    texts.collect()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut state = state();
    let before = json!(state).to_string().len();
    let command = std::env::args().skip(1).collect();
    condense(Model { command }, &mut state).await?;
    let after = json!(state).to_string().len();
    println!("{before} bytes of state are now {after}:\n{state:#?}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn two_texts_become_one_and_are_not_lost() {
        let mut state = state();
        let command = Vec::new();
        condense(Model { command }, &mut state).await.unwrap();
        assert_eq!(state.len(), 1);
        let summary = state["summary"].as_str().unwrap();
        assert!(
            summary.contains("ChatModel") && summary.contains("Middleware"),
            "{summary}"
        );
    }
}
