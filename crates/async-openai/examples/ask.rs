//! Asks a model about a text that is far too long for its context, and shows how it copes.
//!
//! ```text
//! OPENAI_API_KEY=… OPENAI_MODEL=… cargo run -p offcut-async-openai --example ask -- Cargo.lock "Which version of serde is in it?"
//! ```
//!
//! `OPENAI_BASE_URL` names another endpoint, such as `http://127.0.0.1:11434/v1` for a local model.

#![allow(clippy::print_stdout, reason = "a program that talks to a person")]

use std::error::Error;
use std::io::Write;

use async_trait::async_trait;
use offcut::agent::{Agent, Tool, ToolDefinition};
use offcut::backend::Memory;
use offcut::format::Message;
use offcut::{ToolCall, ToolError, ToolOutput, ToolReduction};
use offcut_async_openai::OpenAiChatModel;
use serde_json::json;

/// The tool `read_text {}`, which returns the whole text.
struct ReadText(String);

#[async_trait]
impl Tool for ReadText {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: "read_text".into(),
            description: "Reads the text that the question is about.".into(),
            parameters: json!({"type": "object", "properties": {}}),
        }
    }

    async fn call(&self, _: &ToolCall) -> Result<ToolOutput, ToolError> {
        Ok(self.0.as_str().into())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(question)) = (arguments.next(), arguments.next()) else {
        return Err("pass a file and a question".into());
    };
    let reduction = ToolReduction::recommended(Memory::new())
        .on_report(|report| {
            for decision in &report.decisions {
                println!(
                    "[{}: {:?}, {:?} bytes]",
                    decision.tool, decision.outcome, decision.bytes
                );
            }
        })
        .build()?;
    let model = OpenAiChatModel::from_env()?.on_text(|text| {
        print!("{text}");
        // Flushed at once, to show the text as it arrives.
        let _ = std::io::stdout().flush();
    });
    let agent = Agent::builder(model)
        .tool(ReadText(std::fs::read_to_string(path)?))
        .tool(reduction.read_file_tool())
        .middleware(reduction)
        .build()?;
    agent.run(&mut vec![Message::user(question)]).await?;
    println!();
    Ok(())
}
