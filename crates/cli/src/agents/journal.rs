//! Journals of the results that hooks were shown, and of the requests that passed through a server:
//! sizes and names, no content.

mod served;

use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use served::Served;

use crate::agents::log;

/// Maximum length of a journal in bytes, before it becomes the old one: some 40 000 results.
const MAX_LENGTH: u64 = 8 * 1024 * 1024;
/// Maximum length of a name in bytes; more is cut off. Names come from agents and models.
const MAX_NAME: usize = 200;
/// Beginning of the names of conversations that `offcut doctor` makes up.
pub(crate) const PROBES: &str = "offcut-doctor-";

/// A row of a journal.
pub trait Row: Serialize + DeserializeOwned {
    /// Seconds since 1970.
    fn time(&self) -> u64;

    /// The conversation with which it is swept, as an agent and a session; `None` if it goes by its own time.
    fn conversation(&self) -> Option<(&str, &str)>;
}

/// A result that a hook was shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Entry {
    /// Seconds since 1970.
    pub time: u64,
    /// The agent's name.
    pub agent: String,
    /// The conversation's id.
    pub session: String,
    /// The call's id.
    pub call: String,
    /// The tool's name.
    pub tool: String,
    /// The treatment of the result.
    pub kind: Kind,
    /// Length in bytes of the text that the agent would have shown the model.
    pub before: u64,
    /// Length in bytes of the text that the model was shown.
    pub after: u64,
    /// The agent's own log of the conversation, if the event names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<PathBuf>,
}

/// The treatment of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Kind {
    /// It stayed as it was.
    Unchanged,
    /// It was stored, and replaced by a hint with a preview.
    Shortened,
    /// It was read from the store.
    Read,
}

impl Row for Entry {
    fn time(&self) -> u64 {
        self.time
    }

    fn conversation(&self) -> Option<(&str, &str)> {
        Some((&self.agent, &self.session))
    }
}

impl Entry {
    /// Returns `true` if it is of a probe that `offcut doctor` sent, and of no agent's conversation.
    pub(crate) fn is_probe(&self) -> bool {
        self.session.starts_with(PROBES)
    }

    /// An entry of the present time, for a result that stayed as it was.
    #[must_use]
    pub fn new(agent: &str, session: &str, call: &str, tool: &str, length: usize) -> Self {
        Self {
            time: log::now(),
            agent: bounded(agent),
            session: bounded(session),
            call: bounded(call),
            tool: bounded(tool),
            kind: Kind::Unchanged,
            before: length as u64,
            after: length as u64,
            transcript: None,
        }
    }

    /// The same entry for a result that was replaced by one of `length` bytes.
    #[must_use]
    pub fn shortened(mut self, length: usize) -> Self {
        self.kind = Kind::Shortened;
        self.after = length as u64;
        self
    }

    /// The same entry for a result that was read from the store.
    #[must_use]
    pub fn read(mut self) -> Self {
        self.kind = Kind::Read;
        self
    }

    /// The same entry with the agent's own log of the conversation.
    #[must_use]
    pub fn with_transcript(mut self, transcript: Option<&Path>) -> Self {
        self.transcript = transcript.map(Path::to_owned);
        self
    }
}

/// A name without what is too long.
fn bounded(name: &str) -> String {
    name[..name.floor_char_boundary(MAX_NAME)].to_owned()
}

/// Appends rows to the journal at `path`, which only its user can read.
///
/// # Errors
///
/// The file can't be written.
pub fn append(path: &Path, rows: &[impl Row]) -> io::Result<()> {
    let mut lines = String::new();
    for row in rows {
        lines += &serde_json::to_string(row)?;
        lines.push('\n');
    }
    log::append_lines(path, &lines, MAX_LENGTH)
}

