//! The options of all commands.

use clap::ColorChoice;

/// The options of all commands: what is written beside results, and how.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Manner {
    /// Write results to stdout and errors to stderr as JSON, for programs; what a command started by `run`, `wrap` or
    /// `mcp` writes stays as it is.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Colour help, tables and messages. `auto`: on a terminal, unless NO_COLOR is set, or if CLICOLOR_FORCE is.
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) color: ColorChoice,
    /// Show only results and errors: no notes, no warnings, no progress.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Say which settings, stores and transcripts are read.
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
}
