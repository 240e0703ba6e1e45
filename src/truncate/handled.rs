//! A result that a user's handler decides about, as a whole.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::splitter::{part_size, text_bytes};
use super::treat::treat;
use super::truncated::{Truncated, nothing_done};
use super::written::not_there;
use crate::backend::{BackendError, Location};
use crate::config::{Limit, OnOffloadError, Policy};
use crate::content::{Body, Chunk, Part, Parts, ToolCall, ToolError, ToolOutput};
use crate::error::Error;
use crate::guard::guard_future;
use crate::handler::{Detail, Handled, Replacement, TruncHandler};
use crate::hint::Kind;
use crate::report::{Change, Decision, Outcome, Reason, Report, Subject};
use crate::session::Session;
use crate::store::{Phase, Target};

/// A whole result, as it came.
struct Whole {
    chunks: Vec<Chunk>,
    /// The same, with texts put together.
    parts: Vec<Part>,
    /// Whether `parts` have replacement characters for bytes that are no UTF-8.
    is_lossy: bool,
    is_stream: bool,
    is_error: bool,
    interrupted: Option<ToolError>,
}

/// Who decides about the tool's results, if a user does.
pub(super) fn handler(session: &Session, call: &ToolCall) -> Option<Arc<dyn TruncHandler>> {
    let policy = session.policy(&call.name);
    policy
        .hooks
        .trunc_handler
        .clone()
        .filter(|_| policy.truncates)
}

pub(super) async fn truncate(
    session: &Session,
    call: &ToolCall,
    handler: &dyn TruncHandler,
    output: ToolOutput,
) -> Result<Truncated, Error> {
    let whole = Whole::collect(output).await;
    // A page must be shown as it is: a handler that cuts it makes the model read for ever.
    if is_own_page(session, session.policy(&call.name), &whole.parts) {
        return treat(session, call, whole.into_output(), None).await;
    }
    let detail = Detail {
        call: call.clone(),
        parts: whole.parts.clone(),
        is_error: whole.is_error,
    };
    match guard_future("the truncation handler", handler.handle(detail)).await {
        Ok(Handled::Default) => treat(session, call, whole.into_output(), None).await,
        // What is shown would not be what came, and that would be nowhere.
        Ok(Handled::Keep) if whole.is_lossy => {
            treat(session, call, whole.into_output(), None).await
        }
        Ok(Handled::Keep) => {
            let parts = whole.parts.clone();
            Ok(Handling::new(session, call, whole).show(parts, Outcome::Kept(Reason::Handler)))
        }
        Ok(Handled::Replace(replacement)) => {
            replace(Handling::new(session, call, whole), &replacement).await
        }
        Err(error) => treat(session, call, whole.into_output(), Some(error)).await,
    }
}

async fn replace(
    mut handling: Handling<'_>,
    replacement: &Replacement,
) -> Result<Truncated, Error> {
    let saved = match replacement.content.clone() {
        Some(content) => handling.save(replacement, content).await.map(Some),
        None => Ok(None),
    };
    let location = match saved {
        Ok(location) => location,
        Err(error) => {
            match handling.session.settings().on_offload_error {
                OnOffloadError::Fail => {
                    let (tool, call_id) = (handling.call.name.clone(), handling.call.id.clone());
                    return Err(Error::Offload {
                        tool,
                        call_id,
                        source: error,
                    });
                }
                OnOffloadError::KeepOriginal => {
                    let parts = handling.whole.parts.clone();
                    handling.note(error.to_string());
                    return Ok(handling.show(parts, Outcome::Kept(Reason::StoreFailed)));
                }
                OnOffloadError::PreviewOnly => handling.note(error.to_string()),
            }
            None
        }
    };
    let outcome = if location.is_some() {
        Outcome::Replaced
    } else {
        Outcome::Lost
    };
    match replacement.show(location.as_ref()) {
        Ok(parts) => {
            handling.locations.extend(location);
            Ok(handling.show(parts, outcome))
        }
        Err(error) => {
            let Handling {
                session,
                call,
                whole,
                ..
            } = handling;
            treat(session, call, whole.into_output(), Some(error)).await
        }
    }
}

