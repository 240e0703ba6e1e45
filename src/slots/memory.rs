//! The memory of a process of one conversation: what was decided, in this process or in records of a store, and
//! what it has worked out.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

use futures_util::future::{join_all, join3};

use super::Slots;
use crate::backend::content::is_outdated;
use crate::backend::{BackendError, ErrorKind, Location};
use crate::decisions::{Decided, Moment, ReadRecord, Records};
use crate::fingerprint::SlotId;
use crate::format::{Conversation, Place};
use crate::report::Reason;
use crate::rounds::{Grounds, Item};
use crate::session::Session;

/// Contents that are looked for at once, in turn: all of them would be a request each.
const LOOKED_FOR: usize = 16;

/// The memory of one conversation.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    known: Mutex<Known>,
    records: OnceLock<Option<Records>>,
}

/// The knowledge about one conversation.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Number of records that were read.
    pub(crate) records: u64,
    /// Time at which the newest of them was stored.
    newest: Option<SystemTime>,
    /// True if decisions of these records count no more, since they are too old.
    is_anew: bool,
    /// Decisions so far. For each slot and moment the last one counts.
    pub(crate) decisions: HashMap<(SlotId, Moment), Decided>,
    /// Locations of originals, the next to be looked for first.
    locations: VecDeque<Location>,
    /// The slots of the originals that each replacement stands for, by its digest, where loops change their messages:
    /// the occurrences of both are counted together.
    pub(crate) originals: HashMap<u128, Vec<SlotId>>,
    /// Results that stay as they arrived.
    pub(crate) kept: HashSet<Grounds>,
    /// Items that no pass ever replaces, and the reasons.
    pub(crate) settled: HashMap<Grounds, Reason>,
    /// Tokens saved since the provider counted.
    saved: Option<(Anchor, u64)>,
    /// True if a report has said that passes can't help.
    pub(crate) has_told: bool,
}

/// A provider's token count for a request, and the index of the message that begins the assistant
/// turn answering it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    pub(crate) usage: u64,
    pub(crate) last_turn: usize,
}

impl Known {
    /// Forgets all decisions, which are then made anew.
    fn forget(&mut self) {
        *self = Self {
            records: self.records,
            newest: self.newest,
            is_anew: true,
            ..Self::default()
        };
    }

    /// Adds decisions, which count from now on.
    fn add(&mut self, decisions: Vec<Decided>) {
        for decided in decisions {
            self.locations.extend(decided.locations.iter().cloned());
            let about = (decided.slot, decided.moment);
            self.decisions.insert(about, decided);
        }
    }

    /// The decision to repeat about an item, if that is an original. A result that the model has not answered is still what
    /// it was when it arrived.
    pub(crate) fn decided_about(&self, item: &Item<'_>) -> Option<&Decided> {
        if item.id.digest != item.grounds.print || item.is_fixed {
            return None;
        }
        let at = |moment| self.decisions.get(&(item.id, moment));
        let pass = at(Moment::Pass).filter(|_| item.is_answered);
        pass.or_else(|| at(Moment::Arrival))
    }

    pub(crate) fn record_saved(&mut self, anchor: Anchor, tokens: u64) {
        let before = self.saved_since(anchor);
        self.saved = Some((anchor, before.saturating_add(tokens)));
    }

    /// Tokens that passes have saved since the provider counted.
    pub(crate) fn saved_since(&self, anchor: Anchor) -> u64 {
        self.saved
            .filter(|(known, _)| *known == anchor)
            .map_or(0, |(_, saved)| saved)
    }
}

impl Memory {
    /// Locks what is known. Nothing panics under the lock, so if it is poisoned, it is still whole.
    pub(crate) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds decisions about originals, in whose places `conversation` has their replacements from now on.
    pub(crate) fn replace(&self, decided: Vec<(Place, Decided)>, conversation: &dyn Conversation) {
        if decided.is_empty() {
            return;
        }
        let slots = Slots::of(conversation, 0, &HashMap::new());
        let items = slots.by_place();
        let mut known = self.known();
        for (place, decided) in decided {
            if let Some(replaced) = items.get(&place) {
                let slots = known.originals.entry(replaced.grounds.print).or_default();
                slots.push(decided.slot);
                known.add(vec![decided]);
            }
        }
    }

