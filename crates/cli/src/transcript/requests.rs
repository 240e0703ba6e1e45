//! Logs of requests: what wraps the messages, and requests that each extend the one before.

use std::borrow::Cow;

use offcut::format::Message;
use serde_json::Value;

use super::messages::{self, is_turn};

/// Fields that wrap a request, or a state, with messages.
const WRAPPERS: [&str; 4] = ["body", "request", "inputs", "values"];
/// Maximum depth of wrappers.
const DEPTH: usize = 4;

/// The messages of a request or its body, and whether it comes from a log, so that a model was called.
type Request<C> = (C, bool);

/// Reads the requests in a document: its own messages, or those that it wraps.
pub(super) fn of(document: &Value) -> Vec<Request<Vec<Message>>> {
    let read = |body: &Value| messages::of_document(body).filter(|all| !all.is_empty());
    wrapped(document, DEPTH, &read)
}

/// The bodies of the requests in a document of a log, as they were sent.
#[cfg(feature = "serve")]
pub(super) fn bodies(document: &Value) -> impl Iterator<Item = Value> {
    let is_body = |body: &&Value| {
        let mut lists = ["messages", "input", "contents"].iter();
        lists.any(|list| body.get(*list).is_some_and(Value::is_array))
    };
    let read = |body: &Value| Some(body).filter(is_body).cloned();
    let found = wrapped(document, DEPTH, &read).into_iter();
    found.map(|(body, _)| body)
}

/// Finds what `read` reads in a document, or else in what it wraps.
fn wrapped<C>(
    document: &Value,
    depth: usize,
    read: &impl Fn(&Value) -> Option<C>,
) -> Vec<Request<C>> {
    let document = parsed(document);
    if let Some(content) = read(&document) {
        return vec![(content, false)];
    }
    let Some(depth) = depth.checked_sub(1) else {
        return Vec::new();
    };
    if let Value::Array(several) = &*document {
        let objects = several.iter().filter(|one| one.is_object());
        return objects.flat_map(|one| wrapped(one, depth, read)).collect();
    }
    let inside = |outside: &Value, field: &str| {
        let inside = outside.get(field);
        let mut requests = inside.map_or_else(Vec::new, |inside| wrapped(inside, depth, read));
        // A state has its last turn, or none was made.
        if let Some((_, is_logged)) = requests.last_mut() {
            *is_logged |= field != "values";
        }
        requests
    };
    if let Some(observations) = document.get("observations").and_then(Value::as_array) {
        let observations = observations.iter();
        return observations.flat_map(|one| inside(one, "input")).collect();
    }
    let mut found = WRAPPERS.iter().map(|field| inside(&document, field));
    found.find(|found| !found.is_empty()).unwrap_or_default()
}

/// Returns the value, or the JSON in it if it is a string of JSON.
fn parsed(value: &Value) -> Cow<'_, Value> {
    value
        .as_str()
        .filter(|text| text.trim_start().starts_with(['{', '[']))
        .and_then(|text| serde_json::from_str(text).ok())
        .map_or(Cow::Borrowed(value), Cow::Owned)
}

struct Conversation {
    /// Index of its first request in the log.
    first: usize,
    /// Its last request, which holds all others.
    messages: Vec<Message>,
    is_logged: bool,
}

/// Groups `requests` into conversations. A request that begins with all messages of another
/// continues its conversation. Instructions are ignored, because they may contain a time.
pub(super) fn conversations(requests: Vec<Request<Vec<Message>>>) -> Vec<Vec<Message>> {
    let mut order: Vec<_> = requests.into_iter().enumerate().collect();
    // Some logs have the newest first.
    order.sort_by_key(|(_, (messages, _))| said(messages).len());
    let mut conversations: Vec<Conversation> = Vec::new();
    for (first, (messages, is_logged)) in order {
        let new = said(&messages);
        let is_extended = |known: &&mut Conversation| {
            let known = said(&known.messages);
            // If the model had the last word, it is a transcript, and two equal ones are two.
            let is_copy = known.len() == new.len() && !is_logged && new.last().is_some_and(is_turn);
            !known.is_empty() && !is_copy && new.starts_with(known)
        };
        match conversations.iter_mut().rev().find(is_extended) {
            Some(known) => {
                *known = Conversation {
                    first: known.first.min(first),
                    messages,
                    is_logged: true,
                }
            }
            None => conversations.push(Conversation {
                first,
                messages,
                is_logged,
            }),
        }
    }
    conversations.sort_by_key(|conversation| conversation.first);
    conversations.into_iter().map(finished).collect()
}

/// Returns the messages after the leading instructions.
fn said(messages: &[Message]) -> &[Message] {
    let is_instruction = |message: &&Message| matches!(message, Message::System { .. });
    let instructions = messages.iter().take_while(is_instruction).count();
    messages.get(instructions..).unwrap_or_default()
}

/// Appends the last turn, which a log of requests lacks: its request was sent and costs as much as any other.
fn finished(conversation: Conversation) -> Vec<Message> {
    let mut messages = conversation.messages;
    if conversation.is_logged && !messages.last().is_some_and(is_turn) {
        messages.push(Message::Assistant {
            content: Vec::new(),
            calls: Vec::new(),
        });
    }
    messages
}
