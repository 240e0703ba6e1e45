//! Any wire format as one type, for programs that learn a file's format at run time.

use std::fmt;
use std::str::FromStr;

use crate::json::{Edit, Kind, New, View};
use serde_json::Value;

use super::blocks::is_given;
use super::gemini::is_tool;
use super::wire_json::{See, Site, WireJson};
use super::{Anthropic, Gemini, OpenAiChat, Responses};
use crate::content::Part;

/// A format of wire JSON, chosen at run time. It is a [`Format`](super::Format) itself.
///
/// ```
/// use offcut::format::WireFormat;
/// use serde_json::json;
/// let mut body = json!({"model": "…", "contents": [{"role": "user", "parts": [{"text": "hello"}]}]});
/// let format = WireFormat::detect(&body).expect("a conversation");
/// assert_eq!(format, WireFormat::Gemini);
/// let messages = WireFormat::messages(&mut body).expect("a conversation");
/// assert_eq!(messages.len(), 1);
/// assert_eq!("gemini".parse(), Ok(format));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WireFormat {
    /// [`OpenAiChat`](super::OpenAiChat); its name is `openai-chat`.
    OpenAiChat,
    /// [`Responses`](super::Responses); its name is `openai-responses`.
    Responses,
    /// [`Anthropic`](super::Anthropic); its name is `anthropic`.
    Anthropic,
    /// [`Gemini`](super::Gemini); its name is `gemini`.
    Gemini,
}

/// The fields of a request's body that may hold its conversation.
pub(super) const FIELDS: [&str; 3] = ["messages", "input", "contents"];

impl WireFormat {
    /// All formats.
    pub const ALL: [Self; 4] = [
        Self::OpenAiChat,
        Self::Responses,
        Self::Anthropic,
        Self::Gemini,
    ];

    /// The format's name. It can be parsed back.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai-chat",
            Self::Responses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// Detects the format of a conversation: a list of messages, or a request's body with one in
    /// `messages`, `input` or `contents`, the first of these that is not empty. Returns `None` if
    /// no format fits.
    ///
    /// A list in `contents` is for Gemini, and one in `input` for Responses unless its calls or results are
    /// those of chat completions. Otherwise the first message with calls or results decides, or else the first
    /// that fits only one format; a body with `system` or `anthropic_version` is Anthropic's unless that format
    /// is chat completions. If all messages fit several formats, they hold only text. Then an array of texts
    /// from the assistant means Anthropic, and chat completions are as good a guess as any for the rest.
    #[must_use]
    pub fn detect(document: &Value) -> Option<Self> {
        let (field, list) = Self::list(document)?;
        Self::of_messages(document, field, || list.items())
    }

    /// The format of `messages`, which a document has in `field`.
    pub(super) fn of_messages<'m, V: View<'m>, I: Iterator<Item = V>>(
        document: V,
        field: Option<&str>,
        messages: impl Fn() -> I,
    ) -> Option<Self> {
        match field {
            // Batches of chat completions have their messages in `input` too.
            Some("input") => certain(&messages)
                .filter(|format| *format == Self::OpenAiChat)
                .or(Some(Self::Responses)),
            Some("contents") => Some(Self::Gemini),
            Some(_) if document.has("system") || document.has("anthropic_version") => {
                // Some servers of chat completions accept these fields too.
                likely(&messages)
                    .filter(|format| *format == Self::OpenAiChat)
                    .or(Some(Self::Anthropic))
            }
            _ => detect(messages),
        }
    }

    /// The list of messages in a document, and the field that holds it.
    pub(super) fn list<'m, V: View<'m>>(document: V) -> Option<(Option<&'static str>, V)> {
        if document.is_array() {
            return Some((None, document));
        }
        let lists = document.pick(FIELDS).into_iter().zip(FIELDS);
        let mut lists = lists
            .filter_map(|(list, field)| Some((Some(field), list.filter(|list| list.is_array())?)));
        let first = lists.next()?;
        if !is_empty(first.1) {
            return Some(first);
        }
        Some(lists.find(|(_, list)| !is_empty(*list)).unwrap_or(first))
    }

