//! A hint before its location is known.

use super::prose::{Facts, Prose};
use super::{Hint, Kind};
use crate::backend::Location;

/// A hint that truncation or clearing is going to write, all but its location and its sentence.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    /// The hint without location and sentence.
    pub(crate) hint: Hint,
    /// The tool whose result or arguments it was.
    pub(crate) tool: String,
    /// The media type of what was cleared, if it was not text.
    pub(crate) mime: Option<String>,
    /// Whether it is a call's arguments that were cleared.
    pub(crate) is_arguments: bool,
    /// How many texts were joined, once that is known.
    pub(crate) parts: usize,
    /// The sentence, if it is not to be said anew.
    pub(crate) words: Option<String>,
}

impl Draft {
    /// A draft for a text of `tool`, of `bytes` bytes, that shows `preview`.
    pub(crate) fn new(kind: Kind, bytes: u64, tool: &str, preview: String) -> Self {
        Self {
            hint: Hint {
                preview,
                ..Hint::new(kind, bytes)
            },
            tool: tool.to_owned(),
            mime: None,
            is_arguments: false,
            parts: 0,
            words: None,
        }
    }

    /// The hint at `location`; `None` says that nothing is stored.
    pub(crate) fn at(
        self,
        location: Option<Location>,
        prose: &Prose,
        reader: Option<&str>,
    ) -> Hint {
        let mut hint = Hint {
            location,
            ..self.hint
        };
        hint.prose = self.words.unwrap_or_else(|| {
            let facts = Facts {
                tool: &self.tool,
                reader,
                mime: self.mime.as_deref(),
                is_arguments: self.is_arguments,
                parts: self.parts,
            };
            prose.of_hint(&hint, facts)
        });
        hint
    }
}
