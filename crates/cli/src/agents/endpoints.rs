//! The base URLs at which an agent is set up to find its providers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::agents::install::{InstallError, parse_settings, read_text};
use crate::agents::{Agent, layout};

/// The endpoints of an agent by the names of their providers: `anthropic`, `openai`, `gemini`.
pub type Endpoints = BTreeMap<&'static str, String>;

/// Variables that name a provider's base URL.
const VARIABLES: [(&str, &str); 3] = [
    ("anthropic", "ANTHROPIC_BASE_URL"),
    ("openai", "OPENAI_BASE_URL"),
    ("gemini", "GOOGLE_GEMINI_BASE_URL"),
];

/// Names of providers in the settings of OpenCode and pi, and ours.
const NAMES: [(&str, &str); 3] = [
    ("anthropic", "anthropic"),
    ("openai", "openai"),
    ("google", "gemini"),
];

/// The base URLs that `agent` would use in the directory `folder` for `arguments`, as far as they are not
/// the public ones.
///
/// # Errors
///
/// The agent would go elsewhere than a base URL can lead it, or its settings can't be read. The error
/// says what to do. It holds none of their text.
pub fn endpoints(agent: Agent, folder: &Path, arguments: &[String]) -> Result<Endpoints, String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut found = Endpoints::new();
    let providers: &[&str] = match agent {
        Agent::ClaudeCode => &["anthropic"],
        Agent::Codex => &["openai"],
        Agent::GeminiCli => &["gemini"],
        Agent::OpenCode | Agent::Pi => &["anthropic", "openai", "gemini"],
    };
    for (provider, name) in VARIABLES {
        if providers.contains(&provider)
            && let Some(url) = variable(name)
        {
            found.insert(provider, url);
        }
    }
    match agent {
        Agent::ClaudeCode => claude_code(folder, arguments, &variable, &mut found)?,
        Agent::Codex => codex(folder, arguments, &mut found)?,
        Agent::GeminiCli => gemini_cli(folder, &variable, &mut found)?,
        Agent::OpenCode => opencode(folder, &variable, &mut found)?,
        Agent::Pi => pi(&mut found)?,
    }
    Ok(found)
}

fn claude_code(
    folder: &Path,
    arguments: &[String],
    variable: &dyn Fn(&str) -> Option<String>,
    found: &mut Endpoints,
) -> Result<(), String> {
    const ELSEWHERE: [&str; 3] = [
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_VERTEX",
        "CLAUDE_CODE_USE_FOUNDRY",
    ];
    if has_option(arguments, "--settings") {
        return Err("`--settings` in the agent's arguments would replace those that lead it here: put them into a file that it reads by itself".to_owned());
    }
    let managed = Path::new(if cfg!(target_os = "macos") {
        "/Library/Application Support/ClaudeCode/managed-settings.json"
    } else {
        "/etc/claude-code/managed-settings.json"
    });
    let of_user = layout::agent_home(Agent::ClaudeCode).map(|home| home.join("settings.json"));
    // Later files win.
    let files = of_user.into_iter().chain([
        folder.join(".claude/settings.json"),
        folder.join(".claude/settings.local.json"),
        managed.to_owned(),
    ]);
    let mut switches: BTreeMap<&str, String> = ELSEWHERE
        .iter()
        .filter_map(|name| Some((*name, variable(name)?)))
        .collect();
    for file in files {
        let settings = json(&file)?;
        let Some(env) = settings.get("env") else {
            continue;
        };
        for name in ELSEWHERE {
            if let Some(value) = env.get(name) {
                let text = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                switches.insert(name, text);
            }
        }
        if let Some(url) = url_in(&env["ANTHROPIC_BASE_URL"]) {
            if file == managed {
                return Err(format!(
                    "the agent's base URL is set in {}, which nothing here can override: run `offcut serve`, and set its address there",
                    file.display()
                ));
            }
            found.insert("anthropic", url.to_owned());
        }
    }
    let is_on = |value: &str| {
        !matches!(
            value.to_ascii_lowercase().as_str(),
            "" | "0" | "false" | "no" | "off"
        )
    };
    match switches.iter().find(|(_, value)| is_on(value)) {
        Some((name, _)) => Err(format!(
            "{name} is set, so the agent goes to a cloud's own endpoint, past any base URL: unset it, or use the agent's hooks"
        )),
        None => Ok(()),
    }
}

