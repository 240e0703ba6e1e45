//! A transcript as a replay needs it: its messages, their tokens, and what its turns need.

use offcut::ToolReduction;
use offcut::format::{Message, Messages, Plain};

use crate::evidence::{Need, Read, ResultNames};
use crate::measure;

/// A transcript, with everything that is the same under every policy.
pub(crate) struct Script<'t> {
    pub(crate) messages: &'t [Message],
    /// Indexes of the assistant's turns, each of which is a model call.
    pub(crate) turns: Vec<usize>,
    /// Their needs.
    pub(crate) needs: Vec<Vec<Need>>,
    pub(crate) results: ResultNames<'t>,
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
        Self {
            messages,
            turns: turns.collect(),
            needs: measure::needs(read),
            results: ResultNames::of(read),
            tokens,
            ruler,
        }
    }
}
