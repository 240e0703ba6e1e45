//! A result, a call's arguments or a user's text on its way through a pass.

use std::sync::Arc;

use bytes::Bytes;

use crate::backend::content::Target;
use crate::backend::{Backend, Location};
use crate::content::Part;
use crate::decisions::Substitute;
use crate::fingerprint::SlotId;
use crate::handler::Replacement;
use crate::hint::Draft;
use crate::json::Frame;
use crate::ours::{ApparentHint, cleared_arguments};
use crate::preview::Previewer;
use crate::report::{Change, Decision, Outcome, Reason, Subject};
use crate::session::Session;
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

/// The line that replaces one part of a result.
#[derive(Debug)]
pub(super) struct Line {
    /// Its text, if the name of its content is free and apparent hints of ours are ours.
    pub(super) text: String,
    pub(super) origin: Origin,
}

/// The content that a line stands for.
#[derive(Debug)]
pub(super) enum Origin {
    /// It is stored at these locations, or lost.
    There(Vec<Location>),
    /// The text itself, which is no longer than its hint would be.
    Itself,
    /// It is going to be stored under a name that the hint gives.
    New {
        backend: Arc<dyn Backend>,
        target: Target,
        content: Bytes,
        draft: Box<Draft>,
    },
    /// It is where apparent hints of ours lead, if they agree with what is stored there. Otherwise the other line
    /// counts, because the part is an ordinary text.
    Apparent(Vec<Shown>, Box<Line>),
}

/// A hint in the conversation that may be ours.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) own: ApparentHint,
    /// The hint that replaces it, but for its preview.
    pub(super) draft: Draft,
    pub(super) previewer: Previewer,
    /// Maximum number of bytes of the new hint's preview.
    pub(super) budget: usize,
    /// Maximum number of bytes of its preview when it was truncated.
    pub(super) was_previewed_in: usize,
}

impl Shown {
    /// The hint that replaces it, with this preview. One that leads nowhere stays.
    pub(super) fn text(&self, session: &Session, preview: String) -> String {
        let Some(stored) = &self.own.stored else {
            return self.own.hint.render();
        };
        let mut draft = self.draft.clone();
        draft.hint.preview = preview;
        session.hint(draft, Some(stored.location.clone()))
    }
}

impl SlotEdit {
    pub(super) fn new(item: &Item<'_>, outcome: Outcome) -> Self {
        Self {
            decision: item.decision(outcome),
            place: item.place,
            id: item.id,
            grounds: item.grounds,
            content: Content::Kept,
            frame: None,
            arguments: None,
        }
    }

    /// Keeps the item as it is, and its arguments with it.
    pub(super) fn keep(&mut self, reason: Reason) {
        self.decision.keep(reason);
        self.content = Content::Kept;
        if let Some(arguments) = &mut self.arguments {
            arguments.keep(reason);
        }
    }

    /// Returns true if the item is to be replaced.
    pub(super) fn goes(&self) -> bool {
        !matches!(self.content, Content::Kept)
    }

    /// Returns true if only the store can tell what its lines become.
    pub(super) fn has_to_be_compared(&self) -> bool {
        matches!(&self.content, Content::Lines(lines)
            if lines.iter().any(|line| matches!(line.origin, Origin::Apparent(..))))
    }

    /// Number of tokens fewer, including those of the arguments.
    pub(super) fn freed(&self) -> i128 {
        let arguments = self.arguments.as_ref().map_or(0, |edit| edit.freed());
        self.decision.tokens.map_or(0, Change::net) + arguments
    }

    /// Converts lines to the slot's new content: cleared arguments must be JSON.
    pub(super) fn substitute(&self, lines: &[Line]) -> Substitute {
        let texts = lines.iter().map(|line| line.text.as_str());
        match (self.place.subject, &self.frame) {
            (Subject::Result | Subject::UserText, _) => Substitute::Parts(parts_of(lines)),
            (Subject::Arguments, Some(frame)) => Substitute::Arguments(frame.filled(texts)),
            (Subject::Arguments, None) => Substitute::Arguments(cleared_arguments(&join(texts))),
        }
    }

    /// Sets the size to that of `put`. Returns true if that is a gain.
    pub(super) fn resize(&mut self, meter: &Meter, put: &Substitute) -> bool {
        let decision = &mut self.decision;
        decision.resize(bytes_of(put), tokens_of(put, meter));
        decision.bytes.gains(decision.tokens.unwrap_or_default())
    }
}

/// The parts of a cleared result: neighbouring hints are one text.
fn parts_of(lines: &[Line]) -> Vec<Part> {
    let is_kept = |line: &Line| matches!(line.origin, Origin::Itself);
    let parts = lines.chunk_by(|one, next| !is_kept(one) && !is_kept(next));
    let mut texts: Vec<Part> = parts
        .map(|lines| join(lines.iter().map(|line| line.text.as_str())))
        .filter(|text| !text.is_empty())
        .map(Part::Text)
        .collect();
    if texts.is_empty() {
        texts.push("".into());
    }
    texts
}

/// Joins lines into one text, leaving out empty ones.
pub(super) fn join<'l>(lines: impl Iterator<Item = &'l str>) -> String {
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}
