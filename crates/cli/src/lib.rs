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
mod help;
mod input;
mod lock;
mod manner;
mod measure;
mod output;
mod page;
mod policies;
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
use clap::FromArgMatches as _;
use commands::clear::Work;
use failure::Failure;
#[doc(hidden)]
pub use policies::READY;

/// Runs the program.
pub fn main() -> ExitCode {
    // A limit on file sizes is an error then. Without a handler, it ends the program.
    #[cfg(unix)]
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default());
    let parsed = help::command().try_get_matches();
    let done = match parsed.and_then(|matches| Args::from_arg_matches(&matches)) {
        Ok(args) => {
            output::speak(args.manner);
            run(&args)
        }
        Err(error) => {
            output::speak(output::guessed(std::env::args_os().skip(1)));
            answer(&error)
        }
    };
    done.unwrap_or_else(|failure| {
        output::report(&failure);
        ExitCode::from(failure.code())
    })
}

fn run(args: &Args) -> Result<ExitCode, Failure> {
    let json = args.manner.json;
    match &args.command {
        Command::Replay(replay) => commands::replay::run(replay, json),
        #[cfg(unix)]
        Command::Run(run) => commands::run::run(run),
        #[cfg(unix)]
        Command::Mcp(mcp) => commands::mcp::run(mcp),
        Command::Hook(hook) => Ok(commands::hook::run(hook)),
        Command::Install(install) => commands::install::install(install, json),
        Command::Uninstall(install) => commands::install::uninstall(install, json),
        Command::Doctor(install) => commands::install::doctor(install, json),
        #[cfg(feature = "serve")]
        Command::Serve(serve) => commands::serve::run(serve, json),
        #[cfg(feature = "serve")]
        Command::Status => commands::status::run(json),
        #[cfg(all(feature = "serve", unix))]
        Command::Wrap(wrap) => commands::wrap::run(wrap),
        #[cfg(unix)]
        Command::Trial(trial) => commands::trial::run(trial, json),
        Command::Gain(gain) => commands::gain::run(gain, json),
        Command::Truncate(truncate) => commands::truncate::run(truncate, json),
        Command::Clear(clear) => commands::clear::run(clear, Work::Clear, json),
        Command::Reduce(reduce) => commands::clear::run(reduce, Work::Reduce, json),
        Command::Read(read) => commands::read::run(read, json),
        Command::Tidy => Ok(commands::tidy::run()),
        Command::Sweep(sweep) => commands::sweep::run(sweep, json),
        Command::Store(args::Store::Ls { store }) => commands::store::ls(store.as_ref(), json),
        Command::State(args::State::Apply(apply)) => commands::state::run(apply),
        Command::Completions { shell } => commands::shell_files::completions(*shell),
        Command::Man { folder } => commands::shell_files::man(folder),
        Command::Config(args::Config::Default { policy }) => {
            commands::config::default(policy.as_deref(), json)
        }
        Command::Config(args::Config::Check { file }) => commands::config::check(file, json),
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
    let (mut words, known) = (std::env::args_os().skip(1), help::command());
    let command = words.find(|word| known.find_subcommand(word).is_some());
    if command.is_some_and(|word| word == "truncate" || word == "clear" || word == "reduce") {
        input::pass_on_rest()?;
    }
    Ok(ExitCode::from(failure::USAGE))
}
