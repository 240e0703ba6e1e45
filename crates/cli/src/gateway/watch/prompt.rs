//! The part of a request that its provider's cache may hold, and for how long.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::Hasher;
use std::sync::{Arc, LazyLock};

use memchr::memmem;
use offcut::format::{JsonText, RequestBody, WireFormat};
use regex::Regex;
use rustc_hash::FxHasher;
use serde_json::Value;

use crate::gateway::record::Size;

const MARK: &str = "\"cache_control\"";
/// Fields with the model's instructions.
const INSTRUCTIONS: [&str; 4] = [
    "system",
    "instructions",
    "systemInstruction",
    "system_instruction",
];

/// A request's body, as far as it can be compared with the one before it: lengths and hashes of its
/// parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prompt {
    /// `None` if the body was not read.
    pub(super) head: Option<Arc<Head>>,
    pub(super) messages: Arc<[PartHash]>,
    bytes: u64,
    /// The first part after the last mark, from which on nothing is cached; `None` if no mark is needed there.
    pub(super) unmarked: Option<PromptPart>,
}

/// All of a body but its messages.
#[derive(Debug, Default)]
pub(super) struct Head {
    model: u64,
    pub(super) tools: Vec<PartHash>,
    pub(super) instructions: PartHash,
    /// Options that a cache depends on.
    options: Vec<(&'static str, u64)>,
    /// True if only what stands before a mark is cached.
    goes_by_marks: bool,
    /// True if the end of the request counts as marked.
    marks_end: bool,
    /// Seconds that a cache lasts after its last use, where that is known.
    lifetime: Option<u64>,
}

/// A part of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PartHash {
    pub(super) hash: u64,
    /// A hash without what often changes alone: dates in instructions, and the model's thinking.
    pub(super) gist: u64,
    pub(super) bytes: u64,
    pub(super) kind: PartKind,
    is_marked: bool,
}

/// A part of a prompt, in the order in which a provider reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PromptPart {
    Request,
    Model,
    Tool(usize),
    Instructions,
    Options,
    Message(usize),
}

/// The kind of a message, as far as a cache is concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PartKind {
    Instructions,
    /// A message with thinking alone.
    Thinking,
    #[default]
    Other,
}

impl Head {
    /// Reads the fields of a body, which may leave the `model` to its path.
    fn of(body: &RequestBody, model: &str) -> Self {
        let mut head = Self {
            model: hash(model),
            ..Self::default()
        };
        let is_anthropic = body.format() == Some(WireFormat::Anthropic);
        let options: &[&str] = match body.format() {
            Some(WireFormat::Anthropic) => &["tool_choice", "thinking"],
            Some(WireFormat::Responses) => &["text"],
            _ => &["response_format"],
        };
        head.goes_by_marks = is_anthropic;
        head.lifetime = is_anthropic.then_some(5 * 60);
        let mut is_long = is_anthropic && body.originals().any(lasts_an_hour);
        for (name, text) in body.fields() {
            is_long |= lasts_an_hour(text);
            match name {
                "model" => head.model = hash(text),
                "cache_control" => {
                    head.marks_end = true;
                    is_long |= text.contains("\"1h\"");
                }
                "prompt_cache_retention" if text == "\"24h\"" => {
                    head.lifetime = Some(24 * 60 * 60);
                }
                _ if INSTRUCTIONS.contains(&name) => head.instructions = PartHash::undated(text),
                _ => {
                    let option = options.iter().find(|option| **option == name);
                    head.options
                        .extend(option.map(|option| (*option, hash(text))));
                }
            }
        }
        if is_anthropic && is_long {
            head.lifetime = Some(60 * 60);
        }
        let tools = body.tools();
        let tools = tools.iter().flat_map(declared);
        head.tools = tools.map(|tool| PartHash::of(&tool.to_string())).collect();
        head
    }

    /// Tools and instructions.
    fn parts(&self) -> impl Iterator<Item = &PartHash> {
        self.tools.iter().chain([&self.instructions])
    }
}

impl Prompt {
    /// A body of `bytes` as it came, for the `model` that its path names, if that does.
    pub(crate) fn of(body: &RequestBody, bytes: u64, model: &str) -> Self {
        let mut prompt = Self {
            head: Some(Arc::new(Head::of(body, model))),
            messages: body.originals().map(PartHash::message).collect(),
            bytes,
            unmarked: None,
        };
        prompt.unmarked = prompt.first_unmarked();
        prompt
    }

