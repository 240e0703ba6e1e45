//! `offcut truncate`.

use std::process::ExitCode;

use futures_util::stream;
use offcut::{Chunk, Part, Report, ToolCall, ToolError, ToolOutput};
use serde::Serialize;
use tokio::io::AsyncReadExt;

use super::{note_failures, read_stdin};
use crate::failure::{Failure, chain};
use crate::{args, output, settings};

/// How much of stdin is read at once.
const CHUNK: usize = 64 * 1024;

#[derive(Serialize)]
struct Output<'t> {
    text: &'t str,
    parts: &'t [Part],
    report: &'t Report,
}

pub(crate) fn run(args: &args::Truncate, json: bool) -> Result<ExitCode, Failure> {
    let runtime = settings::runtime()?;
    let _inside = runtime.enter();
    let reduction = settings::reduction(&args.reduction)?;
    let call = ToolCall::new(&args.call_id, &args.tool, &args.arguments);
    let result = if args.parts { parts()? } else { stdin() };
    let truncated = runtime.block_on(reduction.truncate(&call, result)).map_err(|error| {
        Failure::new(chain(&error)).hint("nothing was shown: mend the store, or set `on_offload_error`, and try again")
    })?;
    note_failures(&truncated.report);
    let text = truncated.text();
    if json || args.parts {
        output::write_json(&Output { text: &text, parts: &truncated.parts, report: &truncated.report })?;
    } else {
        output::write(&text)?;
    }
    match truncated.interrupted {
        Some(error) => Err(Failure::new(error.to_string()).hint("what came before it is shown and stored")),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// The parts that stdin lists.
fn parts() -> Result<ToolOutput, Failure> {
    let parts = serde_json::from_str(&read_stdin()?).map_err(|error| {
        Failure::usage(
            format!("stdin holds no list of parts: {error}"),
            "write [{\"type\": \"text\", \"value\": \"…\"}], as `--json` does, or pipe the text itself without --parts",
        )
    })?;
    Ok(ToolOutput::parts(parts))
}

/// Stdin as it comes, so that its length does not matter.
fn stdin() -> ToolOutput {
    let chunks = stream::unfold(Some(tokio::io::stdin()), async |stdin| {
        let mut stdin = stdin?;
        let mut chunk = vec![0; CHUNK];
        match stdin.read(&mut chunk).await {
            Ok(0) => None,
            Ok(length) => {
                chunk.truncate(length);
                Some((Ok(Chunk::Bytes(chunk.into())), Some(stdin)))
            }
            Err(error) => Some((Err(ToolError::new(format!("stdin can't be read: {error}"))), None)),
        }
    });
    ToolOutput::stream(chunks)
}
