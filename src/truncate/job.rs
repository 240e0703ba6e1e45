//! A call whose result is truncated, and the rules that apply to it.

use std::borrow::Cow;

use crate::backend::Backend;
use crate::backend::content::{Id, MAX_WHOLE, Stored, Target, suffix};
use crate::backend::layout::Phase;
use crate::config::Policy;
use crate::content::{Part, ToolCall};
use crate::read_back::{named_in, page_of_other};
use crate::report::{Change, Decision, Outcome, Reason, Subject};
use crate::session::Session;

/// A call whose result is truncated.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub(super) session: &'a Session,
    pub(super) call: &'a ToolCall,
    pub(super) policy: &'a Policy,
    pub(super) backend: &'a dyn Backend,
    /// The largest number of bytes of text that the result may have and stay whole.
    pub(super) limit: u64,
}

impl<'a> Job<'a> {
    /// Returns `None` if there is no store, or a program gets the result.
    pub(super) fn new(session: &'a Session, call: &'a ToolCall) -> Option<Self> {
        let policy = session.policy(&call.name);
        let backend = policy.backend().filter(|_| !call.is_for_program)?;
        Some(Self {
            session,
            call,
            policy,
            backend: &**backend,
            limit: match policy.skip_truncation {
                true => u64::MAX,
                false => policy.max_length_for_trunc as u64,
            },
        })
    }

    /// The text of a part, if it counts towards the limit. JSON is measured by itself: over the limit it is treated as
    /// text, and within it it passes through.
    pub(super) fn counted_text<'p>(&self, part: &'p Part) -> Option<Cow<'p, str>> {
        match part {
            Part::Text(text) => Some(text.into()),
            Part::Json(value) => {
                let text = value.to_string();
                (text.len() as u64 > self.limit).then(|| text.into())
            }
            Part::Media { .. } | Part::Link { .. } | Part::Opaque(_) => None,
        }
    }

    /// The id under which the result is stored, and a decision about it, without sizes.
    pub(super) fn begin(&self) -> (Id, Decision) {
        let mut decision = self.decision(Outcome::Kept(Reason::WithinLimit));
        (self.id(None, &mut decision), decision)
    }

    /// The id under which the result is stored. The `decision` says what was wrong with that of a user's code, such as a
    /// handler's `own`.
    pub(super) fn id(&self, own: Option<&str>, decision: &mut Decision) -> Id {
        let call = || self.call.clone();
        self.session.id(Phase::Truncate, own, call, decision)
    }

    /// A decision about the result, without sizes.
    pub(super) fn decision(&self, outcome: Outcome) -> Decision {
        let ToolCall { id, name, .. } = self.call;
        Decision::new(Subject::Result, name, id, 0, outcome)
    }

    /// The names of the result's `number`-th stored text, counted from 1.
    pub(super) fn target(&self, id: &Id, number: usize, digest: &str) -> Target {
        let roots = &self.session.roots;
        Target::new(roots, Phase::Truncate, id, &suffix(number), None, digest)
    }

    /// The stored content that the call names, if a text of `bytes` bytes over the limit may be compared with it.
    pub(super) async fn named(&self, bytes: u64) -> Option<Stored> {
        match bytes <= MAX_WHOLE {
            true => named_in(self.session, self.call).await,
            false => None,
        }
    }

    /// A page of the `stored` content, if another reader returned this result, of `length` bytes of text, from there.
    pub(super) async fn page(
        &self,
        stored: Stored,
        result: &[u8],
        length: u64,
        decision: &mut Decision,
    ) -> Option<Vec<Part>> {
        let gain = usize::try_from(Change::most_after(length)).unwrap_or(usize::MAX);
        let limit = self.policy.max_length_for_trunc.min(gain);
        let page = page_of_other(self.session, &self.call.name, &stored, result, limit).await?;
        decision.outcome = Outcome::Paged;
        decision.locations = vec![stored.location];
        decision.bytes.after = page.iter().map(text_bytes).sum();
        Some(page)
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
