//! Storing what a plan decided.

use std::sync::Arc;

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};

use super::ledger::{Origin, Put};
use super::outages::{NoAnswer, NotDone, Outages};
use super::{Action, Committed, Edit, Given, Line, Place, Plan, Ready, ToShorten, ToStore, cleared_arguments};
use crate::backend::{ErrorKind, Location};
use crate::content::Part;
use crate::error::Error;
use crate::read_back::{Said, shows_only, texts_in};
use crate::report::{Change, Decision, Outcome, Reason, Report};
use crate::session::Session;

/// How many results are stored at once.
const AT_ONCE: usize = 8;

impl Plan {
    /// Stores what is to leave the conversation. No message is touched. What was stored before an error stays stored; committing
    /// a plan made anew is safe.
    ///
    /// # Errors
    ///
    /// [`Error::Offload`] if the store failed and `on_offload_error` is `Fail`. By default a result that could not be stored
    /// stays as it is, and the report says so.
    pub async fn commit(self) -> Result<Committed, Error> {
        self.commit_knowing(&Outages::default()).await
    }

    /// The same, where it may be known already that a store is unavailable.
    pub(super) async fn commit_knowing(self, outages: &Outages) -> Result<Committed, Error> {
        let Self { session, ledger, edits, mut choice, anchor, mut report } = self;
        let (mut ready, mut compared, mut unverified) = (Vec::new(), Vec::new(), Vec::new());
        let mut edits = edits.into_iter().filter_map(|edit| edit.or_ready(&mut ready));
        loop {
            // Nothing is compared, or stored, that is not needed to reach the target.
            let batch: Vec<NewEdit> = edits.by_ref().take(AT_ONCE).collect();
            if batch.is_empty() {
                break;
            }
            let is_enough = choice.is_enough();
            for outcome in
                join_all(batch.into_iter().map(|edit| compare_edit(&session, outages, edit, is_enough))).await
            {
                match outcome {
                    Compared::Kept(index, decision, original) => {
                        if decision.outcome == Outcome::Kept(Reason::Unverified) {
                            unverified.push(original);
                        }
                        report.decisions[index] = decision;
                    }
                    Compared::Ready(edit, gain) if !choice.takes(gain) => edit.keep(&mut report, Reason::TargetReached),
                    Compared::Ready(edit, _) => compared.push(edit),
                }
            }
        }
        if choice.is_too_little() {
            for edit in compared.drain(..) {
                edit.keep(&mut report, Reason::TooLittle);
            }
        }
        let stored: Vec<Result<Stored, Error>> =
            stream::iter(compared.into_iter().map(|edit| store_edit(&session, outages, edit)))
                .buffered(AT_ONCE)
                .collect()
                .await;
        for outcome in stored {
            let Stored { index, decision, arguments, ready: stored } = outcome?;
            // What was said of the arguments holds only if they are replaced.
            if let Some((at, arguments)) = arguments {
                report.decisions[at] = arguments;
                match decision.outcome {
                    Outcome::Kept(reason) => report.decisions[at].keep(reason),
                    outcome => report.decisions[at].outcome = outcome,
                }
            }
            report.decisions[index] = decision;
            ready.extend(stored);
        }
        Ok(Committed { session, ledger, ready, unverified, anchor, report })
    }
}

/// What became of an edit before anything is stored.
enum Compared {
    /// The slot stays as it is.
    Kept(usize, Decision, Origin),
    /// It can be done, and gains at least so many tokens.
    Ready(NewEdit, u64),
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
        let Self { decision: index, place, original, action } = self;
        match action {
            Action::Repeat(replacement) => {
                ready.push(Ready { decision: index, place, original, replacement, is_repeat: true, with: None });
                None
            }
            Action::Hints(decision, lines) => {
                Some(NewEdit { index, decision, place, original, content: Content::Lines(lines) })
            }
            Action::Given(decision, given) => {
                Some(NewEdit { index, decision, place, original, content: Content::Given(given) })
            }
        }
    }
}

async fn compare_edit(session: &Session, outages: &Outages, edit: NewEdit, is_enough: bool) -> Compared {
    let NewEdit { index, mut decision, place, original, content } = edit;
    let lines = match content {
        Content::Lines(lines) => lines,
        Content::Given(given) => {
            let gain = given.gain(&decision);
            let content = Content::Given(given);
            return Compared::Ready(NewEdit { index, decision, place, original, content }, gain);
        }
    };
    let outcome = if is_enough {
        Err(Reason::TargetReached)
    } else {
        compare_lines(session, outages, place, lines, &mut decision).await
    };
    match outcome {
        Ok((lines, gain)) => {
            Compared::Ready(NewEdit { index, decision, place, original, content: Content::Lines(lines) }, gain)
        }
        Err(reason) => {
            decision.keep(reason);
            Compared::Kept(index, decision, original)
        }
    }
}

