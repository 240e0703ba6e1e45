//! The changes of one request, as the reducer has looked at it.

use bytes::Bytes;
use offcut::Report;
use offcut::format::RequestBody;
use offcut::report::Outcome as Decided;
use serde::Serialize;

use super::prompt::Prompt;
use crate::gateway::holdout::Group;
use crate::gateway::outcome::{Outcome, PassReason};
use crate::gateway::whose::Whose;

/// Number of characters of a tool's name, which a client chooses.
const NAME: usize = 60;
const CUT: &str = "cut";

/// A request as the reducer has looked at it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Look {
    /// The prefix of the conversation, if it has been found.
    pub(crate) conversation: Option<String>,
    /// The group of the conversation, where some are left alone.
    pub(crate) group: Option<Group>,
    /// The body as it came.
    pub(crate) would: Prompt,
    /// The body as it goes on; `None` if that is the same.
    pub(crate) sent: Option<Prompt>,
    /// The body to send in place of the one that came, or the answer of the plug.
    pub(crate) text: Option<Bytes>,
    pub(crate) outcome: Outcome,
    /// True if the provider has taken the request in this form, so that its cache holds it.
    pub(crate) is_taken: bool,
    /// Number of calls in the conversation that read stored content.
    pub(crate) reads: u64,
    /// True if the model has only read stored content in its last message: without this server, nobody would have sent
    /// the request.
    pub(crate) is_reading: bool,
    /// The sender. `None` for a gateway that calls the plug: its conversations can't be told apart, so all calls of a
    /// tenant are one row, and all their bytes count as cached, so that too little is claimed as saved.
    pub(crate) whose: Option<Whose>,
    pub(crate) changes: Vec<Change>,
}

/// A result that has been replaced for the first time.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Change {
    /// The call of the model, counted from 1.
    pub(super) call: u64,
    /// Seconds since the start.
    pub(super) at: u64,
    tool: String,
    what: &'static str,
    why: &'static str,
    before: u64,
    after: u64,
}

/// The bytes of a body as it came and as it goes on, each with its name in metrics.
pub(crate) type BodySizes = [(&'static str, u64); 2];

impl Look {
    /// A request of `bytes` that was not read.
    pub(crate) fn unread(whose: Whose, bytes: u64) -> Self {
        Self {
            whose: Some(whose),
            would: Prompt::unread(bytes),
            ..Self::default()
        }
    }

    /// The same request, which passes unchanged for this reason.
    pub(crate) fn passed(self, reason: PassReason) -> Self {
        let outcome = Outcome::Passed(reason);
        Self { outcome, ..self }
    }

    /// Notes the model that is asked.
    pub(crate) fn name_model(&mut self, model: &str) {
        self.whose = self.whose.take().map(|whose| whose.with_model(model));
    }

    pub(crate) fn sizes(&self) -> BodySizes {
        let sent = self.sent.as_ref().unwrap_or(&self.would);
        [("before", self.would.bytes()), ("after", sent.bytes())]
    }

    /// Reads a body as it came.
    pub(crate) fn read(&mut self, body: &RequestBody) {
        let model = self.whose.as_ref().map_or("", |whose| &whose.model);
        self.would = Prompt::of(body, self.would.bytes(), model);
    }

    /// Adds what a report decides for the first time.
    pub(crate) fn add(&mut self, report: &Report) {
        for decision in &report.decisions {
            let (what, why) = match decision.outcome {
                Decided::Truncated => (CUT, "over the limit"),
                Decided::Paged => (CUT, "a page of stored content, over the limit"),
                Decided::Cleared => ("cleared", "old, above the threshold"),
                Decided::Shortened => ("cleared", "an old hint, above the threshold"),
                Decided::Replaced => ("cleared", "by code of the user"),
                Decided::Lost => ("cleared", "the store failed, and the text is gone"),
                _ => continue,
            };
            self.changes.push(Change {
                call: 0,
                at: 0,
                tool: decision.tool.chars().take(NAME).collect(),
                what,
                why,
                before: decision.bytes.before,
                after: decision.bytes.after,
            });
        }
    }

    /// Numbers of the results cut and cleared.
    pub(super) fn counts(&self) -> [u64; 2] {
        let cut = self
            .changes
            .iter()
            .filter(|change| change.what == CUT)
            .count();
        [cut, self.changes.len() - cut].map(|count| count as u64)
    }
}
