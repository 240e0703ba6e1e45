//! Storing what a plan decided, then changing the messages.

use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::ledger::{Fingerprint, Origin, Replacement, lock};
use super::{Action, Committed, Edit, Line, Place, Plan, Ready, ToShorten, ToStore, cleared_arguments};
use crate::backend::{BackendError, ErrorKind, Location};
use crate::config::OnOffloadError;
use crate::content::Part;
use crate::error::Error;
use crate::format::{Conversation, Piece};
use crate::hint::{Facts, Hint, Kind, Language, count_lines};
use crate::preview::holds_only;
use crate::read_back::is_genuine;
use crate::report::{Change, Decision, Outcome, Reason, Report, Subject};
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
        let Self { session, ledger, edits, anchor, mut report } = self;
        let outcomes: Vec<Result<Committing, Error>> = stream::iter(edits.into_iter().map(|edit| {
            let decision = report.decisions[edit.decision].clone();
            commit_edit(&session, edit, decision)
        }))
        .buffered(AT_ONCE)
        .collect()
        .await;
        let (mut ready, mut unverified) = (Vec::new(), Vec::new());
        for outcome in outcomes {
            let Committing { index, decision, original, replacement, place, is_repeat } = outcome?;
            match replacement {
                Some(replacement) => ready.push(Ready { decision: index, place, original, replacement, is_repeat }),
                None if decision.outcome == Outcome::Kept(Reason::Unverified) => unverified.push(original),
                None => {}
            }
            report.decisions[index] = decision;
        }
        Ok(Committed { session, ledger, ready, unverified, anchor, report })
    }
}

/// What became of an edit.
struct Committing {
    index: usize,
    decision: Decision,
    place: Place,
    original: Origin,
    /// `None` if the slot stays as it is.
    replacement: Option<Replacement>,
    is_repeat: bool,
}

async fn commit_edit(session: &Session, edit: Edit, mut decision: Decision) -> Result<Committing, Error> {
    let Edit { decision: index, place, original, action } = edit;
    let is_repeat = matches!(action, Action::Repeat(_));
    let replacement = match action {
        Action::Repeat(replacement) => Some(replacement),
        Action::Hints(lines) => match store_lines(session, place, lines, &mut decision).await {
            Ok(replacement) => Some(replacement),
            Err(Unsaid::Kept(reason)) => {
                decision.keep(reason);
                None
            }
            Err(Unsaid::Failed(source)) => {
                let Decision { tool, call_id, .. } = decision;
                return Err(Error::Offload { tool, call_id, source });
            }
        },
    };
    Ok(Committing { index, decision, place, original, replacement, is_repeat })
}

/// Why lines can't be said.
enum Unsaid {
    /// The slot stays as it is.
    Kept(Reason),
    /// The store failed, and that is to fail.
    Failed(BackendError),
}

/// Compares what is to be shortened with what is stored, then stores the rest: nothing is stored beside what stays.
async fn store_lines(
    session: &Session,
    place: Place,
    lines: Vec<Line>,
    decision: &mut Decision,
) -> Result<Replacement, Unsaid> {
    let mut compared = Vec::with_capacity(lines.len());
    for line in lines {
        compared.push(match line {
            Line::Shorten(shorten) => compare(session, *shorten, decision).await?,
            line => line,
        });
    }
    for choice in [0, 1] {
        check_gain(session, &replacement(place, Line::render_all(&compared, session, choice)), decision)?;
    }
    let mut texts = Vec::with_capacity(compared.len());
    for line in compared {
        let (text, location) = match line {
            Line::Ready(text, location) => (text, location),
            Line::Store(store) => save(session, *store, decision).await?,
            Line::Shorten(_) => return Err(Unsaid::Kept(Reason::Unverified)),
        };
        texts.push(text);
        decision.locations.extend(location);
    }
    let replacement = replacement(place, texts.join("\n"));
    // A text that says "not saved" was not reckoned with before.
    let (bytes, tokens) = check_gain(session, &replacement, decision)?;
    decision.bytes.after = bytes;
    decision.tokens = decision.tokens.map(|change| Change { after: tokens, ..change });
    Ok(replacement)
}

fn replacement(place: Place, text: String) -> Replacement {
    match place {
        Place::Result { .. } => Replacement::Parts(vec![Part::Text(text)]),
        Place::Arguments { .. } => Replacement::Arguments(cleared_arguments(&text)),
    }
}

/// The bytes and tokens of what is put there; it has to be fewer bytes and no more tokens than what stands there.
fn check_gain(session: &Session, replacement: &Replacement, decision: &Decision) -> Result<(u64, u64), Unsaid> {
    let text = match replacement {
        Replacement::Parts(parts) => match &parts[..] {
            [Part::Text(text)] => text,
            _ => return Err(Unsaid::Kept(Reason::NoGain)),
        },
        Replacement::Arguments(text) => text,
    };
    let (bytes, tokens) = (text.len() as u64, session.meter().text(text));
    if bytes >= decision.bytes.before || tokens > decision.tokens.map_or(0, |change| change.before) {
        return Err(Unsaid::Kept(Reason::NoGain));
    }
    Ok((bytes, tokens))
}

