//! The base URLs at which an agent is set up to find its providers.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::agents::Agent;
use crate::agents::install::{parse_settings, read_text};
use crate::failure::Failure;

/// The endpoints of an agent by the names of their providers: `anthropic`, `openai`, `gemini`.
pub(crate) type Endpoints = BTreeMap<&'static str, String>;

/// Names of providers in the settings of OpenCode and pi, and ours.
const NAMES: [(&str, &str); 3] = [
    ("anthropic", "anthropic"),
    ("openai", "openai"),
    ("google", "gemini"),
];

/// The variables of the environment.
type Variables = BTreeMap<String, String>;

/// The base URLs that `agent` would use in the directory `folder` for `arguments`, as far as they are not
/// the public ones.
///
/// # Errors
///
/// The agent would go elsewhere than a base URL can lead it, its settings can't be read, or it depends on
/// more than they say which URL it takes. The error says what to do. It holds none of their text.
pub(crate) fn endpoints(
    agent: Agent,
    folder: &Path,
    arguments: &[String],
) -> Result<Endpoints, String> {
    let text = |text: OsString| text.into_string().ok();
    let variables = std::env::vars_os();
    let variables = variables
        .filter_map(|(name, value)| text(name).zip(text(value)))
        .collect();
    of(agent, folder, arguments, &variables)
}

fn of(
    agent: Agent,
    folder: &Path,
    arguments: &[String],
    variables: &Variables,
) -> Result<Endpoints, String> {
    match agent {
        Agent::ClaudeCode => claude_code(folder, arguments, variables),
        Agent::Codex => {
            let settings = agent.facts().settings;
            let system = Some(PathBuf::from("/etc/codex/config.toml"));
            let own = [system, settings.join("config.toml")];
            let own: Vec<_> = own.into_iter().flatten().collect();
            let login = settings.join("auth.json");
            codex(&own, login.as_deref(), folder, arguments, variables)
        }
        Agent::GeminiCli => gemini_cli(folder, variables),
        Agent::OpenCode => opencode(folder, arguments, variables),
        Agent::Pi => pi(agent.facts().settings.path().as_deref(), arguments),
    }
}

fn claude_code(
    folder: &Path,
    arguments: &[String],
    variables: &Variables,
) -> Result<Endpoints, String> {
    // Variables that begin so lead to a cloud's endpoint, but for the harmless ones.
    const ELSEWHERE: &str = "CLAUDE_CODE_USE_";
    const HARMLESS: [&str; 2] = ["NATIVE_FILE_SEARCH", "POWERSHELL_TOOL"];
    const URL: &str = "ANTHROPIC_BASE_URL";
    for option in ["--settings", "--setting-sources"] {
        if has_option(arguments, option) {
            return Err(format!(
                "`{option}` in the agent's arguments changes which settings lead it: put them into a file that it reads by itself"
            ));
        }
    }
    let managed = Path::new(if cfg!(target_os = "macos") {
        "/Library/Application Support/ClaudeCode/managed-settings.json"
    } else {
        "/etc/claude-code/managed-settings.json"
    });
    let of_user = Agent::ClaudeCode.facts().settings.join("settings.json");
    // Later files win.
    let files = of_user.into_iter().chain([
        folder.join(".claude/settings.json"),
        folder.join(".claude/settings.local.json"),
        managed.to_owned(),
    ]);
    let mut set = variables.clone();
    for file in files {
        let settings = json(&file)?;
        for (name, value) in settings["env"].as_object().into_iter().flatten() {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            if name == URL && file == managed {
                return Err(format!(
                    "the agent's base URL is set in {}, which nothing here can override: run `offcut serve`, and set its address there",
                    file.display()
                ));
            }
            set.insert(name.clone(), text);
        }
    }
    let elsewhere = set.iter().find(|(name, value)| {
        let what = name.strip_prefix(ELSEWHERE);
        what.is_some_and(|what| !HARMLESS.contains(&what)) && is_on(value)
    });
    match elsewhere {
        Some((name, _)) => Err(format!(
            "{name} is set, so the agent goes to a cloud's own endpoint, past any base URL: unset it, or use the agent's hooks"
        )),
        None => {
            let url = given(&set, URL);
            Ok(Endpoints::from_iter(url.map(|url| ("anthropic", url))))
        }
    }
}

