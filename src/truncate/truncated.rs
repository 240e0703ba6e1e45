//! The outcome of a truncation.

use crate::content::{Body, Chunk, Part, ToolError, ToolOutput};
use crate::report::{self, Report};

/// What the model is to be shown of a result, and what was done to it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Truncated {
    /// What is shown.
    pub parts: Vec<Part>,
    /// Whether the tool said that it failed.
    pub is_error: bool,
    /// The error that ended the tool's stream early.
    pub interrupted: Option<ToolError>,
    /// What was done.
    pub report: Report,
}

impl Truncated {
    /// The texts that are shown, one after the other.
    #[must_use]
    pub fn text(&self) -> String {
        let mut all = String::new();
        for part in &self.parts {
            if let Part::Text(text) = part {
                all.push_str(text);
            }
        }
        all
    }
}

/// What is shown. The error that ended a stream early is the last part, as text.
impl From<Truncated> for Vec<Part> {
    fn from(truncated: Truncated) -> Self {
        let error = truncated
            .interrupted
            .map(|error| Part::Text(error.to_string()));
        truncated.parts.into_iter().chain(error).collect()
    }
}

/// What is shown. The error that ended a stream early ends this one too.
impl From<Truncated> for ToolOutput {
    fn from(truncated: Truncated) -> Self {
        let Truncated {
            parts,
            is_error,
            interrupted,
            report: _,
        } = truncated;
        let body = match interrupted {
            None => Body::Parts(parts),
            Some(error) => {
                let chunks: Vec<_> = parts
                    .into_iter()
                    .map(|part| Ok(Chunk::Part(part)))
                    .chain([Err(error)])
                    .collect();
                ToolOutput::stream(futures_util::stream::iter(chunks)).body
            }
        };
        Self { body, is_error }
    }
}

/// The report on a tool whose results are never truncated.
pub(super) fn nothing_done() -> Report {
    Report {
        phase: report::Phase::Truncate,
        ..Report::default()
    }
}
