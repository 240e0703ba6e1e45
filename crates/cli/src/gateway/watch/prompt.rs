//! The part of a request that its provider's cache may hold, and for how long.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock};

use offcut::format::{JsonText, RequestBody, WireFormat};
use offcut::json::{Kind, Node, View};
use regex::Regex;
use serde_json::Value;

const MARK: &str = "cache_control";
/// Fields with the model's instructions.
const INSTRUCTIONS: [&str; 4] = [
    "system",
    "instructions",
    "systemInstruction",
    "system_instruction",
];
/// Fields of a message with the model's thinking.
const THINKING: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_details"];
/// Number of lists and objects around a value from which on it counts as it is spelled.
const DEEP: usize = 64;

/// Bytes of a request's body.
///
/// A provider's cache holds what the previous request of the conversation began with: model, tools,
/// instructions and messages, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Size {
    /// Bytes that the previous request of the conversation had too.
    pub cached: u64,
    /// All other bytes.
    pub fresh: u64,
}

impl Size {
    /// The length of the body.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.cached + self.fresh
    }
}

/// A request's body, as far as it can be compared with the one before it: lengths and hashes of its
/// parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prompt {
    /// In the order in which a provider reads them; empty if the body was not read.
    parts: Arc<[PartHash]>,
    bytes: u64,
    /// True if all bytes count as cached, for nobody knows what came before.
    is_cached: bool,
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
    pub(super) at: PromptPart,
    /// A hash of what the model reads. Cache marks do not belong to that, and move from call to call; a text is the same
    /// in a block of its own, which a mark needs.
    pub(super) hash: u64,
    /// A hash without what often changes alone: dates in instructions, and thinking in the model's messages.
    pub(super) gist: u64,
    pub(super) bytes: u64,
    /// True for instructions, also in a message.
    pub(super) instructs: bool,
    /// True for a message with thinking alone.
    pub(super) is_thinking: bool,
    is_marked: bool,
    /// True if a mark asks for an hour instead of five minutes.
    lasts_an_hour: bool,
}

/// A part of a prompt, in the order in which a provider reads them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PromptPart {
    #[default]
    Request,
    Model,
    Tool(u32),
    Instructions,
    /// Options that a cache depends on. All bytes of a body that are in no other part count here.
    Options,
    Message(u32),
}

impl Prompt {
    /// A body of `bytes` as it came, for the `model` that its path names, if that does.
    pub(crate) fn of(body: &RequestBody, bytes: u64, model: &str) -> Self {
        let is_anthropic = body.format() == Some(WireFormat::Anthropic);
        let known: &[&str] = match body.format() {
            Some(WireFormat::Anthropic) => &["tool_choice", "thinking"],
            Some(WireFormat::Responses) => &["text"],
            _ => &["response_format"],
        };
        let mut prompt = Self {
            bytes,
            goes_by_marks: is_anthropic,
            lifetime: is_anthropic.then_some(5 * 60),
            ..Self::default()
        };
        let part = |at, hash| PartHash {
            at,
            hash,
            ..PartHash::default()
        };
        let mut instructions = part(PromptPart::Instructions, 0);
        instructions.instructs = true;
        let (mut model, mut options, mut is_long) = (hash(model), 0, false);
        for (name, text) in body.fields() {
            match name {
                "model" => model = hash(text),
                MARK => {
                    prompt.marks_end = true;
                    is_long |= text.contains("\"1h\"");
                }
                "prompt_cache_retention" if text == "\"24h\"" => {
                    prompt.lifetime = Some(24 * 60 * 60);
                }
                _ if INSTRUCTIONS.contains(&name) => {
                    instructions = PartHash::parsed(instructions.at, text).unwrap_or(instructions);
                }
                _ if known.contains(&name) => options = hash((options, name, text)),
                _ => {}
            }
        }
        let tools = body.tools();
        let tools = tools
            .iter()
            .flat_map(declared)
            .zip(0..)
            .filter_map(|(tool, at)| PartHash::parsed(PromptPart::Tool(at), &tool.to_string()));
        let messages = body.messages().iter().zip(0..);
        let messages = messages.map(|(text, at)| PartHash::of(PromptPart::Message(at), text));
        let mut parts = vec![part(PromptPart::Model, model)];
        parts.extend(tools.chain([instructions, part(PromptPart::Options, options)]));
        parts.extend(messages);
        let named: u64 = parts.iter().map(|part| part.bytes).sum();
        if let Some(options) = parts.iter_mut().find(|one| one.at == PromptPart::Options) {
            options.bytes = bytes.saturating_sub(named);
        }
        if is_anthropic && (is_long || parts.iter().any(|part| part.lasts_an_hour)) {
            prompt.lifetime = Some(60 * 60);
        }
        prompt.parts = parts.into();
        prompt
    }

    /// A body that is not read.
    pub(crate) fn unread(bytes: u64) -> Self {
        Self {
            bytes,
            ..Self::default()
        }
    }