/// Reads the `own` files of Codex, the stronger last, and the one of its `login`.
fn codex(
    own: &[PathBuf],
    login: Option<&Path>,
    folder: &Path,
    arguments: &[String],
    variables: &Variables,
) -> Result<Endpoints, String> {
    const CHOICES: [&str; 3] = ["model_provider", "openai_base_url", "profile"];
    let arguments = options(arguments);
    let chooses = |text: &str| {
        let text = text.trim_start();
        CHOICES.iter().any(|name| text.starts_with(name))
    };
    let names_one = |argument: &String| {
        let mut names = ["-p", "--profile", "--oss"].iter();
        names.any(|name| argument.starts_with(name))
    };
    if values(arguments, "--config", "-c").any(chooses) || arguments.iter().any(names_one) {
        return Err(
            "the agent's arguments choose a provider or a profile: choose it in its config.toml"
                .to_owned(),
        );
    }
    let is_own = |file: &Path| own.iter().any(|own| is_same_file(own, file));
    let others = folder
        .ancestors()
        .map(|folder| folder.join(".codex/config.toml"))
        .chain(["/etc/codex/managed_config.toml".into()])
        .filter(|file| !is_own(file));
    let mut all = Vec::new();
    for file in own.iter().cloned().chain(others) {
        let table: toml::Table = toml::from_str(&text(&file)?)
            .map_err(|_| format!("{} is not TOML: mend it", file.display()))?;
        // Some versions take them from trusted projects, and others from none.
        let foreign = CHOICES.iter().find(|name| table.contains_key(**name));
        if let Some(name) = foreign.filter(|_| !is_own(&file)) {
            return Err(format!(
                "`{name}` is set in {}, and it depends on the agent's version whether that counts: set it in your own config.toml alone",
                file.display()
            ));
        }
        all.push(table);
    }
    let profiles = all
        .iter()
        .filter_map(|table| table.get("profiles")?.as_table());
    let mut profiles = profiles.flat_map(toml::Table::values);
    if all.iter().any(|table| table.contains_key("profile"))
        && profiles.any(|one| CHOICES.iter().any(|name| one.get(name).is_some()))
    {
        return Err("a profile of the agent chooses its endpoint, and it depends on the agent's version whether that counts: set it above the profiles in your config.toml".to_owned());
    }
    let chosen = |name| {
        let mut values = all.iter().rev().filter_map(|table| table.get(name));
        Some(values.next()?.as_str()?.to_owned())
    };
    if let Some(provider) = chosen("model_provider").filter(|name| name != "openai") {
        return Err(format!(
            "the agent has a `model_provider` of its own, `{provider}`, which no base URL leads here: run `offcut serve` with that provider in `[serve.upstreams]`, and set its `base_url` to the server's"
        ));
    }
    if let Some(url) = chosen("openai_base_url") {
        return Ok([("openai", url)].into());
    }
    let login = login.map(json).transpose()?.unwrap_or_default();
    let is_key = match &login["auth_mode"] {
        Value::Null => login["tokens"].is_null() || login["OPENAI_API_KEY"].is_string(),
        mode => mode == "apikey",
    };
    // Only `exec` takes this one, over any login.
    let has_key =
        arguments.iter().any(|one| one == "exec") && given(variables, "CODEX_API_KEY").is_some();
    match given(variables, "OPENAI_BASE_URL") {
        Some(_) => Err(
            "OPENAI_BASE_URL is set, which only old versions of the agent read: unset it, and set `openai_base_url` in its config.toml if it is meant".to_owned(),
        ),
        None if !is_key && !has_key => Err(
            "the agent logs in otherwise than by an API key, as its auth.json says, and api.openai.com refuses that: run `codex login --with-api-key`, or use the agent's hooks (`offcut install codex`)".to_owned(),
        ),
        None => Ok(Endpoints::new()),
    }
}

