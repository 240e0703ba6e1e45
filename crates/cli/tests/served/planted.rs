//! Requests of growing conversations from real transcripts, some with one break of the provider's cache planted.

use std::collections::HashSet;
use std::path::PathBuf;

use offcut::format::WireFormat;
use serde_json::{Value, json};

use crate::convert::{Converter, Step, turns};

const DATE: &str = "Monday, 2 November 2026, 10:31";
const REMINDER: &str = "<system-reminder>The list of tasks has changed.</system-reminder>";
/// Bytes that a break makes the provider read again: well above those that are worth a word.
const LEAST: usize = 6_000;
const LONGEST: usize = 1_000_000;

/// Random numbers of a seed (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}

/// A kind of break, with the reason by which it must be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Model,
    ToolAdded,
    ToolRemoved,
    ToolChanged,
    ToolsReordered,
    Dated,
    Instructions,
    Options,
    Inserted,
    /// A reminder at the end of an earlier message.
    Reminder,
    Edited,
    /// The client's own clearing of all old results.
    Cleared,
    Removed,
    /// Many rounds replaced by a summary.
    Compacted,
    Thinking,
    AllThinking,
    Unmarked,
    /// Only the instructions are still marked.
    MarkMoved,
    /// The lifetime is over. Only time makes it one.
    Expired,
}

impl Kind {
    pub const ALL: [Self; 19] = [
        Self::Model,
        Self::ToolAdded,
        Self::ToolRemoved,
        Self::ToolChanged,
        Self::ToolsReordered,
        Self::Dated,
        Self::Instructions,
        Self::Options,
        Self::Inserted,
        Self::Reminder,
        Self::Edited,
        Self::Cleared,
        Self::Removed,
        Self::Compacted,
        Self::Thinking,
        Self::AllThinking,
        Self::Unmarked,
        Self::MarkMoved,
        Self::Expired,
    ];

    pub fn reason(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::ToolAdded | Self::ToolRemoved | Self::ToolChanged => "tools",
            Self::ToolsReordered => "tool-order",
            Self::Dated => "dated",
            Self::Instructions => "instructions",
            Self::Options => "options",
            Self::Inserted => "inserted",
            Self::Reminder | Self::Edited | Self::Cleared => "edited",
            Self::Removed | Self::Compacted => "removed",
            Self::Thinking | Self::AllThinking => "thinking",
            Self::Unmarked | Self::MarkMoved => "unmarked",
            Self::Expired => "expired",
        }
    }

    /// Returns true if requests of a format can have it.
    pub fn is_in(self, format: WireFormat) -> bool {
        match self {
            Self::Unmarked | Self::MarkMoved | Self::Expired => format == WireFormat::Anthropic,
            Self::Options => format != WireFormat::Gemini,
            _ => true,
        }
    }
}

/// The place of a break, as the doctor must name it.
#[derive(Clone, Debug)]
pub struct Planted {
    pub kind: Kind,
    /// The request that has it first.
    pub request: usize,
    pub place: String,
}

/// Some requests of one conversation, in a row.
pub struct Sequence {
    pub format: WireFormat,
    /// The path and the body of each.
    pub requests: Vec<(String, Value)>,
    pub planted: Option<Planted>,
}

/// A part of a prompt, in the order in which providers read them.
#[derive(PartialEq, Eq)]
pub struct Part {
    pub name: &'static str,
    pub text: String,
    pub is_marked: bool,
}

