//! Which results go: a pure decision about a borrowed conversation.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use super::ledger::{Fingerprint, Ledger, Replacement, Walk, lock};
use super::lines::{Liner, Source};
use super::rounds::{Age, CallSite, Outline, Slot};
use super::{Action, Edit, Line, Place, Plan, Request, cleared_arguments, hint_in_arguments};
use crate::config::Policy;
use crate::content::Part;
use crate::format::{Arguments, Conversation, PartRef};
use crate::hint::Hint;
use crate::report::{Change, Decision, Outcome, Reason, Report, Subject, TokenCount};
use crate::session::Session;

impl Plan {
    pub(crate) fn new(
        session: &Session,
        ledger: &Arc<Mutex<Ledger>>,
        conversation: &dyn Conversation,
        request: Request<'_>,
    ) -> Self {
        let nothing =
            Self { session: session.clone(), ledger: ledger.clone(), edits: Vec::new(), report: Report::default() };
        if !session.clears() {
            return nothing;
        }
        let ledger = lock(ledger);
        let settings = session.settings();
        let mut planner = Planner::new(session);
        let anchored = request.last_usage.is_some();
        // Reading the rounds is needed to repeat decisions and to anchor the count; else only once the pass is triggered.
        let outline = (!ledger.is_empty() || anchored).then(|| Outline::of(conversation));
        if let Some(outline) = &outline
            && !ledger.is_empty()
        {
            planner.repeat(outline, &mut ledger.walk());
        }
        drop(ledger);

        // The last request ended where the last assistant turn begins.
        let last_turn = outline.as_ref().and_then(|outline| outline.last_turn);
        let counted = match (request.last_usage, last_turn) {
            (Some(usage), Some(last_turn)) => {
                let new = last_turn..conversation.len();
                usage.saturating_add(new.map(|message| session.meter().message(conversation, message)).sum())
            }
            _ => {
                let repeated = planner.report.cleared_input_tokens();
                session.meter().conversation(conversation, request.tools).saturating_sub(repeated)
            }
        };
        planner.report.tokens = Some(TokenCount { counted, threshold: settings.max_tokens_for_clear });
        if counted > settings.max_tokens_for_clear {
            let outline = outline.unwrap_or_else(|| Outline::of(conversation));
            planner.decide(&outline, counted);
        }
        planner.finish(nothing)
    }
}

struct Planner<'a> {
    session: &'a Session,
    /// What is decided, by place in the conversation.
    report: Report,
    edits: Vec<Edit>,
    /// What is repeated, and not decided anew.
    repeated: HashSet<Place>,
    candidates: Vec<Candidate>,
    liner: Liner<'a>,
}

/// What may go, with what that gains at least.
struct Candidate {
    edit: Edit,
    gain: u64,
}

impl<'a> Planner<'a> {
    fn new(session: &'a Session) -> Self {
        let (report, edits, candidates) = (Report::default(), Vec::new(), Vec::new());
        Self { session, report, edits, repeated: HashSet::new(), candidates, liner: Liner::new(session) }
    }

    /// Repeats what was decided before, where the loop handed in the originals again. What the model has not seen stays.
    fn repeat(&mut self, outline: &Outline<'_>, walk: &mut Walk<'_>) {
        for slot in &outline.slots {
            let original = Fingerprint::of_result(slot.head, &slot.parts);
            let Some(Replacement::Parts(parts)) = walk.next(original) else { continue };
            if outline.age(slot, 0) == Age::Unanswered {
                continue;
            }
            let mut decision = self.result_decision(outline, slot);
            decision.outcome = Outcome::Repeated;
            let texts = parts.iter().map(|part| if let Part::Text(text) = part { text.as_str() } else { "" });
            decision.bytes.after = texts.map(str::len).sum::<usize>() as u64;
            let tokens = parts.iter().map(|part| self.session.meter().part(part.into())).sum();
            decision.tokens = decision.tokens.map(|change| Change { after: tokens, ..change });
            let place = Place::Result { message: slot.message, slot: slot.slot };
            self.push_repeat(decision, place, original, Replacement::Parts(parts.clone()));
        }
        for call in &outline.calls {
            let original = Fingerprint::of_call(call.is);
            let Some(Replacement::Arguments(arguments)) = walk.next(original) else { continue };
            let mut decision = self.call_decision(call);
            decision.outcome = Outcome::Repeated;
            decision.bytes.after = arguments.len() as u64;
            let tokens = self.session.meter().text(arguments);
            decision.tokens = decision.tokens.map(|change| Change { after: tokens, ..change });
            let place = Place::Arguments { message: call.message, call: call.call };
            self.push_repeat(decision, place, original, Replacement::Arguments(arguments.clone()));
        }
    }