/// A result that is being handled.
struct Handling<'h> {
    session: &'h Session,
    call: &'h ToolCall,
    policy: &'h Policy,
    whole: Whole,
    locations: Vec<Location>,
    error: Option<String>,
}

impl<'h> Handling<'h> {
    fn new(session: &'h Session, call: &'h ToolCall, whole: Whole) -> Self {
        let policy = session.policy(&call.name);
        Self {
            session,
            call,
            policy,
            whole,
            locations: Vec::new(),
            error: None,
        }
    }

    fn note(&mut self, error: String) {
        self.error.get_or_insert(error);
    }

    async fn save(
        &mut self,
        replacement: &Replacement,
        content: Bytes,
    ) -> Result<Location, BackendError> {
        let (id, problem) = match &replacement.id {
            None => self
                .session
                .id_of(Phase::Truncate, &self.call.id, || self.call.clone()),
            Some(id) => self.session.given_id(id, &self.call.id),
        };
        problem.into_iter().for_each(|problem| self.note(problem));
        // Truncation does not build without a backend.
        let Some(backend) = self.policy.backend() else {
            return Err(not_there());
        };
        let target = Target::new(
            self.session.roots(),
            Phase::Truncate,
            &id.name_of(&content),
            &content,
        );
        target.save(&**backend, content).await
    }

    fn show(self, parts: Vec<Part>, outcome: Outcome) -> Truncated {
        let Self {
            session,
            call,
            policy,
            whole,
            locations,
            error,
        } = self;
        let limit = policy.limit;
        let bytes = |parts: &[Part]| parts.iter().map(text_bytes).sum();
        let tokens = |parts: &[Part]| {
            parts
                .iter()
                .map(|part| part_size(session, limit, part).tokens)
                .fold(0, u64::saturating_add)
        };
        let change = |size: &dyn Fn(&[Part]) -> u64| Change {
            before: size(&whole.parts),
            after: size(&parts),
        };
        let decision = Decision {
            tool: call.name.clone(),
            call_id: call.id.clone(),
            message: None,
            subject: Subject::Result,
            outcome,
            bytes: change(&bytes),
            tokens: matches!(limit, Limit::Tokens { .. }).then(|| change(&tokens)),
            locations,
            error,
        };
        let report = Report {
            decisions: vec![decision],
            ..nothing_done()
        };
        Truncated {
            parts,
            is_error: whole.is_error,
            interrupted: whole.interrupted,
            report,
        }
    }
}

impl Whole {
    async fn collect(output: ToolOutput) -> Self {
        let ToolOutput { body, is_error } = output;
        let (mut chunks, mut interrupted) = (Vec::new(), None);
        let is_stream = matches!(body, Body::Stream(_));
        match body {
            Body::Parts(parts) => chunks.extend(parts.into_iter().map(Chunk::Part)),
            Body::Stream(mut stream) => {
                while let Some(chunk) = stream.next().await {
                    match chunk {
                        Ok(chunk) => chunks.push(chunk),
                        Err(error) => {
                            interrupted = Some(error);
                            break;
                        }
                    }
                }
            }
        }
        let mut parts = Parts::default();
        chunks.iter().cloned().for_each(|chunk| parts.push(chunk));
        let (parts, is_lossy) = parts.finish_telling();
        Self {
            chunks,
            parts,
            is_lossy,
            is_stream,
            is_error,
            interrupted,
        }
    }

    /// The result as it came.
    fn into_output(self) -> ToolOutput {
        let Self {
            chunks,
            parts,
            is_stream,
            is_error,
            interrupted,
            ..
        } = self;
        let body = if is_stream {
            let error = interrupted.map(Err);
            ToolOutput::stream(stream::iter(chunks.into_iter().map(Ok).chain(error))).body
        } else {
            Body::Parts(parts)
        };
        ToolOutput { body, is_error }
    }
}

fn is_own_page(session: &Session, policy: &Policy, parts: &[Part]) -> bool {
    let [Part::Text(text)] = parts else {
        return false;
    };
    let hints = session.own_hints(policy, text).unwrap_or_default();
    matches!(&hints[..], [own] if matches!(own.hint.kind, Kind::Page { .. } | Kind::Matches))
}
