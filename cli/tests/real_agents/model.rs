//! A model on loopback that speaks Anthropic's protocol and follows a script. It needs no state: the
//! number of tool rounds in a request selects the step. Checks each request as the provider does.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use offcut::format::{Format, PartRef, Piece, WireFormat};
use offcut_testkit::validate;
use serde_json::{Value, json};

/// A tool result as the model is shown it.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    pub text: String,
    pub is_error: bool,
}

/// A call of a tool: its name and its arguments.
pub type Call = (&'static str, Value);

/// Chooses the calls of the next step from the results of each round, oldest first. `None` ends the
/// session.
pub type Script = Arc<dyn Fn(&[Vec<Shown>]) -> Option<Vec<Call>> + Send + Sync>;

/// The server's own records of a session.
#[derive(Debug, Default)]
pub struct Log {
    /// The length in bytes of the messages in each request for the main conversation.
    pub requests: Vec<usize>,
    /// The results in the last of them, by round.
    pub rounds: Vec<Vec<Shown>>,
    /// Requests that the provider would have refused.
    pub refused: Vec<String>,
}

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

    fn reply(&self, request: &Value) -> Result<String, String> {
        let messages = request["messages"]
            .as_array()
            .ok_or("no list of messages")?;
        // The client's reminders between the messages are a beta that the rules do not know.
        let is_known = |message: &&Value| message["role"] != json!("system");
        let known: Vec<_> = messages.iter().filter(is_known).cloned().collect();
        validate(WireFormat::Anthropic, &known).map_err(|error| error.to_string())?;
        let has_tools = request["tools"]
            .as_array()
            .is_some_and(|tools| !tools.is_empty());
        if !has_tools {
            return Ok(events(request, &[], 0));
        }
        let rounds = rounds(&known);
        let calls = (self.script)(&rounds).unwrap_or_default();
        let number = rounds.len();
        let mut log = self.log.lock().unwrap();
        log.requests.push(request["messages"].to_string().len());
        log.rounds = rounds;
        Ok(events(request, &calls, number))
    }
}

async fn answer(State(model): State<Model>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    if body.is_empty() {
        return StatusCode::OK.into_response();
    }
    assert!(headers.contains_key(header::CONTENT_TYPE));
    let request: Value = serde_json::from_slice(&body).unwrap();
    if uri.path().ends_with("/count_tokens") {
        return json!({"input_tokens": body.len() / 4})
            .to_string()
            .into_response();
    }
    match model.reply(&request) {
        Ok(events) => ([(header::CONTENT_TYPE, "text/event-stream")], events).into_response(),
        Err(message) => {
            model.log.lock().unwrap().refused.push(message.clone());
            let error = json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}});
            (StatusCode::BAD_REQUEST, error.to_string()).into_response()
        }
    }
}

/// A reply as server-sent events: calls, or an answer if there are none.
fn events(request: &Value, calls: &[Call], round: usize) -> String {
    let mut text = String::new();
    let mut send = |event: Value| {
        text += &format!(
            "event: {}\ndata: {event}\n\n",
            event["type"].as_str().unwrap()
        );
    };
    let usage = json!({"input_tokens": 1_000, "output_tokens": 1});
    send(json!({"type": "message_start", "message": {
        "id": format!("msg_{round}"), "type": "message", "role": "assistant", "model": request["model"],
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage,
    }}));
    let blocks = calls.iter().enumerate().map(|(nth, (name, input))| {
        let id = format!("toolu_{round}_{nth}");
        let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        (
            block,
            json!({"type": "input_json_delta", "partial_json": input.to_string()}),
        )
    });
    let answer = (
        json!({"type": "text", "text": ""}),
        json!({"type": "text_delta", "text": "Done."}),
    );
    let answer = calls.is_empty().then_some(answer);
    for (index, (block, delta)) in blocks.chain(answer).enumerate() {
        send(json!({"type": "content_block_start", "index": index, "content_block": block}));
        send(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        send(json!({"type": "content_block_stop", "index": index}));
    }
    let reason = if calls.is_empty() {
        "end_turn"
    } else {
        "tool_use"
    };
    send(
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 9}}),
    );
    send(json!({"type": "message_stop"}));
    text
}

/// The results of each round: all those between two turns of the model, in the order of the calls.
fn rounds(messages: &[Value]) -> Vec<Vec<Shown>> {
    let mut rounds: Vec<Vec<(String, Shown)>> = Vec::new();
    let (mut is_open, mut is_result) = (false, false);
    for message in messages {
        WireFormat::Anthropic.visit(message, &mut |piece| match piece {
            Piece::Role(_) => is_result = false,
            Piece::Call(_) => is_open = false,
            Piece::Result(head) => {
                if !is_open {
                    rounds.push(Vec::new());
                }
                (is_open, is_result) = (true, true);
                let (text, is_error) = (String::new(), head.is_error);
                let id = head.id.to_owned();
                rounds
                    .last_mut()
                    .unwrap()
                    .push((id, Shown { text, is_error }));
            }
            Piece::Content(PartRef::Text(text)) if is_result => {
                rounds.last_mut().unwrap().last_mut().unwrap().1.text += text;
            }
            _ => {}
        });
    }
    let by_id = |mut round: Vec<(String, Shown)>| {
        // Agents send the results of parallel calls in the order in which these ended.
        round.sort_by(|(a, _), (b, _)| a.cmp(b));
        round.into_iter().map(|(_, shown)| shown).collect()
    };
    rounds.into_iter().map(by_id).collect()
}
