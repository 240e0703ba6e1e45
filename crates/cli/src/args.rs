//! The command line.

use std::ffi::OsStr;
#[cfg(unix)]
use std::ffi::OsString;
#[cfg(feature = "serve")]
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

#[cfg(all(feature = "serve", unix))]
use clap::ValueEnum as _;
#[cfg(all(feature = "serve", unix))]
use clap::builder::OsStringValueParser;
use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::{Parser, Subcommand, ValueHint};
use offcut::backend::StoreUrl;
use offcut::format::WireFormat;
#[cfg(feature = "serve")]
use tracing::Level;

use crate::agents::Agent;
use crate::manner::Manner;
use crate::policies::READY;
use crate::units;

const EXIT_CODES: &str = concat!(
    "\
Exit codes: 0 done; 1 something failed, nothing was lost; 2 wrong arguments, settings or input; 3 done, but a transcript was skipped, \
or something could not be swept. After 1 and 2, truncate, clear and reduce have passed their input on unchanged.

More: ",
    env!("CARGO_PKG_REPOSITORY"),
    "/blob/main/docs/README.md"
);
/// Headings of options in the help.
const LIVE: &str = "What stays";
const WHERE: &str = "Where to sweep";
#[cfg(all(feature = "serve", unix))]
const REMOTE: &str = "A server over HTTP";
#[cfg(all(feature = "serve", unix))]
const LISTEN: &str = "Clients over HTTP";

/// Keep long tool results out of an agent's context window, and keep every byte readable.
#[derive(Debug, Parser)]
#[command(name = "offcut", version, after_help = EXIT_CODES, max_term_width = 110)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) manner: Manner,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Replay(Replay),
    #[cfg(unix)]
    Run(Run),
    #[cfg(unix)]
    Mcp(Mcp),
    Hook(Hook),
    /// Put Offcut around a coding agent's tools, in the agent's settings.
    ///
    /// Adds a hook, and the right to read the store. Comments and other hooks stay; a second time,
    /// nothing changes. `uninstall` takes it out.
    Install(InstallOptions),
    /// Take Offcut out of a coding agent's settings.
    ///
    /// If nobody else has changed the file since, it is as it was before, byte for byte, but for older
    /// hooks of Offcut. Stored results stay.
    Uninstall(InstallOptions),
    /// Send an event through an installation, and say what works.
    ///
    /// The exit code is 1 if there is a problem.
    Doctor(Place),
    Gain(Gain),
    #[cfg(feature = "serve")]
    Serve(Serve),
    /// Show what the running servers of this user do.
    ///
    /// Figures since each server's start, without content: those of its page in the browser, whose address
    /// is printed too. OFFCUT_HOME names the folder of another user's servers. The exit code is 1 if no server runs, or
    /// one does not answer.
    #[cfg(feature = "serve")]
    Status,
    #[cfg(all(feature = "serve", unix))]
    Wrap(Wrap),
    #[cfg(unix)]
    Trial(Trial),
    Truncate(Truncate),
    /// Clear old results from a conversation, read from stdin.
    ///
    /// Prints the messages to send. The conversation is a JSON list of messages, or a request's body that
    /// holds one; the output has the same form. If there is nothing to clear, or something fails, the input is passed on byte for
    /// byte. With --json, the output is {"body": …, "report": …}.
    Clear(Conversation),
    /// Reduce a whole request, read from stdin.
    ///
    /// Prints the request to send. Every result over the limit is truncated as it would have been when it
    /// arrived, and then old results are cleared. The input is a JSON list of messages, or a request's body
    /// that holds one, and may be the original each time: what was decided in an earlier call is written down
    /// in the store, and is repeated byte for byte. If there is nothing to do, or something fails, the input
    /// is passed on byte for byte. With --json, the output is {"body": …, "report": …}.
    Reduce(Conversation),
    Read(Read),
    Sweep(Sweep),
    /// Sweep the user's store. Hooks and servers start this command.
    #[command(hide = true)]
    Tidy,
    /// Show what a store holds.
    #[command(subcommand)]
    Store(Store),
    /// Merge updates into a declared state.
    #[command(subcommand)]
    State(State),
    /// Print and check settings.
    #[command(subcommand)]
    Config(Config),
    /// Print a script by which a shell completes offcut's arguments.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages of offcut and its commands.
    Man {
        /// A folder for the pages.
        #[arg(value_hint = ValueHint::DirPath)]
        folder: PathBuf,
    },
}

