//! `offcut clear`.

use std::path::Path;
use std::process::ExitCode;

use offcut::format::{Format, Messages, Piece, WireFormat};
use offcut::{BeforeModel, Report};
use serde_json::Value;

use super::note_failures;
use crate::failure::{Failure, chain};
use crate::{args, input, output, settings};

pub(crate) fn run(args: &args::Clear) -> Result<ExitCode, Failure> {
    let mut came = Vec::new();
    let (text, report) = match pass(args, &mut came) {
        Ok(passed) => passed,
        Err(failure) => return input::pass_on(&failure, &came),
    };
    output::write(&text)?;
    if let Some(file) = &args.report {
        write_report(file, &report)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What is to be sent, and what was decided. All of stdin is in `came` once it was read.
fn pass(args: &args::Clear, came: &mut Vec<u8>) -> Result<(String, Report), Failure> {
    let runtime = settings::runtime()?;
    let _inside = runtime.enter();
    let reduction = settings::reduction(&args.reduction)?;
    if reduction.settings().backend_url.is_none() {
        output::warn("there is no backend, so what is cleared is gone; --backend names a place to keep it");
    }
    *came = input::read_all()?;
    let no_json = |error: &dyn std::fmt::Display| {
        Failure::usage(
            format!("stdin holds no JSON: {error}"),
            "pipe a list of messages, or a request's body with one, into this command",
        )
    };
    let text = str::from_utf8(came).map_err(|error| no_json(&error))?;
    let mut document: Value = serde_json::from_str(text).map_err(|error| no_json(&error))?;
    let detected = WireFormat::detect(&document);
    let format = args.format.or(detected).ok_or_else(no_messages)?;
    let tools = document.get("tools").and_then(Value::as_array).cloned().unwrap_or_default();
    let messages = WireFormat::messages(&mut document).ok_or_else(no_messages)?;
    check_format(format, detected, messages)?;

    let mut conversation = Messages::new(&format, messages);
    let mut turn = BeforeModel { tools: &tools, ..BeforeModel::new(&mut conversation) };
    let report = runtime.block_on(reduction.clear_turn(&mut turn)).map_err(|error| {
        Failure::new(chain(&error)).hint("the messages go on as they came: mend the store, or set `on_offload_error`")
    })?;
    note_failures(&report);
    // Where nothing is changed, not through a parser: numbers have more than one spelling.
    Ok((if report.is_change() { format!("{document}\n") } else { text.to_owned() }, report))
}

/// Fails where `format` sees no tool in messages in which the format that they look like does: all would pass as it came.
fn check_format(format: WireFormat, detected: Option<WireFormat>, messages: &[Value]) -> Result<(), Failure> {
    if detected == Some(format) || messages.is_empty() || sees_tools(format, messages) {
        return Ok(());
    }
    match detected.filter(|detected| sees_tools(*detected, messages)) {
        Some(detected) => Err(Failure::usage(
            format!("as {format}, the messages hold no call and no result: they look like {detected}"),
            format!("name that by --format {detected}, or leave --format away"),
        )),
        None => {
            // What is only text may be of several formats, this one too.
            if format.validate(messages).is_err() {
                output::note(&format!("the messages hold no call and no result, and are not what {format} takes"));
            }
            Ok(())
        }
    }
}

fn sees_tools(format: WireFormat, messages: &[Value]) -> bool {
    let mut is_seen = false;
    for message in messages {
        format.visit(message, &mut |piece| is_seen |= matches!(piece, Piece::Call(_) | Piece::Result(_)));
    }
    is_seen
}

fn no_messages() -> Failure {
    Failure::usage(
        "stdin holds no conversation",
        "pass a JSON list of messages, or an object with `messages`, `input` or `contents`; --format names the format",
    )
}

fn write_report(file: &Path, report: &Report) -> Result<(), Failure> {
    let unwritable = |error: &dyn std::fmt::Display| {
        Failure::new(format!("the report can't be written to {}: {error}", file.display()))
            .hint("the messages were written; running the command again over what came is safe, and reports the same")
    };
    let text = serde_json::to_string_pretty(report).map_err(|error| unwritable(&error))?;
    std::fs::write(file, text + "\n").map_err(|error| unwritable(&error))
}
