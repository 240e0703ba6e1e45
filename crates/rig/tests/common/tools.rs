//! The tools of the tests' agent. A result depends only on the arguments.

use std::convert::Infallible;

use rig::tool::{Tool, ToolContext, ToolExecutionError};
use serde_json::{Value, json};

/// The result of `tool` for the argument `n`.
pub(crate) fn returned(tool: &str, n: u64) -> String {
    match tool {
        "grep" => (0..300)
            .map(|line| format!("src/{n}.rs:{line}: größte Zeile, naïve 行\n"))
            .collect(),
        "stat" => json!({"n": n, "size": n * 1_000}).to_string(),
        "rows" => rows(n).to_string(),
        "fetch" => format!("HTTP 500 of page {n}\n").repeat(300),
        other => panic!("{other}"),
    }
}

fn rows(n: u64) -> Value {
    (0..150)
        .map(|row| json!({"n": n, "row": row, "name": format!("Nº {row}")}))
        .collect()
}

pub(crate) struct Grep;

impl Tool for Grep {
    const NAME: &'static str = "grep";
    type Args = Value;
    type Output = String;
    type Error = Infallible;

    fn description(&self) -> String {
        "Finds much.".into()
    }

    fn parameters(&self) -> Value {
        json!({"type": "object", "properties": {"n": {"type": "integer"}}})
    }

    async fn call(&self, _: &mut ToolContext, args: Value) -> Result<String, Infallible> {
        Ok(returned("grep", args["n"].as_u64().unwrap()))
    }
}

/// Returns JSON: a short object, or many rows if `all` is true.
pub(crate) struct Stat;

impl Tool for Stat {
    const NAME: &'static str = "stat";
    type Args = Value;
    type Output = Value;
    type Error = Infallible;

    fn description(&self) -> String {
        "Returns JSON.".into()
    }

    fn parameters(&self) -> Value {
        json!({"type": "object", "properties": {"n": {"type": "integer"}, "all": {"type": "boolean"}}})
    }

    async fn call(&self, _: &mut ToolContext, args: Value) -> Result<Value, Infallible> {
        let n = args["n"].as_u64().unwrap();
        Ok(if args["all"] == true {
            rows(n)
        } else {
            json!({"n": n, "size": n * 1_000})
        })
    }
}

/// Always fails, with a long message.
pub(crate) struct Fetch;

impl Tool for Fetch {
    const NAME: &'static str = "fetch";
    type Args = Value;
    type Output = String;
    type Error = ToolExecutionError;

    fn description(&self) -> String {
        "Fails at length.".into()
    }

    fn parameters(&self) -> Value {
        json!({"type": "object", "properties": {"n": {"type": "integer"}}})
    }

    async fn call(&self, _: &mut ToolContext, args: Value) -> Result<String, ToolExecutionError> {
        Err(ToolExecutionError::provider(returned(
            "fetch",
            args["n"].as_u64().unwrap(),
        )))
    }
}