    /// The records of the session; `None` without a store.
    pub(crate) fn records(&self, session: &Session) -> Option<&Records> {
        let records = self.records.get_or_init(|| {
            let store = match session.policy("").backend() {
                Some(store) => Arc::clone(store),
                None => session.stores().into_iter().next()?,
            };
            Some(Records::new(
                store,
                session.roots.prefix(),
                &session.settings.digest(),
            ))
        });
        records.as_ref()
    }

    /// Reads the records that others have written.
    ///
    /// If the last record that is known is gone, the content to which hints lead is gone too: swept, moved or deleted.
    /// (The first may have been written anew.) If the newest is too old, that may happen at any moment. Either way all is
    /// forgotten, and decided again, as it is if content is gone by itself: some of it is looked for each time.
    pub(crate) async fn catch_up(
        &self,
        session: &Session,
        records: Option<&Records>,
    ) -> Result<(), BackendError> {
        let Some(records) = records else {
            return Ok(());
        };
        let mut from = self.known().records;
        let last = async {
            match from.checked_sub(1) {
                None => Ok(true),
                Some(last) => records.has(last).await,
            }
        };
        let (is_there, read, mut is_lost) =
            join3(last, records.read(from), self.lacks_content(session)).await;
        let read = if is_there? {
            read?
        } else {
            from = 0;
            *self.known() = Known::default();
            records.read(0).await?
        };
        let newest = self.learn(from, read);
        if from == 0 {
            is_lost = self.lacks_content(session).await;
        }
        if is_lost || newest.is_some_and(|newest| is_outdated(&*records.store, newest)) {
            self.known().forget();
        }
        Ok(())
    }

    /// Learns from the records from the one with this number on. Returns the time of the newest.
    fn learn(&self, from: u64, read: Vec<ReadRecord>) -> Option<SystemTime> {
        let mut known = self.known();
        for (number, (read, stored_at)) in (from..).zip(read) {
            // Another task may have read some of them meanwhile.
            if number != known.records {
                continue;
            }
            known.records += 1;
            known.newest = Some(stored_at);
            let Some(record) = read else {
                tracing::warn!(
                    number,
                    "a record is not usable and was ignored: check who else writes to the store, unless another version does"
                );
                continue;
            };
            if record.anew {
                known.forget();
                known.is_anew = false;
            }
            known.add(record.decisions);
        }
        known.newest
    }

    /// Looks for some of the content to which hints lead. Returns true if any of it is gone.
    async fn lacks_content(&self, session: &Session) -> bool {
        // Others each time, until all were looked for.
        let locations: Vec<Location> = {
            let mut known = self.known();
            let locations = &mut known.locations;
            let most = LOOKED_FOR.min(locations.len());
            locations.rotate_left(most);
            locations.iter().rev().take(most).cloned().collect()
        };
        let stored = locations
            .iter()
            .filter_map(|one| session.resolve(one.as_str()));
        let is_gone = stored.map(|stored| async move {
            let read = stored.backend.read(&stored.key, 0..1).await;
            read.is_err_and(|error| error.kind() == ErrorKind::NotFound)
        });
        join_all(is_gone).await.contains(&true)
    }

