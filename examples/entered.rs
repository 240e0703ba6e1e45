//! A truncation and a clear pass, each in a function of its own, for counting the functions that they enter:
//! `scripts/entered`.

use std::error::Error;

use offcut::backend::Fs;
use offcut::format::{Message, Plain};
use offcut::{Report, ToolCall, ToolReduction, Truncated};
use tokio::runtime::{Builder, Runtime};

/// Number of results in the conversation, which together are over the recommended threshold.
const RESULTS: usize = 40;

fn main() -> Result<(), Box<dyn Error>> {
    let home = tempfile::tempdir()?;
    let reduction = ToolReduction::recommended(Fs::open(home.path())?).build()?;
    let runtime = Builder::new_current_thread().build()?;
    let call = ToolCall::new("call_1", "grep", r#"{"pattern":"fn"}"#);
    let text: String = (0..1_000)
        .map(|line| format!("src/pool.rs:{line}: fn number_{line}() {{}}\n"))
        .collect();
    let shown = truncation(&runtime, &reduction, &call, text.clone())?;
    assert!(shown.report.is_change());
    let mut messages = vec![Message::user("Where is the leak?")];
    for number in 0..RESULTS {
        let call = ToolCall::new(format!("call_{number}"), "grep", r#"{"pattern":"fn"}"#);
        let shown = vec![text[..7_000 + number].into()];
        messages.push(Message::calls(vec![call.clone()]));
        messages.push(Message::tool(&call, shown, false));
    }
    let report = pass(&runtime, &reduction, &mut messages)?;
    assert!(report.is_change());
    Ok(())
}

#[inline(never)]
fn truncation(
    runtime: &Runtime,
    reduction: &ToolReduction,
    call: &ToolCall,
    text: String,
) -> Result<Truncated, Box<dyn Error>> {
    Ok(runtime.block_on(reduction.truncate(call, text))?)
}

#[inline(never)]
fn pass(
    runtime: &Runtime,
    reduction: &ToolReduction,
    messages: &mut [Message],
) -> Result<Report, Box<dyn Error>> {
    Ok(runtime.block_on(reduction.clear(Plain, messages))?)
}
