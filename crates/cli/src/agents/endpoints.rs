//! The base URLs at which an agent is set up to find its providers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::agents::Agent;
use crate::agents::install::{parse_settings, parse_toml, read_text};
use crate::failure::Failure;

/// The endpoints of an agent by the names of their providers: `anthropic`, `openai`, `gemini`.
pub(crate) type Endpoints = BTreeMap<&'static str, String>;

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
/// The agent would go elsewhere than a base URL can lead it, its settings can't be read, or it depends on
/// more than they say which URL it takes. The error says what to do. It holds none of their text.
pub(crate) fn endpoints(
    agent: Agent,
    folder: &Path,
    arguments: &[String],
) -> Result<Endpoints, String> {
    let variables = std::env::vars_os();
    let variables = variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let settings = agent.facts().settings.path();
    let start = Start {
        folder,
        settings: settings.ok_or("there is no home directory: set HOME")?,
        shared: "/etc/codex".into(),
        arguments: options(arguments),
        variables: variables.collect(),
    };
    start.endpoints(agent)
}

/// The arguments that may be options.
fn options(arguments: &[String]) -> &[String] {
    let end = arguments.iter().position(|argument| argument == "--");
    &arguments[..end.unwrap_or(arguments.len())]
}

/// The start of an agent.
struct Start<'s> {
    folder: &'s Path,
    /// The folder of its own settings.
    settings: PathBuf,
    /// The folder of the settings of Codex for all users.
    shared: PathBuf,
    /// Its arguments that may be options.
    arguments: &'s [String],
    /// The variables of the environment.
    variables: BTreeMap<String, String>,
}

