//! Examines an installation: reads the agent's settings and sends a result of its own through them.

mod probe;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};

use crate::agents::install::{
    AgentFile, Installation, Outcome, command_of_plugin, commands_in, parse_settings, parse_toml,
    read_text, shown,
};
use crate::agents::{Agent, log};
use crate::failure::Failure;
use probe::Probe;

/// Time that an agent has to name its version.
const PATIENCE: Duration = Duration::from_secs(10);

/// A finding about an installation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its weight.
    pub level: Level,
    /// A sentence.
    pub text: String,
    /// Advice, if there is something to do.
    pub advice: Option<String>,
}

/// The weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Something works.
    Works,
    /// Something may be worth a look.
    Note,
    /// Something does not work.
    Problem,
}

fn works(text: String) -> Finding {
    Finding {
        level: Level::Works,
        text,
        advice: None,
    }
}

pub(crate) fn note(text: impl Into<String>, advice: impl Into<String>) -> Finding {
    Finding {
        advice: Some(advice.into()),
        level: Level::Note,
        ..works(text.into())
    }
}

pub(crate) fn problem(text: impl Into<String>, advice: impl Into<String>) -> Finding {
    Finding {
        level: Level::Problem,
        ..note(text, advice)
    }
}

/// Returns true if something does not work.
pub(crate) fn has_problem(findings: &[Finding]) -> bool {
    let mut levels = findings.iter().map(|finding| finding.level);
    levels.any(|level| level == Level::Problem)
}

/// Examines an installation. Leaves nothing in the agent's folders or the store.
pub fn examine(installation: &Installation) -> Vec<Finding> {
    let mut findings = check(installation);
    findings.extend(or_problem(hook(installation)));
    // Both may have found the same file unreadable.
    findings.dedup();
    findings
}

/// Examines what keeps any hook from working: the agent's version and settings.
pub fn check(installation: &Installation) -> Vec<Finding> {
    let agent = installation.agent;
    let mut findings = vec![version(agent, agent.facts().program, PATIENCE)];
    findings.extend(or_problem(switches(installation)));
    findings
}

fn or_problem(found: Result<Vec<Finding>, Failure>) -> Vec<Finding> {
    let advice = "change what it names, then try again";
    found.unwrap_or_else(|error| vec![problem(error.to_string(), advice)])
}

/// Finds the version of an agent by its `program`, which has a time to answer, `patience`.
fn version(agent: Agent, program: &str, patience: Duration) -> Finding {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null());
    let found = probe::output(command, patience).and_then(|output| {
        let text = [output.stdout, output.stderr].join(&b'\n');
        match output.status.success() {
            false => Err(output.status.to_string()),
            true => {
                number(&String::from_utf8_lossy(&text)).ok_or_else(|| "it names none".to_owned())
            }
        }
    });
    let name = |number: [u64; 3]| number.map(|one| one.to_string()).join(".");
    let oldest = agent.facts().oldest;
    match found {
        Ok(found) if found >= oldest => works(format!(
            "{agent} {} lets hooks replace results",
            name(found)
        )),
        Ok(found) => problem(
            format!("{agent} {} may ignore the answers of hooks", name(found)),
            format!("update it to {} or later", name(oldest)),
        ),
        Err(why) => note(
            format!("the version of {agent} is unknown: `{program} --version`: {why}"),
            format!(
                "install version {} or later, with `{program}` on the PATH",
                name(oldest)
            ),
        ),
    }
}

/// The first version number in a text.
fn number(text: &str) -> Option<[u64; 3]> {
    let mut words = text.split(|c: char| !c.is_ascii_digit() && c != '.');
    words.find_map(|word| {
        let mut numbers = word.split('.').map(str::parse);
        let mut next = || numbers.next()?.ok();
        Some([next()?, next()?, next()?])
    })
}

/// Findings about the agent's file, and about a result that is sent through the command in it.
fn hook(installation: &Installation) -> Result<Vec<Finding>, Failure> {
    let agent = installation.agent;
    let install = format!("`offcut install {agent}`");
    let file = &installation.path()?;
    let path = file.display();
    let (settings, commands) = if agent.facts().event.is_empty() {
        let command = command_of_plugin(&read_text(file)?, agent);
        (Value::Null, Vec::from_iter(command))
    } else {
        let settings = parse_settings(file)?;
        let commands = commands_in(&settings, agent);
        (settings, commands)
    };
    let dry = Installation {
        is_dry: true,
        ..installation.clone()
    };
    let planned = dry.install();
    let Some(command) = commands.first() else {
        let advice = match planned {
            Ok(_) => format!("run {install}; add --project FOLDER for one project"),
            Err(error) => error.to_string(),
        };
        let text = format!("Offcut is not installed in {path}");
        return Ok(vec![problem(text, advice)]);
    };
    let mut findings = vec![works(format!("{path} names {}", shown(command)))];
    match planned {
        Ok(planned) if planned.outcome == Outcome::Unchanged => {}
        Ok(_) => findings.push(note(
            format!("{path} is not as this program would install it"),
            format!("{install} brings it up to date"),
        )),
        Err(error) => findings.push(problem(
            format!("{install} can't bring {path} up to date"),
            error.to_string(),
        )),
    }
    findings.extend(probe(installation, command, &settings));
    Ok(findings)
}

