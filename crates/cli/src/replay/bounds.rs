//! Bounds on success: transcripts in which every action of the model still had in view what it repeats.

use std::collections::BTreeMap;

use offcut::format::Message;
use serde::Serialize;

use super::call::Request;
use super::view::ReplacedText;
use crate::measure::Kind;

/// Number of characters of a text that are shown.
const EXCERPT: usize = 80;

/// An edit or an action that repeats a text which was no longer in view.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Ungrounded {
    /// Index of the model call, from 0.
    pub(crate) call: usize,
    pub(crate) tool: String,
    /// The beginning of the text.
    pub(crate) text: String,
    /// True if a hint leads to it.
    pub(crate) is_readable: bool,
}

impl Request<'_, '_> {
    /// Edits and actions of the coming turn that repeat what is not in view.
    pub(super) fn ungrounded(&self) -> Vec<Ungrounded> {
        let needs = self.script.needs[self.call].iter();
        let actions = needs.filter(|need| matches!(need.kind, Kind::Edit | Kind::Action));
        let gone =
            actions.filter(|need| !self.any(&need.what, |view: &ReplacedText, _| view.holds(need)));
        gone.map(|need| Ungrounded {
            call: self.call,
            tool: self.tool_that_repeats(&need.what.text),
            text: need.what.text.chars().take(EXCERPT).collect(),
            is_readable: self.is_stored(&need.what),
        })
        .collect()
    }

    /// The tool of the coming turn that has `text` in its arguments, or its first.
    fn tool_that_repeats(&self, text: &str) -> String {
        let turn = &self.script.messages[self.script.turns[self.call]];
        let Message::Assistant { calls, .. } = turn else {
            return String::new();
        };
        let line = serde_json::Value::from(text.lines().next().unwrap_or_default()).to_string();
        let holds = |arguments: &str| arguments.contains(line.trim_matches('"'));
        let call = calls
            .iter()
            .find(|call| holds(&call.arguments))
            .or(calls.first());
        call.map_or_else(String::new, |call| call.name.clone())
    }
}

/// Bounds of one policy over all transcripts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Bounds {
    pub(crate) transcripts: usize,
    /// Transcripts that succeed if an action fails whose text is not in view.
    pub(crate) at_least: usize,
    /// Transcripts that succeed if the text is read back wherever a hint leads to it.
    pub(crate) at_most: usize,
    /// By tool: transcripts in which its action is the first whose text is not in view.
    pub(crate) first_to_fail: BTreeMap<String, usize>,
}

impl Bounds {
    /// The bounds over transcripts, of which each has its actions that repeat what was not in view.
    pub(crate) fn of<'r>(transcripts: impl Iterator<Item = &'r [Ungrounded]>) -> Self {
        let mut bounds = Self::default();
        for ungrounded in transcripts {
            bounds.transcripts += 1;
            match ungrounded.first() {
                None => bounds.at_least += 1,
                Some(first) => *bounds.first_to_fail.entry(first.tool.clone()).or_default() += 1,
            }
            bounds.at_most += usize::from(ungrounded.iter().all(|action| action.is_readable));
        }
        bounds
    }
}
