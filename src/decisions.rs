//! Decisions about tool results that outlive the process: which results they are about, what takes
//! their place, and where that is written down.
//!
//! - **Identities:** a [`SlotId`] is the same in every process.
//! - **[`Decisions`]:** what takes the place of a slot.
//! - **[`Records`]:** a row of small objects in a store, in which any process finds them.

mod decided;
pub(crate) mod fingerprint;
mod records;
mod settings;
mod slot;

pub use decided::{Decided, Decisions, Moment, Substitute, WrittenPart, WrittenReplacement};
pub use records::{Record, Records};
pub(crate) use settings::digest_of_settings;
pub use slot::{NotASlotId, SlotDigest, SlotId, SlotIds};
