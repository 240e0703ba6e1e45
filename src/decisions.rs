//! Decisions about tool results that outlive the process: which results they are about, what takes
//! their place, and where that is written down.

mod decided;
mod records;

pub(crate) use decided::{Decided, Decisions, Moment, Substitute, WrittenReplacement};
pub(crate) use records::{ReadRecord, Records};
