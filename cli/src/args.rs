//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 something failed, nothing was lost; 2 wrong arguments, settings or input; 3 done, but a transcript was skipped.

Settings are TOML or JSON; `offcut config default` prints every option. Wherever a settings file is asked for, the name of a ready
policy does too: eino, anthropic, aggressive, gentle, cache-friendly.";

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
}

/// Replay transcripts of agents under policies: what each would have cost, and what the model could still have seen.
///
/// Each result is truncated as it arrives, each turn of the assistant is a model call with a pass before it. Doing nothing comes
/// first, as `none`. Policies without a backend store in memory, with locations of 40 bytes.
#[derive(Debug, clap::Args)]
pub(crate) struct Replay {
    /// Transcripts: files, folders with .json and .jsonl files, or - for stdin.
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    /// A policy to replay under; once for each. Without any: the ready policies.
    #[arg(long = "policy", value_name = "NAME=FILE")]
    pub(crate) policies: Vec<String>,
    /// What tokens cost: `default` (cached 0.1, fresh 1.0), `anthropic` (cached 0.1, fresh 1.25), or a file with both.
    #[arg(long, value_name = "CARD", default_value = "default")]
    pub(crate) prices: String,
}
