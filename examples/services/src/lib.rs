//! Agent loops over HTTP with Offcut in them, one for each provider's API: the examples of this
//! package.
//!
//! The library holds their shared code without Offcut: [`Task`], the command line; [`Api`], a
//! provider's HTTP API; [`grep`], a tool.

mod api;
pub mod grep;
mod task;

pub use api::Api;
pub use task::{Task, print};

/// Compiles the programs of docs/seams.md.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/seams.md")]
struct Seams;
