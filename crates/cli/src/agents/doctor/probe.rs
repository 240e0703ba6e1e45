//! A result of our own that goes through a hook as an agent's does.

use std::io::{Seek, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use offcut::hint::Hint;
use serde_json::{Value, json};

use crate::agents::install::TIME_OUT;
use crate::agents::journal::PROBES;
use crate::agents::{Agent, AgentFacts};

/// A probe, and the places where it leaves content.
pub(super) struct Probe {
    facts: &'static AgentFacts,
    /// The result.
    pub(super) original: String,
    session: String,
    /// A project of Gemini CLI, in whose folder results are stored.
    project: Option<PathBuf>,
    /// The place of its content in the store.
    stored: Option<PathBuf>,
    /// The folders above it that were not there, the innermost first.
    missing: Vec<PathBuf>,
}

impl Probe {
    pub(super) fn new(agent: Agent) -> Self {
        let facts = agent.facts();
        let session = format!("{PROBES}{}", std::process::id());
        let projects = facts.home.join("tmp");
        let projects = projects.filter(|_| agent == Agent::GeminiCli);
        let project = projects.map(|folder| folder.join(&session));
        let above = project
            .iter()
            .flat_map(|project| project.ancestors().skip(1));
        let missing = above.take_while(|folder| !folder.exists());
        Self {
            facts,
            original: (0..2_000)
                .map(|n| format!("line {n} of the probe\n"))
                .collect(),
            missing: missing.map(PathBuf::from).collect(),
            project,
            stored: None,
            session,
        }
    }

    /// Sends the probe through `command`, a line of a shell. Returns the text that the agent would show, and the
    /// location in its hint; `None` if it comes back unchanged.
    pub(super) fn send(&mut self, command: &str) -> Result<Option<(String, String)>, String> {
        if let Some(project) = &self.project {
            std::fs::create_dir_all(project.join("chats")).map_err(|error| error.to_string())?;
        }
        let patience = Duration::from_secs(TIME_OUT);
        let answer = run(command, &self.event().to_string(), patience)?;
        let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
        let [_, _, shown] = self.facts.probe;
        let shown = answer.pointer(shown).and_then(Value::as_str);
        let location = shown.and_then(|shown| Hint::parse(shown)?.location);
        let location = location.map(|location| location.as_str().to_owned());
        self.stored = location.as_ref().map(PathBuf::from);
        Ok(shown.map(str::to_owned).zip(location))
    }

    fn event(&self) -> Value {
        let [tool, field, _] = self.facts.probe;
        let response = match field {
            "" => json!(self.original),
            field => json!({field: self.original}),
        };
        let project = self.project.as_ref();
        json!({
            "hook_event_name": self.facts.event, "session_id": self.session, "cwd": "/",
            "transcript_path": project.map(|project| project.join("chats/probe.jsonl")),
            "timestamp": "2026-01-01T00:00:00.000Z", "tool_use_id": "probe", "tool_name": tool,
            "tool_input": {"command": "true"}, "tool_response": response,
        })
    }
}

impl Drop for Probe {
    /// Removes what the probe has left.
    fn drop(&mut self) {
        // Nothing else is in a folder of this name.
        let mut folders = self.stored.iter().flat_map(|path| path.ancestors());
        let of_session = folders.find(|folder| folder.ends_with(&self.session));
        for folder in [of_session, self.project.as_deref()].into_iter().flatten() {
            _ = std::fs::remove_dir_all(folder);
        }
        // One that somebody else has put something into meanwhile stays.
        for folder in &self.missing {
            _ = std::fs::remove_dir(folder);
        }
    }
}

/// Runs the command of a hook as an agent does. Returns what it wrote to stdout.
fn run(command: &str, event: &str, patience: Duration) -> Result<String, String> {
    // From a file, since a command may end without having read a pipe.
    let stdin = tempfile::tempfile().and_then(|mut file| {
        file.write_all(event.as_bytes())?;
        file.rewind().map(|()| file)
    });
    let mut shell = Command::new("sh");
    shell.args(["-c", command]);
    shell.stdin(stdin.map_err(|error| error.to_string())?);
    let output = output(shell, patience)?;
    match String::from_utf8_lossy(&output.stderr).trim() {
        "" => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        complaint => Err(complaint.to_owned()),
    }
}

/// Runs a command. After a time, `patience`, goes on without its output, and ends it with all that it has started, where
/// there are groups of processes.
pub(super) fn output(mut command: Command, patience: Duration) -> Result<Output, String> {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = child.map_err(|error| error.to_string())?;
    #[cfg(unix)]
    let group = rustix::process::Pid::from_child(&child);
    let (sender, receiver) = mpsc::channel();
    // A process in a group of its own may hold the output for ever.
    thread::spawn(move || sender.send(child.wait_with_output()));
    let output = receiver.recv_timeout(patience).map_err(|_| {
        #[cfg(unix)]
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        format!("it took longer than {} s", patience.as_secs())
    })?;
    output.map_err(|error| error.to_string())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_hangs_is_ended_after_a_while() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("mark");
        let hangs = format!("sleep 2; touch {}", mark.display());
        let second = Duration::from_secs(1);
        let complaint = run(&hangs, "{}", second).unwrap_err();
        assert_eq!(complaint, "it took longer than 1 s");
        // So is what one that has ended left in the background.
        run(&format!("({hangs}) & true"), "{}", second).unwrap_err();
        thread::sleep(2 * second);
        assert!(!mark.exists());
        assert_eq!(run("cat", "{}", 60 * second).unwrap(), "{}");
    }
}
