//! Decisions as they begin: nothing is done yet.

use super::known::Known;
use crate::content::ToolCall;
use crate::report::{Change, Decision, Outcome, Reason, Subject};
use crate::rounds::{CallSite, Outline, Slot};
use crate::tokens::Text;

/// The call that a result answers, as far as the conversation has it.
pub(super) fn call_of(outline: &Outline<'_>, slot: &Slot<'_>) -> ToolCall {
    let arguments = slot
        .call
        .map(|call| Text::of_arguments(outline.calls[call].is.arguments).read());
    ToolCall::new(
        slot.head.id,
        outline.tool(slot),
        arguments.unwrap_or_default(),
    )
}

/// About a result.
pub(super) fn result_decision(outline: &Outline<'_>, slot: &Slot<'_>, known: &Known) -> Decision {
    decision(
        outline.tool(slot),
        slot.head.id,
        slot.message,
        Subject::Result,
        known,
    )
}

/// About a call's arguments.
pub(super) fn call_decision(call: &CallSite<'_>, known: &Known) -> Decision {
    decision(
        call.is.name,
        call.is.id,
        call.message,
        Subject::Arguments,
        known,
    )
}

fn decision(
    tool: &str,
    call_id: &str,
    message: usize,
    subject: Subject,
    known: &Known,
) -> Decision {
    Decision {
        tool: tool.to_owned(),
        call_id: call_id.to_owned(),
        message: Some(message),
        subject,
        outcome: Outcome::Kept(Reason::NoGain),
        bytes: Change::none(known.bytes),
        tokens: Some(Change::none(known.tokens)),
        locations: Vec::new(),
        error: None,
    }
}

impl Decision {
    /// Nothing is done.
    pub(super) fn keep(&mut self, reason: Reason) {
        self.outcome = Outcome::Kept(reason);
        self.bytes.after = self.bytes.before;
        self.tokens = self.tokens.map(|change| Change::none(change.before));
    }
}
