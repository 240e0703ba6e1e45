//! Proposes what to clear, result by result: everything old that gains anything, oldest first.

use std::rc::Rc;

use super::choice::Choice;
use super::edit::Edit;
use super::handler::decide_given;
use super::items::Items;
use super::planner::Planner;
use super::stub::Line;
use crate::report::{ErrorSource, Outcome, Reason};
use crate::rounds::Slot;
use crate::tokens::Text;

impl<'a> Planner<'a> {
    /// Decides about every result, oldest first. Results beyond the target are expected to stay,
    /// but go if earlier ones free less than planned.
    pub(super) fn choose(&mut self, mut choice: Choice) {
        let items = Rc::clone(&self.items);
        for (at, slot) in items.outline.slots.iter().enumerate() {
            self.stubs.begin(slot.head.id);
            self.choose_result(&items, at);
            if self.session.settings().clear_tool_inputs {
                self.choose_arguments(&items, slot);
            }
        }
        // Only a comparison can tell whether an apparent hint is ours. Until then this is an
        // expectation.
        let mut is_certain = true;
        for edit in self.edits.iter_mut().filter(|edit| edit.is_pending()) {
            is_certain &= !edit.has_to_be_compared();
            if !choice.try_take(edit.tokens()) {
                edit.expected_reason = Some(Reason::TargetReached);
            }
        }
        if choice.is_too_little() {
            for edit in self.edits.iter_mut().filter(|edit| edit.is_pending()) {
                if is_certain {
                    edit.keep(Reason::TooLittle);
                } else {
                    edit.expected_reason = Some(Reason::TooLittle);
                }
            }
        }
    }

    fn choose_result(&mut self, items: &Items<'a>, at: usize) {
        let (slot, item) = (&items.outline.slots[at], &items.results[at]);
        if self.taken.contains(&item.place) {
            return;
        }
        let policy = self.session.policy(item.tool);
        let key = item.settles_as(self.session.meter());
        let reason = self
            .reason_of_age(slot)
            .or((!policy.clears()).then_some(Reason::Excluded))
            .or(slot.head.is_fixed.then_some(Reason::Ambiguous))
            .or_else(|| self.ledger.final_reason(key))
            .or_else(|| {
                let is_final = self.session.is_final(policy, &slot.parts);
                if is_final {
                    self.settled.push((key, Reason::AlreadyHint));
                }
                is_final.then_some(Reason::AlreadyHint)
            })
            .or(Self::is_short_error(slot, policy, item).then_some(Reason::ShortError));
        if let Some(reason) = reason {
            self.edits.push(Edit::kept(item, reason));
            return;
        }
        let mut failure = None;
        if let Some(handler) = policy.hooks.clear_handler.clone() {
            match decide_given(self, &*handler, at) {
                Ok(edit) => return self.edits.push(edit),
                Err(error) => failure = error.map(|error| ErrorSource::Handler.said(&error)),
            }
        }
        let (of, wrong_id) = self.source(slot, item.tool);
        let parts = slot.parts.iter().zip(1..);
        let lines: Vec<Line> = parts
            .map(|(part, number)| self.stubs.part(&of, *part, number))
            .collect();
        let stores = lines.iter().any(|line| matches!(line, Line::Store { .. }));
        let outcome = match policy.backend() {
            None => Outcome::Lost,
            Some(_) if stores => Outcome::Cleared,
            Some(_) => Outcome::Shortened,
        };
        self.propose(item, outcome, lines, failure.or(wrong_id));
    }

    /// Proposes a call's arguments if its result is old, even if the result itself is too short to
    /// go.
    fn choose_arguments(&mut self, items: &Items<'a>, slot: &Slot<'a>) {
        let Some(at) = slot.call else {
            return;
        };
        let (call, item) = (&items.outline.calls[at], &items.calls[at]);
        let policy = self.session.policy(items.outline.tool(slot));
        if self.reason_of_age(slot).is_some()
            || !policy.clears()
            || self.taken.contains(&item.place)
        {
            return;
        }
        let key = item.settles_as(self.session.meter());
        let text = || Text::of_arguments(call.call.arguments).read();
        let above = self.session.settings().clear_tool_inputs_above as u64;
        let reason = self.ledger.final_reason(key).or_else(|| {
            if item.bytes <= above {
                Some(Reason::WithinLimit)
            } else if call.call.is_signed {
                Some(Reason::Signed)
            } else if call.call.is_fixed {
                Some(Reason::Ambiguous)
            } else {
                let is_cleared = self.session.is_cleared(policy, &text());
                is_cleared.then_some(Reason::AlreadyHint)
            }
        });
        if let Some(reason) = reason {
            self.edits.push(Edit::kept(item, reason));
            return;
        }
        let (of, wrong_id) = self.source(slot, item.tool);
        let line = self.stubs.arguments(&of, text().into_owned().into());
        let outcome = match policy.backend() {
            Some(_) => Outcome::Cleared,
            None => Outcome::Lost,
        };
        self.propose(item, outcome, vec![line], wrong_id);
    }
}