    /// The messages of a conversation that [`detect`](Self::detect) recognizes.
    #[must_use]
    pub fn messages(document: &mut Value) -> Option<&mut Vec<Value>> {
        match document {
            Value::Array(messages) => Some(messages),
            Value::Object(_) => {
                let (field, _) = Self::list(&*document)?;
                document.get_mut(field?)?.as_array_mut()
            }
            _ => None,
        }
    }
}

impl fmt::Display for WireFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for WireFormat {
    type Err = UnknownWireFormat;

    fn from_str(name: &str) -> Result<Self, UnknownWireFormat> {
        Self::ALL
            .into_iter()
            .find(|format| format.name() == name)
            .ok_or(UnknownWireFormat)
    }
}

/// A name that is not the name of any [`WireFormat`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown format: use `openai-chat`, `openai-responses`, `anthropic` or `gemini`")]
pub struct UnknownWireFormat;

fn is_empty<'m, V: View<'m>>(list: V) -> bool {
    list.items().next().is_none()
}

/// The format of a list of messages.
fn detect<'m, V: View<'m>, I: Iterator<Item = V>>(messages: impl Fn() -> I) -> Option<WireFormat> {
    let has_text = |message: V| {
        let [role, content] = message.pick(["role", "content"]);
        role.is_some() && content.is_some_and(|content| content.kind() == Kind::String)
    };
    let parts = |message: V| message.get("content").into_iter().flat_map(V::items);
    let is_text = |part: V| part.text("type") == "text";
    // Anthropic's clients write an assistant's text as a list of texts. Other clients may too, but
    // their other messages then tell them apart.
    let is_anthropic =
        |message: V| message.text("role") == "assistant" && parts(message).any(is_text);
    let has_only_texts = |message: V| {
        let is_whole = |part: V| is_text(part) && part.get("text").and_then(V::as_str).is_some();
        matches!(message.text("role"), "user" | "system" | "developer")
            && parts(message).next().is_some()
            && parts(message).all(is_whole)
    };
    likely(&messages).or_else(|| {
        if messages().any(is_anthropic) {
            return Some(WireFormat::Anthropic);
        }
        let are_texts = messages().next().is_some() && messages().all(has_only_texts);
        (are_texts || messages().any(has_text)).then_some(WireFormat::OpenAiChat)
    })
}

/// The format of the first message with calls or results in one format's own shape.
fn certain<'m, V: View<'m>, I: Iterator<Item = V>>(messages: impl Fn() -> I) -> Option<WireFormat> {
    messages().find_map(|message| {
        let (format, is_certain) = evidence(message)?;
        is_certain.then_some(format)
    })
}

/// The format of the first message with calls or results, or else of the first that fits only one.
fn likely<'m, V: View<'m>, I: Iterator<Item = V>>(messages: impl Fn() -> I) -> Option<WireFormat> {
    certain(&messages).or_else(|| Some(messages().find_map(evidence)?.0))
}

