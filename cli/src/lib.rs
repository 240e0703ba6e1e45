//! Offcut's program: what a policy would have done to your own transcripts, and the library's parts for programs in other languages.
//!
//! It is a library only so that fuzz targets find it: nothing here is for others.

mod args;
mod commands;
mod evidence;
mod failure;
#[doc(hidden)]
pub mod fuzz;
mod output;
mod replay;
mod report;
mod settings;
mod stores;
mod transcript;
mod units;

use std::process::ExitCode;

use args::{Args, Command};
use clap::Parser;

/// The program.
#[must_use]
pub fn main() -> ExitCode {
    let args = Args::parse();
    let done = match &args.command {
        Command::Replay(replay) => commands::replay::run(replay, args.json),
        Command::Truncate(truncate) => commands::truncate::run(truncate, args.json),
        Command::Clear(clear) => commands::clear::run(clear),
        Command::Read(read) => commands::read::run(read, args.json),
        Command::Sweep(sweep) => commands::sweep::run(sweep, args.json),
        Command::Store(args::Store::Ls { store }) => commands::store::ls(store, args.json),
        Command::Store(args::Store::Stat { store, location }) => commands::store::stat(store, location, args.json),
        Command::State(args::State::Apply(apply)) => commands::state::run(apply),
        Command::Config(args::Config::Default) => commands::config::default(args.json),
        Command::Config(args::Config::Check { file }) => commands::config::check(file, args.json),
    };
    done.unwrap_or_else(|failure| {
        output::report(&failure);
        failure.exit_code()
    })
}
