//! The shown form of a result.

use futures_util::StreamExt;
use futures_util::stream;

use crate::content::{Body, Chunk, Part, ToolError, ToolOutput, texts_of};
use crate::report::{Decision, Phase, Report};

/// The result as the model should see it, and a report.
#[derive(Debug)]
#[non_exhaustive]
pub struct Truncated {
    /// Parts to show.
    pub parts: Vec<Part>,
    /// True if the tool reported a failure.
    pub is_error: bool,
    /// Error that ended the tool's stream early.
    pub interrupted: Option<ToolError>,
    /// The report on this result.
    pub report: Report,
}

impl Truncated {
    /// The parts to show; without a decision, those of a tool whose results are never truncated.
    pub(super) fn new(
        parts: Vec<Part>,
        is_error: bool,
        interrupted: Option<ToolError>,
        decision: Option<Decision>,
    ) -> Self {
        let report = Report {
            phase: Phase::Truncate,
            decisions: decision.into_iter().collect(),
            ..Report::default()
        };
        Self {
            parts,
            is_error,
            interrupted,
            report,
        }
    }

    /// The texts shown, concatenated.
    #[must_use]
    pub fn text(&self) -> String {
        texts_of(&self.parts)
    }

    /// The parts to show, as [`Vec::from`] gives them, but without those that a message does not
    /// [take](crate::format::LoopFormat::takes) beside the others.
    #[must_use]
    pub fn for_message(self, takes: impl Fn(&Part) -> bool) -> Vec<Part> {
        let mut parts = Vec::from(self);
        let is_dropped = |part: &Part| matches!(part, Part::Text(_)) && !takes(part);
        match parts.iter().all(is_dropped) {
            true => parts.truncate(1),
            false => parts.retain(|part| !is_dropped(part)),
        }
        parts
    }
}

/// The parts to show. An error that ended the stream early becomes the last part, as text.
impl From<Truncated> for Vec<Part> {
    fn from(truncated: Truncated) -> Self {
        let error = truncated
            .interrupted
            .map(|error| Part::Text(error.to_string()));
        truncated.parts.into_iter().chain(error).collect()
    }
}

/// The parts to show. An error that ended the tool's stream early ends this one too.
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
                let parts = stream::iter(parts).map(|part| Ok(Chunk::Part(part)));
                Body::Stream(parts.chain(stream::iter([Err(error)])).boxed())
            }
        };
        Self { body, is_error }
    }
}
