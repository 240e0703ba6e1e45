//! `offcut state apply`.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use offcut_state::{Reducers, Schema, State};
use serde_json::Value;

use crate::failure::{Failure, OrFail as _, chain};
use crate::transcript::Source;
use crate::{args, exact, output};

pub(crate) fn run(args: &args::Apply) -> Result<ExitCode, Failure> {
    let inputs = [&args.schema]
        .into_iter()
        .chain(&args.state)
        .chain(&args.updates);
    if inputs.filter(|path| path.as_os_str() == "-").count() > 1 {
        return Err(Failure::usage(
            "- is given more than once",
            "stdin can be read only once: name files for the others",
        ));
    }
    let schema = read_schema(&args.schema)?;
    let mut state = match &args.state {
        None => schema.state(),
        Some(path) => State::restore(&schema, read_json(path)?).map_err(|error| {
            let hint = "a state is a JSON object of the fields that the schema declares";
            refused(path, error.code(), &error, hint)
        })?,
    };
    for path in &args.updates {
        state.apply(read_json(path)?).map_err(|error| {
            let hint = "no update was applied; fix this one, and run the command again";
            refused(path, error.code(), &error, hint)
        })?;
    }
    output::write_json(&state)?;
    Ok(ExitCode::SUCCESS)
}

/// Reads a schema as YAML, which includes JSON, or as JSON if the file's name ends in `.json`.
fn read_schema(path: &Path) -> Result<Schema, Failure> {
    let text = read_text(path)?;
    let is_json = path.extension().is_some_and(|ending| ending == "json");
    let schema = if is_json {
        Schema::from_json(&text, &Reducers::new())
    } else {
        Schema::from_yaml(&text, &Reducers::new())
    };
    schema.map_err(|error| {
        let hint = "a schema has a list of `fields`, each with a `name` and optionally a `type`, a `default` and a `reducer`; \
                    reducers of your own work in programs of your own";
        refused(path, error.code(), &error, hint)
    })
}

/// The failure of an input that was read, but can't be what it should.
fn refused(path: &Path, code: &str, error: &dyn Error, hint: &str) -> Failure {
    let problem = format!("{}: {code}: {}", name_of(path), chain(error));
    Failure::usage(problem, hint)
}

fn read_json(path: &Path) -> Result<Value, Failure> {
    let what = format!("{} can't be read as JSON", name_of(path));
    exact::from_slice(read_text(path)?.as_bytes()).or_refuse(what, "write it as valid JSON")
}

/// Reads a whole file, or stdin for `-`.
fn read_text(path: &Path) -> Result<String, Failure> {
    Source(path.to_owned()).text().or_refuse(
        format!("{} can't be read", name_of(path)),
        "name an existing file of UTF-8 text, or - for stdin",
    )
}

/// Returns the name of an input for errors.
fn name_of(path: &Path) -> String {
    Source(path.to_owned()).name()
}
