//! The plug: `POST /v1/compress` and `GET /v1/retrieve/{hash}`, as LiteLLM's guardrail `headroom`
//! calls them. A gateway that already stands between agents and providers has long results shortened
//! here, and gives the model a tool that reads them back.
//!
//! The text shown is a function of a result's text, its tenant, the settings and the day: no
//! conversation is remembered, so any process gives the same bytes.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use hmac::{Hmac, KeyInit, Mac};
use http::{Response, StatusCode};
use offcut::backend::{Backend, ErrorKind, Key, Location};
use offcut::format::{
    BodyError, Conversation, JsonText, Messages, NewPiece, PartRef, Piece, RequestBody, Spelled,
    WireFormat,
};
use offcut::hint::Hint;
use offcut::report::ErrorSource;
use offcut::{
    OnOffloadError, Part, Settings, StoredNames, ToolCall, ToolOutput, ToolReduction, Truncated,
};
use serde_json::json;
use sha2::Sha256;
use tokio::time::{Instant, timeout_at};

use crate::gateway::body::Body;
use crate::gateway::breaker::Open;
use crate::gateway::jobs::memory_for;
use crate::gateway::outcome::{Outcome, PassReason};
use crate::gateway::own::{self, Denial};
use crate::gateway::secret::{Secret, add_field};
use crate::gateway::settings::{GatewayError, is_plain};
use crate::gateway::watch::{Look, Prompt};
use crate::gateway::whose::Whose;
use crate::lock::locked;
use crate::units::{BYTES_PER_TOKEN, hex};

/// The tool that gateways give the model.
const READER: &str = "headroom_retrieve";

/// Number of digits of a hash: the longest that LiteLLM takes.
const DIGITS: usize = 24;
/// Number of digits at the beginning of a hash that are those of its day.
const DAY_DIGITS: usize = 4;

/// The word before a hash in hints. Older versions of LiteLLM look for it in the text.
const MARK: &str = "hash=";

/// Number of results that are held in memory as seen.
const HELD: usize = 16_384;

/// A tenant of the plug.
pub(crate) struct PlugTenant {
    pub(crate) name: String,
    pub(crate) credential: Secret,
    /// Has a session for each day, which stores and reads this tenant's results, and no other's.
    session: ToolReduction,
    store: Option<Arc<dyn Backend>>,
    /// The hashes of the results that were shortened before.
    seen: Mutex<HashSet<String>>,
}

/// Checks the names and the credentials of tenants.
pub(crate) fn check_keys(keys: &BTreeMap<String, Secret>) -> Result<(), GatewayError> {
    let mut known: Vec<&Secret> = Vec::new();
    for (name, credential) in keys {
        let wrong = |problem| GatewayError::entry("compress_keys", name, problem);
        let is_name = is_plain(name) && name.len() <= 40 && *name == name.to_ascii_lowercase();
        if !is_name {
            return Err(wrong(
                "a name has 1 to 40 lower-case letters, digits, `-` and `_`: choose another one",
            ));
        }
        if credential.is_too_short() {
            return Err(wrong(Secret::TOO_SHORT));
        }
        if known.contains(&credential) {
            return Err(wrong(
                "another name has the same key: write a key of its own for each tenant",
            ));
        }
        known.push(credential);
    }
    Ok(())
}

impl PlugTenant {
    /// The tenant of a key.
    pub(crate) fn new(
        name: &str,
        credential: &Secret,
        settings: &Settings,
        open: &Open<'_>,
    ) -> Result<Self, GatewayError> {
        let mut settings = settings.clone();
        settings.read_file_tool_name = Some(READER.to_owned());
        // The hash is the name, and what is not stored stays in the messages.
        settings.names = StoredNames::CallId;
        settings.on_offload_error = OnOffloadError::KeepOriginal;
        let whole = ToolReduction::builder().settings(settings, open).build();
        let whole = whole.map_err(GatewayError::Reduction)?;
        Ok(Self {
            name: name.to_owned(),
            credential: credential.clone(),
            session: whole.session(&format!("plug-{name}")),
            store: whole.stores().into_iter().next(),
            seen: Mutex::default(),
        })
    }