/// Run a command and show its output as a model should see it.
///
/// The beginning comes through as it is written. Long output is stored whole; once the command has ended, a
/// preview of the rest and a hint follow. Stdin, signals and the exit code are the command's own. If stdout and stderr are one
/// pipe, their lines stay in order; otherwise each is shown on its own. If something is wrong with
/// the settings or the store, the output is shown unchanged.
#[cfg(unix)]
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// The tool's name, for settings of single tools.
    #[arg(long, value_name = "NAME", default_value = "shell")]
    pub(crate) tool: String,
    /// The id of the call, which names the stored output. Default: a new one.
    #[arg(long, value_name = "ID")]
    pub(crate) call_id: Option<String>,
    /// The command and its arguments. Everything from the first word on is the command's.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
    #[command(flatten)]
    pub(crate) reduction: Reduction,
}

/// Print a tool's result, read from stdin, as a model would see it.
///
/// A result over the limit is stored whole while it streams in. With --json, prints what the model
/// would see and the report. If something fails, the result is passed on unchanged.
#[derive(Debug, clap::Args)]
pub(crate) struct Truncate {
    /// The tool that returned the result.
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: String,
    /// The id of the call, which names the stored content.
    #[arg(long, value_name = "ID", default_value = "")]
    pub(crate) call_id: String,
    /// The arguments of the call.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) arguments: String,
    #[command(flatten)]
    pub(crate) reduction: Reduction,
}

/// A conversation on stdin.
#[derive(Debug, clap::Args)]
pub(crate) struct Conversation {
    /// The format of the messages, in place of the one that is detected.
    #[arg(long, value_name = "FORMAT", value_parser = format())]
    pub(crate) format: Option<WireFormat>,
    #[command(flatten)]
    pub(crate) reduction: Reduction,
}

