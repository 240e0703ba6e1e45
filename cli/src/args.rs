//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};
use offcut::ReadFileTool;
use offcut::backend::StoreUrl;
use offcut::format::WireFormat;
use offcut::hint::Position;
use regex::bytes::RegexBuilder;

use crate::units;

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 something failed, nothing was lost; 2 wrong arguments, settings or input; 3 done, but a transcript was skipped,
or something could not be swept. After 1 and 2, truncate and clear have passed their input on as it came.

Settings are TOML or JSON; `offcut config default` prints every option. Wherever a settings file is asked for, the name of a ready
policy does too: recommended, eino, anthropic, aggressive, gentle, cache-friendly.";

/// Keeps what an agent's tools return from filling the model's context, and loses none of it.
#[derive(Debug, Parser)]
#[command(name = "offcut", version, after_help = EXIT_CODES, max_term_width = 110)]
pub(crate) struct Args {
    /// Write JSON to stdout, for programs.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Replay(Replay),
    Truncate(Truncate),
    Clear(Clear),
    Read(Read),
    Sweep(Sweep),
    /// See what a store holds.
    #[command(subcommand)]
    Store(Store),
    /// Merge updates into a declared state.
    #[command(subcommand)]
    State(State),
    /// Print and check settings.
    #[command(subcommand)]
    Config(Config),
}

/// What is reduced how, and where it is stored.
#[derive(Debug, clap::Args)]
pub(crate) struct Reduction {
    /// Settings: a .toml or .json file, or the name of a ready policy.
    #[arg(long, value_name = "FILE", default_value = "recommended")]
    pub(crate) config: String,
    /// Where content is stored, in place of what the settings say: a path, memory:, or
    /// s3://bucket/prefix.
    #[arg(long, value_name = "URL")]
    pub(crate) backend: Option<StoreUrl>,
    /// The conversation, if there are several: what it stores has a prefix of its own.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
}

/// Show what a model would be shown of a tool's result, which is read from stdin.
///
/// A result over the limit is stored whole, as it comes. With --json: what is shown, and the
/// report. Where something fails, the result goes on as it came.
#[derive(Debug, clap::Args)]
pub(crate) struct Truncate {
    #[command(flatten)]
    pub(crate) reduction: Reduction,
    /// The tool that returned it.
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: String,
    /// The id of the call; what is stored is named by it.
    #[arg(long, value_name = "ID", default_value = "")]
    pub(crate) call_id: String,
    /// The arguments of the call.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) arguments: String,
    /// Stdin is no text but a JSON list of parts, such as [{"type": "text", "value": "…"}]; what is
    /// written is JSON, too. A list of which something would get lost is wrong input: keys that
    /// stand twice, fields that parts do not have, digits over what is kept.
    #[arg(long)]
    pub(crate) parts: bool,
}

/// Run the clear pass over a conversation, which is read from stdin, and write what is to be sent.
///
/// The conversation is a JSON list of messages, or a request's body that holds one; it leaves in
/// the same form. Where nothing is to be done, or something fails, it leaves byte for byte as it
/// came.
#[derive(Debug, clap::Args)]
pub(crate) struct Clear {
    #[command(flatten)]
    pub(crate) reduction: Reduction,
    /// The format: openai-chat, openai-responses, anthropic or gemini. Without it, the messages
    /// say.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<WireFormat>,
    /// Write what was decided, and why, to a file as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

/// Read what is stored back, a page at a time, as the model's reader shows it.
#[derive(Debug, clap::Args)]
pub(crate) struct Read {
    #[command(flatten)]
    pub(crate) reduction: Reduction,
    /// Where it is, exactly as a hint says.
    #[arg(required_unless_present = "definition")]
    pub(crate) location: Option<String>,
    /// Print the reader's definition for a request's `tools`, and read nothing: openai-chat,
    /// openai-responses, anthropic or gemini.
    #[arg(long, value_name = "FORMAT", conflicts_with_all = ["location", "offset", "limit", "pattern"])]
    pub(crate) definition: Option<WireFormat>,
    /// The first line, from 1; a negative number counts from the end; 12+4000 is byte 4000 of line
    /// 12.
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = offset)]
    pub(crate) offset: Option<String>,
    /// The most lines.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
    /// A regular expression: only the lines that match it.
    #[arg(long, value_name = "RE", value_parser = pattern)]
    pub(crate) pattern: Option<String>,
}

/// Parses an offset as the reader takes it.
fn offset(text: &str) -> Result<String, String> {
    let text = text.trim();
    let is_offset = match text.strip_prefix('-') {
        Some(lines) => lines.parse::<u64>().is_ok_and(|lines| lines > 0),
        None => text == "0" || Position::parse(text).is_some(),
    };
    is_offset
        .then(|| text.to_owned())
        .ok_or_else(|| "write a line from 1, a negative number, or LINE+BYTE".to_owned())
}

