//! Keeps an MCP server's long tool results out of the model's context: [`offcut`] around any `rmcp`
//! service.
//!
//! ```
//! use offcut::{ToolReduction, backend::Memory};
//! use offcut_rmcp::Reduced;
//! # use rmcp::{ServerHandler, ServiceExt};
//! # struct MyServer;
//! # impl ServerHandler for MyServer {}
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let reduction = ToolReduction::recommended(Memory::new()).build()?;
//! let server = Reduced::new(MyServer, reduction);
//! # let (transport, _client) = tokio::io::duplex(4096);
//! # drop(_client);
//! # let _ =
//! server.serve(transport).await // as you served `MyServer`
//! # ;
//! # Ok(()) }
//! ```
//!
//! [`Reduced`] lists what changes and what stays, and explains how to give each client a session of
//! its own.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod reduced;
mod schemas;

pub use reduced::Reduced;

/// Compiles and runs the README's examples.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