/// Remove idle conversations that no transcript names from stores.
///
/// A dry run unless --apply is given. A conversation goes as one, or stays as one. Agents may keep running.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Sweep {
    /// All stores in the agents' settings, including those of single tools, because a conversation may
    /// have content in several. Default: OFFCUT_HOME/store, for which the transcripts that hooks and servers
    /// know are live too.
    #[arg(value_name = "STORE", value_hint = ValueHint::DirPath)]
    pub(crate) stores: Vec<StoreUrl>,
    /// A folder of transcripts, or one transcript: each conversation that any of the files names
    /// stays. May be repeated; give every live one.
    #[arg(long, value_name = "FOLDER", help_heading = LIVE)]
    pub(crate) live: Vec<PathBuf>,
    /// Sweep as if no conversation were live, instead of --live.
    #[arg(long, help_heading = LIVE, conflicts_with = "live")]
    pub(crate) nothing_is_live: bool,
    /// A session to keep whole, although no transcript names its content, because its loop passes
    /// in originals every turn. May be repeated.
    #[arg(long, value_name = "ID", help_heading = LIVE)]
    pub(crate) keep_session: Vec<String>,
    /// Remove conversations in which nothing was stored or read for longer than this, at least 48h.
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "30d")]
    pub(crate) idle: Duration,
    /// Then remove those that have been idle longest, but none younger than 48h, until what no
    /// transcript names takes at most this much: 10GiB, 500MB.
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    pub(crate) quota: Option<u64>,
    /// Sweep only content below this prefix: the agents' root_dir.
    #[arg(long, value_name = "PREFIX", default_value = "", hide_default_value = true, help_heading = WHERE)]
    pub(crate) root: String,
    /// Sweep only content of this conversation, below the root if one is given.
    #[arg(long, value_name = "ID", help_heading = WHERE)]
    pub(crate) session: Option<String>,
    /// Accept a directory as a store although it lacks the `.staging` folder that stores have,
    /// because the folder was deleted or not copied.
    #[arg(long, help_heading = WHERE)]
    pub(crate) is_a_store: bool,
    /// Carry out the sweep; without this option, only report what it would do.
    #[arg(long)]
    pub(crate) apply: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Store {
    /// List stored content: location, size in bytes and age.
    Ls {
        /// The store, as settings name it. Default: that of the user's settings, or OFFCUT_HOME/store.
        #[arg(value_hint = ValueHint::DirPath)]
        store: Option<StoreUrl>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum State {
    Apply(Apply),
}

/// Apply updates to a state, one after the other, and print the state.
///
/// All updates apply, or none: after an error, nothing is printed.
#[derive(Debug, clap::Args)]
pub(crate) struct Apply {
    /// The declaration of the state, in YAML or JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: PathBuf,
    /// The current state, in JSON. Without it, reducers start from the defaults.
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// The updates: JSON objects that map each field to what its reducer takes; - for stdin. Keys
    /// must not be repeated.
    #[arg(required = true, value_name = "UPDATE")]
    pub(crate) updates: Vec<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Print every option with its value in the policy `recommended` and a comment.
    Default {
        /// Print the options of another built-in policy instead.
        #[arg(value_parser = PossibleValuesParser::new(READY.map(|(name, _)| name)))]
        policy: Option<String>,
    },
    /// Check that settings build and that their stores can be written to.
    Check {
        /// A .toml or .json file, or the name of a built-in policy.
        #[arg(value_parser = policy(), hide_possible_values = true)]
        file: String,
    },
}

/// Replay transcripts: what each policy would have cost, and hidden.
///
/// Each result is truncated as it arrives, and each turn of the assistant is a model call with a
/// clear pass before it. The first row, `none`, is without any policy. Content is stored in memory,
/// with locations of 40 bytes; stores named by policies are not used.
#[derive(Debug, clap::Args)]
pub(crate) struct Replay {
    /// Transcripts: files, folders of .json, .jsonl and .traj files, or - for stdin.
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    /// A policy to replay under. May be repeated. By default, all built-in policies.
    #[arg(long = "policy", value_name = "NAME=FILE", value_parser = named_policy(), hide_possible_values = true)]
    pub(crate) policies: Vec<(String, String)>,
    /// Requests that another policy has made of these transcripts, to be judged by the same measure: a
    /// folder with a file of JSON Lines for each transcript. May be repeated.
    #[arg(long = "requests", value_name = "NAME=FOLDER", value_parser = pair, value_hint = ValueHint::DirPath)]
    pub(crate) requests: Vec<(String, String)>,
    /// Say instead why the provider's cache missed: the traces are logs of requests, one on each line.
    #[cfg(feature = "serve")]
    #[arg(long, conflicts_with_all = ["policies", "requests", "html"])]
    pub(crate) cache: bool,
    /// Token prices: `default` (weights 0.1 cached, 1 fresh), `anthropic` (0.1 and 1.25), or a file
    /// with `cached` and `fresh` per million tokens and, to show money, `currency`, `source` and
    /// `date`.
    #[arg(long, value_name = "CARD", default_value = "default", value_hint = ValueHint::FilePath)]
    pub(crate) prices: String,
    /// Show every figure: tokens, peaks, cache breaks, surroundings, and what is stored.
    #[arg(long)]
    pub(crate) all: bool,
    /// Write an HTML report to a file: bill and visibility, context sizes, what was cleared when,
    /// and the worst moments. It holds excerpts of the transcripts.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
}

/// Settings and store of a command.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Settings and store")]
pub(crate) struct OfUser {
    /// Settings: a .toml or .json file, or the name of a built-in policy. Default: OFFCUT_HOME/offcut.toml if it is
    /// there, else recommended.
    #[arg(long, value_name = "FILE", value_parser = policy(), hide_possible_values = true)]
    pub(crate) config: Option<String>,
    /// Store, overriding the settings: a path, or, in a server, memory:.
    #[cfg_attr(feature = "s3", doc = "Or s3://bucket/prefix.")]
    /// Relative paths, also in settings files, are relative to the working directory. Default without any:
    /// OFFCUT_HOME/store, by default ~/.local/share/offcut/store.
    #[arg(long, value_name = "URL", value_hint = ValueHint::DirPath)]
    pub(crate) backend: Option<StoreUrl>,
}

/// Settings, store and session of a command in a pipeline.
#[derive(Debug, clap::Args)]
pub(crate) struct Reduction {
    #[command(flatten)]
    pub(crate) of_user: OfUser,
    /// Id of the conversation, if several share a store: each stores under its own prefix. Default for `run`: one
    /// for each day.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
}

/// Answer an event of a coding agent, read from stdin.
///
/// The agent's settings name this command. Long results are stored whole and
/// replaced by a hint and a preview. Anything unexpected, and any failure, lets the event pass
/// unchanged: nothing on stdout, exit code 0, and a line in OFFCUT_HOME/hook.log.
#[derive(Debug, clap::Args)]
pub(crate) struct Hook {
    /// The agent: claude-code, codex, gemini-cli, opencode or pi.
    pub(crate) agent: String,
    #[command(flatten)]
    pub(crate) of_user: OfUser,
}

/// An agent, and the place of its settings.
#[derive(Debug, clap::Args)]
pub(crate) struct Place {
    /// The agent.
    pub(crate) agent: Agent,
    /// A project's folder: use the user's own settings for this project instead of those for all.
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) project: Option<PathBuf>,
}

/// A change of an agent's settings.
#[derive(Debug, clap::Args)]
pub(crate) struct InstallOptions {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Say what would change, and change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Show what hooks and servers saved.
///
/// The hooks of coding agents, and `offcut serve` and `offcut wrap`, keep a journal of sizes, without
/// content. Hints, and stored results that the model read back, are counted against the gain.
#[derive(Debug, clap::Args)]
pub(crate) struct Gain {
    /// Count only what is at most this old: 7d, 12h.
    #[arg(long, value_name = "AGE", value_parser = units::duration)]
    pub(crate) since: Option<Duration>,
}

/// Arguments of the reader as options.
const ASKED: [&str; 7] = [
    "location", "offset", "limit", "pattern", "context", "count", "query",
];

/// Read stored content, a page at a time, as the model's reader does.
///
/// Without --config, --backend and --session, the location may be of any conversation in the user's store.
#[derive(Debug, clap::Args)]
pub(crate) struct Read {
    /// The location: as in a hint or in the output of `store ls`, as a relative path, or as its key,
    /// such as trunc/call_1.
    #[arg(required_unless_present_any = ["definition", "arguments"])]
    pub(crate) location: Option<String>,
    /// The model's call of the reader, as JSON, in place of the location and the options below.
    #[arg(long, value_name = "JSON", conflicts_with_all = ASKED)]
    pub(crate) arguments: Option<String>,
    /// Print the reader's definition for a request's `tools` instead of reading.
    #[arg(long, value_name = "FORMAT", value_parser = format(), conflicts_with_all = ASKED, conflicts_with = "arguments")]
    pub(crate) definition: Option<WireFormat>,
    /// The first line, from 1; a negative number counts from the end; 12+4000 is byte 4000 of line
    /// 12.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) offset: Option<String>,
    /// Maximum number of lines.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
    /// A regular expression: print only lines that match it.
    #[arg(long, value_name = "RE")]
    pub(crate) pattern: Option<String>,
    /// Number of lines to print before and after each match.
    #[arg(long, value_name = "N", requires = "pattern")]
    pub(crate) context: Option<u64>,
    /// Print only how many lines match, and the matches if there are more.
    #[arg(long, requires = "pattern")]
    pub(crate) count: bool,
    /// A jq filter: print what it makes of JSON, JSON Lines, a table or lines.
    #[arg(long, value_name = "JQ", conflicts_with = "pattern")]
    pub(crate) query: Option<String>,
    #[command(flatten)]
    pub(crate) reduction: Reduction,
}

/// Run an MCP server, and shorten long results of its tools.
///
/// Write this command in front of the server's own in an MCP client's configuration, or, for a server
/// over HTTP, its URL after `--url`. Messages pass as they are; results over the limit are stored
/// whole, and the model gets a preview, a hint, and a tool that reads what is stored. Stderr, signals
/// and the exit code are the server's own. If something is wrong with the settings, the server runs
/// without it.
#[cfg(unix)]
#[derive(Debug, clap::Args)]
pub(crate) struct Mcp {
    /// Id of the session, under whose prefix results are stored; the reader reads nothing else.
    /// Default: derived from the command and the directory, so that what a conversation has stored can
    /// still be read after the server has been restarted.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Name of the tool that reads stored results. Default: the settings' `read_file_tool_name`,
    /// or read_stored_result if that is `read_file`, which many servers have themselves.
    #[arg(long, value_name = "NAME")]
    pub(crate) reader: Option<String>,
    /// Maximum length of a message; a longer one is refused.
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, default_value = "64MiB")]
    pub(crate) max_message: u64,
    /// URL of a server over streamable HTTP, in place of a command.
    #[cfg(feature = "serve")]
    #[arg(long, value_name = "URL", help_heading = REMOTE, conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// A header for each request to that server, such as 'Authorization: Bearer ${TOKEN}'. `${NAME}` is
    /// the value of an environment variable, which keeps a secret out of the list of processes. May
    /// be repeated.
    #[cfg(feature = "serve")]
    #[arg(long, value_name = "NAME: VALUE", help_heading = REMOTE, requires = "url")]
    pub(crate) header: Vec<String>,
    /// Environment variable that holds a bearer token for that server, for clients that replace
    /// `${NAME}` in arguments themselves.
    #[cfg(feature = "serve")]
    #[arg(long, value_name = "NAME", help_heading = REMOTE, requires = "url")]
    pub(crate) bearer_token_env_var: Option<String>,
    /// Serve clients over HTTP at this address, such as 127.0.0.1:7770, in place of one client over
    /// stdio. With a command, each session has a server of its own. Port 0 takes one that is free; the
    /// URL is written to stdout.
    #[cfg(feature = "serve")]
    #[arg(long, value_name = "ADDRESS", help_heading = LISTEN)]
    pub(crate) listen: Option<SocketAddr>,
    /// Let other machines connect, if the address allows it. Whoever can connect can use the server, and
    /// read stored results whose names it knows.
    #[cfg(feature = "serve")]
    #[arg(long, help_heading = LISTEN, requires = "listen")]
    pub(crate) expose: bool,
    /// A name under which clients may address this program, besides localhost and addresses. May be
    /// repeated.
    #[cfg(feature = "serve")]
    #[arg(long, value_name = "NAME", help_heading = LISTEN, requires = "listen")]
    pub(crate) allow_host: Vec<String>,
    /// The server's command and its arguments. Everything from the first word on is the server's.
    #[cfg_attr(feature = "serve", arg(required_unless_present = "url"))]
    #[cfg_attr(not(feature = "serve"), arg(required = true))]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
    #[command(flatten)]
    pub(crate) of_user: OfUser,
}

