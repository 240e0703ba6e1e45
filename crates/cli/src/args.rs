//! The command line.

mod agents;
#[cfg(unix)]
mod mcp;
mod read;
mod reduction;
#[cfg(feature = "serve")]
pub(crate) mod serve;
#[cfg(unix)]
mod trial;

#[cfg(unix)]
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};
use offcut::backend::StoreUrl;
use offcut::format::WireFormat;

use crate::units;

pub(crate) use agents::{Gain, Hook, Install, Place};
#[cfg(unix)]
pub(crate) use mcp::Mcp;
pub(crate) use read::Read;
pub(crate) use reduction::{OfUser, Reduction};
#[cfg(all(feature = "serve", unix))]
pub(crate) use serve::Wrap;
#[cfg(feature = "serve")]
pub(crate) use serve::{Serve, Status};
#[cfg(unix)]
pub(crate) use trial::Trial;

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 something failed, nothing was lost; 2 wrong arguments, settings or input; 3 done, but a transcript was skipped,
or something could not be swept. After 1 and 2, truncate, clear and reduce have passed their input on unchanged.

Settings are TOML or JSON; `offcut config default` prints every option. In place of a settings file, you can name a built-in policy:
recommended, eino, anthropic, aggressive, gentle, cache-friendly.";

/// Keep long tool results out of an agent's context window, and keep every byte readable.
#[derive(Debug, Parser)]
#[command(name = "offcut", version, after_help = EXIT_CODES, max_term_width = 110)]
pub(crate) struct Args {
    /// Write results to stdout and errors to stderr as JSON, for programs.
    #[arg(long, global = true)]
    pub(crate) json: bool,
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
    /// Read stdin to its end, and keep nothing. `run` leaves this command behind.
    #[cfg(unix)]
    #[command(hide = true)]
    Drain,
    /// Put Offcut around a coding agent's tools by changing the agent's settings.
    ///
    /// Adds a hook, and the right to read the store. Comments and other hooks stay; a second time,
    /// nothing changes. `uninstall` takes it out.
    Install(Install),
    /// Take Offcut out of a coding agent's settings.
    ///
    /// If nobody else has changed the file since, it is as it was before, byte for byte. Stored
    /// results stay.
    Uninstall(Place),
    /// Examine an installation: send an event through it, and say what works.
    ///
    /// The exit code is 1 if there is a problem.
    Doctor(Place),
    Gain(Gain),
    #[cfg(feature = "serve")]
    Serve(Serve),
    #[cfg(feature = "serve")]
    Status(Status),
    #[cfg(all(feature = "serve", unix))]
    Wrap(Wrap),
    #[cfg(unix)]
    Trial(Trial),
    Truncate(Truncate),
    /// Clear old results from a conversation, read from stdin, and print the messages to send.
    ///
    /// The conversation is a JSON list of messages, or a request's body that holds one; the output has
    /// the same form. If there is nothing to clear, or something fails, the input is passed on byte for
    /// byte. With --json, the output is {"body": …, "report": …}.
    #[command(override_usage = "offcut clear <--backend <URL>|--config <FILE>> [OPTIONS]")]
    Clear(Conversation),
    /// Reduce a whole request, read from stdin, and print the one to send.
    ///
    /// Every result over the limit is truncated as it would have been when it arrived, and then old
    /// results are cleared. The input is a JSON list of messages, or a request's body that holds one,
    /// and may be the original each time: what was decided in an earlier call is written down in the
    /// store, and is repeated byte for byte. If there is nothing to do, or something fails, the input is
    /// passed on byte for byte. With --json, the output is {"body": …, "report": …}.
    #[command(override_usage = "offcut reduce <--backend <URL>|--config <FILE>> [OPTIONS]")]
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
    /// Print the script by which a shell completes the arguments of offcut.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages of offcut and its commands.
    Man {
        /// A folder for the pages.
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
    #[command(flatten)]
    pub(crate) of_user: OfUser,
    /// Id of the conversation, under whose prefix output is stored. Default: one for each day.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// The tool's name, for settings of single tools.
    #[arg(long, value_name = "NAME", default_value = "shell")]
    pub(crate) tool: String,
    /// The id of the call, which names the stored output. Default: a new one.
    #[arg(long, value_name = "ID")]
    pub(crate) call_id: Option<String>,
    /// The command and its arguments. Everything from the first word on is the command's.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<OsString>,
}

/// Print a tool's result, read from stdin, as a model would see it.
///
/// A result over the limit is stored whole while it streams in. With --json, prints what the model
/// would see and the report. If something fails, the result is passed on unchanged.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "offcut truncate --tool <NAME> <--backend <URL>|--config <FILE>> [OPTIONS]"
)]
pub(crate) struct Truncate {
    #[command(flatten)]
    pub(crate) reduction: Reduction,
    /// The tool that returned the result.
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: String,
    /// The id of the call, which names the stored content.
    #[arg(long, value_name = "ID", default_value = "")]
    pub(crate) call_id: String,
    /// The arguments of the call.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) arguments: String,
    /// Read stdin as a JSON list of parts, such as [{"type": "text", "value": "…"}], and write JSON
    /// too. The list must not hold anything that would get lost: duplicate keys, unknown fields, or
    /// numbers with more digits than are kept.
    #[arg(long)]
    pub(crate) parts: bool,
}

