//! Names for formats that are not supported, for better errors.

use offcut::format::foreign_format;
use serde_json::Value;

use super::fields::text;

/// Formats that are supported, for errors.
pub(crate) const READ: &str = "supported are chat completions, OpenAI Responses, Anthropic messages and Gemini contents (lists, bodies, \
logs of requests, batch files), and sessions of Claude Code, Codex, pi, Gemini CLI, SWE-agent and ATIF. \
Convert another log to a JSON list of chat-completions messages, [{\"role\": \"user\", \"content\": \"…\"}, …]; \
see \"Transcripts\" in the README of offcut-cli";

/// Maximum depth at which lists of messages are sought.
const DEPTH: usize = 3;
/// Fields that hold messages, or wrap what holds them.
const HOLDERS: [&str; 11] = [
    "messages",
    "input",
    "output",
    "contents",
    "body",
    "request",
    "inputs",
    "outputs",
    "values",
    "params",
    "observations",
];

/// Names the format of messages that resemble a supported one but are in another.
pub(crate) fn of_messages(documents: &[Value]) -> Option<&'static str> {
    documents
        .iter()
        .find_map(|document| inside(document, DEPTH))
}

fn inside(value: &Value, depth: usize) -> Option<&'static str> {
    if let Value::Array(several) = value {
        return several.iter().find_map(|one| match one {
            // LangSmith has lists in lists.
            Value::Array(_) if depth > 0 => inside(one, depth - 1),
            _ => foreign_format(one).or_else(|| inside(one, depth.checked_sub(1)?)),
        });
    }
    HOLDERS
        .iter()
        .filter_map(|field| {
            value
                .get(*field)
                .filter(|inner| inner.is_object() || inner.is_array())
        })
        .find_map(|inner| inside(inner, depth.checked_sub(1)?))
}

/// Names the format of a file in which nothing was found.
pub(super) fn of_file(documents: &[Value]) -> Option<&'static str> {
    let first = documents.first()?;
    let first = first.get(0).unwrap_or(first);
    documents.iter().take(20).chain([first]).find_map(document)
}

fn document(document: &Value) -> Option<&'static str> {
    let has = |field: &str| document.get(field).is_some();
    let is_list = |field: &str| document.get(field).is_some_and(Value::is_array);
    let kind = text(document, "type");
    let is_event = matches!(
        kind,
        "session.start"
            | "user.message"
            | "assistant.message"
            | "tool.execution_start"
            | "tool.execution_complete"
    );
    let names = [
        (
            has("resourceSpans") || has("instrumentationScope") || is_span(document),
            "OpenTelemetry spans",
        ),
        (
            has("run_type") && (has("trace_id") || has("dotted_order")),
            "LangSmith runs",
        ),
        (
            is_list("observations") || has("traceId") && has("startTime"),
            "a Langfuse trace",
        ),
        (is_event && has("data"), "a Copilot CLI session"),
        (
            document.pointer("/conversations/0/from").is_some(),
            "ShareGPT conversations",
        ),
        (has("mapping") && has("current_node"), "a ChatGPT export"),
        (has("custom_id") && has("params"), "an Anthropic batch file"),
        (has("custom_id"), "batch results without their requests"),
        (
            text(document, "trajectory_format").starts_with("mini-swe-agent"),
            "a mini-SWE-agent trajectory, which has its results in user messages",
        ),
        (
            has("action") && has("source") || has("observation") && has("cause"),
            "OpenHands events",
        ),
        (
            has("info") && (is_list("parts") || is_list("messages")),
            "an opencode session",
        ),
    ];
    names
        .into_iter()
        .find_map(|(is_one, name)| is_one.then_some(name))
}

fn is_span(document: &Value) -> bool {
    let attributes = document.get("attributes").and_then(Value::as_object);
    attributes.is_some_and(|attributes| attributes.keys().any(|key| key.starts_with("gen_ai.")))
}
