//! `/v1/compress`: shortens the results in a list of messages.

use std::panic::AssertUnwindSafe;
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream};
use offcut::format::{Conversation, JsonText, Messages, RequestBody, Spelled, WireFormat};
use offcut::report::ErrorSource;
use offcut::{Part, ToolCall, ToolOutput, Truncated};
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use super::results::{Found, results};
use super::store::location;
use super::tenant::PlugTenant;
use crate::gateway::outcome::{Outcome, PassReason};
use crate::gateway::watch::{Look, Prompt};
use crate::units::BYTES_PER_TOKEN;

/// Number of results that are stored at once.
const AT_ONCE: usize = 8;

/// A result that has been shortened.
struct Short {
    found: Found,
    hash: String,
    truncated: Truncated,
}

/// Shortens the results of a body's messages, each by itself, or none of them if there is no time. Returns the bytes of
/// all messages, the results that this process has not shortened before, and the reply.
pub(super) async fn compress(
    tenant: &PlugTenant,
    mut body: RequestBody,
    deadline: Instant,
) -> Look {
    let mut look = Look {
        would: length(body.messages()),
        ..Look::default()
    };
    let format = body.format().unwrap_or(WireFormat::OpenAiChat);
    let format = Spelled(format);
    let found = results(&Messages::new(&format, body.messages_mut()));
    let now = SystemTime::now();
    let shortening = stream::iter(found)
        .map(|found| shorten(tenant, found, now))
        .buffered(AT_ONCE)
        .collect::<Vec<_>>();
    let shortening = AssertUnwindSafe(shortening).catch_unwind();
    let shortened = match timeout_at(deadline, shortening).await {
        Ok(Ok(shortened)) => shortened,
        failed => {
            let reason = match failed {
                Ok(_) => PassReason::Bug,
                Err(_) => PassReason::TooSlow,
            };
            look.text = Some(reply(body.messages(), &[], 0));
            return look.passed(reason);
        }
    };
    let has_store_failed = shortened.iter().any(Result::is_err);
    let (mut hashes, mut saved) = (Vec::new(), 0);
    let mut messages = Messages::new(&format, body.messages_mut());
    for short in shortened.into_iter().filter_map(Result::ok).flatten() {
        let (found, hash, truncated) = (short.found, short.hash, short.truncated);
        if tenant.is_first(&hash) {
            look.add(&truncated.report);
        }
        let bytes = truncated
            .report
            .decisions
            .iter()
            .map(|decision| decision.bytes);
        let bytes = bytes.map(|bytes| bytes.before.saturating_sub(bytes.after));
        saved += bytes.sum::<u64>() / BYTES_PER_TOKEN as u64;
        messages.replace_result(found.message, found.slot, truncated.parts);
        if !hashes.contains(&hash) {
            hashes.push(hash);
        }
    }
    look.outcome = match (hashes.is_empty(), has_store_failed) {
        (true, true) => Outcome::Passed(PassReason::Store),
        (true, false) => Outcome::Unchanged,
        (false, true) => Outcome::Partly(PassReason::Store),
        (false, false) => Outcome::Reduced,
    };
    look.sent = (!hashes.is_empty()).then(|| length(body.messages()));
    look.text = Some(reply(body.messages(), &hashes, saved));
    look
}

/// Shortens a result; `None` if it stays, and an error if the store failed.
async fn shorten(tenant: &PlugTenant, found: Found, now: SystemTime) -> Result<Option<Short>, ()> {
    let Some(hash) = tenant.hash(&found.texts, now) else {
        return Ok(None);
    };
    let call = ToolCall::new(&*hash, &*found.tool, "");
    let parts = found.texts.iter().cloned().map(Part::Text).collect();
    let session = tenant.session_of(&hash);
    let truncated = session.truncate(&call, ToolOutput::parts(parts));
    let Ok(truncated) = truncated.await else {
        return Err(());
    };
    let decisions = &truncated.report.decisions;
    if decisions
        .iter()
        .any(|decision| decision.error_source == Some(ErrorSource::Store))
    {
        return Err(());
    }
    // Whatever would be read by another name than the hash stays in the messages.
    let expected = [location(&hash)];
    let is_short = !decisions.is_empty()
        && decisions
            .iter()
            .all(|decision| decision.outcome.is_change() && decision.locations == expected);
    Ok(is_short.then(|| Short {
        found,
        hash,
        truncated,
    }))
}

/// The reply: the messages in their own spelling, and what LiteLLM looks for beside them.
fn reply(messages: &[JsonText], hashes: &[String], saved: u64) -> Bytes {
    let messages: Vec<_> = messages.iter().map(JsonText::as_str).collect();
    let reply = format!(
        "{{\"messages\":[{}],\"ccr_hashes\":{},\"tokens_saved\":{saved}}}",
        messages.join(","),
        json!(hashes),
    );
    reply.into()
}

/// The bytes of all messages.
fn length(messages: &[JsonText]) -> Prompt {
    let messages = messages.iter();
    Prompt::unread(messages.map(|one| one.as_str().len() as u64).sum())
}
