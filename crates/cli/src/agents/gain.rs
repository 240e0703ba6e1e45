//! The sums of journals: how much shorter results became, and for how many model calls; and how much shorter the
//! requests.

mod served;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde_json::Value;

pub use served::{ServedGain, ServedGains};

use crate::agents::journal::{Entry, Kind};
use crate::agents::log;

/// The sum of some entries of a journal. All lengths are in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gain {
    /// Number of results.
    pub results: u64,
    /// Number of results that were shortened.
    pub shortened: u64,
    /// Number of results that were read from the store.
    pub reads: u64,
    /// Length of the results as the agent would have shown them, without those read from the store.
    pub before: u64,
    /// Length of the results as they were shown, hints included, and of those read from the store.
    pub after: u64,
    /// The bytes that were not sent in the model calls after each result, less those that were sent because
    /// of reads. A result whose later calls are unknown counts for one call.
    pub over_calls: i64,
    /// Number of shortened results and reads whose later calls are known.
    pub known: u64,
}

impl Gain {
    /// The bytes by which results became shorter, less the bytes read from the store. Negative if more was read.
    #[must_use]
    pub fn saved(&self) -> i64 {
        self.before.cast_signed() - self.after.cast_signed()
    }

    fn add(&mut self, entry: &Entry, calls: Option<u64>) {
        self.results += 1;
        self.after += entry.after;
        match entry.kind {
            Kind::Unchanged => self.before += entry.before,
            Kind::Shortened => {
                self.shortened += 1;
                self.before += entry.before;
            }
            Kind::Read => self.reads += 1,
        }
        if entry.kind == Kind::Unchanged {
            return;
        }
        self.known += u64::from(calls.is_some());
        let calls = calls.unwrap_or(1).cast_signed();
        let before = if entry.kind == Kind::Read {
            0
        } else {
            entry.before
        };
        self.over_calls += (before.cast_signed() - entry.after.cast_signed()) * calls;
    }
}

/// The sums of a journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gains {
    /// The sum of all entries.
    pub total: Gain,
    /// The sums by the agent and its tool.
    pub tools: BTreeMap<(String, String), Gain>,
    /// Number of conversations.
    pub sessions: u64,
    /// The time of the first entry in seconds since 1970; `None` if there is none.
    pub since: Option<u64>,
}

impl Gains {
    /// Adds entries up, except those of probes. For later calls, reads the agents' own logs that the entries name, as far as they are
    /// still there and known.
    #[must_use]
    pub fn of(entries: &[Entry]) -> Self {
        let mut gains = Self::default();
        let mut sessions = HashSet::new();
        let mut logs: HashMap<&PathBuf, HashMap<String, u64>> = HashMap::new();
        for entry in entries.iter().filter(|entry| !entry.is_probe()) {
            let calls = entry.transcript.as_ref().and_then(|path| {
                let calls = logs.entry(path).or_insert_with(|| calls_after(path));
                calls.get(&entry.call).copied()
            });
            gains.total.add(entry, calls);
            let tool = (entry.agent.clone(), entry.tool.clone());
            gains.tools.entry(tool).or_default().add(entry, calls);
            sessions.insert((&entry.agent, &entry.session));
            let since = gains.since.unwrap_or(u64::MAX);
            gains.since = Some(since.min(entry.time));
        }
        gains.sessions = sessions.len() as u64;
        gains
    }
}

/// The number of model calls after each result in a log of Claude Code, by the id of the call that it answers.
/// Empty if the log can't be read.
fn calls_after(path: &Path) -> HashMap<String, u64> {
    let (mut results, mut answers) = (HashMap::new(), HashSet::new());
    let lines = log::open(path).map(|file| BufReader::new(file).split(b'\n'));
    for line in lines.into_iter().flatten().map_while(Result::ok) {
        let Ok(line) = serde_json::from_slice::<Value>(&line) else {
            continue;
        };
        let message = &line["message"];
        match line["type"].as_str() {
            // A message has a line for each of its blocks.
            Some("assistant") => {
                answers.extend(message["id"].as_str().map(str::to_owned));
            }
            Some("user") => {
                let blocks = message["content"].as_array().into_iter().flatten();
                for id in blocks.filter_map(|block| block["tool_use_id"].as_str()) {
                    results.insert(id.to_owned(), answers.len() as u64);
                }
            }
            _ => {}
        }
    }
    let all = answers.len() as u64;
    results
        .values_mut()
        .for_each(|before| *before = all - *before);
    results
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sums_count_hints_reads_and_later_calls() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("s1.jsonl");
        let assistant = |id: &str| json!({"type": "assistant", "message": {"id": id}}).to_string();
        let result = |id: &str| {
            let block = json!({"type": "tool_result", "tool_use_id": id});
            json!({"type": "user", "message": {"content": [block]}}).to_string()
        };
        let lines = [
            assistant("m1"),
            assistant("m1"),
            result("a"),
            assistant("m2"),
            result("b"),
            "{\"type\"".to_owned(),
            assistant("m3"),
        ];
        std::fs::write(&log, lines.join("\n")).unwrap();
        let entry =
            |session, call, length| Entry::new("claude-code", session, call, "Bash", length);
        let gains = Gains::of(&[
            entry("s1", "a", 10_000)
                .shortened(1_000)
                .with_transcript(Some(&log)),
            entry("s1", "b", 400).read().with_transcript(Some(&log)),
            entry("s1", "c", 300),
            entry("s2", "d", 5_000).shortened(2_000),
        ]);
        let total = &gains.total;
        assert_eq!((total.results, total.shortened, total.reads), (4, 2, 1));
        assert_eq!((total.before, total.after), (15_300, 3_700));
        assert_eq!(total.saved(), 11_600);
        // Two calls follow `a`, one follows `b`, and nothing is known of `d`.
        assert_eq!(total.over_calls, 2 * 9_000 - 400 + 3_000);
        assert_eq!((total.known, gains.sessions), (2, 2));
        assert_eq!(gains.tools.len(), 1);
        assert_eq!(Gains::of(&[]).since, None);
    }
}
