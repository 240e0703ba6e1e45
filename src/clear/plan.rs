//! Decides without I/O what a pass does, if the count is over the threshold.

use std::collections::HashSet;

use super::edit::SlotEdit;
use super::pass::Pass;
use super::propose::Planner;
use super::scan::Scan;
use crate::format::Conversation;
use crate::report::{CountKind, Report, TokenCount};
use crate::slots::{Anchor, Place, Slots};

/// A pass that has been planned. Nothing is stored or changed yet.
#[must_use = "a plan does nothing until it is committed and applied"]
pub(super) struct Plan<'a> {
    pub(super) pass: Pass<'a>,
    pub(super) edits: Vec<SlotEdit>,
    /// The provider's count that this pass's count builds on.
    pub(super) anchor: Option<Anchor>,
    /// The report without its decisions.
    pub(super) head: Report,
}

impl<'a> Plan<'a> {
    /// Plans a pass over a conversation, in which places that are `taken` have been decided about. `None` as its
    /// `scan` means that nothing is to be cleared.
    pub(super) fn new(
        pass: Pass<'a>,
        conversation: &dyn Conversation,
        taken: HashSet<Place>,
        scan: Option<Scan>,
    ) -> Self {
        let mut plan = Self {
            pass,
            edits: Vec::new(),
            anchor: None,
            head: Report::default(),
        };
        if let Some(scan) = scan {
            plan.decide(conversation, taken, &scan);
        }
        plan
    }

    fn decide(&mut self, conversation: &dyn Conversation, taken: HashSet<Place>, scan: &Scan) {
        let pass = &self.pass;
        let session = pass.session;
        let known = pass.memory.known();
        let counted = match scan.anchor {
            Some(anchor) => anchor
                .usage
                .saturating_add(scan.tokens)
                .saturating_sub(known.saved_since(anchor)),
            None => scan.tokens,
        };
        self.anchor = scan.anchor;
        self.head.tokens = Some(TokenCount {
            counted,
            count_kind: scan.count_kind,
            threshold: match pass.threshold() {
                0 => session.settings.max_tokens_for_clear,
                threshold => threshold,
            },
            usage: scan.anchor.map(|anchor| anchor.usage),
        });
        if counted <= pass.threshold() || scan.count_kind != CountKind::Counted {
            return;
        }
        let slots = Slots::of(conversation, &known, Some(&session.meter));
        self.edits = Planner::new(pass, &known, &slots, taken).choose(counted);
    }
}
