//! Excerpts of long texts within a budget in bytes: pure functions of a text and a budget.
//!
//! A preview never exceeds its budget, and shows parts of the text's plain form with their places: without
//! escape sequences, redrawn lines in their last state, encoded data by its length.
//! [`Preview`] is the method.
//!
//! ```
//! use offcut::preview::{Preview, holds_only};
//!
//! let text: String = (1..=1000).map(|n| format!("line {n}\n")).collect();
//! let shown = Preview::HeadTail.show(&text, 100);
//! assert!(shown.starts_with("1|line 1\nline 2\n") && shown.ends_with(" B …]"), "{shown}");
//! assert!(holds_only(&shown, &text));
//! ```

mod choice;
mod cost;
mod custom;
mod excerpt;
mod failures;
mod found;
mod heads;
mod log;
mod matches;
mod method;
mod middle;
mod names;
mod outcomes;
mod outline;
pub(crate) mod pattern;
mod plain;
mod records;
mod rows;
mod shapes;
mod signs;
pub(crate) mod table;
pub mod text;
mod units;
mod values;

pub use choice::Preview;
pub use custom::PreviewOf;
pub(crate) use custom::{CustomPreview, Previewer};
pub(crate) use method::Sketch;
pub use method::holds_only;
