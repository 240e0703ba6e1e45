//! Decides without I/O what a pass does: what it repeats, and whether the count is over the
//! threshold.

use std::fmt;

use super::choice::Choice;
use super::edit::SlotEdit;
use super::ledger::Anchor;
use super::pass::Pass;
use super::planner::Planner;
use super::scan::Scan;
use crate::middleware::Turn;
use crate::report::{CountKind, Report, TokenCount, saved};

/// A pass that has been planned. Nothing is stored or changed yet.
#[must_use = "a plan does nothing until it is committed and applied"]
pub struct Plan {
    pub(super) pass: Pass,
    pub(super) edits: Vec<SlotEdit>,
    /// Chooses how many of the edits are made.
    pub(super) choice: Choice,
    /// The provider's count that this pass's count builds on.
    pub(super) anchor: Option<Anchor>,
    /// The report without its decisions.
    pub(super) head: Report,
}

/// Leaves content out.
impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("report", &self.report())
            .finish_non_exhaustive()
    }
}

impl Plan {
    /// The expected report, with the sizes that result if no name is taken.
    #[must_use]
    pub fn report(&self) -> Report {
        Report {
            decisions: self
                .edits
                .iter()
                .flat_map(SlotEdit::expected_decisions)
                .collect(),
            ..self.head.clone()
        }
    }

    /// Plans a pass over a conversation. Its `scan` has been counted; `None` means that nothing is
    /// ever cleared.
    pub(super) fn new(pass: Pass, turn: &Turn<'_>, scan: Option<Scan<'_>>) -> Self {
        let mut plan = Self {
            pass,
            edits: Vec::new(),
            choice: Choice::all(),
            anchor: None,
            head: Report::default(),
        };
        if let Some(scan) = scan {
            plan.decide(turn, scan);
        }
        plan
    }

    /// Repeats earlier decisions. Then chooses what to clear if the count is over the threshold.
    fn decide<'c>(&mut self, turn: &'c Turn<'_>, mut scan: Scan<'c>) {
        let pass = self.pass.clone();
        let (session, meter, settings) =
            (&pass.session, pass.session.meter(), pass.session.settings());
        let (anchor, count_kind) = (scan.anchor, scan.count_kind);
        let mut ledger = pass.ledger();
        // Read the items only if something is replaced again, or the pass is triggered.
        let mut planner = scan.has_replaced.then(|| {
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
            count_kind,
            threshold,
            usage: anchor.map(|anchor| anchor.usage),
            drift: anchor.and_then(|anchor| ledger.drift(anchor)),
        });
        if counted > threshold && count_kind == CountKind::Counted {
            self.choice = Choice::new(settings, counted);
            let planner = planner.get_or_insert_with(|| {
                let items = scan.items(meter, &ledger, &*turn.conversation);
                Planner::new(session, &ledger, items)
            });
            planner.choose(self.choice.clone());
        }
        let reads = planner.is_some();
        let mut settled = Vec::new();
        if let Some(planner) = planner {
            (self.edits, settled) = (planner.edits, planner.settled);
        }
        ledger.record_final(settled);
        ledger.record_read(reads);
    }
}
