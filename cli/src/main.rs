//! Offcut's program: what a policy would have done to your own transcripts, and the library's parts for programs in other languages.

mod args;
mod commands;
mod evidence;
mod failure;
mod output;
mod replay;
mod settings;
mod transcript;

use std::process::ExitCode;

use args::{Args, Command};
use clap::Parser;

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match &args.command {
        Command::Replay(replay) => commands::replay::run(replay, args.json),
    };
    done.unwrap_or_else(|failure| {
        output::report(&failure);
        failure.exit_code()
    })
}
