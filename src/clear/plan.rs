//! Which results go: a pure decision about a borrowed conversation.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use super::ledger::{Anchor, Fingerprint, Ledger, Origin, Replacement, lock};
use super::lines::{Liner, Source};
use super::{Action, Choice, Edit, Line, Place, Plan, Request, cleared_arguments, hint_in_arguments};
use crate::config::Policy;
use crate::format::{Arguments, Conversation, PartRef};
use crate::hint::Hint;
use crate::report::{Change, Decision, Outcome, Reason, Report, Subject, TokenCount};
use crate::rounds::{Age, CallSite, Outline, Slot};
use crate::session::Session;

impl Plan {
    pub(crate) fn new(
        session: &Session,
        ledger: &Arc<Mutex<Ledger>>,
        conversation: &dyn Conversation,
        request: Request<'_>,
    ) -> Self {
        let mut plan = Self {
            session: session.clone(),
            ledger: ledger.clone(),
            edits: Vec::new(),
            counted: 0,
            anchor: None,
            report: Report::default(),
        };
        if !session.clears() {
            return plan;
        }
        let ledger = lock(ledger);
        let mut planner = Planner::new(session, &ledger);
        // Reading the rounds is needed to repeat decisions and to anchor the count; else only once the pass is triggered.
        let needs_outline = ledger.has_replacements() || request.last_usage.is_some();
        let mut outline = needs_outline.then(|| Outline::of(conversation));
        if let Some(outline) = &outline
            && ledger.has_replacements()
        {
            planner.repeat(outline);
        }
        // The last request ended where the last assistant turn begins.
        let last_turn = outline.as_ref().and_then(|outline| outline.last_turn);
        plan.anchor = request.last_usage.zip(last_turn).map(|(usage, last_turn)| Anchor { usage, last_turn });
        let counted = match plan.anchor {
            Some(anchor) => {
                let new = anchor.last_turn..conversation.len();
                let new: u64 = new.map(|message| session.meter().message(conversation, message)).sum();
                anchor.usage.saturating_add(new).saturating_sub(ledger.saved_since(anchor))
            }
            None => {
                let repeated = planner.report.cleared_input_tokens();
                session.meter().conversation(conversation, request.tools).saturating_sub(repeated)
            }
        };
        let threshold = session.settings().max_tokens_for_clear;
        planner.report.tokens = Some(TokenCount { counted, threshold });
        if counted > threshold {
            let outline = outline.get_or_insert_with(|| Outline::of(conversation));
            planner.decide(outline, counted);
        }
        planner.edits.extend(planner.candidates.into_iter().map(|candidate| candidate.edit));
        plan.counted = counted;
        plan.edits = planner.edits;
        plan.report = planner.report;
        drop(ledger);
        plan
    }
}

struct Planner<'a> {
    session: &'a Session,
    ledger: &'a Ledger,
    /// What is decided, by place in the conversation.
    report: Report,
    edits: Vec<Edit>,
    /// What is repeated, and not decided anew.
    repeated: HashSet<Place>,
    candidates: Vec<Candidate>,
    liner: Liner<'a>,
}

/// What each result and each call of a conversation is.
struct Origins {
    results: Vec<Origin>,
    calls: Vec<Origin>,
}

/// What may go, with what that gains at least.
struct Candidate {
    edit: Edit,
    gain: u64,
}

impl Candidate {
    fn has_to_be_compared(&self) -> bool {
        let Action::Hints(_, lines) = &self.edit.action else { return false };
        lines.iter().any(|line| matches!(line, Line::Shorten(_)))
    }
}

impl<'a> Planner<'a> {
    fn new(session: &'a Session, ledger: &'a Ledger) -> Self {
        let (report, edits, candidates) = (Report::default(), Vec::new(), Vec::new());
        Self { session, ledger, report, edits, repeated: HashSet::new(), candidates, liner: Liner::new(session) }
    }

    /// What each result and each call is, for the ledger.
    fn origins(&self, outline: &Outline<'_>) -> Origins {
        let mut walk = self.ledger.walk();
        let results =
            outline.slots.iter().map(|slot| walk.next(Fingerprint::of_result(slot.head, &slot.parts))).collect();
        let calls = outline.calls.iter().map(|call| walk.next(Fingerprint::of_call(call.is))).collect();
        Origins { results, calls }
    }

