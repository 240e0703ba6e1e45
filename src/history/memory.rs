//! The memory of a process of one conversation: the records that it has read, and what it has worked
//! out.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::decisions::fingerprint::{Fingerprint, PassThroughHash};
use crate::decisions::{Decided, Decisions, Record, Records, digest_of_settings};
use futures_util::future::join;

use super::slots::Digests;
use crate::backend::BackendError;
use crate::clear::Ledger;
use crate::content::Part;
use crate::session::Session;

/// The memory of one conversation.
#[derive(Debug, Default)]
pub(crate) struct ConversationMemory {
    known: Mutex<Known>,
    records: OnceLock<Option<Records>>,
}

#[derive(Debug, Default)]
pub(super) struct Known {
    /// Number of records that were read.
    pub(super) records: u64,
    pub(super) decisions: Decisions<Part>,
    pub(super) digests: Digests,
    /// Results that stay as they arrived.
    kept: HashSet<Fingerprint, PassThroughHash>,
    /// Facts that clear passes have worked out.
    facts: Ledger,
}

impl ConversationMemory {
    /// Locks what is known. Nothing panics under the lock, so if it is poisoned, it is still whole.
    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The records of the session; `None` without a store.
    pub(super) fn records(&self, session: &Session) -> Option<&Records> {
        let records = self.records.get_or_init(|| {
            let store = match session.policy("").backend() {
                Some(store) => Arc::clone(store),
                None => session.stores().into_iter().next()?,
            };
            // Settings are data, and so can be written.
            let settings = serde_json::to_value(session.settings()).unwrap_or_default();
            let settings = digest_of_settings(settings);
            Some(Records::new(store, session.roots().prefix(), &settings))
        });
        records.as_ref()
    }

    /// Reads the records that others have written. Returns the number of those that decide nothing,
    /// since they could not be understood. If the newest known record is gone, the content to which
    /// its hints lead is gone too: swept, moved or deleted. Then all is forgotten, and decided again.
    pub(super) async fn catch_up(&self, records: Option<&Records>) -> Result<usize, BackendError> {
        let Some(records) = records else {
            return Ok(0);
        };
        let mut from = self.known().records;
        let newest = async {
            match from.checked_sub(1) {
                Some(newest) => records.has(newest).await,
                None => Ok(true),
            }
        };
        let (is_there, read) = join(newest, records.read(from)).await;
        let read = if is_there? {
            read?
        } else {
            from = 0;
            *self.known() = Known::default();
            records.read(0).await?
        };
        let mut known = self.known();
        let mut unusable = 0;
        for (number, read) in (from..).zip(read) {
            // Another task may have read some of them meanwhile.
            if number != known.records {
                continue;
            }
            known.records += 1;
            match read {
                Record::Decisions(decisions) => known.decisions.add(decisions),
                Record::Unusable => unusable += 1,
            }
        }
        Ok(unusable)
    }

    /// Writes down decisions that were made with `before` records known. Returns `false` if another
    /// process has decided something since.
    pub(super) async fn decide(
        &self,
        records: Option<&Records>,
        before: u64,
        decisions: Vec<Decided<Part>>,
    ) -> Result<bool, BackendError> {
        if let Some(records) = records
            && !records.append(before, &decisions).await?
        {
            return Ok(false);
        }
        let mut known = self.known();
        if known.records == before {
            known.records += 1;
            known.decisions.add(decisions);
            return Ok(true);
        }
        // With a store, another task has read the record that was just written.
        Ok(records.is_some())
    }

    pub(super) fn is_kept(&self, print: Fingerprint) -> bool {
        self.known().kept.contains(&print)
    }

    pub(super) fn keep(&self, print: Option<Fingerprint>) {
        self.known().kept.extend(print);
    }

    /// Lends what clear passes have worked out to one of them.
    pub(super) fn lend_facts(&self) -> Ledger {
        self.known().facts.take_facts()
    }

    pub(super) fn return_facts(&self, ledger: &Mutex<Ledger>) {
        let mut lent = ledger.lock().unwrap_or_else(PoisonError::into_inner);
        self.known().facts.add_facts(&mut lent);
    }
}
