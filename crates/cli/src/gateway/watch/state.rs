//! The conversations that are held, within limits.

use std::collections::{BTreeMap, HashMap, VecDeque};

use serde_json::{Value, json};

use super::look::{Change, Look};
use super::miss::{ExpectedCache, MissSums, PromptMiss, RecentPrompts};
use super::prompt::Prompt;
use super::totals::Totals;
use crate::gateway::outcome::{Outcome, PassReason};
use crate::gateway::record::{CacheMiss, RequestRecord, Size};
use crate::gateway::whose::Whose;
use crate::usage::ProviderUsage;

/// Number of conversations that are held; the one that was silent for longest goes first.
const CONVERSATIONS: usize = 1_000;
/// Number of calls of a conversation, and of changes, that are held; the newest stay.
const CALLS: usize = 500;
const CHANGES: usize = 100;

/// Number of senders that are told apart.
const SENDERS: usize = 200;

/// The sender of a request, which decides what is known of its provider's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Traffic {
    /// An agent: the requests of a conversation follow each other.
    Agent,
    /// A gateway that calls the plug: conversations can't be told apart, so all calls of a tenant are one row. All
    /// bytes count as cached, so that too little is claimed as saved.
    Gateway,
}

/// A request to a provider, or a call of the plug.
#[derive(Debug)]
pub(super) struct WatchedCall {
    /// Seconds since the start.
    pub(super) at: u64,
    pub(super) upstream: String,
    pub(super) traffic: Traffic,
    pub(super) look: Look,
    pub(super) outcome: Outcome,
    /// The same request as it was refused, in another form.
    pub(super) refused: Option<RequestRecord>,
}

/// A call whose provider will say what it bills.
#[derive(Debug)]
pub(crate) struct AwaitedBill {
    pub(crate) whose: Whose,
    /// The conversation, if it is known, the number of the call, and what the cache should hold of it.
    expected: Option<(String, u64, ExpectedCache)>,
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
#[derive(Debug, Default)]
pub(super) struct State {
    conversations: HashMap<String, Conversation>,
    known: u64,
    changed: u64,
    totals: Totals,
    passed: BTreeMap<&'static str, (u64, &'static str)>,
    misses: MissSums,
    senders: BTreeMap<Whose, SenderSums>,
}

fn push<T>(list: &mut VecDeque<T>, limit: usize, one: T) {
    if list.len() >= limit {
        list.pop_front();
    }
    list.push_back(one);
}

impl State {
    /// Forgets a request of a conversation, of `sent` bytes: the provider has not taken it.
    pub(super) fn forget(&mut self, conversation: &str, sent: u64) {
        if let Some(one) = self.conversations.get_mut(conversation) {
            one.recent.forget(sent);
        }
    }

    /// Returns true if the provider's cache holds little of a request of a conversation, `at` a time.
    pub(super) fn is_cold(&self, conversation: &str, would: &Prompt, at: u64) -> bool {
        let one = self.conversations.get(conversation);
        one.is_some_and(|one| one.recent.is_cold(would, at.saturating_sub(one.last)))
    }

    /// Adds a request. Returns its figures, and what to compare its bill with.
    pub(super) fn call(&mut self, call: WatchedCall) -> (RequestRecord, Option<AwaitedBill>) {
        self.changed += 1;
        let WatchedCall {
            at,
            upstream,
            traffic,
            look,
            outcome,
            refused,
        } = call;
        let taken_back = refused.as_ref().map(|refused| refused.after);
        let is_again = refused.is_some();
        let counts = look.counts();
        let is_open = outcome.reason().is_some();
        let name = match traffic {
            Traffic::Agent => look.conversation.clone(),
            Traffic::Gateway => Some(upstream.clone()),
        };
        let is_changed = look.sent.is_some();
        let sent = look.sent.unwrap_or_else(|| look.would.clone());
        let mut sizes = match traffic {
            Traffic::Agent => [&look.would, &sent].map(|body| Size::all_fresh(body.bytes())),
            Traffic::Gateway => [&look.would, &sent].map(|body| Size::all_cached(body.bytes())),
        };
        if is_again {
            sizes[0] = Size::default();
        }
        let (mut reads, mut missed, mut awaited) = (0, None, None);
        if let Some(name) = name {
            let one = self.conversation(&name, &upstream, look.reads);
            if traffic == Traffic::Agent {
                let seconds = at.saturating_sub(one.last);
                let (next, mut expected) = one.recent.next([look.would, sent], seconds);
                if is_again {
                    sizes[1] = next[1];
                    expected.miss = expected.miss.filter(|_| is_changed);
                } else {
                    sizes = next;
                    reads = one.new_reads(look.reads);
                }
                missed = expected.miss;
                let call = one.totals.calls + u64::from(!is_again);
                if let Some(miss) = missed {
                    push(&mut one.misses, CHANGES, (call, miss));
                }
                awaited = Some((name, call, expected));
            }
            let [would, sent] = sizes;
            one.whose = look.whose.clone().or(one.whose.take());
            one.totals.add(sizes, taken_back, counts);
            one.totals.reads += reads;
            one.totals.passed += u64::from(is_open);
            one.last = at;
            for change in look.changes {
                let call = one.totals.calls;
                push(&mut one.changes, CHANGES, change.at(call, at));
            }
            match one.sizes.back_mut().filter(|_| is_again) {
                Some([_, before]) => *before = sent.bytes(),
                None => push(&mut one.sizes, CALLS, [would.bytes(), sent.bytes()]),
            }
        }
        let [would, sent] = sizes;
        self.totals.add(sizes, taken_back, counts);
        self.totals.reads += reads;
        let bill = look.whose.map(|whose| {
            let whose = self.sender(whose);
            let sums = self.senders.entry(whose.clone()).or_default();
            sums.totals.add(sizes, taken_back, counts);
            AwaitedBill {
                whose,
                expected: awaited,
            }
        });
        if let Some(miss) = &missed {
            self.misses.add(miss);
        }
        if let Some(reason) = outcome.reason() {
            self.pass(reason);
        }
        let outcome = match outcome {
            Outcome::Passed(reason) => reason.name(),
            other => other.name(),
        };
        let [model, client] = match &bill {
            Some(AwaitedBill { whose, .. }) => [whose.model.clone(), whose.client.clone()],
            None => [String::new(), String::new()],
        };
        let record = RequestRecord {
            upstream,
            conversation: look.conversation,
            model,
            client,
            outcome,
            replaced: counts.iter().sum::<u64>()
                + refused.as_ref().map_or(0, |refused| refused.replaced),
            before: refused.map_or(would, |refused| refused.before),
            after: sent,
            miss: missed.map(|miss| CacheMiss {
                kind: miss.why.words()[0],
                part: miss.part.name(),
                bytes: miss.bytes,
            }),
        };
        (record, bill)
    }

