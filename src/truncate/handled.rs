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
    let mut decision = job.decision(Outcome::Kept(Reason::Handler));
    // A page must be shown as it is: a handler that cuts it makes the model read forever.
    let action = if is_own_page(job, &parts) {
        Ok(Action::Default)
    } else {
        let outcome = ToolOutcome {
            call: job.call.clone(),
            parts: parts.clone(),
            is_error,
        };
        guard_future("the truncation handler", handler.handle(outcome)).await
    };
    let shown = match action {
        // The parts shown would differ from the original bytes, which would be stored nowhere.
        Ok(Action::Keep) if !is_lossy => Some(Ok(parts.clone())),
        Ok(Action::Default | Action::Keep) => None,
        Ok(Action::Replace(new)) => Some(replace(job, &parts, &new, &mut decision).await?),
        Err(error) => Some(Err(error)),
    };
    let error = match shown.transpose() {
        Ok(Some(shown)) => {
            decision.bytes = Change {
                before: parts.iter().map(text_bytes).sum(),
                after: shown.iter().map(text_bytes).sum(),
            };
            return Ok((shown, decision));
        }
        Ok(None) => None,
        Err(error) => Some(error.to_string()),
    };
    let (parts, mut decision) = whole::truncate(job, arrived, is_broken).await?;
    decision.fail_first(ErrorSource::Handler, error);
    Ok((parts, decision))
}

/// Stores the handler's content, and returns what to show of it.
async fn replace(
    job: Job<'_>,
    parts: &[Part],
    new: &Replacement,
    decision: &mut Decision,
) -> Result<Result<Vec<Part>, HandlerError>, OffloadError> {
    decision.outcome = Outcome::Lost;
    if let Some(content) = new.content.clone() {
        let id = job.id(new.id.as_deref(), decision);
        let target = job.target(&id, 1, &digest(&content));
        match target.save(job.backend, content).await {
            Ok(location) => {
                decision.outcome = Outcome::Replaced;
                decision.locations.push(location);
            }
            Err(error) => {
                let rule = job.session.settings.on_offload_error;
                if rule.decide(decision, error)? {
                    decision.outcome = Outcome::Kept(Reason::StoreFailed);
                    return Ok(Ok(parts.to_vec()));
                }
            }
        }
    }
    Ok(new.show(decision.locations.first()))
}

fn is_own_page(job: Job<'_>, parts: &[Part]) -> bool {
    let [Part::Text(text)] = parts else {
        return false;
    };
    let hints = job.session.apparent_hints(job.policy, text);
    matches!(hints.as_deref(), Some([own]) if matches!(own.hint.kind, Kind::Page { .. } | Kind::Matches))
}
