//! Keeps long results of an MCP server's tools out of the model's context window, for any server and
//! any client.
//!
//! - [`McpGateway`] stands between a client and a server. Messages pass as raw JSON; only long results
//!   of tools and the list of tools change.
//! - [`reduce`] shortens one result, for programs that hold results themselves; [`listed_reader`] and [`read_back`]
//!   give them the reader.
//!
//! ```
//! use offcut::{ToolCall, ToolReduction, backend::Memory};
//! use offcut_mcp::{OutputSchema, reduce};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let reduction = ToolReduction::recommended(Memory::named("demo")?).build()?;
//! let log = "a line of a log\\n".repeat(1_000);
//! let result = format!(r#"{{"content":[{{"type":"text","text":"{log}"}}],"_meta":{{"n":1.00}}}}"#);
//! let call = ToolCall::new("7", "build_log", "{}");
//! let shown = reduce(&reduction, &call, result, &OutputSchema::None).await?.expect("it is long");
//! assert!(shown.len() < 10_000 && shown.contains("memory://demo/trunc/7"));
//! assert!(shown.ends_with(r#""_meta":{"n":1.00}}"#));
//! # Ok(()) }
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

mod blocks;
#[cfg(feature = "http")]
mod endpoint;
#[cfg(feature = "gateway")]
mod gateway;
#[cfg(feature = "http")]
#[doc(hidden)]
pub mod http;
#[cfg(feature = "gateway")]
mod locked;
mod reader;
#[cfg(feature = "http")]
mod remote;
mod result;
mod same;
mod schema;
mod structured;

#[cfg(feature = "http")]
pub use endpoint::McpEndpoint;
#[cfg(feature = "gateway")]
pub use gateway::{Conversation, FromClient, FromServer, McpGateway, run};
pub use reader::{listed_reader, read_back};
#[cfg(feature = "http")]
pub use remote::{Remote, RemoteError};
pub use result::{ReduceError, reduce};
pub use schema::OutputSchema;

/// Compiles and runs the README's examples.
#[cfg(all(doctest, feature = "gateway"))]
#[doc = include_str!("../README.md")]
struct Readme;
