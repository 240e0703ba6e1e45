//! `offcut run`.

use std::ffi::OsStr;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;
use tokio::sync::Mutex;

use crate::child::{self, Child, Output};
use crate::failure::{Failure, OrFail as _};
use crate::stream::Stream;
use crate::{args, output, settings};

pub(crate) fn run(args: &args::Run) -> Result<ExitCode, Failure> {
    let (runtime, streams) = match prepare(args) {
        Ok(prepared) => prepared,
        Err(failure) => return Err(run_alone(args, &failure)),
    };
    let inside = runtime.enter();
    let code = match Child::spawn(&args.command) {
        Ok((child, outputs)) => runtime.block_on(follow(child, outputs, streams)),
        Err(error) => Err(not_started(args, &error)),
    };
    drop(inside);
    // A write that nobody takes would hold it up.
    runtime.shutdown_background();
    code
}

/// Builds what both streams need, stdout first.
fn prepare(args: &args::Run) -> Result<(tokio::runtime::Runtime, [Stream; 2]), Failure> {
    let runtime = settings::runtime()?;
    let inside = runtime.enter();
    let words = args.command.join(OsStr::new(" "));
    let arguments = json!({"command": words.to_string_lossy()}).to_string();
    let streams = Stream::both(args, &arguments)?;
    drop(inside);
    Ok((runtime, streams))
}

/// Runs the command without reducing anything, because that can't be prepared. Returns the error if
/// the command does not start either.
fn run_alone(args: &args::Run, failure: &Failure) -> Failure {
    output::report(failure);
    output::warn("running the command without offcut");
    not_started(args, &child::replace_with(&args.command))
}

fn not_started(args: &args::Run, error: &io::Error) -> Failure {
    let advice = match args.command[0].as_encoded_bytes().first() {
        Some(b'-') => "`offcut run --help` lists the options, and this is none of them",
        _ => "name an executable program; for a shell command line, use `sh -c`",
    };
    child::not_started(&args.command[0], error, advice)
}

/// Shows the command's output, and returns its exit code. What it has left in the background lives on.
async fn follow(
    child: Child,
    (stdout, stderr): (Output, Option<Output>),
    [out, err]: [Stream; 2],
) -> Result<ExitCode, Failure> {
    let shared = |output| Arc::new(Mutex::new(output));
    let (stdout, stderr) = (shared(stdout), stderr.map(shared));
    let second = async {
        match &stderr {
            Some(stderr) => err.show(stderr).await,
            None => Ok(()),
        }
    };
    let shown = async { tokio::join!(out.show(&stdout), second) };
    let ended = child.wait_for(shown).await;
    let ended = ended.or_fail("waiting for the command failed")?;
    if ended.has_ended {
        for output in [Some(&stdout), stderr.as_ref()].into_iter().flatten() {
            if let Err(error) = output.lock().await.leave() {
                output::warn(&format!(
                    "what the command left in the background has no reader any more: {error}"
                ));
            }
        }
    }
    if let Some((first, second)) = ended.done {
        first.and(second)?;
    }
    Ok(ExitCode::from(ended.code))
}