fn codex(folder: &Path, arguments: &[String], found: &mut Endpoints) -> Result<(), String> {
    let sets_provider = |text: &str| {
        let text = text.trim_start();
        ["model_provider", "openai_base_url", "profile"]
            .iter()
            .any(|name| text.starts_with(name))
    };
    let overrides = arguments
        .windows(2)
        .any(|pair| matches!(pair[0].as_str(), "-c" | "--config") && sets_provider(&pair[1]))
        || arguments.iter().any(|argument| {
            let glued = argument
                .strip_prefix("--config=")
                .or_else(|| argument.strip_prefix("-c"));
            glued.is_some_and(sets_provider) || argument == "--oss"
        });
    if overrides
        || ["--profile", "-p"]
            .iter()
            .any(|name| has_option(arguments, name))
    {
        return Err(
            "the agent's arguments choose a provider or a profile: choose it in its config.toml"
                .to_owned(),
        );
    }
    let of_user = layout::agent_home(Agent::Codex).map(|home| home.join("config.toml"));
    let mut settings = toml::Table::new();
    for file in of_user
        .into_iter()
        .chain([folder.join(".codex/config.toml")])
    {
        let parsed: toml::Table = toml::from_str(&text(&file)?)
            .map_err(|_| format!("{} is not TOML: mend it", file.display()))?;
        settings.extend(parsed);
    }
    let value = |table: &toml::Table, name: &str| Some(table.get(name)?.as_str()?.to_owned());
    let profile = value(&settings, "profile").and_then(|name| {
        let profiles = settings.get("profiles")?.as_table()?;
        profiles.get(&name)?.as_table().cloned()
    });
    let of = |name| {
        profile
            .as_ref()
            .and_then(|one| value(one, name))
            .or_else(|| value(&settings, name))
    };
    if let Some(provider) = of("model_provider").filter(|name| name != "openai") {
        return Err(format!(
            "the agent has a `model_provider` of its own, `{provider}`, which no base URL leads here: run `offcut serve` with that provider in `[serve.upstreams]`, and set its `base_url` to the server's"
        ));
    }
    found.extend(of("openai_base_url").map(|url| ("openai", url)));
    Ok(())
}

fn gemini_cli(
    folder: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
    found: &mut Endpoints,
) -> Result<(), String> {
    // The client reads the first file that is there, and does not replace what is set.
    let home = std::env::home_dir();
    let above = folder.ancestors().chain(home.as_deref());
    let mut files = above.flat_map(|folder| [folder.join(".gemini/.env"), folder.join(".env")]);
    let file = files.find(|file| file.is_file());
    let lines = match &file {
        Some(file) => text(file)?,
        None => String::new(),
    };
    let of = |name: &str| {
        variable(name).or_else(|| {
            let mut lines = lines.lines().filter_map(|line| {
                let line = line.trim();
                let (key, value) = line
                    .strip_prefix("export ")
                    .unwrap_or(line)
                    .split_once('=')?;
                (key.trim() == name).then(|| value.trim().trim_matches(['"', '\'']).to_owned())
            });
            lines.find(|value| !value.is_empty())
        })
    };
    if of("GOOGLE_GENAI_USE_VERTEXAI").is_some_and(|value| value == "true" || value == "1") {
        return Err("GOOGLE_GENAI_USE_VERTEXAI is set, so the agent goes to Vertex AI, past any base URL: unset it, or use the agent's hooks".to_owned());
    }
    found.extend(of("GOOGLE_GEMINI_BASE_URL").map(|url| ("gemini", url)));
    Ok(())
}

fn opencode(
    folder: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
    found: &mut Endpoints,
) -> Result<(), String> {
    let mut folders: Vec<PathBuf> = layout::opencode_settings().into_iter().collect();
    let above: Vec<&Path> = folder.ancestors().collect();
    folders.extend(
        above
            .iter()
            .rev()
            .flat_map(|folder| [folder.to_path_buf(), folder.join(".opencode")]),
    );
    folders.extend(variable("OPENCODE_CONFIG_DIR").map(PathBuf::from));
    let mut files: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| ["opencode.json", "opencode.jsonc"].map(|name| folder.join(name)))
        .collect();
    files.extend(layout::opencode_settings().map(|folder| folder.join("config.json")));
    files.extend(variable("OPENCODE_CONFIG").map(PathBuf::from));
    let mut all = Vec::new();
    for file in files {
        let settings = json(&file)?;
        all.push(settings);
    }
    if let Some(text) = variable("OPENCODE_CONFIG_CONTENT") {
        let parsed = serde_json::from_str(&text);
        all.push(parsed.map_err(|_| "OPENCODE_CONFIG_CONTENT is not JSON: mend it")?);
    }
    for settings in all {
        for (theirs, name) in NAMES {
            let Some(url) = url_in(&settings["provider"][theirs]["options"]["baseURL"]) else {
                continue;
            };
            let url = match url
                .strip_prefix("{env:")
                .and_then(|rest| rest.strip_suffix('}'))
            {
                Some(name) => variable(name).ok_or_else(|| {
                    format!("the base URL of {theirs} is in {name}, which is not set")
                })?,
                None if url.contains('{') => {
                    return Err(format!(
                        "the base URL of {theirs} is put together from other places: write it out"
                    ));
                }
                None => url.to_owned(),
            };
            found.insert(name, url);
        }
    }
    Ok(())
}

