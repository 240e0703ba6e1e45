//! The conversations of all stores, and the decision which of them go, without I/O.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use crate::backend::{Entry, Key};

use super::policy::SweepPolicy;
use super::report::Tally;

/// Everything that is stored, by conversation.
#[derive(Debug, Default)]
pub(super) struct Conversations(pub(super) BTreeMap<String, Conversation>);

/// Everything that all stores hold of one conversation.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    pub(super) parts: Vec<StoredPart>,
}

/// A result, a record of decisions, or a day of reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredPart {
    /// Number of its store.
    pub(super) store: usize,
    pub(super) entry: Entry,
}

impl Conversations {
    /// Adds `entry` if it belongs to a conversation.
    pub(super) fn take(&mut self, store: usize, entry: Entry) {
        if let Some(prefix) = entry.key.conversation() {
            let conversation = self.0.entry(prefix.to_owned()).or_default();
            conversation.parts.push(StoredPart { store, entry });
        }
    }
}

impl Conversation {
    /// Time at which something was last stored, or old content was last read.
    fn newest(&self) -> Option<SystemTime> {
        self.parts.iter().map(|part| part.entry.stored_at).max()
    }

    pub(super) fn tally(&self) -> Tally {
        let mut tally = Tally {
            conversations: 1,
            ..Tally::default()
        };
        let bytes = self.parts.iter().map(|part| part.entry.bytes);
        bytes.for_each(|bytes| tally.add(bytes));
        tally
    }

    /// Its parts, the newest first. Of records, whatever is left after an interruption is then still
    /// a row from its beginning: longer numbers are later ones.
    pub(super) fn newest_first(&self) -> Vec<&StoredPart> {
        let mut parts: Vec<_> = self.parts.iter().collect();
        let age = |part: &StoredPart| {
            let key = &part.entry.key;
            (part.entry.stored_at, key.as_str().len(), key.clone())
        };
        parts.sort_by_cached_key(|part| std::cmp::Reverse(age(part)));
        parts
    }
}

/// Chooses what goes of conversations that nothing names: those that have been idle for as long as
/// `policy` says, then those that have been idle longest until the quota is met. `now` is the moment at
/// which gathering the live names began.
pub(super) fn choose<'c>(
    mut unnamed: Vec<(&'c str, &'c Conversation)>,
    policy: &SweepPolicy,
    now: SystemTime,
) -> Vec<&'c str> {
    let SweepPolicy {
        idle,
        quota_bytes,
        dry_run: _,
    } = policy;
    let is_idle = |conversation: &Conversation, time: Duration| {
        let idle = conversation
            .newest()
            .map(|newest| now.duration_since(newest));
        idle.is_some_and(|idle| idle.is_ok_and(|idle| idle > time))
    };
    let bytes = unnamed.iter().map(|(_, one)| one.tally().bytes);
    let mut left = bytes.fold(0, u64::saturating_add);
    unnamed.sort_by_cached_key(|(_, conversation)| conversation.newest());
    let mut gone = Vec::new();
    for (prefix, conversation) in unnamed {
        let is_over = quota_bytes.is_some_and(|quota| left > quota);
        if is_idle(conversation, *idle) || is_over && is_idle(conversation, SweepPolicy::LEAST_IDLE)
        {
            left = left.saturating_sub(conversation.tally().bytes);
            gone.push(prefix);
        }
    }
    gone
}

/// Returns true if the content of `key` may hold hints: it was cleared, whatever its name says, or it
/// is a record of decisions. A tool's result was truncated before it could hold hints of ours.
pub(super) fn may_name(key: &Key) -> bool {
    key.parts().is_some_and(|(_, folder, name)| {
        folder == Key::FOLDERS[1] || folder == Key::META && name.starts_with("decided-")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(60 * 60);

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + 10_000 * HOUR
    }

    /// Conversations of these entries: key, bytes, and age in hours.
    fn conversations(entries: &[(&str, u64, u32)]) -> Conversations {
        let mut all = Conversations::default();
        for (path, bytes, hours) in entries {
            let entry = Entry {
                key: Key::new(*path).unwrap(),
                bytes: *bytes,
                stored_at: now() - HOUR * *hours,
            };
            all.take(0, entry);
        }
        all
    }

    fn gone(policy: &SweepPolicy, entries: &[(&str, u64, u32)]) -> String {
        let all = conversations(entries);
        let unnamed = all
            .0
            .iter()
            .map(|(prefix, one)| (prefix.as_str(), one))
            .collect();
        choose(unnamed, policy, now()).concat()
    }

    #[test]
    fn w1_a_conversation_is_as_young_as_the_newest_thing_in_it() {
        let idle = |hours| SweepPolicy::new().idle(HOUR * hours);
        let entries = [
            ("a/trunc/1", 1, 900),
            ("a/clear/2", 1, 100),
            ("b/trunc/1", 1, 900),
            ("b/meta/read-1", 0, 60),
            ("c/trunc/1", 1, 900),
            ("c/meta/decided-0123456789abcdef-0", 1, 50),
            ("d/trunc/1", 1, 48),
            ("trunc/root", 1, 70),
            ("meta/naming-secret", 1, 900),
        ];
        assert_eq!(gone(&idle(100), &entries), "", "not longer than 100 hours");
        assert_eq!(gone(&idle(99), &entries), "a/");
        assert_eq!(gone(&idle(59), &entries), "a/b/");
        assert_eq!(gone(&idle(48), &entries), "a/b/c/");
        assert_eq!(conversations(&entries).0.len(), 5);
    }

    #[test]
    fn w4_a_quota_takes_the_longest_idle_first_and_nothing_young() {
        let entries = [
            ("a/trunc/1", 10, 60),
            ("b/trunc/1", 10, 80),
            ("c/trunc/1", 10, 70),
            ("young/trunc/1", 10, 48),
        ];
        let over = |quota| gone(&SweepPolicy::new().quota_bytes(quota), &entries);
        assert_eq!(
            [40, 39, 30, 29, 20, 19, 0].map(over),
            ["", "b/", "b/", "b/c/", "b/c/", "b/c/a/", "b/c/a/"]
        );
        let huge = [("a/trunc/1", u64::MAX, 60), ("b/trunc/1", u64::MAX, 80)];
        let all = conversations(&huge);
        let mut tally = all.0["a/"].tally();
        tally.merge(all.0["b/"].tally());
        assert_eq!(
            (tally.conversations, tally.count, tally.bytes),
            (2, 2, u64::MAX)
        );
    }

    #[test]
    fn w5_a_row_of_records_loses_its_end_first() {
        let record = |number| format!("a/meta/decided-0123456789abcdef-{number}");
        let records: Vec<_> = (0..12).map(record).collect();
        let entries: Vec<_> = records.iter().map(|path| (path.as_str(), 1, 60)).collect();
        let all = conversations(&entries);
        let keys = all.0["a/"]
            .newest_first()
            .into_iter()
            .map(|part| part.entry.key.as_str());
        assert!(keys.eq(records.iter().rev().map(String::as_str)));
    }

    #[test]
    fn what_was_cleared_and_records_may_name_other_content() {
        for (path, may) in [
            ("clear/a", true),
            ("s/clear/a-args", true),
            ("s/meta/decided-0123456789abcdef-0", true),
            ("s/meta/read-1", false),
            ("s/trunc/a", false),
        ] {
            assert_eq!(may_name(&Key::new(path).unwrap()), may, "{path}");
        }
    }
}