/// A conversation on stdin.
#[derive(Debug, clap::Args)]
pub(crate) struct Conversation {
    #[command(flatten)]
    pub(crate) reduction: Reduction,
    /// The format: openai-chat, openai-responses, anthropic or gemini. By default, it is detected
    /// from the messages.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<WireFormat>,
    /// Write every decision and its reason to a file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

/// Remove stored conversations that are idle and that no transcript names; a dry run unless --apply
/// is given.
///
/// A conversation goes as one, or stays as one. Agents may keep running.
#[derive(Debug, clap::Args)]
pub(crate) struct Sweep {
    /// All stores in the agents' settings, including those of single tools, because a conversation may
    /// have content in several: directories, or s3://bucket/prefix.
    #[arg(value_name = "STORE", required = true)]
    pub(crate) stores: Vec<StoreUrl>,
    /// A folder of transcripts, or one transcript: each conversation that any of the files names
    /// stays. May be repeated; give every live one.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) live: Vec<PathBuf>,
    /// Sweep as if no conversation were live, instead of --live.
    #[arg(long, conflicts_with = "live")]
    pub(crate) nothing_is_live: bool,
    /// A session to keep whole, although no transcript names its content, because its loop passes
    /// in originals every turn. May be repeated.
    #[arg(long, value_name = "ID")]
    pub(crate) keep_session: Vec<String>,
    /// Remove conversations in which nothing was stored or read for longer than this, at least 48h.
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "30d")]
    pub(crate) idle: Duration,
    /// Then remove those that have been idle longest, but none younger than 48h, until what no
    /// transcript names takes at most this much: 10GiB, 500MB.
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    pub(crate) quota: Option<u64>,
    /// Sweep only content below this prefix: the agents' root_dir.
    #[arg(
        long,
        value_name = "PREFIX",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) root: String,
    /// Sweep only content of this conversation, below the root if one is given.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Accept a directory as a store although it lacks the `.staging` folder that stores have,
    /// because the folder was deleted or not copied.
    #[arg(long)]
    pub(crate) is_a_store: bool,
    /// Carry out the sweep; without this option, only report what it would do.
    #[arg(long)]
    pub(crate) apply: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Store {
    /// List stored content: location, size in bytes and age.
    Ls {
        /// The store: a directory, or s3://bucket/prefix.
        store: StoreUrl,
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
    Default,
    /// Check that settings build and that their stores can be written to.
    Check {
        /// A .toml or .json file, or the name of a built-in policy.
        file: String,
    },
}

/// Replay agents' transcripts under policies, and show what each would have cost and what the model
/// could still have seen.
///
/// Each result is truncated as it arrives, and each turn of the assistant is a model call with a
/// clear pass before it. The first row, `none`, is without any policy. Content is stored in memory,
/// with locations of 40 bytes; stores named by policies are not used, unless --use-stores is given.
#[derive(Debug, clap::Args)]
pub(crate) struct Replay {
    /// Transcripts: files, folders of .json, .jsonl and .traj files, or - for stdin.
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    /// A policy to replay under. May be repeated. By default, all built-in policies.
    #[arg(long = "policy", value_name = "NAME=FILE")]
    pub(crate) policies: Vec<String>,
    /// Requests that another policy has made of these transcripts, to be judged by the same measure: a
    /// folder with a file of JSON Lines for each transcript. May be repeated.
    #[arg(long = "requests", value_name = "NAME=FOLDER")]
    pub(crate) requests: Vec<String>,
    /// Store in the stores that the policies' files name.
    #[arg(long)]
    pub(crate) use_stores: bool,
    /// Say instead why the provider's cache missed: the traces are logs of requests, one on each line.
    #[cfg(feature = "serve")]
    #[arg(long, conflicts_with_all = ["policies", "requests", "use_stores", "html"])]
    pub(crate) cache: bool,
    /// Token prices: `default` (weights 0.1 cached, 1 fresh), `anthropic` (0.1 and 1.25), or a file
    /// with `cached` and `fresh` per million tokens and, to show money, `currency`, `source` and
    /// `date`.
    #[arg(long, value_name = "CARD", default_value = "default")]
    pub(crate) prices: String,
    /// Write an HTML report to a file: bill and visibility, context sizes, what was cleared when,
    /// and the worst moments. It holds excerpts of the transcripts.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}