    /// The name of the tenant's row among upstreams. None of these has a space in its name.
    pub(crate) fn row(&self) -> String {
        format!("plug {}", self.name)
    }

    /// The session that stores and reads the result of a hash, and the location there; `None` if it is not a hash, or
    /// nothing is stored at all.
    fn place(&self, hash: &str) -> Option<(ToolReduction, Location)> {
        let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if hash.len() != DIGITS || !hash.bytes().all(is_digit) {
            return None;
        }
        let session = self.session.session(&hash[..DAY_DIGITS]);
        let [results, _] = Key::FOLDERS;
        let key = Key::new(format!("{}{results}/{hash}", session.prefix())).ok()?;
        Some((session, self.store.as_ref()?.locate(&key)))
    }

    /// The hash of a result's texts: the same in every process on the same day, and not to be guessed without the
    /// credential. It begins with the day since 1970: what is stored on one day is a conversation of its own for a
    /// sweep, and is never named anew on another day.
    fn hash(&self, texts: &[String], now: SystemTime) -> Option<String> {
        let key = self.credential.text().as_bytes();
        let mut hash = Hmac::<Sha256>::new_from_slice(key).ok()?;
        for text in texts {
            add_field(&mut hash, text.as_bytes());
        }
        let digest = hash.finalize().into_bytes();
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let day = since.as_secs() / (24 * 60 * 60) % 0x1_0000;
        let mut hash = format!("{day:04x}{}", hex(&digest));
        hash.truncate(DIGITS);
        Some(hash)
    }

    /// Reads back what a hash stands for: all of it, or the lines that a query is about.
    pub(crate) async fn retrieve(&self, hash: &str, query: Option<&str>) -> Response<Body> {
        let read = match self.place(hash) {
            Some((session, location)) => session.read_original(&location).await,
            None => None,
        };
        let original = match read {
            Some(Ok(bytes)) => String::from_utf8(bytes.into()).ok(),
            Some(Err(error)) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!(kind = ?error.kind(), "stored content was not read");
                return Denial::NotRead.answer();
            }
            _ => None,
        };
        let Some(original) = original else {
            return Denial::NoHash.answer();
        };
        let query = query.and_then(query_of);
        let shown = query.and_then(|query| lines_with(&original, &query));
        let body = json!({"hash": hash, "original_content": shown.unwrap_or(original)});
        own::json(StatusCode::OK, &body)
    }

    /// Returns true if a result is shortened for the first time.
    fn is_first(&self, hash: &str) -> bool {
        let mut seen = locked(&self.seen);
        if seen.len() >= HELD {
            seen.clear();
        }
        seen.insert(hash.to_owned())
    }
}

/// The most words of a query that count.
const MAX_WORDS: usize = 16;

/// The query of a request, decoded; `None` if there is none or it is empty.
fn query_of(query: &str) -> Option<String> {
    let mut pairs = query.split('&');
    let value = pairs.find_map(|pair| pair.strip_prefix("query="))?;
    // Wrong encodings stay as they are.
    let value = value.replace('+', " ");
    let value = percent_encoding::percent_decode_str(&value).decode_utf8_lossy();
    (!value.trim().is_empty()).then(|| value.into_owned())
}

/// The lines that have a word of the query, each with its number; `None` if none has one, or if they
/// are not shorter than the text.
fn lines_with(text: &str, query: &str) -> Option<String> {
    let words = query.split_whitespace().take(MAX_WORDS);
    let words: Vec<String> = words.map(str::to_lowercase).collect();
    let has_word = |line: &str| {
        let line = line.to_lowercase();
        words.iter().any(|word| line.contains(word.as_str()))
    };
    let matching: Vec<_> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| has_word(line))
        .map(|(at, line)| format!("{}: {line}", at + 1))
        .collect();
    let (count, all) = (matching.len(), text.lines().count());
    let shown = format!(
        "Lines with a word of the query: {count} of {all}. Without a query, all of it is read.\n{}",
        matching.join("\n")
    );
    (count > 0 && shown.len() < text.len()).then_some(shown)
}

