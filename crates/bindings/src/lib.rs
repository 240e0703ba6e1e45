//! Offcut in the processes of Python and Node: one engine, JSON text in and JSON text out, and a thin module for each language. The packages
//! around them, in `python/` and `node/`, turn objects into JSON and back.

#[cfg(any(feature = "python", feature = "node"))]
mod engine;
#[cfg(feature = "node")]
pub mod node;
#[cfg(any(feature = "python", feature = "node"))]
mod parts;
#[cfg(feature = "python")]
mod python;