    /// Adds a provider's count of a call. Returns the call's miss, if it has one by that.
    pub(super) fn billed(
        &mut self,
        bill: &AwaitedBill,
        usage: ProviderUsage,
    ) -> Option<PromptMiss> {
        let senders = self.senders.get_mut(&bill.whose);
        senders.into_iter().for_each(|sums| sums.billed += usage);
        self.changed += 1;
        let (conversation, number, expected) = bill.expected.as_ref()?;
        let miss = expected.billed(usage)?;
        if let Some(before) = &expected.miss {
            self.misses.remove(before);
        }
        self.misses.add(&miss);
        let changed = self.changed;
        if let Some(one) = self.conversations.get_mut(conversation) {
            one.changed = changed;
            let mut rows = one.misses.iter_mut();
            match rows.find(|(call, _)| call == number) {
                Some((_, row)) => *row = miss,
                None => push(&mut one.misses, CHANGES, (*number, miss)),
            }
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

    /// Adds a read of a tenant of the plug, whose row may be gone.
    pub(super) fn read(&mut self, name: &str) {
        self.changed += 1;
        self.totals.reads += 1;
        let changed = self.changed;
        if let Some(one) = self.conversations.get_mut(name) {
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

    fn pass(&mut self, reason: PassReason) {
        let meaning = reason.meaning();
        self.passed.entry(reason.name()).or_insert((0, meaning)).0 += 1;
    }

    pub(super) fn figures(&self, since: u64) -> Value {
        let mut changed: Vec<_> = self
            .conversations
            .values()
            .filter(|one| one.changed > since)
            .collect();
        changed.sort_by_key(|one| one.changed);
        let passed = self.passed.iter().map(|(reason, (count, meaning))| {
            json!({"reason": reason, "count": count, "meaning": meaning})
        });
        let mut figures = self.totals.row();
        figures["changed"] = self.changed.into();
        figures["known"] = self.known.into();
        figures["held"] = self.conversations.len().into();
        figures["most"] = CONVERSATIONS.into();
        figures["passed"] = passed.collect();
        figures["misses"] = self.misses.rows();
        let senders = self.senders.iter().map(|(whose, sums)| {
            let mut row = whose.row();
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

    pub(super) fn conversation_row(&self, number: u64) -> Option<Value> {
        let mut all = self.conversations.values();
        let one = all.find(|one| one.number == number)?;
        let mut shown = one.row();
        shown["sizes"] = one.sizes.iter().copied().map(Value::from_iter).collect();
        shown["changes"] = one.changes.iter().map(Change::row).collect();
        let misses = one.misses.iter().map(|(call, miss)| {
            let [kind, meaning, cure] = miss.why.words();
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
        row["whose"] = self.whose.as_ref().map(Whose::row).into();
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

    fn request(look: Look) -> WatchedCall {
        WatchedCall {
            at: 0,
            upstream: "lab".to_owned(),
            traffic: Traffic::Agent,
            look,
            outcome: Outcome::Unchanged,
            refused: None,
        }
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
            state.call(request(look));
            state.figures(0)["reads"].as_u64().unwrap()
        };
        // The fourth history was compacted.
        assert_eq!([2, 2, 3, 1, 1, 5].map(&mut reads), [0, 0, 1, 1, 1, 3]);
        state.read("plug gone");
        assert_eq!(state.figures(0)["reads"], 4);
        assert_eq!(state.conversation_row(1).unwrap()["reads"], 3);
    }

    #[test]
    fn a_flood_of_senders_is_one() {
        let mut state = State::default();
        let whose = Whose::others().with_model("m");
        for n in 0..2 * SENDERS {
            let whose = whose.clone().with_model(&n.to_string());
            state.call(request(Look::unread(whose, 5)));
        }
        assert_eq!(state.senders.len(), SENDERS + 1);
        assert_eq!(state.senders[&Whose::others()].totals.calls, SENDERS as u64);
    }

    #[test]
    fn the_conversation_that_was_silent_for_longest_goes() {
        let mut state = State::default();
        let mut call = |name: usize| {
            let look = Look {
                conversation: Some(name.to_string()),
                would: Prompt::unread(3),
                sent: Some(Prompt::unread(2)),
                ..Look::default()
            };
            state.call(request(look));
        };
        (0..CONVERSATIONS).for_each(&mut call);
        (0..CALLS + 9).for_each(|_| call(0));
        call(CONVERSATIONS);
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
