//! Examines an installation: reads the agent's settings and sends a result of its own through them.

mod probe;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde::Serialize;
use serde_json::{Value, json};

use crate::agents::install::{
    AgentFile, Installation, command_of_plugin, commands_in, parse_settings, read_text, refused,
};
use crate::agents::{Agent, AgentFacts, log};
use crate::failure::Failure;
use probe::Probe;

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

fn note(text: String, advice: impl Into<String>) -> Finding {
    Finding {
        level: Level::Note,
        text,
        advice: Some(advice.into()),
    }
}

fn problem(text: String, advice: impl Into<String>) -> Finding {
    Finding {
        level: Level::Problem,
        ..note(text, advice)
    }
}

/// Examines an installation. Leaves nothing in the agent's folders or the store.
pub fn examine(installation: &Installation) -> Vec<Finding> {
    let mut findings = vec![version(installation.agent)];
    match commands(installation, &mut findings) {
        Ok(Some((command, settings))) => findings.extend(probe(installation, &command, &settings)),
        Ok(None) => {}
        Err(error) => findings.push(problem(
            error.to_string(),
            "change what it names, then try again",
        )),
    }
    findings
}

/// Finds the version of the agent on the PATH.
fn version(agent: Agent) -> Finding {
    let AgentFacts {
        program, oldest, ..
    } = agent.facts();
    let output = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output();
    let output = output.ok().filter(|output| output.status.success());
    let texts = output.map(|output| [output.stdout, output.stderr]);
    let mut texts = texts.iter().flatten();
    let found = texts.find_map(|text| number(&String::from_utf8_lossy(text)));
    let name = |number: [u64; 3]| number.map(|one| one.to_string()).join(".");
    let wanted = name(*oldest);
    match found {
        Some(found) if found >= *oldest => works(format!(
            "{agent} {} lets hooks replace results",
            name(found)
        )),
        Some(found) => problem(
            format!("{agent} {} may ignore the answers of hooks", name(found)),
            format!("update it to {wanted} or later"),
        ),
        None => note(
            format!("the version of {agent} is unknown: `{program} --version` fails or names none"),
            format!("install version {wanted} or later, with `{program}` on the PATH"),
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

/// The command that the agent runs, and its settings, with findings about them. `None` if Offcut is not installed.
fn commands(
    installation: &Installation,
    findings: &mut Vec<Finding>,
) -> Result<Option<(String, Value)>, Failure> {
    let agent = installation.agent;
    let install = format!("`offcut install {agent}`");
    let file = &installation.path()?;
    let path = file.display();
    let is_up_to_date = installation.is_up_to_date()?;
    let (settings, commands) = if agent.facts().event.is_empty() {
        let command = command_of_plugin(&read_text(file)?, agent);
        (Value::Null, Vec::from_iter(command))
    } else {
        let settings = parse_settings(file)?;
        let commands = commands_in(&settings, agent);
        (settings, commands)
    };
    findings.extend(switches(agent, file, &settings)?);
    let Some(command) = commands.first() else {
        findings.push(problem(
            format!("Offcut is not installed in {path}"),
            format!("run {install}; add --project FOLDER for one project"),
        ));
        return Ok(None);
    };
    findings.push(works(format!("{path} names {command}")));
    if !is_up_to_date {
        findings.push(note(
            format!("{path} is not as this program would install it"),
            format!("{install} brings it up to date"),
        ));
    }
    Ok(Some((command.clone(), settings)))
}

/// Findings about what keeps a hook in `settings`, those of `file`, from running.
fn switches(agent: Agent, file: &Path, settings: &Value) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    let mut off = |file: &Path, what: &str, cure: &str| {
        let text = format!("{} switches {what} off", file.display());
        findings.push(problem(text, format!("remove {cure}")));
    };
    match agent {
        Agent::ClaudeCode => {
            if settings["disableAllHooks"] == json!(true) {
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
            let switches = &settings["hooksConfig"];
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
            if let Some(config) = agent.facts().home.join("config.toml") {
                if are_hooks_off(&config)? {
                    off(&config, "all hooks", "`features.hooks`");
                }
                // No document says how the client notes its user's trust.
                findings.push(note(
                    "the agent skips a hook until its user trusts it as it is".to_owned(),
                    "start codex, enter `/hooks`, and look whether Offcut's is trusted and switched on",
                ));
            }
        }
        Agent::OpenCode | Agent::Pi => {}
    }
    Ok(findings)
}

/// Returns true if the settings of Codex in the file at `config` switch hooks off.
fn are_hooks_off(config: &Path) -> Result<bool, Failure> {
    let settings: toml::Table = toml::from_str(&read_text(config)?).map_err(|_| {
        // Its message would quote the line, and settings hold secrets.
        refused(config, "it is not TOML; mend it, and try again")
    })?;
    let flag = settings.get("features").and_then(|all| all.get("hooks"));
    Ok(flag.and_then(toml::Value::as_bool) == Some(false))
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

    #[test]
    fn settings_of_codex_may_switch_hooks_off_and_are_not_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config.toml");
        for (settings, expected) in [("", false), ("features.hooks = false", true)] {
            std::fs::write(&config, settings).unwrap();
            assert_eq!(are_hooks_off(&config).unwrap(), expected, "{settings}");
        }
        std::fs::write(&config, "key = sk-secret").unwrap();
        let error = are_hooks_off(&config).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
        assert!(std::error::Error::source(&error).is_none());
    }
}
