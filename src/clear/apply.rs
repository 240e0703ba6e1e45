//! Changes the messages once everything is stored.

use std::fmt;

use super::edit::{Content, SlotEdit};
use super::ledger::{Anchor, Substitute};
use super::pass::Pass;
use super::print::{Place, prints_at};
use crate::decisions::fingerprint::Fingerprint;
use crate::format::Conversation;
use crate::report::{CountKind, Decision, Reason, Report, Subject, saved};

/// A pass whose content is stored and whose messages are not changed yet.
#[must_use = "a committed pass changes no message until it is applied"]
pub struct Committed {
    pub(super) pass: Pass,
    pub(super) edits: Vec<SlotEdit>,
    /// Items that were compared and are never to be replaced.
    pub(super) settled: Vec<(Fingerprint, Reason)>,
    pub(super) anchor: Option<Anchor>,
    /// The report without its decisions.
    pub(super) head: Report,
}

/// Leaves content out.
impl fmt::Debug for Committed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ready = self.edits.iter().filter(|edit| edit.is_ready());
        let decisions = self.edits.iter().flat_map(SlotEdit::parts);
        f.debug_struct("Committed")
            .field("ready", &ready.count())
            .field(
                "decisions",
                &decisions.map(|edit| &edit.decision).collect::<Vec<_>>(),
            )
            .finish_non_exhaustive()
    }
}

impl Committed {
    /// Changes the messages. Does no I/O and cannot fail. A slot that no longer holds what was
    /// stored is left alone and reported as changed.
    pub fn apply(mut self, conversation: &mut dyn Conversation) -> Report {
        self.leave_changed(conversation);
        let session = self.pass.session.clone();
        let report = self.put(conversation);
        session.observe(&report);
        report
    }

    /// Leaves edits alone whose slots no longer hold what was stored.
    fn leave_changed(&mut self, conversation: &dyn Conversation) {
        let ready = self.edits.iter().filter(|edit| edit.is_ready());
        let places = ready.flat_map(SlotEdit::parts).map(|edit| edit.place);
        let now = prints_at(self.pass.session.meter(), conversation, places);
        for edit in self.edits.iter_mut().filter(|edit| edit.is_ready()) {
            let is_there = |edit: &SlotEdit| now.get(&edit.place) == Some(&edit.origin.print);
            if !edit.parts().all(is_there) {
                edit.keep(Reason::ChangedMeanwhile);
            }
        }
    }

    /// Changes the messages, which must be as they were planned, and updates the ledger. The report
    /// is not passed to observers yet.
    pub(super) fn put(self, conversation: &mut dyn Conversation) -> Report {
        let Self {
            pass,
            edits,
            settled,
            anchor,
            head,
        } = self;
        // Moving many edits takes time, and few have arguments of their own.
        let has_arguments = edits.iter().any(|edit| edit.arguments.is_some());
        let edits = if has_arguments {
            edits.into_iter().flat_map(SlotEdit::into_parts).collect()
        } else {
            edits
        };
        for edit in &edits {
            let Content::Ready(put) = &edit.content else {
                continue;
            };
            match (edit.place, &**put) {
                (Place::Result { message, slot }, Substitute::Parts(parts)) => {
                    conversation.replace_result(message, slot, parts.clone());
                }
                (Place::Arguments { message, call }, Substitute::Arguments(arguments)) => {
                    conversation.replace_arguments(message, call, arguments.clone());
                }
                _ => {}
            }
        }
        let is_new = |edit: &&SlotEdit| edit.is_ready() && !edit.is_repeat();
        let places = edits.iter().filter(is_new).map(|edit| edit.place);
        let replaced = prints_at(pass.session.meter(), conversation, places);
        let new = edits.iter().filter(|edit| !edit.is_repeat());
        let saved = saved(new.filter_map(|edit| edit.decision.tokens));
        let counted = head
            .tokens
            .filter(|tokens| tokens.count_kind == CountKind::Counted);
        let mut ledger = pass.ledger();
        for edit in edits.iter().filter(is_new) {
            if let (Content::Ready(put), Some(print)) = (&edit.content, replaced.get(&edit.place)) {
                ledger.record(&edit.origin, *print, put.clone());
            }
        }
        ledger.record_final(settled);
        if let Some(anchor) = anchor {
            ledger.record_saved(anchor, saved);
        }
        ledger.record_sent(
            conversation.len(),
            counted.map(|tokens| tokens.counted.saturating_sub(saved)),
        );
        let mut decisions: Vec<Decision> = edits.into_iter().map(|edit| edit.decision).collect();
        decisions.sort_by_key(|decision| (decision.message, decision.subject == Subject::Result));
        let mut report = Report { decisions, ..head };
        report.notice = ledger.tell_once(report.beyond_help());
        report
    }
}
