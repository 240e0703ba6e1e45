//! The output of a command as a model should see it, for `run`.

use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use offcut::{OnStoreFailure, ToolCall, ToolReduction, Truncated};
use tokio::sync::Mutex;

use crate::child::Output;
use crate::failure::{Failure, chain};
use crate::input::Input;
use crate::output::To;
use crate::stores::{self, RecoverableStore};
use crate::{args, notes, output, settings};

/// A stream to truncate: its reduction, the bytes that have arrived, and the call that they answer.
pub(crate) struct Stream {
    reduction: ToolReduction,
    input: Input,
    call: ToolCall,
    to: To,
}

impl Stream {
    /// Builds what both streams of a command need, stdout first.
    pub(crate) fn both(args: &args::Shown, arguments: &str) -> Result<[Self; 2], Failure> {
        let call_id = args.call_id.clone().unwrap_or_else(unique_id);
        let stream = |suffix: &str, to: To| {
            let input = Input::default();
            let open = |url: &str| {
                let (store, input) = (stores::open(url)?, input.clone());
                Ok(Arc::new(RecoverableStore { store, input }) as _)
            };
            let reduction = settings::reduction_or(&args.reduction, settings::user_store, open)?;
            let call = ToolCall::new(format!("{call_id}{suffix}"), &args.tool, arguments);
            Ok(Self {
                reduction,
                input,
                call,
                to,
            })
        };
        Ok([stream("", To::Stdout)?, stream("-stderr", To::Stderr)?])
    }

    /// Shows `output` as the model should see it. If it can't be stored, all of it is shown
    /// unchanged.
    pub(crate) async fn show(self, output: &Arc<Mutex<Output>>) -> Result<(), Failure> {
        let Self {
            reduction,
            input,
            call,
            to,
        } = self;
        let may_lose = reduction.settings().on_offload_error == OnStoreFailure::PreviewOnly;
        let truncated = reduction
            .truncate(&call, input.follow(output.clone(), may_lose))
            .await;
        match truncated {
            Ok(truncated) if may_lose || !input.is_broken() => {
                notes::note_failures(&truncated.report);
                write_shorter(&input, &truncated, to)
            }
            failed => {
                match failed {
                    Ok(truncated) => notes::note_failures(&truncated.report),
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
}

/// An id that no other run of this machine has.
pub(crate) fn unique_id() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    format!(
        "run-{}-{}",
        std::process::id(),
        now.unwrap_or_default().as_micros()
    )
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
