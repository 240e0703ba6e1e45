//! A store that is unavailable is not waited for again and again: a pass stands before every call
//! of the model.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::backend::{Backend, BackendError, ErrorKind};
use crate::config::OnOffloadError;
use crate::report::{Decision, Outcome, Reason};

/// A store that was unavailable so often in a row is not asked again in the same pass.
const IN_A_ROW: usize = 8;

/// The stores that were unavailable in one pass, by where they are in memory.
#[derive(Debug, Default)]
pub(super) struct Outages(Mutex<HashMap<usize, usize>>);

/// Why a store said nothing.
#[derive(Debug)]
pub(super) enum NoAnswer {
    Failed(BackendError),
    NotAsked,
}

/// Why an edit is not done.
pub(super) enum NotDone {
    /// The slot stays as it is.
    Kept(Reason),
    /// The store failed, and that is to fail.
    Failed(BackendError),
}

impl Outages {
    /// What the store says, if there is hope that it says anything.
    pub(super) async fn ask<T>(
        &self,
        store: &Arc<dyn Backend>,
        answer: impl Future<Output = Result<T, BackendError>>,
    ) -> Result<T, NoAnswer> {
        let store = Arc::as_ptr(store).cast::<()>().addr();
        let in_a_row = |change: fn(&mut usize)| {
            let mut stores = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let count = stores.entry(store).or_default();
            change(count);
            *count
        };
        if in_a_row(|_| ()) >= IN_A_ROW {
            return Err(NoAnswer::NotAsked);
        }
        let answer = answer.await;
        match &answer {
            Err(error) if error.kind() == ErrorKind::Unavailable => in_a_row(|count| *count += 1),
            _ => in_a_row(|count| *count = 0),
        };
        answer.map_err(NoAnswer::Failed)
    }
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::NotAsked => write!(
                f,
                "not tried: in this pass the store was unavailable {IN_A_ROW} times in a row"
            ),
        }
    }
}

impl NoAnswer {
    /// What comes of it for content that was to be stored. `Ok` if it is given up, as asked; what
    /// was not tried never is.
    pub(super) fn settle(
        self,
        then: OnOffloadError,
        decision: &mut Decision,
    ) -> Result<(), NotDone> {
        decision.error = Some(self.to_string());
        match (self, then) {
            (Self::Failed(error), OnOffloadError::Fail) => Err(NotDone::Failed(error)),
            (Self::Failed(_), OnOffloadError::PreviewOnly) => {
                decision.outcome = Outcome::Lost;
                Ok(())
            }
            (_, OnOffloadError::KeepOriginal) | (Self::NotAsked, _) => {
                Err(NotDone::Kept(Reason::StoreFailed))
            }
        }
    }
}
