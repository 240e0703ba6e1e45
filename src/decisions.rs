//! Decisions about tool results that outlive the process: which results they are about, what takes
//! their place, and where that is written down.
//!
//! [`Records`] are a row of small objects in a store, in which any process finds them.

mod decided;
mod records;
mod settings;

pub use decided::Decided;
pub(crate) use decided::{Decisions, Moment, Substitute, WrittenReplacement};
pub(crate) use records::Record;
pub use records::Records;
pub(crate) use settings::digest_of_settings;
