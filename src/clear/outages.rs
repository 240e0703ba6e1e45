//! Stops asking a store that is down: a pass runs before every model call and should not wait for
//! it again and again.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::backend::{Backend, BackendError, ErrorKind};

/// A store that was unavailable this many times in a row is not asked again in the same pass.
const IN_A_ROW: usize = 8;

/// For each store, by its address in memory: how often in a row it was unavailable in one pass.
#[derive(Debug, Default)]
pub(super) struct Outages(Mutex<HashMap<usize, usize>>);

/// Reason why a store gave no answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    Failed(BackendError),
    NotAsked,
}

impl Outages {
    /// Awaits the store's answer, unless the store was unavailable too often.
    pub(super) async fn ask<T>(
        &self,
        store: &Arc<dyn Backend>,
        answer: impl Future<Output = Result<T, BackendError>>,
    ) -> Result<T, NoAnswer> {
        let store = Arc::as_ptr(store).cast::<()>().addr();
        let stores = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *stores().entry(store).or_default() >= IN_A_ROW {
            return Err(NoAnswer::NotAsked);
        }
        let answer = answer.await;
        let is_down = matches!(&answer, Err(error) if error.kind() == ErrorKind::Unavailable);
        let mut stores = stores();
        let in_a_row = stores.entry(store).or_default();
        *in_a_row = if is_down { *in_a_row + 1 } else { 0 };
        answer.map_err(NoAnswer::Failed)
    }
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::NotAsked => write!(
                f,
                "not tried: the store was unavailable {IN_A_ROW} times in a row during this pass"
            ),
        }
    }
}
