//! Changes the messages once everything is stored.

use std::fmt;

use super::edit::{Content, SlotEdit};
use super::pass::Pass;
use crate::decisions::{Decided, Moment, WrittenReplacement};
use crate::format::Conversation;
use crate::report::{CountKind, Decision, Reason, Report, Subject, saved};
use crate::slots::{Anchor, Place, Puts, Repeated, prints_at};

/// A pass whose content is stored and whose messages are not changed yet.
#[must_use = "a committed pass changes no message until it is applied"]
pub struct Committed {
    pub(super) pass: Pass,
    pub(super) repeated: (Repeated, Puts),
    pub(super) edits: Vec<SlotEdit>,
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
        let (repeated, puts) = &mut self.repeated;
        let ready = self.edits.iter().filter(|edit| edit.is_ready());
        let places = ready.flat_map(SlotEdit::parts).map(|edit| edit.place);
        let places = places.chain(repeated.places.iter().map(|(place, _)| *place));
        let now = prints_at(conversation, places);
        for edit in self.edits.iter_mut().filter(|edit| edit.is_ready()) {
            let is_there = |edit: &SlotEdit| now.get(&edit.place) == Some(&edit.grounds.print);
            if !edit.parts().all(is_there) {
                edit.keep(Reason::ChangedMeanwhile);
            }
        }
        for ((place, print), decision) in repeated.places.iter().zip(&mut repeated.decisions) {
            if now.get(place) != Some(print) {
                puts.remove(*place);
                decision.keep(Reason::ChangedMeanwhile);
            }
        }
    }

    /// Changes the messages, which must be as they were planned, and remembers the replacements. The report
    /// is not passed to observers yet.
    pub(super) fn put(mut self, conversation: &mut dyn Conversation) -> Report {
        let memory = self.pass.memory.clone();
        let (repeated, puts) = std::mem::take(&mut self.repeated);
        puts.apply(conversation);
        let (mut report, new) = self.put_new(conversation);
        let replaced = prints_at(conversation, new.iter().map(|(place, _)| *place));
        let new = new.into_iter();
        let new = new.filter_map(|(place, decided)| Some((decided, *replaced.get(&place)?)));
        memory.known().replace(new.collect());
        report.decisions.extend(repeated.decisions);
        let decisions = &mut report.decisions;
        decisions.sort_by_key(|decision| (decision.message, decision.subject == Subject::Result));
        report
    }

    /// Makes the edits. Returns the report about them, and what was decided about which places.
    pub(crate) fn put_new(
        self,
        conversation: &mut dyn Conversation,
    ) -> (Report, Vec<(Place, Decided)>) {
        let final_reasons = self.edits.iter().flat_map(SlotEdit::final_reason);
        self.pass.memory.known().settle(final_reasons);
        let edits = self.edits.into_iter().flat_map(SlotEdit::into_parts);
        let (mut decisions, mut puts, mut new) = (Vec::new(), Puts::default(), Vec::new());
        for edit in edits {
            if let Content::Ready(put) = edit.content {
                let decided = Decided {
                    slot: edit.id,
                    moment: Moment::Pass,
                    put: WrittenReplacement::of(&put, &[]),
                    locations: edit.decision.locations.clone(),
                };
                if puts.put(edit.place, put) {
                    new.push((edit.place, decided));
                }
            }
            decisions.push(edit.decision);
        }
        puts.apply(conversation);
        let saved = saved(
            decisions
                .iter()
                .filter_map(|decision: &Decision| decision.tokens),
        );
        let tokens = self.head.tokens;
        let counted = tokens.filter(|tokens| tokens.count_kind == CountKind::Counted);
        let mut known = self.pass.memory.known();
        if let Some(anchor) = self.anchor {
            known.record_saved(anchor, saved);
        }
        let sent = counted.map(|tokens| tokens.counted.saturating_sub(saved));
        known.record_sent(conversation.len(), sent);
        let mut report = Report {
            decisions,
            ..self.head
        };
        report.notice = known.tell_once(report.beyond_help());
        (report, new)
    }
}
