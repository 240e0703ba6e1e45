//! The arguments of `serve`.

#[cfg(unix)]
use std::ffi::OsString;
use std::net::SocketAddr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use tracing::Level;

use super::OfUser;

/// Run a server between agents and their providers that shortens requests.
///
/// For any agent that lets you set a base URL: set it to http://127.0.0.1:8787/anthropic, /openai/v1
/// or /gemini. Long and old tool results are stored and replaced by hints; everything else passes
/// byte for byte. If anything goes wrong here, the request is forwarded unchanged. Keys pass through
/// and are neither stored nor logged.
///
/// Options of the server are in the table [serve] of the settings. SIGINT and SIGTERM stop it once
/// running requests have ended.
#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// The address to listen on, instead of the settings' own or 127.0.0.1:8787. Port 0 takes one
    /// that is free.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,
    /// Let other machines connect, if the address or a proxy in front allows it. Needs `tenant_key` in the settings.
    #[arg(long)]
    pub(crate) expose: bool,
    /// Leave this share of conversations alone, such as 0.1, so that /metrics has the provider's own
    /// usage of both groups.
    #[arg(long, value_name = "SHARE")]
    pub(crate) holdout: Option<f64>,
    /// Token prices by which the page estimates the bill: `default`, `anthropic` or a file, as `offcut
    /// replay` takes them.
    #[arg(long, value_name = "CARD", default_value = "default")]
    pub(crate) prices: String,
    #[command(flatten)]
    pub(crate) of_user: OfUser,
    /// Fail at the start if a store does not answer, or takes nothing.
    #[arg(long)]
    pub(crate) require_store: bool,
    /// Minimum level of the messages that are logged to stderr.
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = level())]
    pub(crate) log: Level,
    /// Log each message as one line of JSON.
    #[arg(long)]
    pub(crate) log_json: bool,
}

pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "write an address with a port, such as 127.0.0.1:8787".to_owned())
}

fn level() -> impl TypedValueParser<Value = Level> {
    PossibleValuesParser::new(["error", "warn", "info", "debug"]).try_map(|level| level.parse())
}

/// Show what the running servers of this user do.
///
/// Figures since each server's start, without content: those of its page in the browser, whose address
/// is printed too. The exit code is 1 if no server runs, or one does not answer.
#[derive(Debug, clap::Args)]
pub(crate) struct Status {
    /// A server's page, as a terminal shows it at the start, instead of all servers that OFFCUT_HOME knows of:
    /// http://127.0.0.1:8787/page#TOKEN.
    #[arg(value_name = "PAGE")]
    pub(crate) page: Option<String>,
    /// Number of conversations that are listed for each server, last call first.
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    pub(crate) conversations: usize,
}

/// Run a coding agent with a server of its own between it and its provider.
///
/// Its base URL and the right to read the store are set for this one run; nothing in its settings
/// changes. A base URL that the environment already has stays the provider's. The exit code is the
/// agent's.
#[cfg(unix)]
#[derive(Debug, clap::Args)]
pub(crate) struct Wrap {
    #[command(flatten)]
    pub(crate) of_user: OfUser,
    /// Token prices by which the server's page estimates the bill, as `offcut serve` takes them.
    #[arg(long, value_name = "CARD", default_value = "default")]
    pub(crate) prices: String,
    /// The agent, claude-code, codex, gemini-cli, opencode or pi, and its arguments. Everything after
    /// its name is the agent's.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "AGENT"
    )]
    pub(crate) agent: Vec<OsString>,
}
