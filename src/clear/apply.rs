//! Makes the edits once everything is stored.

use super::edit::{Content, SlotEdit};
use super::plan::Plan;
use crate::decisions::{Decided, Moment, WrittenReplacement};
use crate::report::Report;
use crate::slots::{Overlay, Place};

/// A pass whose content is stored and whose messages are not changed yet.
#[must_use = "a committed pass changes no message until it is applied"]
pub(crate) struct Committed<'a>(pub(super) Plan<'a>);

impl Committed<'_> {
    /// Makes the edits over the conversation that was planned. Returns the report about them, which is not passed
    /// to observers yet, and what was decided about which places.
    pub(crate) fn apply(self, overlay: &mut Overlay<'_>) -> (Report, Vec<(Place, Decided)>) {
        let Self(plan) = self;
        let final_reasons = plan.edits.iter().flat_map(SlotEdit::final_reason);
        plan.pass.memory.known().settled.extend(final_reasons);
        let edits = plan.edits.into_iter().flat_map(SlotEdit::into_parts);
        let (mut decisions, mut new) = (Vec::new(), Vec::new());
        for edit in edits {
            if let Content::Ready(put) = edit.content {
                let decided = Decided {
                    slot: edit.id,
                    moment: Moment::Pass,
                    put: WrittenReplacement::of(&put, &[]),
                    locations: edit.decision.locations.clone(),
                };
                if overlay.put(edit.place, put) {
                    new.push((edit.place, decided));
                }
            }
            decisions.push(edit.decision);
        }
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