/// Run a server that shortens requests of agents to providers.
///
/// For any agent that lets you set a base URL: set it to http://127.0.0.1:8787/anthropic, /openai/v1
/// or /gemini. Long and old tool results are stored and replaced by hints; everything else passes
/// byte for byte. If anything goes wrong here, the request is forwarded unchanged. Keys pass through
/// and are neither stored nor logged.
///
/// Options of the server are in the table [serve] of the settings. SIGINT and SIGTERM stop it once
/// running requests have ended.
#[cfg(feature = "serve")]
#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// The address to listen on, instead of the settings' own or 127.0.0.1:8787. Port 0 takes one
    /// that is free.
    #[arg(long, value_name = "ADDRESS")]
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
    /// Fail at the start if a store does not answer, or takes nothing.
    #[arg(long)]
    pub(crate) require_store: bool,
    /// Minimum level of the messages that are logged to stderr.
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = level())]
    pub(crate) log: Level,
    #[command(flatten)]
    pub(crate) of_user: OfUser,
}

fn format() -> impl TypedValueParser<Value = WireFormat> {
    PossibleValuesParser::new(WireFormat::ALL.map(WireFormat::name)).try_map(|name| name.parse())
}

fn policy() -> Suggesting<StringValueParser> {
    let names = READY.iter().map(|(name, _)| *name);
    Suggesting(StringValueParser::new(), names.collect())
}