/// The parts of a request.
pub fn parts((path, body): &(String, Value)) -> Vec<Part> {
    let part = |name, value: &Value| {
        let mut value = value.clone();
        let is_marked = unmark(&mut value);
        let text = value.to_string();
        Part {
            name,
            text,
            is_marked,
        }
    };
    let mut parts = vec![part("model", &json!([path, body["model"]]))];
    let tools = match &body["tools"][0]["functionDeclarations"] {
        Value::Null => &body["tools"],
        declared => declared,
    };
    parts.extend(
        tools
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| part("tool", tool)),
    );
    let fields = ["system", "instructions", "systemInstruction"];
    let instructions = fields.map(|field| &body[field]);
    let instructions = instructions.into_iter().find(|text| !text.is_null());
    parts.push(part("instructions", instructions.unwrap_or(&Value::Null)));
    let options = ["tool_choice", "thinking", "response_format", "text"];
    parts.push(part("options", &json!(options.map(|name| &body[name]))));
    let messages = ["messages", "input", "contents"].map(|field| &body[field]);
    let messages = messages.into_iter().find_map(Value::as_array).unwrap();
    parts.extend(
        messages
            .iter()
            .map(|message| part("message", &spelled(message))),
    );
    parts
}

/// A message whose text stands in a list, as providers read it.
fn spelled(message: &Value) -> Value {
    let mut message = message.clone();
    if let Some(text) = message["content"].as_str()
        && message.get("tool_call_id").is_none()
    {
        message["content"] = json!([{"type": "text", "text": text}]);
    }
    message
}

fn unmark(value: &mut Value) -> bool {
    match value {
        Value::Array(items) => items
            .iter_mut()
            .fold(false, |marked, item| unmark(item) | marked),
        Value::Object(fields) => {
            let is_marked = fields.shift_remove("cache_control").is_some();
            fields
                .values_mut()
                .fold(is_marked, |marked, field| unmark(field) | marked)
        }
        _ => false,
    }
}

/// The first part that differs from the request before, and the bytes after it that were sent in that.
fn differs(now: &[Part], before: &[Part]) -> (String, usize) {
    let same = now
        .iter()
        .zip(before)
        .take_while(|(now, before)| now.text == before.text);
    let at = same.count();
    let known: HashSet<_> = before.iter().map(|part| &part.text).collect();
    let again = now[at..].iter().filter(|part| known.contains(&part.text));
    let bytes = again.map(|part| part.text.len()).sum();
    let names = [now, before].map(|parts| parts.get(at).map_or("end", |part| part.name));
    let is_tool = names.contains(&"tool");
    let first = now.iter().position(|part| part.name == "message").unwrap();
    let name = match names[0] {
        // The model is part 0.
        _ if is_tool => format!("tool {at}"),
        "message" => format!("message {}", at + 1 - first),
        name => name.to_owned(),
    };
    (name, bytes)
}

/// The client's marks in requests to Anthropic.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Marks {
    None,
    Instructions,
    /// On the instructions and so many last messages of the user; a text is a list of blocks only where it is marked.
    Last(usize),
    /// On the request.
    Whole,
}

/// A conversation in one format.
struct Conversation {
    format: WireFormat,
    head: Value,
    messages: Vec<Value>,
    /// The index of the message with which each round begins: the model's, with all that comes before its next.
    rounds: Vec<usize>,
    marks: Marks,
}

