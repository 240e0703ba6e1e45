//! A clear pass, in three steps: deciding reads a borrowed conversation, storing has none at hand, and applying does no
//! I/O and can't fail (L2).

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::{StreamExt, stream};

use super::edit::{Content, SlotEdit};
use super::lines::Line;
use super::propose::{Bounds, Planner};
use super::scan::count;
use super::stores::{NotDone, Stores};
use crate::backend::Backend;
use crate::backend::content::Target;
use crate::decisions::{Decided, Moment, Substitute, WrittenReplacement};
use crate::error::OffloadError;
use crate::format::Conversation;
use crate::handler::Replacement;
use crate::middleware::Turn;
use crate::report::{CountKind, ErrorSource, Outcome, Reason, Report, TokenCount};
use crate::session::Session;
use crate::slots::{Anchor, Memory, Overlay, Place, Slots};

/// Number of edits that ask stores at once.
const AT_ONCE: usize = 8;

/// A pass on its way.
#[must_use = "a pass does nothing until it is committed and applied"]
pub(crate) struct Pass<'a> {
    session: &'a Session,
    memory: &'a Memory,
    /// The fewest tokens that it must free, or else it changes nothing.
    at_least: u64,
    edits: Vec<SlotEdit>,
    tokens: Option<TokenCount>,
    /// The provider's count that this pass's count builds on.
    anchor: Option<Anchor>,
}

impl<'a> Pass<'a> {
    /// Plans a pass over a conversation as it is shown before this `turn`, in which places that are `taken` have been
    /// decided about. Many new texts are counted on another thread.
    pub(crate) async fn plan(
        session: &'a Session,
        memory: &'a Memory,
        shown: &dyn Conversation,
        turn: &Turn<'_>,
        taken: HashSet<Place>,
    ) -> Self {
        let bounds = Bounds::of(&session.settings, turn);
        let counted = match turn.repeats_only {
            true => None,
            false => count(session, memory, shown, turn, bounds.threshold).await,
        };
        let (tokens, anchor) = counted.unzip();
        let mut edits = Vec::new();
        if let Some(tokens) = tokens
            && tokens.counted > bounds.threshold
            && tokens.count_kind == CountKind::Counted
        {
            let known = memory.known();
            let slots = Slots::of(shown, &known.originals).counted(&session.meter);
            let planner = Planner::new(session, bounds, &known, &slots, taken);
            edits = planner.choose(tokens.counted);
        }
        Self {
            session,
            memory,
            at_least: bounds.at_least,
            edits,
            tokens,
            anchor: anchor.flatten(),
        }
    }

    /// Stores what is to leave the conversation. Content that was stored before an error stays stored; committing a new
    /// plan is safe. Fails if the store failed and `on_offload_error` is `Fail`.
    pub(crate) async fn commit(mut self) -> Result<Self, OffloadError> {
        let stores = Stores::new(self.session);
        let mut compared = Vec::new();
        for edit in &mut self.edits {
            compared.push(compare(&stores, edit));
        }
        let compared = stream::iter(compared).buffered(AT_ONCE);
        compared.collect::<()>().await;
        self.give_up_if_too_little();
        let mut stored = Vec::new();
        for edit in &mut self.edits {
            stored.push(store(&stores, edit));
        }
        let stored = stream::iter(stored).buffered(AT_ONCE);
        let stored: Vec<_> = stored.collect().await;
        stored.into_iter().collect::<Result<(), _>>()?;
        // Stored content stays stored, and is found again once a pass is worth it.
        self.give_up_if_too_little();
        Ok(self)
    }

    /// Keeps everything if the whole pass frees too little.
    fn give_up_if_too_little(&mut self) {
        let going = self.edits.iter().filter(|edit| edit.goes());
        if going.map(SlotEdit::freed).sum::<i128>().max(0) < i128::from(self.at_least) {
            for edit in self.edits.iter_mut().filter(|edit| edit.goes()) {
                edit.keep(Reason::TooLittle);
            }
        }
    }

