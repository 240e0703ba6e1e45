//! Requests as the reducer has looked at them, the figures since the server has started, and the conversations that are
//! held, within limits.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::AddAssign;
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::Instant;

use bytes::Bytes;
use offcut::Report;
use offcut::report::Outcome as Decided;
use serde::Serialize;
use serde_json::{Value, json};

use super::miss::{ExpectedCache, MissSums, PromptMiss, RecentPrompts};
use super::prompt::{Prompt, Size};
use crate::gateway::metrics::{Metric, Metrics};
use crate::gateway::naming::Group;
use crate::gateway::outcome::{Outcome, PassReason};
use crate::gateway::whose::Whose;
use crate::lock::locked;
use crate::usage::ProviderUsage;

/// Number of conversations that are held; the one that was silent for longest goes first.
const CONVERSATIONS: usize = 1_000;
/// Number of calls of a conversation, and of changes, that are held; the newest stay.
const CALLS: usize = 500;
const CHANGES: usize = 100;

/// Number of senders that are told apart.
const SENDERS: usize = 200;

/// Number of characters of a tool's name, which a client chooses.
const NAME: usize = 60;
const CUT: &str = "cut";

/// A request as the reducer has looked at it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Look {
    /// The prefix of the conversation, if it has been found.
    pub(crate) conversation: Option<String>,
    /// The group of the conversation, where some are left alone.
    pub(crate) group: Option<Group>,
    /// The body as it came.
    pub(crate) before: Prompt,
    /// The body as it goes on; `None` if that is the same.
    pub(crate) after: Option<Prompt>,
    /// The body to send in place of the one that came, or the answer of the plug.
    pub(crate) text: Option<Bytes>,
    pub(crate) outcome: Outcome,
    /// True if the provider has taken the request in this form, so that its cache holds it.
    pub(crate) is_taken: bool,
    /// Number of calls in the conversation that read stored content.
    pub(crate) reads: u64,
    /// True if the model has only read stored content in its last message: without this server, nobody would have sent
    /// the request.
    pub(crate) is_reading: bool,
    pub(crate) whose: Whose,
    pub(crate) changes: Vec<Change>,
}

/// A result that has been replaced for the first time.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Change {
    /// The call of the model, counted from 1.
    call: u64,
    /// Seconds since the start.
    at: u64,
    tool: String,
    what: &'static str,
    why: &'static str,
    before: u64,
    after: u64,
}

impl Look {
    /// A request of `bytes` that was not read.
    pub(crate) fn unread(whose: Whose, bytes: u64) -> Self {
        Self {
            whose,
            before: Prompt::unread(bytes),
            ..Self::default()
        }
    }

    /// The same request, which passes unchanged for this reason.
    pub(crate) fn passed(self, reason: PassReason) -> Self {
        let outcome = Outcome::Passed(reason);
        Self { outcome, ..self }
    }

    /// Adds what a report decides for the first time.
    pub(crate) fn add(&mut self, report: &Report) {
        for decision in &report.decisions {
            let (what, why) = match decision.outcome {
                Decided::Truncated => (CUT, "over the limit"),
                Decided::Paged => (CUT, "a page of stored content, over the limit"),
                Decided::Cleared => ("cleared", "old, above the threshold"),
                Decided::Shortened => ("cleared", "an old hint, above the threshold"),
                Decided::Replaced => ("cleared", "by code of the user"),
                Decided::Lost => ("cleared", "the store failed, and the text is gone"),
                _ => continue,
            };
            self.changes.push(Change {
                call: 0,
                at: 0,
                tool: decision.tool.chars().take(NAME).collect(),
                what,
                why,
                before: decision.bytes.before,
                after: decision.bytes.after,
            });
        }
    }

    /// Numbers of the results cut and cleared.
    fn counts(&self) -> [u64; 2] {
        let cut = self.changes.iter().filter(|change| change.what == CUT);
        let cut = cut.count();
        [cut, self.changes.len() - cut].map(|count| count as u64)
    }
}

/// The figures of a request that went on to its provider, or of a call of the plug. No content.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestRecord {
    /// The upstream's name, or `plug` and the name of the tenant.
    pub upstream: String,
    /// The name of the conversation, which tells nothing of its content; `None` if the request has
    /// none.
    pub conversation: Option<String>,
    /// The model that was asked, and the program that asked, by its `user-agent`; `unknown` if the request does not
    /// say.
    pub model: String,
    pub client: String,
    /// Number of results that were cut for the first time, and of those that were cleared.
    pub cut: u64,
    pub cleared: u64,
    /// The request's body as it came; nothing if it only tells what was read of stored content, since nobody would have
    /// sent it otherwise.
    pub before: Size,
    /// The body as it went on.
    pub after: Size,
    /// Number of reads of stored content since the request before.
    pub reads: u64,
    /// The reason for what was not replaced.
    reason: Option<PassReason>,
}