impl Conversation {
    fn read(file: &PathBuf, format: WireFormat, seed: u64) -> Self {
        let trace: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let mut made = Converter::new(format);
        made.messages.clear();
        made.say("user", &format!("Begin task {seed}."));
        let (mut system, mut rounds) = ("Be exact.".to_owned(), Vec::new());
        for (nth, turn) in turns(trace["messages"].as_array().unwrap())
            .into_iter()
            .enumerate()
        {
            match turn {
                Step::Say(role, text) if nth == 0 && role == "system" => system = text,
                Step::Say(role, text) => made.say(&role, &text),
                Step::Answer(call, text) => made.answer(&call, vec![text.into()]),
                Step::Ask(text, calls) => {
                    let start = made.messages.len();
                    made.ask(&text, &calls);
                    if made.messages.len() > start {
                        // A server knows a conversation by its first call.
                        if !rounds.is_empty() || !calls.is_empty() {
                            rounds.push(start);
                        }
                        think(format, &mut made.messages, start);
                    }
                }
            }
        }
        let system = format!("{system}\nToday is {DATE}. Answer in English.");
        let mut messages = made.messages;
        let mut tools = trace["tools"].as_array().cloned().unwrap_or_default();
        for name in ["ask_user", "take_note"] {
            let takes = json!({"type": "object", "properties": {"text": {"type": "string"}}});
            tools.push(json!({"type": "function", "function": {"name": name, "description": "A tool of the client.", "parameters": takes}}));
        }
        let tools = tools.iter().map(|tool| {
            let [name, says, takes] = ["name", "description", "parameters"].map(|field| &tool["function"][field]);
            match format {
                WireFormat::Anthropic => json!({"name": name, "description": says, "input_schema": takes}),
                WireFormat::Responses => json!({"type": "function", "name": name, "description": says, "parameters": takes}),
                WireFormat::Gemini => json!({"name": name, "description": says, "parameters": takes}),
                _ => tool.clone(),
            }
        });
        let tools: Vec<Value> = tools.collect();
        let head = match format {
            WireFormat::Anthropic => {
                json!({"model": "m-1", "max_tokens": 9, "system": [{"type": "text", "text": system}], "tools": tools})
            }
            WireFormat::Responses => {
                json!({"model": "m-1", "instructions": system, "tools": tools})
            }
            WireFormat::Gemini => {
                json!({"systemInstruction": {"parts": [{"text": system}]}, "tools": [{"functionDeclarations": tools}]})
            }
            _ => {
                messages.insert(0, json!({"role": "system", "content": system}));
                rounds.iter_mut().for_each(|round| *round += 1);
                json!({"model": "m-1", "tools": tools})
            }
        };
        let marks = [Marks::Last(1), Marks::Last(2), Marks::Whole][seed as usize % 3];
        Self {
            format,
            head,
            messages,
            rounds,
            marks,
        }
    }

