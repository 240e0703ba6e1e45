//! The code that agent loops over HTTP share (feature `services`), without Offcut: [`Task`], the command line; [`Api`], a
//! provider's HTTP API; [`grep`], a tool.
#![cfg(feature = "services")]

mod api;
pub mod grep;
mod task;

pub use api::Api;
pub use task::{Task, print};

/// Compiles the program of docs/seams.md.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/seams.md")]
struct Seams;