fn pi(found: &mut Endpoints) -> Result<(), String> {
    let Some(folder) = layout::pi_settings() else {
        return Ok(());
    };
    let models = json(&folder.join("models.json"))?;
    for (theirs, name) in NAMES {
        let url = url_in(&models["providers"][theirs]["baseUrl"]);
        found.extend(url.map(|url| (name, url.to_owned())));
    }
    Ok(())
}

/// A base URL in settings, if there is one.
fn url_in(value: &Value) -> Option<&str> {
    value.as_str().filter(|url| !url.is_empty())
}

fn has_option(arguments: &[String], name: &str) -> bool {
    arguments
        .iter()
        .take_while(|argument| *argument != "--")
        .any(|argument| {
            argument
                .strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        })
}

/// The JSON of a file, with comments or without; null if it is not there.
fn json(file: &Path) -> Result<Value, String> {
    parse_settings(file).map_err(unreadable)
}

/// The text of a file; empty if it is not there.
fn text(file: &Path) -> Result<String, String> {
    read_text(file).map_err(unreadable)
}

#[allow(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn unreadable(error: InstallError) -> String {
    format!("{error}: so nothing tells where the agent's key may go")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn of(agent: Agent, files: &[(&str, &str)], arguments: &[&str]) -> Result<Endpoints, String> {
        let folder = folder(files);
        let arguments: Vec<_> = arguments.iter().map(|&one| one.to_owned()).collect();
        endpoints(agent, folder.path(), &arguments)
    }

    #[test]
    fn base_urls_of_projects_are_found() {
        let url = "http://lab:4000/v1";
        let cases = [
            (
                Agent::ClaudeCode,
                ".claude/settings.local.json",
                format!(r#"{{"env": {{"ANTHROPIC_BASE_URL": "{url}"}}}}"#),
                "anthropic",
            ),
            (
                Agent::Codex,
                ".codex/config.toml",
                format!("openai_base_url = \"{url}\"\n"),
                "openai",
            ),
            (
                Agent::Codex,
                ".codex/config.toml",
                format!("profile = \"p\"\n[profiles.p]\nopenai_base_url = \"{url}\"\n"),
                "openai",
            ),
            (
                Agent::GeminiCli,
                ".gemini/.env",
                format!("A=1\nexport GOOGLE_GEMINI_BASE_URL=\"{url}\"\n"),
                "gemini",
            ),
            (
                Agent::GeminiCli,
                ".env",
                format!("GOOGLE_GEMINI_BASE_URL={url}\n"),
                "gemini",
            ),
            (
                Agent::OpenCode,
                "opencode.json",
                format!(r#"{{"provider": {{"google": {{"options": {{"baseURL": "{url}"}}}}}}}}"#),
                "gemini",
            ),
            (
                Agent::OpenCode,
                "opencode.jsonc",
                format!(
                    r#"{{/* mine */ "provider": {{"openai": {{"options": {{"baseURL": "{url}"}}}}}}}}"#
                ),
                "openai",
            ),
        ];
        for (agent, file, text, provider) in cases {
            let found = of(agent, &[(file, &text)], &[]).unwrap();
            assert_eq!(
                found.get(provider).map(String::as_str),
                Some(url),
                "{agent} {file}"
            );
        }
    }

    #[test]
    fn agents_that_go_past_a_base_url_are_refused() {
        let own = "model_provider = \"corp\"\n[model_providers.corp]\nbase_url = \"http://lab\"\n";
        let cases: [(Agent, &str, &str, &[&str], &str); 9] = [
            (
                Agent::Codex,
                ".codex/config.toml",
                own,
                &[],
                "model_provider",
            ),
            (Agent::Codex, ".codex/config.toml", "x", &[], "config.toml"),
            (
                Agent::Codex,
                "x",
                "",
                &["-c", "model_provider=corp"],
                "arguments",
            ),
            (Agent::Codex, "x", "", &["--profile", "p"], "arguments"),
            (
                Agent::ClaudeCode,
                ".claude/settings.json",
                r#"{"env": {"CLAUDE_CODE_USE_BEDROCK": "1"}}"#,
                &[],
                "BEDROCK",
            ),
            (
                Agent::ClaudeCode,
                ".claude/settings.json",
                "{",
                &[],
                "settings.json",
            ),
            (
                Agent::ClaudeCode,
                "x",
                "",
                &["--settings", "x.json"],
                "--settings",
            ),
            (
                Agent::GeminiCli,
                ".env",
                "GOOGLE_GENAI_USE_VERTEXAI=true",
                &[],
                "VERTEX",
            ),
            (
                Agent::OpenCode,
                "opencode.json",
                r#"{"provider": {"openai": {"options": {"baseURL": "{file:x}"}}}}"#,
                &[],
                "write it out",
            ),
        ];
        for (agent, file, text, arguments, word) in cases {
            let problem = of(agent, &[(file, text)], arguments).unwrap_err();
            assert!(problem.contains(word), "{agent} {file}: {problem}");
        }
        of(Agent::Codex, &[], &["exec", "--", "--profile"]).unwrap();
    }
}