    fn field(&self) -> &'static str {
        match self.format {
            WireFormat::Responses => "input",
            WireFormat::Gemini => "contents",
            _ => "messages",
        }
    }

    /// The request before a round.
    fn request(&self, round: usize) -> (String, Value) {
        let mut body = self.head.clone();
        body[self.field()] = self.messages[..self.rounds[round]].into();
        let path = match self.format {
            WireFormat::OpenAiChat => "/openai/v1/chat/completions",
            WireFormat::Responses => "/openai/v1/responses",
            WireFormat::Anthropic => "/anthropic/v1/messages",
            _ => "/gemini/v1beta/models/m-1:generateContent",
        };
        (path.to_owned(), body)
    }

    fn mark(&self, body: &mut Value, marks: Marks) {
        if self.format != WireFormat::Anthropic || marks == Marks::None {
            return;
        }
        let mark = json!({"type": "ephemeral"});
        body["system"][0]["cache_control"] = mark.clone();
        match marks {
            Marks::Whole => body["cache_control"] = mark,
            Marks::Last(count) => {
                let messages = body["messages"].as_array_mut().unwrap();
                let users = messages
                    .iter_mut()
                    .rev()
                    .filter(|message| message["role"] == "user");
                for message in users.take(count) {
                    *message = spelled(message);
                    let blocks = message["content"].as_array_mut().unwrap();
                    blocks.last_mut().unwrap()["cache_control"] = mark.clone();
                }
            }
            Marks::None | Marks::Instructions => {}
        }
    }

    /// Plants a break in or after a round. `pick` tells the tool that it is about.
    fn plant(&self, kind: Kind, (path, body): &mut (String, Value), round: usize, pick: usize) {
        let [first, start, end] = [1, round, round + 1].map(|round| self.rounds[round]);
        let is_chat = self.format == WireFormat::OpenAiChat;
        match kind {
            Kind::Model if self.format == WireFormat::Gemini => *path = path.replace("m-1", "m-2"),
            Kind::Model => body["model"] = json!("m-2"),
            Kind::ToolAdded | Kind::ToolRemoved | Kind::ToolChanged | Kind::ToolsReordered => {
                let tools = match self.format {
                    WireFormat::Gemini => &mut body["tools"][0]["functionDeclarations"],
                    _ => &mut body["tools"],
                };
                let tools = tools.as_array_mut().unwrap();
                let at = pick % tools.len();
                match kind {
                    Kind::ToolAdded => tools.insert(
                        at,
                        json!({"type": "function", "name": "late", "function": {"name": "late"}}),
                    ),
                    Kind::ToolRemoved => drop(tools.remove(at)),
                    Kind::ToolChanged => longest(&mut tools[at]).push_str(" Use it with care."),
                    _ => {
                        let next = (at + 1) % tools.len();
                        tools.swap(at, next);
                    }
                }
            }
            Kind::Dated | Kind::Instructions => {
                let text = match self.format {
                    WireFormat::Anthropic => &mut body["system"],
                    WireFormat::Responses => &mut body["instructions"],
                    WireFormat::Gemini => &mut body["systemInstruction"],
                    _ => &mut body["messages"][0],
                };
                let text = longest(text);
                *text = match kind {
                    Kind::Dated => text.replace(DATE, "Tuesday, 3 November 2026, 08:02"),
                    _ => text.replace("Answer in English.", "Answer in French."),
                };
            }
            Kind::Options => match self.format {
                WireFormat::Anthropic if pick.is_multiple_of(2) => {
                    body["tool_choice"] = json!({"type": "any"});
                }
                WireFormat::Anthropic => {
                    body["thinking"] = json!({"type": "enabled", "budget_tokens": 2048});
                }
                WireFormat::Responses => body["text"] = json!({"format": {"type": "json_object"}}),
                _ => body["response_format"] = json!({"type": "json_object"}),
            },
            Kind::Unmarked | Kind::MarkMoved | Kind::Expired => {}
            Kind::Inserted
            | Kind::Reminder
            | Kind::Edited
            | Kind::Cleared
            | Kind::Removed
            | Kind::Compacted
            | Kind::Thinking
            | Kind::AllThinking => {
                let messages = body[self.field()].as_array_mut().unwrap();
                let user = |text: &str| match self.format {
                    WireFormat::Gemini => json!({"role": "user", "parts": [{"text": text}]}),
                    _ => json!({"role": "user", "content": text}),
                };
                let result = |messages: &mut Vec<Value>, round: usize| {
                    let [start, end] = [round, round + 1].map(|round| self.rounds[round]);
                    // A round of the model's words alone has no result.
                    let is_model = |at: usize| {
                        let message = &messages[at];
                        message["role"] == "assistant"
                            || message["role"] == "model"
                            || message["type"] == "reasoning"
                    };
                    (start..end)
                        .max_by_key(|at| (!is_model(*at), messages[*at].to_string().len()))
                        .unwrap()
                };
                match kind {
                    Kind::Inserted => messages.insert(start, user(REMINDER)),
                    Kind::Reminder => {
                        let at = result(messages, round);
                        longest(&mut messages[at]).push_str(REMINDER);
                    }
                    Kind::Edited | Kind::Cleared => {
                        let begin = if kind == Kind::Edited { round } else { 1 };
                        for round in begin..=round {
                            let at = result(messages, round);
                            *longest(&mut messages[at]) = "[old result removed]".to_owned();
                        }
                    }
                    Kind::Removed => drop(messages.drain(start..end)),
                    Kind::Compacted => {
                        let summary = user("So far, the files were read and the tests were run.");
                        messages.splice(first..end, [summary]);
                    }
                    _ => {
                        let begin = if kind == Kind::Thinking { start } else { first };
                        for at in (begin..end).rev() {
                            let message = &mut messages[at];
                            let is_thought = |part: &Value| {
                                part["type"] == "thinking" || part["thought"] == true
                            };
                            if message["type"] == "reasoning" {
                                messages.remove(at);
                            } else if is_chat {
                                message
                                    .as_object_mut()
                                    .unwrap()
                                    .shift_remove("reasoning_content");
                            } else {
                                let parts = ["content", "parts"]
                                    .into_iter()
                                    .find(|field| message[*field].is_array());
                                let parts = parts.and_then(|field| message[field].as_array_mut());
                                parts
                                    .into_iter()
                                    .for_each(|parts| parts.retain(|part| !is_thought(part)));
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Adds the model's thinking to its message.
fn think(format: WireFormat, messages: &mut Vec<Value>, at: usize) {
    let text =
        format!("Before message {at}, I look at what came back and go on with the next step.");
    match format {
        WireFormat::Responses => messages.insert(at, json!({"type": "reasoning", "id": format!("rs_{at}"), "summary": [{"type": "summary_text", "text": text}]})),
        WireFormat::Anthropic => {
            let blocks = messages[at]["content"].as_array_mut().unwrap();
            blocks.insert(0, json!({"type": "thinking", "thinking": text, "signature": "c2ln"}));
        }
        WireFormat::Gemini => {
            let parts = messages[at]["parts"].as_array_mut().unwrap();
            parts.insert(0, json!({"text": text, "thought": true}));
        }
        _ => messages[at]["reasoning_content"] = text.into(),
    }
}

/// The longest text in some JSON.
fn longest(value: &mut Value) -> &mut String {
    fn each<'v>(value: &'v mut Value, found: &mut Vec<&'v mut String>) {
        match value {
            Value::String(text) => found.push(text),
            Value::Array(items) => items.iter_mut().for_each(|item| each(item, found)),
            Value::Object(fields) => fields.values_mut().for_each(|field| each(field, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    each(value, &mut found);
    found.into_iter().max_by_key(|text| text.len()).unwrap()
}

/// Makes some requests in a row from one of the transcripts, with a break of `kind` or with none.
pub fn sequence(files: &[PathBuf], format: WireFormat, kind: Option<Kind>, seed: u64) -> Sequence {
    let mut random = Random(seed);
    loop {
        let file = &files[random.below(files.len())];
        let one = Conversation::read(file, format, seed);
        let count = 3 + random.below(4);
        if one.rounds.len() < count + 4 {
            continue;
        }
        // A break is in or after the second round, which the request before it has too.
        let begin = 3 + random.below(one.rounds.len() - count - 3);
        let broken = 1 + random.below(count - 1);
        let round = 1 + random.below(begin + broken - 2);
        let pick = random.below(1_000);
        let mut requests: Vec<_> = (begin..begin + count)
            .map(|round| one.request(round))
            .collect();
        if requests[count - 1].1.to_string().len() > LONGEST {
            continue;
        }
        for (at, request) in requests.iter_mut().enumerate() {
            let planted = kind.filter(|_| at >= broken);
            if let Some(kind) = planted {
                one.plant(kind, request, round, pick);
            }
            let marks = match planted {
                Some(Kind::Unmarked) => Marks::None,
                Some(Kind::MarkMoved) => Marks::Instructions,
                _ => one.marks,
            };
            one.mark(&mut request.1, marks);
        }
        let Some(kind) = kind else {
            behave(&one, &mut requests, broken, pick);
            return Sequence {
                format,
                requests,
                planted: None,
            };
        };
        let [before, now] = [broken - 1, broken].map(|at| parts(&requests[at]));
        let (place, again) = differs(&now, &before);
        let place = match kind {
            Kind::Unmarked | Kind::Expired => "request".to_owned(),
            Kind::MarkMoved => "message 1".to_owned(),
            _ if again < LEAST => continue,
            _ => place,
        };
        let planted = Some(Planted {
            kind,
            request: broken,
            place,
        });
        return Sequence {
            format,
            requests,
            planted,
        };
    }
}

/// Does something that a client may do without a break.
fn behave(one: &Conversation, requests: &mut Vec<(String, Value)>, at: usize, pick: usize) {
    match pick % 5 {
        // Sent again, or taken back to an earlier message.
        0 => requests.insert(at, requests[at].clone()),
        1 => requests.insert(at + 1, requests[at - 1].clone()),
        2 => requests[at].1["temperature"] = json!(0.5),
        3 => {
            let messages = requests[at].1[one.field()].as_array_mut().unwrap();
            messages.push(match one.format {
                WireFormat::Gemini => json!({"role": "user", "parts": [{"text": REMINDER}]}),
                _ => json!({"role": "user", "content": REMINDER}),
            });
        }
        _ => {}
    }
}
