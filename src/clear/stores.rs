//! The stores that a pass asks. One that is down is not asked again: a pass runs before every model call and should not
//! wait for it again and again.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::backend::content::Target;
use crate::backend::{Backend, BackendError, ErrorKind, Location};
use crate::error::OffloadError;
use crate::report::{Decision, ErrorSource, Outcome, Reason};
use crate::session::Session;

/// The stores of a session, during one pass.
pub(super) struct Stores<'a> {
    pub(super) session: &'a Session,
    /// Those that were unavailable, by their addresses in memory.
    down: Mutex<HashSet<usize>>,
}

/// Reason for not making an edit.
pub(super) enum NotDone {
    /// The slot stays as it is.
    Kept(Reason),
    /// The store failed, and so must the pass.
    Failed(OffloadError),
}

impl<'a> Stores<'a> {
    pub(super) fn new(session: &'a Session) -> Self {
        Self {
            session,
            down: Mutex::default(),
        }
    }

    /// Awaits a store's answer. `Err(None)` if it was unavailable before and is not asked, as the decision then says.
    pub(super) async fn ask<T>(
        &self,
        store: &Arc<dyn Backend>,
        answer: impl Future<Output = Result<T, BackendError>>,
        decision: &mut Decision,
    ) -> Result<T, Option<BackendError>> {
        let address = Arc::as_ptr(store).cast::<()>().addr();
        let down = || self.down.lock().unwrap_or_else(PoisonError::into_inner);
        if down().contains(&address) {
            decision.fail(
                ErrorSource::Store.said("not tried: the store was unavailable during this pass"),
            );
            return Err(None);
        }
        let answer = answer.await;
        if matches!(&answer, Err(error) if error.kind() == ErrorKind::Unavailable) {
            down().insert(address);
        }
        answer.map_err(Some)
    }

    /// Stores `content` and returns its location; `None` if the store failed and the settings allow
    /// the loss. Content that the store was not asked to save is never given up.
    pub(super) async fn save(
        &self,
        store: &Arc<dyn Backend>,
        target: &Target,
        content: Bytes,
        decision: &mut Decision,
    ) -> Result<Option<Location>, NotDone> {
        let save = target.save(store, content);
        let rule = self.session.settings.on_offload_error;
        let is_kept = match self.ask(store, save, decision).await {
            Ok(location) => return Ok(Some(location)),
            Err(Some(error)) => rule.apply(decision, error).map_err(NotDone::Failed)?,
            Err(None) => true,
        };
        if is_kept {
            return Err(NotDone::Kept(Reason::StoreFailed));
        }
        decision.outcome = Outcome::Lost;
        Ok(None)
    }
}
