//! A plan that is being made.

use std::cell::OnceCell;
use std::collections::HashSet;

use crate::backend::layout::Phase;

use super::edit::{Content, SlotEdit};
use super::pass::Pass;
use super::stub::{Line, Source, Stubs};
use crate::config::Policy;
use crate::report::{DecisionFailure, Reason, Subject};
use crate::rounds::Slot;
use crate::slots::{Item, Known, Place, Slots};

/// A plan that is being made: the decisions so far about the items of a conversation.
pub(super) struct Planner<'a> {
    pub(super) pass: &'a Pass,
    pub(super) known: &'a Known,
    pub(super) slots: &'a Slots<'a>,
    /// Edits so far, in the order of the conversation.
    pub(super) edits: Vec<SlotEdit>,
    /// Places that are repeated, or replaced along with their result, and so not decided again.
    pub(super) taken: HashSet<Place>,
    pub(super) stubs: Stubs<'a>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(
        pass: &'a Pass,
        known: &'a Known,
        slots: &'a Slots<'a>,
        taken: HashSet<Place>,
    ) -> Self {
        Self {
            pass,
            known,
            slots,
            edits: Vec::new(),
            taken,
            stubs: Stubs::new(&pass.session),
        }
    }

    /// The names and the previewer for a result, and the failure of a callback asked for its id.
    pub(super) fn source<'s>(
        &self,
        slot: &Slot<'_>,
        tool: &'s str,
    ) -> (Source<'s>, Option<DecisionFailure>)
    where
        'a: 's,
    {
        let call = || self.slots.call_of(slot);
        let (id, failure) = self.pass.session.id_of(Phase::Clear, slot.head.id, call);
        let policy = self.pass.session.policy(slot.tool);
        let source = Source {
            id,
            tool,
            policy,
            previewer: policy.previewer(tool, || call().arguments),
            length: policy.stub_length,
            subject: Subject::Result,
            problem: OnceCell::new(),
        };
        (source, failure)
    }

    /// Proposes to replace an item by lines, if that is expected to be a gain.
    pub(super) fn propose(&mut self, mut edit: SlotEdit, failure: Option<DecisionFailure>) {
        edit.decision.fail_first(failure);
        let Content::Lines(lines) = &edit.content else {
            return;
        };
        let expected = edit.substitute(Line::expected(lines));
        let is_gain = edit.try_resize(&self.pass.session.meter, &expected);
        // Only the store can tell whether it really is a hint of ours.
        if !is_gain && !edit.has_to_be_compared() {
            edit.keep(Reason::NoGain);
        }
        self.edits.push(edit);
    }

    pub(super) fn reason_of_age(&self, slot: &Slot<'_>) -> Option<Reason> {
        self.slots.outline.keeps(slot, self.pass.recent_rounds())
    }

    pub(super) fn is_short_error(slot: &Slot<'_>, policy: &Policy, item: &Item<'_>) -> bool {
        slot.head.is_error
            && policy.keep_errors
            && item.bytes <= policy.preview_length.at_most() as u64
    }
}
