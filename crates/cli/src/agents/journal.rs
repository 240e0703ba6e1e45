//! The journal of the results that hooks were shown, and of the requests that passed through servers:
//! sizes and names, no content.

use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::agents::log;
use crate::units;

/// Maximum length of a journal in bytes, before it becomes the old one: some 40 000 results.
pub(crate) const MAX_LENGTH: u64 = 8 * 1024 * 1024;
/// Maximum length of a name in bytes; more is cut off. Names come from agents and models.
const MAX_NAME: usize = 200;
/// Beginning of the names of conversations that `offcut doctor` makes up.
pub(crate) const PROBES: &str = "offcut-doctor-";

/// A result that a hook was shown, or a request that passed through a server. All lengths are in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Seconds since 1970.
    pub time: u64,
    /// The name of the agent, or of the server's upstream.
    pub by: String,
    /// The name of the tool, or of the model that was asked.
    pub what: String,
    /// The program that asked the server.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub client: String,
    /// The conversation's id; empty if a request had none.
    #[serde(default)]
    pub session: String,
    /// Length of the text that the agent would have shown the model, 0 if it was read from the store; or of the request as
    /// it came.
    pub before: u64,
    /// Length of the text that the model was shown, or of the request as it was sent.
    pub after: u64,
    /// Number of results in the request that were replaced for the first time.
    #[serde(default)]
    pub replaced: u64,
    /// Number of results that were read from the store.
    #[serde(default)]
    pub reads: u64,
    /// The agent's own log of the conversation, if the event names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<PathBuf>,
}

impl Row {
    /// A row of the present time, for what stayed as it was.
    pub fn new(by: &str, session: &str, what: &str, length: u64) -> Self {
        Self {
            time: units::now(),
            by: bounded(by),
            what: bounded(what),
            session: bounded(session),
            before: length,
            after: length,
            ..Self::default()
        }
    }

    /// Returns `true` if it is of a probe that `offcut doctor` sent, and of no agent's conversation.
    pub(crate) fn is_probe(&self) -> bool {
        self.session.starts_with(PROBES)
    }
}

/// A name without what is too long.
pub(crate) fn bounded(name: &str) -> String {
    name[..name.floor_char_boundary(MAX_NAME)].to_owned()
}

/// Appends rows to the journal at `path`, which only its user can read.
///
/// # Errors
///
/// The file can't be written.
pub fn append(path: &Path, rows: &[Row]) -> io::Result<()> {
    let mut lines = String::new();
    for row in rows {
        lines += &serde_json::to_string(row)?;
        lines.push('\n');
    }
    log::append_lines(path, &lines, MAX_LENGTH)
}

/// Makes the journal at `path` the old one if its first row is older than `oldest`, in seconds since 1970.
///
/// # Errors
///
/// The file can't be read or moved.
pub fn turn(path: &Path, oldest: u64) -> io::Result<()> {
    match read_all(&[path])?.first() {
        Some(first) if first.time < oldest => std::fs::rename(path, log::old(path)),
        _ => Ok(()),
    }
}

/// Reads the journal at `path` and the old one beside it, oldest row first. Lines that are not such rows are
/// left out; a journal that is missing is empty.
///
/// # Errors
///
/// A file can't be read.
pub fn read(path: &Path) -> io::Result<Vec<Row>> {
    read_all(&[&log::old(path), path])
}

fn read_all(paths: &[&Path]) -> io::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for path in paths {
        let file = log::open(path)?.map(BufReader::new);
        for line in file.into_iter().flat_map(|file| file.split(b'\n')) {
            // A line may be cut off: its writer was killed.
            rows.extend(serde_json::from_slice::<Row>(&line?).ok());
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        assert_eq!(read(&path).unwrap(), []);
        let first = Row {
            after: 700,
            ..Row::new("pi", "s\n1", "bash", 9_000)
        };
        let second = Row {
            reads: 1,
            client: "curl".to_owned(),
            transcript: Some("s1.jsonl".into()),
            ..Row::new("pi", "s1", "read", 80)
        };
        append(&path, std::slice::from_ref(&first)).unwrap();
        append(&path, &[second.clone(), first.clone()]).unwrap();
        // A writer that was killed.
        log::append_lines(&path, "{\"time\": 1,", MAX_LENGTH).unwrap();
        assert_eq!(read(&path).unwrap(), [first.clone(), second, first]);
    }

    #[test]
    fn old_rows_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        turn(&path, 5).unwrap();
        let row = |time| Row {
            time,
            ..Row::new("pi", "s1", "bash", 9)
        };
        append(&path, &[row(1), row(8)]).unwrap();
        turn(&path, 1).unwrap();
        assert!(path.exists());
        turn(&path, 5).unwrap();
        assert!(!path.exists());
        assert_eq!(read(&path).unwrap(), [row(1), row(8)]);
        append(&path, &[row(9)]).unwrap();
        turn(&path, 5).unwrap();
        assert_eq!(read(&path).unwrap(), [row(1), row(8), row(9)]);
        turn(&path, 10).unwrap();
        assert_eq!(read(&path).unwrap(), [row(9)]);
    }

    #[test]
    fn names_are_bounded_and_a_journal_is_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let row = Row::new("pi", &"ä".repeat(500), &"x".repeat(1_000_000), 1);
        assert!(serde_json::to_string(&row).unwrap().len() < 1_000);
        let many = vec![row; 10_000];
        for _ in 0..8 {
            append(&path, &many).unwrap();
        }
        let kept = read(&path).unwrap().len();
        assert!((10_000..60_000).contains(&kept), "{kept}");
    }
}