    fn push_repeat(&mut self, decision: Decision, place: Place, original: Fingerprint, replacement: Replacement) {
        let index = self.report.decisions.len();
        self.report.decisions.push(decision);
        self.repeated.insert(place);
        self.edits.push(Edit { decision: index, place, original, action: Action::Repeat(replacement) });
    }

    /// Decides about every result, oldest first, until the target is reached.
    fn decide(&mut self, outline: &Outline<'a>, counted: u64) {
        let settings = self.session.settings();
        let mut left = counted;
        for slot in &outline.slots {
            self.liner.begin(slot.head.id);
            let is_enough = settings.clear_target_tokens.is_some_and(|target| left <= target);
            let before = self.candidates.len();
            self.decide_result(outline, slot, is_enough);
            if settings.clear_tool_inputs && !is_enough {
                self.decide_arguments(outline, slot);
            }
            left -= self.candidates[before..].iter().map(|candidate| candidate.gain).sum::<u64>().min(left);
        }
        let gain: u64 = self.candidates.iter().map(|candidate| candidate.gain).sum();
        if gain < settings.clear_at_least_tokens {
            for candidate in self.candidates.drain(..) {
                self.report.decisions[candidate.edit.decision].keep(Reason::TooLittle);
            }
        }
    }

    fn decide_result(&mut self, outline: &Outline<'_>, slot: &Slot<'_>, is_enough: bool) {
        let place = Place::Result { message: slot.message, slot: slot.slot };
        if self.repeated.contains(&place) {
            return;
        }
        let mut decision = self.result_decision(outline, slot);
        let policy = self.session.policy(&decision.tool);
        let reason = self.reason_to_keep(outline, slot, policy, decision.bytes.before);
        if let Some(reason) = reason.or(is_enough.then_some(Reason::TargetReached)) {
            decision.keep(reason);
            self.report.decisions.push(decision);
            return;
        }
        let of = Source { id: slot.head.id, tool: &decision.tool, policy };
        let parts = slot.parts.iter().zip(1..);
        let lines: Vec<Line> = parts.map(|(part, number)| self.liner.part(of, *part, number)).collect();
        let shortens = lines.iter().all(|line| matches!(line, Line::Shorten(_) | Line::Ready(_)));
        let outcome = match (&policy.backend, shortens) {
            (None, _) => Outcome::Lost,
            (Some(_), true) => Outcome::Shortened,
            (Some(_), false) => Outcome::Cleared,
        };
        self.propose(decision, outcome, place, Fingerprint::of_result(slot.head, &slot.parts), lines, |text| text);
    }

    /// A call's arguments go when its result is old, whether or not the result itself is long enough to go.
    fn decide_arguments(&mut self, outline: &Outline<'_>, slot: &Slot<'_>) {
        let Some(call) = slot.call.map(|call| &outline.calls[call]) else { return };
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
        self.propose(decision, outcome, place, Fingerprint::of_call(call.is), vec![line], |hint| {
            cleared_arguments(&hint)
        });
    }

    /// Makes the edit a candidate if it is a gain wherever its content ends up.
    fn propose(
        &mut self,
        mut decision: Decision,
        outcome: Outcome,
        place: Place,
        original: Fingerprint,
        lines: Vec<Line>,
        wrap: fn(String) -> String,
    ) {
        let meter = self.session.meter();
        let texts = [0, 1].map(|choice| wrap(self.liner.render(&lines, choice)));
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
        self.report.decisions.push(decision);
        let edit = Edit { decision: index, place, original, action: Action::Hints(lines) };
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

    fn finish(mut self, mut plan: Plan) -> Plan {
        self.edits.extend(self.candidates.into_iter().map(|candidate| candidate.edit));
        plan.edits = self.edits;
        plan.report = self.report;
        plan
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
