//! The arguments of the gateway around an MCP server.

use std::ffi::OsString;
#[cfg(feature = "serve")]
use std::net::SocketAddr;

use super::OfUser;
use crate::units;

/// Run an MCP server, and keep long results of its tools out of the model's context.
///
/// Write this command in front of the server's own in an MCP client's configuration, or, for a server
/// over HTTP, its URL after `--url`. Messages pass as they are; results over the limit are stored
/// whole, and the model gets a preview, a hint, and a tool that reads what is stored. Stderr, signals
/// and the exit code are the server's own. If something is wrong with the settings, the server runs
/// without it.
#[derive(Debug, clap::Args)]
pub(crate) struct Mcp {
    #[command(flatten)]
    pub(crate) of_user: OfUser,
    /// Id of the session, under whose prefix results are stored; the reader reads nothing else.
    /// Default: derived from the command and the directory, so that what a conversation has stored can
    /// still be read after the server has been restarted.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Name of the tool that reads stored results. Default: the settings' `read_file_tool_name`,
    /// or read_stored_result if that is `read_file`, which many servers have themselves.
    #[arg(long, value_name = "NAME")]
    pub(crate) reader: Option<String>,
    /// A tool whose output schema clients are not told, so that its structured content may be left out
    /// if it can't be shortened within the schema. May be repeated.
    #[arg(long, value_name = "TOOL")]
    pub(crate) drop_schema: Vec<String>,
    /// Maximum length of a message; a longer one is refused.
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, default_value = "64MiB")]
    pub(crate) max_message: u64,
    /// URL of a server over streamable HTTP, in place of a command.
    #[cfg(feature = "serve")]
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// A header for each request to that server, such as 'Authorization: Bearer ${TOKEN}'. `${NAME}` is
    /// the value of an environment variable, which keeps a secret out of the list of processes. May
    /// be repeated.
    #[cfg(feature = "serve")]
    #[arg(long, value_name = "NAME: VALUE", requires = "url")]
    pub(crate) header: Vec<String>,
    /// Environment variable that holds a bearer token for that server, for clients that replace
    /// `${NAME}` in arguments themselves.
    #[cfg(feature = "serve")]
    #[arg(long, value_name = "NAME", requires = "url")]
    pub(crate) bearer_token_env_var: Option<String>,
    /// Serve clients over HTTP at this address, such as 127.0.0.1:7770, in place of one client over
    /// stdio. With a command, each session has a server of its own. Port 0 takes one that is free; the
    /// URL is written to stdout.
    #[cfg(feature = "serve")]
    #[arg(long, value_name = "ADDRESS", value_parser = super::serve::address)]
    pub(crate) listen: Option<SocketAddr>,
    /// Let other machines connect, if the address allows it. Whoever can connect can use the server, and
    /// read stored results of clients with the same credentials.
    #[cfg(feature = "serve")]
    #[arg(long, requires = "listen")]
    pub(crate) expose: bool,
    /// A name under which clients may address this program, besides localhost and addresses. May be
    /// repeated.
    #[cfg(feature = "serve")]
    #[arg(long, value_name = "NAME", requires = "listen")]
    pub(crate) allow_host: Vec<String>,
    /// An origin whose web pages may connect, such as https://app.example. May be repeated.
    #[cfg(feature = "serve")]
    #[arg(long, value_name = "ORIGIN", requires = "listen")]
    pub(crate) allow_origin: Vec<String>,
    /// The server's command and its arguments. Everything from the first word on is the server's.
    #[cfg_attr(feature = "serve", arg(required_unless_present = "url"))]
    #[cfg_attr(not(feature = "serve"), arg(required = true))]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<OsString>,
}
