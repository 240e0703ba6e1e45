//! Hints: texts that replace stored content.
//!
//! A hint is a header, a sentence and perhaps a preview. The crate `offcut-hint` renders and parses
//! them, and describes their form:
//!
//! ```text
//! [offcut/1 truncated 51200B/812L 39+7998 "/home/me/.offcut/trunc/call_1"] Stored in full. Read it with read_file.
//! first lines
//! [… 47000B, L40-790 …]
//! last lines
//! ```

// The index of this crate lists what most users name; the rest is in the leaf's own.
#[doc(no_inline)]
pub use offcut_hint::{Flags, Kind, Position, Sentence};
#[doc(inline)]
pub use offcut_hint::{Hint, Language};
