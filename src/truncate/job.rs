//! A call whose result is truncated, and the rules that apply to it.

use crate::backend::Backend;
use crate::backend::content::{Id, Target};
use crate::backend::layout::Phase;
use crate::config::{Policy, PreviewLength};
use crate::content::ToolCall;
use crate::preview::Sketch;
use crate::report::{Decision, Outcome, Subject};
use crate::session::Session;

/// A stream that could not be stored is shown whole up to this many bytes; more does not fit in
/// memory or in a context.
pub(super) const MAX_TAKEN_BACK: u64 = 16 << 20;

/// A call whose result is truncated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job<'a> {
    pub(super) session: &'a Session,
    pub(super) call: &'a ToolCall,
    pub(super) policy: &'a Policy,
    pub(super) backend: &'a dyn Backend,
    pub(super) preview_length: PreviewLength,
}

impl<'a> Job<'a> {
    /// Returns `None` if the tool's results are never truncated, or a program gets this one.
    pub(super) fn new(session: &'a Session, call: &'a ToolCall) -> Option<Self> {
        let policy = session.policy(&call.name);
        Self::of(session, call, policy).filter(|_| policy.truncates())
    }

    /// Does the same by a policy that truncates.
    pub(super) fn of(session: &'a Session, call: &'a ToolCall, policy: &'a Policy) -> Option<Self> {
        if call.is_for_program {
            return None;
        }
        Some(Self {
            session,
            call,
            policy,
            backend: &**policy.backend()?,
            preview_length: policy.preview_length.capped(session.longest_preview),
        })
    }

    /// Returns true if a result with `bytes` bytes of text is over its limit.
    pub(super) fn is_over_limit(&self, bytes: u64) -> bool {
        bytes > self.policy.max_length_for_trunc as u64
    }

    /// An empty sketch of a text.
    pub(super) fn sketch(&self) -> Sketch {
        Sketch::new(self.policy.preview, self.preview_length.at_most())
    }

    /// The names of the result's `number`-th stored text, counted from 1.
    pub(super) fn target(&self, id: &Id, number: usize, digest: &str) -> Target {
        let name = id.name_of(digest).part(number);
        Target::new(&self.session.roots, Phase::Truncate, &name, digest)
    }

    /// A decision about the result, without sizes.
    pub(super) fn decision(&self, outcome: Outcome) -> Decision {
        let mut decision = Decision::new(Subject::Result, &self.call.name, &self.call.id, 0);
        decision.outcome = outcome;
        decision
    }
}
