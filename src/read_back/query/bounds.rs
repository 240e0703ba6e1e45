//! Bounds on the cost of a query. A model wrote it, so it can ask for anything.

use std::cell::Cell;
use std::panic::resume_unwind;
use std::time::{Duration, Instant};

use crate::read_back::words::Refusal;

/// Size of the stack that a query runs on, in bytes. Only what is used of it takes memory.
pub(super) const STACK: usize = 64 << 20;
/// The part of the stack for what does not recurse, and for what recurses and is bounded otherwise.
const RESERVE: usize = 16 << 20;
/// The most bytes of values that a query may hold at once.
pub(super) const MAX_MEMORY: usize = 256 << 20;
/// The greatest depth of a value. Dropping, writing and comparing it recurse.
const MAX_DEPTH: u32 = 1_000;
/// The most bytes of the text of one record, which is read before it has a value.
const MAX_RECORD: u64 = if cfg!(test) { 4 << 20 } else { 48 << 20 };
/// A query may run this long, and longer for a long text.
const PATIENCE: Duration = Duration::from_millis(if cfg!(test) { 500 } else { 2_000 });
const MIN_BYTES_PER_SECOND: u64 = 8 << 20;
/// The clock is read after this many steps.
const CLOCK_EVERY: u64 = 1 << 10;

thread_local! {
    static STEPS: Cell<u64> = const { Cell::new(0) };
    static MEMORY: Cell<usize> = const { Cell::new(0) };
    static UNPARSED: Cell<u64> = const { Cell::new(0) };
    static BOUNDS: Cell<Option<(Instant, usize)>> = const { Cell::new(None) };
}

/// Bounds what this thread does from here on, for a text of `length` bytes.
pub(super) fn begin(length: u64) {
    let allowed = PATIENCE + Duration::from_secs(length / MIN_BYTES_PER_SECOND);
    BOUNDS.set(Some((Instant::now() + allowed, here())));
}

/// An address on the stack.
fn here() -> usize {
    let local = 0u8;
    (&raw const local).addr()
}

/// Gives up a query that costs too much. Unwinds the stack, because a query could catch an error.
pub(super) fn give_up() -> ! {
    resume_unwind(Box::new(Refusal::CostlyQuery))
}

/// Counts a step. Every loop and every recursion of a query goes through it.
pub(super) fn step() {
    let Some((deadline, bottom)) = BOUNDS.get() else {
        return;
    };
    let steps = STEPS.get() + 1;
    STEPS.set(steps);
    let is_deep = bottom.abs_diff(here()) > STACK - RESERVE;
    if is_deep || steps.is_multiple_of(CLOCK_EVERY) && Instant::now() > deadline {
        give_up();
    }
}

/// Counts bytes that are read for the next record.
pub(super) fn read(bytes: usize) {
    let unparsed = UNPARSED.get() + bytes as u64;
    if unparsed > MAX_RECORD {
        give_up();
    }
    UNPARSED.set(unparsed);
}

/// Begins with the next record.
pub(super) fn next_record() {
    UNPARSED.set(0);
}

/// Returns the depth of a container of values, of which the deepest has the depth `of_values`.
pub(super) fn depth_above(of_values: u32) -> u32 {
    if of_values >= MAX_DEPTH {
        give_up();
    }
    of_values + 1
}

/// Memory that a value holds, until it is dropped.
#[derive(Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Charge(usize);

impl Charge {
    pub(super) fn new(bytes: usize) -> Self {
        let mut charge = Self(0);
        charge.add(bytes);
        charge
    }

    pub(super) fn add(&mut self, bytes: usize) {
        let memory = MEMORY.get().saturating_add(bytes);
        if memory > MAX_MEMORY {
            give_up();
        }
        MEMORY.set(memory);
        self.0 += bytes;
    }
}

impl Clone for Charge {
    fn clone(&self) -> Self {
        Self::new(self.0)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        MEMORY.set(MEMORY.get() - self.0);
    }
}
