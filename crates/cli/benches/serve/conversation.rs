//! A chat-completions conversation, with new calls at its end.

use bytes::Bytes;
use serde_json::{Value, json};

/// A conversation of some length, told from others by its number.
pub(crate) struct Conversation {
    number: usize,
    rounds: usize,
    messages: Vec<Value>,
}

impl Conversation {
    pub(crate) fn new(number: usize) -> Self {
        let task = format!("Where are pages read? Part {number}.");
        Self {
            number,
            rounds: 0,
            messages: vec![json!({"role": "user", "content": task})],
        }
    }

    /// Adds a call with a result of about `bytes` bytes.
    pub(crate) fn go_on(&mut self, bytes: usize) {
        let (conversation, round) = (self.number, self.rounds);
        self.rounds += 1;
        let id = format!("call_{conversation}_{round}");
        let function =
            json!({"name": "grep", "arguments": format!(r#"{{"pattern":"page_{round}"}}"#)});
        let call = json!([{"id": id, "type": "function", "function": function}]);
        let line = |n: usize| {
            format!(
                "src/module_{}/part_{n}.rs:{}:    pub fn read_page_{conversation}_{round}_{n}(&self, \"from\": usize) -> Page {{\n",
                n % 17,
                n * 3
            )
        };
        let mut text: String = (0..=bytes / 60).map(line).collect();
        text.truncate(bytes);
        self.messages
            .push(json!({"role": "assistant", "content": null, "tool_calls": call}));
        self.messages
            .push(json!({"role": "tool", "tool_call_id": id, "content": text}));
    }

    /// The request for the next turn.
    pub(crate) fn body(&self) -> Bytes {
        let tools = ["grep", "Read"].map(|name| json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}));
        let body = json!({"model": "m", "stream": true, "messages": self.messages, "tools": tools});
        body.to_string().into()
    }

    /// Grows to at least `bytes` bytes by results of 1 to 15 kB, and calls `see` every ten rounds.
    pub(crate) fn grow(&mut self, bytes: usize, mut see: impl FnMut(&Self)) {
        let mut length = 0;
        while length < bytes {
            let result = [1_000, 3_000, 12_000, 15_000][self.rounds % 4];
            self.go_on(result);
            length += result + 200;
            if self.rounds.is_multiple_of(10) {
                see(self);
            }
        }
        see(self);
    }
}
