//! Examines an installation: reads the agent's settings and sends an event of its own through them.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use offcut::hint::Hint;
use serde_json::{Value, json};

use crate::Agent;
use crate::install::{Installation, command_of, parse_settings, settings_path};

/// The oldest version of Claude Code whose hooks can replace a result.
const OLDEST: (u64, u64, u64) = (2, 1, 121);
/// Time for which the hook's command may run.
const PATIENCE: Duration = Duration::from_secs(30);

/// A finding about an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Its weight.
    pub level: Level,
    /// A sentence.
    pub text: String,
    /// Advice, if there is something to do.
    pub advice: Option<String>,
}

/// The weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Level {
    /// Something works.
    Works,
    /// Something may be worth a look.
    Note,
    /// Something does not work.
    Problem,
}

impl Finding {
    fn works(text: impl Into<String>) -> Self {
        let (level, text) = (Level::Works, text.into());
        Self {
            level,
            text,
            advice: None,
        }
    }

    fn note(text: impl Into<String>, advice: impl Into<String>) -> Self {
        let (level, text, advice) = (Level::Note, text.into(), Some(advice.into()));
        Self {
            level,
            text,
            advice,
        }
    }

    fn problem(text: impl Into<String>, advice: impl Into<String>) -> Self {
        let (level, text, advice) = (Level::Problem, text.into(), Some(advice.into()));
        Self {
            level,
            text,
            advice,
        }
    }
}

/// A kind of result, and whether the agent lets a hook shorten it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Coverage {
    /// The results.
    pub results: &'static str,
    /// Their treatment.
    pub treatment: &'static str,
}

/// The results that `agent` lets a hook shorten, and those that it does not.
#[must_use]
pub fn coverage(agent: Agent) -> &'static [Coverage] {
    match agent {
        Agent::ClaudeCode => CLAUDE_CODE,
        _ => &[],
    }
}

const CLAUDE_CODE: &[Coverage] = &[
    row(
        "shell commands",
        "shortened, also over 30 kB, where the agent keeps a file",
    ),
    row(
        "shell commands that fail",
        "unchanged: no hook can replace them",
    ),
    row("reads, searches, web pages", "shortened"),
    row(
        "MCP tools, subagents",
        "text is shortened; structured content is unchanged",
    ),
    row("edits, images, notebooks", "unchanged"),
    row("stored results that it reads", "unchanged"),
];

const fn row(results: &'static str, treatment: &'static str) -> Coverage {
    Coverage { results, treatment }
}

/// Examines an installation. Leaves nothing behind.
#[must_use]
pub fn examine(installation: &Installation) -> Vec<Finding> {
    let mut findings = vec![version(installation.agent)];
    let (agent, install) = (
        installation.agent,
        format!("offcut install {}", installation.agent),
    );
    let path = match settings_path(agent, &installation.scope) {
        Ok(path) => path,
        Err(error) => {
            findings.push(Finding::problem(error.to_string(), "name another agent"));
            return findings;
        }
    };
    let settings = match parse_settings(&path) {
        Ok(settings) => settings,
        Err(error) => {
            findings.push(Finding::problem(error.to_string(), "mend the file"));
            return findings;
        }
    };
    let path = path.display();
    let commands = commands(&settings, agent);
    let Some(command) = commands.first() else {
        let text = format!("{path} does not name Offcut");
        findings.push(Finding::problem(text, format!("run `{install}`")));
        return findings;
    };
    findings.push(Finding::works(format!("{path} names Offcut: {command}")));
    if commands.len() > 1 {
        let text = format!("{path} names Offcut {} times", commands.len());
        findings.push(Finding::note(text, "leave one of its hooks"));
    }
    if command_of(installation).is_ok_and(|expected| expected != *command) {
        let text = format!(
            "the settings name another program than {}",
            installation.program.display()
        );
        findings.push(Finding::note(
            text,
            format!("`{install}` puts this one there"),
        ));
    }
    if settings["disableAllHooks"] == json!(true) {
        let text = format!("{path} switches all hooks off");
        findings.push(Finding::problem(text, "remove `disableAllHooks`"));
    }
    findings.extend(probe(installation, command, &settings));
    findings
}

/// Finds the version of the agent on the PATH.
fn version(agent: Agent) -> Finding {
    let output = Command::new("claude")
        .arg("--version")
        .stdin(Stdio::null())
        .output();
    let output = output.ok().filter(|output| output.status.success());
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let version = text
        .as_deref()
        .and_then(|text| text.split_whitespace().next());
    let mut numbers = version
        .into_iter()
        .flat_map(|version| version.split('.'))
        .map(str::parse);
    let mut next = || numbers.next()?.ok();
    let oldest = format!("{}.{}.{}", OLDEST.0, OLDEST.1, OLDEST.2);
    match (next(), next(), next()) {
        (Some(major), Some(minor), Some(patch)) if (major, minor, patch) >= OLDEST => {
            Finding::works(format!(
                "{agent} {major}.{minor}.{patch} lets hooks replace results"
            ))
        }
        (Some(major), Some(minor), Some(patch)) => Finding::problem(
            format!("{agent} {major}.{minor}.{patch} ignores what hooks answer"),
            format!("update it to {oldest} or later"),
        ),
        _ => Finding::note(
            format!("the version of {agent} is unknown: `claude --version` does not tell it"),
            format!("it must be {oldest} or later"),
        ),
    }
}

