//! Parts that Offcut's servers over HTTP share.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod flushed;
mod headers;
mod host;

pub use flushed::Flushed;
pub use headers::strip;
pub use host::{address, is_loopback, is_own_host};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Page;
