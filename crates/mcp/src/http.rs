//! Parts that Offcut's servers over HTTP share.

mod flushed;
mod headers;
mod host;

pub use flushed::Flushed;
pub use headers::strip;
pub use host::{address, is_loopback, is_own_host};
