//! The sum of a server's journal.

use std::collections::{BTreeMap, HashSet};

use crate::agents::journal::Served;

/// The sum of some requests. All lengths are in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServedGain {
    /// Number of requests.
    pub requests: u64,
    /// Number of requests that went on shorter than they came.
    pub reduced: u64,
    /// Number of results that were replaced for the first time.
    pub replaced: u64,
    /// Length of the requests as they came.
    pub before: u64,
    /// The bytes of them that a provider's cache would not have held.
    pub before_fresh: u64,
    /// Length of the requests as they were sent.
    pub after: u64,
    /// The bytes of them that a provider's cache did not hold.
    pub after_fresh: u64,
}

impl ServedGain {
    /// The bytes that were not sent. Negative if more was sent.
    #[must_use]
    pub fn saved(&self) -> i64 {
        let (before, after) = (self.before.cast_signed(), self.after.cast_signed());
        before.saturating_sub(after)
    }

    fn add(&mut self, row: &Served) {
        self.requests += 1;
        self.reduced += u64::from(row.after < row.before);
        // A file may hold any number.
        for (sum, more) in [
            (&mut self.replaced, row.replaced),
            (&mut self.before, row.before),
            (&mut self.before_fresh, row.before_fresh),
            (&mut self.after, row.after),
            (&mut self.after_fresh, row.after_fresh),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}

/// The sums of a server's journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServedGains {
    /// The sum of all requests.
    pub total: ServedGain,
    /// The sums by upstream, model and client.
    pub senders: BTreeMap<[String; 3], ServedGain>,
    /// Numbers of requests that passed open, by reason.
    pub passed: BTreeMap<String, u64>,
    /// Number of conversations.
    pub conversations: u64,
    /// The time of the first request in seconds since 1970; `None` if there is none.
    pub since: Option<u64>,
}

impl ServedGains {
    /// Adds requests up.
    #[must_use]
    pub fn of(rows: &[Served]) -> Self {
        let mut gains = Self::default();
        let mut conversations = HashSet::new();
        for row in rows {
            gains.total.add(row);
            let sender = [&row.upstream, &row.model, &row.client].map(String::clone);
            gains.senders.entry(sender).or_default().add(row);
            if !row.conversation.is_empty() {
                conversations.insert((&row.upstream, &row.conversation));
            }
            if row.has_passed_open() {
                *gains.passed.entry(row.outcome.clone()).or_default() += 1;
            }
            let since = gains.since.unwrap_or(u64::MAX);
            gains.since = Some(since.min(row.time));
        }
        gains.conversations = conversations.len() as u64;
        gains
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_added_up_by_sender() {
        let row = |upstream, conversation, [before, after]: [u64; 2]| Served {
            before,
            before_fresh: before / 2,
            after,
            after_fresh: after,
            replaced: u64::from(after < before),
            ..Served::new(upstream, conversation, Served::REDUCED)
        };
        let gains = ServedGains::of(&[
            row("openai", "a", [100, 40]),
            row("openai", "a", [200, 50]),
            row("lab", "a", [10, 10]),
            row("lab", "", [6, 6]),
            Served::new("lab", "", "store"),
        ]);
        let total = gains.total;
        assert_eq!((total.requests, total.reduced, total.replaced), (5, 2, 2));
        assert_eq!((total.before, total.after), (316, 106));
        assert_eq!((total.before_fresh, total.after_fresh), (158, 106));
        assert_eq!((total.saved(), gains.conversations), (210, 2));
        assert_eq!(gains.passed, BTreeMap::from([("store".to_owned(), 1)]));
        assert_eq!(
            gains.senders[&["openai", "", ""].map(str::to_owned)].saved(),
            210
        );
        assert_eq!(ServedGains::of(&[]).since, None);
    }
}
