//! Logs of requests: what wraps the messages, and requests that each extend the one before.

use std::borrow::Cow;

use offcut::format::{Message, WireFormat};
use serde_json::Value;

use super::messages::{self, is_turn};

/// Fields that wrap a request, or a state, with messages.
const WRAPPERS: [&str; 4] = ["body", "request", "inputs", "values"];
/// Fields next to the request that may hold its answer.
const ANSWERS: [&str; 3] = ["response", "output", "outputs"];
/// Maximum depth of wrappers.
const DEPTH: usize = 4;

/// The content of one request: its messages, or its body.
#[derive(Debug)]
pub(super) struct Request<C = Vec<Message>> {
    content: C,
    /// The model's answer, if it is known.
    answer: Option<Message>,
    /// True if it comes from a log, so that a model was called even if the answer is unknown.
    is_logged: bool,
}

/// Reads the requests in a document: its own messages, or those that it wraps.
pub(super) fn of(document: &Value) -> Vec<Request> {
    let read = |body: &Value| messages::of_document(body).filter(|all| !all.is_empty());
    wrapped(document, DEPTH, &read)
}

/// The bodies of the requests in a document of a log, as they were sent.
#[cfg(feature = "serve")]
pub(super) fn bodies(document: &Value) -> Vec<Value> {
    let is_body = |body: &&Value| {
        let mut lists = ["messages", "input", "contents"].iter();
        lists.any(|list| body.get(*list).is_some_and(Value::is_array))
    };
    let read = |body: &Value| Some(body).filter(is_body).cloned();
    let found = wrapped(document, DEPTH, &read).into_iter();
    found.map(|request| request.content).collect()
}

/// Finds what `read` reads in a document, or else in what it wraps.
fn wrapped<C>(
    document: &Value,
    depth: usize,
    read: &impl Fn(&Value) -> Option<C>,
) -> Vec<Request<C>> {
    let document = parsed(document);
    if let Some(content) = read(&document) {
        return vec![Request {
            content,
            answer: None,
            is_logged: false,
        }];
    }
    if depth == 0 {
        return Vec::new();
    }
    if let Value::Array(several) = &*document {
        return several
            .iter()
            .filter(|one| one.is_object())
            .flat_map(|one| wrapped(one, depth - 1, read))
            .collect();
    }
    // The content of a field, and the answer that may be beside it.
    let beside = |outside: &Value, inside: &Value, is_logged: bool| {
        let mut requests = wrapped(inside, depth - 1, read);
        if let Some(request) = requests.last_mut() {
            request.is_logged |= is_logged;
            request.answer = request.answer.take().or_else(|| {
                let answers = ANSWERS.iter().filter_map(|field| outside.get(*field));
                answers.filter_map(answer).next()
            });
        }
        requests
    };
    if let Some(observations) = document.get("observations").and_then(Value::as_array) {
        return observations
            .iter()
            .filter_map(|observation| Some((observation, observation.get("input")?)))
            .flat_map(|(observation, input)| beside(observation, input, true))
            .collect();
    }
    let inside = WRAPPERS.iter().find_map(|field| {
        let requests = beside(&document, document.get(*field)?, *field != "values");
        (!requests.is_empty()).then_some(requests)
    });
    inside.unwrap_or_default()
}

/// Returns the value, or the JSON in it if it is a string of JSON.
fn parsed(value: &Value) -> Cow<'_, Value> {
    value
        .as_str()
        .filter(|text| text.trim_start().starts_with(['{', '[']))
        .and_then(|text| serde_json::from_str(text).ok())
        .map_or(Cow::Borrowed(value), Cow::Owned)
}

/// Reads the message in a provider's answer, in any format.
fn answer(response: &Value) -> Option<Message> {
    let response = parsed(response);
    let response = parsed(response.get("body").unwrap_or(&response));
    let (format, said) = if let Some(message) = response.pointer("/choices/0/message") {
        (WireFormat::OpenAiChat, vec![message.clone()])
    } else if let Some(content) = response.pointer("/candidates/0/content") {
        (WireFormat::Gemini, vec![content.clone()])
    } else if let Some(items) = response.get("output").and_then(Value::as_array) {
        (WireFormat::Responses, items.clone())
    } else {
        let said = vec![response.into_owned()];
        (WireFormat::detect(&Value::Array(said.clone()))?, said)
    };
    messages::read(format, &said).into_iter().find(is_turn)
}

/// Groups `requests` into conversations. A request that begins with all messages of another
/// continues its conversation. Instructions are ignored, because they may contain a time.
pub(super) fn conversations(requests: Vec<Request>) -> Vec<Vec<Message>> {
    let mut order: Vec<(usize, Request)> = requests.into_iter().enumerate().collect();
    // Some logs have the newest first.
    order.sort_by_key(|(_, request)| said(&request.content).len());
    let mut conversations: Vec<Conversation> = Vec::new();
    for (at, request) in order {
        let new = said(&request.content);
        let is_extended = |known: &Conversation| {
            let known = said(&known.request.content);
            let is_copy = known.len() == new.len() && !request.is_logged && is_finished(&request);
            !known.is_empty() && !is_copy && new.starts_with(known)
        };
        let index = conversations.iter().rposition(is_extended);
        match index.and_then(|index| conversations.get_mut(index)) {
            Some(known) => {
                known.first = known.first.min(at);
                // An answer to the same request sent again is as good as the first.
                let is_again = known.request.content.len() == request.content.len();
                let answer = known.request.answer.take().filter(|_| is_again);
                known.request = Request {
                    answer: answer.or(request.answer),
                    is_logged: true,
                    content: request.content,
                };
            }
            None => conversations.push(Conversation { first: at, request }),
        }
    }
    conversations.sort_by_key(|conversation| conversation.first);
    conversations
        .into_iter()
        .map(|conversation| finished(conversation.request))
        .collect()
}

/// Returns true if the model had the last word, so that this is a transcript, not a request. Two
/// equal transcripts count as two.
fn is_finished(request: &Request) -> bool {
    request.content.last().is_some_and(is_turn)
}

struct Conversation {
    /// Index of its first request in the log.
    first: usize,
    /// Its last request, which holds all others.
    request: Request,
}

/// Returns the messages after the leading instructions.
fn said(messages: &[Message]) -> &[Message] {
    let is_instruction = |message: &&Message| matches!(message, Message::System { .. });
    let instructions = messages.iter().take_while(is_instruction).count();
    messages.get(instructions..).unwrap_or_default()
}

/// Appends the last turn, which a log of requests may lack: its request was sent and costs as much
/// as any other.
fn finished(request: Request) -> Vec<Message> {
    let is_open = request.is_logged && !is_finished(&request);
    let unknown = is_open.then(|| Message::Assistant {
        content: Vec::new(),
        calls: Vec::new(),
    });
    let mut messages = request.content;
    messages.extend(request.answer.or(unknown));
    messages
}
