//! A plan that is being made.

use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use crate::backend::layout::Phase;

use super::edit::{Content, SlotEdit};
use super::items::{Item, Items};
use super::ledger::{Ledger, Substitute, bytes_of, tokens_of};
use super::print::Place;
use super::stub::{Case, Line, Source, Stubs};
use crate::config::Policy;
use crate::decisions::fingerprint::Fingerprint;
use crate::report::{DecisionFailure, Outcome, Reason};
use crate::rounds::{Age, Slot};
use crate::session::Session;

/// A plan that is being made: the decisions so far about the items of a conversation.
pub(super) struct Planner<'a> {
    pub(super) session: &'a Session,
    pub(super) ledger: &'a Ledger,
    pub(super) items: Rc<Items<'a>>,
    /// Edits so far: first the repeated ones, then in the order of the conversation.
    pub(super) edits: Vec<SlotEdit>,
    /// Places that are repeated, or replaced along with their result, and so not decided again.
    pub(super) taken: HashSet<Place>,
    /// Decisions that are final.
    pub(super) settled: Vec<(Fingerprint, Reason)>,
    pub(super) stubs: Stubs<'a>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(session: &'a Session, ledger: &'a Ledger, items: Items<'a>) -> Self {
        Self {
            session,
            ledger,
            items: Rc::new(items),
            edits: Vec::new(),
            taken: HashSet::new(),
            settled: Vec::new(),
            stubs: Stubs::new(session),
        }
    }

    /// Repeats earlier decisions if the loop passed in the originals again. Items that the model
    /// has not seen stay.
    pub(super) fn repeat(&mut self) {
        let items = Rc::clone(&self.items);
        let outline = &items.outline;
        // A new call may equal a replaced one, id included, so only answered calls are repeated.
        let mut answered = vec![false; items.calls.len()];
        for (slot, item) in outline.slots.iter().zip(&items.results) {
            if outline.age(slot, 0) == Age::Unanswered {
                continue;
            }
            if let Some(call) = slot.call {
                answered[call] = true;
            }
            if let Some(put) = item.replacement().filter(|_| !slot.head.is_fixed) {
                self.push_repeat(item, put);
            }
        }
        for ((call, item), answered) in outline.calls.iter().zip(&items.calls).zip(answered) {
            if let Some(put) = item.replacement()
                && answered
                && !call.call.is_signed
                && !call.call.is_fixed
            {
                self.push_repeat(item, put);
            }
        }
    }

    fn push_repeat(&mut self, item: &Item<'_>, put: &Arc<Substitute>) {
        let mut edit = SlotEdit::new(item, Outcome::Repeated, Content::Ready(Arc::clone(put)));
        edit.decision
            .resize(bytes_of(put), tokens_of(put, self.session.meter()));
        self.taken.insert(item.place);
        self.edits.push(edit);
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
        let items = &self.items;
        let call = || items.call_of(slot);
        let (id, failure) = self.session.id_of(Phase::Clear, slot.head.id, call);
        let policy = self.session.policy(items.outline.tool(slot));
        let source = Source {
            id,
            tool,
            policy,
            previewer: policy.previewer(tool, || call().arguments),
        };
        (source, failure)
    }

    /// Proposes to replace an item by lines, if that is a gain wherever their contents end up.
    pub(super) fn propose(&mut self, mut edit: SlotEdit, failure: Option<DecisionFailure>) {
        let meter = self.session.meter();
        if let Some(failure) = failure {
            edit.decision.fail_first(failure);
        }
        let Content::Lines(lines) = &edit.content else {
            return;
        };
        let [expected, otherwise] = Case::BOTH.map(|case| edit.put(Line::all(lines, case)));
        let before = edit.decision.tokens.map_or(0, |change| change.before);
        let [bytes, other] = [&expected, &otherwise].map(bytes_of);
        let is_shorter = |bytes: u64| bytes < edit.decision.bytes.before;
        // Most texts that gain nothing are already short in bytes, so their hints need not be
        // counted. Neither need the second text be if tokens never exceed bytes and its bytes fit.
        let otherwise_gains = || {
            let is_sure = meter.counts_at_most_bytes() && other <= before;
            is_shorter(other) && (is_sure || tokens_of(&otherwise, meter) <= before)
        };
        let after = is_shorter(bytes)
            .then(|| tokens_of(&expected, meter))
            .filter(|after| *after <= before);
        // An edit to be compared becomes one text or the other, so one gain is enough. For any
        // other edit the store decides which name is free, so both must gain.
        let is_compared = edit.has_to_be_compared();
        let is_gain = match after {
            Some(_) => is_compared || otherwise_gains(),
            None => is_compared && otherwise_gains(),
        };
        if !is_gain {
            if !is_shorter(other) {
                // The second text does not depend on which names are taken, so this is final.
                self.settled.push((edit.settles_as(meter), Reason::NoGain));
            }
            edit.keep(Reason::NoGain);
        } else if let Some(after) = after {
            edit.decision.resize(bytes, after);
        } else {
            // It stays if it really is a hint of ours, which only the store can tell.
            edit.expected_reason = Some(Reason::AlreadyHint);
        }
        self.edits.push(edit);
    }

    pub(super) fn reason_of_age(&self, slot: &Slot<'_>) -> Option<Reason> {
        let keep = self.session.settings().clear_retention_suffix_limit;
        match self.items.outline.age(slot, keep) {
            Age::Unanswered => Some(Reason::Unanswered),
            Age::Recent => Some(Reason::Recent),
            Age::Old => None,
        }
    }

    pub(super) fn is_short_error(slot: &Slot<'_>, policy: &Policy, item: &Item<'_>) -> bool {
        slot.head.is_error
            && policy.keep_errors
            && item.bytes <= policy.preview_length.at_most() as u64
    }
}
