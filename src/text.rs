//! Bytes as text: characters split across chunks, lines, and positions.

pub(crate) mod lines;
pub(crate) mod utf8;
