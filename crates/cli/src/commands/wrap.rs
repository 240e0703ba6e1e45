//! `offcut wrap`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;

use clap::ValueEnum as _;

use crate::agents::Agent;
use crate::agents::endpoints::endpoints;
use crate::agents::layout;
use offcut::SettingsError;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::serve::{listener, server};
use crate::failure::{Failure, OrFail as _};
use crate::gateway::{Gateway, GatewayError, ServeSettings};
use crate::serving::{Running, prepared};
use crate::{args, child};

/// The settings that lead an agent to a server.
#[derive(Debug, Default)]
struct Lead {
    arguments: Vec<OsString>,
    variables: Vec<(&'static str, OsString)>,
    /// The text of an extension for the agent to load.
    extension: Option<String>,
}

pub(crate) fn run(args: &args::Wrap) -> Result<ExitCode, Failure> {
    let (name, own) = (&args.agent[0], &args.agent[1..]);
    let name = name.to_string_lossy();
    let agent = Agent::from_str(&name, false).map_err(|_| {
        Failure::usage(
            format!("no agent is called `{name}`"),
            "name claude-code, codex, gemini-cli, opencode or pi",
        )
    })?;
    let (mut serve, reduction, origin) = prepared(&args.of_user)?;
    serve.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    serve.expose = false;
    // That address may be another server's.
    serve.metrics_listen = None;
    // The agent keeps its connections for as long as it runs.
    serve.shutdown_seconds = 0;
    let store = reduction.backend_url.as_ref();
    let store = store.and_then(|url| std::path::absolute(url.directory()?).ok());
    let own_text = own.iter().map(|one| one.to_string_lossy().into_owned());
    let own_text: Vec<_> = own_text.collect();
    let folder = std::env::current_dir().or_fail("the current directory is unknown")?;
    let refused =
        |problem: String| Failure::usage(problem, "nothing was started, and no key went anywhere");
    let endpoints = endpoints(agent, &folder, &own_text).map_err(refused)?;
    let mut versions = BTreeMap::new();
    for (name, url) in endpoints {
        let (base, version) = split_version(&url);
        let alone = ServeSettings {
            listen: serve.listen,
            upstreams: [(name.to_owned(), base.to_owned())].into(),
            ..ServeSettings::default()
        };
        // Among the server's settings, it would be blamed on their file.
        if let Err(GatewayError::Settings(SettingsError { problem, .. })) = Gateway::check(&alone) {
            let setting = agent.facts().base_url;
            let problem = format!("the agent's own `{setting}` for {name}: {problem}");
            return Err(refused(problem));
        }
        serve.upstreams.extend(alone.upstreams);
        versions.insert(name, version.to_owned());
    }
    let (_journal, runtime, gateway) = server(serve, &reduction, &origin, &args.prices)?;
    let advice = format!("`offcut install {agent}` needs no server");
    let (listener, address) = runtime.block_on(listener(gateway.settings().listen, &advice))?;
    let url = format!("http://{address}");
    let page = gateway.page();
    let _running = page.and_then(|page| Running::note(&format!("{url}{page}")));
    runtime.spawn(gateway.serve(listener, None, std::future::pending()));
    let lead = lead(agent, &url, store.as_deref(), &versions);
    let extension = lead.extension.as_deref().map(extension).transpose()?;
    let mut words = vec![agent.facts().program.into()];
    if let Some(file) = &extension {
        words.extend(["--extension".into(), file.path().into()]);
    }
    words.extend(lead.arguments);
    words.extend(own.iter().cloned());
    runtime.block_on(async {
        // Signals end the agent, whose end is this program's.
        let mut signals = child::listen().or_fail("signals can't be received")?;
        let started = child::start(&words, |mut command| {
            command.envs(lead.variables.iter().cloned());
            Ok(command.into())
        });
        let advice = "install the agent, and put its program on the PATH";
        let mut running = started.map_err(|error| child::not_started(&words[0], &error, advice))?;
        loop {
            tokio::select! {
                status = running.wait() => {
                    let status = status.or_fail("the agent can't be waited for")?;
                    return Ok(ExitCode::from(child::exit_code(status)));
                }
                Some(signal) = signals.recv() => child::pass_on(&running, signal),
            }
        }
    })
}

/// Writes an extension for pi into a file that goes once it is dropped.
fn extension(text: &str) -> Result<NamedTempFile, Failure> {
    let name = format!("offcut-wrap-{}-", std::process::id());
    let file = tempfile::Builder::new()
        .prefix(&name)
        .suffix(".ts")
        .tempfile();
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()).map(|()| file));
    written.or_advise(
        "no extension for pi can be written",
        "set TMPDIR to a folder of yours",
    )
}

/// Sets the value at a path of names, in place of anything that is not an object on the way.
fn set(settings: &mut Value, path: &[&str], new: Value) {
    let place = path.iter().fold(settings, |value, name| {
        if !value.is_object() {
            *value = json!({});
        }
        &mut value[*name]
    });
    *place = new;
}

/// A base URL, and the version at its end that the agents' clients put there themselves, if it has
/// one. Another version belongs to the address.
fn split_version(url: &str) -> (&str, &str) {
    let url = url.trim_end_matches('/');
    let version = ["/v1", "/v1beta"]
        .into_iter()
        .find(|version| url.ends_with(version));
    url.split_at(url.len() - version.map_or(0, str::len))
}

