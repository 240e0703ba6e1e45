//! Bytes as text: characters split across chunks, lines, and positions.

pub mod lines;
pub mod utf8;
