//! A result of our own that goes through a hook as an agent's does.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use offcut::hint::Hint;
use serde_json::{Value, json};

use crate::agents::Agent;
use crate::agents::journal::PROBES;

/// Time for which the hook's command may run.
const PATIENCE: Duration = Duration::from_secs(30);

/// An answered probe.
pub(super) struct Answered {
    /// The text that the agent would show.
    pub(super) shown: String,
    /// The location in its hint.
    pub(super) location: String,
    /// The time from start to answer.
    pub(super) took: Duration,
}

/// A probe, and the places where it leaves content.
pub(super) struct Probe {
    agent: Agent,
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
        let session = format!("{PROBES}{}", std::process::id());
        let projects = agent.facts().home.join("tmp");
        let projects = projects.filter(|_| agent == Agent::GeminiCli);
        let project = projects.map(|folder| folder.join(&session));
        let above = project
            .iter()
            .flat_map(|project| project.ancestors().skip(1));
        let missing = above.take_while(|folder| !folder.exists());
        Self {
            agent,
            original: (0..2_000)
                .map(|n| format!("line {n} of the probe\n"))
                .collect(),
            missing: missing.map(PathBuf::from).collect(),
            project,
            stored: None,
            session,
        }
    }

    /// Sends the probe through `command`, a line of a shell. `None` if it comes back unchanged.
    pub(super) fn send(&mut self, command: &str) -> Result<Option<Answered>, String> {
        if let Some(project) = &self.project {
            std::fs::create_dir_all(project.join("chats")).map_err(|error| error.to_string())?;
        }
        let began = Instant::now();
        let answer = run(command, &self.event().to_string())?;
        let took = began.elapsed();
        let shown = self.shown(&answer);
        let location = shown
            .as_deref()
            .and_then(|shown| Hint::parse(shown)?.location);
        let location = location.map(|location| location.as_str().to_owned());
        self.stored = location.as_ref().map(PathBuf::from);
        Ok(shown.zip(location).map(|(shown, location)| Answered {
            shown,
            location,
            took,
        }))
    }

    fn event(&self) -> Value {
        let (result, name) = (&self.original, self.agent.facts().event);
        match self.agent {
            Agent::ClaudeCode => json!({
                "hook_event_name": name, "session_id": self.session, "cwd": "/", "tool_use_id": "probe",
                "tool_name": "Bash", "tool_input": {"command": "true"},
                "tool_response": {"stdout": result, "stderr": "", "interrupted": false},
            }),
            Agent::Codex => json!({
                "hook_event_name": name, "session_id": self.session, "cwd": "/", "tool_use_id": "probe",
                "tool_name": "mcp__offcut__probe", "tool_input": {},
                "tool_response": {"content": [{"type": "text", "text": result}], "isError": false},
            }),
            Agent::GeminiCli => json!({
                "hook_event_name": name, "session_id": self.session, "cwd": "/",
                "transcript_path": self.project.as_ref().map(|project| project.join("chats/probe.jsonl")),
                "timestamp": "2026-01-01T00:00:00.000Z", "tool_name": "run_shell_command",
                "tool_input": {"command": "true"}, "tool_response": {"llmContent": result},
            }),
            _ => json!({
                "session_id": self.session, "cwd": "/", "tool_use_id": "probe", "tool_name": "bash",
                "tool_input": {"command": "true"}, "tool_response": result,
            }),
        }
    }

    /// The text that the agent would show instead of the result.
    fn shown(&self, answer: &str) -> Option<String> {
        let answer: Value = serde_json::from_str(answer).ok()?;
        let place = match self.agent {
            Agent::ClaudeCode => "/hookSpecificOutput/updatedToolOutput/stdout",
            Agent::Codex | Agent::GeminiCli => "/reason",
            Agent::OpenCode | Agent::Pi => "/output",
        };
        Some(answer.pointer(place)?.as_str()?.to_owned())
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
fn run(command: &str, event: &str) -> Result<String, String> {
    let spawned = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = spawned.map_err(|error| error.to_string())?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command that does not read its input ends without an answer, which is reported below.
        _ = stdin.write_all(event.as_bytes());
    }
    let is_over = wait(&mut child);
    let mut text = [String::new(), String::new()];
    if is_over && let (Some(stdout), Some(stderr)) = (&mut child.stdout, &mut child.stderr) {
        let read = stdout.read_to_string(&mut text[0]);
        read.and_then(|_| stderr.read_to_string(&mut text[1]))
            .map_err(|error| error.to_string())?;
    }
    let [stdout, stderr] = text;
    match (is_over, stderr.trim()) {
        (false, _) => Err(format!("it took longer than {} s", PATIENCE.as_secs())),
        (true, "") => Ok(stdout),
        (true, complaint) => Err(complaint.to_owned()),
    }
}

/// Waits for a process, whose output fits into its pipe. Returns false after killing it if it takes too long.
fn wait(child: &mut Child) -> bool {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if let Ok(Some(_)) = child.try_wait() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    _ = child.kill();
    _ = child.wait();
    false
}