/// Compares what is to be shortened with what is stored, and says what the lines gain at least.
async fn compare_lines(
    session: &Session,
    outages: &Outages,
    place: Place,
    lines: Vec<Line>,
    decision: &mut Decision,
) -> Result<(Vec<Line>, u64), Reason> {
    let mut compared = Vec::with_capacity(lines.len());
    for line in lines {
        compared.push(match line {
            Line::Shorten(shorten) => compare(session, outages, *shorten, decision).await?,
            line => line,
        });
    }
    let mut most = 0;
    for choice in [0, 1] {
        let (_, tokens) = size(session, &replacement(place, Line::render_all(&compared, session, choice)), decision)?;
        most = most.max(tokens);
    }
    Ok((compared, decision.tokens.map_or(0, |change| change.before) - most))
}

/// What became of an edit in the store.
struct Stored {
    index: usize,
    decision: Decision,
    /// The decision about the arguments that go with it, and its index.
    arguments: Option<(usize, Decision)>,
    /// Empty if the slot stays as it is.
    ready: Vec<Ready>,
}

async fn store_edit(session: &Session, outages: &Outages, edit: NewEdit) -> Result<Stored, Error> {
    let NewEdit { index, mut decision, place, original, content } = edit;
    let mut arguments = None;
    let ready = match content {
        Content::Lines(lines) => store_lines(session, outages, place, lines, &mut decision).await.map(|replacement| {
            let replacement = Arc::new(replacement);
            vec![Ready { decision: index, place, original, replacement, is_repeat: false, with: None }]
        }),
        Content::Given(given) => {
            // In the report it may have been kept: fewer were expected to go.
            arguments = given.arguments.as_ref().map(|arguments| (arguments.index, arguments.decision.clone()));
            given.save(session, outages, index, &mut decision, place, original).await
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
            return Err(Error::Offload { tool, call_id, source });
        }
    };
    Ok(Stored { index, decision, arguments, ready })
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
        let (text, location) = match line {
            Line::Ready(text, location) => (text, location),
            Line::Store(store) => save(session, outages, *store, decision).await?,
            Line::Shorten(_) => return Err(NotDone::Kept(Reason::Unverified)),
        };
        texts.push(text);
        decision.locations.extend(location);
    }
    let replacement = replacement(place, texts.join("\n"));
    // A text that says "not saved" was not reckoned with before.
    let (bytes, tokens) = size(session, &replacement, decision).map_err(NotDone::Kept)?;
    decision.bytes.after = bytes;
    decision.tokens = decision.tokens.map(|change| Change { after: tokens, ..change });
    Ok(replacement)
}

fn replacement(place: Place, text: String) -> Put {
    match place {
        Place::Result { .. } => Put::Parts(vec![Part::Text(text)]),
        Place::Arguments { .. } => Put::Arguments(cleared_arguments(&text)),
    }
}

/// The bytes and tokens of what is put there; it has to be fewer bytes and no more tokens than what stands there.
fn size(session: &Session, replacement: &Put, decision: &Decision) -> Result<(u64, u64), Reason> {
    let text = match replacement {
        Put::Parts(parts) => match &parts[..] {
            [Part::Text(text)] => text,
            _ => return Err(Reason::NoGain),
        },
        Put::Arguments(text) => text,
    };
    let (bytes, tokens) = (text.len() as u64, session.meter().text(text));
    if bytes >= decision.bytes.before || tokens > decision.tokens.map_or(0, |change| change.before) {
        return Err(Reason::NoGain);
    }
    Ok((bytes, tokens))
}

/// The short hint, if what is shown is what is stored; else what there is to do otherwise.
async fn compare(
    session: &Session,
    outages: &Outages,
    shorten: ToShorten,
    decision: &mut Decision,
) -> Result<Line, Reason> {
    let ToShorten { shown, stored, mut draft, preview: (preview, budget), was_previewed_in, otherwise } = shorten;
    let own = |text: &str| preview.own(text, was_previewed_in)?.ok();
    let said = Said { prose: session.prose(), tool: &draft.tool, reader: session.reader(), own: &own };
    let content = match outages.ask(&stored.backend, stored.whole()).await {
        Ok(content) => content,
        Err(NoAnswer::Failed(error)) if error.kind() == ErrorKind::NotFound => None,
        // Nobody knows. Nothing needs to be stored for it, so it is no failure to offload.
        Err(error) => {
            decision.error = Some(error.to_string());
            return Err(Reason::StoreFailed);
        }
    };
    let Some(content) = content.filter(|content| shows_only(&shown, content, said)) else {
        // No genuine page of what is stored is a text like any other.
        decision.outcome = Outcome::Cleared;
        return otherwise.map(|otherwise| *otherwise).ok_or(Reason::Unverified);
    };
    let (_, text) = texts_in(&shown, &content).unwrap_or((0, &content));
    draft.hint.preview = preview.show(&String::from_utf8_lossy(text), budget).0;
    Ok(Line::Ready(draft.render(session, Some(stored.location.clone())), Some(stored.location)))
}

async fn save(
    session: &Session,
    outages: &Outages,
    store: ToStore,
    decision: &mut Decision,
) -> Result<(String, Option<Location>), NotDone> {
    let ToStore { backend, target, content, draft } = store;
    let location = match outages.ask(&backend, target.save(&backend, content)).await {
        Ok(location) => Some(location),
        Err(none) => {
            none.settle(session.settings().on_offload_error, decision)?;
            None
        }
    };
    Ok((draft.render(session, location.clone()), location))
}
