//! Hints: texts that replace stored content.
//!
//! A hint is a header, a sentence and perhaps a preview:
//!
//! ```text
//! [offcut/1 truncated 51200B/812L 39+7998 "/home/me/.offcut/trunc/call_1"] Stored in full. Read it with read_file.
//! 1|first lines
//! 790|last lines
//! [… 47000 B …]
//! ```
//!
//! The header is the same in every language, and only the header is parsed. It has the envelope's
//! version, the kind of hint, the original's bytes (and lines), the lengths in bytes of the
//! sentence and the preview, and the location as a JSON string. Since the header has the lengths,
//! sentence and preview may contain anything, and a hint that was changed later is no longer
//! recognized.

mod envelope;
mod prose;
mod sentence;
pub mod template;

pub(crate) use envelope::OPENING;
pub use envelope::{Flags, Hint, Kind};
pub use prose::WrongTemplate;
pub(crate) use prose::{Draft, MAX_NAME, Prose};
pub use sentence::{Language, Sentence};

pub use crate::preview::text::lines::Position;
