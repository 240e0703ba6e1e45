//! Bytes as text: characters that come in chunks, lines and places.

pub(crate) mod lines;
pub(crate) mod utf8;
