//! The sums of journals: how much shorter results became, or requests.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;

use crate::agents::journal::Row;

/// The sum of some rows of a journal. All lengths are in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Gain {
    /// Number of results or requests.
    pub count: u64,
    /// Number of those that became shorter.
    pub shortened: u64,
    /// Number of results in requests that were replaced for the first time.
    pub replaced: u64,
    /// Number of results that were read from the store.
    pub reads: u64,
    /// Length of all as they came, without results read from the store.
    pub bytes_before: u64,
    /// Length of all as they were shown or sent, hints included, and of results read from the store.
    pub bytes_after: u64,
}

impl Gain {
    /// The bytes that were not shown or sent. Negative if more was.
    pub fn saved(&self) -> i64 {
        let (before, after) = (
            self.bytes_before.cast_signed(),
            self.bytes_after.cast_signed(),
        );
        before.saturating_sub(after)
    }

    fn add(&mut self, row: &Row) {
        let before = if row.is_read { 0 } else { row.before };
        // A file may hold any number.
        for (sum, more) in [
            (&mut self.count, 1),
            (&mut self.shortened, u64::from(row.after < before)),
            (&mut self.replaced, row.replaced),
            (&mut self.reads, u64::from(row.is_read)),
            (&mut self.bytes_before, before),
            (&mut self.bytes_after, row.after),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}

/// The sums of a journal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Gains {
    /// The sum of all rows.
    #[serde(flatten)]
    pub total: Gain,
    /// Number of conversations.
    pub sessions: u64,
    /// The time of the first row in seconds since 1970; `None` if there is none.
    pub since: Option<u64>,
    /// The sums by agent and tool, or by upstream, model and client.
    pub rows: Vec<NamedGain>,
}

/// The sum of the rows that bear the same names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NamedGain {
    /// The name of the agent, or of the server's upstream.
    pub by: String,
    /// The name of the tool, or of the model.
    pub what: String,
    /// The program that asked the server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub client: String,
    /// Their sum.
    #[serde(flatten)]
    pub gain: Gain,
}

impl Gains {
    /// Adds rows up, except those of probes.
    pub fn of(rows: &[Row]) -> Self {
        let rows = || rows.iter().filter(|row| !row.is_probe());
        let mut total = Gain::default();
        let mut named = BTreeMap::<_, Gain>::new();
        for row in rows() {
            total.add(row);
            let names = [&row.by, &row.what, &row.client];
            named.entry(names).or_default().add(row);
        }
        let sessions = rows().filter(|row| !row.session.is_empty());
        let sessions: HashSet<_> = sessions.map(|row| (&row.by, &row.session)).collect();
        let named = named.into_iter().map(|(names, gain)| {
            let [by, what, client] = names.map(String::clone);
            NamedGain {
                by,
                what,
                client,
                gain,
            }
        });
        Self {
            total,
            sessions: sessions.len() as u64,
            since: rows().map(|row| row.time).min(),
            rows: named.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_count_hints_and_reads() {
        let row = |session, before, after| Row {
            after,
            ..Row::new("claude-code", session, "Bash", before)
        };
        let gains = Gains::of(&[
            row("s1", 10_000, 1_000),
            Row {
                is_read: true,
                ..row("s1", 400, 400)
            },
            row("s1", 300, 300),
            row("s2", 5_000, 2_000),
            row("offcut-doctor-1", 9_000, 1_000),
        ]);
        let total = &gains.total;
        assert_eq!((total.count, total.shortened, total.reads), (4, 2, 1));
        assert_eq!((total.bytes_before, total.bytes_after), (15_300, 3_700));
        assert_eq!(total.saved(), 11_600);
        assert_eq!((gains.sessions, gains.rows.len()), (2, 1));
        assert_eq!(Gains::of(&[]).since, None);
    }

    #[test]
    fn requests_are_added_up_by_sender() {
        let row = |by, client: &str, session, [before, after]: [u64; 2]| Row {
            after,
            client: client.to_owned(),
            replaced: u64::from(after < before),
            ..Row::new(by, session, "a-model", before)
        };
        let gains = Gains::of(&[
            row("openai", "curl", "a", [100, 40]),
            row("openai", "curl", "a", [200, 50]),
            row("openai", "pi", "b", [10, 10]),
            row("lab", "", "a", [10, 10]),
            row("lab", "", "", [6, 6]),
        ]);
        let total = gains.total;
        assert_eq!((total.count, total.shortened, total.replaced), (5, 2, 2));
        assert_eq!((total.bytes_before, total.bytes_after), (326, 116));
        assert_eq!((total.saved(), gains.sessions), (210, 3));
        let senders: Vec<_> = gains
            .rows
            .iter()
            .map(|row| (&*row.by, &*row.client, row.gain.saved()))
            .collect();
        assert_eq!(
            senders,
            [("lab", "", 0), ("openai", "curl", 210), ("openai", "pi", 0)]
        );
    }
}
