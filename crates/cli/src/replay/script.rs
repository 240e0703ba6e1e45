//! A transcript as a replay needs it: its messages, their tokens, and what its turns need.

use offcut::ToolReduction;
use offcut::format::{Message, Messages, Plain};
use sha2::{Digest, Sha256};

use crate::evidence::{MessageText, NamePlaces, Need, Read, names, window};
use crate::measure;

/// A transcript, with everything that is the same under every policy.
pub(crate) struct Script<'t> {
    pub(crate) messages: &'t [Message],
    /// Indexes of the assistant's turns, each of which is a model call.
    pub(crate) turns: Vec<usize>,
    /// Their needs.
    pub(crate) needs: Vec<Vec<Need>>,
    read: &'t Read<'t>,
    /// The names of each result, with their places; other messages have none.
    names: Vec<NamePlaces<'t>>,
    /// Tokens of each message.
    pub(crate) tokens: Vec<u64>,
    pub(crate) ruler: &'t Ruler,
}

/// Measures messages in tokens of `o200k_base`, whatever a policy counts with.
pub(crate) struct Ruler(ToolReduction);

impl Ruler {
    pub(crate) fn new() -> Result<Self, offcut::BuildError> {
        ToolReduction::builder()
            .skip_truncation(true)
            .token_counter(offcut::TokenCounter::O200kBase)
            .build()
            .map(Self)
    }

    /// Returns a ruler for another transcript, with its own counts, which are dropped with it.
    pub(crate) fn for_another(&self) -> Self {
        Self(self.0.session("transcript"))
    }

    pub(crate) fn tokens(&self, message: &mut Message) -> u64 {
        self.0
            .count_tokens(&Messages::new(Plain, std::slice::from_mut(message)), &[])
    }
}

impl<'t> Script<'t> {
    pub(crate) fn new(messages: &'t [Message], read: &'t Read<'t>, ruler: &'t Ruler) -> Self {
        let tokens = messages
            .iter()
            .map(|message| ruler.tokens(&mut message.clone()))
            .collect();
        let turns =
            (0..messages.len()).filter(|at| matches!(messages[*at], Message::Assistant { .. }));
        let names = |message: &'t MessageText<'t>| match message.is_result() {
            true => names(&message.text),
            false => NamePlaces::new(),
        };
        Self {
            messages,
            turns: turns.collect(),
            needs: measure::needs(read),
            read,
            names: read.messages.iter().map(names).collect(),
            tokens,
            ruler,
        }
    }

    pub(crate) fn text(&self, message: usize) -> &'t str {
        &self.read.messages[message].text
    }

    /// Returns true if `shown` holds any occurrence of `name` in the result of `message` with its
    /// surroundings on that line.
    pub(crate) fn is_window_in(&self, shown: &str, message: usize, name: &str) -> bool {
        let text = self.text(message);
        let mut places = self.names[message].get(name).into_iter().flatten();
        places.any(|at| shown.contains(window(text, *at, at + name.len())))
    }
}

/// Beginning of the ids of calls, in a provider's style, so that hints cost the same whatever ids a transcript has.
const PREFIX: &str = "call_";
/// This length gives locations of 40 bytes.
const LENGTH: usize = 21;

/// Replaces each id; equal ids stay equal.
pub(crate) fn with_ids_of_a_provider(mut messages: Vec<Message>) -> Vec<Message> {
    for message in &mut messages {
        match message {
            Message::Assistant { calls, .. } => {
                calls.iter_mut().for_each(|call| call.id = id(&call.id));
            }
            Message::Tool { call_id, .. } => *call_id = id(call_id),
            Message::System { .. } | Message::User { .. } => {}
        }
    }
    messages
}

/// Returns the replacement for an id. An empty id stays empty, since it pairs by name and order.
fn id(known: &str) -> String {
    const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    if known.is_empty() {
        return String::new();
    }
    let digest = Sha256::digest(known);
    let letters = digest
        .iter()
        .take(LENGTH)
        .map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]));
    PREFIX.chars().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_ids_stay_equal() {
        let one = id("toolu_01");
        assert_eq!(
            (one.len(), "memory:/trunc/".len() + one.len()),
            (PREFIX.len() + LENGTH, 40)
        );
        assert_eq!(one, id("toolu_01"));
        assert_ne!(one, id("toolu_02"));
        assert_eq!(id(""), "");
    }
}
