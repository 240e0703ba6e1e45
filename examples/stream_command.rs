//! Runs a command and shows its output as a model would see it: once the command has ended, a hint that
//! leads to all of it and a preview. Memory does not depend on the length of the output.
//!
//! ```sh
//! cargo run --example stream_command                      # counts to a million
//! cargo run --example stream_command -- cargo build -v    # any command
//! cargo run --example stream_command -- --store /tmp/outputs -- find / -xdev
//! ```

use std::error::Error;
use std::io::Write;
use std::process::Stdio;

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use lexopt::{Arg, Parser, ValueExt};
use offcut::backend::Fs;
use offcut::{Chunk, ToolCall, ToolError, ToolOutput, ToolReduction};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (store, command) = arguments()?;
    let reduction = ToolReduction::recommended(Fs::open(store)?).build()?;
    // A new name for each run, because stored content is never overwritten.
    let call = ToolCall::new(
        format!("run-{}", std::process::id()),
        "run",
        serde_json::to_string(&command)?,
    );

    let output = ToolOutput::stream(run(&command)?);
    let shown = reduction.truncate(&call, output).await?;
    writeln!(std::io::stdout(), "{}", shown.text())?;
    let mut notes = std::io::stderr();
    for decision in &shown.report.decisions {
        let (bytes, after) = (decision.bytes.before, decision.bytes.after);
        match decision.locations.first() {
            Some(location) => writeln!(
                notes,
                "\n{bytes} bytes, {after} of them shown; all of it is in {location}"
            )?,
            None => writeln!(notes, "\n{bytes} bytes, all of them shown")?,
        }
    }
    Ok(())
}

fn arguments() -> Result<(String, Vec<String>), lexopt::Error> {
    let mut store = ".offcut".to_owned();
    let mut command = Vec::new();
    let mut parser = Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("store") => store = parser.value()?.string()?,
            Arg::Value(program) => {
                command.push(program.string()?);
                // The rest belongs to the command, even if it looks like an option.
                for rest in parser.raw_args()? {
                    command.push(rest.string()?);
                }
            }
            other => return Err(other.unexpected()),
        }
    }
    if command.is_empty() {
        command = ["seq", "1000000"].map(str::to_owned).into();
    }
    Ok((store, command))
}

/// Streams the command's output, both pipes merged, and ends with an error if the command fails.
fn run(
    command: &[String],
) -> Result<impl stream::Stream<Item = Result<Chunk, ToolError>> + Send + use<>, Box<dyn Error>> {
    let mut child = Command::new("sh")
        .args(["-c", "exec \"$@\" 2>&1", "sh"])
        .args(command)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let pipe = child.stdout.take().ok_or("the command has no output")?;
    let output = stream::try_unfold((pipe, BytesMut::new()), async |(mut pipe, mut buffer)| {
        buffer.reserve(64 * 1024);
        let read = pipe
            .read_buf(&mut buffer)
            .await
            .map_err(|error| ToolError::new("reading failed").with_source(error))?;
        let chunk = buffer.split().freeze();
        Ok((read > 0).then_some((Chunk::Bytes(chunk), (pipe, buffer))))
    });
    Ok(output.chain(stream::once(end(child)).filter_map(async |end| end.transpose())))
}

async fn end(mut child: Child) -> Result<Option<Chunk>, ToolError> {
    let status = child
        .wait()
        .await
        .map_err(|error| ToolError::new("waiting failed").with_source(error))?;
    Ok((!status.success()).then(|| Chunk::Bytes(Bytes::from(format!("\n{status}\n")))))
}
