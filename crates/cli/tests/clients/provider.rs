//! A provider on loopback with a scripted model: it looks tables up, follows each hint that hides what it looks for,
//! and answers with what it found. It checks each request as the real one does, and fails where it is told to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use offcut::format::{Format, PartRef, Piece, WireFormat};
use offcut::hint::Hint;
use offcut_testkit::validate;
use serde_json::{Value, json};

use crate::front::SEQUENCE;
use crate::replies::{Form, Said};

/// The tables of each prompt, by steps: several in one step are called in parallel.
const STEPS: [&[&[u64]]; 2] = [
    &[&[1], &[2, 3], &[4], &[5], &[6], &[7, 8], &[9]],
    &[&[10], &[11, 12], &[13], &[14], &[15]],
];

/// The number of rows of a table, as the clients make them.
fn rows(table: u64) -> u64 {
    [40, 400, 900, 2_500][usize::try_from(table % 4).unwrap()]
}

/// The row that the model looks for.
fn wanted(table: u64) -> u64 {
    rows(table) * 3 / 4
}

/// A failure of the provider.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    Status(u16),
    /// The reply breaks off in its middle.
    BreaksOff,
}

/// The server's own records of a session.
#[derive(Debug, Default)]
pub struct Log {
    /// The bodies of all requests, with the number that the front gave each.
    pub bodies: Vec<(Option<usize>, String)>,
    /// Requests that the provider would have refused, and hints that led nowhere.
    pub problems: Vec<String>,
    /// Faults that were delivered.
    pub failed: usize,
    /// Calls that read stored content.
    pub reads: usize,
    /// The items found so far, by table.
    found: BTreeMap<u64, String>,
    turns: usize,
}

/// The provider and its log.
#[derive(Clone, Debug)]
pub struct Provider {
    pub log: Arc<Mutex<Log>>,
    /// Faults by the number of the turn that they hit.
    faults: Arc<Mutex<BTreeMap<usize, Fault>>>,
}

impl Provider {
    /// Serves on a free port. Returns the provider and its URL.
    pub async fn start(faults: &[(usize, Fault)]) -> (Self, String) {
        let faults = Arc::new(Mutex::new(faults.iter().copied().collect()));
        let provider = Self {
            log: Arc::default(),
            faults,
        };
        let app = Router::new().fallback(answer).with_state(provider.clone());
        (provider, crate::serve(app).await)
    }

    fn reply(&self, form: Form, body: &Value, length: usize) -> Result<(String, usize), String> {
        let messages = body[form.field()].as_array().ok_or("no list of messages")?;
        // Chat completions and responses have system messages in the list.
        validate(form.format, messages).map_err(|error| error.to_string())?;
        let tools = body["tools"].as_array().ok_or("no tools")?;
        if tools.is_empty() {
            return Err("no tools".to_owned());
        }
        let history = History::read(form.format, messages);
        let mut log = self.log.lock().unwrap();
        let number = log.turns;
        let said = decide(&history, &mut log)?;
        log.turns += 1;
        Ok((form.reply(&said, number, length / 4), number))
    }
}

async fn answer(
    State(provider): State<Provider>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let text = String::from_utf8(body.to_vec()).unwrap();
    let request: Value = serde_json::from_str(&text).unwrap_or_default();
    let Some(form) = Form::of(uri.path(), &request) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if request["thread"].is_object() {
        // Only the provider itself has threads.
        let details = json!({"error_code": "thread_unsupported_request"});
        let error =
            json!({"type": "invalid_request_error", "message": "no threads", "details": details});
        let error = json!({"type": "error", "error": error}).to_string();
        return typed(StatusCode::BAD_REQUEST, "application/json", error);
    }
    let sequence = headers.get(SEQUENCE);
    let sequence = sequence.map(|value| value.to_str().unwrap().parse().unwrap());
    let length = text.len();
    let turn = {
        let mut log = provider.log.lock().unwrap();
        log.bodies.push((sequence, text));
        log.turns
    };
    let fault = provider.faults.lock().unwrap().remove(&turn);
    if let Some(Fault::Status(status)) = fault {
        provider.log.lock().unwrap().failed += 1;
        let error = form.error(status, "scripted");
        let mut reply = typed(
            StatusCode::from_u16(status).unwrap(),
            "application/json",
            error,
        );
        for (name, value) in [("retry-after-ms", "20"), ("retry-after", "0.02")] {
            reply.headers_mut().insert(name, value.parse().unwrap());
        }
        return reply;
    }
    match provider.reply(form, &request, length) {
        Ok((reply, number)) if fault.is_some() => {
            let mut log = provider.log.lock().unwrap();
            log.failed += 1;
            // The client asks once more for the same turn.
            log.turns = number;
            breaking_off(form, &reply)
        }
        Ok((reply, _)) => typed(StatusCode::OK, form.kind(), reply),
        Err(problem) => {
            provider.log.lock().unwrap().problems.push(problem.clone());
            let error = form.error(400, &problem);
            typed(StatusCode::BAD_REQUEST, "application/json", error)
        }
    }
}

