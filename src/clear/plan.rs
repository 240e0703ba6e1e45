//! Which results go: a pure decision about a borrowed conversation.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use super::decisions::{call_decision, call_of, result_decision};
use super::known::{All, Known, part_bytes};
use super::ledger::{Ledger, Put, lock};
use super::lines::{Liner, Source};
use super::pays::Previews;
use super::survey::{Found, Survey};
use super::{Action, Choice, Edit, Line, Place, Plan, Request, cleared_arguments, hint_in_arguments};
use crate::config::Policy;
use crate::fingerprint::Fingerprint;
use crate::format::{Conversation, PartRef};
use crate::hint::Hint;
use crate::report::{Certainty, Change, Decision, Outcome, Reason, Report, Sum, TokenCount};
use crate::rounds::{Age, Outline, Slot};
use crate::session::Session;
use crate::store::Phase;
use crate::tokens::Text;

impl Plan {
    /// Decides, and counts on this thread what is new.
    pub(crate) fn new(
        session: &Session,
        ledger: &Arc<Mutex<Ledger>>,
        conversation: &dyn Conversation,
        request: Request<'_>,
    ) -> Self {
        let found = session.clears().then(|| survey(session, ledger, conversation, request).count(session.meter()));
        Self::of(session, ledger, conversation, request, found, 0)
    }

    /// The same, but what takes long to count is counted where that stops nobody. `freed` are the tokens that the pass has freed
    /// already.
    pub(crate) async fn counted_elsewhere(
        session: &Session,
        ledger: &Arc<Mutex<Ledger>>,
        conversation: &dyn Conversation,
        request: Request<'_>,
        freed: u64,
    ) -> Self {
        let found = match session.clears().then(|| survey(session, ledger, conversation, request)) {
            Some(survey) => Some(survey.count_elsewhere(session.meter()).await),
            None => None,
        };
        Self::of(session, ledger, conversation, request, found, freed)
    }

    fn of(
        session: &Session,
        ledger: &Arc<Mutex<Ledger>>,
        conversation: &dyn Conversation,
        request: Request<'_>,
        found: Option<Found>,
        freed: u64,
    ) -> Self {
        let mut plan = Self {
            session: session.clone(),
            ledger: Arc::clone(ledger),
            edits: Vec::new(),
            choice: Choice::all(),
            anchor: None,
            report: Report::default(),
        };
        let Some(Found { tokens, certainty, anchor, has_replaced, seen }) = found else { return plan };
        let mut ledger = lock(ledger);
        let mut planner = Planner::new(session, &ledger);
        // The rounds are read only where something is replaced again, costs are looked at, or the pass is triggered.
        let cost_aware = session.settings().cost_aware;
        let mut all =
            (has_replaced || cost_aware.is_some()).then(|| All::of(conversation, session.meter(), &ledger, &seen));
        if let Some(all) = &all {
            planner.repeat(all);
        }
        let counted = match anchor {
            Some(anchor) => anchor.usage.saturating_add(tokens).saturating_sub(ledger.saved_since(anchor)),
            None => tokens.saturating_sub(planner.report.cleared_input_tokens()),
        };
        let threshold = session.settings().max_tokens_for_clear;
        let (usage, drift) = (anchor.map(|anchor| anchor.usage), anchor.and_then(|anchor| ledger.drift(anchor)));
        planner.report.tokens = Some(TokenCount { counted, certainty, threshold, usage, drift });
        let previews = match (cost_aware, &all) {
            (Some(rule), Some(all)) => planner.previews(rule, all, conversation, request),
            _ => Previews::default(),
        };
        if counted.saturating_sub(previews.saved()) > threshold && certainty == Certainty::Counted {
            let all = all.get_or_insert_with(|| All::of(conversation, session.meter(), &ledger, &seen));
            plan.choice = Choice::new(session.settings(), counted, freed);
            planner.decide(all, plan.choice.clone());
        } else if let Some(all) = &all {
            planner.put(&previews, all);
        }
        planner.edits.extend(planner.candidates.into_iter().map(|candidate| candidate.edit));
        plan.anchor = anchor;
        plan.edits = planner.edits;
        plan.report = planner.report;
        let (settled, gains) = (planner.settled, planner.gains);
        ledger.settle(settled);
        ledger.record_gains(gains);
        drop(ledger);
        session.meter().end_pass(seen);
        plan
    }
}