/// The commands in an agent's settings that answer with Offcut.
fn commands(settings: &Value, agent: Agent) -> Vec<String> {
    let ours = format!(" hook {agent}");
    let groups = settings
        .pointer("/hooks/PostToolUse")
        .and_then(Value::as_array);
    let hooks = groups
        .into_iter()
        .flatten()
        .filter_map(|group| group["hooks"].as_array());
    let commands = hooks.flatten().filter_map(|hook| hook["command"].as_str());
    commands
        .filter(|command| command.contains(&ours))
        .map(str::to_owned)
        .collect()
}

/// Sends an event through the command, and follows the hint in the answer.
fn probe(installation: &Installation, command: &str, settings: &Value) -> Vec<Finding> {
    let session = format!("offcut-doctor-{}", std::process::id());
    let original: String = (0..2_000)
        .map(|n| format!("line {n} of the probe\n"))
        .collect();
    let event = json!({
        "hook_event_name": "PostToolUse", "session_id": session, "cwd": "/", "tool_use_id": "probe",
        "tool_name": "Bash", "tool_input": {"command": "true"},
        "tool_response": {"stdout": original, "stderr": "", "interrupted": false},
    });
    let log = installation.home.log();
    let length = || log.metadata().map_or(0, |log| log.len());
    let before = length();
    let began = Instant::now();
    let answer = run(command, &event.to_string());
    let shown = answer.as_deref().map(shown);
    let (shown, location) = match shown {
        Ok(Some((shown, location))) => (shown, location),
        Ok(None) => {
            let last = std::fs::read_to_string(&log).unwrap_or_default();
            let why = match last.lines().last().filter(|_| length() != before) {
                Some(line) => format!("its log says: {line}"),
                None => format!("its log, {}, does not say why", log.display()),
            };
            let text = format!(
                "a probe of {} bytes came back unchanged; {why}",
                original.len()
            );
            return vec![Finding::problem(
                text,
                "mend what the log names; without an entry, look at the limits in the settings and whether the program is still there",
            )];
        }
        Err(problem) => {
            return vec![Finding::problem(
                format!("the hook's command does not run: {problem}"),
                format!("run `offcut install {}` again", installation.agent),
            )];
        }
    };
    let mut findings = vec![Finding::works(format!(
        "a probe of {} bytes became {} in {} ms",
        original.len(),
        shown.len(),
        began.elapsed().as_millis()
    ))];
    let path = PathBuf::from(&location);
    findings.push(match std::fs::read(&path) {
        Ok(bytes) if bytes == original.as_bytes() => {
            Finding::works(format!("all of it was in {location}"))
        }
        Ok(_) => Finding::problem(
            format!("{location} holds other bytes than the probe"),
            "report this as a bug",
        ),
        Err(error) => Finding::problem(
            format!("the agent can't read {location}: {error}"),
            "the store must be a directory on this machine",
        ),
    });
    findings.push(if is_allowed(settings, &path) {
        Finding::works("the agent may read the store without asking")
    } else {
        Finding::note(
            "the agent asks before it reads the store",
            format!("run `offcut install {}` again", installation.agent),
        )
    });
    remove(&path, &session);
    findings
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

/// The text in an answer, and the location in its hint.
fn shown(answer: &str) -> Option<(String, String)> {
    let answer: Value = serde_json::from_str(answer).ok()?;
    let shown = answer
        .pointer("/hookSpecificOutput/updatedToolOutput/stdout")?
        .as_str()?;
    let hint = Hint::parse(shown)?;
    Some((shown.to_owned(), hint.location?.as_str().to_owned()))
}

/// Returns true if a rule of the settings lets the agent read `path`.
fn is_allowed(settings: &Value, path: &Path) -> bool {
    let rules = settings
        .pointer("/permissions/allow")
        .and_then(Value::as_array);
    let rules = rules.into_iter().flatten().filter_map(Value::as_str);
    let mut folders = rules.filter_map(|rule| rule.strip_prefix("Read(/")?.strip_suffix("/**)"));
    folders.any(|folder| path.starts_with(folder))
}

/// Removes the probe from the store, with the folders that only it had.
fn remove(path: &Path, session: &str) {
    // Nothing else is in the folders of a session with this name.
    let of_session = path.ancestors().find(|folder| folder.ends_with(session));
    if let Some(folder) = of_session {
        _ = std::fs::remove_dir_all(folder);
    }
}
