//! The places in which agents keep their transcripts, which name stored results.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::journal::Entry;
use crate::layout::{self, Home};
use crate::{Agent, journal};

/// All folders with transcripts that may name what is in the store of `home`, as far as they hold any.
///
/// # Errors
///
/// Some transcripts can't be read, so nothing tells which results are still named. The error says why.
pub fn folders(home: &Home) -> Result<BTreeSet<PathBuf>, String> {
    let entries: Vec<Entry> = journal::read(&home.journal())
        .map_err(|error| format!("the journal can't be read: {error}"))?;
    if uses_opencode(home, &entries) {
        return Err(
            "OpenCode keeps its transcripts in a database, which can't be searched for hints"
                .to_owned(),
        );
    }
    let of_agent = |agent, folder| Some(layout::agent_home(agent)?.join(folder));
    let known = [
        of_agent(Agent::ClaudeCode, "projects"),
        of_agent(Agent::Codex, "sessions"),
        of_agent(Agent::Codex, "archived_sessions"),
        layout::pi_settings().map(|settings| settings.join("sessions")),
    ];
    let gemini = of_agent(Agent::GeminiCli, "tmp");
    let projects = gemini.and_then(|folder| fs::read_dir(folder).ok());
    let chats = projects.into_iter().flatten().flatten();
    let chats = chats.map(|project| project.path().join("chats"));
    // An agent may have been told to keep them elsewhere.
    let named = entries
        .iter()
        .filter_map(|entry| entry.transcript.as_deref()?.parent());
    let all = known.into_iter().flatten().chain(chats);
    let all = all.chain(named.map(Path::to_owned));
    Ok(all.filter(|folder| holds_files(folder)).collect())
}

fn uses_opencode(home: &Home, entries: &[Entry]) -> bool {
    let name = Agent::OpenCode.name();
    let installed = fs::read_dir(home.installed().join(name));
    let is_installed = installed.is_ok_and(|mut records| records.next().is_some());
    is_installed || entries.iter().any(|entry| entry.agent == name)
}

/// Returns true if there is a file below `folder`, or something that can't be looked at.
fn holds_files(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else {
        return folder.exists();
    };
    entries.into_iter().any(|entry| {
        let path = entry.map(|entry| entry.path());
        path.is_ok_and(|path| !path.is_dir() || holds_files(&path))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_of_transcripts_is_not_searched() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        folders(&home).unwrap();
        let entry = Entry::new("opencode", "s1", "c1", "bash", 1);
        journal::append(&home.journal(), &[entry]).unwrap();
        assert!(folders(&home).unwrap_err().contains("OpenCode"));
        fs::remove_file(home.journal()).unwrap();
        fs::create_dir_all(home.installed().join("opencode")).unwrap();
        folders(&home).unwrap();
        fs::write(home.installed().join("opencode/1.json"), "{}").unwrap();
        folders(&home).unwrap_err();
    }

    #[test]
    fn the_folders_of_named_transcripts_count() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let transcripts = folder.path().join("elsewhere/-src");
        fs::create_dir_all(&transcripts).unwrap();
        let log = transcripts.join("s1.jsonl");
        let entry = Entry::new("claude-code", "s1", "c1", "Bash", 1).with_transcript(Some(&log));
        journal::append(&home.journal(), &[entry]).unwrap();
        assert!(!folders(&home).unwrap().contains(&transcripts));
        fs::create_dir(transcripts.join("s1")).unwrap();
        assert!(!folders(&home).unwrap().contains(&transcripts));
        fs::write(transcripts.join("s1/agent.jsonl"), "{}").unwrap();
        assert!(folders(&home).unwrap().contains(&transcripts));
    }
}
