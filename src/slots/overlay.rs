//! A conversation with some results, arguments and users' texts replaced, while its messages stay as they are; and what
//! was decided before, repeated over it.

use std::collections::{BTreeMap, HashSet};

use serde::de::IgnoredAny;

use super::memory::Known;
use super::{Slots, bytes_of, original};

use crate::content::Part;
use crate::decisions::{Decided, Moment, WrittenPart, only_text};
use crate::format::{Call, Conversation, JsonRef, NewPiece, PartRef, Piece, Place, Places};
use crate::report::{Decision, Outcome, Subject};
use crate::rounds::Item;
use crate::session::Session;
use crate::tokens::Text;

/// A borrowed conversation, and what is shown in place of some of its results and arguments.
/// Dropping it leaves the messages unchanged.
pub(crate) struct Overlay<'c> {
    under: &'c dyn Conversation,
    pub(crate) puts: Puts,
    /// The places that passes have decided about before: they are not decided again.
    pub(crate) passed: HashSet<Place>,
}

/// Replacements, by place.
pub(crate) type Puts = BTreeMap<Place, Vec<Part>>;

/// Changes the messages.
pub(crate) fn apply(puts: Puts, conversation: &mut dyn Conversation) {
    for (place, put) in puts {
        let (message, index) = (place.message, place.index);
        let text = || only_text(&put).unwrap_or_default().to_owned();
        let new = match place.subject {
            Subject::Result => NewPiece::Result(put),
            Subject::Arguments => NewPiece::Arguments(text()),
            Subject::UserText => NewPiece::UserText(text()),
        };
        conversation.replace(message, index, new);
    }
}

impl<'c> Overlay<'c> {
    pub(crate) fn new(under: &'c dyn Conversation) -> Self {
        Self {
            under,
            puts: Puts::new(),
            passed: HashSet::new(),
        }
    }

    /// Shows `put` at `place`. Returns `false` if it does not fit there: arguments must be JSON.
    pub(crate) fn show(&mut self, place: Place, put: Vec<Part>) -> bool {
        let text = only_text(&put);
        let fits = match place.subject {
            Subject::Result => true,
            Subject::Arguments => {
                text.is_some_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok())
            }
            Subject::UserText => text.is_some(),
        };
        if fits {
            self.puts.insert(place, put);
        }
        fits
    }
}

impl Conversation for Overlay<'_> {
    fn len(&self) -> usize {
        self.under.len()
    }

    fn visit<'m>(&'m self, message: usize, see: &mut dyn FnMut(Piece<'m>)) {
        let (mut places, mut is_replaced) = (Places::of(message), false);
        self.under.visit(message, &mut |piece| {
            let place = places.see(piece);
            let put = place.and_then(|place| self.puts.get(&place));
            let is_result = matches!(piece, Piece::Result(_));
            if is_result {
                is_replaced = put.is_some();
            }
            match (piece, put) {
                (Piece::Call(call), Some(put)) => {
                    let arguments = JsonRef::Spelled(only_text(put).unwrap_or_default());
                    see(Piece::Call(Call { arguments, ..call }));
                }
                (_, Some(parts)) => {
                    if is_result {
                        see(piece);
                    }
                    let parts = parts.iter();
                    parts.for_each(|part| see(Piece::Content(part.into())));
                }
                (Piece::Content(_), _) if places.in_result && is_replaced => {}
                _ => see(piece),
            }
        });
    }

    // Nothing edits what is shown: `show` is the way.
    fn replace(&mut self, _: usize, _: usize, _: NewPiece) {}

    fn has_text(&self, message: usize, text: usize) -> bool {
        self.under.has_text(message, text)
    }
}

/// Puts what was decided before over the conversation of `slots`, for loops that pass in the original history every turn.
/// Returns the decisions that were repeated.
pub(crate) fn repeat(
    session: &Session,
    known: &Known,
    slots: &Slots<'_>,
    overlay: &mut Overlay<'_>,
) -> Vec<Decision> {
    let mut repeated = Vec::new();
    for item in &slots.items {
        let Some(decided) = known.decided_about(item) else {
            continue;
        };
        let Some(decision) = repeat_one(session, decided, item, overlay) else {
            tracing::warn!(
                tool = item.tool,
                call_id = item.call_id,
                "a decision does not fit and was ignored: check who else writes to the store"
            );
            continue;
        };
        if decided.moment == Moment::Pass {
            overlay.passed.insert(item.place);
        }
        repeated.push(decision);
    }
    repeated
}

/// Repeats a decision; `None` if it does not fit its item, since another program has changed the store.
fn repeat_one(
    session: &Session,
    decided: &Decided,
    item: &Item<'_>,
    overlay: &mut Overlay<'_>,
) -> Option<Decision> {
    let policy = session.policy(item.tool);
    let put = decided.put.iter().map(|part| match part {
        WrittenPart::Kept(at) => original(policy, *item.content.parts().get(*at)?),
        WrittenPart::New(part) => Some(part.clone()),
    });
    let put: Vec<Part> = put.collect::<Option<_>>()?;
    let bytes = bytes_of(&put);
    // Only users' code may make anything longer.
    if bytes >= item.bytes && !policy.hooks.has_handler() {
        return None;
    }
    let mut decision = item.decision(Outcome::Repeated);
    decision.locations.clone_from(&decided.locations);
    let texts = put.iter().map(|part| Text::from(PartRef::from(part)));
    let tokens = || session.meter.sum(texts);
    decision.resize(bytes, item.tokens.map_or(0, |_| tokens()));
    overlay.show(item.place, put).then_some(decision)
}
