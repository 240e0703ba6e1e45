//! Keeps what a rig agent's tools return from filling the model's context, and loses none of it:
//! [`offcut`] as a hook.
//!
//! ```
//! use offcut::{ToolReduction, backend::Memory};
//! use offcut_rig::Reduction;
//! # use rig::agent::AgentBuilder;
//!
//! # fn example(model: impl Into<rig::DynModel<rig::operation::Completion>>) -> Result<(), Box<dyn std::error::Error>> {
//! let reduction = Reduction::new(ToolReduction::recommended(Memory::new()).build()?);
//! let agent = AgentBuilder::new(model)
//!     .dynamic_tool(reduction.reader()?)
//!     .add_hook(reduction)
//!     .build();
//! # Ok(()) }
//! ```
//!
//! [`Reduction`] says what it does and what a conversation needs; [`RigMessages`] is how messages
//! are seen.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod content;
mod format;
mod history;
mod hook;

pub use format::RigMessages;
pub use hook::Reduction;

/// The README's examples compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
