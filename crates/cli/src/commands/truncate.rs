//! `offcut truncate`.

use std::process::ExitCode;

use offcut::{ToolCall, Truncated};
use serde::de::IgnoredAny;
use serde_json::json;

use crate::failure::{Failure, OrFail as _, chain};
use crate::input::{self, Input};
use crate::{args, output, settings};

pub(crate) fn run(args: &args::Truncate, json: bool) -> Result<ExitCode, Failure> {
    let (runtime, input) = (settings::runtime()?, Input::default());
    let _inside = runtime.enter();
    let opened = is_json(&args.arguments).and_then(|()| settings::reduction(&args.reduction));
    let reduction = match opened {
        Ok(reduction) => reduction,
        Err(failure) => return input::pass_on(&failure, b""),
    };
    let call = ToolCall::new(&args.call_id, &args.tool, &args.arguments);
    match runtime.block_on(reduction.truncate(&call, input.stream())) {
        Ok(truncated) if input.is_to_pass(&truncated, reduction.settings()) => {
            output::note_failures(&truncated.report);
            runtime.block_on(input.pass_on())?;
            if json {
                return Err(
                    Failure::new("the result is passed on unchanged, and not as JSON")
                        .hint("fix the store, and run the command again"),
                );
            }
            Ok(ExitCode::SUCCESS)
        }
        Ok(truncated) => show(&truncated, json),
        Err(error) => {
            let hint = "nothing was stored, and the input is passed on unchanged: fix the store, or set `on_offload_error`";
            let failure = Failure::new(chain(&error)).hint(hint);
            output::report(&failure);
            runtime.block_on(input.pass_on())?;
            Ok(ExitCode::from(failure.code()))
        }
    }
}

fn is_json(arguments: &str) -> Result<(), Failure> {
    serde_json::from_str::<IgnoredAny>(arguments)
        .map(drop)
        .or_refuse(
            "--arguments is not JSON",
            "write the arguments of the call as JSON, such as {\"path\": \"a.rs\"}, or leave the option out",
        )
}

fn show(truncated: &Truncated, json: bool) -> Result<ExitCode, Failure> {
    output::note_failures(&truncated.report);
    let text = truncated.text();
    if json {
        let Truncated { parts, report, .. } = truncated;
        output::write_json(&json!({"text": text, "parts": parts, "report": report}))?;
    } else {
        output::write(&text)?;
    }
    match &truncated.interrupted {
        Some(error) => {
            Err(Failure::new(error.to_string()).hint("everything before it is shown and stored"))
        }
        None => Ok(ExitCode::SUCCESS),
    }
}
