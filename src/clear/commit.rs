//! Storing what a plan decided, then changing the messages.

use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::ledger::{Fingerprint, Replacement, lock};
use super::{Action, Committed, Edit, Line, Place, Plan, Ready, ToShorten, ToStore, cleared_arguments};
use crate::backend::{BackendError, Location};
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
        let Self { session, ledger, edits, mut report } = self;
        let outcomes: Vec<(usize, Result<Committing, Error>)> = stream::iter(edits.into_iter().map(|edit| {
            let (session, decision) = (&session, report.decisions[edit.decision].clone());
            async move { (edit.decision, commit_edit(session, edit, decision).await) }
        }))
        .buffered(AT_ONCE)
        .collect()
        .await;
        let mut ready = Vec::new();
        for (index, outcome) in outcomes {
            let committing = outcome?;
            report.decisions[index] = committing.decision;
            ready.extend(committing.ready);
        }
        Ok(Committed { session, ledger, ready, report })
    }
}

/// What became of an edit.
struct Committing {
    decision: Decision,
    ready: Option<Ready>,
}

async fn commit_edit(session: &Session, edit: Edit, mut decision: Decision) -> Result<Committing, Error> {
    let Edit { decision: index, place, original, action } = edit;
    let lines = match action {
        Action::Repeat(replacement) => {
            let ready = Ready { decision: index, place, original, replacement, is_repeat: true };
            return Ok(Committing { decision, ready: Some(ready) });
        }
        Action::Hints(lines) => lines,
    };
    let mut texts = Vec::with_capacity(lines.len());
    for line in lines {
        match commit_line(session, line).await {
            Ok(Said { text, location, is_new }) => {
                texts.push(text);
                decision.locations.extend(location);
                if is_new {
                    decision.outcome = Outcome::Cleared;
                }
            }
            Err(Unsaid::Unverified) => {
                decision.keep(Reason::Unverified);
                return Ok(Committing { decision, ready: None });
            }
            Err(Unsaid::Store { error, instead }) => {
                decision.error = Some(error.to_string());
                match (session.settings().on_offload_error, instead) {
                    (OnOffloadError::Fail, _) => {
                        let Decision { tool, call_id, .. } = decision;
                        return Err(Error::Offload { tool, call_id, source: error });
                    }
                    (OnOffloadError::PreviewOnly, Some(text)) => {
                        decision.outcome = Outcome::Lost;
                        texts.push(text);
                    }
                    _ => {
                        decision.keep(Reason::StoreFailed);
                        return Ok(Committing { decision, ready: None });
                    }
                }
            }
        }
    }
    let text = texts.join("\n");
    let (text, replacement) = match place {
        Place::Result { .. } => (text.clone(), Replacement::Parts(vec![Part::Text(text)])),
        Place::Arguments { .. } => {
            let arguments = cleared_arguments(&text);
            (arguments.clone(), Replacement::Arguments(arguments))
        }
    };
    let tokens_before = decision.tokens.map_or(0, |change| change.before);
    let after = (text.len() as u64, session.meter().text(&text));
    // The plan reckoned with the longest form; a text that says "not saved" was not part of that.
    if after.0 >= decision.bytes.before || after.1 > tokens_before {
        decision.keep(Reason::NoGain);
        return Ok(Committing { decision, ready: None });
    }
    decision.bytes.after = after.0;
    decision.tokens = Some(Change { before: tokens_before, after: after.1 });
    let ready = Ready { decision: index, place, original, replacement, is_repeat: false };
    Ok(Committing { decision, ready: Some(ready) })
}

/// What a line says, and where what it stands for is.
struct Said {
    text: String,
    location: Option<Location>,
    /// Whether the content was handed to the store now.
    is_new: bool,
}

/// Why a line can't be said.
enum Unsaid {
    /// What is stored is not what is shown.
    Unverified,
    /// The store failed. `instead` says that the content is not saved.
    Store { error: BackendError, instead: Option<String> },
}

async fn commit_line(session: &Session, line: Line) -> Result<Said, Unsaid> {
    match line {
        Line::Ready(text) => Ok(Said { text, location: None, is_new: false }),
        Line::Store(store) => save(session, *store).await,
        Line::Shorten(shorten) => {
            let ToShorten { shown, stored, mut draft, preview: (preview, budget), otherwise } = *shorten;
            let content = match stored.whole().await {
                Ok(content) => content,
                Err(error) if otherwise.is_none() => return Err(Unsaid::Store { error, instead: None }),
                Err(_) => None,
            };
            let genuine = content.filter(|content| matches_stored(session, &shown, content));
            match (genuine, otherwise) {
                (Some(content), _) => {
                    let (_, text) = texts_in(&shown, &content).unwrap_or((0, &content));
                    draft.hint.preview = preview.show(&String::from_utf8_lossy(text), budget);
                    let text = draft.render(session, Some(stored.location.clone()));
                    Ok(Said { text, location: Some(stored.location), is_new: false })
                }
                // No genuine page of what is stored: a text like any other.
                (None, Some(otherwise)) => Box::pin(commit_line(session, *otherwise)).await,
                (None, None) => Err(Unsaid::Unverified),
            }
        }
    }
}

async fn save(session: &Session, store: ToStore) -> Result<Said, Unsaid> {
    let ToStore { backend, target, content, draft } = store;
    match target.save(&backend, content).await {
        Ok(location) => {
            Ok(Said { text: draft.render(session, Some(location.clone())), location: Some(location), is_new: true })
        }
        Err(error) => Err(Unsaid::Store { error, instead: Some(draft.render(session, None)) }),
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
        let Self { session, ledger, ready, mut report } = self;
        for Ready { decision, place, original, replacement, is_repeat } in ready {
            if fingerprint_at(conversation, place) != Some(original) {
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
                lock(&ledger).record(original, replaced, replacement);
            }
        }
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
