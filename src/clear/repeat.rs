//! What was decided before, decided again over the originals.

use std::sync::Arc;

use super::decisions::{call_decision, result_decision};
use super::known::{All, Known, part_bytes};
use super::ledger::Put;
use super::planner::Planner;
use super::{Action, Edit, Place};
use crate::format::PartRef;
use crate::report::{Change, Decision, Outcome};
use crate::rounds::Age;

impl Planner<'_> {
    /// Repeats what was decided before, where the loop handed in the originals again. What the
    /// model has not seen stays.
    pub(super) fn repeat(&mut self, all: &All<'_>) {
        for (slot, known) in all.outline.slots.iter().zip(&all.results) {
            if let Some(replacement) = known.original.replacement.clone()
                && all.outline.age(slot, 0) != Age::Unanswered
                && !slot.head.is_fixed
            {
                let place = Place::Result {
                    message: slot.message,
                    slot: slot.slot,
                };
                self.push_repeat(
                    result_decision(&all.outline, slot, known),
                    place,
                    known,
                    replacement,
                );
            }
        }
        // Ids come again, and a call with them that was just made.
        let slots = all
            .outline
            .slots
            .iter()
            .filter(|slot| all.outline.age(slot, 0) != Age::Unanswered);
        let mut answered = vec![false; all.calls.len()];
        slots
            .filter_map(|slot| slot.call)
            .for_each(|call| answered[call] = true);
        for (at, (call, known)) in all.outline.calls.iter().zip(&all.calls).enumerate() {
            if let Some(replacement) = known.original.replacement.clone()
                && answered[at]
                && !call.is.is_signed
                && !call.is.is_fixed
            {
                let place = Place::Arguments {
                    message: call.message,
                    call: call.call,
                };
                self.push_repeat(call_decision(call, known), place, known, replacement);
            }
        }
    }

    fn push_repeat(
        &mut self,
        mut decision: Decision,
        place: Place,
        known: &Known,
        replacement: Arc<Put>,
    ) {
        let meter = self.session.meter();
        let (bytes, tokens) = match &*replacement {
            Put::Parts(parts) => {
                let sizes = parts
                    .iter()
                    .map(PartRef::from)
                    .map(|part| (part_bytes(part), meter.part(part)));
                sizes.fold((0, 0), |(bytes, tokens): (u64, u64), part| {
                    (bytes + part.0, tokens.saturating_add(part.1))
                })
            }
            Put::Arguments(arguments) => (arguments.len() as u64, meter.text(arguments)),
        };
        decision.outcome = Outcome::Repeated;
        decision.bytes.after = bytes;
        decision.tokens = decision.tokens.map(|change| Change {
            after: tokens,
            ..change
        });
        let index = self.report.decisions.len();
        self.report.decisions.push(decision);
        self.repeated.insert(place);
        let original = known.original.clone();
        self.edits.push(Edit {
            decision: index,
            place,
            original,
            action: Action::Repeat(replacement),
        });
    }
}
