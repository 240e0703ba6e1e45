//! A result, a call's arguments or a user's text on its way through a pass.

use std::sync::Arc;

use crate::json::Frame;

use super::lines::{Line, joined, parts_of, texts_of};
use crate::backend::Backend;
use crate::backend::content::Target;
use crate::decisions::Substitute;
use crate::fingerprint::SlotId;
use crate::handler::Replacement;
use crate::ours::cleared_arguments;
use crate::report::{Change, Decision, Outcome, Reason, Subject};
use crate::slots::{Grounds, Item, Place, bytes_of, tokens_of};
use crate::tokens::Meter;

/// A result, a call's arguments or a user's text that a pass has examined: the decision about it, and its
/// replacement.
#[derive(Debug)]
pub(super) struct SlotEdit {
    pub(super) decision: Decision,
    pub(super) place: Place,
    pub(super) id: SlotId,
    /// The grounds before the pass.
    pub(super) grounds: Grounds,
    pub(super) content: Content,
    /// The text around the strings that leave, if arguments leave string by string.
    pub(super) frame: Option<Frame>,
    /// Arguments of its call, which are replaced together with the result or not at all.
    pub(super) arguments: Option<Box<SlotEdit>>,
}

/// The replacement of a result or of a call's arguments.
#[derive(Debug)]
pub(super) enum Content {
    /// None: the item stays.
    Kept,
    /// One line for each part, once their contents are stored.
    Lines(Vec<Line>),
    /// A handler's replacement, once its content is stored, if it is to be, in this store under this name.
    Given(Box<Replacement>, Option<(Arc<dyn Backend>, Target)>),
    /// A replacement that needs nothing more to be stored.
    Ready(Substitute),
}

impl SlotEdit {
    pub(super) fn new(item: &Item<'_>, outcome: Outcome) -> Self {
        let mut decision = item.decision();
        decision.outcome = outcome;
        Self {
            decision,
            place: item.place,
            id: item.id,
            grounds: item.grounds,
            content: Content::Kept,
            frame: None,
            arguments: None,
        }
    }

    /// An edit that keeps the item.
    pub(super) fn kept(item: &Item<'_>, reason: Reason) -> Self {
        Self::new(item, Outcome::Kept(reason))
    }

    /// Keeps the item as it is, and its arguments with it.
    pub(super) fn keep(&mut self, reason: Reason) {
        self.decision.keep(reason);
        self.content = Content::Kept;
        if let Some(arguments) = &mut self.arguments {
            arguments.keep(reason);
        }
    }

    /// Reason why no later pass will replace the item either, and its grounds.
    pub(super) fn final_reason(&self) -> Option<(Grounds, Reason)> {
        match self.decision.outcome {
            Outcome::Kept(reason @ (Reason::AlreadyHint | Reason::Unverified | Reason::NoGain))
                if self.decision.error.is_none() =>
            {
                Some((self.grounds, reason))
            }
            _ => None,
        }
    }

    /// Returns true if content may have to be stored before the edit is ready.
    pub(super) fn is_pending(&self) -> bool {
        matches!(self.content, Content::Lines(_) | Content::Given(..))
    }

    /// Returns true if the item is to be replaced.
    pub(super) fn goes(&self) -> bool {
        !matches!(self.content, Content::Kept)
    }

    /// Returns true if only the store can tell what its lines become.
    pub(super) fn has_to_be_compared(&self) -> bool {
        let Content::Lines(lines) = &self.content else {
            return false;
        };
        lines.iter().any(|line| matches!(line, Line::Shorten(..)))
    }

    /// Number of tokens fewer, including those of the arguments.
    pub(super) fn freed(&self) -> i128 {
        let tokens = self.parts().filter_map(|edit| edit.decision.tokens);
        tokens.map(Change::net).sum()
    }

    /// Converts lines to the slot's new content: cleared arguments must be JSON.
    pub(super) fn substitute(&self, lines: &[Line]) -> Substitute {
        match (self.place.subject, &self.frame) {
            (Subject::Result | Subject::UserText, _) => Substitute::Parts(parts_of(lines)),
            (Subject::Arguments, Some(frame)) => {
                Substitute::Arguments(frame.filled(texts_of(lines)))
            }
            (Subject::Arguments, None) => Substitute::Arguments(cleared_arguments(&joined(lines))),
        }
    }

    /// Sets the size to that of `put`.
    pub(super) fn resize(&mut self, meter: &Meter, put: &Substitute) {
        self.decision.resize(bytes_of(put), tokens_of(put, meter));
    }

    /// Sets the size to that of `put`, if that is a gain.
    pub(super) fn try_resize(&mut self, meter: &Meter, put: &Substitute) -> bool {
        let mut bytes = self.decision.bytes;
        let mut tokens = self.decision.tokens.unwrap_or_default();
        bytes.after = bytes_of(put);
        // Most texts that gain nothing are short in bytes already, so their hints need not be counted.
        if bytes.after < bytes.before {
            tokens.after = tokens_of(put, meter);
        }
        let is_gain = bytes.gains(tokens);
        if is_gain {
            self.decision.resize(bytes.after, tokens.after);
        }
        is_gain
    }

    /// The edit itself, then that of the arguments replaced with it.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(self.arguments.as_deref())
    }

    /// Like [`parts`](Self::parts), each as a separate edit.
    pub(super) fn into_parts(mut self) -> impl Iterator<Item = Self> {
        let arguments = self.arguments.take().map(|arguments| *arguments);
        std::iter::once(self).chain(arguments)
    }
}