    /// Repeats what was decided before, where the loop handed in the originals again. What the model has not seen stays.
    fn repeat(&mut self, outline: &Outline<'_>) {
        let origins = self.origins(outline);
        for (slot, original) in outline.slots.iter().zip(origins.results) {
            if let Some(replacement) = original.replacement.clone()
                && outline.age(slot, 0) != Age::Unanswered
            {
                let place = Place::Result { message: slot.message, slot: slot.slot };
                self.push_repeat(self.result_decision(outline, slot), place, original, replacement);
            }
        }
        for (call, original) in outline.calls.iter().zip(origins.calls) {
            if let Some(replacement) = original.replacement.clone() {
                let place = Place::Arguments { message: call.message, call: call.call };
                self.push_repeat(self.call_decision(call), place, original, replacement);
            }
        }
    }

    fn push_repeat(&mut self, mut decision: Decision, place: Place, original: Origin, replacement: Replacement) {
        let meter = self.session.meter();
        let (bytes, tokens) = match &replacement {
            Replacement::Parts(parts) => {
                let sizes = parts.iter().map(PartRef::from).map(|part| (part_bytes(part), meter.part(part)));
                sizes.fold((0, 0), |(bytes, tokens), part| (bytes + part.0, tokens + part.1))
            }
            Replacement::Arguments(arguments) => (arguments.len() as u64, meter.text(arguments)),
        };
        decision.outcome = Outcome::Repeated;
        decision.bytes.after = bytes;
        decision.tokens = decision.tokens.map(|change| Change { after: tokens, ..change });
        let index = self.report.decisions.len();
        self.report.decisions.push(decision);
        self.repeated.insert(place);
        self.edits.push(Edit { decision: index, place, original, action: Action::Repeat(replacement) });
    }

    /// Decides about every result, oldest first, until the target is reached.
    fn decide(&mut self, outline: &Outline<'a>, counted: u64) {
        let settings = self.session.settings();
        let origins = self.origins(outline);
        for (slot, original) in outline.slots.iter().zip(&origins.results) {
            self.liner.begin(slot.head.id);
            self.decide_result(outline, slot, original);
            if settings.clear_tool_inputs {
                self.decide_arguments(outline, slot, &origins);
            }
        }
        // What looks like a hint of ours is only known to be one once it has been compared. Until then this is what is expected.
        let mut choice = Choice::new(settings, counted);
        let mut is_certain = true;
        for candidate in &self.candidates {
            is_certain &= !candidate.has_to_be_compared();
            if !choice.takes(candidate.gain) {
                self.report.decisions[candidate.edit.decision].keep(Reason::TargetReached);
            }
        }
        if choice.is_too_little() {
            for candidate in &self.candidates {
                self.report.decisions[candidate.edit.decision].keep(Reason::TooLittle);
            }
            if is_certain {
                self.candidates.clear();
            }
        }
    }

    fn decide_result(&mut self, outline: &Outline<'_>, slot: &Slot<'_>, original: &Origin) {
        let place = Place::Result { message: slot.message, slot: slot.slot };
        if self.repeated.contains(&place) {
            return;
        }
        let mut decision = self.result_decision(outline, slot);
        let policy = self.session.policy(&decision.tool);
        let reason = self.reason_to_keep(outline, slot, policy, decision.bytes.before);
        let reason = reason.or(self.ledger.is_unverified(original.print).then_some(Reason::Unverified));
        if let Some(reason) = reason {
            decision.keep(reason);
            self.report.decisions.push(decision);
            return;
        }
        let of = Source { id: slot.head.id, tool: &decision.tool, policy };
        let parts = slot.parts.iter().zip(1..);
        let lines: Vec<Line> = parts.map(|(part, number)| self.liner.part(of, *part, number)).collect();
        let shortens = lines.iter().all(|line| matches!(line, Line::Shorten(_) | Line::Ready(..)));
        let outcome = match (&policy.backend, shortens) {
            (None, _) => Outcome::Lost,
            (Some(_), true) => Outcome::Shortened,
            (Some(_), false) => Outcome::Cleared,
        };
        self.propose(decision, outcome, place, original.clone(), lines, |text| text);
    }

    /// A call's arguments go when its result is old, whether or not the result itself is long enough to go.
    fn decide_arguments(&mut self, outline: &Outline<'_>, slot: &Slot<'_>, origins: &Origins) {
        let Some(at) = slot.call else { return };
        let call = &outline.calls[at];
        let place = Place::Arguments { message: call.message, call: call.call };
        let policy = self.session.policy(outline.tool(slot));
        let keep = self.session.settings().clear_retention_suffix_limit;
        if outline.age(slot, keep) != Age::Old || !policy.clears || self.repeated.contains(&place) {
            return;
        }
        let mut decision = self.call_decision(call);
        let text = arguments_text(call.is.arguments);
        let reason = match () {
            () if call.is.is_signed => Some(Reason::Signed),
            () if hint_in_arguments(&text).is_some_and(|hint| self.liner.is_ours(&hint)) => Some(Reason::AlreadyHint),
            () => None,
        };
        if let Some(reason) = reason {
            decision.keep(reason);
            self.report.decisions.push(decision);
            return;
        }
        let of = Source { id: call.is.id, tool: &decision.tool, policy };
        let line = self.liner.arguments(of, text.into());
        let outcome = if policy.backend.is_some() { Outcome::Cleared } else { Outcome::Lost };
        self.propose(decision, outcome, place, origins.calls[at].clone(), vec![line], |hint| cleared_arguments(&hint));
    }

