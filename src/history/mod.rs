//! Whole histories: truncation and the clear pass in one call, over messages that may be the
//! originals each time.
//!
//! 1. **Catch up** (`memory.rs`): the records that other processes have written since
//!    are read.
//! 2. **Read** (`slots.rs`), while the store answers: each result and each call's arguments gets an
//!    identity that is the same in every process.
//! 3. **Repeat**: what was decided before is put over the messages, which stay as
//!    they are (`overlay.rs`).
//! 4. **Truncate** (`arrivals.rs`): results about which nothing was decided are truncated as they
//!    would have been when they arrived.
//! 5. **Clear**: the clear pass goes over what is shown now, as over any other conversation.
//! 6. **Write down**: what is new becomes one record. If another process was faster, all of this
//!    begins again with its record. If the record can't be written, nothing new is done.
//! 7. **Apply**: only now are the messages changed.

mod arrivals;
mod beginning;
mod memory;
mod overlay;
mod slots;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::decisions::fingerprint::Fingerprint;
use crate::decisions::{Decided, Moment, Records, WrittenReplacement};
use futures_util::future::join;

use crate::backend::{BackendError, Location};
use crate::clear::{self, Place, bytes_of, prints_at};
use crate::config::OnStoreFailure;
use crate::content::Part;
use crate::error::OffloadError;
use crate::format::Conversation;
use crate::format::owned::owned;
use crate::middleware::Turn;
use crate::report::{ErrorSource, Outcome, Reason, Report};
use crate::session::Session;
use arrivals::arrive;
use memory::Known;
use overlay::{Overlay, Puts};
use slots::{HistoryItem, Slots};

pub(crate) use beginning::beginning;
pub(crate) use memory::ConversationMemory;

/// Number of times that a call begins again because other processes were faster.
const ATTEMPTS: usize = 8;

/// Truncates and clears a whole history. The report is not passed to observers yet.
pub(crate) async fn reduce(
    session: &Session,
    memory: &ConversationMemory,
    turn: &mut Turn<'_>,
) -> Result<Report, OffloadError> {
    let mut history = History {
        session,
        memory,
        records: memory.records(session),
        unusable: 0,
    };
    let mut attempt = 1;
    let (puts, report) = loop {
        let is_last = attempt == ATTEMPTS;
        if let Some(done) = history.attempt(turn, is_last).await? {
            break done;
        }
        attempt += 1;
    };
    puts.apply(turn.conversation);
    Ok(report)
}

/// One call, over all its attempts.
struct History<'a> {
    session: &'a Session,
    memory: &'a ConversationMemory,
    records: Option<&'a Records>,
    /// Number of decisions and records that could not be understood.
    unusable: usize,
}

/// The beginning of an attempt.
struct Begun<'c> {
    slots: Slots<'c>,
    overlay: Overlay<'c>,
    /// The report, with the decisions that are repeated.
    report: Report,
    /// Places whose replacement is a pass's, with the fingerprint of the original.
    passed: Vec<(Place, Fingerprint)>,
    /// Number of records that it knows.
    records: u64,
}