fn pattern(text: &str) -> Result<String, String> {
    // Compiled as the reader does.
    RegexBuilder::new(text)
        .size_limit(ReadFileTool::MAX_PATTERN)
        .build()
        .map_err(|error| error.to_string())?;
    Ok(text.to_owned())
}

/// Take away what is stored and no conversation names any more: a dry run, unless --apply.
///
/// What goes is moved aside and removed by a later sweep, when the grace is over and nobody has
/// named it since. Agents may go on meanwhile. Without --max-age, --quota or --unreferenced, only
/// what was moved aside before is removed.
#[derive(Debug, clap::Args)]
pub(crate) struct Sweep {
    /// All stores of the agents' settings, those of single tools too, for what is live in one may
    /// be named in another: directories, or s3://bucket/prefix. A quota is for each.
    #[arg(value_name = "STORE", required = true)]
    pub(crate) stores: Vec<StoreUrl>,
    /// A folder with transcripts, or one: all that is named in any file in it stays. Once for each;
    /// every live one is needed.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) live: Vec<PathBuf>,
    /// No conversation is live: in place of --live.
    #[arg(long, conflicts_with = "live")]
    pub(crate) nothing_is_live: bool,
    /// A session of which everything stays, though no transcript names it: of a loop that hands in
    /// its originals. Once for each.
    #[arg(long, value_name = "ID")]
    pub(crate) keep_session: Vec<String>,
    /// What was stored longer ago goes: 30d, 12h.
    #[arg(long, value_name = "AGE", value_parser = units::duration)]
    pub(crate) max_age: Option<Duration>,
    /// The oldest goes until what nobody names takes no more than this: 10GiB, 500MB.
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    pub(crate) quota: Option<u64>,
    /// Whatever nobody names goes.
    #[arg(long)]
    pub(crate) unreferenced: bool,
    /// How long what is new stays in any case, and what was moved aside can be brought back.
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "24h")]
    pub(crate) grace: Duration,
    /// Only what is stored below this prefix: the agents' root_dir.
    #[arg(
        long,
        value_name = "PREFIX",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) root: String,
    /// Only what this conversation has stored, below the root if there is one.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// The directory is a store, though it lacks the folder `.staging` that stores have: it was
    /// deleted, or not copied.
    #[arg(long)]
    pub(crate) is_a_store: bool,
    /// In earnest.
    #[arg(long)]
    pub(crate) apply: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Store {
    /// List what is stored: where, how many bytes, for how long.
    Ls {
        /// The store: a directory, or s3://bucket/prefix.
        store: StoreUrl,
    },
    /// Say what is stored at one location.
    Stat {
        /// The store: a directory, or s3://bucket/prefix.
        store: StoreUrl,
        /// Where it is, as a hint or `store ls` says.
        location: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum State {
    Apply(Apply),
}

/// Apply updates to a state, one after the other, and print the state.
///
/// After an error nothing is printed: all updates apply, or none.
#[derive(Debug, clap::Args)]
pub(crate) struct Apply {
    /// The declaration of the state, in YAML or JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: PathBuf,
    /// The state as it is, in JSON. Without it, every field has its default.
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// The updates, each a JSON map from fields to what their reducers take; - for stdin. No key
    /// may stand twice.
    #[arg(required = true, value_name = "UPDATE")]
    pub(crate) updates: Vec<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Print every option with its default, commented.
    Default,
    /// Check that settings build and that their stores can be written to.
    Check {
        /// A .toml or .json file, or the name of a ready policy.
        file: String,
    },
}

/// Replay transcripts of agents under policies: what each would have cost, and what the model could
/// still have seen.
///
/// Each result is truncated as it arrives, each turn of the assistant is a model call with a pass
/// before it. Doing nothing comes first, as `none`. What is cut is stored in memory, with locations
/// of 40 bytes; the stores that policies name are left alone, unless --use-stores.
#[derive(Debug, clap::Args)]
pub(crate) struct Replay {
    /// Transcripts: files, folders with .json, .jsonl and .traj files, or - for stdin.
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    /// A policy to replay under; once for each. Without any: the ready policies.
    #[arg(long = "policy", value_name = "NAME=FILE")]
    pub(crate) policies: Vec<String>,
    /// Store in the stores that the policies' files name.
    #[arg(long)]
    pub(crate) use_stores: bool,
    /// What tokens cost: a file with `cached` and `fresh`, for a million of them, and `currency`,
    /// `source` and `date`, without which no money is named; or a weight for each, `default` (0.1
    /// and 1) or `anthropic` (0.1 and 1.25).
    #[arg(long, value_name = "CARD", default_value = "default")]
    pub(crate) prices: String,
    /// Write a report to a file: bill and visibility, context sizes, what was cleared when, and the
    /// worst moments. It holds excerpts of the transcripts.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}
