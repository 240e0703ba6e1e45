//! Hints without a location yet.

use crate::hint::{Hint, Kind};
use crate::report::Subject;

/// A hint of truncation or clearing, before its location and its sentence are known.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    /// The hint without location and sentence.
    pub hint: Hint,
    /// The tool that returned the result or was given the arguments.
    pub tool: String,
    /// Media type of the cleared content, if it was not text.
    pub mime: Option<String>,
    /// The kind of content that was cleared.
    pub subject: Subject,
    /// Number of texts joined, once known.
    pub parts: usize,
    /// The sentence, if an existing one must be kept.
    pub words: Option<String>,
}

impl Draft {
    /// A draft for a text of `bytes` bytes from `tool`, with the given preview.
    pub(crate) fn new(kind: Kind, bytes: u64, tool: &str, preview: String) -> Self {
        Self {
            hint: Hint {
                preview,
                ..Hint::new(kind, bytes)
            },
            tool: tool.to_owned(),
            mime: None,
            subject: Subject::Result,
            parts: 0,
            words: None,
        }
    }
}
