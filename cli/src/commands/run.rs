//! `offcut run`.

use std::io;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::SystemTime;

use offcut::{OnStoreFailure, ToolCall, ToolReduction, Truncated};
use serde_json::json;
use tokio::sync::Mutex;

use super::note_failures;
use crate::child::{self, Child, Output, Outputs};
use crate::failure::{Failure, chain};
use crate::input::Input;
use crate::output::To;
use crate::stores::{self, RecoverableStore};
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

/// A stream to truncate: its reduction, the bytes that have arrived, and the call that they answer.
struct Stream {
    reduction: ToolReduction,
    input: Input,
    call: ToolCall,
    to: To,
}

/// Builds what both streams need, stdout first.
fn prepare(args: &args::Run) -> Result<(tokio::runtime::Runtime, [Stream; 2]), Failure> {
    let runtime = settings::runtime()?;
    let inside = runtime.enter();
    let call_id = args.call_id.clone().unwrap_or_else(unique_id);
    let words: Vec<_> = args
        .command
        .iter()
        .map(|word| word.to_string_lossy())
        .collect();
    let arguments = json!({ "command": words.join(" ") }).to_string();
    let stream = |suffix: &str, to: To| {
        let input = Input::default();
        let open = |url: &str| {
            let (store, input) = (stores::open(url)?, input.clone());
            Ok(Arc::new(RecoverableStore { store, input }) as _)
        };
        let reduction = settings::reduction_or(&args.reduction, settings::user_store, open)?;
        let call = ToolCall::new(format!("{call_id}{suffix}"), &args.tool, &arguments);
        Ok(Stream {
            reduction,
            input,
            call,
            to,
        })
    };
    let streams = [stream("", To::Stdout)?, stream("-stderr", To::Stderr)?];
    drop(inside);
    Ok((runtime, streams))
}

/// An id that no other run of this machine has.
fn unique_id() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    format!(
        "run-{}-{}",
        std::process::id(),
        now.unwrap_or_default().as_micros()
    )
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
    let first = show(outputs.stdout, out);
    let second = async {
        match outputs.stderr {
            Some(stderr) => show(stderr, err).await,
            None => Ok(()),
        }
    };
    let (code, first, second) = tokio::join!(child.wait(), first, second);
    first.and(second)?;
    let code =
        code.map_err(|error| Failure::new(format!("waiting for the command failed: {error}")))?;
    Ok(ExitCode::from(code))
}

/// Shows one stream as the model should see it. If it can't be stored, all of it is shown
/// unchanged.
async fn show(output: Output, stream: Stream) -> Result<(), Failure> {
    let Stream {
        reduction,
        input,
        call,
        to,
    } = stream;
    let may_lose = reduction.settings().on_offload_error == OnStoreFailure::PreviewOnly;
    let output = Arc::new(Mutex::new(output));
    let truncated = reduction
        .truncate(&call, input.follow(output.clone(), may_lose))
        .await;
    match truncated {
        Ok(truncated) if may_lose || !input.is_broken() => {
            note_failures(&truncated.report);
            write_shorter(&input, &truncated, to)
        }
        failed => {
            match failed {
                Ok(truncated) => note_failures(&truncated.report),
                Err(error) => output::warn(&chain(&error)),
            }
            input.pass_on_read(to).await?;
            let mut output = output.lock().await;
            loop {
                match output.read().await {
                    Ok(bytes) if bytes.is_empty() => return Ok(()),
                    Ok(bytes) => to.write(&bytes)?,
                    Err(error) => return Err(unreadable(&error)),
                }
            }
        }
    }
}

/// Writes the shown form, or the original bytes if they are not longer, since bytes that are not
/// text would be shown with replacement characters.
fn write_shorter(input: &Input, truncated: &Truncated, to: To) -> Result<(), Failure> {
    let text = truncated.text();
    match input.whole() {
        Some(bytes) if bytes.len() <= text.len() => to.write(&bytes)?,
        _ => to.write(text.as_bytes())?,
    }
    match &truncated.interrupted {
        Some(error) => Err(Failure::new(error.to_string())),
        None => Ok(()),
    }
}

fn unreadable(error: &io::Error) -> Failure {
    Failure::new(format!("the command's output can't be read: {error}"))
}