fn gemini_cli(folder: &Path, variables: &Variables) -> Result<Endpoints, String> {
    const URL: &str = "GOOGLE_GEMINI_BASE_URL";
    const ELSEWHERE: [&str; 2] = ["GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"];
    const ACCOUNTS: [&str; 2] = ["/security/auth/selectedType", "/selectedAuthType"];
    if let Some(name) = ELSEWHERE
        .iter()
        .find(|name| given(variables, name).is_some_and(|value| is_on(&value)))
    {
        return Err(format!(
            "{name} is set, so the agent goes past any base URL: unset it, or use the agent's hooks"
        ));
    }
    let home = given(variables, "GEMINI_CLI_HOME")
        .map(PathBuf::from)
        .or_else(std::env::home_dir);
    let system = given(variables, "GEMINI_CLI_SYSTEM_SETTINGS_PATH");
    let system = system.unwrap_or_else(|| "/etc/gemini-cli/settings.json".to_owned());
    let above = folder.ancestors().chain(home.as_deref());
    let in_folders = above
        .clone()
        .map(|folder| folder.join(".gemini/settings.json"));
    for file in in_folders.chain([system.into()]) {
        let settings = json(&file)?;
        let mut accounts = ACCOUNTS
            .iter()
            .filter_map(|path| settings.pointer(path)?.as_str());
        if accounts.any(|one| one != "gemini-api-key") {
            return Err(format!(
                "the agent logs in otherwise than by an API key, as {} says, and goes past any base URL: choose `gemini-api-key` there, or use the agent's hooks",
                file.display()
            ));
        }
    }
    // It reads one of them, which depends on its version and on the folders that it trusts, and does not replace
    // what is set, be it empty.
    for file in above.flat_map(|folder| [folder.join(".gemini/.env"), folder.join(".env")]) {
        let text = text(&file)?;
        let mut names = [URL].into_iter().chain(ELSEWHERE);
        if let Some(name) = names.find(|name| text.contains(name) && !variables.contains_key(*name))
        {
            return Err(format!(
                "{} names {name}: set that variable in the environment, which counts more, or set it to nothing",
                file.display()
            ));
        }
    }
    let url = given(variables, URL);
    Ok(Endpoints::from_iter(url.map(|url| ("gemini", url))))
}

fn opencode(
    folder: &Path,
    arguments: &[String],
    variables: &Variables,
) -> Result<Endpoints, String> {
    const FILES: [&str; 2] = ["opencode.json", "opencode.jsonc"];
    refuse_others(values(options(arguments), "--model", "-m"))?;
    let global = Agent::OpenCode.facts().settings.path();
    let of_user = std::env::home_dir().map(|home| home.join(".opencode"));
    let named = given(variables, "OPENCODE_CONFIG_DIR").map(PathBuf::from);
    let own = global.iter().cloned().chain(of_user).chain(named);
    let own = own.flat_map(|folder| FILES.map(|name| folder.join(name)));
    let own = own
        .chain(global.iter().map(|folder| folder.join("config.json")))
        .chain(given(variables, "OPENCODE_CONFIG").map(PathBuf::from));
    // It looks for others up to the root of the repository.
    let root = folder
        .ancestors()
        .find(|folder| folder.join(".git").exists());
    let above = folder.ancestors().flat_map(|above| {
        let is_read = root.is_none_or(|root| above.starts_with(root))
            && !variables.contains_key("OPENCODE_DISABLE_PROJECT_CONFIG");
        let folders = [above.to_path_buf(), above.join(".opencode")];
        let files = folders.map(|folder| FILES.map(|name| folder.join(name)));
        files.into_iter().flatten().map(move |file| (file, is_read))
    });
    let mut found: BTreeMap<&str, BTreeSet<Option<String>>> = BTreeMap::new();
    for (file, is_read) in own.map(|file| (file, true)).chain(above) {
        for (name, url) in opencode_urls(&json(&file)?, variables)? {
            let urls = found.entry(name).or_default();
            urls.insert(Some(url));
            // Without the file, it may be the public one.
            urls.extend((!is_read).then_some(None));
        }
    }
    let last = match given(variables, "OPENCODE_CONFIG_CONTENT") {
        Some(text) => serde_json::from_str(&text)
            .map_err(|_| "OPENCODE_CONFIG_CONTENT is not JSON: mend it")?,
        None => Value::Null,
    };
    let last = opencode_urls(&last, variables)?;
    let mut all = Endpoints::new();
    for (_, name) in NAMES {
        let of_variable = match name {
            "anthropic" => given(variables, "ANTHROPIC_BASE_URL"),
            "openai" => given(variables, "OPENAI_BASE_URL"),
            // The client of this provider reads none.
            _ => None,
        };
        let in_files = found.remove(name).unwrap_or_default();
        if in_files.len() > 1 && !last.contains_key(name) {
            return Err(format!(
                "files of the agent differ in the base URL of {name}: leave one, or set it in OPENCODE_CONFIG_CONTENT, which counts most"
            ));
        }
        let in_files = in_files.into_iter().flatten().next();
        let url = last.get(name).cloned().or(in_files).or(of_variable);
        all.extend(url.map(|url| (name, url)));
    }
    Ok(all)
}

