//! Agent loops over HTTP with Offcut in them, one for each provider's API: the examples of this
//! package.
//!
//! Here is what they share and what has nothing to do with Offcut: [`Task`], the command line;
//! [`Api`], a provider's HTTP API; [`grep`], a tool.

mod api;
pub mod grep;
mod task;

pub use api::Api;
pub use task::{Task, print};

/// The programs of docs/seams.md compile.
#[cfg(doctest)]
#[doc = include_str!("../../docs/seams.md")]
struct Seams;
