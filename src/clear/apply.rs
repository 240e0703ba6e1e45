//! Changes the messages once everything is stored.

use super::edit::{Content, SlotEdit};
use super::plan::Plan;
use crate::decisions::{Decided, Moment, WrittenReplacement};
use crate::format::Conversation;
use crate::report::{Report, Subject};
use crate::slots::{Place, Puts, Repeated, prints_at};

/// A pass whose content is stored and whose messages are not changed yet.
#[must_use = "a committed pass changes no message until it is applied"]
pub(crate) struct Committed<'a>(pub(super) Plan<'a>);

impl Committed<'_> {
    /// Changes the messages, which must be as they were planned, and remembers the replacements.
    /// `repeated` are the decisions of earlier passes, and `puts` their replacements. The report is
    /// not passed to observers yet.
    pub(super) fn apply(
        self,
        repeated: Repeated,
        puts: Puts,
        conversation: &mut dyn Conversation,
    ) -> Report {
        let memory = self.0.pass.memory;
        puts.apply(conversation);
        let (mut report, new) = self.apply_new(conversation);
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
    pub(crate) fn apply_new(
        self,
        conversation: &mut dyn Conversation,
    ) -> (Report, Vec<(Place, Decided)>) {
        let Self(plan) = self;
        let final_reasons = plan.edits.iter().flat_map(SlotEdit::final_reason);
        plan.pass.memory.known().settled.extend(final_reasons);
        let edits = plan.edits.into_iter().flat_map(SlotEdit::into_parts);
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
        let threshold = plan.pass.session.settings.max_tokens_for_clear;
        let mut known = plan.pass.memory.known();
        let mut report = Report {
            decisions,
            ..plan.head
        };
        if let Some(anchor) = plan.anchor {
            known.record_saved(anchor, report.cleared_input_tokens());
        }
        report.notice = known.tell_once(report.beyond_help(threshold));
        (report, new)
    }
}
