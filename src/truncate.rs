//! Truncation: when a tool returns, a result over the limit is stored whole and replaced by a preview and a hint.

mod cut;

use std::collections::HashSet;

use bytes::Bytes;
use futures_util::stream;

use crate::backend::Location;
use crate::config::{Limit, OnOffloadError, Policy};
use crate::content::{Body, Chunk, Collected, Part, Piece, ToolCall, ToolError, ToolOutput};
use crate::error::Error;
use crate::read_back::shown_by_another_reader;
use crate::report::{self, Change, Decision, Outcome, Reason, Report, Subject};
use crate::session::Session;
use crate::store::{Name, Phase, Target};
use cut::{Cut, Draft};

/// What the model is to be shown of a result, and what was done to it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Truncated {
    /// What is shown.
    pub parts: Vec<Part>,
    /// Whether the tool said that it failed.
    pub is_error: bool,
    /// The error that ended the tool's stream early.
    pub interrupted: Option<ToolError>,
    /// What was done.
    pub report: Report,
}

impl Truncated {
    /// The texts that are shown, one after the other.
    #[must_use]
    pub fn text(&self) -> String {
        let mut all = String::new();
        for part in &self.parts {
            if let Part::Text(text) = part {
                all.push_str(text);
            }
        }
        all
    }
}

/// What is shown. The error that ended a stream early is the last part, as text.
impl From<Truncated> for Vec<Part> {
    fn from(truncated: Truncated) -> Self {
        let error = truncated.interrupted.map(|error| Part::Text(error.to_string()));
        truncated.parts.into_iter().chain(error).collect()
    }
}

/// What is shown. The error that ended a stream early ends this one too.
impl From<Truncated> for ToolOutput {
    fn from(truncated: Truncated) -> Self {
        let Truncated { parts, is_error, interrupted, report: _ } = truncated;
        let body = match interrupted {
            None => Body::Parts(parts),
            Some(error) => {
                let chunks: Vec<_> = parts.into_iter().map(|part| Ok(Chunk::Part(part))).chain([Err(error)]).collect();
                ToolOutput::stream(stream::iter(chunks)).body
            }
        };
        Self { body, is_error }
    }
}

/// Decides, stores, and puts the result together.
pub(crate) async fn truncate(session: &Session, call: &ToolCall, output: ToolOutput) -> Result<Truncated, Error> {
    let policy = session.policy(&call.name);
    let Collected { mut pieces, is_error, interrupted } = output.collect().await;
    let Some(backend) = policy.backend.as_ref().filter(|_| policy.truncates) else {
        let parts = pieces.into_iter().map(Piece::into_part).collect();
        return Ok(Truncated { parts, is_error, interrupted, report: report(None) });
    };
    let mut decision = new_decision(session, policy, call, &pieces);

    if let Some((location, parts)) = page_of_our_own(session, policy, call, &pieces).await {
        decision.outcome = Outcome::Paged;
        decision.locations = vec![location];
        pieces = parts.into_iter().map(Piece::Part).collect();
    } else {
        let plan = cut::plan(session, policy, &call.id, &pieces, interrupted.is_some());
        let mut shown = Vec::new();
        for Cut { draft, drops } in plan {
            let name = Name::of(&call.id, &draft.content).part(draft.number);
            let target = Target::new(session.roots(), Phase::Truncate, &name, &draft.content);
            let location = match target.save(backend, draft.content.clone()).await {
                Ok(location) => Some(location),
                Err(source) => {
                    decision.error = Some(source.to_string());
                    match session.settings().on_offload_error {
                        OnOffloadError::Fail => {
                            let (tool, call_id) = (call.name.clone(), call.id.clone());
                            return Err(Error::Offload { tool, call_id, source });
                        }
                        OnOffloadError::PreviewOnly => None,
                        OnOffloadError::KeepOriginal => continue,
                    }
                }
            };
            shown.push((draft, drops, location));
        }
        apply(session, &mut pieces, &mut decision, shown);
    }

    let parts: Vec<Part> = pieces.into_iter().map(Piece::into_part).collect();
    decision.bytes.after = parts.iter().map(text_bytes).sum();
    if let Some(tokens) = &mut decision.tokens {
        tokens.after = parts.iter().map(|part| session.meter().part(part.into())).sum();
    }
    Ok(Truncated { parts, is_error, interrupted, report: report(Some(decision)) })
}

