//! The arguments of `serve`.

#[cfg(unix)]
use std::ffi::OsString;
use std::net::SocketAddr;

use offcut::backend::StoreUrl;

/// Stand between agents and their providers: any agent that has a base URL to set sends less.
///
/// Set the agent's base URL to http://127.0.0.1:8787/anthropic, /openai/v1 or /gemini. Long and old
/// tool results are stored and replaced by hints; all else passes byte for byte, and whatever goes
/// wrong here, a request goes on as it came. Keys pass through and are neither stored nor logged.
///
/// Settings have a table [serve]. Stops at SIGINT and SIGTERM, once running requests have ended.
#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// The address to listen on, instead of the settings' own or 127.0.0.1:8787. Port 0 takes one
    /// that is free.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// Let other machines connect, if the address allows it. Needs `tenant_key` in the settings.
    #[arg(long)]
    pub(crate) expose: bool,
    /// Settings, instead of OFFCUT_HOME/offcut.toml: a .toml or .json file, or the name of a built-in
    /// policy.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<String>,
    /// Store, instead of OFFCUT_HOME/store or the settings' own.
    #[arg(long, value_name = "URL")]
    pub(crate) backend: Option<StoreUrl>,
    /// Least level of what is logged to stderr.
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub(crate) log: Level,
}

/// A level of the log.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

/// Run a coding agent with a server between it and its provider: its base URL and the right to read
/// the store are set for this one run, and nothing in its settings changes.
///
/// A base URL that the environment already has stays the provider's. The exit code is the agent's.
#[cfg(unix)]
#[derive(Debug, clap::Args)]
pub(crate) struct Wrap {
    /// Settings, instead of OFFCUT_HOME/offcut.toml: a .toml or .json file, or the name of a built-in
    /// policy.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<String>,
    /// Store, instead of OFFCUT_HOME/store or the settings' own.
    #[arg(long, value_name = "URL")]
    pub(crate) backend: Option<StoreUrl>,
    /// The agent, claude-code, codex, gemini-cli or opencode, and its arguments. Everything after its
    /// name is the agent's.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "AGENT"
    )]
    pub(crate) agent: Vec<OsString>,
}
