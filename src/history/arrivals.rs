//! Truncates the results of a history as they would have been when they arrived.

use std::collections::HashSet;

use futures_util::future::join_all;

use crate::backend::BackendError;
use crate::config::Policy;
use crate::content::{Body, Part, ToolOutput};
use crate::decisions::{Decided, Moment, WrittenPart};
use crate::error::OffloadError;
use crate::format::PartRef;
use crate::ours::{Classified, classify};
use crate::report::{Decision, ErrorSource, Outcome, Reason};
use crate::session::Session;
use crate::slots::{Item, Memory, Place, Slots, original};
use crate::truncate::truncate;

/// Number of results that are treated at once.
const AT_ONCE: usize = 8;

/// A result that has been treated.
pub(super) struct Arrived {
    pub(super) place: Place,
    pub(super) decision: Decision,
    /// The parts to show and the decision to remember; `None` if the result stays.
    pub(super) put: Option<(Vec<Part>, Decided)>,
}

/// Truncates the results among `items` about which nothing was decided. What stays, for a reason
/// that can't change, is remembered.
pub(super) async fn arrive(
    session: &Session,
    memory: &Memory,
    slots: &Slots<'_>,
    is_decided: impl Fn(&Item<'_>) -> bool,
) -> Result<Vec<Arrived>, OffloadError> {
    let (mut batches, mut ids) = (Vec::<Vec<_>>::new(), HashSet::new());
    for item in slots.results() {
        if is_decided(item) || !may_change(session.policy(item.tool), item) {
            continue;
        }
        // Names depend on what is stored already, so equal ids are treated one after the other.
        let is_repeated = !ids.insert(item.call_id) && !item.call_id.is_empty();
        match batches.last_mut() {
            Some(batch) if batch.len() < AT_ONCE && !is_repeated => batch.push(item),
            _ => {
                ids = HashSet::from([item.call_id]);
                batches.push(vec![item]);
            }
        }
    }
    let mut arrived = Vec::new();
    for mut batch in batches {
        batch.retain(|item| !memory.known().kept.contains(&item.grounds));
        let treated = batch.iter().map(|item| treat(session, slots, item));
        for (item, treated) in batch.iter().zip(join_all(treated).await) {
            let (decision, put) = treated?;
            let has_failed =
                decision.error.is_some() || decision.outcome == Outcome::Kept(Reason::StoreFailed);
            if put.is_none() && !has_failed {
                memory.known().kept.insert(item.grounds);
            }
            arrived.push(Arrived {
                place: item.place,
                decision,
                put,
            });
        }
    }
    Ok(arrived)
}

/// Returns false if the result certainly stays, judging by lengths alone.
fn may_change(policy: &Policy, item: &Item<'_>) -> bool {
    if item.is_fixed || !policy.truncates() || policy.backend().is_none() {
        return false;
    }
    let (within, previewed) = (
        policy.max_length_for_trunc as u64,
        policy.preview_above.unwrap_or(usize::MAX),
    );
    let is_long =
        |part: &PartRef<'_>| matches!(part, PartRef::Text(text) if text.len() > previewed);
    policy.hooks.trunc_handler.is_some()
        || item.bytes > within
        || item.content.parts().iter().any(is_long)
}

/// The decision about a result, and with it what takes its place and is remembered, unless it stays.
async fn treat(
    session: &Session,
    slots: &Slots<'_>,
    item: &Item<'_>,
) -> Result<(Decision, Option<(Vec<Part>, Decided)>), OffloadError> {
    let policy = session.policy(item.tool);
    let kept = |reason| item.decision(Outcome::Kept(reason));
    let originals = item.content.parts().iter();
    let originals: Option<Vec<Part>> = originals.map(|part| original(policy, *part)).collect();
    let Some(originals) = originals else {
        return Ok((kept(Reason::Ambiguous), None));
    };
    // Hints over a limit that has become smaller since still lead to their originals.
    match are_hints(session, policy, item.bytes, &originals).await {
        Ok(true) => return Ok((kept(Reason::AlreadyHint), None)),
        Ok(false) => {}
        Err(error) => {
            let mut decision = kept(Reason::StoreFailed);
            decision.fail(ErrorSource::Store, error.to_string());
            return Ok((decision, None));
        }
    }
    let output = ToolOutput {
        body: Body::Parts(originals.clone()),
        is_error: item.grounds.is_error,
    };
    let mut truncated = truncate(session, &slots.call_of(item), output).await?;
    let Some(decision) = truncated.report.decisions.pop() else {
        return Ok((kept(Reason::Excluded), None));
    };
    let mut decision = Decision {
        message: Some(item.place.message),
        ..decision
    };
    match decision.outcome {
        Outcome::Kept(_) => return Ok((decision, None)),
        // One of several texts could not be stored. Written down, that half would be repeated for ever.
        Outcome::Truncated if decision.error_source == Some(ErrorSource::Store) => {
            decision.keep(Reason::StoreFailed);
            return Ok((decision, None));
        }
        _ => {}
    }
    let decided = Decided {
        slot: item.id,
        moment: Moment::Arrival,
        put: WrittenPart::all(&truncated.parts, &originals),
        locations: decision.locations.clone(),
    };
    Ok((decision, Some((truncated.parts, decided))))
}

/// Returns true if a result is over the limit, and within it but for hints that show only what is
/// stored where they lead.
async fn are_hints(
    session: &Session,
    policy: &Policy,
    bytes: u64,
    parts: &[Part],
) -> Result<bool, BackendError> {
    let limit = policy.max_length_for_trunc as u64;
    let mut others = bytes;
    for part in parts {
        if let Part::Text(text) = part
            && bytes > limit
            && let Classified::Hints(_) = classify(session, text).await?
        {
            others -= text.len() as u64;
        }
    }
    Ok(others < bytes && others <= limit)
}
