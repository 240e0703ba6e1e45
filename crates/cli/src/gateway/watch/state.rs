//! The conversations that are held, within limits.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Instant;

use serde_json::{Value, json};

use super::look::{Change, Look};
use super::miss::{ExpectedCache, MissSums, PromptMiss, RecentPrompts};
use super::prompt::Prompt;
use super::record::RequestRecord;
use super::size::Size;
use super::totals::Totals;
use crate::gateway::outcome::{Outcome, PassReason};
use crate::gateway::whose::Whose;
use crate::usage::ProviderUsage;

/// Number of conversations that are held; the one that was silent for longest goes first.
const CONVERSATIONS: usize = 1_000;
/// Number of calls of a conversation, and of changes, that are held; the newest stay.
const CALLS: usize = 500;
const CHANGES: usize = 100;

/// Number of senders that are told apart.
const SENDERS: usize = 200;

/// A call whose provider will say what it bills.
#[derive(Debug)]
pub(crate) struct AwaitedBill {
    pub(crate) whose: Whose,
    /// The conversation, if it is known, the number of the call, and what the cache should hold of it.
    expected: Option<(String, u64, ExpectedCache)>,
}

impl AwaitedBill {
    /// The miss that is expected.
    pub(crate) fn miss(&self) -> Option<PromptMiss> {
        self.expected.as_ref()?.2.miss
    }
}

/// The requests of a sender.
#[derive(Debug, Default)]
struct SenderSums {
    totals: Totals,
    billed: ProviderUsage,
}

#[derive(Debug, Default)]
struct Conversation {
    number: u64,
    /// The state's `changed` at its last change.
    changed: u64,
    upstream: String,
    /// The sender of the last call.
    whose: Option<Whose>,
    totals: Totals,
    last: u64,
    recent: RecentPrompts,
    /// Number of reads in the last request's history, or in a longer one before it.
    seen_reads: u64,
    sizes: VecDeque<[u64; 2]>,
    changes: VecDeque<Change>,
    /// The newest misses of the provider's cache, with the number of their call.
    misses: VecDeque<(u64, PromptMiss)>,
}

/// All that is held.
#[derive(Debug)]
pub(crate) struct State {
    begun: Instant,
    /// The prices that the figures come with.
    pub(crate) card: Value,
    conversations: HashMap<String, Conversation>,
    known: u64,
    changed: u64,
    totals: Totals,
    passed: BTreeMap<PassReason, u64>,
    misses: MissSums,
    senders: BTreeMap<Whose, SenderSums>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            card: json!({"cached": 0.1, "fresh": 1.0}),
            conversations: HashMap::new(),
            known: 0,
            changed: 0,
            totals: Totals::default(),
            passed: BTreeMap::new(),
            misses: MissSums::default(),
            senders: BTreeMap::new(),
        }
    }
}

/// The name of a tenant of the plug among upstreams. None of these has a space in its name.
fn plug(tenant: &str) -> String {
    format!("plug {tenant}")
}

fn push<T>(list: &mut VecDeque<T>, limit: usize, one: T) {
    if list.len() >= limit {
        list.pop_front();
    }
    list.push_back(one);
}

impl State {
    /// Seconds since the start.
    fn seconds(&self) -> u64 {
        self.begun.elapsed().as_secs()
    }

    /// Returns true if the provider's cache holds little of a request of a conversation, so that a pass costs nothing
    /// there.
    pub(crate) fn is_cold(&self, conversation: &str, would: &Prompt) -> bool {
        let one = self.conversations.get(conversation);
        let silent = |one: &Conversation| self.seconds().saturating_sub(one.last);
        one.is_some_and(|one| one.recent.is_cold(would, silent(one)))
    }

    /// Adds a call of the plug for a tenant.
    pub(crate) fn plug(&mut self, tenant: &str, look: &Look) -> RequestRecord {
        self.call(plug(tenant), look, Instant::now()).0
    }