fn survey<'c>(
    session: &Session,
    ledger: &Mutex<Ledger>,
    conversation: &'c dyn Conversation,
    request: Request<'c>,
) -> Survey<'c> {
    let settings = session.settings();
    // Who looks at costs has to know them, however little it is.
    let limit = settings.cost_aware.is_none().then_some(settings.max_tokens_for_clear);
    Survey::of(session.meter(), &lock(ledger), conversation, request, limit)
}

pub(super) struct Planner<'a> {
    pub(super) session: &'a Session,
    pub(super) ledger: &'a Ledger,
    /// What is decided, by place in the conversation.
    pub(super) report: Report,
    edits: Vec<Edit>,
    /// What is repeated, and not decided anew.
    pub(super) repeated: HashSet<Place>,
    pub(super) candidates: Vec<Candidate>,
    /// What will never be decided otherwise.
    settled: Vec<(Fingerprint, Reason)>,
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
    fn has_to_be_compared(&self) -> bool {
        let Action::Hints(_, lines) = &self.edit.action else { return false };
        lines.iter().any(|line| matches!(line, Line::Shorten(_)))
    }
}

impl<'a> Planner<'a> {
    fn new(session: &'a Session, ledger: &'a Ledger) -> Self {
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

    /// Repeats what was decided before, where the loop handed in the originals again. What the model has not seen stays.
    fn repeat(&mut self, all: &All<'_>) {
        for (slot, known) in all.outline.slots.iter().zip(&all.results) {
            if let Some(replacement) = known.original.replacement.clone()
                && all.outline.age(slot, 0) != Age::Unanswered
                && !slot.head.is_fixed
            {
                let place = Place::Result { message: slot.message, slot: slot.slot };
                self.push_repeat(result_decision(&all.outline, slot, known), place, known, replacement);
            }
        }
        // Ids come again, and a call with them that was just made.
        let slots = all.outline.slots.iter().filter(|slot| all.outline.age(slot, 0) != Age::Unanswered);
        let mut answered = vec![false; all.calls.len()];
        slots.filter_map(|slot| slot.call).for_each(|call| answered[call] = true);
        for (at, (call, known)) in all.outline.calls.iter().zip(&all.calls).enumerate() {
            if let Some(replacement) = known.original.replacement.clone()
                && answered[at]
                && !call.is.is_signed
                && !call.is.is_fixed
            {
                let place = Place::Arguments { message: call.message, call: call.call };
                self.push_repeat(call_decision(call, known), place, known, replacement);
            }
        }
    }

    fn push_repeat(&mut self, mut decision: Decision, place: Place, known: &Known, replacement: Arc<Put>) {
        let meter = self.session.meter();
        let (bytes, tokens) = match &*replacement {
            Put::Parts(parts) => {
                let sizes = parts.iter().map(PartRef::from).map(|part| (part_bytes(part), meter.part(part)));
                sizes.fold((0, 0), |(bytes, tokens): (u64, u64), part| (bytes + part.0, tokens.saturating_add(part.1)))
            }
            Put::Arguments(arguments) => (arguments.len() as u64, meter.text(arguments)),
        };
        decision.outcome = Outcome::Repeated;
        decision.bytes.after = bytes;
        decision.tokens = decision.tokens.map(|change| Change { after: tokens, ..change });
        let index = self.report.decisions.len();
        self.report.decisions.push(decision);
        self.repeated.insert(place);
        let original = known.original.clone();
        self.edits.push(Edit { decision: index, place, original, action: Action::Repeat(replacement) });
    }

    /// Decides about every result, oldest first, until the target is reached.
    fn decide(&mut self, all: &All<'a>, mut choice: Choice) {
        let settings = self.session.settings();
        for (at, slot) in all.outline.slots.iter().enumerate() {
            self.liner.begin(slot.head.id);
            self.decide_result(all, at);
            if settings.clear_tool_inputs {
                self.decide_arguments(all, slot);
            }
        }
        // What looks like a hint of ours is only known to be one once it has been compared. Until then this is what is expected.
        let mut is_certain = true;
        for candidate in &self.candidates {
            is_certain &= !candidate.has_to_be_compared();
            if !choice.takes(candidate.tokens) {
                candidate.edit.keep(&mut self.report, Reason::TargetReached);
            }
        }
        if choice.is_too_little() {
            for candidate in &self.candidates {
                candidate.edit.keep(&mut self.report, Reason::TooLittle);
            }
            if is_certain {
                self.candidates.clear();
            }
        }
    }

    fn decide_result(&mut self, all: &All<'a>, at: usize) {
        let (outline, slot, known) = (&all.outline, &all.outline.slots[at], &all.results[at]);
        let place = Place::Result { message: slot.message, slot: slot.slot };
        if self.repeated.contains(&place) {
            return;
        }
        let mut decision = result_decision(outline, slot, known);
        let policy = self.session.policy(&decision.tool);
        let key = known.settles_as(self.session.meter(), &decision.tool);
        let reason = self
            .reason_of_age(outline, slot)
            .or((!policy.clears).then_some(Reason::Excluded))
            .or(slot.head.is_fixed.then_some(Reason::Ambiguous))
            .or_else(|| self.ledger.settled(key))
            .or_else(|| self.reason_to_keep(slot, policy, known, key))
            .or(self.ledger.is_unverified(known.original.print).then_some(Reason::Unverified));
        if let Some(reason) = reason {
            decision.keep(reason);
            self.report.decisions.push(decision);
            return;
        }
        if let Some(handler) = policy.hooks.clear_handler.clone() {
            match self.decide_given(&*handler, all, at, &mut decision) {
                Ok(()) => return,
                Err(error) => decision.error = error.map(|error| error.to_string()),
            }
        }
        let (id, error) = self.session.id_of(Phase::Clear, slot.head.id, || call_of(outline, slot));
        decision.error = decision.error.or(error);
        let previewer = policy.previewer(&decision.tool, || call_of(outline, slot).arguments);
        let of = Source { id: &id, tool: &decision.tool, policy, previewer: &previewer };
        let parts = slot.parts.iter().zip(1..);
        let lines: Vec<Line> = parts.map(|(part, number)| self.liner.part(of, *part, number)).collect();
        let shortens = lines.iter().all(|line| matches!(line, Line::Shorten(_) | Line::Ready(..)));
        let outcome = match (policy.backend(), shortens) {
            (None, _) => Outcome::Lost,
            (Some(_), true) => Outcome::Shortened,
            (Some(_), false) => Outcome::Cleared,
        };
        self.propose(decision, outcome, place, known, lines, |text| text);
    }

    /// A call's arguments go when its result is old, whether or not the result itself is long enough to go.
    fn decide_arguments(&mut self, all: &All<'_>, slot: &Slot<'_>) {
        let (outline, Some(at)) = (&all.outline, slot.call) else { return };
        let (call, known) = (&outline.calls[at], &all.calls[at]);
        let place = Place::Arguments { message: call.message, call: call.call };
        let policy = self.session.policy(outline.tool(slot));
        let keep = self.session.settings().clear_retention_suffix_limit;
        if outline.age(slot, keep) != Age::Old || !policy.clears || self.repeated.contains(&place) {
            return;
        }
        let mut decision = call_decision(call, known);
        if let Some(reason) = self.ledger.settled(known.settles_as(self.session.meter(), &decision.tool)) {
            decision.keep(reason);
            self.report.decisions.push(decision);
            return;
        }
        let text = Text::of_arguments(call.is.arguments).read();
        let reason = match () {
            () if text.len() <= self.session.settings().clear_tool_inputs_above => Some(Reason::WithinLimit),
            () if call.is.is_signed => Some(Reason::Signed),
            () if call.is.is_fixed => Some(Reason::Ambiguous),
            () if hint_in_arguments(&text).is_some_and(|hint| self.liner.is_ours(&hint)) => Some(Reason::AlreadyHint),
            () => None,
        };
        if let Some(reason) = reason {
            decision.keep(reason);
            self.report.decisions.push(decision);
            return;
        }
        let (id, error) = self.session.id_of(Phase::Clear, slot.head.id, || call_of(outline, slot));
        decision.error = error;
        let previewer = policy.previewer(&decision.tool, || call_of(outline, slot).arguments);
        let of = Source { id: &id, tool: &decision.tool, policy, previewer: &previewer };
        let line = self.liner.arguments(of, text.into_owned().into());
        let outcome = if policy.backend().is_some() { Outcome::Cleared } else { Outcome::Lost };
        self.propose(decision, outcome, place, known, vec![line], |hint| cleared_arguments(&hint));
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
        let is_shorter = bytes.iter().all(|bytes| *bytes < decision.bytes.before);
        // No text has more tokens than bytes, so the second one need not be counted where it can't be too long.
        let fits = || meter.counts_at_most_bytes() && bytes[1] <= before || meter.text(&texts[1]) <= before;
        let after = is_shorter.then(|| meter.text(&texts[0]));
        let Some(after) = after.filter(|after| *after <= before && fits()) else {
            if bytes[1] >= decision.bytes.before {
                // The second text does not depend on which names are taken, so that is how it stays.
                self.settled.push((known.settles_as(meter, &decision.tool), Reason::NoGain));
            }
            decision.keep(Reason::NoGain);
            self.report.decisions.push(decision);
            return;
        };
        decision.outcome = outcome;
        decision.bytes.after = texts[0].len() as u64;
        let tokens = Change { before, after };
        decision.tokens = Some(tokens);
        let index = self.report.decisions.len();
        self.report.decisions.push(decision.clone());
        let original = known.original.clone();
        let edit = Edit { decision: index, place, original, action: Action::Hints(decision, lines) };
        self.candidates.push(Candidate { edit, tokens: tokens.into() });
    }

    pub(super) fn reason_of_age(&self, outline: &Outline<'_>, slot: &Slot<'_>) -> Option<Reason> {
        match outline.age(slot, self.session.settings().clear_retention_suffix_limit) {
            Age::Unanswered => Some(Reason::Unanswered),
            Age::Recent => Some(Reason::Recent),
            Age::Old => None,
        }
    }

    fn reason_to_keep(&mut self, slot: &Slot<'_>, policy: &Policy, known: &Known, key: Fingerprint) -> Option<Reason> {
        let is_hint = |part: &PartRef<'_>| {
            let PartRef::Text(text) = part else { return false };
            Hint::parse_all(text).is_some_and(|hints| hints.iter().all(|hint| self.liner.is_final(hint)))
        };
        if !slot.parts.is_empty() && slot.parts.iter().all(is_hint) {
            self.settled.push((key, Reason::AlreadyHint));
            return Some(Reason::AlreadyHint);
        }
        Self::is_short_error(slot, policy, known).then_some(Reason::ShortError)
    }

    pub(super) fn is_short_error(slot: &Slot<'_>, policy: &Policy, known: &Known) -> bool {
        slot.head.is_error && policy.keep_errors && known.bytes <= policy.preview_length.at_most() as u64
    }
}

impl Edit {
    /// It is not done.
    fn keep(&self, report: &mut Report, reason: Reason) {
        report.decisions[self.decision].keep(reason);
        if let Action::Given(_, given) = &self.action
            && let Some(arguments) = &given.arguments
        {
            report.decisions[arguments.index].keep(reason);
        }
    }
}
