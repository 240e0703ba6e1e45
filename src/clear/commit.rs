//! Stores what a plan decided.

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};

use super::apply::Committed;
use super::edit::{Content, SlotEdit};
use super::pass::{NotDone, Pass};
use super::plan::Plan;
use super::shorten::shorten;
use super::stub::{Line, LineText};
use crate::decisions::Substitute;
use crate::error::OffloadError;
use crate::report::Reason;

/// Number of results stored concurrently.
const AT_ONCE: usize = 8;

impl Plan {
    /// Stores what is to leave the conversation. No message is touched. Content that was stored
    /// before an error stays stored; committing a new plan is safe. Fails if the store failed and
    /// `on_offload_error` is `Fail`.
    pub(super) async fn commit(mut self) -> Result<Committed, OffloadError> {
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
fn give_up_if_too_little(pass: &Pass, edits: &mut [SlotEdit]) {
    let going = || |edit: &&SlotEdit| edit.is_pending() || edit.is_ready();
    let freed: i128 = edits.iter().filter(going()).map(SlotEdit::freed).sum();
    if freed.max(0) < i128::from(pass.at_least()) {
        for edit in edits.iter_mut().filter(|edit| going()(&&**edit)) {
            edit.keep(Reason::TooLittle);
        }
    }
}

/// Stores the content of an edit, which is then ready, or stays as it is.
async fn store(pass: &Pass, edit: &mut SlotEdit) -> Result<(), OffloadError> {
    let put = match std::mem::replace(&mut edit.content, Content::Kept) {
        Content::Lines(lines) => store_lines(pass, edit, lines).await,
        Content::Given(given) => given.store(pass, &mut edit.decision).await,
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
    pass: &Pass,
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
        let text = text.into();
        texts.push(LineText { text, is_kept });
        edit.decision.locations.extend(locations);
    }
    let put = edit.substitute(texts);
    // The store has chosen the name, or has failed.
    if !edit.try_resize(&pass.session.meter, &put) {
        return Err(NotDone::Kept(Reason::NoGain));
    }
    Ok(put)
}