/// Findings about what in the agent's settings keeps a hook from running.
fn switches(installation: &Installation) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    let mut off = |file: &Path, what: &str, cure: &str| {
        let text = format!("{} switches {what} off", file.display());
        findings.push(problem(text, format!("remove {cure}")));
    };
    let (agent, file) = (installation.agent, &installation.path()?);
    match agent {
        Agent::ClaudeCode => {
            if parse_settings(file)?["disableAllHooks"] == json!(true) {
                off(file, "all hooks", "`disableAllHooks`");
            }
            let text = AgentFile::read(file)?.text()?.to_owned();
            if !text.is_empty() && serde_json::from_str::<Value>(&text).is_err() {
                findings.push(problem(
                    format!(
                        "{} is not strict JSON, so Claude Code ignores all of it",
                        file.display()
                    ),
                    "remove comments and trailing commas",
                ));
            }
        }
        Agent::GeminiCli => {
            let switches = &parse_settings(file)?["hooksConfig"];
            if switches["enabled"] == json!(false) {
                off(file, "all hooks", "`hooksConfig.enabled`");
            }
            let mut names = switches["disabled"].as_array().into_iter().flatten();
            if names.any(|name| name == "offcut") {
                off(
                    file,
                    "Offcut's hook",
                    "`offcut` from `hooksConfig.disabled`",
                );
            }
        }
        Agent::Codex => {
            if let Some(file) = agent.facts().home.join("config.toml") {
                let config = Value::Object(parse_toml(&file)?);
                if config["features"]["hooks"] == json!(false) {
                    off(&file, "all hooks", "`features.hooks`");
                }
                let roots = config["sandbox_workspace_write"]["writable_roots"].as_array();
                let mut roots = roots.into_iter().flatten().filter_map(Value::as_str);
                if !roots.any(|root| installation.store.starts_with(root)) {
                    let store = json!(installation.store.to_string_lossy());
                    findings.push(note(
                        "in the agent's sandbox, `offcut run` can't store",
                        // A string of JSON is one of TOML too.
                        format!("to use it, put `writable_roots = [{store}]` below `[sandbox_workspace_write]` into {}", file.display()),
                    ));
                }
                // No document says how the client notes its user's trust.
                findings.push(note(
                    "the agent skips a hook until its user trusts it as it is",
                    "start codex, enter `/hooks`, and look whether Offcut's is trusted and switched on",
                ));
            }
        }
        Agent::OpenCode | Agent::Pi => {}
    }
    Ok(findings)
}

/// Sends a result through the command, and follows the hint in the answer.
fn probe(installation: &Installation, command: &str, settings: &Value) -> Vec<Finding> {
    let agent = installation.agent;
    let mut probe = Probe::new(agent);
    let length = probe.original.len();
    let log = installation.home.log();
    let size = |file: &Path| file.metadata().map_or(0, |file| file.len());
    let sizes = || [size(&log), size(&installation.home.journal())];
    let ([logged, answers], began) = (sizes(), Instant::now());
    let (shown, location) = match probe.send(command) {
        Ok(Some(answer)) => answer,
        Ok(None) => {
            let [is_logged, is_answered] = [sizes()[0] != logged, sizes()[1] != answers];
            if is_answered && !is_logged {
                return vec![note(
                    format!("by the settings, a probe of {length} bytes stays as it is"),
                    "lower the limit of the probe's tool in the settings to try the rest",
                )];
            }
            let text = log::read(&log).unwrap_or_default();
            let why = match text.lines().last().filter(|_| is_logged) {
                Some(line) => format!("the log says: {line}"),
                None => format!("the log, {}, does not say why", log.display()),
            };
            return vec![problem(
                format!("a probe of {length} bytes came back unchanged; {why}"),
                "mend what the log names; if it names nothing, look whether the program is still there",
            )];
        }
        Err(complaint) => {
            return vec![problem(
                format!("the hook's command does not run: {complaint}"),
                format!("run `offcut install {agent}` again"),
            )];
        }
    };
    let (shown, took) = (shown.len(), began.elapsed().as_millis());
    let mut findings = vec![works(format!(
        "a probe of {length} bytes became {shown} in {took} ms"
    ))];
    findings.push(match std::fs::read(&location) {
        Ok(bytes) if bytes == probe.original.as_bytes() => {
            works(format!("all of it was in {location}"))
        }
        Ok(_) => problem(
            format!("{location} holds other bytes than the probe"),
            "report this as a bug",
        ),
        Err(error) => problem(
            format!("the agent can't read {location}: {error}"),
            "the store must be a directory on this machine",
        ),
    });
    let about_reading = |list: &&str| {
        let rules = settings["permissions"][list].as_array();
        let mut rules = rules.into_iter().flatten().filter_map(Value::as_str);
        rules.any(|rule| rule.starts_with("Read"))
    };
    if agent == Agent::ClaudeCode
        && let Some(list) = ["deny", "ask"].into_iter().find(about_reading)
    {
        findings.push(note(
            format!("the settings have rules for `Read` in `permissions.{list}`"),
            format!("none of them may be about {location}, or what is cut can't be read back"),
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn an_agent_that_names_no_version_is_not_waited_for() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("claude");
        for (script, expected) in [
            ("sleep 4", "it took longer than 1 s"),
            ("echo 2.1.300; exit 3", "exit status: 3"),
            ("echo none", "it names none"),
            (
                "echo 2.1.300 >&2",
                "claude-code 2.1.300 lets hooks replace results",
            ),
            ("echo v1.0.0", "claude-code 1.0.0 may ignore"),
        ] {
            std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
            let second = Duration::from_secs(1);
            let finding = version(Agent::ClaudeCode, program.to_str().unwrap(), second);
            assert!(finding.text.contains(expected), "{script}: {finding:?}");
        }
    }
}