    /// Makes the edit a candidate if it is a gain wherever its content ends up.
    fn propose(
        &mut self,
        mut decision: Decision,
        outcome: Outcome,
        place: Place,
        original: Origin,
        lines: Vec<Line>,
        wrap: fn(String) -> String,
    ) {
        let meter = self.session.meter();
        let texts = [0, 1].map(|choice| wrap(Line::render_all(&lines, self.session, choice)));
        let tokens = texts.iter().map(|text| meter.text(text)).max().unwrap_or_default();
        let bytes = texts.iter().map(String::len).max().unwrap_or_default() as u64;
        let tokens_before = decision.tokens.map_or(0, |change| change.before);
        if bytes >= decision.bytes.before || tokens > tokens_before {
            decision.keep(Reason::NoGain);
            self.report.decisions.push(decision);
            return;
        }
        decision.outcome = outcome;
        decision.bytes.after = texts[0].len() as u64;
        decision.tokens = Some(Change { before: tokens_before, after: meter.text(&texts[0]) });
        let index = self.report.decisions.len();
        self.report.decisions.push(decision.clone());
        let edit = Edit { decision: index, place, original, action: Action::Hints(decision, lines) };
        self.candidates.push(Candidate { edit, gain: tokens_before - tokens });
    }

    fn reason_to_keep(&self, outline: &Outline<'_>, slot: &Slot<'_>, policy: &Policy, bytes: u64) -> Option<Reason> {
        match outline.age(slot, self.session.settings().clear_retention_suffix_limit) {
            Age::Unanswered => return Some(Reason::Unanswered),
            Age::Recent => return Some(Reason::Recent),
            Age::Old => {}
        }
        let is_hint = |part: &PartRef<'_>| {
            let PartRef::Text(text) = part else { return false };
            Hint::parse_all(text).is_some_and(|hints| hints.iter().all(|hint| self.liner.is_final(hint)))
        };
        match () {
            () if !policy.clears => Some(Reason::Excluded),
            () if !slot.parts.is_empty() && slot.parts.iter().all(is_hint) => Some(Reason::AlreadyHint),
            () if slot.head.is_error && policy.keep_errors && bytes <= policy.preview_length as u64 => {
                Some(Reason::ShortError)
            }
            () => None,
        }
    }

    fn result_decision(&self, outline: &Outline<'_>, slot: &Slot<'_>) -> Decision {
        let meter = self.session.meter();
        Decision {
            tool: outline.tool(slot).to_owned(),
            call_id: slot.head.id.to_owned(),
            message: Some(slot.message),
            subject: Subject::Result,
            outcome: Outcome::Kept(Reason::NoGain),
            bytes: Change::none(slot.parts.iter().map(|part| part_bytes(*part)).sum()),
            tokens: Some(Change::none(slot.parts.iter().map(|part| meter.part(*part)).sum())),
            locations: Vec::new(),
            error: None,
        }
    }

    fn call_decision(&self, call: &CallSite<'_>) -> Decision {
        Decision {
            tool: call.is.name.to_owned(),
            call_id: call.is.id.to_owned(),
            message: Some(call.message),
            subject: Subject::Arguments,
            outcome: Outcome::Kept(Reason::NoGain),
            bytes: Change::none(arguments_text(call.is.arguments).len() as u64),
            tokens: Some(Change::none(self.session.meter().arguments(call.is.arguments))),
            locations: Vec::new(),
            error: None,
        }
    }
}

impl Decision {
    /// Nothing is done.
    pub(super) fn keep(&mut self, reason: Reason) {
        self.outcome = Outcome::Kept(reason);
        self.bytes.after = self.bytes.before;
        self.tokens = self.tokens.map(|change| Change::none(change.before));
    }
}

fn arguments_text(arguments: Arguments<'_>) -> String {
    match arguments {
        Arguments::Text(text) => text.to_owned(),
        Arguments::Json(value) => value.to_string(),
    }
}

/// The bytes of content that a part is.
fn part_bytes(part: PartRef<'_>) -> u64 {
    match part {
        PartRef::Text(text) => text.len() as u64,
        PartRef::Json(value) | PartRef::Opaque(value) => value.to_string().len() as u64,
        PartRef::Media { data, .. } => data.decoded_len(),
        PartRef::Link { url, .. } => url.len() as u64,
    }
}