impl Start<'_> {
    fn endpoints(&self, agent: Agent) -> Result<Endpoints, String> {
        match agent {
            Agent::ClaudeCode => self.claude_code(),
            Agent::Codex => self.codex(),
            Agent::GeminiCli => self.gemini_cli(),
            Agent::OpenCode => self.opencode(),
            Agent::Pi => self.pi(),
        }
    }

    fn claude_code(&self) -> Result<Endpoints, String> {
        // Variables that begin so lead to a cloud's endpoint, but for the harmless ones.
        const ELSEWHERE: &str = "CLAUDE_CODE_USE_";
        const HARMLESS: [&str; 2] = ["NATIVE_FILE_SEARCH", "POWERSHELL_TOOL"];
        const URL: &str = "ANTHROPIC_BASE_URL";
        let mut names = self.arguments.iter().map(|one| one.split('=').next());
        if names.any(|name| matches!(name, Some("--settings" | "--setting-sources"))) {
            return Err("`--settings` and `--setting-sources` in the agent's arguments change which settings lead it: put them into a file that it reads by itself".to_owned());
        }
        let managed = Path::new(if cfg!(target_os = "macos") {
            "/Library/Application Support/ClaudeCode/managed-settings.json"
        } else {
            "/etc/claude-code/managed-settings.json"
        });
        let mut set = self.variables.clone();
        // Later files win.
        for file in [
            self.settings.join("settings.json"),
            self.folder.join(".claude/settings.json"),
            self.folder.join(".claude/settings.local.json"),
            managed.to_owned(),
        ] {
            for (name, value) in json(&file)?["env"].as_object().into_iter().flatten() {
                if name == URL && file == managed {
                    return Err(format!(
                        "the agent's base URL is set in {}, which nothing here can override: run `offcut serve`, and set its address there",
                        file.display()
                    ));
                }
                let text = value.as_str().map(str::to_owned);
                set.insert(name.clone(), text.unwrap_or_else(|| value.to_string()));
            }
        }
        let elsewhere = set.iter().find(|(name, value)| {
            let what = name.strip_prefix(ELSEWHERE);
            what.is_some_and(|what| !HARMLESS.contains(&what)) && is_on(value)
        });
        match elsewhere {
            Some((name, _)) => Err(goes_past(name)),
            None => Ok(url_of(&set, URL, "anthropic")),
        }
    }

    fn codex(&self) -> Result<Endpoints, String> {
        const CHOICES: [&str; 3] = ["model_provider", "openai_base_url", "profile"];
        let begins = |text: &str, names: [&str; 3]| names.iter().any(|name| text.starts_with(name));
        let mut settings = self.values("--config", "-c");
        let mut arguments = self.arguments.iter();
        if settings.any(|one| begins(one.trim_start(), CHOICES))
            || arguments.any(|one| begins(one, ["-p", "--profile", "--oss"]))
        {
            return Err("the agent's arguments choose a provider or a profile: choose it in its config.toml".to_owned());
        }
        // The stronger one is last.
        let own = [self.shared.as_path(), &self.settings].map(|folder| folder.join("config.toml"));
        let place = |file: &PathBuf| file.canonicalize().ok();
        let above = self.folder.ancestors();
        let above = above.map(|folder| folder.join(".codex/config.toml"));
        let others = above
            .chain([self.shared.join("managed_config.toml")])
            .filter(|file| !own.iter().any(|own| place(own) == place(file)));
        let is_set =
            |all: &Map<String, Value>| CHOICES.into_iter().find(|name| all.contains_key(*name));
        let mut chosen = Map::new();
        let mut profiles = Vec::new();
        for file in own.iter().cloned().chain(others) {
            let mut settings = parse_toml(&file).map_err(unreadable)?;
            profiles.extend(settings.remove("profiles"));
            if own.contains(&file) {
                chosen.extend(settings);
            // Some versions take them from trusted projects, and others from none.
            } else if let Some(name) = is_set(&settings) {
                return Err(format!(
                    "`{name}` is set in {}, and it depends on the agent's version whether that counts: set it in your own config.toml alone",
                    file.display()
                ));
            }
        }
        let profiles = profiles.iter().filter_map(Value::as_object);
        let mut profiles = profiles.flat_map(Map::values).filter_map(Value::as_object);
        if chosen.contains_key("profile") && profiles.any(|one| is_set(one).is_some()) {
            return Err("a profile of the agent chooses its endpoint, and it depends on the agent's version whether that counts: set it above the profiles in your config.toml".to_owned());
        }
        let chosen = |name| chosen.get(name).and_then(Value::as_str);
        if chosen("model_provider").is_some_and(|name| name != "openai") {
            return Err(of_its_own("`model_provider` setting", "base_url"));
        }
        if let Some(url) = chosen("openai_base_url") {
            return Ok([("openai", url.to_owned())].into());
        }
        if self.given("OPENAI_BASE_URL").is_some() {
            return Err("OPENAI_BASE_URL is set, which only old versions of the agent read: unset it, and set `openai_base_url` in its config.toml if it is meant".to_owned());
        }
        let login = json(&self.settings.join("auth.json"))?;
        let is_key = match &login["auth_mode"] {
            Value::Null => login["tokens"].is_null() || login["OPENAI_API_KEY"].is_string(),
            mode => mode == "apikey",
        };
        // Only `exec` takes this one, over any login.
        let is_exec = self.arguments.iter().any(|one| one == "exec");
        match is_key || is_exec && self.given("CODEX_API_KEY").is_some() {
            true => Ok(Endpoints::new()),
            false => Err("the agent logs in otherwise than by an API key, as its auth.json says, and api.openai.com refuses that: run `codex login --with-api-key`, or use the agent's hooks (`offcut install codex`)".to_owned()),
        }
    }

    fn gemini_cli(&self) -> Result<Endpoints, String> {
        const URL: &str = "GOOGLE_GEMINI_BASE_URL";
        const ELSEWHERE: [&str; 2] = ["GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"];
        const ACCOUNTS: [&str; 2] = ["/security/auth/selectedType", "/selectedAuthType"];
        let is_set = |name: &&&str| self.given(name).is_some_and(|value| is_on(&value));
        if let Some(name) = ELSEWHERE.iter().find(is_set) {
            return Err(goes_past(name));
        }
        let home = self.given("GEMINI_CLI_HOME").map(PathBuf::from);
        let home = home.or_else(std::env::home_dir);
        let system = self.given("GEMINI_CLI_SYSTEM_SETTINGS_PATH");
        let system = system.unwrap_or_else(|| "/etc/gemini-cli/settings.json".to_owned());
        let above = self.folder.ancestors().chain(home.as_deref());
        let in_folders = above.clone();
        let in_folders = in_folders.map(|folder| folder.join(".gemini/settings.json"));
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
            let is_open = |name: &&str| text.contains(name) && !self.variables.contains_key(*name);
            if let Some(name) = names.find(is_open) {
                return Err(format!(
                    "{} names {name}: set that variable in the environment, which counts more, or set it to nothing",
                    file.display()
                ));
            }
        }
        Ok(url_of(&self.variables, URL, "gemini"))
    }

    fn opencode(&self) -> Result<Endpoints, String> {
        const FILES: [&str; 2] = ["opencode.json", "opencode.jsonc"];
        refuse_others(self.values("--model", "-m").filter_map(provider_of))?;
        let of_user = std::env::home_dir().map(|home| home.join(".opencode"));
        let named = self.given("OPENCODE_CONFIG_DIR").map(PathBuf::from);
        let own = [self.settings.clone()]
            .into_iter()
            .chain(of_user)
            .chain(named);
        // It looks for others up to the root of the repository.
        let above = self.folder.ancestors();
        let root = above.clone().find(|folder| folder.join(".git").exists());
        let above = above.filter(|above| root.is_none_or(|root| above.starts_with(root)));
        let above = above.flat_map(|above| [above.to_path_buf(), above.join(".opencode")]);
        // It takes any other value for no.
        let is_off = self
            .given("OPENCODE_DISABLE_PROJECT_CONFIG")
            .is_some_and(|value| value == "1" || value.eq_ignore_ascii_case("true"));
        let folders = own.chain(above.filter(|_| !is_off));
        let files = folders
            .flat_map(|folder| FILES.map(|name| folder.join(name)))
            .chain([self.settings.join("config.json")])
            .chain(self.given("OPENCODE_CONFIG").map(PathBuf::from));
        let mut found: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for file in files {
            for (name, url) in self.opencode_urls(&json(&file)?)? {
                found.entry(name).or_default().insert(url);
            }
        }
        let last = self.given("OPENCODE_CONFIG_CONTENT");
        let last = last.map_or(Ok(Value::Null), |text| serde_json::from_str(&text));
        let last = last.map_err(|_| "OPENCODE_CONFIG_CONTENT is not JSON: mend it")?;
        let last = self.opencode_urls(&last)?;
        let mut all = Endpoints::new();
        // The client of Google's provider reads no variable.
        all.extend(url_of(&self.variables, "ANTHROPIC_BASE_URL", "anthropic"));
        all.extend(url_of(&self.variables, "OPENAI_BASE_URL", "openai"));
        for (name, urls) in found {
            if urls.len() > 1 && !last.contains_key(name) {
                return Err(format!(
                    "files of the agent differ in the base URL of {name}: leave one, or set it in OPENCODE_CONFIG_CONTENT, which counts most"
                ));
            }
            all.extend(urls.into_iter().map(|url| (name, url)));
        }
        all.extend(last);
        Ok(all)
    }

    /// The base URLs in settings of OpenCode.
    fn opencode_urls(&self, settings: &Value) -> Result<Endpoints, String> {
        let agents = ["agent", "mode"].map(|kind| settings[kind].as_object());
        let agents = agents.into_iter().flatten().flat_map(Map::values);
        let models = agents.map(|agent| &agent["model"]);
        let models = models.chain([&settings["model"], &settings["small_model"]]);
        refuse_others(models.filter_map(|model| provider_of(model.as_str()?)))?;
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
                Some(name) => self.given(name).ok_or_else(|| {
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

    fn pi(&self) -> Result<Endpoints, String> {
        let mut named = self.values("--provider", "--provider").peekable();
        if named.peek().is_none() {
            let settings = json(&self.settings.join("settings.json"))?;
            refuse_others(settings["defaultProvider"].as_str().into_iter())?;
        }
        refuse_others(named)?;
        let models = json(&self.settings.join("models.json"))?;
        let mut found = Endpoints::new();
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
    fn given(&self, name: &str) -> Option<String> {
        let value = self.variables.get(name).filter(|value| !value.is_empty());
        value.cloned()
    }

    /// The values of an option, each after it or glued to it.
    fn values<'v>(&'v self, long: &'v str, short: &'v str) -> impl Iterator<Item = &'v str> {
        let after = self.arguments.iter().skip(1).map(String::as_str);
        let all = self.arguments.iter().zip(after.chain([""]));
        all.filter_map(move |(one, after)| {
            let glued = one.strip_prefix(long).or_else(|| one.strip_prefix(short))?;
            Some(match glued {
                "" => after,
                glued => glued.trim_start_matches('='),
            })
        })
    }
}

/// The provider of a model of OpenCode.
fn provider_of(model: &str) -> Option<&str> {
    Some(model.split_once('/')?.0)
}

/// Refuses providers that an agent would find past any base URL.
fn refuse_others<'p>(mut providers: impl Iterator<Item = &'p str>) -> Result<(), String> {
    let is_other = |provider: &str| NAMES.iter().all(|(theirs, _)| *theirs != provider);
    match providers.any(is_other) {
        true => Err(of_its_own("model", "baseURL")),
        false => Ok(()),
    }
}

