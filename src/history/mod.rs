//! Whole histories: truncation and the clear pass in one call, over messages that may be the
//! originals each time.
//!
//! 1. **Catch up** (`slots/memory.rs`): the records that other processes have written since
//!    are read.
//! 2. **Read** (`rounds.rs`, `slots.rs`), while the store answers: each result and each call's arguments gets an
//!    identity that is the same in every process.
//! 3. **Repeat**: what was decided before is put over the messages, which stay as
//!    they are (`slots/overlay.rs`).
//! 4. **Truncate** (`arrivals.rs`): results about which nothing was decided are truncated as they
//!    would have been when they arrived.
//! 5. **Clear**: the clear pass goes over what is shown now, as over any other conversation.
//! 6. **Write down**: what is new becomes one record. If another process was faster, all of this
//!    begins again with its record. If the record can't be written, nothing new is done.
//! 7. **Apply**: only now are the messages changed.

mod arrivals;
mod beginning;

use futures_util::future::join;

use crate::backend::BackendError;
use crate::clear::pass;
use crate::decisions::Decided;
use crate::error::OffloadError;
use crate::middleware::Turn;
use crate::report::{ErrorSource, Outcome, Reason, Report};
use crate::session::Session;
use crate::slots::{Item, Memory, Overlay, Puts, Slots, apply, repeat};
use arrivals::{Arrived, arrive};

pub(crate) use beginning::beginning;

/// Maximum number of times that a call begins, if other processes are faster.
const ATTEMPTS: usize = 8;

/// Truncates and clears a whole history. The report is not passed to observers yet.
pub(crate) async fn reduce(
    session: &Session,
    memory: &Memory,
    turn: &mut Turn<'_>,
) -> Result<Report, OffloadError> {
    // No request carries the provider's count of the one before it.
    let turn = Turn {
        conversation: &mut *turn.conversation,
        last_usage: None,
        ..*turn
    };
    let mut left = ATTEMPTS;
    loop {
        left -= 1;
        if let Some((puts, report)) = attempt(session, memory, &turn, left == 0).await? {
            apply(puts, turn.conversation);
            return Ok(report);
        }
    }
}

/// Returns the replacements and the report; `None` if another process has decided something meanwhile.
async fn attempt(
    session: &Session,
    memory: &Memory,
    turn: &Turn<'_>,
    is_last: bool,
) -> Result<Option<(Puts, Report)>, OffloadError> {
    let records = memory.records(session);
    // The store is asked first, and reads while the history is read here.
    let (caught_up, slots) = join(memory.catch_up(session, records), async {
        Slots::of(&*turn.conversation, 0, &memory.known().originals)
    })
    .await;
    // Applies `on_offload_error` to records that can't be read or written.
    let failed = |error: BackendError| {
        let newest = slots.results().next_back();
        let (tool, call_id) = newest.map_or(("", ""), |item| (item.tool, item.call_id));
        let problem = format!(
            "decisions could not be read or written down, so nothing new was done: {error}"
        );
        let rule = session.settings.on_offload_error;
        rule.keeps(tool, call_id, error).map(|_| problem)
    };
    let mut overlay = Overlay::new(&*turn.conversation);
    let (repeated, before) = {
        let known = memory.known();
        let repeated = repeat(session, &known, &slots, &mut overlay);
        (repeated, known.records)
    };
    let mut report = Report {
        decisions: repeated,
        ..Report::default()
    };
    if let Err(error) = caught_up {
        // Nothing new is done without knowing what others have decided.
        report.records_error = Some(failed(error)?);
        return Ok(Some((overlay.puts, report)));
    }
    let repeated_puts = overlay.puts.clone();
    let is_decided = |item: &Item<'_>| turn.repeats_only || overlay.puts.contains_key(&item.place);
    let arrived = arrive(session, memory, &slots, is_decided).await?;
    let mut decided = Vec::new();
    for Arrived {
        place,
        decision,
        put,
    } in arrived
    {
        report.decisions.push(decision);
        if let Some((put, new)) = put {
            overlay.show(place, put);
            decided.push(new);
        }
    }
    let (mut cleared, new) = pass(session, memory, turn, &mut overlay).await?;
    let items = slots.by_place();
    for (place, new) in new {
        // It is about the original, and not about what was shown of that.
        if let Some(item) = items.get(&place) {
            let slot = item.id;
            decided.push(Decided { slot, ..new });
        }
    }
    report.decisions.append(&mut cleared.decisions);
    report.decisions.sort_by_key(|decision| decision.message);
    (report.tokens, report.notice) = (cleared.tokens, cleared.notice);
    let problem = if decided.is_empty() {
        None
    } else if is_last {
        Some(BUSY.to_owned())
    } else {
        match memory.decide(records, before, decided).await {
            Ok(true) => None,
            Ok(false) => return Ok(None),
            Err(error) => Some(failed(error)?),
        }
    };
    let Some(problem) = problem else {
        return Ok(Some((overlay.puts, report)));
    };
    // Everything that is not repeated stays as it was.
    for decision in &mut report.decisions {
        if decision.outcome.is_change() && decision.outcome != Outcome::Repeated {
            decision.keep(Reason::StoreFailed);
            decision.fail_first(ErrorSource::Store, Some(problem.clone()));
        }
    }
    report.records_error = Some(problem);
    Ok(Some((repeated_puts, report)))
}

const BUSY: &str = "other processes kept deciding about the same conversation, so nothing new was done: \
                    give each conversation a session of its own";