    fn first_unmarked(&self) -> Option<PromptPart> {
        let head = self.head.as_deref();
        head.filter(|head| head.goes_by_marks && !head.marks_end)?;
        let parts = self.parts();
        let last = parts.iter().rposition(|(_, part)| part.is_marked);
        match last {
            Some(last) => parts.get(last + 1).map(|(part, _)| *part),
            None => Some(PromptPart::Request),
        }
    }

    /// Tools, instructions and messages, with their places.
    fn parts(&self) -> Vec<(PromptPart, PartHash)> {
        let head = self.head.as_deref();
        let tools = head.map_or(&[][..], |head| &head.tools).iter().zip(0..);
        let tools = tools.map(|(tool, at)| (PromptPart::Tool(at), *tool));
        let instructions = head.map(|head| (PromptPart::Instructions, head.instructions));
        let messages = self.messages.iter().zip(0..);
        let messages = messages.map(|(message, at)| (PromptPart::Message(at), *message));
        tools.chain(instructions).chain(messages).collect()
    }

    /// Number of bytes at the beginning that the provider was asked to keep when `before` was sent.
    pub(super) fn kept_of(&self, before: &Self) -> u64 {
        let (part, front) = self.differs_from(before);
        let Some(head) = before.head.as_deref().filter(|head| head.goes_by_marks) else {
            return front;
        };
        let PromptPart::Message(same) = part else {
            return 0;
        };
        // A mark that has moved on since makes the earlier message longer.
        let messages = self.messages[..same].iter().zip(&*before.messages);
        let (mut kept, mut end) = (0, 0);
        for part in head.parts() {
            end += part.bytes;
            kept = if part.is_marked { end } else { kept };
        }
        end = front - messages.clone().map(|(own, _)| own.bytes).sum::<u64>();
        for (at, (own, message)) in messages.enumerate() {
            end += own.bytes;
            let is_end = head.marks_end && at + 1 == before.messages.len();
            kept = if message.is_marked || is_end {
                end
            } else {
                kept
            };
        }
        kept
    }

    /// Number of bytes from a part on that were sent in `before` too, wherever they stood.
    pub(super) fn sent_again(&self, part: PromptPart, before: &Self) -> u64 {
        let known: HashSet<u64> = before.parts().iter().map(|(_, one)| one.hash).collect();
        let again = self.parts();
        let again = again
            .iter()
            .filter(|(at, one)| *at >= part && known.contains(&one.hash));
        again.map(|(_, one)| one.bytes).sum()
    }

    /// Number of bytes from a part on.
    pub(super) fn bytes_from(&self, part: PromptPart) -> u64 {
        let front = self.parts();
        let front = front.iter().filter(|(at, _)| *at < part);
        let front: u64 = front.map(|(_, one)| one.bytes).sum();
        self.bytes.saturating_sub(front)
    }

    /// A hash of the first message that is not an instruction, which a conversation keeps.
    pub(crate) fn beginning(&self) -> Option<u64> {
        let mut messages = self.messages.iter();
        let first = messages.find(|message| message.kind != PartKind::Instructions)?;
        Some(first.hash)
    }

    /// The body that came as this one, with its messages as they are now, and `bytes` long.
    pub(crate) fn changed(&self, body: &RequestBody, bytes: u64) -> Self {
        let now = body.messages().iter().map(JsonText::as_str);
        let messages = now.zip(body.originals()).zip(&*self.messages);
        let messages = messages.map(|((now, original), seen)| {
            if now == original {
                *seen
            } else {
                PartHash::message(now)
            }
        });
        Self {
            messages: messages.collect(),
            bytes,
            ..self.clone()
        }
    }

    /// Returns true if the cache's lifetime is known, and over after so many seconds.
    pub(super) fn has_expired(&self, seconds: u64) -> bool {
        let lifetime = self.head.as_ref().and_then(|head| head.lifetime);
        lifetime.is_some_and(|lifetime| seconds > lifetime)
    }

