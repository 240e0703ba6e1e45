//! Examines an installation: reads the agent's settings and sends a result of its own through them.

mod codex;
mod finding;
mod probe;
mod servers;

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::agents::install::{
    AgentFile, Installation, command_of_plugin, commands_in, installed_path, is_strict,
    parse_settings, read_text,
};
use crate::agents::{Agent, AgentFacts, log};
use crate::failure::Failure;
use probe::Probe;

pub use finding::{Finding, Level};

/// Examines an installation. Leaves nothing in the agent's folders or the store.
pub fn examine(installation: &Installation) -> Vec<Finding> {
    let mut findings = vec![version(installation.agent)];
    match commands(installation, &mut findings) {
        Ok((Some(command), settings)) => findings.extend(probe(installation, &command, &settings)),
        Ok((None, _)) => {}
        Err(error) => findings.push(Finding::problem(
            error.to_string(),
            "change what it names, then try again",
        )),
    }
    findings.extend(servers::findings(installation));
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
    let name = |[major, minor, patch]: [u64; 3]| format!("{major}.{minor}.{patch}");
    let oldest_name = name(*oldest);
    match found {
        Some(found) if found >= *oldest => Finding::works(format!(
            "{agent} {} lets hooks replace results",
            name(found)
        )),
        Some(found) => Finding::problem(
            format!("{agent} {} may ignore the answers of hooks", name(found)),
            format!("update it to {oldest_name} or later"),
        ),
        None => Finding::note(
            format!("the version of {agent} is unknown: `{program} --version` fails or names none"),
            format!("install version {oldest_name} or later, with `{program}` on the PATH"),
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

/// The command that the agent runs, and its settings, with findings about them.
fn commands(
    installation: &Installation,
    findings: &mut Vec<Finding>,
) -> Result<(Option<String>, Value), Failure> {
    let agent = installation.agent;
    let install = format!("`offcut install {agent}`");
    let file = &installed_path(agent, &installation.scope)?;
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
    let off = |what: &str, cure: &str| {
        let text = format!("{path} switches {what} off");
        Finding::problem(text, format!("remove {cure}"))
    };
    if agent == Agent::ClaudeCode && settings["disableAllHooks"] == json!(true) {
        findings.push(off("all hooks", "`disableAllHooks`"));
    }
    let switches = settings
        .get("hooksConfig")
        .filter(|_| agent == Agent::GeminiCli);
    if let Some(switches) = switches {
        if switches["enabled"] == json!(false) {
            findings.push(off("all hooks", "`hooksConfig.enabled`"));
        }
        let mut names = switches["disabled"].as_array().into_iter().flatten();
        if names.any(|name| name == "offcut") {
            findings.push(off("Offcut's hook", "`offcut` from `hooksConfig.disabled`"));
        }
    }
    let Some(command) = commands.first() else {
        findings.push(Finding::problem(
            format!("Offcut is not installed in {path}"),
            format!("run {install}; add --project FOLDER for one project"),
        ));
        return Ok((None, settings));
    };
    findings.push(Finding::works(format!("{path} names {command}")));
    if commands.len() > 1 {
        let text = format!("{path} names Offcut {} times", commands.len());
        findings.push(Finding::note(text, "leave one of its hooks"));
    }
    if !is_up_to_date {
        findings.push(Finding::note(
            format!("{path} is not as this program would install it"),
            format!("{install} brings it up to date"),
        ));
    }
    if agent == Agent::ClaudeCode
        && serde_json::from_str::<Value>(AgentFile::read(file)?.text()?).is_err()
    {
        findings.push(Finding::problem(
            format!("{path} is not strict JSON, so Claude Code ignores all of it"),
            "remove comments and trailing commas",
        ));
    }
    if agent == Agent::GeminiCli && !is_strict(&read_text(file)?) {
        findings.push(Finding::problem(
            format!("{path} has commas after last values, with which Gemini CLI does not start"),
            "remove them",
        ));
    }
    if agent == Agent::Codex
        && let Some(config) = agent.facts().home.join("config.toml")
    {
        findings.extend(codex::findings(&config)?);
    }
    Ok((Some(command.clone()), settings))
}

/// Sends a result through the command, and follows the hint in the answer.
fn probe(installation: &Installation, command: &str, settings: &Value) -> Vec<Finding> {
    let agent = installation.agent;
    let mut probe = Probe::new(agent);
    let length = probe.original.len();
    let log = installation.home.log();
    let size = |file: &Path| file.metadata().map_or(0, |file| file.len());
    let sizes = || [size(&log), size(&installation.home.journal())];
    let [logged, answers] = sizes();
    let answered = match probe.send(command) {
        Ok(Some(answered)) => answered,
        Ok(None) => {
            let [is_logged, is_answered] = [sizes()[0] != logged, sizes()[1] != answers];
            if is_answered && !is_logged {
                return vec![Finding::note(
                    format!("by the settings, a probe of {length} bytes stays as it is"),
                    "lower the limit of the probe's tool in the settings to try the rest",
                )];
            }
            let text = log::read(&log).unwrap_or_default();
            let why = match text.lines().last().filter(|_| is_logged) {
                Some(line) => format!("the log says: {line}"),
                None => format!("the log, {}, does not say why", log.display()),
            };
            return vec![Finding::problem(
                format!("a probe of {length} bytes came back unchanged; {why}"),
                "mend what the log names; if it names nothing, look whether the program is still there",
            )];
        }
        Err(problem) => {
            return vec![Finding::problem(
                format!("the hook's command does not run: {problem}"),
                format!("run `offcut install {agent}` again"),
            )];
        }
    };
    let location = &answered.location;
    let (shown, took) = (answered.shown.len(), answered.took.as_millis());
    let mut findings = vec![Finding::works(format!(
        "a probe of {length} bytes became {shown} in {took} ms"
    ))];
    findings.push(match std::fs::read(location) {
        Ok(bytes) if bytes == probe.original.as_bytes() => {
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
    let about_reading = |list: &&str| {
        let rules = settings["permissions"][list].as_array();
        let mut rules = rules.into_iter().flatten().filter_map(Value::as_str);
        rules.any(|rule| rule.starts_with("Read"))
    };
    if agent == Agent::ClaudeCode
        && let Some(list) = ["deny", "ask"].into_iter().find(about_reading)
    {
        findings.push(Finding::note(
            format!("the settings have rules for `Read` in `permissions.{list}`"),
            format!("none of them may be about {location}, or what is cut can't be read back"),
        ));
    }
    findings
}