/// Leads an agent to the server at `url`, and lets it read the store in the directory `store`. The
/// versions are those at the ends of the base URLs that the user has set.
fn lead(
    agent: Agent,
    url: &str,
    store: Option<&Path>,
    versions: &BTreeMap<&'static str, String>,
) -> Lead {
    let mut lead = Lead::default();
    let base_url = agent.facts().base_url;
    let stores = store.map(layout::spellings).unwrap_or_default();
    let stores: Vec<&str> = stores.iter().filter_map(|store| store.to_str()).collect();
    // A client that appends `/responses` to its base URL needs the version there, as the user has it.
    let base = |name: &str, version: &str| {
        let version = versions.get(name).map_or(version, String::as_str);
        format!("{url}/{name}{version}")
    };
    match agent {
        Agent::ClaudeCode => {
            let base = format!("{url}/anthropic");
            lead.variables.push((base_url, base.clone().into()));
            if !versions.contains_key("anthropic")
                && std::env::var_os("ENABLE_TOOL_SEARCH").is_none()
            {
                // With another base URL, some versions leave out tools that are loaded when needed.
                lead.variables.push(("ENABLE_TOOL_SEARCH", "true".into()));
            }
            // Settings win over the environment, and these win over the user's.
            let mut settings = json!({"env": {base_url: base}});
            let rules = stores.iter().map(|store| format!("Read(/{store}/**)"));
            let rules: Vec<String> = rules.collect();
            if !rules.is_empty() {
                settings["permissions"] = json!({"allow": rules});
            }
            lead.arguments = vec!["--settings".into(), settings.to_string().into()];
        }
        Agent::Codex => {
            let setting = format!("{base_url}={}", json!(base("openai", "/v1")));
            lead.arguments = vec!["-c".into(), setting.into()];
        }
        Agent::GeminiCli => {
            lead.variables
                .push((base_url, format!("{url}/gemini").into()));
            if let Some(store) = store {
                // It ignores a directory that does not exist yet.
                _ = std::fs::create_dir_all(store);
                lead.arguments = vec!["--include-directories".into(), store.into()];
            }
        }
        Agent::OpenCode => {
            // The user's own content of this variable would be lost.
            let own = std::env::var("OPENCODE_CONFIG_CONTENT").unwrap_or_default();
            let mut settings: Value = serde_json::from_str(&own).unwrap_or_default();
            for (name, base) in [
                ("anthropic", base("anthropic", "/v1")),
                ("openai", base("openai", "/v1")),
                ("google", base("gemini", "/v1beta")),
            ] {
                let path = ["provider", name, "options", base_url];
                set(&mut settings, &path, base.into());
            }
            for store in &stores {
                let path = ["permission", "external_directory", &format!("{store}/**")];
                set(&mut settings, &path, json!("allow"));
            }
            // Merged over the user's own settings.
            lead.variables
                .push(("OPENCODE_CONFIG_CONTENT", settings.to_string().into()));
        }
        Agent::Pi => {
            let bases = json!({
                "anthropic": format!("{url}/anthropic"),
                "openai": base("openai", "/v1"),
                "google": base("gemini", "/v1beta"),
            });
            lead.extension = Some(format!(
                "export default (pi) => {{\n  for (const [name, baseUrl] of Object.entries({bases}))\n    pi.registerProvider(name, {{ baseUrl }});\n}};\n"
            ));
        }
    }
    lead
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn each_agent_is_led_by_its_own_means_and_may_read_the_store() {
        let lead = |agent| {
            lead(
                agent,
                "http://127.0.0.1:9",
                Some(Path::new("/home/me/store")),
                &BTreeMap::new(),
            )
        };
        let claude = lead(Agent::ClaudeCode);
        assert!(
            claude
                .variables
                .contains(&("ANTHROPIC_BASE_URL", "http://127.0.0.1:9/anthropic".into()))
        );
        assert_eq!(
            claude.arguments[1],
            OsStr::new(
                r#"{"env":{"ANTHROPIC_BASE_URL":"http://127.0.0.1:9/anthropic"},"permissions":{"allow":["Read(//home/me/store/**)"]}}"#
            )
        );
        let codex = lead(Agent::Codex);
        assert_eq!(
            codex.arguments[1],
            OsStr::new(r#"openai_base_url="http://127.0.0.1:9/openai/v1""#)
        );
        let gemini = lead(Agent::GeminiCli);
        assert_eq!(gemini.arguments[1], OsStr::new("/home/me/store"));
        let opencode = lead(Agent::OpenCode);
        let (_, settings) = &opencode.variables[0];
        let settings: Value = serde_json::from_str(settings.to_str().unwrap()).unwrap();
        assert_eq!(
            settings["permission"]["external_directory"]["/home/me/store/**"],
            "allow"
        );
        let pi = lead(Agent::Pi);
        let text = pi.extension.unwrap();
        assert!(text.contains(r#""google":"http://127.0.0.1:9/gemini/v1beta""#));
        for (url, expected) in [
            ("http://lab:4000", ("http://lab:4000", "")),
            ("http://lab:4000/v1/", ("http://lab:4000", "/v1")),
            ("https://lab/x/v1beta", ("https://lab/x", "/v1beta")),
            ("https://lab/vault", ("https://lab/vault", "")),
            ("https://lab/v2/", ("https://lab/v2", "")),
        ] {
            assert_eq!(split_version(url), expected);
        }
    }

    #[test]
    fn an_endpoint_of_the_users_own_keeps_its_version_and_its_tools() {
        let versions = BTreeMap::from([("openai", String::new()), ("anthropic", String::new())]);
        let lead = |agent| lead(agent, "http://127.0.0.1:9", None, &versions);
        assert_eq!(
            lead(Agent::Codex).arguments[1],
            OsStr::new(r#"openai_base_url="http://127.0.0.1:9/openai""#)
        );
        let claude = lead(Agent::ClaudeCode);
        assert!(
            claude
                .variables
                .iter()
                .all(|(name, _)| *name != "ENABLE_TOOL_SEARCH")
        );
    }
}
