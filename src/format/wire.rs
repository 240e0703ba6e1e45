//! The wire formats as one type, for programs that learn a file's format at run time.

use std::fmt;
use std::str::FromStr;

use crate::json::{Edit, Kind, New, View, put_into_value};
use serde_json::Value;

use super::anthropic::{self, AnthropicParts};
use super::blocks::{Blocks, is_given};
use super::gemini::{self, is_tool};
use super::openai_chat::{self, ChatParts};
use super::place::{Place, Places};
use super::responses::{self, ResponsesParts};
use super::site::{See, Site};
use super::{Format, NewPiece, Piece};
use crate::report::Subject;

/// A format of wire JSON: a [`Format`] over [`serde_json::Value`]. In all of them, unknown fields stay as
/// they are. For the order of keys, see the crate's documentation on `preserve_order`.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WireFormat {
    /// OpenAI's chat completions, and every provider that uses them: `openai-chat`.
    ///
    /// The API has no error mark for results, so none is read and none
    /// is written. The deprecated `function_call` and its `function` messages work too.
    #[default]
    OpenAiChat,
    /// Items in the `input` of OpenAI's Responses API: `openai-responses`.
    ///
    /// The outputs of function calls and of custom tool calls are slots. Calls and results of hosted
    /// tools (web and file search, code interpreter, MCP), outputs with a prescribed shape (computer,
    /// shell, patches) and items of an unknown kind are counted and never changed. The API has no error
    /// mark for outputs, so none is read and none is written.
    Responses,
    /// Messages of Anthropic's Messages API: `anthropic`.
    ///
    /// One user message may hold several results: each `tool_result` block is a slot. Error flags,
    /// cache marks and signatures stay as they are. Results of the provider's own tools
    /// (`server_tool_use` and the results after it in the assistant message) are counted and never
    /// changed.
    Anthropic,
    /// The `contents` of Gemini's API, in camel case or snake case: `gemini`.
    ///
    /// Each `functionResponse` is a slot. Its `response` must be an object. If its only field is
    /// `output`, `result`, `content` or `error`, that field's value is shown; so is the one text of a field
    /// of any other name, and the text of `output`, `result`, `content`, `stdout`, `body` or `text` beside at most
    /// 128 bytes of other fields, which stay. Otherwise the whole object is shown as JSON. A response with an
    /// `error` and no `output` is an error, and stays one. A value
    /// that is a list of only `{"type": "text", "text": …}`, as MCP servers return it, is shown as that
    /// many texts. Media are in the response's own `parts`, after the texts. Calls next to a
    /// `thoughtSignature` are signed.
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
        Self::of_messages(document, field, list.items())
    }

    /// The format of `messages`, which a document has in `field`.
    pub(super) fn of_messages<'m, V: View<'m>>(
        document: V,
        field: Option<&str>,
        messages: impl Iterator<Item = V>,
    ) -> Option<Self> {
        if field == Some("contents") {
            return Some(Self::Gemini);
        }
        let mut all_fit = true;
        let found = messages
            .map(evidence)
            .inspect(|found| all_fit &= found.is_some());
        // Of several, the first.
        let strongest = found
            .flatten()
            .reduce(|best, next| if next.1 > best.1 { next } else { best });
        let (otherwise, least) = match field {
            // Batches of chat completions have their messages in `input` too.
            Some("input") => (Self::Responses, Evidence::Call),
            // Some servers of chat completions accept these fields too.
            Some(_) if document.has("system") || document.has("anthropic_version") => {
                (Self::Anthropic, Evidence::Part)
            }
            _ => {
                let is_enough = |(_, found): &(_, _)| all_fit || *found > Evidence::UserTexts;
                return Some(strongest.filter(is_enough)?.0);
            }
        };
        let is_chat = |(format, evidence)| format == Self::OpenAiChat && evidence >= least;
        Some(if strongest.is_some_and(is_chat) {
            Self::OpenAiChat
        } else {
            otherwise
        })
    }

    /// The list of messages in a document, and the field that holds it.
    pub(super) fn list<'m, V: View<'m>>(document: V) -> Option<(Option<&'static str>, V)> {
        if document.is_array() {
            return Some((None, document));
        }
        let lists = FIELDS.into_iter().zip(document.pick(FIELDS));
        let lists = lists.filter_map(|(field, list)| Some((Some(field), list?)));
        let lists: Vec<_> = lists.filter(|(_, list)| list.is_array()).collect();
        let mut full = lists
            .iter()
            .filter(|(_, list)| list.items().next().is_some());
        full.next().or(lists.first()).copied()
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

/// Evidence for the format of a message, from the weakest on: clients and frameworks borrow each other's parts of any
/// kind but calls and results.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Evidence {
    /// A list of texts from anyone but the assistant, as other formats have it too: says nothing beside a message that
    /// fits none.
    UserTexts,
    /// A text, as chat completions have it.
    Text,
    /// A list of texts from the assistant, as Anthropic's clients write it. Other clients may too, but their other
    /// messages then tell them apart.
    Texts,
    /// A part that only one format has.
    Part,
    /// A call or a result in one format's own shape.
    Call,
}

