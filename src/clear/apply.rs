//! Changing the messages, once all is stored.

use std::collections::HashSet;

use super::ledger::{Put, lock, print_of_call, print_of_result};
use super::{Committed, Place, Ready};
use crate::fingerprint::Fingerprint;
use crate::format::{Conversation, Piece};
use crate::report::{Certainty, Decision, Outcome, Reason, Report, Subject, saved};
use crate::tokens::{Meter, Text};

impl Committed {
    /// Changes the messages. It does no I/O and cannot fail. What no longer holds what was stored
    /// is left alone and reported as changed meanwhile.
    pub fn apply(self, conversation: &mut dyn Conversation) -> Report {
        let session = self.session.clone();
        let report = self.put(conversation);
        session.observe(&report);
        report
    }

    /// What is decided beside what is repeated.
    pub(super) fn new_decisions(&self) -> impl Iterator<Item = &Decision> {
        self.report
            .decisions
            .iter()
            .filter(|decision| decision.outcome != Outcome::Repeated)
    }

    /// The same, and nobody is shown the report.
    pub(super) fn put(self, conversation: &mut dyn Conversation) -> Report {
        let Self {
            session,
            ledger,
            ready,
            settled,
            anchor,
            mut report,
        } = self;
        let mut ledger = lock(&ledger);
        let has_changed = |ready: &&Ready| {
            fingerprint_at(session.meter(), conversation, ready.place) != Some(ready.original.print)
        };
        let changed: HashSet<usize> = ready
            .iter()
            .filter(has_changed)
            .map(|ready| ready.decision)
            .collect();
        for Ready {
            decision,
            place,
            original,
            replacement,
            is_repeat,
            with,
        } in ready
        {
            if changed.contains(&decision) || with.is_some_and(|with| changed.contains(&with)) {
                report.decisions[decision].keep(Reason::ChangedMeanwhile);
                continue;
            }
            match (place, &*replacement) {
                (Place::Result { message, slot }, Put::Parts(parts)) => {
                    conversation.replace_result(message, slot, parts.clone());
                }
                (Place::Arguments { message, call }, Put::Arguments(arguments)) => {
                    conversation.replace_arguments(message, call, arguments.clone());
                }
                _ => continue,
            }
            if !is_repeat
                && let Some(replaced) = fingerprint_at(session.meter(), conversation, place)
            {
                ledger.record(&original, replaced, replacement);
            }
        }
        ledger.settle(settled);
        let new = report
            .decisions
            .iter()
            .filter(|decision| decision.outcome != Outcome::Repeated);
        let saved = saved(new.filter_map(|decision| decision.tokens));
        if let Some(anchor) = anchor {
            ledger.record_saved(anchor, saved);
        }
        let counted = report
            .tokens
            .filter(|tokens| tokens.certainty == Certainty::Counted);
        ledger.record_sent(
            conversation.len(),
            counted.map(|tokens| tokens.counted.saturating_sub(saved)),
        );
        drop(ledger);
        report
            .decisions
            .sort_by_key(|decision| (decision.message, decision.subject == Subject::Result));
        report
    }
}

/// What stands at a place now.
fn fingerprint_at(
    meter: &Meter,
    conversation: &dyn Conversation,
    place: Place,
) -> Option<Fingerprint> {
    let (Place::Result { message, .. } | Place::Arguments { message, .. }) = place;
    if message >= conversation.len() {
        return None;
    }
    let (mut slots, mut calls) = (0, 0);
    let (mut head, mut parts, mut call_there, mut is_open) = (None, Vec::new(), None, false);
    conversation.visit(message, &mut |piece| match piece {
        Piece::Role(_) => is_open = false,
        Piece::Result(result) => {
            is_open = matches!(place, Place::Result { slot, .. } if slot == slots);
            if is_open {
                head = Some(result);
            }
            slots += 1;
        }
        Piece::Content(part) if is_open => parts.push(part),
        Piece::Content(_) => {}
        Piece::Call(call) => {
            if matches!(place, Place::Arguments { call, .. } if call == calls) {
                call_there = Some(call);
            }
            calls += 1;
        }
    });
    match place {
        Place::Result { .. } => head.map(|head| print_of_result(meter, head, &parts)),
        Place::Arguments { .. } => call_there.map(|call| {
            let arguments = meter.print(Text::of_arguments(call.arguments));
            print_of_call(meter, call, arguments)
        }),
    }
}
