//! What tests of stores and formats, and of code that uses them, need: the suites of their
//! contracts, and a store that fails on cue.
//!
//! All of it panics where a test should fail. It belongs among your dev-dependencies:
//!
//! ```toml
//! [dev-dependencies]
//! offcut = { version = "…", features = ["testkit"] }
//! ```

// A suite speaks to its caller by panicking, as `assert!` does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod backend;
mod faulty;
pub mod format;

pub use faulty::{Fault, Faulty};
