//! Parts that Offcut's servers over HTTP share.

mod client;
pub mod events;
mod flushed;
mod headers;
mod host;
pub(crate) mod room;

pub use client::{HttpClient, MAX_HEADERS};
pub use flushed::flushed;
pub use headers::strip;
pub use host::{address, is_loopback, is_own_host};
