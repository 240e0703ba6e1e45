//! Storing what a plan decided.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};

use super::choice::{self, Choice};
use super::compare::compare_lines;
use super::gain::{replacement, size};
use super::ledger::{Origin, Put};
use super::lines::join;
use super::outages::{NotDone, Outages};
use super::{Action, Committed, Edit, Given, Line, Place, Plan, Ready, ToStore};
use crate::backend::Location;
use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::report::{Change, Decision, Outcome, Reason, Report, Sum};
use crate::session::Session;

/// How many results are stored at once.
const AT_ONCE: usize = 8;

impl Plan {
    /// Stores what is to leave the conversation. No message is touched. What was stored before an
    /// error stays stored; committing a plan made anew is safe.
    ///
    /// # Errors
    ///
    /// [`Error::Offload`] if the store failed and `on_offload_error` is `Fail`. By default a result
    /// that could not be stored stays as it is, and the report says so.
    pub async fn commit(self) -> Result<Committed, Error> {
        self.commit_knowing(&Outages::default()).await
    }

    /// The same, where it may be known already that a store is unavailable.
    pub(super) async fn commit_knowing(self, outages: &Outages) -> Result<Committed, Error> {
        let Self {
            session,
            ledger,
            edits,
            mut choice,
            anchor,
            mut report,
        } = self;
        let mut ready = Vec::new();
        let edits = edits
            .into_iter()
            .filter_map(|edit| edit.or_ready(&mut ready))
            .collect();
        let mut selection = Selection {
            session: &session,
            outages,
            edits,
            waiting: VecDeque::new(),
            settled: Vec::new(),
        };
        let mut taken = selection.take(&mut choice, &mut report).await;
        if choice.is_too_little() {
            for (edit, _) in taken.drain(..) {
                edit.keep(&mut report, Reason::TooLittle);
            }
        }
        let mut done = Vec::new();
        while !taken.is_empty() {
            let planned: Vec<Sum> = taken.iter().map(|(_, tokens)| *tokens).collect();
            let stores = taken
                .into_iter()
                .map(|(edit, _)| store_edit(&session, outages, edit));
            let stored: Vec<_> = stream::iter(stores).buffered(AT_ONCE).collect().await;
            for (planned, stored) in planned.into_iter().zip(stored) {
                let Stored { ready, tokens } = stored?.note(&mut report);
                choice.correct(planned, tokens);
                done.extend(ready);
            }
            // A save that failed, or a name that was taken, freed less: then the next results go
            // too.
            taken = if choice.has_target() {
                selection.take(&mut choice, &mut report).await
            } else {
                Vec::new()
            };
        }
        // What is stored stays stored, and is found again when this is worth a pass.
        if choice.is_too_little() {
            done.drain(..)
                .for_each(|ready: Ready| report.decisions[ready.decision].keep(Reason::TooLittle));
        }
        ready.extend(done);
        let settled = selection.leave(&mut report);
        Ok(Committed {
            session,
            ledger,
            ready,
            settled,
            anchor,
            report,
        })
    }

    /// What was decided before is repeated, and nothing else is done.
    pub(super) fn repeat_only(self, reason: Reason) -> Committed {
        let Self {
            session,
            ledger,
            edits,
            anchor,
            mut report,
            ..
        } = self;
        let mut ready = Vec::new();
        for edit in edits
            .into_iter()
            .filter_map(|edit| edit.or_ready(&mut ready))
        {
            edit.keep(&mut report, reason);
        }
        Committed {
            session,
            ledger,
            ready,
            settled: Vec::new(),
            anchor,
            report,
        }
    }
}

/// The new edits, oldest first, and how far they have been looked at.
struct Selection<'s> {
    session: &'s Session,
    outages: &'s Outages,
    edits: VecDeque<NewEdit>,
    /// What was compared, and is not needed yet.
    waiting: VecDeque<(NewEdit, Sum)>,
    /// What was compared, and stays for good.
    settled: Vec<(Fingerprint, Reason)>,
}

