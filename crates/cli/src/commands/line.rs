//! `offcut line`: runs one line of an agent's shell as the agent would, and shortens its output if the line
//! fails.
//!
//! The line writes where it would write without this program: to a file of its own, from which the agent
//! takes the result once the line has ended. Until then, everything is as the agent expects it.

use std::env;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::agents::hook::{FailedLine, shorten_failed};
use crate::agents::layout::Home;
use crate::agents::{Agent, journal, log};
use rustix::fs::{OFlags, fcntl_getfl};

use super::hook::OpenedHook;
use crate::child::{self, Child, is_merged};
use crate::failure::{Failure, chain};
use crate::stream::unique_id;
use crate::{args, settings};

/// The variable in which the agent tells its shell the id of the conversation.
const SESSION: &str = "CLAUDE_CODE_SESSION_ID";

/// Runs the line. Fails only if its shell does not start.
pub(crate) fn run(args: &args::Line) -> Result<ExitCode, Failure> {
    let not_started = |error: io::Error| {
        Failure::new(format!("the shell does not start: {error}"))
            .hint("set SHELL to a shell that is there")
            .with_code(child::start_code(&error))
    };
    // Before the line writes to it.
    let output = output();
    let Ok(runtime) = settings::runtime() else {
        return Err(not_started(shell(&args.line).exec()));
    };
    let inside = runtime.enter();
    let child = Child::inheriting(shell(&args.line)).map_err(not_started)?;
    let code = runtime.block_on(child.wait_for(std::future::ready(())));
    drop(inside);
    let code = code
        .map_err(|error| Failure::new(format!("waiting for the shell failed: {error}")))?
        .code;
    if code != 0
        && let Some(output) = output
        && let Err(failure) = shorten(args, &output)
        && let Some(home) = Home::from_env()
    {
        // There is nowhere to report that the log can't be written.
        _ = log::append(&home.log(), &format!("line {}: {failure}", args.agent));
    }
    Ok(ExitCode::from(code))
}

/// The agent's shell over the line, started as the agent starts it.
fn shell(line: &str) -> Command {
    let mut shell = Command::new(env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into()));
    if !line.starts_with("source ") {
        // The agent has no snapshot of what the user's own files set.
        shell.arg("-l");
    }
    shell.arg("-c").arg(line);
    shell
}

/// The file that gets all of the line's output, and nothing else. `None` if there is no such file.
fn output() -> Option<PathBuf> {
    let stdout = File::from(io::stdout().as_fd().try_clone_to_owned().ok()?);
    let file = stdout.metadata().ok()?;
    // Else what the line has left in the background would write at its old place in a shorter file.
    let is_appended = fcntl_getfl(&stdout).ok()?.contains(OFlags::APPEND);
    let is_own = file.is_file() && file.len() == 0 && is_appended && is_merged().ok()?;
    let path = path_of(&stdout).filter(|_| is_own)?;
    let found = path.metadata().ok()?;
    ((found.dev(), found.ino()) == (file.dev(), file.ino())).then_some(path)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn path_of(_stdout: &File) -> Option<PathBuf> {
    std::fs::read_link("/proc/self/fd/1").ok()
}

#[cfg(target_vendor = "apple")]
fn path_of(stdout: &File) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let path = rustix::fs::getpath(stdout).ok()?;
    Some(std::ffi::OsString::from_vec(path.into_bytes()).into())
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn path_of(_stdout: &File) -> Option<PathBuf> {
    None
}

/// Puts a hint and a preview in place of long output.
fn shorten(args: &args::Line, output: &Path) -> Result<(), Failure> {
    let agent: Agent = args
        .agent
        .parse()
        .map_err(|error| Failure::new(format!("{error}")))?;
    let home = Home::from_env();
    let opened = OpenedHook::open(agent, &[], &args::Hook::of(&args.agent), home.as_ref())?;
    let failed = FailedLine {
        agent,
        session: env::var(SESSION).unwrap_or_else(|_| "shell".to_owned()),
        call: unique_id(),
        line: args.line.clone(),
        output: output.to_owned(),
    };
    let inside = opened.runtime.enter();
    let shortened = shorten_failed(&failed, &opened.reduction, &opened.surroundings);
    let answer = opened.runtime.block_on(shortened);
    drop(inside);
    let answer = answer.map_err(|error| Failure::new(chain(&error)))?;
    if let Some(text) = &answer.output {
        replace(output, text)
            .map_err(|error| Failure::new(format!("the output can't be replaced: {error}")))?;
    }
    let noted = home.map_or(Ok(()), |home| {
        journal::append(&home.journal(), &answer.entries)
    });
    noted.map_err(|error| Failure::new(format!("the journal can't be written: {error}")))
}

/// Replaces the content of a file that others hold open.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).truncate(true).open(file)?;
    file.write_all(text.as_bytes())
}
