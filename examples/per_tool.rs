//! Settings for single tools: `grep` has its own store and limit, results of `read` are never
//! cleared, and a handler that knows the value of rows cuts `query`.
//!
//! ```sh
//! cargo run --example per_tool
//! ```

use std::error::Error;
use std::io::Write;

use offcut::backend::{BackendError, Fs};
use offcut::format::{Message, Plain};
use offcut::handler::{Action, HandlerError, Replacement, ToolOutcome};
use offcut::{ToolCall, ToolPolicy, ToolReduction};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let home = tempfile::tempdir()?;
    let store = |name| Ok::<_, BackendError>(Fs::open(home.path().join(name))?.shown_as(name));
    let reduction = ToolReduction::recommended(store("results")?)
        .tool(
            "grep",
            ToolPolicy::new()
                .backend(store("greps")?)
                .max_length_for_trunc(20_000),
        )
        .tool("read", ToolPolicy::new().skip_clear(true))
        .tool("query", ToolPolicy::new().trunc_handler(ten_rows))
        .max_tokens_for_clear(5_000)
        .build()?;

    let mut out = std::io::stdout();
    let mut messages = vec![Message::user("Why are some orders shipped twice?")];
    for (id, tool, result) in [
        (
            "call_1",
            "grep",
            "src/ship.rs:88: ship(order)\n".repeat(600),
        ),
        ("call_2", "list", "src/ship.rs\n".repeat(900)),
        (
            "call_3",
            "read",
            "    ship(order); // retried on a time-out\n".repeat(150),
        ),
        ("call_4", "query", rows(5_000)),
        ("call_5", "list", "src/retry.rs\n".repeat(10)),
    ] {
        let call = ToolCall::new(id, tool, "{}");
        let shown = reduction.truncate(&call, result).await?;
        messages.push(Message::calls(vec![call.clone()]));
        for decision in &shown.report.decisions {
            let (before, after) = (decision.bytes.before, decision.bytes.after);
            let places: Vec<_> = decision
                .locations
                .iter()
                .map(offcut::backend::Location::as_str)
                .collect();
            writeln!(
                out,
                "{tool:6} {before:6} bytes, shown {after:6}  {:?} {}",
                decision.outcome,
                places.join(" ")
            )?;
        }
        messages.push(Message::tool(&call, shown.parts, shown.is_error));
    }
    messages.push(Message::assistant(
        "The retry ships again. I am going to fix it.",
    ));

    let report = reduction.clear(Plain, &mut messages).await?;
    writeln!(out, "\nbefore the next model call, above 5 000 tokens:")?;
    for decision in &report.decisions {
        writeln!(
            out,
            "{:6} {} {:?}",
            decision.tool, decision.call_id, decision.outcome
        )?;
    }
    Ok(())
}

/// Keeps the first rows, which show what the rest looks like. Short results stay unchanged.
async fn ten_rows(outcome: ToolOutcome) -> Result<Action, HandlerError> {
    let text = outcome.text();
    let rows = text.lines().count();
    if rows <= 20 {
        return Ok(Action::Keep);
    }
    let first: String = text
        .lines()
        .take(10)
        .map(|row| format!("{row}\n"))
        .collect();
    Ok(Action::Replace(Replacement::storing(
        text,
        move |location| match location {
            Some(location) => format!("{first}… {rows} rows; read_file {location} has all of them"),
            None => format!("{first}… {rows} rows; the others could not be stored"),
        },
    )))
}

fn rows(n: usize) -> String {
    (1..=n)
        .map(|n| format!("{n}\tshipped\t2026-11-{:02}\n", n % 28 + 1))
        .collect()
}