fn named_policy() -> Suggesting<impl TypedValueParser<Value = (String, String)>> {
    let Suggesting(parser, names) = policy();
    Suggesting(parser.try_map(|text| policy_of(&text)), names)
}

#[cfg(all(feature = "serve", unix))]
fn agent() -> Suggesting<OsStringValueParser> {
    let names = Agent::value_variants()
        .iter()
        .map(|agent| agent.facts().name);
    Suggesting(OsStringValueParser::new(), names.collect())
}

/// Takes what another parser takes, and names values for shells to complete.
#[derive(Clone)]
struct Suggesting<P>(P, Vec<&'static str>);

impl<P: TypedValueParser> TypedValueParser for Suggesting<P> {
    type Value = P::Value;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Self::Value, clap::Error> {
        self.0.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.1.iter().map(PossibleValue::new)))
    }
}

#[cfg(feature = "serve")]
fn level() -> impl TypedValueParser<Value = Level> {
    PossibleValuesParser::new(["error", "warn", "info", "debug"]).try_map(|level| level.parse())
}

/// Run a coding agent with a server between it and its provider.
///
/// Its base URL and the right to read the store are set for this one run; nothing in its settings
/// changes. A base URL that the environment already has stays the provider's. The exit code is the
/// agent's.
#[cfg(all(feature = "serve", unix))]
#[derive(Debug, clap::Args)]
pub(crate) struct Wrap {
    /// Token prices by which the server's page estimates the bill, as `offcut serve` takes them.
    #[arg(long, value_name = "CARD", default_value = "default")]
    pub(crate) prices: String,
    /// The agent, claude-code, codex, gemini-cli, opencode or pi, and its arguments. Everything after
    /// its name is the agent's.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "AGENT",
        value_parser = agent(),
        hide_possible_values = true
    )]
    pub(crate) agent: Vec<OsString>,
    #[command(flatten)]
    pub(crate) of_user: OfUser,
}