impl Selection<'_> {
    /// The next ones that it takes to reach the target, with what they change where their names are
    /// not taken. Nothing is compared, or stored, that is not needed for that.
    async fn take(&mut self, choice: &mut Choice, report: &mut Report) -> Vec<(NewEdit, Sum)> {
        let mut taken = Vec::new();
        loop {
            while let Some((edit, tokens)) = self.waiting.pop_front() {
                if !choice.takes(tokens) {
                    self.waiting.push_front((edit, tokens));
                    return taken;
                }
                taken.push((edit, tokens));
            }
            if choice.is_enough() || self.edits.is_empty() {
                return taken;
            }
            let batch = self.edits.drain(..AT_ONCE.min(self.edits.len()));
            let compared = batch
                .map(|edit| compare_edit(self.session, self.outages, edit))
                .collect::<Vec<_>>();
            for outcome in join_all(compared).await {
                match outcome {
                    Compared::Kept(index, decision, original) => {
                        let is_for_good = |reason| {
                            matches!(
                                reason,
                                Reason::Unverified | Reason::AlreadyHint | Reason::NoGain
                            )
                        };
                        if let Outcome::Kept(reason) = decision.outcome
                            && is_for_good(reason)
                        {
                            self.settled.push((
                                original.settles_as(self.session.meter(), &decision.tool),
                                reason,
                            ));
                        }
                        report.decisions[index] = decision;
                    }
                    Compared::Ready(edit, tokens) => self.waiting.push_back((edit, tokens)),
                }
            }
        }
    }

    /// The target was reached without the rest. Gives what was compared and stays for good.
    fn leave(self, report: &mut Report) -> Vec<(Fingerprint, Reason)> {
        for edit in self
            .waiting
            .into_iter()
            .map(|(edit, _)| edit)
            .chain(self.edits)
        {
            edit.keep(report, Reason::TargetReached);
        }
        self.settled
    }
}

/// What became of an edit before anything is stored.
enum Compared {
    /// The slot stays as it is.
    Kept(usize, Decision, Origin),
    /// It can be done, and changes so much.
    Ready(NewEdit, Sum),
}

/// An edit that was never made before.
struct NewEdit {
    index: usize,
    decision: Decision,
    place: Place,
    original: Origin,
    content: Content,
}

/// What is put there.
enum Content {
    Lines(Vec<Line>),
    Given(Box<Given>),
}

impl NewEdit {
    /// It is not done.
    fn keep(mut self, report: &mut Report, reason: Reason) {
        self.decision.keep(reason);
        report.decisions[self.index] = self.decision;
        if let Content::Given(given) = self.content
            && let Some(arguments) = given.arguments
        {
            report.decisions[arguments.index].keep(reason);
        }
    }
}

impl Edit {
    /// The edit, if it is a new one. One that repeats what was done before has nothing to wait for.
    fn or_ready(self, ready: &mut Vec<Ready>) -> Option<NewEdit> {
        let Self {
            decision: index,
            place,
            original,
            action,
        } = self;
        match action {
            Action::Repeat(replacement) => {
                ready.push(Ready {
                    decision: index,
                    place,
                    original,
                    replacement,
                    is_repeat: true,
                    with: None,
                });
                None
            }
            Action::Hints(decision, lines) => Some(NewEdit {
                index,
                decision,
                place,
                original,
                content: Content::Lines(lines),
            }),
            Action::Given(decision, given) => Some(NewEdit {
                index,
                decision,
                place,
                original,
                content: Content::Given(given),
            }),
        }
    }
}

async fn compare_edit(session: &Session, outages: &Outages, edit: NewEdit) -> Compared {
    let NewEdit {
        index,
        mut decision,
        place,
        original,
        content,
    } = edit;
    let lines = match content {
        Content::Lines(lines) => lines,
        Content::Given(given) => {
            let tokens = given.tokens(&decision);
            let content = Content::Given(given);
            return Compared::Ready(
                NewEdit {
                    index,
                    decision,
                    place,
                    original,
                    content,
                },
                tokens,
            );
        }
    };
    match compare_lines(session, outages, place, lines, &mut decision).await {
        Ok((lines, tokens)) => Compared::Ready(
            NewEdit {
                index,
                decision,
                place,
                original,
                content: Content::Lines(lines),
            },
            tokens,
        ),
        Err(reason) => {
            decision.keep(reason);
            Compared::Kept(index, decision, original)
        }
    }
}

