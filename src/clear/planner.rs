//! The decisions of a plan so far.

use std::collections::HashSet;

use super::known::Known;
use super::ledger::Ledger;
use super::lines::Liner;
use super::{Action, Edit, Line, Place};
use crate::config::Policy;
use crate::fingerprint::Fingerprint;
use crate::report::{Change, Decision, Outcome, Reason, Report, Sum};
use crate::rounds::{Age, Outline, Slot};
use crate::session::Session;

pub(super) struct Planner<'a> {
    pub(super) session: &'a Session,
    pub(super) ledger: &'a Ledger,
    /// What is decided, by place in the conversation.
    pub(super) report: Report,
    pub(super) edits: Vec<Edit>,
    /// What is repeated, and not decided anew.
    pub(super) repeated: HashSet<Place>,
    pub(super) candidates: Vec<Candidate>,
    /// What will never be decided otherwise.
    pub(super) settled: Vec<(Fingerprint, Reason)>,
    /// What previews gain that were never made before.
    pub(super) gains: Vec<(Fingerprint, u64)>,
    pub(super) liner: Liner<'a>,
}

/// What may go, with what that changes where its name is not taken.
pub(super) struct Candidate {
    pub(super) edit: Edit,
    pub(super) tokens: Sum,
}

impl Candidate {
    pub(super) fn has_to_be_compared(&self) -> bool {
        let Action::Hints(_, lines) = &self.edit.action else {
            return false;
        };
        lines.iter().any(|line| matches!(line, Line::Shorten(_)))
    }
}

impl<'a> Planner<'a> {
    pub(super) fn new(session: &'a Session, ledger: &'a Ledger) -> Self {
        Self {
            session,
            ledger,
            report: Report::default(),
            edits: Vec::new(),
            repeated: HashSet::new(),
            candidates: Vec::new(),
            settled: Vec::new(),
            gains: Vec::new(),
            liner: Liner::new(session),
        }
    }

    /// Makes the edit a candidate if it is a gain wherever its content ends up.
    pub(super) fn propose(
        &mut self,
        mut decision: Decision,
        outcome: Outcome,
        place: Place,
        known: &Known,
        lines: Vec<Line>,
        wrap: fn(String) -> String,
    ) {
        let meter = self.session.meter();
        let texts = [0, 1].map(|choice| wrap(Line::render_all(&lines, self.session, choice)));
        let before = decision.tokens.map_or(0, |change| change.before);
        let bytes = texts.each_ref().map(|text| text.len() as u64);
        // Most of what gains nothing is short in bytes already, and its hints need not be counted.
        // Nor need the second one be where no text has more tokens than bytes and it can't be too
        // long.
        let is_shorter = bytes.each_ref().map(|bytes| *bytes < decision.bytes.before);
        let fits = || {
            meter.counts_at_most_bytes() && bytes[1] <= before || meter.text(&texts[1]) <= before
        };
        let after = is_shorter[0]
            .then(|| meter.text(&texts[0]))
            .filter(|after| *after <= before);
        // What has to be compared becomes the one or the other. All else becomes the one, under the
        // one name or the other.
        let is_compared = lines.iter().any(|line| matches!(line, Line::Shorten(_)));
        let is_gain = match after {
            Some(_) => is_compared || is_shorter[1] && fits(),
            None => is_compared && is_shorter[1] && fits(),
        };
        if !is_gain {
            if bytes[1] >= decision.bytes.before {
                // The second text does not depend on which names are taken, so that is how it
                // stays.
                self.settled.push((
                    known.original.settles_as(meter, &decision.tool),
                    Reason::NoGain,
                ));
            }
            decision.keep(Reason::NoGain);
            self.report.decisions.push(decision);
            return;
        }
        let index = self.report.decisions.len();
        let original = known.original.clone();
        let Some(after) = after else {
            // It stays if it is what it looks like. Only what is stored can tell.
            let mut expected = decision.clone();
            expected.keep(Reason::AlreadyHint);
            self.report.decisions.push(expected);
            decision.outcome = outcome;
            let edit = Edit {
                decision: index,
                place,
                original,
                action: Action::Hints(decision, lines),
            };
            self.candidates.push(Candidate {
                edit,
                tokens: Sum::default(),
            });
            return;
        };
        decision.outcome = outcome;
        decision.bytes.after = texts[0].len() as u64;
        let tokens = Change { before, after };
        decision.tokens = Some(tokens);
        self.report.decisions.push(decision.clone());
        let edit = Edit {
            decision: index,
            place,
            original,
            action: Action::Hints(decision, lines),
        };
        self.candidates.push(Candidate {
            edit,
            tokens: tokens.into(),
        });
    }

    pub(super) fn reason_of_age(&self, outline: &Outline<'_>, slot: &Slot<'_>) -> Option<Reason> {
        match outline.age(slot, self.session.settings().clear_retention_suffix_limit) {
            Age::Unanswered => Some(Reason::Unanswered),
            Age::Recent => Some(Reason::Recent),
            Age::Old => None,
        }
    }

    pub(super) fn is_short_error(slot: &Slot<'_>, policy: &Policy, known: &Known) -> bool {
        slot.head.is_error
            && policy.keep_errors
            && known.bytes <= policy.preview_length.at_most() as u64
    }
}
