//! The outcome of replaying a transcript.

use offcut::format::Message;
use offcut::report::Outcome;
use serde::Serialize;

use super::figures::Figures;

/// Name of the row for doing nothing.
pub(crate) const NONE: &str = "none";

/// One transcript under each policy, doing nothing first.
#[derive(Debug)]
pub(crate) struct Replayed {
    pub(crate) name: String,
    pub(crate) messages: Vec<Message>,
    pub(crate) replays: Vec<Replay>,
}

/// Result of replaying one transcript under one policy.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    pub(crate) figures: Figures,
    /// Tokens of each model call.
    pub(crate) contexts: Vec<u64>,
    pub(crate) changes: Vec<Change>,
    pub(crate) misses: Vec<Miss>,
}

/// A message that became shorter.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Change {
    /// Index of the model call that follows, from 0.
    pub(crate) call: usize,
    pub(crate) message: usize,
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
    pub(crate) before: u64,
    pub(crate) after: u64,
}

/// Something that a turn used and that was no longer shown.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Miss {
    pub(crate) call: usize,
    pub(crate) text: String,
    pub(crate) is_quote: bool,
    /// The newest result that held it.
    pub(crate) result: usize,
    /// True if a hint leads to it.
    pub(crate) is_reachable: bool,
}
