//! Offcut for loops over [`async_openai`].
//!
//! - [`TypedChat`] and [`TypedResponses`]: its typed messages as a [conversation](offcut::format::Conversation).
#![cfg_attr(
    feature = "model",
    doc = "- [`OpenAiChatModel`]: a model for [`offcut::agent::Agent`], at any OpenAI-compatible endpoint."
)]
//!
//! Messages as [`serde_json::Value`] don't need this crate: [`offcut::format::OpenAiChat`] and
//! [`offcut::format::Responses`] are their formats.
//!
//! ```
//! use async_openai::types::chat::{ChatCompletionRequestMessage, ChatCompletionRequestUserMessage};
//! use offcut::backend::Memory;
//! use offcut::{ToolCall, ToolReduction};
//! use offcut_async_openai::TypedChat;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let reduction = ToolReduction::recommended(Memory::new()).build()?;
//! let mut messages: Vec<ChatCompletionRequestMessage> = vec![ChatCompletionRequestUserMessage::from("go").into()];
//!
//! // When a tool has returned:
//! let call = ToolCall::new("call_1", "grep", "{}");
//! let shown = reduction.truncate(&call, "a line that matches\n".repeat(1_000)).await?;
//! messages.push(TypedChat::tool_message(&call, shown));
//!
//! // And before each call of the model:
//! TypedChat::new(&mut messages).clear(&reduction).await?;
//! # Ok(()) }
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "model")]
mod model;
mod text;
mod typed;

#[cfg(feature = "model")]
pub use model::{ModelSetupError, OpenAiChatModel};
pub use typed::{TypedChat, TypedMessage, TypedMessages, TypedResponses};

/// Compiles and runs the README's examples.
#[cfg(all(doctest, feature = "model"))]
#[doc = include_str!("../README.md")]
struct Readme;
