//! `offcut run`.

use std::io;
use std::process::{Command, ExitCode};
use std::sync::Arc;

use serde_json::json;
use tokio::sync::Mutex;

use crate::child::{self, Child, Outputs};
use crate::failure::Failure;
use crate::stream::Stream;
use crate::{args, output, settings};

pub(crate) fn run(args: &args::Run) -> Result<ExitCode, Failure> {
    let (runtime, streams) = match prepare(args) {
        Ok(prepared) => prepared,
        Err(failure) => return Err(run_alone(args, &failure)),
    };
    let _inside = runtime.enter();
    match Child::spawn(command(args)) {
        Ok((child, outputs)) => runtime.block_on(follow(child, outputs, streams)),
        Err(error) => Err(not_started(args, &error)),
    }
}

/// Builds what both streams need, stdout first.
fn prepare(args: &args::Run) -> Result<(tokio::runtime::Runtime, [Stream; 2]), Failure> {
    let runtime = settings::runtime()?;
    let inside = runtime.enter();
    let words: Vec<_> = args
        .command
        .iter()
        .map(|word| word.to_string_lossy())
        .collect();
    let arguments = json!({ "command": words.join(" ") }).to_string();
    let streams = Stream::both(&args.shown, &arguments)?;
    drop(inside);
    Ok((runtime, streams))
}

fn command(args: &args::Run) -> Command {
    let mut command = Command::new(&args.command[0]);
    command.args(&args.command[1..]);
    command
}

/// Runs the command without reducing anything, because that can't be prepared. Returns the error if
/// the command does not start either.
fn run_alone(args: &args::Run, failure: &Failure) -> Failure {
    output::report(failure);
    output::warn("running the command without offcut");
    not_started(args, &child::replace_with(command(args)))
}

fn not_started(args: &args::Run, error: &io::Error) -> Failure {
    let name = args.command[0].to_string_lossy();
    let advice = "name an executable program; for a shell command line, use `sh -c`";
    Failure::new(format!("{name} does not start: {error}"))
        .hint(advice)
        .with_code(child::start_code(error))
}

/// Shows the command's output, and returns its exit code.
async fn follow(
    child: Child,
    outputs: Outputs,
    [out, err]: [Stream; 2],
) -> Result<ExitCode, Failure> {
    let shared = |output| Arc::new(Mutex::new(output));
    let (stdout, stderr) = (shared(outputs.stdout), outputs.stderr.map(shared));
    let first = out.show(&stdout);
    let second = async {
        match &stderr {
            Some(stderr) => err.show(stderr).await,
            None => Ok(()),
        }
    };
    let (code, first, second) = tokio::join!(child.wait(), first, second);
    first.and(second)?;
    let code =
        code.map_err(|error| Failure::new(format!("waiting for the command failed: {error}")))?;
    Ok(ExitCode::from(code))
}
