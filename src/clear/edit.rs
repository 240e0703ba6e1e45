//! A result, or a call's arguments, on its way through a pass.

use std::sync::Arc;

use super::items::Item;
use super::ledger::{Origin, Substitute};
use super::print::Place;
use super::stub::Line;
use crate::backend::Backend;
use crate::fingerprint::Fingerprint;
use crate::handler::Replacement;
use crate::ours::cleared_arguments;
use crate::report::{Decision, Outcome, Reason, Sum};
use crate::store::Target;
use crate::tokens::Meter;

/// A result, or a call's arguments, that a pass has looked at: what is decided about it, and what
/// takes its place.
#[derive(Debug)]
pub(super) struct Edit {
    pub(super) decision: Decision,
    pub(super) place: Place,
    /// What stands there.
    pub(super) origin: Origin,
    pub(super) content: Content,
    /// The reason for which a plan expects that it stays after all. Only the commit can tell.
    pub(super) expected: Option<Reason>,
    /// The arguments of its call, which are replaced together with the result or not at all.
    pub(super) arguments: Option<Box<Edit>>,
}

/// What takes the place of a result or of a call's arguments.
#[derive(Debug)]
pub(super) enum Content {
    /// Nothing: it stays.
    Kept,
    /// One line for each part, once their contents are stored.
    Lines(Vec<Line>),
    /// What a handler wants, once its content is stored.
    Given(Box<Given>),
    /// This.
    Ready(Arc<Substitute>),
}

/// What a handler wants to be put in the place of a result.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) replacement: Replacement,
    /// Where its content is going to be stored.
    pub(super) store: Option<(Arc<dyn Backend>, Target)>,
}

impl Edit {
    pub(super) fn new(item: &Item<'_>, outcome: Outcome, content: Content) -> Self {
        let mut decision = item.decision();
        decision.outcome = outcome;
        Self {
            decision,
            place: item.place,
            origin: item.origin.clone(),
            content,
            expected: None,
            arguments: None,
        }
    }

    /// An item that stays.
    pub(super) fn kept(item: &Item<'_>, reason: Reason) -> Self {
        Self::new(item, Outcome::Kept(reason), Content::Kept)
    }

    /// Leaves the item as it is, and its arguments with it.
    pub(super) fn keep(&mut self, reason: Reason) {
        self.decision.keep(reason);
        self.content = Content::Kept;
        if let Some(arguments) = &mut self.arguments {
            arguments.keep(reason);
        }
    }

    /// Whether something has to be stored before it is made.
    pub(super) fn is_pending(&self) -> bool {
        matches!(self.content, Content::Lines(_) | Content::Given(_))
    }

    pub(super) fn is_ready(&self) -> bool {
        matches!(self.content, Content::Ready(_))
    }

    /// Whether it repeats what an earlier pass did.
    pub(super) fn is_repeat(&self) -> bool {
        self.decision.outcome == Outcome::Repeated
    }

    /// Whether it can only be known after a look into the store what its lines become.
    pub(super) fn has_to_be_compared(&self) -> bool {
        let Content::Lines(lines) = &self.content else {
            return false;
        };
        lines.iter().any(|line| matches!(line, Line::Shorten(..)))
    }

    /// Its tokens before and after, with those of the arguments.
    pub(super) fn tokens(&self) -> Sum {
        self.parts().fold(Sum::default(), |sum, edit| {
            sum.plus(edit.decision.tokens.unwrap_or_default().into())
        })
    }

    /// What the text of lines becomes where it is put: cleared arguments have to be JSON.
    pub(super) fn put_text(&self, lines: String) -> String {
        match self.place {
            Place::Result { .. } => lines,
            Place::Arguments { .. } => cleared_arguments(&lines),
        }
    }

    /// The bytes and tokens of `text`, if they are fewer bytes and no more tokens than what stands
    /// there.
    pub(super) fn gain(&self, meter: &Meter, text: &str) -> Option<(u64, u64)> {
        let (bytes, tokens) = (text.len() as u64, meter.text(text));
        let before = self.decision.tokens.map_or(0, |change| change.before);
        (bytes < self.decision.bytes.before && tokens <= before).then_some((bytes, tokens))
    }

    /// The fingerprint of a decision that holds for good: it depends on content, id and tool.
    pub(super) fn settles_as(&self, meter: &Meter) -> Fingerprint {
        self.origin.settles_as(meter, &self.decision.tool)
    }

    /// It, and then the arguments that are replaced with it.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(self.arguments.as_deref())
    }

    /// The same, each for itself.
    pub(super) fn into_parts(mut self) -> impl Iterator<Item = Self> {
        let arguments = self.arguments.take().map(|arguments| *arguments);
        std::iter::once(self).chain(arguments)
    }

    /// Its decisions as a plan expects them.
    pub(super) fn expected_decisions(&self) -> impl Iterator<Item = Decision> {
        self.parts().map(|edit| {
            let mut decision = edit.decision.clone();
            if let Some(reason) = self.expected {
                decision.keep(reason);
            }
            decision
        })
    }
}
