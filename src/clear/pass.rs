//! What the steps of one pass share: the session, its ledger, and what its stores answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::ledger::Ledger;
use super::outages::{NoAnswer, Outages};
use crate::backend::{Backend, BackendError, Location};
use crate::config::OnStoreFailure;
use crate::error::OffloadError;
use crate::report::{Decision, ErrorSource, Outcome, Reason};
use crate::session::Session;
use crate::store::Target;

/// One pass. Clones are the same.
#[derive(Clone)]
pub(super) struct Pass {
    pub(super) session: Session,
    ledger: Arc<Mutex<Ledger>>,
    outages: Arc<Outages>,
}

/// Why an edit is not made.
pub(super) enum NotDone {
    /// The slot stays as it is.
    Kept(Reason),
    /// The store failed, and the pass is to fail with it.
    Failed(OffloadError),
}

impl Pass {
    pub(super) fn new(session: &Session, ledger: &Arc<Mutex<Ledger>>) -> Self {
        Self {
            session: session.clone(),
            ledger: Arc::clone(ledger),
            outages: Arc::default(),
        }
    }

    /// The ledger. Nothing that panics happens under the lock, so what is in it is whole.
    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store's answer, unless it was unavailable too often in this pass to be asked.
    pub(super) async fn ask<T>(
        &self,
        store: &Arc<dyn Backend>,
        answer: impl Future<Output = Result<T, BackendError>>,
    ) -> Result<T, NoAnswer> {
        self.outages.ask(store, answer).await
    }

    /// Stores `content` and gives its location; `None` where the store failed and the content is
    /// given up, as asked. This is the one place of a pass that follows `on_offload_error`. What was
    /// not tried is never given up.
    pub(super) async fn store(
        &self,
        store: &Arc<dyn Backend>,
        target: &Target,
        content: Bytes,
        decision: &mut Decision,
    ) -> Result<Option<Location>, NotDone> {
        let failure = match self.ask(store, target.save(store, content)).await {
            Ok(location) => return Ok(Some(location)),
            Err(failure) => failure,
        };
        decision.fail(ErrorSource::Store.said(&failure));
        match (failure, self.session.settings().on_offload_error) {
            (NoAnswer::Failed(source), OnStoreFailure::Fail) => {
                let (tool, call_id) = (decision.tool.clone(), decision.call_id.clone());
                Err(NotDone::Failed(OffloadError::new(tool, call_id, source)))
            }
            (NoAnswer::Failed(_), OnStoreFailure::PreviewOnly) => {
                decision.outcome = Outcome::Lost;
                Ok(None)
            }
            (_, OnStoreFailure::KeepOriginal) | (NoAnswer::NotAsked, _) => {
                Err(NotDone::Kept(Reason::StoreFailed))
            }
        }
    }
}
