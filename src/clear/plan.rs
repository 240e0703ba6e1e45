//! Which results go: a pure decision about a borrowed conversation.

use std::fmt;
use std::rc::Rc;

use super::choice::Choice;
use super::edit::Edit;
use super::handler::decide_given;
use super::items::Items;
use super::ledger::Anchor;
use super::pass::Pass;
use super::planner::Planner;
use super::previews::Previews;
use super::scan::Scan;
use super::stub::Line;
use crate::middleware::BeforeModel;
use crate::report::{Certainty, ErrorSource, Outcome, Reason, Report, TokenCount, saved};
use crate::rounds::Slot;
use crate::tokens::Text;

/// What a pass is going to do. Nothing is stored and nothing is changed yet.
#[must_use = "a plan does nothing until it is committed and applied"]
pub struct Plan {
    pub(super) pass: Pass,
    pub(super) edits: Vec<Edit>,
    /// How many of the edits are taken.
    pub(super) choice: Choice,
    /// What the count was anchored to.
    pub(super) anchor: Option<Anchor>,
    /// The report, but for its decisions.
    pub(super) head: Report,
}

/// Content is not shown.
impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("report", &self.report())
            .finish_non_exhaustive()
    }
}

impl Plan {
    /// The report as it is going to be, with sizes as they will be where no name is taken.
    #[must_use]
    pub fn report(&self) -> Report {
        Report {
            decisions: self
                .edits
                .iter()
                .flat_map(Edit::expected_decisions)
                .collect(),
            ..self.head.clone()
        }
    }

    /// Decides about a conversation whose `scan` has been counted; `None` where nothing is ever
    /// cleared. `freed` are the tokens that the pass has freed already.
    pub(super) fn new(
        pass: Pass,
        turn: &BeforeModel<'_>,
        scan: Option<Scan<'_>>,
        freed: u64,
    ) -> Self {
        let mut plan = Self {
            pass,
            edits: Vec::new(),
            choice: Choice::all(),
            anchor: None,
            head: Report::default(),
        };
        if let Some(scan) = scan {
            plan.decide(turn, scan, freed);
        }
        plan
    }

    /// Repeats what was decided before; then chooses what goes if there are more tokens than the
    /// threshold, and else what becomes a preview.
    fn decide<'c>(&mut self, turn: &'c BeforeModel<'_>, mut scan: Scan<'c>, freed: u64) {
        let pass = self.pass.clone();
        let (session, meter, settings) =
            (&pass.session, pass.session.meter(), pass.session.settings());
        let (anchor, certainty) = (scan.anchor, scan.certainty);
        let mut ledger = pass.ledger();
        // The items are read only where something is replaced again, costs are looked at, or the
        // pass is triggered.
        let reads = scan.has_replaced || settings.cost_aware.is_some();
        let mut planner = reads.then(|| {
            let items = scan.items(meter, &ledger, &*turn.conversation);
            Planner::new(session, &ledger, items)
        });
        if let Some(planner) = &mut planner {
            planner.repeat();
        }
        let counted = match anchor {
            Some(anchor) => anchor
                .usage
                .saturating_add(scan.tokens)
                .saturating_sub(ledger.saved_since(anchor)),
            None => {
                let repeated = planner.iter().flat_map(|planner| &planner.edits);
                let changes = repeated.filter_map(|edit| edit.decision.tokens);
                scan.tokens.saturating_sub(saved(changes))
            }
        };
        let threshold = settings.max_tokens_for_clear;
        self.anchor = anchor;
        self.head.tokens = Some(TokenCount {
            counted,
            certainty,
            threshold,
            usage: anchor.map(|anchor| anchor.usage),
            drift: anchor.and_then(|anchor| ledger.drift(anchor)),
        });
        let previews = match (settings.cost_aware, &planner) {
            (Some(rule), Some(planner)) => Previews::of(planner, rule, turn),
            _ => Previews::default(),
        };
        if counted.saturating_sub(previews.saved()) > threshold && certainty == Certainty::Counted {
            self.choice = Choice::new(settings, counted, freed);
            let planner = planner.get_or_insert_with(|| {
                let items = scan.items(meter, &ledger, &*turn.conversation);
                Planner::new(session, &ledger, items)
            });
            planner.choose(self.choice.clone());
        } else if let Some(planner) = &mut planner {
            self.head.outlook = previews.outlook();
            previews.put(planner);
        }
        let reads = planner.is_some();
        let mut settled = Vec::new();
        if let Some(planner) = planner {
            (self.edits, settled) = (planner.edits, planner.settled);
        }
        ledger.settle(settled);
        ledger.record_gains(previews.into_gains());
        ledger.record_read(reads);
        meter.end_pass(scan.seen);
    }
}

impl<'a> Planner<'a> {
    /// Decides about every result, oldest first, until the target is reached.
    fn choose(&mut self, mut choice: Choice) {
        let items = Rc::clone(&self.items);
        for (at, slot) in items.outline.slots.iter().enumerate() {
            self.stubs.begin(slot.head.id);
            self.choose_result(&items, at);
            if self.session.settings().clear_tool_inputs {
                self.choose_arguments(&items, slot);
            }
        }
        // What looks like a hint of ours is only known to be one once it has been compared. Until
        // then this is what is expected.
        let mut is_certain = true;
        for edit in self.edits.iter_mut().filter(|edit| edit.is_pending()) {
            is_certain &= !edit.has_to_be_compared();
            if !choice.takes(edit.tokens()) {
                edit.expected = Some(Reason::TargetReached);
            }
        }
        if choice.is_too_little() {
            for edit in self.edits.iter_mut().filter(|edit| edit.is_pending()) {
                if is_certain {
                    edit.keep(Reason::TooLittle);
                } else {
                    edit.expected = Some(Reason::TooLittle);
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
            .or_else(|| self.ledger.settled(key))
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
        let (of, of_id) = self.source(slot, item.tool);
        let parts = slot.parts.iter().zip(1..);
        let lines: Vec<Line> = parts
            .map(|(part, number)| self.stubs.part(&of, *part, number))
            .collect();
        let stores = lines.iter().any(|line| matches!(line, Line::Store(_)));
        let outcome = match policy.backend() {
            None => Outcome::Lost,
            Some(_) if stores => Outcome::Cleared,
            Some(_) => Outcome::Shortened,
        };
        self.propose(item, outcome, lines, failure.or(of_id));
    }

    /// A call's arguments go when its result is old, whether or not the result itself is long
    /// enough to go.
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
        let text = || Text::of_arguments(call.is.arguments).read();
        let above = self.session.settings().clear_tool_inputs_above as u64;
        let reason = self.ledger.settled(key).or_else(|| {
            if item.bytes <= above {
                Some(Reason::WithinLimit)
            } else if call.is.is_signed {
                Some(Reason::Signed)
            } else if call.is.is_fixed {
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
        let (of, of_id) = self.source(slot, item.tool);
        let line = self.stubs.arguments(&of, text().into_owned().into());
        let outcome = match policy.backend() {
            Some(_) => Outcome::Cleared,
            None => Outcome::Lost,
        };
        self.propose(item, outcome, vec![line], of_id);
    }
}
