//! Parts that Offcut's servers over HTTP share.

mod client;
mod clients;
pub mod events;
mod flushed;
mod headers;
mod host;
pub(crate) mod room;

pub use client::HttpClient;
pub use clients::Clients;
pub use flushed::flushed;
pub use headers::strip;
pub use host::{address, authority, is_from_own_page, is_own_host};

/// The body of a request or of a reply.
pub type Body = http_body_util::combinators::UnsyncBoxBody<bytes::Bytes, BoxError>;

/// Any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A body of these bytes.
pub fn full(bytes: impl Into<bytes::Bytes>) -> Body {
    use http_body_util::BodyExt as _;
    let body = http_body_util::Full::new(bytes.into());
    body.map_err(|never| match never {}).boxed_unsync()
}
