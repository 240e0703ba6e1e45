//! `offcut read`.

use std::error::Error as _;
use std::process::ExitCode;

use offcut::agent::Tool;
use offcut::backend::{BackendError, ErrorKind, Location};
use offcut::format::LoopFormat;
use offcut::{Part, ToolCall, ToolError};
use serde_json::{Value, json};

use crate::evidence::text_of;
use crate::failure::{Failure, OrFail as _, chain};
use crate::{args, output, settings};

/// Advice for a location at which nothing can be read.
const ELSEWHERE: &str = "`offcut store ls` lists what is stored; --config, --backend and --session choose where to read";

pub(crate) fn run(args: &args::Read, json: bool) -> Result<ExitCode, Failure> {
    let runtime = settings::runtime()?;
    let _inside = runtime.enter();
    if let Some(format) = args.definition {
        let of_user = &args.reduction.of_user;
        let (mut settings, origin) = settings::named(of_user, || Ok(settings::MEMORY.into()))?;
        settings::forget_stores(&mut settings);
        let reader = settings::build(&settings, &origin)?.read_file_tool();
        output::write_json(&format.tool(&reader))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut asked: Value = match &args.arguments {
        Some(arguments) => serde_json::from_str(arguments).or_refuse(
            "--arguments is not JSON",
            "pass the arguments of the model's call, such as {\"path\": \"…\"}",
        )?,
        None => json!({
            "path": args.location,
            "offset": args.offset,
            "limit": args.limit,
            "pattern": args.pattern,
            "context": args.context,
            "count": args.count,
            "query": args.query,
        }),
    };
    let named = asked["path"].as_str().unwrap_or_default().to_owned();
    let (reduction, mut meant) = settings::reader(args, &named)?;
    let reader = reduction.read_file_tool();
    if meant.is_empty() {
        if let Some(location) = &args.location {
            return Err(missing(location));
        }
        // The reader says what is wrong with it.
        meant.push(Location::new(named));
    }
    let mut read = |location: &Location| {
        if let Some(asked) = asked.as_object_mut() {
            asked.insert("path".to_owned(), json!(location.as_str()));
        }
        let call = ToolCall::new("", reader.definition().name, asked.to_string());
        runtime.block_on(reader.call(&call))
    };
    let mut answer = read(&meant[0]);
    for other in &meant[1..] {
        if answer.is_ok() {
            break;
        }
        answer = read(other).or(answer);
    }
    let output = answer.map_err(|error| refused(&error, args.location.as_deref()))?;
    let (parts, _) = runtime.block_on(output.into_parts());
    match &parts[..] {
        _ if json => output::write_json(&json!({"text": text_of(&parts), "parts": parts}))?,
        [Part::Media { data, .. }] => output::write_media(data)?,
        _ => output::write_stored(&text_of(&parts))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The failure of the reader, whose words are for a model, over what is at `location`.
fn refused(error: &ToolError, location: Option<&str>) -> Failure {
    let Some(cause) = error.source() else {
        let hint = "change the option that the error names; --config, --backend and --session choose what is read";
        return Failure::usage(chain(error), hint);
    };
    let cause = cause.downcast_ref::<BackendError>();
    let is_missing = cause.is_some_and(|cause| cause.kind() == ErrorKind::NotFound);
    match location.filter(|_| is_missing) {
        Some(location) => missing(location),
        None => Failure::new(chain(error)).hint(ELSEWHERE),
    }
}

fn missing(location: &str) -> Failure {
    Failure::new(format!("nothing is stored at {location}")).hint(ELSEWHERE)
}
