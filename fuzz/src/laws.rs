//! The library's laws, shared with its own tests.

#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "the library's tests use the rest"
)]

#[path = "../../tests/laws/drive.rs"]
pub(crate) mod drive;
#[path = "../../tests/laws/generate.rs"]
pub(crate) mod generate;
#[path = "../../tests/laws/harness.rs"]
mod harness;
#[path = "../../tests/laws/l9/mod.rs"]
pub(crate) mod l9;
#[path = "../../tests/laws/names.rs"]
mod names;
#[path = "../../tests/laws/output.rs"]
mod output;
#[path = "../../tests/laws/pass.rs"]
pub(crate) mod pass;
#[path = "../../tests/laws/shadow.rs"]
mod shadow;
#[path = "../../tests/laws/subject.rs"]
mod subject;
#[path = "../../tests/laws/text.rs"]
pub(crate) mod text;
#[path = "../../tests/laws/valid.rs"]
mod valid;
#[path = "../../tests/laws/wire/mod.rs"]
pub(crate) mod wire;
#[path = "../../tests/laws/world.rs"]
pub(crate) mod world;

pub(crate) use harness::{Violation, block_on, hold, require};
use world::Store;

const CASES: u64 = 1;
const STORE: Store = world::memory;
const OTHER_STORE: Store = world::memory;

/// Panics if a law does not hold.
#[track_caller]
pub(crate) fn assert_held(checked: Result<(), Violation>) {
    if let Err(violation) = checked {
        panic!("{violation}");
    }
}
