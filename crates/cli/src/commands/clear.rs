//! `offcut clear` and `offcut reduce`.

use std::process::ExitCode;

use offcut::format::{
    BodyError, Format as _, JsonText, Messages, Piece, RequestBody, Spelled, WireFormat,
};
use offcut::{Report, Turn};
use serde_json::Value;

use crate::failure::{Failure, OrFail as _, chain};
use crate::transcript::unknown;
use crate::{args, input, output, settings};

/// The work to do on a conversation.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// The clear pass.
    Clear,
    /// Truncation of every result, and the clear pass.
    Reduce,
}

pub(crate) fn run(args: &args::Conversation, work: Work, json: bool) -> Result<ExitCode, Failure> {
    let mut read = Vec::new();
    let (text, report) = match pass(args, work, &mut read) {
        Ok(passed) => passed,
        Err(failure) => return input::pass_on(&failure, &read),
    };
    output::write(&match json {
        true => with_report(&text, &report)?,
        false => text,
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Returns JSON that holds the body, in its own spelling, and the report beside it.
fn with_report(body: &str, report: &Report) -> Result<String, Failure> {
    let report = serde_json::to_string(report).or_fail("the report can't be written as JSON")?;
    let body = body.trim();
    Ok(format!("{{\"body\": {body}, \"report\": {report}}}\n"))
}

/// Returns the body to send and the report. Once read, all of stdin is in `read`.
fn pass(
    args: &args::Conversation,
    work: Work,
    read: &mut Vec<u8>,
) -> Result<(String, Report), Failure> {
    let runtime = settings::runtime()?;
    let _inside = runtime.enter();
    let reduction = settings::reduction(&args.reduction)?;
    *read = input::read_all()?;
    let text =
        str::from_utf8(read).map_err(|error| unusable(&format!("it is not JSON: {error}")))?;
    if let Ok(document) = serde_json::from_str::<Value>(text)
        && let Some(foreign) = unknown::of_messages(std::slice::from_ref(&document))
    {
        return Err(Failure::usage(
            format!("stdin holds {foreign}, which no format reads"),
            "pipe the request's body that is sent to the provider into this command",
        ));
    }
    let mut body = match RequestBody::parse(text) {
        Ok(body) => body,
        Err(error @ BodyError::KeyTwice { .. }) => {
            output::warn(&format!("{error}; it is passed on unchanged"));
            return Ok((text.to_owned(), Report::default()));
        }
        Err(error) => return Err(unusable(&error)),
    };
    let detected = body.format();
    // Without messages, any format will do.
    let any = body.messages().is_empty().then_some(WireFormat::OpenAiChat);
    let format = args
        .format
        .or(detected)
        .or(any)
        .ok_or_else(|| unusable(&BodyError::NoMessages))?;
    check_format(format, detected, body.messages())?;

    let (tools, format) = (body.tools(), Spelled(format));
    let mut conversation = Messages::new(&format, body.messages_mut());
    let mut turn = Turn {
        tools: &tools,
        ..Turn::new(&mut conversation)
    };
    let report = runtime.block_on(async {
        match work {
            Work::Clear => reduction.clear_turn(&mut turn).await,
            Work::Reduce => reduction.reduce_turn(&mut turn).await,
        }
    });
    let report = report.map_err(|error| {
        Failure::new(chain(&error))
            .hint("the messages are passed on unchanged: fix the store, or set `on_offload_error`")
    })?;
    output::note_failures(&report);
    Ok((body.to_string(), report))
}

/// Fails if `format` sees no tool in the messages and the detected format does: everything would
/// pass unchanged.
fn check_format(
    format: WireFormat,
    detected: Option<WireFormat>,
    messages: &[JsonText],
) -> Result<(), Failure> {
    let is_meant =
        |other: &WireFormat| !sees_tools(format, messages) && sees_tools(*other, messages);
    let Some(meant) = detected.filter(is_meant) else {
        return Ok(());
    };
    Err(Failure::usage(
        format!("as {format}, the messages have no calls and no results: they look like {meant}"),
        format!("pass --format {meant}, or omit --format"),
    ))
}

fn sees_tools(format: WireFormat, messages: &[JsonText]) -> bool {
    let mut is_seen = false;
    let mut see = |piece: Piece<'_>| is_seen |= matches!(piece, Piece::Call(_) | Piece::Result(_));
    for message in messages {
        Spelled(format).visit(message, &mut see);
    }
    is_seen
}

fn unusable(problem: &dyn std::fmt::Display) -> Failure {
    Failure::usage(
        format!("stdin can't be used: {problem}"),
        "pipe a list of messages, or a request's body with one, into this command; --format names the format",
    )
}