    /// A body that is not read.
    pub(crate) fn unread(bytes: u64) -> Self {
        Self {
            bytes,
            ..Self::default()
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The size of this body, sent after the body `before` of the same conversation.
    pub(super) fn after(&self, before: &Self) -> Size {
        let (_, cached) = self.differs_from(before);
        // Numbers in tools may be longer as they are spelled here.
        let cached = cached.min(self.bytes);
        Size {
            cached,
            fresh: self.bytes - cached,
        }
    }

    /// The first part that is not the same in `before`, and the number of bytes in front of it, which a cache
    /// may hold. Providers read tools and instructions before the messages, wherever a body has them.
    pub(super) fn differs_from(&self, before: &Self) -> (PromptPart, u64) {
        let (Some(own), Some(other)) = (&self.head, &before.head) else {
            return (PromptPart::Model, 0);
        };
        if own.model != other.model {
            return (PromptPart::Model, 0);
        }
        let mut front = 0;
        for (at, tool) in own.tools.iter().enumerate() {
            let known = other.tools.get(at);
            if known.is_none_or(|known| known.hash != tool.hash) {
                return (PromptPart::Tool(at), front);
            }
            front += tool.bytes;
        }
        if own.tools.len() < other.tools.len() {
            return (PromptPart::Tool(own.tools.len()), front);
        }
        if own.instructions.hash != other.instructions.hash {
            return (PromptPart::Instructions, front);
        }
        front += own.instructions.bytes;
        if own.options != other.options {
            return (PromptPart::Options, front);
        }
        let messages: u64 = self.messages.iter().map(|message| message.bytes).sum();
        let pairs = self.messages.iter().zip(&*before.messages);
        let same: Vec<_> = pairs
            .take_while(|(own, other)| own.hash == other.hash)
            .collect();
        let cached: u64 = same.iter().map(|(own, _)| own.bytes).sum();
        let rest = self.bytes.saturating_sub(messages);
        (PromptPart::Message(same.len()), cached + rest)
    }
}

impl PromptPart {
    /// The name in logs: a number counts from 1.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Request => "request".to_owned(),
            Self::Model => "model".to_owned(),
            Self::Tool(at) => format!("tool {}", at + 1),
            Self::Instructions => "instructions".to_owned(),
            Self::Options => "options".to_owned(),
            Self::Message(at) => format!("message {}", at + 1),
        }
    }
}

impl PartHash {
    fn of(text: &str) -> Self {
        let hash = hash(text);
        Self {
            hash,
            gist: hash,
            bytes: text.len() as u64,
            kind: PartKind::Other,
            is_marked: has_mark(text),
        }
    }

    /// Instructions, whose gist has no dates and numbers.
    fn undated(text: &str) -> Self {
        static DATES: LazyLock<Option<Regex>> = LazyLock::new(|| {
            let names = r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\b";
            Regex::new(&format!("{names}|[0-9]+")).ok()
        });
        let seen = Self::of(text);
        let text = without_marks(text);
        let gist = DATES.as_ref().map(|dates| dates.replace_all(&text, "0"));
        Self {
            gist: gist.map_or(seen.hash, |gist| hash(&gist)),
            kind: PartKind::Instructions,
            ..seen
        }
    }

    fn message(text: &str) -> Self {
        let seen = Self::of(text);
        match first(text, "\"role\"") {
            Some("system" | "developer") => Self::undated(text),
            Some("assistant" | "model") => {
                let message = serde_json::from_str(&without_marks(text)).ok();
                let gist = message.map(|message| hash(&without_thinking(message).to_string()));
                Self {
                    gist: gist.unwrap_or(seen.hash),
                    ..seen
                }
            }
            None if first(text, "\"type\"") == Some("reasoning") => Self {
                kind: PartKind::Thinking,
                ..seen
            },
            _ => seen,
        }
    }
}

/// The tools in an item of `tools`: Gemini has lists of them there.
fn declared(item: &Value) -> &[Value] {
    let fields = item.as_object().filter(|fields| fields.len() == 1);
    let mut names = ["functionDeclarations", "function_declarations"].into_iter();
    let list = fields.and_then(|fields| names.find_map(|name| fields.get(name)?.as_array()));
    list.map_or(std::slice::from_ref(item), Vec::as_slice)
}

/// The string at the first key that is spelled so, quotes included, in the JSON of a message.
fn first<'m>(message: &'m str, key: &str) -> Option<&'m str> {
    let at = memmem::find(message.as_bytes(), key.as_bytes())?;
    let value = message[at + key.len()..].trim_start().strip_prefix(':')?;
    let (value, _) = value.trim_start().strip_prefix('"')?.split_once('"')?;
    Some(value)
}

