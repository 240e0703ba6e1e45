//! Previews of long texts: pure functions of a text and a budget.
//!
//! The built-in methods come from the crate `offcut-preview`.

mod custom;

pub use custom::PreviewOf;
pub(crate) use custom::{Custom, Previewer};
#[doc(inline)]
pub use offcut_preview::Preview;
