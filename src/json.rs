//! JSON that keeps its spelling: a text and the places of its values, so that one value can be
//! replaced and every other byte stays.
//!
//! Parsing does no I/O and no recursion, and copies only what is asked for. Any depth, numbers of
//! any size, duplicate keys and strings that are not valid Unicode are kept as they are.
//!
//! [`View`] reads values and texts alike; an [`Edit`] changes either.
//!
//! ```
//! use offcut::json::{Edit, JsonText, New, Node, View, put_into_text};
//!
//! let mut message = JsonText::parse(r#"{ "n": 1.00, "content": "long" }"#)?;
//! assert_eq!(Node::root(&message).text("content"), "long");
//! put_into_text(&mut message, |_| {
//!     Some(vec![Edit::set(String::new(), "content", New::Value("short".into()))])
//! });
//! assert_eq!(message.as_str(), r#"{ "n": 1.00, "content": "short" }"#);
//! # Ok::<(), offcut::json::InvalidJson>(())
//! ```

mod edit;
mod json_ref;
mod leaving;
mod scan;
mod text;
mod view;

pub use edit::{Edit, New, put_into_text, put_into_value};
pub use json_ref::JsonRef;
pub(crate) use leaving::{Frame, Leaving, leaving};
pub use scan::InvalidJson;
pub use text::{JsonText, Node};
pub use view::{Kind, View};