    /// A body that is not read, and counts as cached.
    pub(crate) fn cached(bytes: u64) -> Self {
        Self {
            is_cached: true,
            ..Self::unread(bytes)
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn is_read(&self) -> bool {
        !self.parts.is_empty()
    }

    /// The parts from one on.
    pub(super) fn from(&self, part: PromptPart) -> &[PartHash] {
        let at = self.parts.partition_point(|one| one.at < part);
        &self.parts[at..]
    }

    /// The first part after the last mark, from which on nothing is cached; `None` if no mark is needed there.
    pub(super) fn unmarked(&self) -> Option<PromptPart> {
        if !self.goes_by_marks || self.marks_end {
            return None;
        }
        let Some(last) = self.parts.iter().rposition(|part| part.is_marked) else {
            return Some(PromptPart::Request);
        };
        let mut rest = self.parts[last + 1..].iter().map(|part| part.at);
        rest.find(|part| *part != PromptPart::Options)
    }

    /// The parts that this body and `before` begin with.
    fn same<'p>(&'p self, before: &'p Self) -> impl Iterator<Item = (&'p PartHash, &'p PartHash)> {
        let pairs = self.parts.iter().zip(&*before.parts);
        pairs.take_while(|(own, other)| (own.at, own.hash) == (other.at, other.hash))
    }

    /// The first part that is not the same in `before`, and the number of bytes in front of it, which a cache
    /// may hold. Providers read tools and instructions before the messages, wherever a body has them.
    pub(super) fn differs_from(&self, before: &Self) -> (PromptPart, u64) {
        let same = self.same(before).count();
        let at = |prompt: &Self| match (prompt.parts.get(same), prompt.parts.last()) {
            (Some(part), _) => part.at,
            (None, None) => PromptPart::Model,
            (None, Some(last)) => match last.at {
                PromptPart::Message(last) => PromptPart::Message(last + 1),
                _ => PromptPart::Message(0),
            },
        };
        let front = self.parts[..same].iter().map(|part| part.bytes);
        (at(self).min(at(before)), front.sum())
    }

    /// Number of bytes at the beginning that the provider was asked to keep when `before` was sent.
    pub(super) fn kept_of(&self, before: &Self) -> u64 {
        let same = self.same(before).count();
        let kept = match before.goes_by_marks {
            true if before.marks_end && same == before.parts.len() => same,
            true => before.parts[..same]
                .iter()
                .rposition(|part| part.is_marked)
                .map_or(0, |last| last + 1),
            false => same,
        };
        // A mark that has moved on since makes the earlier message longer.
        self.parts[..kept].iter().map(|part| part.bytes).sum()
    }

    /// Number of bytes from a part on that were sent in `before` too, wherever they stood.
    pub(super) fn sent_again(&self, part: PromptPart, before: &Self) -> u64 {
        let known: HashSet<u64> = before.parts.iter().map(|one| one.hash).collect();
        let again = self.from(part).iter();
        let again = again.filter(|one| one.at != PromptPart::Options && known.contains(&one.hash));
        again.map(|one| one.bytes).sum()
    }

    /// Number of bytes from a part on.
    pub(super) fn bytes_from(&self, part: PromptPart) -> u64 {
        let front = self.parts.iter().take_while(|one| one.at < part);
        let front: u64 = front.map(|one| one.bytes).sum();
        self.bytes.saturating_sub(front)
    }

    /// A hash of the first message that is not an instruction, which a conversation keeps.
    pub(crate) fn beginning(&self) -> Option<u64> {
        let mut messages = self.from(PromptPart::Message(0)).iter();
        Some(messages.find(|message| !message.instructs)?.hash)
    }

    /// Returns true if the cache's lifetime is known, and over after so many seconds.
    pub(super) fn has_expired(&self, seconds: u64) -> bool {
        self.lifetime.is_some_and(|lifetime| seconds > lifetime)
    }

    /// The size of this body, sent after the body `before` of the same conversation.
    pub(super) fn after(&self, before: &Self) -> Size {
        let cached = match self.is_cached {
            true => self.bytes,
            // Numbers in tools may be longer as they are spelled here.
            false => self.differs_from(before).1.min(self.bytes),
        };
        let fresh = self.bytes - cached;
        Size { cached, fresh }
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
    fn parsed(at: PromptPart, text: &str) -> Option<Self> {
        JsonText::parse(text).ok().map(|json| Self::of(at, &json))
    }

    fn of(at: PromptPart, json: &JsonText) -> Self {
        let (root, text) = (Node::root(json), json.as_str());
        let is_message = matches!(at, PromptPart::Message(_));
        let role = root.text("role");
        let mut part = Self {
            at,
            bytes: text.len() as u64,
            instructs: at == PromptPart::Instructions
                || is_message && matches!(role, "system" | "developer"),
            is_thinking: is_message && role.is_empty() && root.text("type") == "reasoning",
            ..Self::default()
        };
        let without = match role {
            _ if part.instructs => Without::Dates,
            "assistant" | "model" if is_message => Without::Thinking,
            _ => Without::Nothing,
        };
        let mut hash_of = |without| {
            let mut hasher = DefaultHasher::default();
            part.add(root, text, &mut hasher, without, 0);
            hasher.finish()
        };
        let hash = hash_of(Without::Nothing);
        let gist = match without {
            Without::Nothing => hash,
            _ => hash_of(without),
        };
        Self { hash, gist, ..part }
    }

    /// Adds a value of the `text` to a hash, and notes its marks.
    fn add(
        &mut self,
        node: Node<'_>,
        text: &str,
        hasher: &mut DefaultHasher,
        without: Without,
        depth: usize,
    ) {
        let is_block = |node: Node<'_>| node.text("type") == "text";
        let bracket = |hasher: &mut DefaultHasher, bracket, is_text: bool| {
            if !is_text {
                hasher.write_u8(bracket);
            }
        };
        let leaves_out = |is_thinking: bool| without == Without::Thinking && is_thinking;
        match node.kind() {
            Kind::Object if depth < DEEP => {
                let is_text = is_block(node);
                bracket(hasher, b'{', is_text);
                for (name, value) in node.fields() {
                    match name {
                        MARK if value.is_object() => {
                            self.is_marked = true;
                            self.lasts_an_hour |= value.text("ttl") == "1h";
                            continue;
                        }
                        _ if leaves_out(depth == 0 && THINKING.contains(&name)) => continue,
                        "type" if is_text => continue,
                        "text" if is_text => {}
                        _ => name.hash(hasher),
                    }
                    self.add(value, text, hasher, without, depth + 1);
                }
                bracket(hasher, b'}', is_text);
            }
            Kind::Array if depth < DEEP => {
                let items = node.items();
                let items: Vec<_> = items
                    .filter(|item| !leaves_out(depth == 1 && is_thought(*item)))
                    .collect();
                let is_text = matches!(items[..], [only] if is_block(only));
                bracket(hasher, b'[', is_text);
                for item in items {
                    self.add(item, text, hasher, without, depth + 1);
                }
                bracket(hasher, b']', is_text);
            }
            _ if without == Without::Dates => undated(&text[node.range()]).hash(hasher),
            _ => text[node.range()].hash(hasher),
        }
    }
}

/// The part of a text that a gist leaves out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Without {
    Nothing,
    /// Dates and numbers.
    Dates,
    /// The model's thinking.
    Thinking,
}

/// The tools in an item of `tools`: Gemini has lists of them there.
fn declared(item: &Value) -> &[Value] {
    let fields = item.as_object().filter(|fields| fields.len() == 1);
    let mut names = ["functionDeclarations", "function_declarations"].into_iter();
    let list = fields.and_then(|fields| names.find_map(|name| fields.get(name)?.as_array()));
    list.map_or(std::slice::from_ref(item), Vec::as_slice)
}

/// Returns true for a block of a message with the model's thinking.
fn is_thought(block: Node<'_>) -> bool {
    matches!(block.text("type"), "thinking" | "redacted_thinking")
        || block.get("thought").and_then(View::as_bool) == Some(true)
}

/// A text with zeros in place of dates and numbers.
fn undated(text: &str) -> Cow<'_, str> {
    static DATES: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let names = r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\b";
        Regex::new(&format!("{names}|[0-9]+")).ok()
    });
    match &*DATES {
        Some(dates) => dates.replace_all(text, "0"),
        None => text.into(),
    }
}