/// The format of a message that fits only one, and true if its calls or results say so: clients and frameworks
/// borrow each other's parts of any other kind.
fn evidence<'m, V: View<'m>>(message: V) -> Option<(WireFormat, bool)> {
    let kind = message
        .get("type")
        .map(|kind| kind.as_str().unwrap_or_default());
    match kind {
        None => {}
        // Entries of logs also have types, and messages inside them.
        Some("message") if message.has("role") => {}
        Some(kind) => {
            let is_item = matches!(kind, "reasoning" | "item_reference" | "compaction")
                || kind.ends_with("_call")
                || kind.ends_with("_call_output")
                || kind.starts_with("mcp_");
            return is_item.then_some((WireFormat::Responses, true));
        }
    }
    let calls = message.pick(["tool_calls", "tool_call_id", "function_call"]);
    let (role, content) = (message.text("role"), message.get("content"));
    let is_result = matches!(role, "tool" | "function")
        && content.is_some_and(|content| content.kind() == Kind::String);
    if is_result || calls.into_iter().any(is_given) {
        return Some((WireFormat::OpenAiChat, true));
    }
    let parts = message.get("parts").filter(|parts| parts.is_array());
    if let Some(parts) = parts {
        return Some((WireFormat::Gemini, parts.items().any(is_tool)));
    }
    let of_part = |part: V| match part.text("type") {
        "input_text" | "output_text" | "input_image" | "input_file" => {
            Some((WireFormat::Responses, false))
        }
        "image_url" | "input_audio" | "file" => Some((WireFormat::OpenAiChat, false)),
        "tool_use" | "tool_result" | "server_tool_use" => Some((WireFormat::Anthropic, true)),
        "thinking" | "redacted_thinking" | "image" | "document" => {
            Some((WireFormat::Anthropic, false))
        }
        _ => None,
    };
    let mut parts = content.into_iter().flat_map(V::items).filter_map(of_part);
    let first = parts.next();
    let by_parts = parts.find(|(_, is_certain)| *is_certain).or(first);
    let is_called = role == "function" || calls.iter().any(Option::is_some);
    let is_item = kind.is_some();
    by_parts
        .or_else(|| is_called.then_some((WireFormat::OpenAiChat, false)))
        .or_else(|| is_item.then_some((WireFormat::Responses, false)))
}

/// Evaluates `$does` with the format's own type.
macro_rules! with {
    ($wire:expr, |$format:ident| $does:expr) => {
        match $wire {
            WireFormat::OpenAiChat => {
                let $format = OpenAiChat;
                $does
            }
            WireFormat::Responses => {
                let $format = Responses;
                $does
            }
            WireFormat::Anthropic => {
                let $format = Anthropic;
                $does
            }
            WireFormat::Gemini => {
                let $format = Gemini;
                $does
            }
        }
    };
}

impl WireJson for WireFormat {
    fn see<'m, V: View<'m>>(self, message: V, see: See<'_, 'm, V>) {
        with!(self, |format| format.see(message, see));
    }