fn typed(status: StatusCode, kind: &'static str, body: String) -> Response {
    (status, [(header::CONTENT_TYPE, kind)], body).into_response()
}

/// A reply of which only the first half comes.
fn breaking_off(form: Form, reply: &str) -> Response {
    let half = Bytes::copy_from_slice(&reply.as_bytes()[..reply.len() / 2]);
    let pieces = stream::unfold(Some(half), |half| async {
        // The server sends what it has before it learns that there is no more.
        tokio::task::yield_now().await;
        match half {
            Some(half) => Some((Ok(half), None)),
            None => Some((Err(std::io::Error::other("scripted")), None)),
        }
    });
    let body = Body::from_stream(pieces);
    let kind = [(header::CONTENT_TYPE, form.kind())];
    if form.is_stream {
        return (kind, body).into_response();
    }
    let length = [(header::CONTENT_LENGTH, reply.len().to_string())];
    (kind, length, body).into_response()
}

/// The calls of a conversation, each with its result.
struct History {
    /// The name, the arguments and the result of each call, in their order.
    calls: Vec<(String, Value, String)>,
    /// The number of prompts of the user.
    prompts: usize,
}

impl History {
    fn read(format: WireFormat, messages: &[Value]) -> Self {
        let mut calls: Vec<(String, String, Value, String)> = Vec::new();
        let (mut results, mut open, mut prompts) = (0, None, 0);
        for message in messages {
            format.visit(message, &mut |piece| match piece {
                Piece::Role(_) => open = None,
                Piece::Call(call) => {
                    let arguments = serde_json::from_str(&call.arguments.to_string());
                    let arguments = arguments.unwrap_or_default();
                    let (id, name) = (call.id.to_owned(), call.name.to_owned());
                    calls.push((id, name, arguments, String::new()));
                }
                Piece::Result(head) => {
                    // Some clients leave out the ids: the order tells.
                    let named = calls
                        .iter()
                        .position(|(id, ..)| !id.is_empty() && id == head.id);
                    open = Some(named.unwrap_or(results));
                    results += 1;
                }
                Piece::Content(PartRef::Text(text)) => match open {
                    Some(call) => calls[call].3.push_str(text),
                    None => prompts += usize::from(text.contains(" task: look up")),
                },
                _ => {}
            });
        }
        let calls = calls
            .into_iter()
            .map(|(_, name, arguments, result)| (name, arguments, result));
        Self {
            calls: calls.collect(),
            prompts,
        }
    }
}

/// The next step of the model.
fn decide(history: &History, log: &mut Log) -> Result<Said, String> {
    let mut asked = BTreeSet::new();
    for (name, arguments, result) in &history.calls {
        let table = arguments["n"].as_u64().filter(|_| name == "fetch");
        asked.extend(table);
        for table in asked.clone() {
            let start = format!("row {} of table {table}: ", wanted(table));
            if let Some((_, rest)) = result.split_once(&start) {
                let item = rest.split_whitespace().next().unwrap_or_default();
                log.found.insert(table, item.to_owned());
            }
        }
    }
    for table in &asked {
        if log.found.contains_key(table) {
            continue;
        }
        let mut of_table = history
            .calls
            .iter()
            .filter(|(_, arguments, _)| arguments["n"] == *table);
        let (_, _, result) = of_table.next().ok_or("no such call")?;
        let hint = Hint::parse(result).and_then(|hint| hint.location);
        let Some(location) = hint else {
            return Err(format!(
                "table {table} is neither shown nor stored: {result:.300}"
            ));
        };
        let path = location.to_string();
        if history
            .calls
            .iter()
            .any(|(_, arguments, _)| arguments["path"] == *path)
        {
            return Err(format!(
                "{path} was read and does not have row {}",
                wanted(*table)
            ));
        }
        log.reads += 1;
        let arguments = json!({"path": path, "offset": wanted(*table) + 1, "limit": 3});
        return Ok(Said::Calls(vec![(
            format!("call_r_{table}"),
            "read_file",
            arguments,
        )]));
    }
    let prompts = history.prompts.clamp(1, STEPS.len());
    for step in STEPS[..prompts].concat() {
        if !step.iter().all(|table| asked.contains(table)) {
            let call = |table: &u64| (format!("call_f_{table}"), "fetch", json!({"n": table}));
            return Ok(Said::Calls(step.iter().map(call).collect()));
        }
    }
    let tables: BTreeSet<u64> = STEPS[..prompts].concat().concat().into_iter().collect();
    let found = tables
        .iter()
        .map(|table| format!("{table}: {}", log.found[table]));
    Ok(Said::Text(found.collect::<Vec<_>>().join(", ")))
}