/// What became of an edit in the store.
struct Outcomes {
    index: usize,
    decision: Decision,
    /// The decision about the arguments that go with it, and its index.
    arguments: Option<(usize, Decision)>,
    /// Empty if the slot stays as it is.
    ready: Vec<Ready>,
}

/// What is stored, and what putting it there changes.
struct Stored {
    ready: Vec<Ready>,
    tokens: Sum,
}

impl Outcomes {
    /// Notes in the report what became of it.
    fn note(self, report: &mut Report) -> Stored {
        let Self {
            index,
            decision,
            arguments,
            ready,
        } = self;
        let mut tokens = choice::tokens(decision.tokens);
        // What was said of the arguments holds only if they are replaced.
        if let Some((at, mut arguments)) = arguments {
            match decision.outcome {
                Outcome::Kept(reason) => arguments.keep(reason),
                outcome => arguments.outcome = outcome,
            }
            tokens = tokens.plus(choice::tokens(arguments.tokens));
            report.decisions[at] = arguments;
        }
        report.decisions[index] = decision;
        Stored { ready, tokens }
    }
}

async fn store_edit(
    session: &Session,
    outages: &Outages,
    edit: NewEdit,
) -> Result<Outcomes, Error> {
    let NewEdit {
        index,
        mut decision,
        place,
        original,
        content,
    } = edit;
    let mut arguments = None;
    let ready = match content {
        Content::Lines(lines) => store_lines(session, outages, place, lines, &mut decision)
            .await
            .map(|replacement| {
                let replacement = Arc::new(replacement);
                vec![Ready {
                    decision: index,
                    place,
                    original,
                    replacement,
                    is_repeat: false,
                    with: None,
                }]
            }),
        Content::Given(given) => {
            // In the report it may have been kept: fewer were expected to go.
            arguments = given
                .arguments
                .as_ref()
                .map(|arguments| (arguments.index, arguments.decision.clone()));
            given
                .save(session, outages, index, &mut decision, place, original)
                .await
        }
    };
    let ready = match ready {
        Ok(ready) => ready,
        Err(NotDone::Kept(reason)) => {
            decision.keep(reason);
            Vec::new()
        }
        Err(NotDone::Failed(source)) => {
            let Decision { tool, call_id, .. } = decision;
            return Err(Error::Offload {
                tool,
                call_id,
                source,
            });
        }
    };
    Ok(Outcomes {
        index,
        decision,
        arguments,
        ready,
    })
}

async fn store_lines(
    session: &Session,
    outages: &Outages,
    place: Place,
    lines: Vec<Line>,
    decision: &mut Decision,
) -> Result<Put, NotDone> {
    let mut texts = Vec::with_capacity(lines.len());
    for line in lines {
        let (text, locations) = match line {
            Line::Ready(text, locations) => (text, locations),
            Line::Store(store) => {
                let (text, location) = save(session, outages, *store, decision).await?;
                (text, location.into_iter().collect())
            }
            Line::Shorten(_) => return Err(NotDone::Kept(Reason::Unverified)),
        };
        texts.push(text);
        decision.locations.extend(locations);
    }
    let replacement = replacement(place, join(texts.into_iter()));
    // A text that says "not saved" was not reckoned with before.
    let (bytes, tokens) = size(session, &replacement, decision).map_err(NotDone::Kept)?;
    decision.bytes.after = bytes;
    decision.tokens = decision.tokens.map(|change| Change {
        after: tokens,
        ..change
    });
    Ok(replacement)
}

async fn save(
    session: &Session,
    outages: &Outages,
    store: ToStore,
    decision: &mut Decision,
) -> Result<(String, Option<Location>), NotDone> {
    let ToStore {
        backend,
        target,
        content,
        draft,
    } = store;
    let location = match outages.ask(&backend, target.save(&backend, content)).await {
        Ok(location) => Some(location),
        Err(none) => {
            none.settle(session.settings().on_offload_error, decision)?;
            None
        }
    };
    Ok((draft.render(session, location.clone()), location))
}
