//! `offcut gain`.

use std::collections::{BTreeMap, HashSet};
use std::process::ExitCode;

use serde::Serialize;

use crate::agents::journal::{self, Row};
use crate::agents::layout::Home;
use crate::failure::{Failure, OrFail as _};
use crate::units::{self, BYTES_PER_TOKEN, count, grouped};
use crate::{args, output};

/// The sum of some rows of a journal. All lengths are in bytes.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Gain {
    /// The name of the agent, or of the server's upstream; empty in the sum of all rows, as the other names are.
    #[serde(skip_serializing_if = "String::is_empty")]
    by: String,
    /// The name of the tool, or of the model.
    #[serde(skip_serializing_if = "String::is_empty")]
    what: String,
    /// The program that asked the server.
    #[serde(skip_serializing_if = "String::is_empty")]
    client: String,
    /// Number of results or requests.
    count: u64,
    /// Number of those that became shorter.
    shortened: u64,
    /// Number of results in requests that were replaced for the first time.
    replaced: u64,
    /// Number of results that were read from the store.
    reads: u64,
    /// Length of all as they came, without results read from the store.
    bytes_before: u64,
    /// Length of all as they were shown or sent, hints included, and of results read from the store.
    bytes_after: u64,
}

impl Gain {
    fn add(&mut self, row: &Row) {
        self.count += 1;
        self.shortened += u64::from(row.after < row.before);
        // A file may hold any number.
        self.reads = self.reads.saturating_add(row.reads);
        self.replaced = self.replaced.saturating_add(row.replaced);
        self.bytes_before = self.bytes_before.saturating_add(row.before);
        self.bytes_after = self.bytes_after.saturating_add(row.after);
    }
}

/// The sums of the journal.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Gains {
    /// The sum of all rows.
    #[serde(flatten)]
    total: Gain,
    /// Number of conversations.
    sessions: u64,
    /// The time of the first row in seconds since 1970; `None` if there is none.
    since: Option<u64>,
    /// The sums by agent and tool, or by upstream, model and client.
    rows: Vec<Gain>,
}

impl Gains {
    /// Adds rows up, except those of probes.
    fn of(rows: &[Row]) -> Self {
        let mut total = Gain::default();
        let mut named = BTreeMap::<_, Gain>::new();
        let mut sessions = HashSet::new();
        let rows = || rows.iter().filter(|row| !row.is_probe());
        for row in rows() {
            total.add(row);
            let sum = named.entry([&row.by, &row.what, &row.client]);
            let [by, what, client] = sum.key().map(String::clone);
            let sum = sum.or_insert_with(|| Gain {
                by,
                what,
                client,
                ..Gain::default()
            });
            sum.add(row);
            if !row.session.is_empty() {
                sessions.insert((&row.by, &row.session));
            }
        }
        Self {
            total,
            sessions: sessions.len() as u64,
            since: rows().map(|row| row.time).min(),
            rows: named.into_values().collect(),
        }
    }
}

/// Adds the journal up.
pub(crate) fn run(args: &args::Gain, json: bool) -> Result<ExitCode, Failure> {
    let home = Home::required()?;
    let path = home.journal();
    let since = args
        .since
        .map_or(0, |age| units::now().saturating_sub(age.as_secs()));
    let rows = journal::read(&path);
    let mut rows = rows.or_fail(format_args!("{} can't be read", path.display()))?;
    rows.retain(|row| row.time >= since);
    let gains = Gains::of(&rows);
    if json {
        output::write_json(&gains)?;
    } else if gains.total.count == 0 {
        output::write(&match args.since {
            None => format!("{} has no rows yet\n", path.display()),
            Some(_) => format!("{} has nothing that recent\n", path.display()),
        })?;
        output::note(
            "`offcut doctor AGENT` tells whether a hook works, and `offcut status` whether a server runs",
        );
    } else {
        output::write(&in_words(&gains))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A sentence, and a table with a row for each name.
fn in_words(gains: &Gains) -> String {
    let total = &gains.total;
    let number = |number: u64| grouped(number.cast_signed());
    let (before, after) = (
        total.bytes_before.cast_signed(),
        total.bytes_after.cast_signed(),
    );
    let saved = before.saturating_sub(after);
    let text = format!(
        "In {}, {} of {} results and requests became shorter, and {} read back: \
         {} bytes in place of {}: {} {}, some {} tokens of four bytes.\n\n",
        count(gains.sessions, "session"),
        total.shortened,
        total.count,
        count(total.reads, "stored result"),
        grouped(after),
        grouped(before),
        grouped(saved.saturating_abs()),
        // If nothing was saved, more was spent.
        if saved < 0 { "more" } else { "less" },
        grouped((saved / BYTES_PER_TOKEN).abs()),
    );
    let head =
        "tool, or provider, model and client|all|shortened|replaced|reads|bytes before|bytes after";
    let rows = gains.rows.iter().map(|row| {
        let name = format!("{} {} {}", row.by, row.what, row.client);
        [
            name.trim_end().to_owned(),
            number(row.count),
            number(row.shortened),
            number(row.replaced),
            number(row.reads),
            number(row.bytes_before),
            number(row.bytes_after),
        ]
    });
    text + &output::table(1, head, rows)
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
                reads: 1,
                ..row("s1", 0, 400)
            },
            row("s1", 300, 300),
            row("s2", 5_000, 2_000),
            row("offcut-doctor-1", 9_000, 1_000),
        ]);
        let total = &gains.total;
        assert_eq!((total.count, total.shortened, total.reads), (4, 2, 1));
        assert_eq!((total.bytes_before, total.bytes_after), (15_300, 3_700));
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
        assert_eq!(gains.sessions, 3);
        let senders: Vec<_> = gains
            .rows
            .iter()
            .map(|row| (&*row.by, &*row.client, row.bytes_after))
            .collect();
        assert_eq!(
            senders,
            [
                ("lab", "", 16),
                ("openai", "curl", 90),
                ("openai", "pi", 10)
            ]
        );
    }
}
