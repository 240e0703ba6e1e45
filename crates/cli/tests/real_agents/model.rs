//! A model on loopback that follows a script: the number of tool rounds in the conversation selects the step. Checks
//! each request as the provider does.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use offcut::format::WireFormat;
use offcut_testkit::{ShownResult, validate};
use serde_json::{Value, json};

use crate::protocol::Protocol;

/// A call of a tool: its name and its arguments.
pub type Call = (&'static str, Value);

/// Chooses the calls of the next step from the results of each round, oldest first. `None` ends the
/// session.
pub type Script = Arc<dyn Fn(&[Vec<ShownResult>]) -> Option<Vec<Call>> + Send + Sync>;

/// The server's own records of a session.
#[derive(Debug, Default)]
pub struct Log {
    /// The length in bytes of the messages in each request for the main conversation.
    pub requests: Vec<usize>,
    /// The results by round, as they were shown first: some agents mask old ones later.
    pub rounds: Vec<Vec<ShownResult>>,
    /// Requests that the provider would have refused.
    pub refused: Vec<String>,
    /// Requests for the main conversation that do not begin with the whole one before.
    pub breaks: usize,
    /// The messages of the last of them, without cache marks.
    last: Vec<Value>,
    /// The round after which the model says that its window is full, so that the agent compacts its history.
    pub full_after: Option<usize>,
    /// Number of compactions.
    pub compactions: usize,
    /// Number of rounds that are in the history no more.
    gone: usize,
}

/// Tokens that the model counts, while its window is empty and once it is full.
const TOKENS: [usize; 2] = [1_000, 170_000];

#[derive(Clone)]
pub struct Model {
    script: Script,
    pub log: Arc<Mutex<Log>>,
}

impl Model {
    /// Serves on a free port. Returns the model and its URL.
    pub async fn start(script: Script) -> (Self, String) {
        let log = Arc::default();
        let model = Self { script, log };
        let app = Router::new().fallback(answer).with_state(model.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        (model, url)
    }

    fn reply(&self, protocol: Protocol, path: &str, request: &Value) -> Result<Response, String> {
        let messages = &request[protocol.field()];
        let list = messages.as_array().ok_or("no list of messages")?;
        // The client's reminders between the messages are a beta that the rules do not know.
        let is_known = |message: &&Value| message["role"] != json!("system");
        let known: Vec<_> = list.iter().filter(is_known).cloned().collect();
        validate(protocol.format(), &known).map_err(|error| error.to_string())?;
        let has_tools = request["tools"]
            .as_array()
            .is_some_and(|tools| !tools.is_empty());
        let mut log = self.log.lock().unwrap();
        if protocol.asks_to_compact(list) {
            log.compactions += usize::from(log.full_after.take().is_some());
            return Ok(protocol.compacted(path, request));
        }
        if !has_tools {
            return Ok(protocol.reply(path, request, &[], 0, TOKENS[0]));
        }
        let rounds = rounds(protocol.format(), &known);
        if log.compactions > 0 && log.gone == 0 {
            // The newest rounds may have stayed, the last of which the model has not seen yet.
            let first = rounds.first().and_then(|round| round.first());
            let first = first.map(|shown| &shown.call_id);
            let is_first =
                |round: &Vec<ShownResult>| round.first().map(|shown| &shown.call_id) == first;
            let kept = first.and_then(|_| log.rounds.iter().position(is_first));
            log.gone = kept.unwrap_or(log.rounds.len());
        }
        let number = log.gone + rounds.len();
        log.requests.push(messages.to_string().len());
        let unmarked: Vec<Value> = list.iter().cloned().map(unmarked).collect();
        log.breaks += usize::from(!unmarked.starts_with(&log.last));
        log.last = unmarked;
        let seen = log.rounds.len() - log.gone;
        log.rounds.extend(rounds.into_iter().skip(seen));
        let calls = (self.script)(&log.rounds).unwrap_or_default();
        let is_full = log.full_after.is_some_and(|after| number >= after);
        let tokens = TOKENS[usize::from(is_full)];
        Ok(protocol.reply(path, request, &calls, number, tokens))
    }
}

async fn answer(State(model): State<Model>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    if headers.contains_key(header::UPGRADE) {
        return StatusCode::UPGRADE_REQUIRED.into_response();
    }
    if body.is_empty() {
        return StatusCode::OK.into_response();
    }
    assert!(headers.contains_key(header::CONTENT_TYPE));
    let request: Value = serde_json::from_slice(&body).unwrap();
    let (path, protocol) = (uri.path(), Protocol::of(uri.path()));
    if path.matches("/v1").count() > 1 {
        let mut log = model.log.lock().unwrap();
        log.refused.push(format!("{path} has its version twice"));
    }
    if let Some(count) = protocol.count(path, body.len()) {
        return count;
    }
    model
        .reply(protocol, path, &request)
        .unwrap_or_else(|problem| {
            model.log.lock().unwrap().refused.push(problem.clone());
            protocol.refusal(&problem)
        })
}

/// A message without cache marks, which move. What they leave may be a list of one text or that text.
fn unmarked(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.remove("cache_control");
            for field in fields.values_mut() {
                *field = unmarked(field.take());
            }
        }
        Value::Array(items) => {
            for item in &mut *items {
                *item = unmarked(item.take());
            }
            if let [one] = &items[..]
                && let Some(text) = one.get("text").filter(|_| one["type"] == "text")
            {
                return text.clone();
            }
        }
        _ => {}
    }
    value
}

/// The results of each round, in the order of the calls.
fn rounds(format: WireFormat, messages: &[Value]) -> Vec<Vec<ShownResult>> {
    let mut rounds = offcut_testkit::rounds(&format, messages);
    for round in &mut rounds {
        // Agents send the results of parallel calls in the order in which these ended.
        round.sort_by(|a, b| a.call_id.cmp(&b.call_id));
    }
    rounds
}
