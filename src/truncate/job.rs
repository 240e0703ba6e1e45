//! A call whose result is truncated, and the rules that apply to it.

use std::sync::Arc;

use crate::preview::Sketch;

use crate::backend::{Backend, BackendError};
use crate::config::Policy;
use crate::content::{Part, ToolCall};
use crate::error::OffloadError;
use crate::report::{self, Decision, DecisionFailure, ErrorSource, Outcome, Report, Subject};
use crate::session::Session;

/// A call whose result is truncated.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) session: Session,
    pub(super) call: ToolCall,
    pub(super) policy: Policy,
    pub(super) backend: Arc<dyn Backend>,
}

impl Job {
    /// Returns `None` if the tool's results are never truncated, or a program gets this one.
    pub(super) fn new(session: &Session, call: &ToolCall) -> Option<Arc<Self>> {
        if call.is_for_program {
            return None;
        }
        let policy = session.policy(&call.name);
        let backend = policy.backend().filter(|_| policy.truncates())?;
        let mut job = Self {
            session: session.clone(),
            call: call.clone(),
            policy: policy.clone(),
            backend: Arc::clone(backend),
        };
        let length = &mut job.policy.preview_length;
        *length = length.capped(session.longest_preview);
        Some(Arc::new(job))
    }

    /// Returns true if a result with `bytes` bytes of text is over its limit.
    pub(super) fn is_over_limit(&self, bytes: u64) -> bool {
        bytes > self.policy.max_length_for_trunc as u64
    }

    /// An empty sketch of a text.
    pub(super) fn sketch(&self) -> Sketch {
        let length = self.policy.preview_length.at_most();
        Sketch::new(self.policy.preview, length)
    }

    /// Applies `on_offload_error` to a failed store: returns an error, or the failure to report and
    /// `true` if the original is kept.
    pub(super) fn store_failed(
        &self,
        error: BackendError,
    ) -> Result<(DecisionFailure, bool), OffloadError> {
        let said = ErrorSource::Store.said(&error);
        let rule = self.session.settings.on_offload_error;
        Ok((said, rule.keeps(&self.call.name, &self.call.id, error)?))
    }

    /// A decision about the result, without sizes.
    pub(super) fn decision(&self, outcome: Outcome) -> Decision {
        let mut decision = Decision::new(Subject::Result, &self.call.name, &self.call.id, 0);
        decision.outcome = outcome;
        decision
    }
}

/// The report on a truncation; without a decision if the tool's results are never truncated.
pub(super) fn report(decision: Option<Decision>) -> Report {
    Report {
        phase: report::Phase::Truncate,
        decisions: decision.into_iter().collect(),
        ..Report::default()
    }
}

/// Number of content bytes that a limit on text applies to.
pub(super) fn text_bytes(part: &Part) -> u64 {
    match part {
        Part::Text(text) => text.len() as u64,
        Part::Json(value) => value.to_string().len() as u64,
        Part::Media { .. } | Part::Link { .. } | Part::Opaque(_) => 0,
    }
}
