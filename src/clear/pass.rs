//! State shared by the steps of one pass: the session, its memory, and the outages of its stores.

use std::sync::Arc;

use bytes::Bytes;

use super::outages::{NoAnswer, Outages};
use crate::backend::content::Target;
use crate::backend::{Backend, Location};
use crate::error::OffloadError;
use crate::middleware::Turn;
use crate::report::{Decision, ErrorSource, Outcome, Reason};
use crate::session::Session;
use crate::slots::{Item, Memory};

/// One pass.
pub(super) struct Pass<'a> {
    pub(super) session: &'a Session,
    pub(super) memory: &'a Memory,
    pub(super) outages: Outages,
    /// True if all that is old must go, since the provider has refused the conversation as too long.
    is_emergency: bool,
    /// True if the provider's cache holds nothing of the conversation.
    is_cold: bool,
}

/// Reason for not making an edit.
pub(super) enum NotDone {
    /// The slot stays as it is.
    Kept(Reason),
    /// The store failed, and so must the pass.
    Failed(OffloadError),
}

impl<'a> Pass<'a> {
    pub(super) fn new(session: &'a Session, memory: &'a Memory, turn: &Turn<'_>) -> Self {
        Self {
            session,
            memory,
            outages: Outages::default(),
            is_emergency: turn.is_too_long,
            is_cold: turn.is_cold,
        }
    }

    /// The number of tokens above which it clears.
    pub(super) fn threshold(&self) -> u64 {
        let threshold = self.session.settings.max_tokens_for_clear;
        match (self.is_emergency, self.is_cold) {
            (true, _) => 0,
            (false, true) => threshold / 2,
            (false, false) => threshold,
        }
    }

    /// The number of newest rounds that stay.
    pub(super) fn recent_rounds(&self) -> usize {
        let limit = self.session.settings.clear_retention_suffix_limit;
        match self.is_emergency {
            true => limit.min(1),
            false => limit,
        }
    }

    /// Returns true if a user's text goes, in a conversation of `counted` tokens. In an emergency, so does one
    /// over the limit of results that is more than a tenth of the conversation: shorter ones would free little.
    pub(super) fn takes_text(&self, item: &Item<'_>, counted: u64) -> bool {
        let settings = &self.session.settings;
        let (above, is_enough) = match settings.clear_user_texts_above {
            Some(above) => (above, true),
            None => {
                let tokens = u128::from(item.tokens.unwrap_or_default());
                let is_enough = self.is_emergency && tokens * 10 > u128::from(counted);
                (settings.max_length_for_trunc, is_enough)
            }
        };
        is_enough && item.bytes > above as u64
    }

    /// The fewest tokens that it must free, or else it changes nothing.
    pub(super) fn at_least(&self) -> u64 {
        match self.is_emergency {
            true => 0,
            false => self.session.settings.clear_at_least_tokens,
        }
    }

    /// Stores `content` and returns its location; `None` if the store failed and the settings allow
    /// the loss. Content that the store was not asked to save is never given up.
    pub(super) async fn store(
        &self,
        store: &Arc<dyn Backend>,
        target: &Target,
        content: Bytes,
        decision: &mut Decision,
    ) -> Result<Option<Location>, NotDone> {
        let rule = self.session.settings.on_offload_error;
        let keeps = match self.outages.ask(store, target.save(store, content)).await {
            Ok(location) => return Ok(Some(location)),
            Err(NoAnswer::Failed(error)) => rule.apply(decision, error).map_err(NotDone::Failed)?,
            Err(not_asked) => {
                decision.fail(ErrorSource::Store.said(&not_asked));
                true
            }
        };
        if keeps {
            return Err(NotDone::Kept(Reason::StoreFailed));
        }
        decision.outcome = Outcome::Lost;
        Ok(None)
    }
}
