//! Test helpers for code around [`offcut`]: contract suites for stores and formats, a store that
//! fails on cue, and the rules of providers for messages.
//!
//! - **Your own store:** [`backend::conformance`] checks it against every clause of
//!   [`Backend`](offcut::backend::Backend)'s contract.
//! - **Your own format:** [`format::json_conformance`] does so for
//!   [`Format`](offcut::format::Format).
//! - **A store that fails, hangs, or applies and then fails:** [`Faulty`].
//! - **Messages that a provider must accept:** [`validate`].
//! - **Cleared arguments:** [`replaced_arguments`] finds what was replaced in them.
//! - **A scripted model:** [`rounds`] tells what it has been shown.
//!
//! The suites panic if a test should fail; `validate` returns an error. Add this crate to your
//! dev-dependencies.

#![cfg_attr(docsrs, feature(doc_cfg))]
// A suite reports failures by panicking, as `assert!` does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod arguments;
pub mod backend;
mod faulty;
pub mod format;
mod rounds;
mod validate;

pub use arguments::replaced_arguments;
pub use faulty::{Fault, Faulty};
pub use rounds::{ShownResult, rounds};
pub use validate::{InvalidMessage, validate};

/// Compiles and runs the README's examples.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