fn of_its_own(what: &str, setting: &str) -> String {
    format!(
        "the agent has a {what} of a provider of its own, which no base URL leads here: run `offcut serve` with that provider in `[serve.upstreams]`, and set its `{setting}` to the server's"
    )
}

fn goes_past(variable: &str) -> String {
    format!(
        "{variable} is set, so the agent goes past any base URL: unset it, or use the agent's hooks"
    )
}

/// The endpoint of `provider` that a variable names.
fn url_of(
    variables: &BTreeMap<String, String>,
    variable: &str,
    provider: &'static str,
) -> Endpoints {
    let url = variables.get(variable).filter(|url| !url.is_empty());
    url.map(|url| (provider, url.clone())).into_iter().collect()
}

fn is_on(value: &str) -> bool {
    !matches!(
        value.to_ascii_lowercase().as_str(),
        "" | "0" | "false" | "no" | "off"
    )
}

/// A base URL in settings, if there is one.
fn url_in(value: &Value) -> Option<&str> {
    value.as_str().filter(|url| !url.is_empty())
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
    format!("nothing tells where the agent's key may go: {error}")
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
        let arguments: Vec<_> = arguments.iter().map(|&one| one.to_owned()).collect();
        let variables = variables.iter();
        let variables = variables.map(|&(name, value)| (name.to_owned(), value.to_owned()));
        let is_split = matches!(agent, Agent::Codex | Agent::OpenCode | Agent::GeminiCli);
        let start = Start {
            folder: if is_split { &inner } else { folder.path() },
            settings: folder.path().join("own"),
            shared: folder.path().join("etc"),
            arguments: options(&arguments),
            variables: variables.collect(),
        };
        start.endpoints(agent)
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
                "own/config.toml",
                format!("openai_base_url = \"{url}\"\n[profiles.p]\nmodel = \"m\"\n"),
                "openai",
            ),
            (
                Agent::Pi,
                "own/models.json",
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
            (Agent::Codex, "own/config.toml", own, &[], "model_provider"),
            (Agent::Codex, "own/config.toml", profile, &[], "profile"),
            (Agent::Codex, ".codex/config.toml", own, &[], "your own"),
            (
                Agent::Codex,
                "a/.codex/config.toml",
                profile,
                &[],
                "your own",
            ),
            (Agent::Codex, "own/config.toml", "x", &[], "own/config.toml"),
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
            (
                Agent::Pi,
                "own/models.json",
                of_pi,
                &[],
                "the provider alone",
            ),
            (Agent::Pi, "own/models.json", "[", &[], "own/models.json"),
            (Agent::Pi, "x", "", &["--provider", "corp"], "of its own"),
            (
                Agent::Pi,
                "own/settings.json",
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
            let files = [("own/auth.json", login)];
            let problem = with(Agent::Codex, &files, exec, &[("OPENAI_API_KEY", "k")]);
            let problem = problem.unwrap_err();
            assert!(problem.contains("offcut install codex"), "{problem}");
            with(Agent::Codex, &files, &[], &of_exec).unwrap_err();
            with(Agent::Codex, &files, exec, &of_exec).unwrap();
            // Whoever has set it wants the login to go there.
            let url = ("own/config.toml", "openai_base_url = \"http://lab\"");
            found(Agent::Codex, &[files[0], url], &[]).unwrap();
        }
        for login in [
            r#"{"auth_mode": "apikey", "OPENAI_API_KEY": "k", "tokens": {}}"#,
            r#"{"OPENAI_API_KEY": "k", "tokens": {"id_token": "t"}}"#,
            "{}",
        ] {
            found(Agent::Codex, &[("own/auth.json", login)], &[]).unwrap();
        }
    }

    #[test]
    fn of_a_codex_profile_no_file_hides_another() {
        let user = "profile = \"p\"\n[profiles.p]\nmodel_provider = \"corp\"\n";
        let project = "[profiles.q]\nmodel = \"m\"\n";
        let files = [("own/config.toml", user), (".codex/config.toml", project)];
        let problem = found(Agent::Codex, &files, &[]).unwrap_err();
        assert!(problem.contains("profile"), "{problem}");
        found(Agent::Codex, &files[1..], &[]).unwrap();
        // One that nobody has chosen leads nowhere.
        let unused = user.replace("profile =", "model =");
        found(Agent::Codex, &[("own/config.toml", &unused)], &[]).unwrap();
    }

    #[test]
    fn codex_follows_the_settings_for_all_users_but_for_its_users_own() {
        let [shared, user] =
            ["http://all", "http://own"].map(|url| format!("openai_base_url = \"{url}\""));
        let files = [("etc/config.toml", &*shared), ("own/config.toml", &*user)];
        let url = |files| found(Agent::Codex, files, &[]).unwrap()["openai"].clone();
        assert_eq!(url(&files[..1]), "http://all");
        assert_eq!(url(&files), "http://own");
        let managed = [("etc/managed_config.toml", &*shared)];
        assert!(
            found(Agent::Codex, &managed, &[])
                .unwrap_err()
                .contains("openai_base_url")
        );
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
        // A file above the repository is not read.
        let above = [("opencode.json", &*one), ("a/.git/HEAD", "")];
        assert!(found(Agent::OpenCode, &above, &[]).unwrap().is_empty());
        let off = [("OPENCODE_DISABLE_PROJECT_CONFIG", "1")];
        let all = with(Agent::OpenCode, &files[..1], &[], &off).unwrap();
        assert!(all.is_empty());
        let on = [("OPENCODE_DISABLE_PROJECT_CONFIG", "0")];
        let all = with(Agent::OpenCode, &files[..1], &[], &on).unwrap();
        assert_eq!(all["openai"], "http://one");
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
        let config = [("own/config.toml", "openai_base_url = \"http://own\"")];
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
