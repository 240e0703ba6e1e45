//! Bytes as text: characters split across chunks, lines, and positions.

pub mod decoding;
pub mod lines;