/// The model's message without its thinking.
fn without_thinking(mut message: Value) -> Value {
    for field in ["reasoning_content", "reasoning", "reasoning_details"] {
        message
            .as_object_mut()
            .and_then(|fields| fields.remove(field));
    }
    for parts in ["content", "parts"] {
        if let Some(parts) = message.get_mut(parts).and_then(Value::as_array_mut) {
            parts.retain(|part| {
                !matches!(
                    part["type"].as_str(),
                    Some("thinking" | "redacted_thinking")
                ) && part["thought"] != true
            });
        }
    }
    message
}

fn has_mark(text: &str) -> bool {
    memmem::find(text.as_bytes(), MARK.as_bytes()).is_some()
}

/// Returns true if a mark asks for an hour instead of five minutes.
fn lasts_an_hour(text: &str) -> bool {
    let marks = memmem::find_iter(text.as_bytes(), MARK.as_bytes());
    let mut marks = marks.filter_map(|at| text[at + MARK.len()..].split_once('}'));
    marks.any(|(mark, _)| mark.contains("\"1h\""))
}

/// A hash of a part without its cache marks, which move from call to call and do not belong to what the
/// model reads. A text is the same in a block of its own, which a mark needs.
fn hash(part: &str) -> u64 {
    let mut hasher = FxHasher::default();
    let text = without_marks(part);
    match alone(&text) {
        Some(pieces) => pieces
            .iter()
            .for_each(|piece| hasher.write(piece.as_bytes())),
        None => hasher.write(text.as_bytes()),
    }
    hasher.finish()
}

/// The text that is all of a message's content, as JSON spells it, between what comes before and after it.
fn alone(message: &str) -> Option<[&str; 3]> {
    let (before, rest) = message.split_at(memmem::find(message.as_bytes(), b"\"content\"")?);
    let rest = after(after(rest, "\"content\"")?, ":")?;
    if let Some(text) = string(rest) {
        return Some([before, text, rest[text.len()..].trim_start()]);
    }
    let mut rest = after(after(rest, "[")?, "{")?;
    let mut text = None;
    for _ in 0..2 {
        rest = after(rest, ",").unwrap_or(rest);
        rest = if let Some(rest) = after(rest, "\"type\"") {
            after(after(rest, ":")?, "\"text\"")?
        } else {
            let rest = after(after(rest, "\"text\"")?, ":")?;
            text = string(rest);
            rest[text?.len()..].trim_start()
        };
    }
    Some([before, text?, after(after(rest, "}")?, "]")?])
}

/// The text after a token and the space that follows it.
fn after<'t>(text: &'t str, token: &str) -> Option<&'t str> {
    Some(text.strip_prefix(token)?.trim_start())
}

/// The string with which some JSON begins, quotes included.
fn string(json: &str) -> Option<&str> {
    let mut is_escaped = false;
    let inside = json.strip_prefix('"')?;
    let end = inside.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    Some(&json[..end? + 2])
}

/// The JSON of a message without its fields `cache_control`.
fn without_marks(message: &str) -> Cow<'_, str> {
    let (mut kept, mut rest) = (String::new(), message);
    // Inside of a string, the quotes would be escaped.
    while let Some(at) = memmem::find(rest.as_bytes(), MARK.as_bytes()) {
        let (before, after) = rest.split_at(at);
        let after = &after[MARK.len()..];
        kept.push_str(before);
        let Some(following) = after_object(after) else {
            kept.push_str(MARK);
            rest = after;
            continue;
        };
        kept.truncate(kept.trim_end().len());
        rest = following.trim_start();
        if kept.ends_with(',') {
            kept.pop();
        } else {
            rest = rest.strip_prefix(',').unwrap_or(rest);
        }
    }
    if rest.len() == message.len() {
        return message.into();
    }
    kept.push_str(rest);
    kept.into()
}