fn hash(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::default();
    of.hash(&mut hasher);
    hasher.finish()
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
        let ends = |count: u32| now.bytes() - now.bytes_from(PromptPart::Message(count));
        assert_eq!(now.kept_of(&prompt(&[0, 1, 2, 3], 5)), ends(4));
        assert_eq!(now.kept_of(&prompt(&[1], 5)), ends(2));
        assert_eq!(now.kept_of(&prompt(&[], 5)), 0);
    }

    fn message(json: &str) -> PartHash {
        PartHash::parsed(PromptPart::Message(0), json).unwrap()
    }

    #[test]
    fn a_text_is_the_same_in_a_block_of_its_own() {
        let of = |content: &str| message(&format!(r#"{{"role":"user","content":{content}}}"#)).hash;
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
            assert_eq!(message(marked).hash, message(plain).hash);
            assert!(message(marked).is_marked && !message(plain).is_marked);
        }
        for own in [
            r#"{"content":"{\"cache_control\": {}}"}"#,
            r#"{"cache_control": null, "name": "cache_control"}"#,
        ] {
            assert!(!message(own).is_marked);
            assert_ne!(message(own).hash, message("{}").hash);
        }
    }

    #[test]
    fn no_depth_is_too_much() {
        let deep = |inside: &str| message(&["[".repeat(90_000), "]".repeat(90_000)].join(inside));
        assert_ne!(deep("1").hash, deep("2").hash);
    }
}
