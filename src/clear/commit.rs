//! Stores what a plan decided.

use std::sync::Arc;

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};

use super::apply::Committed;
use super::edit::{Content, SlotEdit};
use super::pass::{NotDone, Pass};
use super::plan::Plan;
use super::shorten::shorten;
use super::stub::{Line, LineText};
use crate::backend::Backend;
use crate::backend::content::Target;
use crate::decisions::Substitute;
use crate::error::OffloadError;
use crate::handler::Replacement;
use crate::report::{ErrorSource, Reason};

/// Number of results stored concurrently.
const AT_ONCE: usize = 8;

impl<'a> Plan<'a> {
    /// Stores what is to leave the conversation. No message is touched. Content that was stored
    /// before an error stays stored; committing a new plan is safe. Fails if the store failed and
    /// `on_offload_error` is `Fail`.
    pub(super) async fn commit(mut self) -> Result<Committed<'a>, OffloadError> {
        let pass = &self.pass;
        let mut waiting: Vec<_> = pending(&mut self.edits).collect();
        for batch in waiting.chunks_mut(AT_ONCE) {
            let mut looks = Vec::with_capacity(AT_ONCE);
            for edit in batch {
                looks.push(shorten(pass, edit));
            }
            join_all(looks).await;
        }
        give_up_if_too_little(pass, &mut self.edits);
        let mut stores = Vec::new();
        for edit in pending(&mut self.edits) {
            stores.push(store(pass, edit));
        }
        let stored: Vec<_> = stream::iter(stores).buffered(AT_ONCE).collect().await;
        stored.into_iter().collect::<Result<(), _>>()?;
        // Stored content stays stored, and is found again once a pass is worth it.
        give_up_if_too_little(pass, &mut self.edits);
        Ok(Committed(self))
    }
}

/// The edits that are not ready yet, oldest first.
fn pending(edits: &mut [SlotEdit]) -> impl Iterator<Item = &mut SlotEdit> {
    edits.iter_mut().filter(|edit| edit.is_pending())
}

/// Keeps everything if the whole pass frees too little.
fn give_up_if_too_little(pass: &Pass<'_>, edits: &mut [SlotEdit]) {
    let going = edits.iter().filter(|edit| edit.goes());
    if going.map(SlotEdit::freed).sum::<i128>().max(0) < i128::from(pass.at_least()) {
        for edit in edits.iter_mut().filter(|edit| edit.goes()) {
            edit.keep(Reason::TooLittle);
        }
    }
}

/// Stores the content of an edit, which is then ready, or stays as it is.
async fn store(pass: &Pass<'_>, edit: &mut SlotEdit) -> Result<(), OffloadError> {
    let put = match std::mem::replace(&mut edit.content, Content::Kept) {
        Content::Lines(lines) => store_lines(pass, edit, lines).await,
        Content::Given(replacement, store) => store_given(pass, edit, &replacement, store).await,
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
            Ok(())
        }
        Err(NotDone::Kept(reason)) => {
            edit.keep(reason);
            Ok(())
        }
        Err(NotDone::Failed(error)) => Err(error),
    }
}

async fn store_lines(
    pass: &Pass<'_>,
    edit: &mut SlotEdit,
    lines: Vec<Line>,
) -> Result<Substitute, NotDone> {
    let mut texts = Vec::with_capacity(lines.len());
    for line in lines {
        let is_kept = matches!(line, Line::Kept(_));
        let (text, locations) = match line {
            Line::Ready(text, locations) => (text, locations),
            Line::Kept(text) => (text, Vec::new()),
            Line::Store {
                backend,
                target,
                content,
                draft,
                ..
            } => {
                let decision = &mut edit.decision;
                let location = pass.store(&backend, &target, content, decision).await?;
                let hint = pass.session.hint(*draft, location.clone());
                (hint, location.into_iter().collect())
            }
            // `shorten` has replaced these.
            Line::Shorten(..) => return Err(NotDone::Kept(Reason::Unverified)),
        };
        texts.push(LineText { text, is_kept });
        edit.decision.locations.extend(locations);
    }
    let put = edit.substitute(&texts);
    // The store has chosen the name, or has failed.
    if !edit.try_resize(&pass.session.meter, &put) {
        return Err(NotDone::Kept(Reason::NoGain));
    }
    Ok(put)
}

/// Stores the content of a handler's replacement, if there is any.
async fn store_given(
    pass: &Pass<'_>,
    edit: &mut SlotEdit,
    replacement: &Replacement,
    store: Option<(Arc<dyn Backend>, Target)>,
) -> Result<Substitute, NotDone> {
    let mut location = None;
    if let (Some((backend, target)), Some(content)) = (store, replacement.content.clone()) {
        let decision = &mut edit.decision;
        location = pass.store(&backend, &target, content, decision).await?;
    }
    let parts = replacement.show(location.as_ref()).map_err(|error| {
        edit.decision.fail(ErrorSource::Handler.said(&error));
        NotDone::Kept(Reason::Handler)
    })?;
    let put = Substitute::Parts(parts);
    edit.resize(&pass.session.meter, &put);
    edit.decision.locations.extend(location);
    Ok(put)
}
