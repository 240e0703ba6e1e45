//! Stores what a plan decided.

use std::collections::VecDeque;

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};

use super::apply::Committed;
use super::choice::Choice;
use super::edit::{Content, SlotEdit};
use super::pass::{NotDone, Pass};
use super::plan::Plan;
use super::shorten::shorten;
use super::stub::{Line, LineText};
use crate::decisions::Substitute;
use crate::error::OffloadError;
use crate::report::{Reason, Sum};

/// Number of results stored concurrently.
const AT_ONCE: usize = 8;

impl Plan {
    /// Stores what is to leave the conversation. No message is touched. Content that was stored
    /// before an error stays stored; committing a new plan is safe.
    ///
    /// # Errors
    ///
    /// [`OffloadError`] if the store failed and `on_offload_error` is `Fail`. By default a result
    /// that could not be stored stays as it is, and the report says so.
    pub async fn commit(self) -> Result<Committed, OffloadError> {
        let Self {
            pass,
            repeated,
            edits,
            mut choice,
            anchor,
            head,
        } = self;
        let mut selection = Selection {
            pass: &pass,
            edits,
            next: 0,
            waiting: VecDeque::new(),
        };
        let mut taken = selection.take(&mut choice).await;
        if choice.is_too_little() {
            selection.give_up(taken.drain(..));
        }
        let mut done = Vec::new();
        while !taken.is_empty() {
            selection.store(&taken, &mut choice).await?;
            done.append(&mut taken);
            // A failed save or a taken name frees less than planned, so the next results go too.
            if choice.has_target() {
                taken = selection.take(&mut choice).await;
            }
        }
        // Stored content stays stored, and is found again once a pass is worth it.
        if choice.is_too_little() {
            selection.give_up(done.into_iter());
        }
        let rest = if choice.is_too_little() {
            Reason::TooLittle
        } else {
            Reason::TargetReached
        };
        let edits = selection.finish(rest);
        Ok(Committed {
            pass,
            repeated,
            edits,
            anchor,
            head,
        })
    }
}

/// The edits of a plan, oldest first, and how far they have been examined.
struct Selection<'s> {
    pass: &'s Pass,
    edits: Vec<SlotEdit>,
    /// Index of the first edit not yet examined.
    next: usize,
    /// Edits that were compared but are not needed yet.
    waiting: VecDeque<usize>,
}

impl Selection<'_> {
    /// Takes as many edits as the target needs. Nothing else is compared or stored.
    async fn take(&mut self, choice: &mut Choice) -> Vec<usize> {
        let mut taken = Vec::new();
        loop {
            while let Some(at) = self.waiting.front().copied() {
                if !choice.try_take(self.edits[at].tokens()) {
                    return taken;
                }
                self.waiting.pop_front();
                taken.push(at);
            }
            if choice.is_enough() || !self.compare_next().await {
                return taken;
            }
        }
    }

    /// Compares the next few edits. Returns `false` if none are left.
    async fn compare_next(&mut self) -> bool {
        let pass = self.pass;
        let mut looks = Vec::with_capacity(AT_ONCE);
        for (at, edit) in self.edits.iter_mut().enumerate().skip(self.next) {
            if looks.len() == AT_ONCE {
                break;
            }
            self.next = at + 1;
            if edit.is_pending() {
                looks.push(async move {
                    shorten(pass, edit).await;
                    (at, edit)
                });
            }
        }
        let looked = join_all(looks).await;
        let is_any = !looked.is_empty();
        for (at, edit) in looked {
            if edit.is_pending() {
                self.waiting.push_back(at);
            }
        }
        is_any
    }

    /// Stores the contents of the edits at `taken`, in ascending order, and corrects the choice by
    /// what they really changed.
    async fn store(&mut self, taken: &[usize], choice: &mut Choice) -> Result<(), OffloadError> {
        let (pass, first) = (self.pass, taken.first().copied().unwrap_or_default());
        let mut wanted = taken.iter().peekable();
        let mut stores = Vec::with_capacity(taken.len());
        for (at, edit) in self.edits.iter_mut().enumerate().skip(first) {
            if wanted.peek().is_none() {
                break;
            }
            if wanted.next_if_eq(&&at).is_some() {
                stores.push(async move {
                    let planned = edit.tokens();
                    store(pass, edit).await?;
                    Ok::<(Sum, Sum), OffloadError>((planned, edit.tokens()))
                });
            }
        }
        let stored: Vec<_> = stream::iter(stores).buffered(AT_ONCE).collect().await;
        for stored in stored {
            let (planned, done) = stored?;
            choice.correct(planned, done);
        }
        Ok(())
    }

    /// Gives up edits because the whole pass frees too little.
    fn give_up(&mut self, taken: impl Iterator<Item = usize>) {
        for at in taken {
            let edit = &mut self.edits[at];
            if edit.is_pending() || edit.is_ready() {
                edit.keep(Reason::TooLittle);
            }
        }
    }

    /// Leaves the remaining edits for `reason`.
    fn finish(mut self, reason: Reason) -> Vec<SlotEdit> {
        for edit in self.edits.iter_mut().filter(|edit| edit.is_pending()) {
            edit.keep(reason);
        }
        self.edits
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
        let (text, locations) = match line {
            Line::Ready(text, locations) => (text, locations),
            Line::Kept(text) => {
                texts.push(LineText {
                    text: text.into(),
                    is_kept: true,
                });
                continue;
            }
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
                (hint.render(), location.into_iter().collect())
            }
            Line::Shorten(..) => return Err(NotDone::Kept(Reason::Unverified)),
        };
        texts.push(LineText {
            text: text.into(),
            is_kept: false,
        });
        edit.decision.locations.extend(locations);
    }
    let put = edit.put(texts);
    // The store has chosen the name, or has failed.
    if !edit.try_resize(pass.session.meter(), &put) {
        return Err(NotDone::Kept(Reason::NoGain));
    }
    Ok(put)
}