/// Compare two command lines of your agent over your own tasks.
///
/// Each task is run many times under two command lines, in an order that a seed decides. Without
/// --results, only says how many runs that are, and by which test they are compared. With
/// --results, makes these runs, and continues where it was stopped or killed. The test is applied
/// once, when all runs are made.
///
/// A task is a folder with a `prompt.md`, which is the agent's stdin, and an executable `check`, which
/// exits with 0 if the task is solved. The run's folder begins with a copy of the task's `files/`, and
/// with what its executable `setup` makes of it, if it has them.
#[cfg(unix)]
#[derive(Debug, clap::Args)]
pub(crate) struct Trial {
    /// The folder of tasks.
    #[arg(value_name = "TASKS", value_hint = ValueHint::DirPath)]
    pub(crate) tasks: PathBuf,
    /// A name and a line for `sh -c`, such as `with=offcut wrap claude-code -p`. Exactly two; the
    /// second is compared with the first.
    #[arg(long = "arm", value_name = "NAME=COMMAND", required = true, value_parser = pair)]
    pub(crate) arms: Vec<(String, String)>,
    /// Repetitions of each task for each arm. docs/trials.md says how many runs find which difference.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) repetitions: u64,
    /// The seed of the order of runs.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// The time after which an agent's run is ended. Its check decides all the same.
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "30m")]
    pub(crate) time_limit: Duration,
    /// Prices of a million tokens, from which money is computed: a TOML file with `fresh`,
    /// `cached`, `written`, `output`, `currency`, `source` and `date`.
    #[arg(long, value_name = "CARD", value_hint = ValueHint::FilePath)]
    pub(crate) prices: Option<String>,
    /// Run the trial, and append each run to this file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) results: Option<PathBuf>,
    /// Keep the files and the output of each run in this folder.
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath, requires = "results")]
    pub(crate) keep: Option<PathBuf>,
}

/// A policy's name and its file, or the name of a built-in one twice.
fn policy_of(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        // A store's URL is not a policy, and what stands after the `=` in its query must not be repeated.
        Some((name, _)) if !name.contains([':', '?']) => pair(text),
        _ => Ok((text.to_owned(), text.to_owned())),
    }
}

/// A name and a value.
fn pair(text: &str) -> Result<(String, String), String> {
    let (name, command) = text
        .split_once('=')
        .filter(|(name, command)| !name.is_empty() && !command.trim().is_empty())
        .ok_or("write a name and a value, with = between them")?;
    Ok((name.to_owned(), command.to_owned()))
}
