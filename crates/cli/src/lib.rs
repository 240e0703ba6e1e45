//! The `offcut` program: shows what a policy would have done to your own transcripts, and gives
//! programs in other languages access to the library.
//!
//! It is a library only so that tests, fuzz targets and benches can use it; nothing here is a public API.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[doc(hidden)]
pub mod agents;
mod args;
#[cfg(unix)]
mod child;
mod commands;
mod evidence;
mod exact;
#[doc(hidden)]
pub mod failure;
#[doc(hidden)]
pub mod fuzz_tests;
#[cfg(feature = "serve")]
#[doc(hidden)]
pub mod gateway;
mod input;
mod lock;
mod measure;
mod output;
mod page;
mod replay;
mod report;
#[cfg(feature = "serve")]
mod serving;
mod settings;
mod stores;
#[cfg(unix)]
mod stream;
mod transcript;
#[cfg(unix)]
#[doc(hidden)]
pub mod trials;
mod units;
mod usage;
mod visible;

use std::process::ExitCode;

use args::{Args, Command};
use clap::Parser;
use commands::clear::Work;
use failure::Failure;
#[doc(hidden)]
pub use settings::READY;

/// Runs the program.
pub fn main() -> ExitCode {
    // A limit on file sizes is an error then. Without a handler, it ends the program.
    #[cfg(unix)]
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default());
    let done = match Args::try_parse() {
        Ok(args) => run(&args),
        Err(error) => answer(&error),
    };
    done.unwrap_or_else(|failure| {
        output::report(&failure);
        ExitCode::from(failure.code())
    })
}

fn run(args: &Args) -> Result<ExitCode, Failure> {
    match &args.command {
        Command::Replay(replay) => commands::replay::run(replay, args.json),
        #[cfg(unix)]
        Command::Run(run) => commands::run::run(run),
        #[cfg(unix)]
        Command::Mcp(mcp) => commands::mcp::run(mcp),
        Command::Hook(hook) => Ok(commands::hook::run(hook)),
        #[cfg(unix)]
        Command::Drain => Ok(commands::drain::run()),
        Command::Install(install) => commands::install::install(install, args.json),
        Command::Uninstall(install) => commands::install::uninstall(install, args.json),
        Command::Doctor(install) => commands::install::doctor(install, args.json),
        #[cfg(feature = "serve")]
        Command::Serve(serve) => commands::serve::run(serve, args.json),
        #[cfg(feature = "serve")]
        Command::Status(status) => commands::status::run(status, args.json),
        #[cfg(all(feature = "serve", unix))]
        Command::Wrap(wrap) => commands::wrap::run(wrap),
        #[cfg(unix)]
        Command::Trial(trial) => commands::trial::run(trial, args.json),
        Command::Gain(gain) => commands::gain::run(gain, args.json),
        Command::Truncate(truncate) => commands::truncate::run(truncate, args.json),
        Command::Clear(clear) => commands::clear::run(clear, Work::Clear, args.json),
        Command::Reduce(reduce) => commands::clear::run(reduce, Work::Reduce, args.json),
        Command::Read(read) => commands::read::run(read, args.json),
        Command::Tidy => Ok(commands::tidy::run()),
        Command::Sweep(sweep) => commands::sweep::run(sweep, args.json),
        Command::Store(args::Store::Ls { store }) => commands::store::ls(store, args.json),
        Command::State(args::State::Apply(apply)) => commands::state::run(apply),
        Command::Completions { shell } => commands::shell_files::completions(*shell),
        Command::Man { folder } => commands::shell_files::man(folder),
        Command::Config(args::Config::Default) => commands::config::default(args.json),
        Command::Config(args::Config::Check { file }) => commands::config::check(file, args.json),
    }
}

/// Prints the requested help or the argument error. After an error, a command in a pipeline passes
/// its input on.
fn answer(error: &clap::Error) -> Result<ExitCode, Failure> {
    if !error.use_stderr() {
        output::write_styled(&error.render())?;
        return Ok(ExitCode::SUCCESS);
    }
    output::usage(error);
    let mut words = std::env::args_os().skip(1);
    if words
        .find(|word| !word.as_encoded_bytes().starts_with(b"-"))
        .is_some_and(|word| word == "truncate" || word == "clear" || word == "reduce")
    {
        input::pass_on_rest()?;
    }
    Ok(ExitCode::from(failure::USAGE))
}