fn report(decision: Option<Decision>) -> Report {
    Report { phase: report::Phase::Truncate, decisions: decision.into_iter().collect(), tokens: None }
}

fn new_decision(session: &Session, policy: &Policy, call: &ToolCall, pieces: &[Piece]) -> Decision {
    let bytes = pieces.iter().map(|piece| match piece {
        Piece::Part(part) => text_bytes(part),
        Piece::NotUtf8 { bytes, .. } => bytes.len() as u64,
    });
    let tokens = || pieces.iter().map(|piece| piece_tokens(session, piece)).sum();
    Decision {
        tool: call.name.clone(),
        call_id: call.id.clone(),
        message: None,
        subject: Subject::Result,
        outcome: Outcome::Kept(Reason::WithinLimit),
        bytes: Change::none(bytes.sum()),
        tokens: matches!(policy.limit, Limit::Tokens { .. }).then(|| Change::none(tokens())),
        locations: Vec::new(),
        error: None,
    }
}

fn piece_tokens(session: &Session, piece: &Piece) -> u64 {
    match piece {
        Piece::Part(part) => session.meter().part(part.into()),
        Piece::NotUtf8 { text, .. } => session.meter().text(text),
    }
}

/// The bytes of content that a text limit is about.
fn text_bytes(part: &Part) -> u64 {
    match part {
        Part::Text(text) => text.len() as u64,
        Part::Json(value) => value.to_string().len() as u64,
        Part::Media { .. } | Part::Link { .. } | Part::Opaque(_) => 0,
    }
}

/// The page to show instead, if this is what another reader returned of content that is stored already.
async fn page_of_our_own(
    session: &Session,
    policy: &Policy,
    call: &ToolCall,
    pieces: &[Piece],
) -> Option<(Location, Vec<Part>)> {
    let [Piece::Part(Part::Text(text))] = pieces else { return None };
    if !cut::is_over(session, policy.limit, [text.as_str()]) {
        return None;
    }
    let (stored, parts) = shown_by_another_reader(session, call, text, session.page_room(&call.name)).await?;
    Some((stored.location, parts))
}

/// Puts the hints where the texts were.
fn apply(
    session: &Session,
    pieces: &mut Vec<Piece>,
    decision: &mut Decision,
    shown: Vec<(Draft, Vec<usize>, Option<Location>)>,
) {
    let mut dropped = HashSet::new();
    for (draft, drops, location) in shown {
        decision.outcome = match (&location, decision.outcome) {
            (None, _) | (_, Outcome::Lost) => Outcome::Lost,
            (Some(_), _) => Outcome::Truncated,
        };
        let text = draft.render(session, location.clone());
        decision.locations.extend(location);
        pieces[draft.index] = Piece::Part(Part::Text(text));
        dropped.extend(drops);
    }
    let mut index = 0;
    pieces.retain(|_| {
        index += 1;
        !dropped.contains(&(index - 1))
    });
    if decision.error.is_some() && !decision.outcome.is_change() {
        decision.outcome = Outcome::Kept(Reason::StoreFailed);
    }
}

impl Draft {
    fn render(&self, session: &Session, location: Option<Location>) -> String {
        self.hint(session, location).render()
    }
}

/// What is stored of a piece.
fn stored_bytes(piece: &Piece) -> Bytes {
    match piece {
        Piece::NotUtf8 { bytes, .. } => bytes.clone(),
        Piece::Part(Part::Json(value)) => value.to_string().into(),
        Piece::Part(Part::Text(text)) => Bytes::copy_from_slice(text.as_bytes()),
        Piece::Part(_) => Bytes::new(),
    }
}