    /// Adds a request, which came at `begun`. Returns its figures, and what to compare its bill with.
    pub(crate) fn call(
        &mut self,
        upstream: String,
        look: &Look,
        begun: Instant,
    ) -> (RequestRecord, Option<AwaitedBill>) {
        self.changed += 1;
        let at = begun.saturating_duration_since(self.begun).as_secs();
        let counts = look.counts();
        let is_plug = look.whose.is_none();
        let forms = [&look.would, look.sent.as_ref().unwrap_or(&look.would)];
        let [before, after] = forms.map(|body| match is_plug {
            true => Size::new(body.bytes(), 0),
            false => Size::new(0, body.bytes()),
        });
        let mut record = RequestRecord {
            upstream,
            conversation: look.conversation.clone(),
            model: String::new(),
            client: String::new(),
            outcome: match look.outcome {
                Outcome::Passed(reason) => reason.name(),
                other => other.name(),
            },
            replaced: counts.iter().sum(),
            before,
            after,
            counts,
            reads: 0,
            reason: look.outcome.reason(),
        };
        let name = match is_plug {
            true => Some(record.upstream.clone()),
            false => record.conversation.clone(),
        };
        let mut expected = None;
        if let Some(name) = name {
            let one = self.conversation(&name, &record.upstream, look.reads);
            let call = one.totals.calls + 1;
            if !is_plug {
                let forms = forms.map(Prompt::clone);
                let seconds = at.saturating_sub(one.last);
                let (sizes, cache) = one.recent.next(&forms, seconds);
                [record.before, record.after] = sizes;
                record.reads = one.new_reads(look.reads);
                if look.is_taken {
                    one.recent.add(forms);
                    expected = Some((name, call, cache));
                }
            }
            if look.is_reading {
                record.before = Size::default();
            }
            one.whose = look.whose.clone().or(one.whose.take());
            one.totals.add(&record);
            one.last = at;
            for mut change in look.changes.iter().cloned() {
                (change.call, change.at) = (call, at);
                push(&mut one.changes, CHANGES, change);
            }
            let sizes = [record.before.bytes(), record.after.bytes()];
            push(&mut one.sizes, CALLS, sizes);
        }
        self.totals.add(&record);
        if let Some(reason) = record.reason {
            *self.passed.entry(reason).or_default() += 1;
        }
        let bill = look.whose.clone().map(|whose| {
            let whose = self.sender(whose);
            let sums = self.senders.entry(whose.clone()).or_default();
            sums.totals.add(&record);
            record.model.clone_from(&whose.model);
            record.client.clone_from(&whose.client);
            AwaitedBill { whose, expected }
        });
        (record, bill)
    }

    /// Adds a provider's count of a call. Returns the call's miss, if it has one by that.
    pub(crate) fn billed(
        &mut self,
        bill: &AwaitedBill,
        usage: ProviderUsage,
    ) -> Option<PromptMiss> {
        let senders = self.senders.get_mut(&bill.whose);
        senders.into_iter().for_each(|sums| sums.billed += usage);
        self.changed += 1;
        let (conversation, number, expected) = bill.expected.as_ref()?;
        let miss = expected.billed(usage)?;
        self.misses.add(&miss);
        let changed = self.changed;
        if let Some(one) = self.conversations.get_mut(conversation) {
            one.changed = changed;
            push(&mut one.misses, CHANGES, (*number, miss));
        }
        Some(miss)
    }

    /// A sender, if it is one of those that are told apart.
    fn sender(&self, whose: Whose) -> Whose {
        if self.senders.len() < SENDERS || self.senders.contains_key(&whose) {
            whose
        } else {
            Whose::others()
        }
    }

    /// Adds a read by a tenant of the plug, whose row may be gone.
    pub(crate) fn read(&mut self, tenant: &str) {
        self.changed += 1;
        self.totals.reads += 1;
        let changed = self.changed;
        if let Some(one) = self.conversations.get_mut(&plug(tenant)) {
            one.changed = changed;
            one.totals.reads += 1;
        }
    }

