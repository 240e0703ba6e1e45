//! Decides without I/O what a pass does, if the count is over the threshold.

use std::collections::HashSet;

use super::edit::SlotEdit;
use super::pass::Pass;
use super::propose::Planner;
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
    /// Plans a pass over a conversation, in which places that are `taken` have been decided about. Without a `count`
    /// nothing is to be cleared.
    pub(super) fn new(
        pass: Pass<'a>,
        conversation: &dyn Conversation,
        taken: HashSet<Place>,
        count: Option<(TokenCount, Option<Anchor>)>,
    ) -> Self {
        let (tokens, anchor) = count.unzip();
        let mut plan = Self {
            pass,
            edits: Vec::new(),
            anchor: anchor.flatten(),
            head: Report {
                tokens,
                ..Report::default()
            },
        };
        let pass = &plan.pass;
        if let Some(count) = tokens
            && count.counted > pass.threshold()
            && count.count_kind == CountKind::Counted
        {
            let known = pass.memory.known();
            let slots = Slots::of(conversation, &known.originals).counted(&pass.session.meter);
            plan.edits = Planner::new(pass, &known, &slots, taken).choose(count.counted);
        }
        plan
    }
}
