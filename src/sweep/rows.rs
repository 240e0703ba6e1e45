//! Records of decisions, by which a conversation that is handed in whole gets the same bytes each
//! time. A conversation's row of records stays and goes as one.

use std::collections::BTreeMap;
use std::time::SystemTime;

use crate::backend::{Entry, Key};

use super::policy::SweepPolicy;

/// The rows of records of one store, by the part of their keys that is before the numbers.
#[derive(Debug, Default)]
pub(super) struct Rows(BTreeMap<String, Row>);

/// The records of one conversation under the same settings.
#[derive(Debug)]
pub(super) struct Row {
    /// By number.
    records: BTreeMap<u64, Entry>,
    newest: SystemTime,
}

impl Rows {
    /// Adds `entry` if it is a record.
    pub(super) fn take(&mut self, entry: &Entry) {
        let Some((stem, number)) = parse(&entry.key) else {
            return;
        };
        let row = self.0.entry(stem.to_owned()).or_insert_with(|| Row {
            records: BTreeMap::new(),
            newest: entry.stored_at,
        });
        row.newest = row.newest.max(entry.stored_at);
        row.records.insert(number, entry.clone());
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Row)> {
        self.0.iter().map(|(stem, row)| (stem.as_str(), row))
    }
}

impl Row {
    /// Returns true if the conversation may go on where it stopped. Everything that its records name
    /// is live then. Prompt caches are forgotten long before any grace is over, so deciding anew
    /// costs nothing after it.
    pub(super) fn stays(&self, policy: &SweepPolicy, now: SystemTime) -> bool {
        let takes_any = policy.unreferenced || policy.quota_bytes.is_some();
        let age = if takes_any {
            policy.grace
        } else {
            match policy.max_age {
                Some(age) => age.max(policy.grace),
                None => return true,
            }
        };
        !now.duration_since(self.newest).is_ok_and(|is| is >= age)
    }

    /// Its records, the last one first: whatever is left after an interruption is still a row.
    pub(super) fn last_first(&self) -> impl Iterator<Item = &Entry> {
        self.records.values().rev()
    }
}

/// The prefix of the session that a row belongs to.
pub(super) fn prefix_of(stem: &str) -> &str {
    stem.rfind("swept/decided-").map_or("", |at| &stem[..at])
}

/// Splits the key of a record, `<prefix>swept/decided-<settings>-<n>`, before its number.
fn parse(key: &Key) -> Option<(&str, u64)> {
    let key = key.as_str();
    let (folder, name) = key.rsplit_once('/').unwrap_or(("", key));
    if folder != Key::SWEPT && !folder.ends_with("/swept") {
        return None;
    }
    let (settings, number) = name.strip_prefix("decided-")?.split_once('-')?;
    let is_digest = settings.len() == 16 && settings.bytes().all(|byte| byte.is_ascii_hexdigit());
    let written = number
        .parse::<u64>()
        .ok()
        .filter(|read| read.to_string() == number);
    is_digest.then_some((&key[..key.len() - number.len()], written?))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const HOUR: Duration = Duration::from_secs(60 * 60);

    #[test]
    fn only_records_are_records() {
        let parsed = |key: &str| {
            parse(&Key::new(key).unwrap()).map(|(stem, number)| (stem.to_owned(), number))
        };
        let stem = "a/b/swept/decided-0123456789abcdef-";
        assert_eq!(parsed(&format!("{stem}12")), Some((stem.to_owned(), 12)));
        assert_eq!(prefix_of(stem), "a/b/");
        assert_eq!(parsed("swept/decided-0123456789abcdef-0").unwrap().1, 0);
        assert_eq!(prefix_of("swept/decided-0123456789abcdef-"), "");
        for key in [
            "swept/decided-0123456789abcdef-01",
            "swept/decided-0123456789abcdef",
            "swept/decided-0123-1",
            "trunc/decided-0123456789abcdef-1",
            "unswept/decided-0123456789abcdef-1",
            "swept/trunc/decided-0123456789abcdef-1",
            "swept/lease-1",
        ] {
            assert_eq!(parsed(key), None, "{key}");
        }
    }

    #[test]
    fn w7_a_row_is_as_old_as_its_newest_record() {
        let now = SystemTime::UNIX_EPOCH + 1_000 * HOUR;
        let mut rows = Rows::default();
        for (number, hours) in [(0, 900), (1, 30), (2, 500)] {
            rows.take(&Entry {
                key: Key::new(format!("swept/decided-0123456789abcdef-{number}")).unwrap(),
                bytes: 1,
                stored_at: now - hours * HOUR,
            });
        }
        let (_, row) = rows.iter().next().unwrap();
        let numbers: Vec<_> = row
            .last_first()
            .map(|entry| entry.key.to_string())
            .collect();
        assert!(numbers.is_sorted_by(|one, next| one > next));
        let stays = |policy: SweepPolicy| row.stays(&policy, now);
        assert!(stays(SweepPolicy::new()) && stays(SweepPolicy::new().max_age(31 * HOUR)));
        assert!(!stays(SweepPolicy::new().max_age(30 * HOUR)));
        assert!(
            !stays(SweepPolicy::new().unreferenced()) && !stays(SweepPolicy::new().quota_bytes(1))
        );
        assert!(stays(SweepPolicy::new().unreferenced().grace(31 * HOUR)));
    }
}
