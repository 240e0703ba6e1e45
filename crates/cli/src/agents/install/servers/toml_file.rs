//! MCP servers in TOML.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::server::{ArgsPlace, BEGINNINGS, Server, ServerCommand};

#[derive(Deserialize)]
struct Settings {
    #[serde(default)]
    mcp_servers: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    command: Option<Spanned<String>>,
    args: Option<Spanned<Vec<Spanned<String>>>>,
    url: Option<String>,
}

/// Reads the servers below `mcp_servers`.
pub(super) fn read(text: &str) -> Result<Vec<Server>, String> {
    // Its message would quote the line, and settings hold secrets.
    let settings: Settings = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let line = text[..at].matches('\n').count() + 1;
        format!("it is not TOML as Codex has it: line {line}")
    })?;
    let server = |(name, entry): (String, Entry)| {
        let command = match (entry.command, entry.url) {
            (Some(command), _) => Some(command),
            (None, Some(_)) => None,
            (None, None) => return None,
        };
        let path = vec!["mcp_servers".to_owned(), name];
        let command = command.map(|command| {
            let span = command.span();
            let args = match &entry.args {
                Some(list) => ArgsPlace::List {
                    start: list.span().start,
                },
                None => ArgsPlace::Missing {
                    beginning: beginning_after(text, span.start),
                },
            };
            let rest = entry.args.map(Spanned::into_inner).unwrap_or_default();
            let all = [command].into_iter().chain(rest);
            let (places, words) = all.map(|one| (one.span(), one.into_inner())).unzip();
            ServerCommand {
                words,
                places,
                args,
            }
        });
        Some(Server {
            path,
            command,
            is_odd: false,
        })
    };
    Ok(settings
        .mcp_servers
        .into_iter()
        .filter_map(server)
        .collect())
}

/// The text that begins a list of arguments after the command at `at`: on a line of its own in a table, in
/// the same line in an inline one.
fn beginning_after(text: &str, at: usize) -> &'static str {
    let line = text[..at].rsplit('\n').next().unwrap_or_default();
    let key = line.trim_start().trim_start_matches(['"', '\'']);
    let before = key.strip_prefix("command").unwrap_or_default();
    let is_alone = before.trim_start_matches(['"', '\'']).trim() == "=";
    BEGINNINGS[if is_alone { 1 } else { 2 }]
}
