//! A call whose result is truncated, and the rules that apply to it.

use std::sync::Arc;

use offcut_preview::{Sketch, longest_marks};

use crate::backend::{Backend, BackendError};
use crate::config::{OnStoreFailure, Policy, SizeLimit};
use crate::content::{Part, ToolCall};
use crate::error::OffloadError;
use crate::report::{self, Change, Decision, ErrorSource, Failure, Outcome, Report, Subject};
use crate::session::Session;

/// Maximum number of bytes of a token in any encoding. It proves that a text is over a limit in
/// tokens without holding and counting all of it.
const MAX_TOKEN: u64 = 256;

/// A call whose result is truncated.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) session: Session,
    pub(super) call: ToolCall,
    pub(super) policy: Policy,
    pub(super) backend: Arc<dyn Backend>,
}

/// An amount of text. Tokens are counted only if the limit is in tokens.
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

    pub(super) fn is_over_limit(&self, size: Size) -> bool {
        match self.policy.max_length_for_trunc {
            SizeLimit::Bytes(bytes) => size.bytes > bytes as u64,
            SizeLimit::Tokens { tokens } => {
                size.tokens > tokens || size.bytes > tokens.saturating_mul(MAX_TOKEN)
            }
        }
    }

    /// The size of a text that is present as a whole, and is counted as one.
    pub(super) fn size_of(&self, text: &str) -> Size {
        self.sized(text.len() as u64, || self.session.meter().count_str(text))
    }

    /// The size of a part that passes: the bytes of its text, the tokens of all of it.
    pub(super) fn size_of_part(&self, part: &Part) -> Size {
        self.sized(text_bytes(part), || self.session.meter().part(part.into()))
    }

    pub(super) fn sized(&self, bytes: u64, tokens: impl FnOnce() -> u64) -> Size {
        let tokens = match self.policy.max_length_for_trunc {
            SizeLimit::Bytes(_) => 0,
            SizeLimit::Tokens { .. } => tokens(),
        };
        Size { bytes, tokens }
    }

    /// The changes in bytes and, if the limit is in tokens, in tokens.
    pub(super) fn changes(&self, before: Size, after: Size) -> (Change, Option<Change>) {
        let change = |of: fn(Size) -> u64| Change {
            before: of(before),
            after: of(after),
        };
        let tokens = match self.policy.max_length_for_trunc {
            SizeLimit::Bytes(_) => None,
            SizeLimit::Tokens { .. } => Some(change(|size| size.tokens)),
        };
        (change(|size| size.bytes), tokens)
    }

    /// A text of more bytes than this outweighs any hint for it, in tokens too: head and tail are
    /// taken from the text, and 32 KiB left out cost more than the rest of a hint.
    pub(super) fn sure_gain(&self) -> usize {
        self.policy
            .max_length_for_trunc
            .safe_bytes()
            .saturating_add(32 * 1024)
    }

    /// An empty sketch of a text.
    pub(super) fn sketch(&self) -> Sketch {
        let length = self.policy.preview_length.at_most();
        offcut_preview::sketch(self.policy.preview, length)
    }

    /// Number of bytes of the head that every preview of the first text begins with; `None` if it
    /// is not known before the end, or if a preview may be too small for it.
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

    /// Applies `on_offload_error` to a failed store: returns an error, or the failure to report and
    /// `true` if the original is kept.
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