    fn fill<'m, V: View<'m>>(self, result: Site<V>, parts: Vec<Part>) -> Vec<Edit<'m>> {
        with!(self, |format| format.fill(result, parts))
    }

    fn new_arguments<'m, V: View<'m>>(self, old: Option<V>, new: String) -> New<'m> {
        with!(self, |format| format.new_arguments(old, new))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_format_is_detected() {
        let text = json!({"role": "user", "content": "go"});
        for (expected, messages) in [
            (WireFormat::OpenAiChat, json!([text])),
            (
                WireFormat::OpenAiChat,
                json!([text, {"role": "assistant", "tool_calls": []}]),
            ),
            (
                WireFormat::OpenAiChat,
                json!([text, {"role": "tool", "tool_call_id": "a", "content": "x"}]),
            ),
            (
                WireFormat::Responses,
                json!([text, {"type": "reasoning", "summary": []}]),
            ),
            (
                WireFormat::Responses,
                json!([text, {"type": "function_call", "call_id": "a"}]),
            ),
            (
                WireFormat::Responses,
                json!([{"role": "user", "content": [{"type": "input_text", "text": "go"}]}]),
            ),
            (
                WireFormat::Anthropic,
                json!([text, {"role": "user", "content": [{"type": "tool_result"}]}]),
            ),
            (
                WireFormat::Anthropic,
                json!([text, {"role": "assistant", "content": [{"type": "text", "text": "x"}]}]),
            ),
            (
                WireFormat::OpenAiChat,
                json!([
                    text,
                    {"role": "assistant", "content": [{"type": "text", "text": "x"}]},
                    {"role": "assistant", "tool_calls": []},
                ]),
            ),
            (WireFormat::Gemini, json!([{"parts": [{"text": "go"}]}])),
            (
                WireFormat::OpenAiChat,
                json!([{"role": "user", "content": [{"type": "text", "text": "go"}]}]),
            ),
        ] {
            assert_eq!(WireFormat::detect(&messages), Some(expected), "{messages}");
            let field = match expected {
                WireFormat::Responses => "input",
                WireFormat::Gemini => "contents",
                _ => "messages",
            };
            let mut body = json!({"tools": [], field: messages});
            assert_eq!(WireFormat::detect(&body), Some(expected), "{body}");
            assert_eq!(
                WireFormat::messages(&mut body).map(|list| json!(list)),
                Some(messages)
            );
        }
        assert_eq!(
            WireFormat::detect(&json!({"system": "x", "messages": [text]})),
            Some(WireFormat::Anthropic)
        );
        let chat = json!([text, {"role": "assistant", "tool_calls": []}]);
        assert_eq!(
            WireFormat::detect(&json!({"system": "x", "messages": chat})),
            Some(WireFormat::OpenAiChat)
        );
        let mut body = json!({"messages": [], "input": [text]});
        assert_eq!(WireFormat::detect(&body), Some(WireFormat::Responses));
        assert_eq!(
            WireFormat::messages(&mut body).map(|list| json!(list)),
            Some(json!([text]))
        );
    }

    #[test]
    fn calls_and_results_decide_before_parts_that_formats_share() {
        let chat = [
            json!({"role": "assistant", "tool_calls": [{"id": "a"}]}),
            json!({"role": "tool", "content": "x"}),
        ];
        let first = [
            json!({"role": "assistant", "content": [{"type": "thinking", "thinking": []}]}),
            json!({"role": "user", "content": [{"type": "image", "image": "x"}]}),
            json!({"role": "user", "content": [{"type": "document", "document": {}}]}),
            json!({"role": "user", "content": [{"type": "input_file", "file_id": "x"}]}),
            json!({"role": "user", "type": "message", "content": "go"}),
            json!({"role": "user", "parts": null, "content": "go"}),
        ];
        for first in first {
            let messages = json!([first, chat[0], chat[1]]);
            let expected = Some(WireFormat::OpenAiChat);
            assert_eq!(WireFormat::detect(&messages), expected, "{messages}");
            let input = json!({"input": messages});
            assert_eq!(WireFormat::detect(&input), expected, "{input}");
        }
        let text = json!({"parts": [{"text": "go"}]});
        let image = json!({"role": "user", "content": [{"type": "image_url"}]});
        for (first, later, expected) in [
            (
                &text,
                json!({"role": "user", "content": [{"type": "text"}, {"type": "tool_result"}]}),
                WireFormat::Anthropic,
            ),
            (
                &image,
                json!({"parts": [{"functionCall": {}}]}),
                WireFormat::Gemini,
            ),
            (
                &image,
                json!({"type": "function_call_output"}),
                WireFormat::Responses,
            ),
        ] {
            assert_eq!(WireFormat::detect(&json!([first, later])), Some(expected));
        }
    }

    #[test]
    fn json_that_is_not_a_conversation_has_no_format() {
        let ours = json!([{"role": "user", "content": [{"type": "text", "value": "go"}]}]);
        let log = json!([
            {"type": "session_meta", "payload": {}}, {"type": "summary", "summary": "x"},
            {"type": "message", "id": "1", "message": {"role": "user", "content": "go"}},
        ]);
        for document in [
            json!(null),
            json!("x"),
            json!([]),
            json!([1, null]),
            json!({"input": "x"}),
            ours,
            log,
        ] {
            assert_eq!(WireFormat::detect(&document), None, "{document}");
        }
    }

    #[test]
    fn names_are_parsed() {
        for format in WireFormat::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        assert_eq!("openai".parse::<WireFormat>(), Err(UnknownWireFormat));
    }
}