/// Number of results that are stored at once.
const AT_ONCE: usize = 8;
/// Number of bytes up to which a result of hints is believed to be ours.
const BELIEVED: usize = 16 * 1024;

/// A result that consists of texts.
struct Found {
    message: usize,
    slot: usize,
    /// The tool's name, if the message has it.
    tool: String,
    texts: Vec<String>,
}

/// A result that has been shortened.
struct Short {
    found: Found,
    hash: String,
    truncated: Truncated,
}

/// Shortens the results in the messages of a body, each by itself, or none of them if there is no time. Returns the bytes
/// of all messages, the results that this process has not shortened before, and the reply.
pub(crate) async fn compressed(
    tenant: Arc<PlugTenant>,
    text: Bytes,
    deadline: Instant,
) -> Result<Look, BodyError> {
    let text = String::from_utf8(text.into()).map_err(|_| BodyError::NoMessages)?;
    let memory = memory_for(text.len());
    let mut body = RequestBody::parse_within(text, memory)?;
    // Plain messages can't be told from Anthropic's, and a list without messages has no format.
    let format = match body.format() {
        Some(format @ (WireFormat::OpenAiChat | WireFormat::Anthropic)) => format,
        None => WireFormat::OpenAiChat,
        Some(_) => return Err(BodyError::NoMessages),
    };
    let mut look = Look {
        // The conversations of a tenant can't be told apart, so all calls are one. All of their bytes count as cached, so
        // that too little is claimed as saved.
        conversation: Some(tenant.row()),
        whose: Whose::of_plug(&tenant.name),
        before: length(body.messages()),
        ..Look::default()
    };
    let format = Spelled(format);
    let found = results(&Messages::new(&format, body.messages_mut()));
    let now = SystemTime::now();
    let shortening = stream::iter(found)
        .map(|found| shorten(&tenant, found, now))
        .buffered(AT_ONCE)
        .collect::<Vec<_>>();
    let Ok(shortened) = timeout_at(deadline, shortening).await else {
        look.text = Some(reply(body.messages(), &[], 0));
        return Ok(look.passed(PassReason::TooSlow));
    };
    let has_store_failed = shortened.iter().any(Result::is_err);
    if has_store_failed {
        tracing::warn!("the store failed for a call of the plug");
    }
    let (mut hashes, mut saved) = (Vec::new(), 0);
    let mut messages = Messages::new(&format, body.messages_mut());
    for short in shortened.into_iter().filter_map(Result::ok).flatten() {
        let (found, hash, truncated) = (short.found, short.hash, short.truncated);
        if tenant.is_first(&hash) {
            look.add(&truncated.report);
        }
        let bytes = truncated.report.decisions.iter().map(|one| one.bytes);
        let bytes = bytes.map(|bytes| bytes.before.saturating_sub(bytes.after));
        saved += bytes.sum::<u64>() / BYTES_PER_TOKEN as u64;
        messages.replace(found.message, found.slot, NewPiece::Result(truncated.parts));
        if !hashes.contains(&hash) {
            hashes.push(hash);
        }
    }
    look.outcome = Outcome::of(!hashes.is_empty(), has_store_failed);
    look.after = (!hashes.is_empty()).then(|| length(body.messages()));
    look.text = Some(reply(body.messages(), &hashes, saved));
    Ok(look)
}

