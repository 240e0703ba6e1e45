//! A provider on loopback. It checks each request as the real one would, and its model follows a
//! script: the number of tool rounds in a request selects the next step.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use offcut::format::WireFormat;
use offcut_testkit::{ShownResult, rounds, validate};
use serde_json::{Value, json};

/// A reply of the scripted model.
pub(crate) enum Step {
    /// A text, and calls of tools, all at once.
    Calls(String, Vec<(&'static str, Value)>),
    /// The answer.
    Answer(&'static str),
}

/// Chooses the next step from the results of each round, oldest first.
pub(crate) type Script = fn(&[Vec<ShownResult>]) -> Result<Step, String>;

#[derive(Clone)]
pub(crate) struct Provider {
    format: WireFormat,
    script: Script,
    /// The size of each request in bytes.
    pub(crate) requests: Arc<Mutex<Vec<usize>>>,
}

pub(crate) const KEY: &str = "the-key";
pub(crate) const MODEL: &str = "scripted-1";

impl Provider {
    /// Serves on a free port, and returns itself and the URL.
    pub(crate) async fn start(format: WireFormat, script: Script) -> (Self, String) {
        let requests = Arc::default();
        let provider = Self {
            format,
            script,
            requests,
        };
        let app = Router::new().fallback(answer).with_state(provider.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        (provider, url)
    }

    fn reply(&self, uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Result<Value, String> {
        self.is_for_us(uri, headers)?;
        let body: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let messages = match self.format {
            WireFormat::Responses => &body["input"],
            WireFormat::Gemini => &body["contents"],
            _ => &body["messages"],
        };
        let messages = messages.as_array().ok_or("no list of messages")?;
        validate(self.format, messages).map_err(|error| error.to_string())?;
        self.check_rest(&body)?;
        let rounds = rounds(&self.format, messages);
        let step = (self.script)(&rounds)?;
        Ok(self.write(step, rounds.len()))
    }

    fn is_for_us(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), String> {
        let bearer = format!("Bearer {KEY}");
        let (path, header, key) = match self.format {
            WireFormat::Anthropic => ("/v1/messages", "x-api-key", KEY),
            WireFormat::Gemini => (
                "/v1beta/models/scripted-1:generateContent",
                "x-goog-api-key",
                KEY,
            ),
            WireFormat::Responses => ("/v1/responses", "authorization", &*bearer),
            _ => ("/v1/chat/completions", "authorization", &*bearer),
        };
        let is = |name: &str, should: &str| headers.get(name).is_some_and(|is| is == should);
        let has_version =
            self.format != WireFormat::Anthropic || is("anthropic-version", "2023-06-01");
        if uri.path() != path || !is("content-type", "application/json") || !has_version {
            return Err(format!("not a request for {path}: {uri} {headers:?}"));
        }
        is(header, key)
            .then_some(())
            .ok_or("the key is wrong".to_owned())
    }

    /// Checks everything apart from the messages: the model, and the tools in the provider's shape.
    fn check_rest(&self, body: &Value) -> Result<(), String> {
        let is_named = self.format == WireFormat::Gemini || body["model"] == MODEL;
        let has_limit = self.format != WireFormat::Anthropic || body["max_tokens"].is_u64();
        let tools = body["tools"].as_array().ok_or("no tools")?;
        let tools: Vec<&Value> = match self.format {
            WireFormat::OpenAiChat => tools.iter().map(|tool| &tool["function"]).collect(),
            WireFormat::Gemini if tools.len() == 1 => tools[0]["functionDeclarations"]
                .as_array()
                .ok_or("no functions")?
                .iter()
                .collect(),
            WireFormat::Gemini => return Err("more than one tool".into()),
            _ => tools.iter().collect(),
        };
        let schema = match self.format {
            WireFormat::Anthropic => "input_schema",
            WireFormat::Gemini => "parametersJsonSchema",
            _ => "parameters",
        };
        let names: Vec<_> = tools
            .iter()
            .filter_map(|tool| tool["name"].as_str())
            .collect();
        let is_described = tools.iter().all(|tool| {
            let properties = &tool[schema]["properties"];
            tool["description"].is_string()
                && tool[schema]["type"] == "object"
                && properties.as_object().is_some_and(|all| !all.is_empty())
        });
        let wants_kind = matches!(self.format, WireFormat::OpenAiChat | WireFormat::Responses);
        let kinds = body["tools"].as_array().into_iter().flatten();
        let has_kind = kinds
            .into_iter()
            .all(|tool| !wants_kind || tool["type"] == "function");
        let is_fine =
            is_named && has_limit && is_described && has_kind && names == ["grep", "read_file"];
        is_fine
            .then_some(())
            .ok_or_else(|| format!("model or tools are wrong: {}", body["tools"]))
    }

    fn write(&self, step: Step, round: usize) -> Value {
        let (said, calls) = match step {
            Step::Answer(answer) => (answer.to_owned(), Vec::new()),
            Step::Calls(said, calls) => (said, calls),
        };
        let calls = calls.into_iter().enumerate();
        let calls =
            calls.map(|(nth, (name, arguments))| (format!("call_{round}_{nth}"), name, arguments));
        match self.format {
            WireFormat::OpenAiChat => {
                let calls: Vec<_> = calls.map(|(id, name, arguments)| {
                    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}})
                }).collect();
                let mut message = json!({"role": "assistant", "content": said});
                if !calls.is_empty() {
                    message["tool_calls"] = calls.into();
                }
                json!({"object": "chat.completion", "choices": [{"index": 0, "message": message}]})
            }
            WireFormat::Responses => {
                let said = json!({"type": "output_text", "text": said, "annotations": []});
                let message = json!({"type": "message", "id": format!("msg_{round}"), "role": "assistant", "status": "completed", "content": [said]});
                let calls = calls.map(|(id, name, arguments)| {
                    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": arguments.to_string(), "status": "completed"})
                });
                let reasoning = json!({"type": "reasoning", "id": format!("rs_{round}"), "summary": [], "encrypted_content": "gAAA"});
                let output: Vec<_> = [reasoning, message].into_iter().chain(calls).collect();
                json!({"object": "response", "status": "completed", "output": output})
            }
            WireFormat::Gemini => {
                // Without ids, as Gemini often sends calls.
                let mut parts = vec![json!({"text": said, "thoughtSignature": "c2ln"})];
                parts.extend(
                    calls.map(
                        |(_, name, args)| json!({"functionCall": {"name": name, "args": args}}),
                    ),
                );
                json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]})
            }
            _ => {
                let mut content = vec![json!({"type": "text", "text": said})];
                content.extend(calls.map(|(id, name, input)| json!({"type": "tool_use", "id": id, "name": name, "input": input})));
                let stopped = if content.len() > 1 {
                    "tool_use"
                } else {
                    "end_turn"
                };
                json!({"type": "message", "role": "assistant", "content": content, "stop_reason": stopped})
            }
        }
    }
}

async fn answer(
    State(provider): State<Provider>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, String) {
    provider.requests.lock().unwrap().push(body.len());
    match provider.reply(&uri, &headers, &body) {
        Ok(reply) => (StatusCode::OK, reply.to_string()),
        Err(message) => {
            let error = json!({"error": {"type": "invalid_request_error", "message": message}});
            (StatusCode::BAD_REQUEST, error.to_string())
        }
    }
}
