//! The laws, checked over generated conversations, and the checks themselves, run over broken
//! reducers that they must catch.
//!
//! `OFFCUT_CASES` sets the number of conversations for L1–L5 together (default 1 000; the other
//! laws scale with it), `OFFCUT_SEED` picks them. The same two numbers give the same conversations.

#![cfg(all(feature = "fs", feature = "tiktoken"))]
// Helpers may unwrap, as tests may.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod broken;
mod c13;
mod drive;
mod found;
mod generate;
mod harness;
mod l12;
mod l1_to_l5;
mod l2;
mod l6;
mod l7;
mod l8_cache;
mod l8_l10;
mod l9;
mod naive;
mod names;
mod output;
mod pass;
mod shadow;
mod subject;
mod text;
mod valid;
mod wire;
mod world;

use harness::{Violation, block_on, cases, hold, require};
use world::Store;

/// Number of conversations to drive if `OFFCUT_CASES` is not set.
const CASES: u64 = 1_000;
/// The store that most laws run over.
const STORE: Store = world::memory;
/// A second kind of store, for some of the laws.
const OTHER_STORE: Store = world::files;