/// The text after a colon and a flat object.
fn after_object(text: &str) -> Option<&str> {
    let object = text.trim_start().strip_prefix(':')?.trim_start();
    object
        .strip_prefix('{')?
        .split_once('}')
        .map(|(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn prompt(tools: &str, messages: &[&str]) -> Prompt {
        let body = json!({"model": "m", "tools": [{"name": tools}], "messages": messages});
        let body = body.to_string();
        Prompt::of(&RequestBody::parse(&*body).unwrap(), body.len() as u64, "")
    }

    #[test]
    fn the_parts_that_both_begin_with_are_cached() {
        let fresh = |now: &Prompt, before: &Prompt| now.after(before).fresh;
        let first = prompt("t", &["one", "two"]);
        assert_eq!(fresh(&first, &Prompt::default()), first.bytes());
        assert_eq!(fresh(&first, &first), 0);
        let longer = prompt("t", &["one", "two", "three"]);
        assert_eq!(fresh(&longer, &first), "\"three\"".len() as u64);
        let changed = prompt("t", &["one", "TWO", "three"]);
        assert_eq!(fresh(&changed, &longer), "\"TWO\"\"three\"".len() as u64);
        let other = prompt("u", &["one", "two"]);
        assert_eq!(fresh(&other, &first), other.bytes());
        assert_eq!(fresh(&Prompt::unread(9), &first), 9);
        let numbers = |last: &str| {
            let numbers = "1e5,".repeat(1_000);
            let body = format!(
                r#"{{"tools":[{{"name":"t","x":[{numbers}1]}},{{"name":"{last}"}}],"input":[]}}"#
            );
            Prompt::of(&RequestBody::parse(&*body).unwrap(), body.len() as u64, "")
        };
        assert_eq!(fresh(&numbers("a"), &numbers("b")), 0, "1e5 is 100000.0");
    }

    #[test]
    fn what_stands_before_the_last_mark_is_kept() {
        let prompt = |marked: &[usize], count: usize| {
            let message = |at: usize| {
                let mut part = json!({"type": "text", "text": format!("part {at}")});
                if marked.contains(&at) {
                    part["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"});
                }
                let call =
                    json!({"type": "tool_use", "id": at.to_string(), "name": "a", "input": {}});
                json!({"role": "assistant", "content": [call, part]})
            };
            let messages: Vec<Value> = (0..count).map(message).collect();
            let body = json!({"model": "m", "max_tokens": 1, "messages": messages}).to_string();
            Prompt::of(&RequestBody::parse(&*body).unwrap(), body.len() as u64, "")
        };
        let now = prompt(&[], 6);
        let ends = |count: usize| -> u64 {
            let messages: u64 = now.messages.iter().map(|message| message.bytes).sum();
            let kept = now.messages[..count].iter().map(|message| message.bytes);
            now.bytes() - messages + kept.sum::<u64>()
        };
        assert_eq!(now.kept_of(&prompt(&[0, 1, 2, 3], 5)), ends(4));
        assert_eq!(now.kept_of(&prompt(&[1], 5)), ends(2));
        assert_eq!(now.kept_of(&prompt(&[], 5)), 0);
    }

    #[test]
    fn a_text_is_the_same_in_a_block_of_its_own() {
        let of = |content: &str| hash(&format!(r#"{{"role":"user","content":{content}}}"#));
        let text = r#""say \"a\", \\""#;
        for same in [
            format!(r#"[{{"type":"text","text":{text},"cache_control":{{"type":"ephemeral"}}}}]"#),
            format!(r#" [ {{"text": {text}, "type": "text"}} ] "#),
        ] {
            assert_eq!(of(&same), of(text), "{same}");
        }
        for other in [
            format!(r#"[{{"type":"text","text":{text}}},{{"type":"text","text":{text}}}]"#),
            format!(r#"[{{"type":"thinking","text":{text}}}]"#),
            r#""say \"a\"""#.to_owned(),
            "null".to_owned(),
            r#""#.to_owned(),
        ] {
            assert_ne!(of(&other), of(text), "{other}");
        }
    }

    #[test]
    fn marks_move_without_a_change() {
        let plain =
            r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#;
        for marked in [
            r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b","cache_control":{"type":"ephemeral"}}]}"#,
            r#"{"role":"user","content":[{"type":"text","text":"a", "cache_control": {"type": "ephemeral", "ttl": "1h"} },{"cache_control":{},"type":"text","text":"b"}]}"#,
        ] {
            assert_eq!(without_marks(marked), plain);
        }
        for own in [
            r#"{"content":"{\"cache_control\": {}}"}"#,
            r#"{"cache_control": null, "name": "cache_control"}"#,
            r#"{"cache_control""#,
        ] {
            assert_eq!(without_marks(own), own);
        }
    }
}
