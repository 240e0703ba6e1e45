//! A state declared in a YAML file, several updates, and the state after each.
//!
//! ```text
//! cargo run --example state
//! cargo run --example state -- my-state.yaml '{"question": "why?"}' '{"sources": ["a", "b", "a"]}'
//! ```

#![allow(clippy::print_stderr, reason = "a program that talks to a person")]

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use offcut_state::{Reducers, Schema, State, custom};
use serde_json::{Value, json};

const DECLARED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/state.yaml");

/// The updates of the state that is declared in a file next to this one.
fn story() -> Vec<Step> {
    vec![
        Step::One(json!({
            "question": "Why does the pool run dry?",
            "messages": [{"id": "m1", "role": "user", "content": "Why does the pool run dry?"}],
            "tokens": 120,
        })),
        Step::One(json!({
            "sources": ["pool.log", "pool.rs", "pool.log"],
            "findings": [{"file": "pool.rs", "says": "a lock is held"}],
            "messages": [{"id": "m2", "role": "assistant", "content": "Looking"}],
            "tokens": 900,
        })),
        // The answer streams in: one message, longer each time.
        Step::One(
            json!({"messages": [{"id": "m2", "role": "assistant", "content": "Looking into pool.rs"}]}),
        ),
        // Two nodes have run in parallel.
        Step::Parallel(vec![
            json!({"findings": [{"file": "pool.rs", "says": "a lock is held across an await"}], "tokens": 400}),
            json!({"findings": [{"file": "client.rs", "says": "no time-out"}], "sources": ["client.rs"], "tokens": 300}),
        ]),
        Step::One(json!({"recent_errors": ["timed out", "timed out", "refused", "timed out"]})),
        // An update applies as a whole: the key is missing, so the tokens are not counted either.
        Step::One(json!({"findings": [{"says": "of no file"}], "tokens": 1_000_000})),
        // Two values for a field that keeps one: neither is the last.
        Step::Parallel(vec![
            json!({"question": "Why?"}),
            json!({"question": "How?"}),
        ]),
        Step::One(
            json!({"messages": [{"role": "remove", "id": "m1"}, {"role": "user", "content": "Thanks!"}]}),
        ),
    ]
}

enum Step {
    One(Value),
    Parallel(Vec<Value>),
}

/// Reducers that the file may name in addition to the built-in ones.
fn reducers() -> Reducers {
    Reducers::new().with(
        "sum",
        custom("sum", |so_far: &Value, more: Value| {
            match (so_far.as_i64(), more.as_i64()) {
                (Some(so_far), Some(more)) => so_far
                    .checked_add(more)
                    .map(Value::from)
                    .ok_or("the sum is too large"),
                _ => Err("only integers can be added"),
            }
        }),
    )
}

/// Declares the state, applies the steps in order and prints the changes of each.
fn play(declared: &str, steps: Vec<Step>, out: &mut impl Write) -> Result<State, Box<dyn Error>> {
    let schema = Schema::from_yaml(declared, &reducers())?;
    let mut state = schema.state();
    for step in steps {
        let before = state.clone(); // a snapshot: nothing is copied
        let applied = match step {
            Step::One(update) => {
                writeln!(out, "\nupdate {update}")?;
                state.apply(update)
            }
            Step::Parallel(updates) => {
                for update in &updates {
                    writeln!(
                        out,
                        "{}at the same time {update}",
                        if *update == updates[0] { "\n" } else { "" }
                    )?;
                }
                state.apply_parallel(updates)
            }
        };
        if let Err(error) = applied {
            writeln!(out, "  {error}")?;
            error
                .source()
                .map_or(Ok(()), |cause| writeln!(out, "  because {cause}"))?;
        }
        for name in schema
            .names()
            .filter(|name| state.get(name) != before.get(name))
        {
            writeln!(out, "  {name}: {}", state.get(name).unwrap_or(&Value::Null))?;
        }
    }
    Ok(state)
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next();
    let steps = match &path {
        None => story(),
        Some(_) => arguments
            .map(|update| Ok(Step::One(serde_json::from_str(&update)?)))
            .collect::<Result<_, Box<dyn Error>>>()?,
    };
    let path = path.as_deref().unwrap_or(DECLARED);
    let declared = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let mut out = io::stdout().lock();
    let state = play(&declared, steps, &mut out)?;
    writeln!(
        out,
        "\nin the end\n{}",
        serde_json::to_string_pretty(&state)?
    )?;
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            let mut source = error.source();
            while let Some(cause) = source {
                eprintln!("because {cause}");
                source = cause.source();
            }
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_ends_as_its_text_says() {
        let mut out = Vec::new();
        let declared = std::fs::read_to_string(DECLARED).unwrap();
        let state = play(&declared, story(), &mut out).unwrap();
        let get = |name| state.get(name).unwrap();
        assert_eq!(get("tokens"), &json!(1_720));
        assert_eq!(get("sources"), &json!(["pool.log", "pool.rs", "client.rs"]));
        assert_eq!(get("findings")[0]["says"], "a lock is held across an await");
        assert_eq!(
            get("recent_errors"),
            &json!(["timed out", "refused", "timed out"])
        );
        assert_eq!(get("messages").as_array().unwrap().len(), 2);
        let told = String::from_utf8(out).unwrap();
        assert_eq!(told.matches("the state is unchanged").count(), 2, "{told}");
    }
}
