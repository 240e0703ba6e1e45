//! Keeps long tool results out of a rig agent's context, and keeps every byte readable: [`offcut`]
//! as a hook.
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
//! [`Reduction`] describes its effects and the needs of a conversation; [`RigMessages`] is the
//! format of rig's messages.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod content;
mod format;
mod hook;

pub use format::RigMessages;
pub use hook::Reduction;

/// Compiles the README's examples.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