    /// Makes the edits over the conversation that was planned. Returns the report about them, which is not passed
    /// to observers yet, and what was decided about which places.
    pub(crate) fn apply(self, overlay: &mut Overlay<'_>) -> (Report, Vec<(Place, Decided)>) {
        let mut known = self.memory.known();
        let final_reasons = self.edits.iter().flat_map(SlotEdit::final_reason);
        known.settled.extend(final_reasons);
        let (mut decisions, mut new) = (Vec::new(), Vec::new());
        for edit in self.edits.into_iter().flat_map(SlotEdit::into_parts) {
            if let Content::Ready(put) = edit.content {
                let decided = Decided {
                    slot: edit.id,
                    moment: Moment::Pass,
                    put: WrittenReplacement::of(&put, &[]),
                    locations: edit.decision.locations.clone(),
                };
                if overlay.put(edit.place, put) {
                    new.push((edit.place, decided));
                }
            }
            decisions.push(edit.decision);
        }
        let mut report = Report {
            decisions,
            tokens: self.tokens,
            ..Report::default()
        };
        if let Some(anchor) = self.anchor {
            known.record_saved(anchor, report.cleared_input_tokens());
        }
        let threshold = self.session.settings.max_tokens_for_clear;
        report.notice = known.tell_once(report.beyond_help(threshold));
        (report, new)
    }
}

/// Compares the apparent hints of an edit with the stored content. The edit then holds the lines
/// that replace them, and their sizes if no name is taken; or it stays as it is.
async fn compare(stores: &Stores<'_>, edit: &mut SlotEdit) {
    if !edit.has_to_be_compared() {
        return;
    }
    let Content::Lines(lines) = std::mem::replace(&mut edit.content, Content::Kept) else {
        return;
    };
    let mut compared = Vec::with_capacity(lines.len());
    for line in lines {
        match line.compared(stores, &mut edit.decision).await {
            Ok(line) => compared.push(line),
            Err(reason) => return edit.keep(reason),
        }
    }
    let is_stored = compared
        .iter()
        .any(|line| matches!(line, Line::Store { .. }));
    if is_stored {
        edit.decision.outcome = Outcome::Cleared;
    }
    let put = edit.substitute(&compared);
    if edit.try_resize(&stores.session.meter, &put) {
        edit.content = Content::Lines(compared);
    } else {
        edit.keep(match is_stored {
            true => Reason::NoGain,
            false => Reason::AlreadyHint,
        });
    }
}

/// Stores the content of an edit, which is then ready, or stays as it is.
async fn store(stores: &Stores<'_>, edit: &mut SlotEdit) -> Result<(), OffloadError> {
    let put = match std::mem::replace(&mut edit.content, Content::Kept) {
        Content::Lines(lines) => store_lines(stores, edit, lines).await,
        Content::Given(replacement, store) => store_given(stores, edit, &replacement, store).await,
        content @ (Content::Kept | Content::Ready(_)) => {
            edit.content = content;
            return Ok(());
        }
    };
    match put {
        Ok(put) => {
            edit.content = Content::Ready(put);
            if let Some(arguments) = &mut edit.arguments {
                arguments.decision.outcome = edit.decision.outcome;
            }
        }
        Err(NotDone::Kept(reason)) => edit.keep(reason),
        Err(NotDone::Failed(error)) => return Err(error),
    }
    Ok(())
}

async fn store_lines(
    stores: &Stores<'_>,
    edit: &mut SlotEdit,
    lines: Vec<Line>,
) -> Result<Substitute, NotDone> {
    let mut stored = Vec::with_capacity(lines.len());
    for line in lines {
        stored.push(line.stored(stores, &mut edit.decision).await?);
    }
    let put = edit.substitute(&stored);
    // The store has chosen the name, or has failed.
    if !edit.try_resize(&stores.session.meter, &put) {
        return Err(NotDone::Kept(Reason::NoGain));
    }
    Ok(put)
}

/// Stores the content of a handler's replacement, if there is any.
async fn store_given(
    stores: &Stores<'_>,
    edit: &mut SlotEdit,
    replacement: &Replacement,
    store: Option<(Arc<dyn Backend>, Target)>,
) -> Result<Substitute, NotDone> {
    let mut location = None;
    if let (Some((backend, target)), Some(content)) = (store, replacement.content.clone()) {
        let decision = &mut edit.decision;
        location = stores.save(&backend, &target, content, decision).await?;
    }
    let parts = replacement.show(location.as_ref()).map_err(|error| {
        edit.decision.fail(ErrorSource::Handler.said(&error));
        NotDone::Kept(Reason::Handler)
    })?;
    let put = Substitute::Parts(parts);
    edit.resize(&stores.session.meter, &put);
    edit.decision.locations.extend(location);
    Ok(put)
}