/// The sum of some requests.
#[derive(Debug, Default, Serialize)]
struct Totals {
    calls: u64,
    /// The bytes that would have been sent.
    before: u64,
    before_fresh: u64,
    /// The bytes that were sent.
    after: u64,
    after_fresh: u64,
    cut: u64,
    cleared: u64,
    /// Number of reads of stored content.
    reads: u64,
    /// Number of requests that passed open.
    passed: u64,
}

impl AddAssign<&RequestRecord> for Totals {
    fn add_assign(&mut self, record: &RequestRecord) {
        self.calls += 1;
        self.before += record.before.bytes();
        self.before_fresh += record.before.fresh;
        self.after += record.after.bytes();
        self.after_fresh += record.after.fresh;
        self.cut += record.cut;
        self.cleared += record.cleared;
        self.reads += record.reads;
        self.passed += u64::from(record.reason.is_some());
    }
}

/// A call whose provider will say what it bills.
#[derive(Debug)]
pub(crate) struct AwaitedBill {
    whose: Whose,
    /// The conversation, if it is known, the number of the call, and what the cache should hold of it.
    expected: Option<(String, u64, ExpectedCache)>,
}

impl AwaitedBill {
    /// The miss that is expected.
    pub(crate) fn miss(&self) -> Option<PromptMiss> {
        self.expected.as_ref()?.2.miss
    }
}

#[derive(Debug, Default, Serialize)]
struct Conversation {
    number: u64,
    upstream: String,
    /// The sender of the last call.
    whose: Whose,
    #[serde(flatten)]
    totals: Totals,
    /// Seconds from the start to the last call.
    last: u64,
    /// The state's `changed` at its last change.
    #[serde(skip)]
    changed: u64,
    #[serde(skip)]
    recent: RecentPrompts,
    /// Number of reads in the last request's history, or in a longer one before it.
    #[serde(skip)]
    seen_reads: u64,
    #[serde(skip)]
    sizes: VecDeque<[u64; 2]>,
    #[serde(skip)]
    changes: VecDeque<Change>,
    /// The newest misses of the provider's cache, with the number of their call.
    #[serde(skip)]
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
    senders: BTreeMap<Whose, (Totals, ProviderUsage)>,
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

/// Is told the figures of each request.
type Listener = Box<dyn Fn(&RequestRecord) + Send + Sync>;

/// The figures since the server has started.
#[derive(Default)]
pub(crate) struct Watch {
    state: Mutex<State>,
    pub(crate) listener: OnceLock<Listener>,
}

impl Watch {
    /// The figures, to be changed in one step.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// Adds a request that came at `begun`, and tells the listener. Returns what to compare its bill with.
    pub(crate) fn call(&self, upstream: &str, look: &Look, begun: Instant) -> AwaitedBill {
        let (record, bill) = self.state().call(upstream, look, begun);
        if let Some(listener) = self.listener.get() {
            listener(&record);
        }
        bill
    }
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

    fn call(
        &mut self,
        upstream: &str,
        look: &Look,
        begun: Instant,
    ) -> (RequestRecord, AwaitedBill) {
        self.changed += 1;
        let at = begun.saturating_duration_since(self.begun).as_secs();
        let whose = self.sender(look.whose.clone());
        let before = look.before.clone();
        let after = look.after.as_ref().unwrap_or(&before).clone();
        let forms = [before, after];
        let [cut, cleared] = look.counts();
        let mut record = RequestRecord {
            upstream: upstream.to_owned(),
            // All calls of a gateway are one row, and no conversation.
            conversation: look.conversation.clone().filter(|name| name != upstream),
            model: whose.model.clone(),
            client: whose.client.clone(),
            cut,
            cleared,
            before: forms[0].after(&Prompt::default()),
            after: forms[1].after(&Prompt::default()),
            reads: 0,
            reason: look.outcome.reason(),
        };
        let mut expected = None;
        if let Some(name) = &look.conversation {
            let one = self.conversation(name, upstream, look.reads);
            let call = one.totals.calls + 1;
            let (sizes, cache) = one.recent.next(&forms, at.saturating_sub(one.last));
            [record.before, record.after] = sizes;
            // A history that was compacted has less.
            record.reads = look.reads.saturating_sub(one.seen_reads);
            one.seen_reads += record.reads;
            if look.is_taken {
                one.recent.add(forms);
                expected = Some((name.clone(), call, cache));
            }
            if look.is_reading {
                record.before = Size::default();
            }
            one.whose.clone_from(&look.whose);
            one.totals += &record;
            one.last = at;
            for mut change in look.changes.iter().cloned() {
                (change.call, change.at) = (call, at);
                push(&mut one.changes, CHANGES, change);
            }
            let sizes = [record.before.bytes(), record.after.bytes()];
            push(&mut one.sizes, CALLS, sizes);
        }
        self.totals += &record;
        if let Some(reason) = record.reason {
            *self.passed.entry(reason).or_default() += 1;
        }
        self.senders.entry(whose.clone()).or_default().0 += &record;
        (record, AwaitedBill { whose, expected })
    }