impl History<'_> {
    /// Returns the replacements and the report; `None` if another process has decided something
    /// meanwhile.
    async fn attempt(
        &mut self,
        turn: &Turn<'_>,
        is_last: bool,
    ) -> Result<Option<(Puts, Report)>, OffloadError> {
        let (memory, records) = (self.memory, self.records);
        // The store is asked first, and reads while the history is read here.
        let (caught_up, slots) = join(memory.catch_up(records), async {
            self.slots(&*turn.conversation)
        })
        .await;
        let mut begun = self.begin(slots, &*turn.conversation);
        match caught_up {
            Ok(unusable) => self.unusable += unusable,
            Err(error) => {
                // Nothing new is done without knowing what others have decided.
                begun.report.records_error = Some(self.failed(&begun.slots, error)?);
                return Ok(Some((begun.overlay.into_puts(), begun.report)));
            }
        }
        if self.unusable > 0 {
            begun.report.records_error = Some(format!(
                "{} records or decisions in them are not usable and were ignored: check who else writes to the store",
                self.unusable
            ));
        }
        let repeated = begun.overlay.puts().clone();
        let decided = self.decide(turn, &mut begun).await?;
        let problem = if decided.is_empty() {
            None
        } else if is_last {
            Some(BUSY.to_owned())
        } else {
            match memory.decide(records, begun.records, decided).await {
                Ok(true) => None,
                Ok(false) => return Ok(None),
                Err(error) => Some(self.failed(&begun.slots, error)?),
            }
        };
        let Begun {
            overlay,
            mut report,
            ..
        } = begun;
        let puts = match problem {
            None => overlay.into_puts(),
            Some(problem) => {
                leave_new(&mut report, &problem);
                report.records_error = Some(problem);
                repeated
            }
        };
        Ok(Some((puts, report)))
    }

    /// Reads the history.
    fn slots<'c>(&self, conversation: &'c dyn Conversation) -> Slots<'c> {
        let mut known = self.memory.known();
        Slots::of(conversation, self.session.meter(), &mut known.digests)
    }

    /// Puts what was decided before over the history.
    fn begin<'c>(&mut self, slots: Slots<'c>, conversation: &'c dyn Conversation) -> Begun<'c> {
        let known = self.memory.known();
        let Known {
            records, decisions, ..
        } = &*known;
        let mut begun = Begun {
            slots,
            overlay: Overlay::new(conversation),
            report: Report::default(),
            passed: Vec::new(),
            records: *records,
        };
        for (at, item) in begun.slots.items.iter().enumerate() {
            let Some(decided) = decisions.about(item.id, item.is_answered) else {
                continue;
            };
            if item.is_fixed {
                continue;
            }
            let original = |part: usize| {
                let part = begun.slots.outline.slots.get(at)?.parts.get(part)?;
                Some(owned(*part))
            };
            let Some(put) = decided.put.over(original) else {
                self.unusable += 1;
                continue;
            };
            // Only users' code may make anything longer.
            let hooks = &self.session.policy(item.tool).hooks;
            let may_grow = hooks.trunc_handler.is_some() || hooks.clear_handler.is_some();
            let mut decision = item.decision();
            decision.outcome = Outcome::Repeated;
            decision.bytes.after = bytes_of(&put);
            decision.locations.clone_from(&decided.locations);
            let is_put = (may_grow || decision.bytes.after < item.bytes)
                && begun.overlay.put(item.place, put);
            if !is_put {
                self.unusable += 1;
                continue;
            }
            if decided.moment == Moment::Pass && hooks.clear_handler.is_some() {
                begun.passed.push((item.place, item.print));
            }
            begun.report.decisions.push(decision);
        }
        begun
    }

    /// Truncates what is new and runs the clear pass, over the overlay. Returns what is to be
    /// written down.
    async fn decide(
        &self,
        turn: &Turn<'_>,
        begun: &mut Begun<'_>,
    ) -> Result<Vec<Decided<Part>>, OffloadError> {
        let Begun {
            slots,
            overlay,
            report,
            passed,
            ..
        } = begun;
        let is_decided = |item: &HistoryItem<'_>| overlay.is_put(item.place);
        let arrived = arrive(self.session, self.memory, slots, is_decided).await?;
        let mut decided = Vec::new();
        for one in arrived {
            report.decisions.push(one.decision);
            if let Some((put, new)) = one.put {
                overlay.put(one.place, put);
                decided.push(new);
            }
        }
        overlay.begin();
        let mut cleared = self.clear(turn, overlay, passed).await?;
        let mut locations: HashMap<(Option<usize>, &str), Vec<Location>> = HashMap::new();
        for decision in &cleared.decisions {
            let about = (decision.message, decision.call_id.as_str());
            let known = locations.entry(about).or_default();
            known.extend_from_slice(&decision.locations);
        }
        let items: HashMap<Place, &HistoryItem<'_>> =
            slots.items.iter().map(|item| (item.place, item)).collect();
        for place in overlay.new_places() {
            let (Some(item), Some(put)) = (items.get(&place), overlay.get(place)) else {
                continue;
            };
            let about = (Some(place.message()), item.call_id);
            decided.push(Decided {
                slot: item.id,
                moment: Moment::Pass,
                put: WrittenReplacement::of(put, &[]),
                locations: locations.get(&about).cloned().unwrap_or_default(),
            });
        }
        report.decisions.append(&mut cleared.decisions);
        report.decisions.sort_by_key(|decision| decision.message);
        report.tokens = cleared.tokens;
        report.notice = cleared.notice;
        Ok(decided)
    }

    /// Runs the clear pass over what is shown.
    async fn clear(
        &self,
        turn: &Turn<'_>,
        overlay: &mut Overlay<'_>,
        passed: &[(Place, Fingerprint)],
    ) -> Result<Report, OffloadError> {
        let shown = passed.iter().map(|(place, _)| *place);
        let shown = prints_at(self.session.meter(), overlay, shown);
        let mut ledger = self.memory.lend_facts();
        for (place, original) in passed {
            if let Some(shown) = shown.get(place) {
                ledger.note(*original, *shown);
            }
        }
        let ledger = Arc::new(Mutex::new(ledger));
        let mut over = Turn {
            conversation: overlay,
            tools: turn.tools,
            // No request carries the provider's count of the one before it.
            last_usage: None,
        };
        let cleared = clear::clear(self.session, &ledger, &mut over).await;
        self.memory.return_facts(&ledger);
        cleared
    }

    /// Applies `on_offload_error` to records that can't be read or written. Returns the problem if
    /// the call goes on without them.
    fn failed(&self, slots: &Slots<'_>, error: BackendError) -> Result<String, OffloadError> {
        match self.session.settings().on_offload_error {
            OnStoreFailure::Fail => {
                let newest = slots.results().last();
                let (tool, call_id) =
                    newest.map_or(("", ""), |(_, item)| (item.tool, item.call_id));
                Err(OffloadError::new(tool, call_id, error))
            }
            OnStoreFailure::KeepOriginal | OnStoreFailure::PreviewOnly => Ok(format!(
                "decisions could not be read or written down, so nothing new was done: {error}"
            )),
        }
    }
}

const BUSY: &str = "other processes kept deciding about the same conversation, so nothing new was done: \
                    give each conversation a session of its own";

/// Keeps everything that is not repeated as it was.
fn leave_new(report: &mut Report, problem: &str) {
    let new = report.decisions.iter_mut();
    for decision in new.filter(|decision| decision.outcome.is_change()) {
        if decision.outcome != Outcome::Repeated {
            decision.keep(Reason::StoreFailed);
            decision.fail_first(ErrorSource::Store.said(problem));
        }
    }
}
