//! The places in which agents keep their transcripts, which name stored results.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::ValueEnum as _;

use crate::agents::journal::Row;
use crate::agents::layout::{self, Home};
use crate::agents::{Agent, journal, log};

/// All folders with transcripts that may name what is in the store of `home`: those of agents as far
/// as they hold any, and those that have held any before, which are remembered for good: a disk that
/// is not mounted looks like an agent that was never used. Another profile of an agent keeps its
/// transcripts in a folder that nothing else names.
///
/// # Errors
///
/// Some transcripts can't be read, so nothing tells which results are still named. The error says why.
pub(crate) fn folders(home: &Home) -> Result<BTreeSet<PathBuf>, String> {
    let rows = journal::read(&home.journal())
        .map_err(|error| format!("the journal can't be read: {error}"))?;
    remember(home, &rows)
        .map_err(|error| format!("the folders of transcripts can't be noted: {error}"))?;
    let mut all = remembered(home)
        .map_err(|error| format!("the folders of transcripts can't be read: {error}"))?;
    if all.contains(Path::new(Agent::OpenCode.facts().name)) {
        return Err(format!(
            "OpenCode keeps its transcripts in a database, which can't be searched for hints: if its \
             conversations are gone for good, uninstall it and, 60 days later, remove its line from {}",
            home.transcripts().display()
        ));
    }
    if let Some(gone) = all.iter().find(|folder| !holds_files(folder)) {
        return Err(format!(
            "{} has held transcripts, and holds none now: bring them back or, if they are gone for good, remove its line from {}",
            gone.display(),
            home.transcripts().display()
        ));
    }
    let Some(gemini) = Agent::GeminiCli.facts().home.join("tmp") else {
        return Ok(all);
    };
    let projects = layout::paths_in(&gemini).map_err(|error| {
        let folder = gemini.display();
        format!("{folder} may hold transcripts and can't be read: check its permissions: {error}")
    })?;
    let chats = projects.iter().map(|project| project.join("chats"));
    all.extend(chats.filter(|folder| holds_files(folder)));
    Ok(all)
}

/// Notes the folders of the transcripts that rows of the journal name, and those of the agents' profiles that
/// are in use: a sweep may be started from other ones.
///
/// # Errors
///
/// The note can't be read or written.
pub(crate) fn remember(home: &Home, rows: &[Row]) -> io::Result<()> {
    let is_root = |folder: &&Path| {
        let name = folder.file_name().and_then(|name| name.to_str());
        let mut agents = Agent::value_variants().iter();
        name.is_some_and(|name| agents.any(|agent| agent.facts().transcripts.contains(&name)))
    };
    let named = rows.iter().filter_map(|row| {
        // A provider of a server may have this name too.
        if row.by == Agent::OpenCode.facts().name && row.client.is_empty() {
            return Some(PathBuf::from(&row.by));
        }
        let transcript = row.transcript.as_deref()?;
        let folder = transcript.ancestors().skip(1).find(is_root);
        let folder = folder.or(transcript.parent())?;
        holds_files(folder).then(|| folder.to_owned())
    });
    let in_use = Agent::value_variants().iter().flat_map(|agent| {
        let facts = agent.facts();
        let folders = facts.transcripts.iter();
        folders.filter_map(|folder| facts.settings.join(folder))
    });
    let in_use = in_use.filter(|folder| holds_files(folder));
    let all: BTreeSet<PathBuf> = named.chain(in_use).collect();
    let mut lines = String::new();
    for folder in all.difference(&remembered(home)?) {
        lines += &serde_json::to_string(folder)?;
        lines.push('\n');
    }
    if lines.is_empty() {
        return Ok(());
    }
    log::append_lines(&home.transcripts(), &lines, u64::MAX)
}

/// The folders that were noted. OpenCode's database is noted by the agent's name.
fn remembered(home: &Home) -> io::Result<BTreeSet<PathBuf>> {
    log::read(&home.transcripts())?
        .lines()
        .map(|line| Ok(serde_json::from_str(line)?))
        .collect()
}

/// Returns true if there is a file below `folder`, or something that can't be looked at.
fn holds_files(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else {
        // Below a folder that can't be entered, nobody knows.
        return folder.try_exists().unwrap_or(true);
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
        let row = Row::new("opencode", "s1", "bash", 1);
        journal::append(&home.journal(), &[row]).unwrap();
        assert!(folders(&home).unwrap_err().contains("OpenCode"));
        // Also when the journal has lost the row.
        fs::remove_file(home.journal()).unwrap();
        assert!(folders(&home).unwrap_err().contains("OpenCode"));
    }

    fn row(transcript: &Path) -> Row {
        Row {
            transcript: Some(transcript.to_owned()),
            ..Row::new("claude-code", "s1", "Bash", 1)
        }
    }

    #[test]
    fn the_folders_of_named_transcripts_count() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let transcripts = folder.path().join("elsewhere/-src");
        fs::create_dir_all(&transcripts).unwrap();
        let log = transcripts.join("s1.jsonl");
        journal::append(&home.journal(), &[row(&log)]).unwrap();
        assert!(!folders(&home).unwrap().contains(&transcripts));
        fs::create_dir(transcripts.join("s1")).unwrap();
        assert!(!folders(&home).unwrap().contains(&transcripts));
        fs::write(transcripts.join("s1/agent.jsonl"), "{}").unwrap();
        assert!(folders(&home).unwrap().contains(&transcripts));
    }

    #[test]
    fn a_folder_that_held_transcripts_is_looked_at_for_good() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home"));
        for (path, root) in [
            ("work/projects/-src/s1.jsonl", "work/projects"),
            ("work/projects/-src/s1/subagents/a.jsonl", "work/projects"),
            ("codex/sessions/2026/11/25/rollout.jsonl", "codex/sessions"),
            ("plain/s1.jsonl", "plain"),
        ] {
            let log = folder.path().join(path);
            fs::create_dir_all(log.parent().unwrap()).unwrap();
            fs::write(&log, "{}").unwrap();
            remember(&home, &[row(&log)]).unwrap();
            let root = folder.path().join(root);
            assert!(folders(&home).unwrap().contains(&root), "{path}");
        }
        let text = fs::read_to_string(home.transcripts()).unwrap();
        let own = folder.path().to_str().unwrap();
        let noted = text.lines().filter(|line| line.contains(own)).count();
        assert_eq!(noted, 3, "{text}");
        // A project's folder may go, but not all.
        fs::remove_dir_all(folder.path().join("work/projects/-src/s1")).unwrap();
        folders(&home).unwrap();
        let (work, aside) = (folder.path().join("work"), folder.path().join("aside"));
        fs::rename(&work, &aside).unwrap();
        let problem = folders(&home).unwrap_err();
        assert!(
            problem.contains("work/projects") && problem.contains("transcripts.jsonl"),
            "{problem}"
        );
        fs::create_dir_all(work.join("projects")).unwrap();
        folders(&home).unwrap_err();
        fs::remove_dir_all(&work).unwrap();
        fs::rename(&aside, &work).unwrap();
        folders(&home).unwrap();
        fs::write(home.transcripts(), "not JSON\n").unwrap();
        folders(&home).unwrap_err();
    }
}