    /// The conversation of this name, which has changed.
    /// If it is new, what its history has read was read before.
    fn conversation(&mut self, name: &str, upstream: &str, reads: u64) -> &mut Conversation {
        let is_new = !self.conversations.contains_key(name);
        if is_new && self.conversations.len() >= CONVERSATIONS {
            let oldest = self.conversations.iter().min_by_key(|(_, one)| one.changed);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                self.conversations.remove(&oldest);
            }
        }
        self.known += u64::from(is_new);
        let number = self.known;
        let one = self.conversations.entry(name.to_owned());
        let one = one.or_insert_with(|| Conversation {
            number,
            upstream: upstream.to_owned(),
            seen_reads: reads,
            ..Conversation::default()
        });
        one.changed = self.changed;
        one
    }

    /// The figures that have changed since `since`, as JSON.
    pub(crate) fn figures(&self, since: u64) -> Value {
        let mut changed: Vec<_> = self
            .conversations
            .values()
            .filter(|one| one.changed > since)
            .collect();
        changed.sort_by_key(|one| one.changed);
        let passed = self.passed.iter().map(|(reason, count)| {
            json!({"reason": reason.name(), "count": count, "meaning": reason.meaning()})
        });
        let mut figures = self.totals.row();
        figures["seconds"] = self.seconds().into();
        figures["card"] = self.card.clone();
        figures["changed"] = self.changed.into();
        figures["known"] = self.known.into();
        figures["held"] = self.conversations.len().into();
        figures["most"] = CONVERSATIONS.into();
        figures["passed"] = passed.collect();
        figures["misses"] = self.misses.rows();
        let senders = self.senders.iter().map(|(whose, sums)| {
            let mut row = json!(whose);
            row["calls"] = sums.totals.calls.into();
            row["would"] = sums.totals.would.bytes().into();
            row["sent"] = sums.totals.sent.bytes().into();
            row["fresh_tokens"] = (sums.billed.fresh + sums.billed.written).into();
            row["cached_tokens"] = sums.billed.cached.into();
            row
        });
        figures["senders"] = senders.collect();
        figures["conversations"] = changed.into_iter().map(Conversation::row).collect();
        figures
    }

    /// One conversation, call by call, as JSON.
    pub(crate) fn conversation_row(&self, number: u64) -> Option<Value> {
        let mut all = self.conversations.values();
        let one = all.find(|one| one.number == number)?;
        let mut shown = one.row();
        shown["sizes"] = json!(one.sizes);
        shown["changes"] = json!(one.changes);
        let misses = one.misses.iter().map(|(call, miss)| {
            let [kind, meaning, cure] = miss.why.row();
            json!({"call": call, "kind": kind, "part": miss.part.name(), "bytes": miss.bytes, "tokens": miss.tokens, "meaning": meaning, "cure": cure})
        });
        shown["misses"] = misses.collect();
        Some(shown)
    }
}

impl Conversation {
    /// Number of reads that a history has more than all before it. One that was compacted has less.
    fn new_reads(&mut self, reads: u64) -> u64 {
        let new = reads.saturating_sub(self.seen_reads);
        self.seen_reads += new;
        new
    }

    fn row(&self) -> Value {
        let mut row = self.totals.row();
        row["whose"] = json!(self.whose);
        row["number"] = self.number.into();
        row["upstream"] = self.upstream.as_str().into();
        row["passed"] = self.totals.passed.into();
        row["last"] = self.last.into();
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(state: &mut State, look: Look) {
        let whose = look.whose.clone().or(Some(Whose::others()));
        state.call("lab".to_owned(), &Look { whose, ..look }, Instant::now());
    }

    #[test]
    fn reads_are_counted_once_and_not_if_they_were_made_before() {
        let mut state = State::default();
        let mut reads = |reads| {
            let look = Look {
                conversation: Some("one".to_owned()),
                reads,
                ..Look::default()
            };
            call(&mut state, look);
            state.figures(0)["reads"].as_u64().unwrap()
        };
        // The fourth history was compacted.
        assert_eq!([2, 2, 3, 1, 1, 5].map(&mut reads), [0, 0, 1, 1, 1, 3]);
        state.read("gone");
        assert_eq!(state.figures(0)["reads"], 4);
        assert_eq!(state.conversation_row(1).unwrap()["reads"], 3);
    }

    #[test]
    fn a_flood_of_senders_is_one() {
        let mut state = State::default();
        let whose = Whose::others().with_model("m");
        for n in 0..2 * SENDERS {
            let whose = whose.clone().with_model(&n.to_string());
            call(&mut state, Look::unread(whose, 5));
        }
        assert_eq!(state.senders.len(), SENDERS + 1);
        assert_eq!(state.senders[&Whose::others()].totals.calls, SENDERS as u64);
    }

    #[test]
    fn the_conversation_that_was_silent_for_longest_goes() {
        let mut state = State::default();
        let mut add = |name: usize| {
            let look = Look {
                conversation: Some(name.to_string()),
                would: Prompt::unread(3),
                sent: Some(Prompt::unread(2)),
                ..Look::default()
            };
            call(&mut state, look);
        };
        (0..CONVERSATIONS).for_each(&mut add);
        (0..CALLS + 9).for_each(|_| add(0));
        add(CONVERSATIONS);
        let figures = state.figures(0);
        assert_eq!(figures["held"], CONVERSATIONS);
        assert_eq!(figures["known"], CONVERSATIONS as u64 + 1);
        assert_eq!(figures["would"], 3 * (CONVERSATIONS + CALLS + 10) as u64);
        assert!(state.conversation_row(1).is_some(), "it was not silent");
        assert_eq!(state.conversation_row(2), None);
        let sizes = &state.conversation_row(1).unwrap()["sizes"];
        assert_eq!(sizes.as_array().unwrap().len(), CALLS);
        let since = figures["changed"].as_u64().unwrap();
        assert_eq!(
            state.figures(since - 1)["conversations"]
                .as_array()
                .unwrap()
                .len(),
            1
        );
    }
}
