//! Results that a user's handler decides about, as a whole.

use bytes::Bytes;

use super::job::{Job, text_bytes};
use super::whole;
use crate::backend::key::digest;
use crate::content::Part;
use crate::error::OffloadError;
use crate::guard::{HandlerError, guard_future};
use crate::handler::{Action, Replacement, ToolOutcome, TruncHandler};
use crate::hint::Kind;
use crate::report::{Change, Decision, ErrorSource, Outcome, Reason};

/// Truncates a result as the job's `handler` decides; beside a text are its bytes if they are not UTF-8.
pub(super) async fn truncate(
    job: Job<'_>,
    handler: &dyn TruncHandler,
    arrived: Vec<(Part, Option<Bytes>)>,
    is_error: bool,
    is_broken: bool,
) -> Result<(Vec<Part>, Decision), OffloadError> {
    let is_lossy = arrived.iter().any(|(_, bytes)| bytes.is_some());
    let parts: Vec<Part> = arrived.iter().map(|(part, _)| part.clone()).collect();
    // A page must be shown as it is: a handler that cuts it makes the model read forever.
    let decided = if is_own_page(job, &parts) {
        Ok(Action::Default)
    } else {
        let outcome = ToolOutcome {
            call: job.call.clone(),
            parts: parts.clone(),
            is_error,
        };
        guard_future("the truncation handler", handler.handle(outcome)).await
    };
    let done = |shown: Vec<Part>, mut decision: Decision| {
        decision.bytes = Change {
            before: parts.iter().map(text_bytes).sum(),
            after: shown.iter().map(text_bytes).sum(),
        };
        Ok((shown, decision))
    };
    let error = match decided {
        // The parts shown would differ from the original bytes, which would be stored nowhere.
        Ok(Action::Keep) if !is_lossy => {
            return done(parts.clone(), job.decision(Outcome::Kept(Reason::Handler)));
        }
        Ok(Action::Default | Action::Keep) => None,
        Ok(Action::Replace(replacement)) => match replace(job, &parts, &replacement).await? {
            Ok((shown, decision)) => return done(shown, decision),
            Err(error) => Some(error),
        },
        Err(error) => Some(error),
    };
    let failure = error.map(|error| ErrorSource::Handler.said(&error));
    let (parts, mut decision) = whole::truncate(job, arrived, is_broken).await?;
    decision.fail_first(failure);
    Ok((parts, decision))
}

/// Stores the handler's content, and returns what to show of it.
async fn replace(
    job: Job<'_>,
    parts: &[Part],
    replacement: &Replacement,
) -> Result<Result<(Vec<Part>, Decision), HandlerError>, OffloadError> {
    let mut decision = job.decision(Outcome::Lost);
    if let Some(content) = replacement.content.clone() {
        let (id, failure) = job.id(replacement.id.as_deref());
        decision.fail_first(failure);
        let target = job.target(&id, 1, &digest(&content));
        match target.save(job.backend, content).await {
            Ok(location) => {
                decision.outcome = Outcome::Replaced;
                decision.locations.push(location);
            }
            Err(error) => {
                let rule = job.session.settings.on_offload_error;
                if rule.apply(&mut decision, error)? {
                    decision.outcome = Outcome::Kept(Reason::StoreFailed);
                    return Ok(Ok((parts.to_vec(), decision)));
                }
            }
        }
    }
    let shown = replacement.show(decision.locations.first());
    Ok(shown.map(|shown| (shown, decision)))
}

fn is_own_page(job: Job<'_>, parts: &[Part]) -> bool {
    let [Part::Text(text)] = parts else {
        return false;
    };
    let hints = job.session.apparent_hints(job.policy, text);
    matches!(hints.as_deref(), Some([own]) if matches!(own.hint.kind, Kind::Page { .. } | Kind::Matches))
}