/// The base URLs in settings of OpenCode.
fn opencode_urls(settings: &Value, variables: &Variables) -> Result<Endpoints, String> {
    let agents = ["agent", "mode"].map(|kind| settings[kind].as_object());
    let agents = agents.into_iter().flatten().flat_map(Map::values);
    let models = agents.map(|agent| &agent["model"]);
    let models = models.chain([&settings["model"], &settings["small_model"]]);
    refuse_others(models.filter_map(Value::as_str))?;
    let mut found = Endpoints::new();
    for (theirs, name) in NAMES {
        let provider = &settings["provider"][theirs];
        let models = provider["models"].as_object().into_iter().flatten();
        let mut all = models
            .map(|(_, model)| &model["provider"])
            .chain([provider]);
        if all.any(|one| url_in(&one["api"]).is_some()) {
            return Err(format!(
                "a base URL of {theirs} is in `api`: set it in the provider's `options.baseURL` alone"
            ));
        }
        let Some(url) = url_in(&provider["options"]["baseURL"]) else {
            continue;
        };
        let variable = url.strip_prefix("{env:");
        let url = match variable.and_then(|rest| rest.strip_suffix('}')) {
            Some(name) => given(variables, name).ok_or_else(|| {
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
    Ok(found)
}

/// Refuses models that OpenCode would find past any base URL.
fn refuse_others<'m>(models: impl Iterator<Item = &'m str>) -> Result<(), String> {
    let provider = |model: &'m str| Some(model.split_once('/')?.0);
    refuse_other_providers(models.filter_map(provider))
}

fn refuse_other_providers<'p>(mut providers: impl Iterator<Item = &'p str>) -> Result<(), String> {
    let is_other = |provider: &str| NAMES.iter().all(|(theirs, _)| *theirs != provider);
    match providers.any(is_other) {
        true => Err("a model of the agent is of a provider of its own, which no base URL leads here: run `offcut serve` with that provider in `[serve.upstreams]`, and set its `baseURL` to the server's".to_owned()),
        false => Ok(()),
    }
}

fn pi(folder: Option<&Path>, arguments: &[String]) -> Result<Endpoints, String> {
    let mut found = Endpoints::new();
    let named: Vec<&str> = values(options(arguments), "--provider", "--provider").collect();
    refuse_other_providers(named.iter().copied())?;
    let Some(folder) = folder else {
        return Ok(found);
    };
    if named.is_empty() {
        let settings = json(&folder.join("settings.json"))?;
        refuse_other_providers(settings["defaultProvider"].as_str().into_iter())?;
    }
    let models = json(&folder.join("models.json"))?;
    for (theirs, name) in NAMES {
        let provider = &models["providers"][theirs];
        let mut own = provider["models"].as_array().into_iter().flatten();
        if own.any(|model| url_in(&model["baseUrl"]).is_some()) {
            return Err(format!(
                "a model of {theirs} has a base URL of its own in the agent's models.json: set that of the provider alone"
            ));
        }
        found.extend(url_in(&provider["baseUrl"]).map(|url| (name, url.to_owned())));
    }
    Ok(found)
}

/// The value of a variable that is set to something.
fn given(variables: &Variables, name: &str) -> Option<String> {
    let value = variables.get(name).filter(|value| !value.is_empty());
    value.cloned()
}

fn is_on(value: &str) -> bool {
    !matches!(
        value.to_ascii_lowercase().as_str(),
        "" | "0" | "false" | "no" | "off"
    )
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    one == other
        || one
            .canonicalize()
            .ok()
            .is_some_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

/// A base URL in settings, if there is one.
fn url_in(value: &Value) -> Option<&str> {
    value.as_str().filter(|url| !url.is_empty())
}

fn has_option(arguments: &[String], name: &str) -> bool {
    options(arguments).iter().any(|argument| {
        argument
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    })
}

/// The arguments that may be options.
fn options(arguments: &[String]) -> &[String] {
    let end = arguments.iter().position(|argument| argument == "--");
    &arguments[..end.unwrap_or(arguments.len())]
}

/// The values of an option, each after it or glued to it.
fn values<'a>(
    arguments: &'a [String],
    long: &'a str,
    short: &'a str,
) -> impl Iterator<Item = &'a str> {
    let after = arguments.iter().skip(1).map(String::as_str).chain([""]);
    arguments.iter().zip(after).filter_map(move |(one, after)| {
        let glued = one.strip_prefix(long).or_else(|| one.strip_prefix(short))?;
        Some(match glued {
            "" => after,
            glued => glued.trim_start_matches('='),
        })
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
fn unreadable(error: Failure) -> String {
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

    fn found(
        agent: Agent,
        files: &[(&str, &str)],
        arguments: &[&str],
    ) -> Result<Endpoints, String> {
        with(agent, files, arguments, &[])
    }

    /// The endpoints in the folder `a/b` of a repository, whose root `files` are in.
    fn with(
        agent: Agent,
        files: &[(&str, &str)],
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<Endpoints, String> {
        let folder = folder(files);
        let inner = folder.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::create_dir_all(folder.path().join(".git")).unwrap();
        let own = [
            folder.path().join("system.toml"),
            folder.path().join("user.toml"),
        ];
        let arguments: Vec<_> = arguments.iter().map(|&one| one.to_owned()).collect();
        let variables = variables.iter();
        let variables = variables
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let is_split = matches!(agent, Agent::Codex | Agent::OpenCode | Agent::GeminiCli);
        let at = if is_split { &inner } else { folder.path() };
        match agent {
            Agent::Codex => {
                let login = folder.path().join("auth.json");
                codex(&own, Some(&login), at, &arguments, &variables)
            }
            Agent::Pi => pi(Some(at), &arguments),
            agent => of(agent, at, &arguments, &variables),
        }
    }

    #[test]
    fn base_urls_in_settings_are_found() {
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
                "user.toml",
                format!("openai_base_url = \"{url}\"\n[profiles.p]\nmodel = \"m\"\n"),
                "openai",
            ),
            (
                Agent::Codex,
                "system.toml",
                format!("openai_base_url = \"{url}\"\n"),
                "openai",
            ),
            (
                Agent::Pi,
                "models.json",
                format!(r#"{{"providers": {{"openai": {{"baseUrl": "{url}"}}}}}}"#),
                "openai",
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
            let found = found(agent, &[(file, &text)], &[]).unwrap();
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
        let profile = "profile = \"p\"\n[profiles.p]\nopenai_base_url = \"http://lab\"\n";
        let bedrock = r#"{"env": {"CLAUDE_CODE_USE_BEDROCK": "1"}}"#;
        let vertex = r#"{"security": {"auth": {"selectedType": "vertex-ai"}}}"#;
        let account = r#"{"selectedAuthType": "oauth-personal"}"#;
        let pieces = r#"{"provider": {"openai": {"options": {"baseURL": "{file:x}"}}}}"#;
        let api = r#"{"provider": {"openai": {"api": "http://lab/v1"}}}"#;
        let of_model =
            r#"{"provider": {"openai": {"models": {"m": {"provider": {"api": "http://lab"}}}}}}"#;
        let corp = r#"{"model": "corp/m", "provider": {"corp": {}}}"#;
        let small = r#"{"small_model": "corp/m"}"#;
        let of_agent = r#"{"agent": {"plan": {"model": "corp/m"}}}"#;
        let of_pi =
            r#"{"providers": {"openai": {"models": [{"id": "m", "baseUrl": "http://lab"}]}}}"#;
        let cases: [(Agent, &str, &str, &[&str], &str); 33] = [
            (Agent::Codex, "user.toml", own, &[], "model_provider"),
            (Agent::Codex, "user.toml", profile, &[], "profile"),
            (Agent::Codex, ".codex/config.toml", own, &[], "your own"),
            (
                Agent::Codex,
                "a/.codex/config.toml",
                profile,
                &[],
                "your own",
            ),
            (Agent::Codex, "user.toml", "x", &[], "user.toml"),
            (
                Agent::Codex,
                "x",
                "",
                &["-c", "model_provider=corp"],
                "arguments",
            ),
            (Agent::Codex, "x", "", &["-cprofile=p"], "arguments"),
            (Agent::Codex, "x", "", &["-c=profile=p"], "arguments"),
            (Agent::Codex, "x", "", &["--config= profile=p"], "arguments"),
            (Agent::Codex, "x", "", &["--profile", "p"], "arguments"),
            (Agent::Codex, "x", "", &["exec", "-pcorp"], "arguments"),
            (
                Agent::ClaudeCode,
                ".claude/settings.json",
                bedrock,
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
                Agent::ClaudeCode,
                "x",
                "",
                &["--setting-sources=user"],
                "--setting-sources",
            ),
            (
                Agent::GeminiCli,
                ".env",
                "GOOGLE_GENAI_USE_GCA=true",
                &[],
                "GCA",
            ),
            (
                Agent::GeminiCli,
                ".env",
                "export\tGOOGLE_GEMINI_BASE_URL: x",
                &[],
                "environment",
            ),
            (
                Agent::GeminiCli,
                "a/.gemini/.env",
                "A=1\rGOOGLE_GEMINI_BASE_URL=x",
                &[],
                "environment",
            ),
            (
                Agent::GeminiCli,
                ".gemini/settings.json",
                vertex,
                &[],
                "gemini-api-key",
            ),
            (
                Agent::GeminiCli,
                ".gemini/settings.json",
                account,
                &[],
                "gemini-api-key",
            ),
            (
                Agent::OpenCode,
                "opencode.json",
                pieces,
                &[],
                "write it out",
            ),
            (
                Agent::OpenCode,
                "opencode.json",
                api,
                &[],
                "options.baseURL",
            ),
            (
                Agent::OpenCode,
                "a/.opencode/opencode.jsonc",
                of_model,
                &[],
                "options.baseURL",
            ),
            (
                Agent::OpenCode,
                "opencode.json",
                corp,
                &[],
                "provider of its own",
            ),
            (
                Agent::OpenCode,
                "opencode.json",
                small,
                &[],
                "provider of its own",
            ),
            (
                Agent::OpenCode,
                "opencode.json",
                of_agent,
                &[],
                "provider of its own",
            ),
            (
                Agent::OpenCode,
                "x",
                "",
                &["run", "-m", "corp/m"],
                "provider of its own",
            ),
            (Agent::OpenCode, "x", "", &["-mcorp/m"], "of its own"),
            (Agent::OpenCode, "x", "", &["--model=corp/m"], "of its own"),
            (Agent::Pi, "models.json", of_pi, &[], "the provider alone"),
            (Agent::Pi, "models.json", "[", &[], "models.json"),
            (Agent::Pi, "x", "", &["--provider", "corp"], "of its own"),
            (
                Agent::Pi,
                "settings.json",
                r#"{"defaultProvider": "corp"}"#,
                &[],
                "of its own",
            ),
        ];
        for (agent, file, text, arguments, word) in cases {
            let problem = found(agent, &[(file, text)], arguments).unwrap_err();
            assert!(problem.contains(word), "{agent} {file}: {problem}");
        }
        found(Agent::Codex, &[], &["exec", "--", "--profile"]).unwrap();
        found(Agent::OpenCode, &[], &["-m", "openai/m", "--", "-mcorp/m"]).unwrap();
    }

    #[test]
    fn codex_is_led_here_with_an_api_key_alone() {
        let exec: &[&str] = &["exec", "hello"];
        let of_exec = [("CODEX_API_KEY", "k")];
        for login in [
            r#"{"auth_mode": "chatgpt", "OPENAI_API_KEY": "k", "tokens": {}}"#,
            r#"{"OPENAI_API_KEY": null, "tokens": {"id_token": "t"}}"#,
        ] {
            let files = [("auth.json", login)];
            let problem = with(Agent::Codex, &files, exec, &[("OPENAI_API_KEY", "k")]);
            let problem = problem.unwrap_err();
            assert!(problem.contains("offcut install codex"), "{problem}");
            with(Agent::Codex, &files, &[], &of_exec).unwrap_err();
            with(Agent::Codex, &files, exec, &of_exec).unwrap();
            // Whoever has set it wants the login to go there.
            let url = ("user.toml", "openai_base_url = \"http://lab\"");
            found(Agent::Codex, &[files[0], url], &[]).unwrap();
        }
        for login in [
            r#"{"auth_mode": "apikey", "OPENAI_API_KEY": "k", "tokens": {}}"#,
            r#"{"OPENAI_API_KEY": "k", "tokens": {"id_token": "t"}}"#,
            "{}",
        ] {
            found(Agent::Codex, &[("auth.json", login)], &[]).unwrap();
        }
    }

    #[test]
    fn of_a_codex_profile_no_file_hides_another() {
        let user = "profile = \"p\"\n[profiles.p]\nmodel_provider = \"corp\"\n";
        let project = "[profiles.q]\nmodel = \"m\"\n";
        let files = [("user.toml", user), (".codex/config.toml", project)];
        let problem = found(Agent::Codex, &files, &[]).unwrap_err();
        assert!(problem.contains("profile"), "{problem}");
        found(Agent::Codex, &files[1..], &[]).unwrap();
    }

    #[test]
    fn files_of_opencode_that_differ_are_refused() {
        let settings = |url: &str| {
            format!(r#"{{"provider": {{"openai": {{"options": {{"baseURL": "{url}"}}}}}}}}"#)
        };
        let [one, other, last] = ["http://one", "http://other", "http://last"].map(settings);
        let files = [("opencode.json", &*one), ("a/opencode.json", &*other)];
        let problem = found(Agent::OpenCode, &files, &[]).unwrap_err();
        assert!(problem.contains("OPENCODE_CONFIG_CONTENT"), "{problem}");
        let content = [("OPENCODE_CONFIG_CONTENT", &*last)];
        let all = with(Agent::OpenCode, &files, &[], &content).unwrap();
        assert_eq!(all["openai"], "http://last");
        // A file above the repository may be read or not.
        let above = [("opencode.json", &*one), ("a/.git/HEAD", "")];
        found(Agent::OpenCode, &above, &[]).unwrap_err();
        let off = [("OPENCODE_DISABLE_PROJECT_CONFIG", "1")];
        with(Agent::OpenCode, &files[..1], &[], &off).unwrap_err();
    }

    #[test]
    fn each_agent_has_its_own_variables() {
        let all = [
            ("ANTHROPIC_BASE_URL", "http://anthropic"),
            ("OPENAI_BASE_URL", "http://openai"),
            ("GOOGLE_GEMINI_BASE_URL", "http://gemini"),
        ];
        for (agent, read) in [
            (Agent::ClaudeCode, &["anthropic"][..]),
            (Agent::GeminiCli, &["gemini"]),
            (Agent::OpenCode, &["anthropic", "openai"]),
            (Agent::Pi, &[]),
        ] {
            let found = with(agent, &[], &[], &all).unwrap();
            assert_eq!(found.into_keys().collect::<Vec<_>>(), read, "{agent}");
        }
        let config = [("user.toml", "openai_base_url = \"http://own\"")];
        with(Agent::Codex, &[], &[], &all).unwrap_err();
        let found = with(Agent::Codex, &config, &[], &all).unwrap();
        assert_eq!(found["openai"], "http://own");
        for (agent, name) in [
            (Agent::ClaudeCode, "CLAUDE_CODE_USE_MANTLE"),
            (Agent::ClaudeCode, "CLAUDE_CODE_USE_ANTHROPIC_AWS"),
            (Agent::GeminiCli, "GOOGLE_GENAI_USE_VERTEXAI"),
            (Agent::GeminiCli, "GOOGLE_GENAI_USE_GCA"),
        ] {
            let problem = with(agent, &[], &[], &[(name, "TRUE")]).unwrap_err();
            assert!(problem.contains(name), "{problem}");
            with(agent, &[], &[], &[(name, "false")]).unwrap();
        }
        // A variable that is set wins over the file, be it empty.
        let file = [(".env", "GOOGLE_GEMINI_BASE_URL=http://file")];
        let set = [("GOOGLE_GEMINI_BASE_URL", "")];
        assert!(with(Agent::GeminiCli, &file, &[], &set).unwrap().is_empty());
        let emptied = [(
            ".claude/settings.json",
            r#"{"env": {"ANTHROPIC_BASE_URL": ""}}"#,
        )];
        let found = with(Agent::ClaudeCode, &emptied, &[], &all).unwrap();
        assert!(found.is_empty());
    }
}
