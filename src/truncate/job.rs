//! One call whose result is truncated, and what holds for it.

use std::sync::Arc;

use super::text::Text;
use crate::backend::{Backend, BackendError};
use crate::config::{OnStoreFailure, Policy, SizeLimit};
use crate::content::{Part, ToolCall};
use crate::error::OffloadError;
use crate::preview::{Sketch, longest_marks};
use crate::report::{self, Change, Decision, ErrorSource, Failure, Outcome, Report, Subject};
use crate::session::Session;

/// No encoding has longer tokens, in bytes. A limit in tokens must not need a whole text to be held
/// to be counted.
const MAX_TOKEN: u64 = 256;

/// A call whose result is truncated.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) session: Session,
    pub(super) call: ToolCall,
    pub(super) policy: Policy,
    pub(super) backend: Arc<dyn Backend>,
}

/// An amount of text. Tokens are counted only where the limit is about them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    pub(super) bytes: u64,
    pub(super) tokens: u64,
}

impl Size {
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            tokens: self.tokens.saturating_add(other.tokens),
        }
    }
}

impl Job {
    /// `None` if the tool's results are never truncated.
    pub(super) fn new(session: &Session, call: &ToolCall) -> Option<Arc<Self>> {
        let policy = session.policy(&call.name);
        let backend = policy.backend().filter(|_| policy.truncates())?;
        Some(Arc::new(Self {
            session: session.clone(),
            call: call.clone(),
            policy: policy.clone(),
            backend: Arc::clone(backend),
        }))
    }

    pub(super) fn counts_tokens(&self) -> bool {
        matches!(self.policy.max_length_for_trunc, SizeLimit::Tokens { .. })
    }

    pub(super) fn is_over_limit(&self, size: Size) -> bool {
        match self.policy.max_length_for_trunc {
            SizeLimit::Bytes(bytes) => size.bytes > bytes as u64,
            SizeLimit::Tokens { tokens } => {
                size.tokens > tokens || size.bytes > tokens.saturating_mul(MAX_TOKEN)
            }
        }
    }

    /// The size of a text as far as it has come.
    pub(super) fn size(&self, text: &Text) -> Size {
        self.sized(text.length(), || text.tokens(self.session.meter()))
    }

    /// The size of a text that is at hand as a whole, and is counted as one.
    pub(super) fn size_of(&self, text: &str) -> Size {
        self.sized(text.len() as u64, || self.session.meter().text(text))
    }

    /// The size of a part that passes: of its text in bytes, of all of it in tokens.
    pub(super) fn size_of_part(&self, part: &Part) -> Size {
        self.sized(text_bytes(part), || self.session.meter().part(part.into()))
    }

    pub(super) fn sized(&self, bytes: u64, tokens: impl FnOnce() -> u64) -> Size {
        let tokens = if self.counts_tokens() { tokens() } else { 0 };
        Size { bytes, tokens }
    }

    /// A text of more bytes than this is longer than any hint for it, in tokens too: head and tail
    /// are of the text, and what is left out of 32 KiB costs more than the rest of a hint.
    pub(super) fn sure_gain(&self) -> usize {
        self.policy
            .max_length_for_trunc
            .safe_bytes()
            .saturating_add(32 * 1024)
    }

    /// The sketch of a text without anything yet.
    pub(super) fn sketch(&self) -> Sketch {
        let length = self.policy.preview_length.at_most();
        self.policy.preview.sketch(length)
    }

    /// The head, in bytes, that each preview of the first text begins with; `None` if it is not
    /// known before the end, or if a preview may be too small for it.
    pub(super) fn settled_head(&self) -> Option<usize> {
        let Policy {
            preview,
            preview_length: length,
            hooks,
            ..
        } = &self.policy;
        let head = length.at_most() / 2;
        let is_known = hooks.preview.is_none() && preview.begins_with_head() && !length.grows();
        (is_known && length.at_most() - head > longest_marks()).then_some(head)
    }

    /// Decides by `on_offload_error` what it means that the store failed: an error, or what the
    /// report says of it and whether the original is kept.
    pub(super) fn store_failed(
        &self,
        error: BackendError,
    ) -> Result<(Failure, bool), OffloadError> {
        match self.session.settings().on_offload_error {
            OnStoreFailure::Fail => {
                let ToolCall { id, name, .. } = &self.call;
                Err(OffloadError::new(name, id, error))
            }
            OnStoreFailure::KeepOriginal => Ok((ErrorSource::Store.said(&error), true)),
            OnStoreFailure::PreviewOnly => Ok((ErrorSource::Store.said(&error), false)),
        }
    }

    /// A decision about the result, without sizes.
    pub(super) fn decision(&self, outcome: Outcome) -> Decision {
        let mut decision = Decision::new(Subject::Result, &self.call.name, &self.call.id, 0);
        decision.outcome = outcome;
        decision.tokens = self.counts_tokens().then(Change::default);
        decision
    }
}

/// The report on a truncation; without a decision on a tool whose results are never truncated.
pub(super) fn report(decision: Option<Decision>) -> Report {
    Report {
        phase: report::Phase::Truncate,
        decisions: decision.into_iter().collect(),
        ..Report::default()
    }
}

/// The bytes of content that a text limit is about.
pub(super) fn text_bytes(part: &Part) -> u64 {
    match part {
        Part::Text(text) => text.len() as u64,
        Part::Json(value) => value.to_string().len() as u64,
        Part::Media { .. } | Part::Link { .. } | Part::Opaque(_) => 0,
    }
}
