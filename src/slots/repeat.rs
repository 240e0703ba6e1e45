//! Repeats what was decided before, for loops that pass in the original history every turn.

use std::collections::HashSet;

use super::memory::Known;
use super::overlay::Overlay;
use super::reading::{Slots, bytes_of, tokens_of};
use crate::decisions::Moment;
use crate::format::Place;
use crate::report::{Decision, Outcome};
use crate::session::Session;

/// The decisions that were repeated over a conversation.
#[derive(Debug, Default)]
pub(crate) struct Repeated {
    pub(crate) decisions: Vec<Decision>,
    /// The places that passes have decided about: they are not decided again.
    pub(crate) passed: HashSet<Place>,
    /// Number of decisions that do not fit their slots, because another program has changed the store.
    pub(crate) unusable: usize,
}

/// Puts what was decided before over the conversation of `slots`.
pub(crate) fn repeat(
    session: &Session,
    known: &Known,
    slots: &Slots<'_>,
    overlay: &mut Overlay<'_>,
) -> Repeated {
    let mut repeated = Repeated::default();
    for item in &slots.items {
        let Some(decided) = known.decided_about(item) else {
            continue;
        };
        let original = |part: usize| Some((*item.parts().get(part)?).into());
        let Some(put) = decided.put.over(original) else {
            repeated.unusable += 1;
            continue;
        };
        // Only users' code may make anything longer.
        let may_grow = session.policy(item.tool).hooks.has_handler();
        let mut decision = item.decision();
        decision.outcome = Outcome::Repeated;
        decision.locations.clone_from(&decided.locations);
        decision.resize(
            bytes_of(&put),
            item.tokens.map_or(0, |_| tokens_of(&put, &session.meter)),
        );
        let fits = may_grow || decision.bytes.after < item.bytes;
        if !fits || !overlay.put(item.place, put) {
            repeated.unusable += 1;
            continue;
        }
        if decided.moment == Moment::Pass {
            repeated.passed.insert(item.place);
        }
        repeated.decisions.push(decision);
    }
    repeated
}
