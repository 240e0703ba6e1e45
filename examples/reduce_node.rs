//! Two long tool results are condensed into one when the agent is done with them, and can still be
//! read back.
//!
//! ```text
//! cargo run --example reduce_node
//! cargo run --example reduce_node -- ollama run llama3.2      # a real model: a command that reads a prompt and answers
//! ```
//!
//! Without a command it needs no network: its model lists the definitions in the two files.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that talks to a person"
)]

use std::error::Error;
use std::process::{ExitCode, Stdio};

use async_trait::async_trait;
use offcut::ToolCall;
use offcut::agent::{ChatModel, ModelError, ModelReply, ModelRequest, Tool};
use offcut::backend::Memory;
use offcut::format::{Message, Plain};
use offcut::{Part, ToolReduction};
use offcut_state::{ReduceNode, ToolResults};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// The results of the two tools: files of this repository.
const FILES: [(&str, &str); 2] = [
    ("src/agent.rs", include_str!("../src/agent.rs")),
    ("src/middleware.rs", include_str!("../src/middleware.rs")),
];

/// Condenses the two results in `messages` and reads the originals back.
async fn condense(model: Model, messages: &mut [Message]) -> Result<String, Box<dyn Error>> {
    let reduction = ToolReduction::builder().backend(Memory::new()).build()?;
    let node = ReduceNode::builder(
        model,
        "Say in a few lines what these two files are for and what they define.\n\n--- first ---\n{first}\n\n--- second ---\n{second}\n",
    )
    .system_instruction("You keep an agent's notes short. Facts only.")
    .input_keys(["first", "second"])
    .reduction(reduction.clone())
    .build()?;

    let results = ToolResults::new(&Plain, messages)
        .with("first", "call_1")?
        .with("second", "call_2")?;
    let reduced = results.condense(&node).await?;

    // The agent's reader also finds the dropped originals at the locations in the output.
    let reader = reduction.read_file_tool();
    for ((_, location), (path, content)) in reduced.stored.iter().zip(FILES) {
        let arguments = json!({"path": location.as_str(), "limit": 1}).to_string();
        let (page, _) = reader
            .call(&ToolCall::new("", "read_file", arguments))
            .await?
            .into_parts()
            .await;
        let first = content.lines().next().unwrap_or_default();
        if !text(&page).contains(first) {
            return Err(format!("{path} can't be read back from {location}").into());
        }
        println!("{path} is stored at {location}");
    }
    Ok(reduced.output)
}

/// A conversation whose agent has read both files and answered.
fn conversation() -> Vec<Message> {
    let calls: Vec<_> = ["call_1", "call_2"]
        .iter()
        .zip(FILES)
        .map(|(id, (path, _))| ToolCall::new(*id, "read", json!({"path": path}).to_string()))
        .collect();
    let mut messages = vec![
        Message::user("How do middlewares get into the loop?"),
        Message::calls(calls.clone()),
    ];
    let results = calls
        .iter()
        .zip(FILES)
        .map(|(call, (_, content))| Message::tool(call, vec![content.into()], false));
    messages.extend(results);
    messages.push(Message::assistant(
        "Agent::builder takes them; Next calls one after the other.",
    ));
    messages
}

/// The model: a command, or a substitute that needs none.
struct Model {
    command: Vec<String>,
}

#[async_trait]
impl ChatModel for Model {
    async fn complete(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let said: Vec<_> = request
            .messages
            .iter()
            .map(|message| text(content(message)))
            .collect();
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
        let purpose = file
            .lines()
            .find_map(|line| line.strip_prefix("//! "))
            .unwrap_or("A file.");
        let names: Vec<_> = file
            .lines()
            .filter_map(|line| {
                ["pub struct ", "pub trait ", "pub enum "]
                    .iter()
                    .find_map(|kind| line.strip_prefix(kind))
            })
            .filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric()).next())
            .collect();
        lines.push(format!("{purpose} Defines {}.", names.join(", ")));
    }
    lines.join("\n")
}

fn content(message: &Message) -> &[Part] {
    match message {
        Message::System { content } | Message::User { content } => content,
        Message::Assistant { content, .. } | Message::Tool { content, .. } => content,
    }
}

fn text(parts: &[Part]) -> String {
    parts
        .iter()
        .filter_map(|part| {
            if let Part::Text(text) = part {
                Some(&**text)
            } else {
                None
            }
        })
        .collect()
}

fn bytes(messages: &[Message]) -> usize {
    messages
        .iter()
        .map(|message| text(content(message)).len())
        .sum()
}

async fn run() -> Result<(), Box<dyn Error>> {
    let mut messages = conversation();
    let before = bytes(&messages);
    let model = Model {
        command: std::env::args().skip(1).collect(),
    };
    condense(model, &mut messages).await?;
    println!(
        "{before} bytes of conversation are now {}:",
        bytes(&messages)
    );
    for message in &messages {
        let (role, said) = match message {
            Message::System { .. } => ("system", text(content(message))),
            Message::User { .. } => ("user", text(content(message))),
            Message::Assistant { calls, .. } if calls.is_empty() => {
                ("assistant", text(content(message)))
            }
            Message::Assistant { calls, .. } => {
                let calls: Vec<_> = calls
                    .iter()
                    .map(|call| format!("{}({})", call.name, call.arguments))
                    .collect();
                ("assistant", calls.join(" "))
            }
            Message::Tool { call_id, .. } => (&**call_id, text(content(message))),
        };
        println!("\n{role:>9}  {}", said.replace('\n', "\n           "));
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            let mut source = error.source();
            while let Some(cause) = source {
                eprintln!("because {cause}");
                source = cause.source();
            }
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn two_results_become_one_and_are_not_lost() {
        let mut messages = conversation();
        let before = bytes(&messages);
        let output = condense(
            Model {
                command: Vec::new(),
            },
            &mut messages,
        )
        .await
        .unwrap();
        assert!(
            output.contains("ChatModel") && output.contains("Middleware"),
            "{output}"
        );
        assert!(bytes(&messages) * 10 < before);
        assert_eq!(text(content(&messages[2])), output);
    }
}
