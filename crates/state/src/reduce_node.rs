//! `ReduceNode`: a model condenses several values into one, and the inputs are dropped.

mod builder;
mod error;
mod node;

pub use builder::ReduceNodeBuilder;
pub use error::ReduceNodeError;
pub use node::{OriginalsNote, ReduceNode, Reduced};
