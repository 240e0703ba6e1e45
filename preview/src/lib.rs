//! Excerpts of long texts within a budget in bytes: pure functions of a text and a budget.
//!
//! A preview never exceeds its budget, and shows parts of the text's plain form with their places: without
//! escape sequences, redrawn lines in their last state, encoded data by its length.
//! [`Preview`] is the method; [`sketch`] previews a text that arrives in chunks, in memory bounded
//! by the budget. [`text`] decodes bytes that come in chunks, and counts lines.
//!
//! ```
//! use offcut_preview::{Preview, holds_only, sketch};
//!
//! let text: String = (1..=1000).map(|n| format!("line {n}\n")).collect();
//! let shown = Preview::HeadTail.show(&text, 100);
//! assert!(shown.contains("[… 8825 B, L8-998 …]"), "{shown}");
//! assert!(holds_only(&shown, &text));
//!
//! let mut arriving = sketch(Preview::HeadTail, 100);
//! for line in text.split_inclusive('\n') {
//!     arriving.push(line);
//! }
//! assert_eq!(arriving.show(100), shown);
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

mod choice;
mod cost;
mod excerpt;
mod failures;
mod found;
mod gathered;
mod head_tail;
mod kinds;
mod names;
mod outcomes;
mod plain;
mod preview;
mod sketch;
pub mod text;
mod units;
mod values;

pub use preview::{Preview, holds_only, sketch};
pub use sketch::Sketch;

/// Compiles and runs the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
