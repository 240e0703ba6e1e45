//! The conversations that a provider took only as they came: they pass untouched from then on, also after a
//! restart and through other servers over the same store.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use offcut::ErrorChain;
use offcut::backend::{Backend, BackendError};
use offcut::decisions::Records;

/// Number of conversations that are held in memory; of the others, the store is asked again.
const HELD: usize = 65_536;
/// The row's name, in the place of a digest of settings: it holds under all of them.
const ROW: &str = "0000000000000000";

/// The conversations that pass untouched: the prefixes of those with a record in a row of their own, which
/// decides nothing.
pub(crate) struct Untouched {
    store: Option<Arc<dyn Backend>>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    untouched: HashSet<String>,
    /// The conversations that the store has no record of.
    others: HashSet<String>,
}

impl Untouched {
    /// The conversations of `store`; without one, they are only held in memory.
    pub(crate) fn new(store: Option<Arc<dyn Backend>>) -> Self {
        Self {
            store,
            known: Mutex::default(),
        }
    }

    /// Returns true if the conversation with this prefix passes untouched. If the store fails, it does not.
    pub(crate) async fn has(&self, prefix: &str) -> bool {
        {
            let known = self.known();
            if known.untouched.contains(prefix) {
                return true;
            }
            if known.others.contains(prefix) {
                return false;
            }
        }
        let Some(is_untouched) = self.asked(prefix, async |row| row.has(0).await).await else {
            return false;
        };
        let mut known = self.known();
        let Known { untouched, others } = &mut *known;
        insert(if is_untouched { untouched } else { others }, prefix);
        is_untouched
    }

    /// Adds the conversation with this prefix.
    pub(crate) async fn add(&self, prefix: &str) {
        insert(&mut self.known().untouched, prefix);
        let added = self.asked(prefix, async |row| row.append(0, false, &[]).await);
        added.await;
    }

    /// Asks the row of a conversation; `None` if there is no store, or it fails.
    async fn asked<T>(
        &self,
        prefix: &str,
        ask: impl AsyncFnOnce(Records) -> Result<T, BackendError>,
    ) -> Option<T> {
        let row = Records::new(self.store.clone()?, prefix, ROW);
        let failed = |error: &BackendError| {
            let error = ErrorChain(error);
            tracing::debug!(%error, "the store was not asked which conversations pass untouched");
        };
        ask(row).await.inspect_err(failed).ok()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn insert(known: &mut HashSet<String>, prefix: &str) {
    if known.len() >= HELD {
        known.clear();
    }
    known.insert(prefix.to_owned());
}