    /// Adds a provider's count of a call. Returns the call's miss, if it has one by that.
    pub(crate) fn billed(
        &mut self,
        bill: &AwaitedBill,
        usage: ProviderUsage,
    ) -> Option<PromptMiss> {
        if let Some((_, billed)) = self.senders.get_mut(&bill.whose) {
            *billed += usage;
        }
        self.changed += 1;
        let (conversation, number, expected) = bill.expected.as_ref()?;
        let miss = expected.billed(usage)?;
        self.misses.add(&miss);
        if let Some(one) = self.conversations.get_mut(conversation) {
            one.changed = self.changed;
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

    /// Sets the metrics that are figures of the page too.
    pub(crate) fn write(&self, metrics: &Metrics) {
        metrics.set(Metric::Reads, &[], self.totals.reads);
        for (when, amount) in [("before", self.totals.before), ("after", self.totals.after)] {
            metrics.set(Metric::Bytes, &[("when", when)], amount);
        }
        for (whose, (totals, billed)) in &self.senders {
            for (metric, kind, value, amount) in [
                (Metric::SenderBytes, "when", "before", totals.before),
                (Metric::SenderBytes, "when", "after", totals.after),
                (Metric::SenderTokens, "kind", "fresh", billed.fresh),
                (
                    Metric::SenderTokens,
                    "kind",
                    "cached",
                    billed.cached.unwrap_or(0),
                ),
                (Metric::SenderTokens, "kind", "written", billed.written),
            ] {
                let labels = [
                    ("tenant", &*whose.tenant),
                    ("model", &whose.model),
                    ("client", &whose.client),
                    (kind, value),
                ];
                metrics.set(metric, &labels, amount);
            }
        }
    }

    /// Adds a read by a tenant of the plug, whose row may be gone.
    pub(crate) fn read(&mut self, conversation: &str) {
        self.changed += 1;
        self.totals.reads += 1;
        if let Some(one) = self.conversations.get_mut(conversation) {
            one.changed = self.changed;
            one.totals.reads += 1;
        }
    }

    /// The conversation of this name, which has changed. If it is new, what its history has read was read before.
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
        let all = self.conversations.values();
        let mut changed: Vec<_> = all.filter(|one| one.changed > since).collect();
        changed.sort_by_key(|one| one.changed);
        let passed = self.passed.iter().map(|(reason, count)| {
            json!({"reason": reason.name(), "count": count, "meaning": reason.meaning()})
        });
        let senders = self.senders.iter().map(|(whose, (totals, billed))| {
            let mut row = json!(whose);
            row["calls"] = totals.calls.into();
            row["before"] = totals.before.into();
            row["after"] = totals.after.into();
            row["fresh_tokens"] = (billed.fresh + billed.written).into();
            row["cached_tokens"] = billed.cached.into();
            row
        });
        let mut figures = json!(self.totals);
        figures["seconds"] = self.seconds().into();
        figures["card"] = self.card.clone();
        figures["changed"] = self.changed.into();
        figures["known"] = self.known.into();
        figures["held"] = self.conversations.len().into();
        figures["most"] = CONVERSATIONS.into();
        figures["passed"] = passed.collect();
        figures["misses"] = self.misses.rows();
        figures["senders"] = senders.collect();
        figures["conversations"] = json!(changed);
        figures
    }

    /// One conversation, call by call, as JSON.
    pub(crate) fn conversation_row(&self, number: u64) -> Option<Value> {
        let mut all = self.conversations.values();
        let one = all.find(|one| one.number == number)?;
        let misses = one.misses.iter().map(|(call, miss)| {
            let mut row = miss.row();
            row["call"] = (*call).into();
            row
        });
        let mut shown = json!(one);
        shown["sizes"] = json!(one.sizes);
        shown["changes"] = json!(one.changes);
        shown["misses"] = misses.collect();
        Some(shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(state: &mut State, look: &Look) {
        state.call("lab", look, Instant::now());
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
            call(&mut state, &look);
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
        for n in 0..2 * SENDERS {
            let mut whose = Whose::others();
            whose.name_model(&n.to_string());
            call(&mut state, &Look::unread(whose, 5));
        }
        assert_eq!(state.senders.len(), SENDERS + 1);
        assert_eq!(state.senders[&Whose::others()].0.calls, SENDERS as u64);
    }

    #[test]
    fn the_conversation_that_was_silent_for_longest_goes() {
        let mut state = State::default();
        let mut add = |name: usize| {
            let look = Look {
                conversation: Some(name.to_string()),
                before: Prompt::unread(3),
                after: Some(Prompt::unread(2)),
                ..Look::default()
            };
            call(&mut state, &look);
        };
        (0..CONVERSATIONS).for_each(&mut add);
        (0..CALLS + 9).for_each(|_| add(0));
        add(CONVERSATIONS);
        let figures = state.figures(0);
        assert_eq!(figures["held"], CONVERSATIONS);
        assert_eq!(figures["known"], CONVERSATIONS as u64 + 1);
        assert_eq!(figures["before"], 3 * (CONVERSATIONS + CALLS + 10) as u64);
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