/// Removes the rows that are older than `oldest`, in seconds since 1970. Rows of a conversation that goes on
/// after it stay.
///
/// # Errors
///
/// A file can't be read or written.
pub fn sweep<R: Row>(path: &Path, oldest: u64) -> io::Result<()> {
    let known: Vec<R> = read(path)?;
    let recent = known.iter().filter(|row| row.time() >= oldest);
    let live: HashSet<_> = recent.filter_map(Row::conversation).collect();
    let is_live = |row: &&R| match row.conversation() {
        Some(conversation) => live.contains(&conversation),
        None => row.time() >= oldest,
    };
    if known.iter().all(|row| is_live(&row)) {
        return Ok(());
    }
    // Hooks append in the meantime: to a new journal, while the entries so far become the old one.
    let (aside, old) = (path.with_extension("sweeping"), log::old(path));
    let mut rows: Vec<R> = read_all(&[&old, &aside])?;
    match std::fs::rename(path, &aside) {
        Ok(()) => rows.extend(read_all(&[&aside])?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut staged = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    for row in rows.iter().filter(is_live) {
        serde_json::to_writer(&mut staged, row)?;
        staged.write_all(b"\n")?;
    }
    staged.persist(&old).map_err(|error| error.error)?;
    match std::fs::remove_file(aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Reads the journal at `path` and the old one beside it, oldest row first. Lines that are not such rows are
/// left out; a journal that is missing is empty.
///
/// # Errors
///
/// A file can't be read.
pub fn read<R: Row>(path: &Path) -> io::Result<Vec<R>> {
    // A sweep that was killed leaves entries aside.
    let aside = path.with_extension("sweeping");
    read_all(&[&log::old(path), &aside, path])
}

fn read_all<R: Row>(paths: &[&Path]) -> io::Result<Vec<R>> {
    let mut rows = Vec::new();
    for path in paths {
        let file = match log::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for line in BufReader::new(file).split(b'\n') {
            // A line may be cut off: its writer was killed.
            rows.extend(serde_json::from_slice::<R>(&line?).ok());
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(path: &Path) -> Vec<Entry> {
        read(path).unwrap()
    }

    #[test]
    fn entries_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        assert_eq!(all(&path), []);
        let first = Entry::new("pi", "s\n1", "a", "bash", 9_000).shortened(700);
        let second = Entry::new("pi", "s1", "b", "read", 80).read();
        append(&path, std::slice::from_ref(&first)).unwrap();
        append(&path, &[second.clone(), first.clone()]).unwrap();
        // A writer that was killed.
        std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(b"{\"time\": 1,"))
            .unwrap();
        assert_eq!(all(&path), [first.clone(), second, first]);
    }

    #[test]
    fn old_entries_go_with_their_conversation() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        sweep::<Entry>(&path, 5).unwrap();
        let entry = |time, session| Entry {
            time,
            ..Entry::new("pi", session, "a", "bash", 9)
        };
        let [old, long, recent] = [entry(1, "s1"), entry(2, "s2"), entry(8, "s2")];
        append(&path, &[old, long.clone()]).unwrap();
        std::fs::rename(&path, log::old(&path)).unwrap();
        append(&path, std::slice::from_ref(&recent)).unwrap();
        sweep::<Entry>(&path, 5).unwrap();
        assert_eq!(all(&path), [long.clone(), recent.clone()]);
        let later = entry(9, "s3");
        append(&path, std::slice::from_ref(&later)).unwrap();
        sweep::<Entry>(&path, 5).unwrap();
        assert_eq!(all(&path), [long, recent, later.clone()]);
        sweep::<Entry>(&path, 9).unwrap();
        assert_eq!(all(&path), [later]);
        // A sweep that was killed after it had put the journal aside.
        std::fs::rename(log::old(&path), path.with_extension("sweeping")).unwrap();
        assert_eq!(all(&path).len(), 1);
        sweep::<Entry>(&path, 10).unwrap();
        assert_eq!(all(&path), []);
    }

    #[test]
    fn names_are_bounded_and_a_journal_is_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let entry = Entry::new("pi", &"ä".repeat(500), "a", &"x".repeat(1_000_000), 1);
        assert!(serde_json::to_string(&entry).unwrap().len() < 1_000);
        let many = vec![entry; 10_000];
        for _ in 0..8 {
            append(&path, &many).unwrap();
        }
        let kept = all(&path).len();
        assert!((10_000..60_000).contains(&kept), "{kept}");
    }
}