/// The short hint, if what is shown is what is stored; else what there is to do otherwise.
async fn compare(session: &Session, shorten: ToShorten, decision: &mut Decision) -> Result<Line, Unsaid> {
    let ToShorten { shown, stored, mut draft, preview: (preview, budget), otherwise } = shorten;
    let content = match stored.whole().await {
        Ok(content) => content,
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        // Nobody knows. Nothing needs to be stored for it, so it is no failure to offload.
        Err(error) => {
            decision.error = Some(error.to_string());
            return Err(Unsaid::Kept(Reason::StoreFailed));
        }
    };
    let Some(content) = content.filter(|content| matches_stored(session, &shown, content)) else {
        // No genuine page of what is stored is a text like any other.
        decision.outcome = Outcome::Cleared;
        return otherwise.map(|otherwise| *otherwise).ok_or(Unsaid::Kept(Reason::Unverified));
    };
    let (_, text) = texts_in(&shown, &content).unwrap_or((0, &content));
    draft.hint.preview = preview.show(&String::from_utf8_lossy(text), budget);
    Ok(Line::Ready(draft.render(session, Some(stored.location.clone())), Some(stored.location)))
}

async fn save(
    session: &Session,
    store: ToStore,
    decision: &mut Decision,
) -> Result<(String, Option<Location>), Unsaid> {
    let ToStore { backend, target, content, draft } = store;
    let error = match target.save(&backend, content).await {
        Ok(location) => return Ok((draft.render(session, Some(location.clone())), Some(location))),
        Err(error) => error,
    };
    decision.error = Some(error.to_string());
    match session.settings().on_offload_error {
        OnOffloadError::KeepOriginal => Err(Unsaid::Kept(Reason::StoreFailed)),
        OnOffloadError::Fail => Err(Unsaid::Failed(error)),
        OnOffloadError::PreviewOnly => {
            decision.outcome = Outcome::Lost;
            Ok((draft.render(session, None), None))
        }
    }
}

/// Whether all that a hint shows is what it says is stored, so that the hint can be cut and nothing is lost by it. Anybody can
/// write a text that looks like a hint.
fn matches_stored(session: &Session, shown: &Hint, content: &Bytes) -> bool {
    if shown.kind != Kind::Truncated {
        return is_genuine(shown, content);
    }
    let Some((parts, text)) = texts_in(shown, content) else { return false };
    let is_said = Language::ALL.into_iter().any(|language| {
        [session.reader(), None].into_iter().any(|reader| {
            let facts = Facts { reader, parts, ..Facts::default() };
            language.prose().of_hint(shown, facts) == shown.prose
        })
    });
    is_said
        && shown.bytes == content.len() as u64
        && shown.lines.is_none_or(|lines| lines == count_lines(content))
        && holds_only(&shown.preview, &String::from_utf8_lossy(text))
}

/// What can be shown of stored content, and how many texts it is if they were joined.
fn texts_in<'c>(hint: &Hint, content: &'c [u8]) -> Option<(usize, &'c [u8])> {
    if !hint.notes.joined {
        return Some((0, content));
    }
    let feed = content.iter().position(|byte| *byte == b'\n')?;
    let manifest: serde_json::Value = serde_json::from_slice(&content[..feed]).ok()?;
    Some((manifest.get("offcut_parts")?.as_array()?.len(), &content[feed + 1..]))
}

impl Committed {
    /// Changes the messages. It does no I/O and cannot fail. What no longer holds what was stored is left alone and reported as
    /// changed meanwhile.
    pub fn apply(self, conversation: &mut dyn Conversation) -> Report {
        let Self { session, ledger, ready, unverified, anchor, mut report } = self;
        let mut ledger = lock(&ledger);
        for Ready { decision, place, original, replacement, is_repeat } in ready {
            if fingerprint_at(conversation, place) != Some(original.print) {
                report.decisions[decision].keep(Reason::ChangedMeanwhile);
                continue;
            }
            match (place, replacement.clone()) {
                (Place::Result { message, slot }, Replacement::Parts(parts)) => {
                    conversation.replace_result(message, slot, parts);
                }
                (Place::Arguments { message, call }, Replacement::Arguments(arguments)) => {
                    conversation.replace_arguments(message, call, arguments);
                }
                _ => continue,
            }
            if !is_repeat && let Some(replaced) = fingerprint_at(conversation, place) {
                ledger.record(&original, replaced, replacement);
            }
        }
        for original in unverified {
            ledger.record_unverified(original.print);
        }
        if let Some(anchor) = anchor {
            let new = report.decisions.iter().filter(|decision| decision.outcome != Outcome::Repeated);
            ledger.record_saved(anchor, new.filter_map(|decision| decision.tokens).map(Change::saved).sum());
        }
        drop(ledger);
        report.decisions.sort_by_key(|decision| (decision.message, decision.subject == Subject::Result));
        session.observe(&report);
        report
    }
}

/// What stands at a place now.
fn fingerprint_at(conversation: &dyn Conversation, place: Place) -> Option<Fingerprint> {
    let (Place::Result { message, .. } | Place::Arguments { message, .. }) = place;
    if message >= conversation.len() {
        return None;
    }
    let (mut slots, mut calls) = (0, 0);
    let (mut head, mut parts, mut call_there, mut is_open) = (None, Vec::new(), None, false);
    conversation.visit(message, &mut |piece| match piece {
        Piece::Role(_) => is_open = false,
        Piece::Result(result) => {
            is_open = matches!(place, Place::Result { slot, .. } if slot == slots);
            if is_open {
                head = Some(result);
            }
            slots += 1;
        }
        Piece::Content(part) if is_open => parts.push(part),
        Piece::Content(_) => {}
        Piece::Call(call) => {
            if matches!(place, Place::Arguments { call, .. } if call == calls) {
                call_there = Some(call);
            }
            calls += 1;
        }
    });
    match place {
        Place::Result { .. } => head.map(|head| Fingerprint::of_result(head, &parts)),
        Place::Arguments { .. } => call_there.map(Fingerprint::of_call),
    }
}
