//! Content of the stores, as they list it.

use std::collections::BTreeMap;
use std::time::SystemTime;

use crate::backend::{Entry, Key};

/// Stored content of one store, by the original key.
#[derive(Debug, Default)]
pub(super) struct Holdings(pub(super) BTreeMap<Key, Holding>);

/// Content of one key, in the two places where it may be.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Holding {
    pub(super) there: Option<Seen>,
    pub(super) swept: Option<Seen>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) bytes: u64,
    pub(super) stored_at: SystemTime,
}

impl Holding {
    /// Length in bytes of the content, wherever it is.
    pub(super) fn bytes(&self) -> u64 {
        self.there.or(self.swept).map_or(0, |seen| seen.bytes)
    }
}

impl Holdings {
    /// Adds `entry` if it is stored content.
    pub(super) fn take(&mut self, entry: &Entry) {
        let seen = Some(Seen {
            bytes: entry.bytes,
            stored_at: entry.stored_at,
        });
        if let Some(key) = entry.key.unswept() {
            self.0.entry(key).or_default().swept = seen;
        } else if entry.key.swept().is_some() {
            self.0.entry(entry.key.clone()).or_default().there = seen;
        }
    }
}
