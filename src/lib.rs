//! Keeps long tool results out of your agent's context window, and keeps every byte readable.
//!
//! A tool result goes in; a short one comes out, with a hint that says where the full text is.
//!
//! | moment | what happens | start at |
//! |---|---|---|
//! | a tool returns | a result over the limit is stored whole and replaced by a preview and a hint | [`ToolReduction::truncate`] |
//! | the model is about to be called | over the token threshold, old results are stored and replaced by hints | [`ToolReduction::clear`] |
//! | the model wants more | it reads the stored content page by page | [`ToolReduction::read_file_tool`] |
//!
//! ```
//! use offcut::backend::Memory;
//! use offcut::format::{Message, Plain};
//! use offcut::{ToolCall, ToolReduction};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let reduction = ToolReduction::recommended(Memory::new()).build()?;
//! let mut messages = vec![Message::user("Where is the leak?")];
//!
//! // In the loop, when a tool has returned:
//! let call = ToolCall::new("call_1", "grep", r#"{"pattern":"alloc"}"#);
//! let shown = reduction.truncate(&call, "src/pool.rs:7: alloc\n".repeat(2_000)).await?;
//! messages.push(Message::calls(vec![call.clone()]));
//! messages.push(Message::tool(&call, shown.parts, shown.is_error));
//!
//! // And before each call of the model:
//! let report = reduction.clear(Plain, &mut messages).await?;
//! assert_eq!(report.cleared_tool_uses(), 0); // far below the threshold
//! # Ok(()) }
//! ```
//!
//! - **Stores:** [`backend`], with [`backend::Memory`] and [`backend::Fs`]; [`backend::Key`]
//!   explains the keys.
//! - **Message formats:** [`format`](mod@format), with chat completions, Responses, Anthropic
//!   messages, Gemini contents and a message type of its own. Nothing is converted.
//! - **Text for the model:** [`hint`] and [`preview`].
//! - **Cleaning up:** [`sweep`](mod@sweep) removes stored content that no conversation names any more.
//! - **Reports:** [`report`]; every decision is also a `tracing` event. Neither contains content.
//! - **Building blocks:** [`rounds`] pairs results with calls, [`template`] fills in texts.
//! - **A loop, if you have none:** [`agent`]. Between loops and tools: [`Middleware`].
//!
//! The [pages](https://github.com/offcut-rs/offcut/tree/main/docs) have the guide, recipes, all options and a glossary;
//! DESIGN.md has the laws, a map of the code and the decisions.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod agent;
pub mod backend;
mod clear;
pub mod config;
mod content;
mod decisions;
mod error;
mod fingerprint;
pub mod format;
mod guard;
pub mod handler;
pub mod hint;
mod history;
pub mod json;
mod middleware;
mod ours;
pub mod preview;
mod read_back;
mod reduction;
pub mod report;
pub mod rounds;
mod session;
mod slots;
pub mod sweep;
pub mod tokens;
mod tool;
mod truncate;

#[doc(no_inline)]
pub use backend::ErrorChain;
pub use config::{
    BuildError, OnOffloadError, PreviewLength, Settings, SettingsError, StoredNames, TokenCounter,
    ToolPolicy,
};
pub use content::{Body, Chunk, Part, ToolCall, ToolError, ToolOutput};
pub use error::OffloadError;
#[doc(no_inline)]
pub use hint::{Language, template};
pub use middleware::{Middleware, Next, ToolHandler, Turn};
pub use read_back::ReadFileTool;
pub use reduction::{Builder, ToolReduction};
pub use report::Report;
pub use truncate::Truncated;

/// Compiles and runs the examples of the README, the guide and the cookbook.
#[cfg(all(doctest, feature = "fs"))]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../docs/guide.md")]
#[doc = include_str!("../docs/cookbook.md")]
struct Pages;