    /// Writes down decisions that were made with `before` records known. Returns `false` if another
    /// process has decided something since.
    pub(crate) async fn decide(
        &self,
        records: Option<&Records>,
        before: u64,
        decisions: Vec<Decided>,
    ) -> Result<bool, BackendError> {
        let anew = self.known().is_anew;
        if let Some(records) = records
            && !records.append(before, anew, &decisions).await?
        {
            return Ok(false);
        }
        let mut known = self.known();
        if known.records == before {
            known.records += 1;
            known.newest = records.map(|records| records.store.now());
            known.is_anew = false;
            known.add(decisions);
            return Ok(true);
        }
        // With a store, another task has read the record that was just written.
        Ok(records.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::ToolCall;
    use crate::decisions::WrittenPart;
    use crate::format::{Message, Messages, Plain};
    use crate::report::Subject;

    /// Results of calls without ids, with these contents, and the model's answer.
    fn results(contents: &[&str]) -> Vec<Message> {
        let call = ToolCall::new("", "grep", "{}");
        let results = contents.iter();
        let results = results.map(|text| Message::tool(&call, vec![(*text).into()], false));
        results.chain([Message::assistant("So.")]).collect()
    }

    /// Returns true for each of the results that was replaced before.
    fn are_decided(known: &Known, contents: &[&str]) -> Vec<bool> {
        let mut messages = results(contents);
        let conversation = Messages::new(Plain, &mut messages);
        let slots = Slots::of(&conversation, 0, &known.originals);
        slots
            .results()
            .map(|item| known.decided_about(item).is_some())
            .collect()
    }

    /// A memory in which the `nth` of the results "same" was replaced by `hint`.
    fn replaced(nth: usize, hint: &str) -> Known {
        let (memory, mut contents) = (Memory::default(), ["same", "same"]);
        let mut messages = results(&contents);
        let conversation = Messages::new(Plain, &mut messages);
        let place = Place {
            message: nth,
            subject: Subject::Result,
            index: 0,
        };
        let decided = Decided {
            slot: Slots::of(&conversation, 0, &HashMap::new()).by_place()[&place].id,
            moment: Moment::Pass,
            put: vec![WrittenPart::New(hint.into())],
            locations: Vec::new(),
        };
        contents[nth] = hint;
        let mut messages = results(&contents);
        let conversation = Messages::new(Plain, &mut messages);
        memory.replace(vec![(place, decided)], &conversation);
        memory.known.into_inner().unwrap()
    }

    #[test]
    fn c13_an_unanswered_result_is_what_it_was_when_it_arrived() {
        let mut messages = results(&["same"]);
        let mut known = Known::default();
        let mut put = |known: &mut Known, moment, text: Option<&str>, is_answered| {
            let conversation = Messages::new(Plain, &mut messages);
            let mut slots = Slots::of(&conversation, 0, &HashMap::new());
            slots
                .items
                .retain(|item| item.place.subject == Subject::Result);
            slots.items[0].is_answered = is_answered;
            if let Some(text) = text {
                known.add(vec![Decided {
                    slot: slots.items[0].id,
                    moment,
                    put: vec![WrittenPart::New(text.into())],
                    locations: Vec::new(),
                }]);
            }
            let decided = known.decided_about(&slots.items[0]);
            decided.map(|decided| decided.put.clone())
        };
        let new = |text: &str| Some(vec![WrittenPart::New(text.into())]);
        put(&mut known, Moment::Pass, Some("old"), true);
        assert_eq!(
            put(&mut known, Moment::Pass, Some("cleared"), true),
            new("cleared")
        );
        assert_eq!(put(&mut known, Moment::Pass, None, false), None);
        assert_eq!(
            put(&mut known, Moment::Arrival, Some("cut"), true),
            new("cleared")
        );
        assert_eq!(put(&mut known, Moment::Arrival, None, false), new("cut"));
    }

    #[test]
    fn c13_originals_and_their_replacements_are_counted_together() {
        let known = replaced(0, "hint");
        let decided = are_decided(&known, &["same", "other", "same"]);
        assert_eq!(decided, [true, false, false]);
        let known = replaced(1, "hint");
        assert_eq!(are_decided(&known, &["same", "same"]), [false, true]);
    }

    #[test]
    fn c13_a_new_result_equal_to_a_replaced_one_is_new() {
        let known = replaced(0, "hint");
        let decided = are_decided(&known, &["hint", "same", "other"]);
        assert_eq!(decided, [false; 3]);
        assert_eq!(are_decided(&known, &["same"]), [true]);
    }

    #[test]
    fn saved_tokens_belong_to_one_count_of_the_provider() {
        let mut known = Known::default();
        let anchor = Anchor {
            usage: 10,
            last_turn: 4,
        };
        known.record_saved(anchor, 3);
        known.record_saved(anchor, 2);
        assert_eq!(known.saved_since(anchor), 5);
        assert_eq!(
            known.saved_since(Anchor {
                usage: 11,
                ..anchor
            }),
            0
        );
    }
}
