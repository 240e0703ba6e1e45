//! Reads and reduces the body of a request.

use std::collections::HashMap;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use offcut::format::{BodyError, Format, JsonText, Piece, RequestBody, Spelled, WireFormat};
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use crate::gateway::body::Body;
use crate::gateway::jobs::memory_for;
use crate::gateway::outcome::{Outcome, PassReason};
use crate::gateway::own::{self, Refusal};
use crate::gateway::reducer::{Exchange, Pressure, Purpose};
use crate::gateway::service::Service;
use crate::gateway::watch::{Look, Prompt};

/// Bytes that may be moved in one message.
const LONGEST_MOVE: usize = 8 << 30;

impl Service {
    /// Reads and reduces a body, as far as there is time.
    pub(crate) async fn reduced(
        &self,
        tenant: &str,
        exchange: Exchange,
        pressure: Pressure,
        text: Bytes,
        mut look: Look,
        deadline: Instant,
    ) -> Result<Look, Refusal> {
        let length = text.len();
        look.before = Prompt::unread(length as u64);
        let Ok(text) = str::from_utf8(&text) else {
            return Ok(look.passed(PassReason::NotUnderstood));
        };
        let mut body = match RequestBody::parse_within(text, memory_for(length)) {
            Ok(body) => body,
            Err(BodyError::NoMessages) if is_elsewhere(text) => return Ok(look),
            Err(BodyError::TooDense) => return Ok(look.passed(PassReason::TooLong)),
            Err(_) => return Ok(look.passed(PassReason::NotUnderstood)),
        };
        let has_threads =
            exchange.format == WireFormat::Anthropic && exchange.purpose == Purpose::Turn;
        for (name, text) in body.fields() {
            match name {
                "model" => {
                    let model: Option<String> = serde_json::from_str(text).ok();
                    model.iter().for_each(|model| look.whose.name_model(model));
                }
                "thread" if has_threads && text != "null" => return Err(Box::new(no_thread())),
                _ => {}
            }
        }
        let mut messages = body.messages().iter();
        if messages.any(|one| is_crowded(exchange.format, one)) {
            return Ok(look.passed(PassReason::TooLong));
        }
        look.before = Prompt::of(&body, length as u64, &look.whose.model);
        let (reducer, watch) = (&self.reducer, &self.watch);
        let reducing = reducer.reduce(tenant, exchange, pressure, watch, &mut body, &mut look);
        let outcome = timeout_at(deadline, reducing).await;
        look.outcome = outcome.unwrap_or(Outcome::Passed(PassReason::TooSlow));
        if matches!(look.outcome, Outcome::Reduced(_)) {
            let changed = body.to_string();
            look.after = Some(Prompt::of(&body, changed.len() as u64, &look.whose.model));
            look.text = Some(changed.into());
        }
        Ok(look)
    }
}

/// Returns true if a request holds no conversation: the provider keeps it, or the prompt.
fn is_elsewhere(request: &str) -> bool {
    let fields: Result<HashMap<String, Option<IgnoredAny>>, _> = serde_json::from_str(request);
    let mut names = ["messages", "input", "contents"].into_iter();
    fields.is_ok_and(|fields| names.all(|name| fields.get(name).is_none_or(Option::is_none)))
}

/// Returns true if headers fit one body alone.
pub(crate) fn is_signed(headers: &HeaderMap) -> bool {
    let digests = [
        "content-digest",
        "content-md5",
        "digest",
        "signature",
        "x-amz-content-sha256",
    ];
    let credential = headers.get(header::AUTHORIZATION);
    digests.iter().any(|name| headers.contains_key(*name))
        || credential.is_some_and(|value| value.as_bytes().starts_with(b"AWS4-"))
}

/// Returns true if replacing the results of a message would take too long: each moves
/// the rest of it.
fn is_crowded(format: WireFormat, message: &JsonText) -> bool {
    let length = message.as_str().len();
    // No result is shorter than this.
    if length * (length / 32) < LONGEST_MOVE {
        return false;
    }
    let mut results = 0;
    Spelled(format).visit(message, &mut |piece| {
        results += usize::from(matches!(piece, Piece::Result(_) | Piece::Call(_)));
    });
    length * results > LONGEST_MOVE
}

/// The answer to a thread, whose history would not be on the wire: clients then send all of it.
fn no_thread() -> Response<Body> {
    let message =
        "offcut: a thread does not carry the conversation: send all messages without `thread`";
    let details = json!({"error_code": "thread_unsupported_request"});
    let error = json!({"type": "invalid_request_error", "message": message, "details": details});
    own::json(
        StatusCode::BAD_REQUEST,
        &json!({"type": "error", "error": error}),
    )
}
