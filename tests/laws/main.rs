//! The laws, held against generated conversations; and the checks of the laws, held to finding what
//! is broken.
//!
//! `OFFCUT_CASES` says how many conversations are driven for L1–L5 together (1 000 unless it is
//! set; the other laws scale with it), `OFFCUT_SEED` says which ones. The same two numbers give the
//! same conversations.

#![cfg(all(feature = "fs", feature = "tiktoken"))]
// What helps tests is part of them.
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

/// How many conversations are driven, unless `OFFCUT_CASES` says otherwise.
const CASES: u64 = 1_000;
/// What most laws are held to over.
const STORE: Store = world::memory;
/// What some are held to over as well.
const OTHER_STORE: Store = world::files;
