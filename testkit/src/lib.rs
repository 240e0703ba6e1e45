//! What tests around [`offcut`] need: suites that hold stores and formats to their contracts, a
//! store that fails on cue, and the rules that providers have for messages.
//!
//! - **A store of your own:** [`backend::conformance`] holds it to every clause of
//!   [`Backend`](offcut::backend::Backend)'s contract.
//! - **A format of your own:** [`format::json_conformance`] does the same
//!   for [`Format`](offcut::format::Format).
//! - **A store that fails, hangs, or applies and then fails:** [`Faulty`].
//! - **Messages that a provider has to accept:** [`validate`].
//!
//! All but `validate` panics where a test should fail. It belongs among your dev-dependencies.

#![cfg_attr(docsrs, feature(doc_cfg))]
// A suite speaks to its caller by panicking, as `assert!` does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod backend;
mod faulty;
pub mod format;
mod validate;

pub use faulty::{Fault, Faulty};
pub use validate::{InvalidMessage, validate};

/// The README's examples compile and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
