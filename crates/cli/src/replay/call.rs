//! The request of a model call.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use offcut::ToolReduction;

use super::script::Script;
use super::view::ReplacedText;

/// Texts that have to be read back, with the stored content that holds them; `None` if no hint leads to it. By the
/// newest message whose hint leads there, or else the one that held them, and the location.
pub(super) type Gone = BTreeMap<(usize, String), (Option<Arc<str>>, Vec<String>)>;

/// The request of a model call.
pub(super) struct Request<'r, 't> {
    pub(super) script: &'r Script<'t>,
    /// Index of the call, from 0.
    pub(super) call: usize,
    /// Tokens of each message.
    pub(super) tokens: &'r [u64],
    /// Number of messages in the request before, and of its leading messages that are unchanged.
    pub(super) previous: usize,
    pub(super) untouched: usize,
    /// By message of the transcript: results and calls that are not shown whole.
    pub(super) views: &'r HashMap<usize, ReplacedText>,
    /// Messages that a policy has added, which may show anything.
    pub(super) added: &'r [Rc<ReplacedText>],
    pub(super) reader: Reader<'r>,
}

/// The tool that reads back what a policy has stored.
#[derive(Clone, Copy)]
pub(super) enum Reader<'r> {
    None,
    Offcut(&'r ToolReduction),
    /// Reads whole lines of a message: that number of them, or all for 0.
    Lines(&'r HashMap<usize, usize>),
}

impl Request<'_, '_> {
    pub(super) fn total(&self) -> u64 {
        self.tokens.iter().sum()
    }
}
