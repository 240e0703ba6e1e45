//! Proposes what to clear, result by result: everything old that gains anything, oldest first.

use std::cell::OnceCell;

use crate::json::{Leaving, leaving};

use super::edit::{Content, SlotEdit};
use super::handler::decide_given;
use super::planner::Planner;
use super::stub::{Line, Source};
use crate::backend::content::Id;
use crate::config::Policy;
use crate::format::PartRef;
use crate::report::{ErrorSource, Outcome, Reason, Subject};
use crate::rounds::Slot;
use crate::slots::Item;

/// The treatment of short errors, which tell the model what not to try again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ShortErrors {
    Stay,
    Go,
}

impl<'a> Planner<'a> {
    /// Decides about every result, oldest first, of a conversation of `counted` tokens.
    pub(super) fn choose(&mut self, counted: u64) {
        let slots = self.slots;
        for (at, slot) in slots.outline.slots.iter().enumerate() {
            self.stubs.begin(at, slot.head.id);
            self.choose_result(at, ShortErrors::Stay);
            if self.pass.session.settings.clear_tool_inputs {
                self.choose_arguments(slot);
            }
        }
        self.choose_texts(counted.into());
        self.choose_errors(counted);
    }

    /// If the rest does not bring the conversation below the threshold, takes the oldest short errors
    /// too, until it does.
    fn choose_errors(&mut self, counted: u64) {
        let slots = self.slots;
        let planned = self.edits.iter().filter(|edit| edit.is_pending());
        let mut left = i128::from(counted) - planned.map(SlotEdit::freed).sum::<i128>();
        let mut results = slots.results.iter().enumerate();
        // Kept errors stand in the order of the conversation, as the results do.
        for kept in 0..self.edits.len() {
            if left <= i128::from(self.pass.threshold()) {
                return;
            }
            let edit = &self.edits[kept];
            if edit.decision.outcome != Outcome::Kept(Reason::ShortError) {
                continue;
            }
            let place = edit.place;
            let Some((at, _)) = results.find(|(_, item)| item.place == place) else {
                return;
            };
            self.stubs.begin(at, slots.outline.slots[at].head.id);
            self.choose_result(at, ShortErrors::Go);
            if let Some(edit) = self.edits.pop().filter(SlotEdit::is_pending) {
                left -= edit.freed();
                self.edits[kept] = edit;
            }
        }
    }

    fn choose_result(&mut self, at: usize, errors: ShortErrors) {
        let slots = self.slots;
        let (slot, item) = (&slots.outline.slots[at], &slots.results[at]);
        if self.taken.contains(&item.place) {
            return;
        }
        let policy = self.pass.session.policy(item.tool);
        let reason = self
            .reason_of_age(slot)
            .or((!policy.clears()).then_some(Reason::Excluded))
            .or(slot.head.is_fixed.then_some(Reason::Ambiguous))
            .or_else(|| self.final_reason(&slot.parts, item, policy))
            .or_else(|| {
                let stays = errors == ShortErrors::Stay && Self::is_short_error(slot, policy, item);
                stays.then_some(Reason::ShortError)
            });
        if let Some(reason) = reason {
            self.edits.push(SlotEdit::kept(item, reason));
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
        let edit = SlotEdit::new(item, outcome, Content::Lines(lines));
        self.propose(edit, failure.or(wrong_id).or_else(|| of.failure()));
    }

    /// Decides about the long texts of users. Each gets a preview of the length that a truncated result has.
    fn choose_texts(&mut self, counted: u128) {
        let slots = self.slots;
        let policy = self.pass.session.policy("");
        if policy.backend().is_none() || !policy.clears() {
            return;
        }
        for (text, item) in slots.outline.texts.iter().zip(&slots.texts) {
            if self.taken.contains(&item.place) || !self.pass.takes_text(item, counted) {
                continue;
            }
            let part = PartRef::Text(text.text);
            let age = slots.outline.keeps_text(text, self.pass.recent_rounds());
            let stays = age
                .or(item.is_fixed.then_some(Reason::Ambiguous))
                .or_else(|| self.final_reason(&[part], item, policy));
            if let Some(stays) = stays {
                self.edits.push(SlotEdit::kept(item, stays));
                continue;
            }
            self.stubs.begin(usize::MAX, "");
            let of = Source {
                id: Id::of_call(""),
                tool: "",
                policy,
                previewer: policy.previewer("", String::new),
                length: policy.preview_length,
                subject: Subject::UserText,
                problem: OnceCell::new(),
            };
            let line = self.stubs.part(&of, part, 1);
            let content = Content::Lines(vec![line]);
            let edit = SlotEdit::new(item, Outcome::Cleared, content);
            self.propose(edit, of.failure());
        }
    }

    /// Reason why a result is never replaced.
    fn final_reason(
        &mut self,
        parts: &[PartRef<'_>],
        item: &Item<'_>,
        policy: &Policy,
    ) -> Option<Reason> {
        let known = self.known.settled.get(&item.grounds).copied();
        known.or_else(|| {
            let is_final = self.pass.session.is_final(policy, parts);
            is_final.then_some(Reason::AlreadyHint)
        })
    }

    /// Proposes a call's arguments if its result is old, even if the result itself is too short to
    /// go.
    fn choose_arguments(&mut self, slot: &Slot<'a>) {
        let slots = self.slots;
        let Some(at) = slot.call else {
            return;
        };
        let (call, item) = (&slots.outline.calls[at], &slots.calls[at]);
        let policy = self.pass.session.policy(slot.tool);
        if self.reason_of_age(slot).is_some()
            || !policy.clears()
            || self.taken.contains(&item.place)
        {
            return;
        }
        let above = self.pass.session.settings.clear_tool_inputs_above;
        let reason = self.known.settled.get(&item.grounds).copied().or_else(|| {
            let is_short = item.bytes <= above as u64;
            let reason = is_short.then_some(Reason::WithinLimit);
            let reason = reason.or(call.call.is_signed.then_some(Reason::Signed));
            reason.or(call.call.is_fixed.then_some(Reason::Ambiguous))
        });
        if let Some(reason) = reason {
            self.edits.push(SlotEdit::kept(item, reason));
            return;
        }
        let text = call.call.arguments.text();
        let is_hint = |text: &str| self.pass.session.is_short_hint(policy, text);
        let Some(Leaving { contents, frame }) = leaving(&text, above, is_hint) else {
            self.edits.push(SlotEdit::kept(item, Reason::AlreadyHint));
            return;
        };
        let (of, wrong_id) = self.source(slot, item.tool);
        let contents = contents.into_iter().zip(1..);
        let lines = contents
            .map(|(content, n)| self.stubs.argument(&of, content, n, frame.is_some()))
            .collect();
        let outcome = match policy.backend() {
            Some(_) => Outcome::Cleared,
            None => Outcome::Lost,
        };
        let mut edit = SlotEdit::new(item, outcome, Content::Lines(lines));
        edit.frame = frame;
        self.propose(edit, wrong_id);
    }
}