/// The format that a message fits best, and what says so.
fn evidence<'m, V: View<'m>>(message: V) -> Option<(WireFormat, Evidence)> {
    use WireFormat::{Anthropic, Gemini, OpenAiChat, Responses};
    let [kind, role, content, parts] = message.pick(["type", "role", "content", "parts"]);
    let kind = kind.map(|kind| kind.as_str().unwrap_or_default());
    let is_string = content.is_some_and(|content| content.kind() == Kind::String);
    let speaker = role.and_then(V::as_str).unwrap_or_default();
    let blocks = || content.into_iter().flat_map(V::items);
    let is_text = |part: V| part.text("type") == "text";
    let is_whole_text = |part: V| is_text(part) && part.get("text").and_then(V::as_str).is_some();
    let is_list_of_texts = || blocks().next().is_some() && blocks().all(is_whole_text);
    let by_text = || match speaker {
        "assistant" if blocks().any(is_text) => Some((Anthropic, Evidence::Texts)),
        "user" | "system" | "developer" if is_list_of_texts() => {
            Some((OpenAiChat, Evidence::UserTexts))
        }
        _ => (role.is_some() && is_string).then_some((OpenAiChat, Evidence::Text)),
    };
    // Entries of logs also have types, and messages inside them.
    if let Some(kind) = kind.filter(|kind| *kind != "message" || role.is_none()) {
        let is_item = matches!(kind, "reasoning" | "item_reference" | "compaction")
            || kind.ends_with("_call")
            || kind.ends_with("_call_output")
            || kind.starts_with("mcp_");
        let item = is_item.then_some((Responses, Evidence::Call));
        return item.or_else(by_text);
    }
    let calls = message.pick(["tool_calls", "tool_call_id", "function_call"]);
    let is_result = matches!(speaker, "tool" | "function") && is_string;
    if is_result || calls.into_iter().any(is_given) {
        return Some((OpenAiChat, Evidence::Call));
    }
    if let Some(parts) = parts.filter(|parts| parts.is_array()) {
        let has_tool = parts.items().any(is_tool);
        let found = if has_tool {
            Evidence::Call
        } else {
            Evidence::Part
        };
        return Some((Gemini, found));
    }
    let of_block = |block: V| match block.text("type") {
        "input_text" | "output_text" | "input_image" | "input_file" => {
            Some((Responses, Evidence::Part))
        }
        "image_url" | "input_audio" | "file" => Some((OpenAiChat, Evidence::Part)),
        "tool_use" | "tool_result" | "server_tool_use" => Some((Anthropic, Evidence::Call)),
        "thinking" | "redacted_thinking" | "image" | "document" => {
            Some((Anthropic, Evidence::Part))
        }
        _ => None,
    };
    let mut by_blocks = blocks().filter_map(of_block);
    let first = by_blocks.next();
    let by_blocks = by_blocks
        .find(|(_, found)| *found == Evidence::Call)
        .or(first);
    let has_calls = speaker == "function" || calls.iter().any(Option::is_some);
    by_blocks
        .or_else(|| has_calls.then_some((OpenAiChat, Evidence::Part)))
        .or_else(|| kind.map(|_| (Responses, Evidence::Part)))
        .or_else(by_text)
}