/// Finds the results that may be shortened: all texts, and not what the model has just read back.
fn results(conversation: &dyn Conversation) -> Vec<Found> {
    let mut found = Vec::new();
    for message in 0..conversation.len() {
        let mut slots = 0;
        // The result that is being read; `None` outside of results, and in one that stays.
        let mut open: Option<Found> = None;
        conversation.visit(message, &mut |piece| match piece {
            Piece::Result(head) => {
                found.extend(open.take());
                let tool = head.name.unwrap_or_default();
                open = (!head.is_fixed && !tool.ends_with(READER)).then(|| Found {
                    message,
                    slot: slots,
                    tool: tool.to_owned(),
                    texts: Vec::new(),
                });
                slots += 1;
            }
            Piece::Content(PartRef::Text(text)) => {
                if let Some(result) = &mut open {
                    result.texts.push(text.to_owned());
                }
            }
            // Such a result stays as it is.
            Piece::Content(_) => open = None,
            Piece::Role(_) => found.extend(open.take()),
            _ => {}
        });
        found.extend(open);
    }
    found
}

/// Shortens a result; `None` if it stays, and an error if the store failed.
async fn shorten(tenant: &PlugTenant, found: Found, now: SystemTime) -> Result<Option<Short>, ()> {
    let Some(hash) = tenant.hash(&found.texts, now) else {
        return Ok(None);
    };
    let Some((session, place)) = tenant.place(&hash) else {
        return Ok(None);
    };
    // Nothing is read to compare them: any text may look like a hint, so a long one is cut like others.
    let is_hint = |text: &String| {
        let location = Hint::parse(text).and_then(|hint| hint.location);
        let hash = location
            .as_ref()
            .and_then(|at| at.as_str().strip_prefix(MARK));
        hash.is_some_and(|hash| tenant.place(hash).is_some())
    };
    let bytes: usize = found.texts.iter().map(String::len).sum();
    if bytes <= BELIEVED && found.texts.iter().all(is_hint) {
        return Ok(None);
    }
    let call = ToolCall::new(&*hash, &*found.tool, "");
    let parts = found.texts.iter().cloned().map(Part::Text).collect();
    let truncated = session.truncate(&call, ToolOutput::parts(parts));
    let mut truncated = truncated.await.map_err(drop)?;
    let decisions = &truncated.report.decisions;
    if decisions
        .iter()
        .any(|one| one.error_source == Some(ErrorSource::Store))
    {
        return Err(());
    }
    // Whatever would be read by another name than the hash stays in the messages.
    let mut all = decisions.iter();
    let is_short = !decisions.is_empty()
        && all.all(|one| one.outcome.is_change() && one.locations == [place.clone()]);
    for part in &mut truncated.parts {
        if let Part::Text(text) = part
            && let Some(mut hint) = Hint::parse(text)
            && hint.location.as_ref() == Some(&place)
        {
            // Models read by the hash alone.
            hint.location = Some(Location::new(format!("{MARK}{hash}")));
            *text = hint.render();
        }
    }
    Ok(is_short.then_some(Short {
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
    Prompt::cached(messages.map(|one| one.as_str().len() as u64).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded() {
        assert_eq!(query_of("query=a+b%20c%C3%A4"), Some("a b cä".to_owned()));
        assert_eq!(query_of("x=1&query=100%"), Some("100%".to_owned()));
        assert_eq!(query_of("query=%zz%4"), Some("%zz%4".to_owned()));
        assert_eq!(query_of("query=+"), None);
        assert_eq!(query_of("other=a"), None);
    }

    #[test]
    fn lines_with_any_word_are_shown_with_their_numbers() {
        let text = "all fine\n".repeat(30) + "Error: disk\nwarning: cpu\n";
        assert_eq!(
            lines_with(&text, "ERROR cpu").unwrap(),
            "Lines with a word of the query: 2 of 32. Without a query, all of it is read.\n31: Error: disk\n32: warning: cpu"
        );
        assert_eq!(lines_with(&text, "nothing"), None);
        assert_eq!(lines_with(&text, "fine"), None, "no shorter than the text");
    }
}