impl WireFormat {
    /// Calls `see` with each piece of `message`, in order, and with the site of what can be replaced.
    pub(super) fn see<'m, V: View<'m>>(self, message: V, see: See<'_, 'm, V>) {
        match self {
            Self::OpenAiChat => openai_chat::see(message, see),
            Self::Responses => responses::see(message, see),
            Self::Anthropic => anthropic::see(message, see),
            Self::Gemini => gemini::see(message, see),
        }
    }

    /// The site of a result, of a call's arguments or of a user's text; `None` if it must stay as it is.
    pub(super) fn site<'m, V: View<'m>>(
        self,
        message: V,
        subject: Subject,
        index: usize,
    ) -> Option<Site<V>> {
        let (mut places, mut found) = (Places::default(), None);
        let wanted = Place {
            message: 0,
            subject,
            index,
        };
        self.see(message, &mut |piece, site| {
            let is_fixed = match piece {
                Piece::Result(head) => head.is_fixed,
                Piece::Call(call) => call.is_fixed,
                Piece::Role(_) | Piece::Content(_) => false,
            };
            if places.see(piece) == Some(wanted) && !is_fixed {
                found = site;
            }
        });
        found
    }

    /// The edits that change the `index`-th result, call or user's text; `None` if there is no such thing.
    pub(super) fn edits<'m, V: View<'m>>(
        self,
        message: V,
        index: usize,
        new: NewPiece,
    ) -> Option<Vec<Edit<'m>>> {
        let site = |subject| self.site(message, subject, index);
        Some(match new {
            NewPiece::Result(parts) => {
                let result = site(Subject::Result)?;
                match self {
                    Self::OpenAiChat => ChatParts::replace(result, parts),
                    Self::Responses => ResponsesParts::replace(result, parts),
                    Self::Anthropic => AnthropicParts::replace(result, parts),
                    Self::Gemini => gemini::replace(result, parts),
                }
            }
            NewPiece::Arguments(new) => {
                let site = site(Subject::Arguments)?;
                // Servers of OpenAI's formats take a string, but those that take an object refuse one.
                let takes_text = matches!(self, Self::OpenAiChat | Self::Responses)
                    && !site.get().is_some_and(View::is_object);
                vec![site.set(if takes_text {
                    New::Value(new.into())
                } else {
                    New::Text(new)
                })]
            }
            NewPiece::UserText(new) => {
                vec![site(Subject::UserText)?.set(New::Value(new.into()))]
            }
        })
    }
}

impl Format for WireFormat {
    type Message = Value;

    fn visit<'m>(&self, message: &'m Value, see: &mut dyn FnMut(Piece<'m>)) {
        self.see(message, &mut |piece, _| see(piece));
    }

    fn replace(&self, message: &mut Value, index: usize, new: NewPiece) {
        put_into_value(message, |message| self.edits(message, index, new));
    }

    fn has_text(&self, message: &Value, text: usize) -> bool {
        self.site(message, Subject::UserText, text).is_some()
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
        let text = json!([{"type": "text", "text": "go"}]);
        let result = json!([{"type": "tool-result", "toolCallId": "a", "output": {"value": 1}}]);
        let other = json!([{"role": "user", "content": text}, {"role": "tool", "content": result}]);
        assert_eq!(WireFormat::detect(&other), None);
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
