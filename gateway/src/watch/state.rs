//! The conversations that are held, within limits.

use std::collections::{BTreeMap, HashMap, VecDeque};

use offcut::Report;
use offcut::report::Outcome as Decided;
use serde_json::{Value, json};

use crate::holdout::Group;
use crate::outcome::{Outcome, Reason};

/// Number of conversations that are held; the one that was silent for longest goes first.
const CONVERSATIONS: usize = 1_000;
/// Number of calls of a conversation, and of changes, that are held; the newest stay.
const CALLS: usize = 500;
const CHANGES: usize = 100;
/// Number of characters of a tool's name, which a client chooses.
const NAME: usize = 60;

/// A request as the reducer has looked at it.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// The prefix of the conversation, if it has been found.
    pub(crate) conversation: Option<String>,
    /// The group of the conversation, where some are left alone.
    pub(crate) group: Option<Group>,
    changes: Vec<Change>,
}

/// A result that has been replaced for the first time.
#[derive(Debug)]
struct Change {
    /// The call of the model, counted from 1.
    call: u64,
    at: u64,
    tool: String,
    is_cut: bool,
    why: &'static str,
    before: u64,
    after: u64,
}

/// A request to a provider.
#[derive(Debug)]
pub(super) struct Call {
    /// Seconds since the start.
    pub(super) at: u64,
    pub(super) would: u64,
    pub(super) sent: u64,
}

#[derive(Debug, Default)]
struct Conversation {
    number: u64,
    /// The state's `changed` at its last change.
    changed: u64,
    upstream: String,
    calls: u64,
    would: u64,
    sent: u64,
    cut: u64,
    cleared: u64,
    passed: u64,
    last: u64,
    sizes: VecDeque<Call>,
    changes: VecDeque<Change>,
}

/// All that is held.
#[derive(Debug, Default)]
pub(super) struct State {
    conversations: HashMap<String, Conversation>,
    known: u64,
    changed: u64,
    calls: u64,
    would: u64,
    sent: u64,
    cut: u64,
    cleared: u64,
    pub(super) reads: u64,
    passed: BTreeMap<&'static str, (u64, &'static str)>,
}

impl Look {
    /// Adds what a report decides for the first time.
    pub(crate) fn add(&mut self, report: &Report) {
        for decision in &report.decisions {
            let (is_cut, why) = match decision.outcome {
                Decided::Truncated => (true, "over the limit"),
                Decided::Previewed => (true, "a preview saves more than it costs"),
                Decided::Paged => (true, "a page of stored content, over the limit"),
                Decided::Cleared => (false, "old, above the threshold"),
                Decided::Shortened => (false, "an old hint, above the threshold"),
                Decided::Rewritten | Decided::Replaced => (false, "by code of the user"),
                Decided::Lost => (false, "the store failed, and the text is gone"),
                _ => continue,
            };
            self.changes.push(Change {
                call: 0,
                at: 0,
                tool: decision.tool.chars().take(NAME).collect(),
                is_cut,
                why,
                before: decision.bytes.before,
                after: decision.bytes.after,
            });
        }
    }
}

fn push<T>(list: &mut VecDeque<T>, limit: usize, one: T) {
    if list.len() >= limit {
        list.pop_front();
    }
    list.push_back(one);
}

impl State {
    pub(super) fn call(&mut self, upstream: &str, look: Look, call: Call, outcome: Outcome) {
        self.changed += 1;
        let Look {
            conversation,
            group: _,
            changes,
        } = look;
        let cut = changes.iter().filter(|change| change.is_cut).count() as u64;
        let cleared = changes.len() as u64 - cut;
        self.calls += 1;
        self.would += call.would;
        self.sent += call.sent;
        self.cut += cut;
        self.cleared += cleared;
        if let Outcome::Passed(reason) = outcome {
            self.pass(reason);
        }
        let Some(name) = conversation else {
            return;
        };
        let changed = self.changed;
        let is_new = !self.conversations.contains_key(&name);
        if is_new && self.conversations.len() >= CONVERSATIONS {
            let oldest = self.conversations.iter().min_by_key(|(_, one)| one.changed);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                self.conversations.remove(&oldest);
            }
        }
        self.known += u64::from(is_new);
        let number = self.known;
        let one = self.conversations.entry(name);
        let one = one.or_insert_with(|| Conversation {
            number,
            upstream: upstream.to_owned(),
            ..Conversation::default()
        });
        one.changed = changed;
        one.calls += 1;
        one.would += call.would;
        one.sent += call.sent;
        one.cut += cut;
        one.cleared += cleared;
        one.passed += u64::from(matches!(outcome, Outcome::Passed(_)));
        one.last = call.at;
        for change in changes {
            let change = Change {
                call: one.calls,
                at: call.at,
                ..change
            };
            push(&mut one.changes, CHANGES, change);
        }
        push(&mut one.sizes, CALLS, call);
    }

    pub(super) fn refused(&mut self, conversation: &str, original: u64) {
        self.changed += 1;
        self.sent += original;
        self.pass(Reason::Refused);
        let changed = self.changed;
        if let Some(one) = self.conversations.get_mut(conversation) {
            one.changed = changed;
            one.sent += original;
            one.passed += 1;
            if let Some(last) = one.sizes.back_mut() {
                last.sent += original;
            }
        }
    }

    fn pass(&mut self, reason: Reason) {
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
        json!({
            "changed": self.changed,
            "known": self.known,
            "held": self.conversations.len(),
            "most": CONVERSATIONS,
            "calls": self.calls,
            "would": self.would,
            "sent": self.sent,
            "cut": self.cut,
            "cleared": self.cleared,
            "reads": self.reads,
            "passed": passed.collect::<Vec<_>>(),
            "conversations": changed.into_iter().map(Conversation::row).collect::<Vec<_>>(),
        })
    }

    pub(super) fn conversation(&self, number: u64) -> Option<Value> {
        let mut all = self.conversations.values();
        let one = all.find(|one| one.number == number)?;
        let sizes = one.sizes.iter().map(|call| [call.would, call.sent]);
        let changes = one.changes.iter().map(|change| {
            let Change {
                call,
                at,
                tool,
                is_cut,
                why,
                before,
                after,
            } = change;
            let what = if *is_cut { "cut" } else { "cleared" };
            json!({"call": call, "at": at, "tool": tool, "what": what, "why": why, "before": before, "after": after})
        });
        let mut shown = one.row();
        shown["sizes"] = sizes.collect::<Vec<_>>().into();
        shown["changes"] = changes.collect::<Vec<_>>().into();
        Some(shown)
    }
}

impl Conversation {
    fn row(&self) -> Value {
        json!({
            "number": self.number,
            "upstream": self.upstream,
            "calls": self.calls,
            "would": self.would,
            "sent": self.sent,
            "cut": self.cut,
            "cleared": self.cleared,
            "passed": self.passed,
            "last": self.last,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_conversation_that_was_silent_for_longest_goes() {
        let mut state = State::default();
        let mut call = |name: usize| {
            let look = Look {
                conversation: Some(name.to_string()),
                group: None,
                changes: Vec::new(),
            };
            let call = Call {
                at: 0,
                would: 3,
                sent: 2,
            };
            state.call("lab", look, call, Outcome::Unchanged);
        };
        (0..CONVERSATIONS).for_each(&mut call);
        (0..CALLS + 9).for_each(|_| call(0));
        call(CONVERSATIONS);
        let figures = state.figures(0);
        assert_eq!(figures["held"], CONVERSATIONS);
        assert_eq!(figures["known"], CONVERSATIONS as u64 + 1);
        assert_eq!(figures["would"], 3 * (CONVERSATIONS + CALLS + 10) as u64);
        assert!(state.conversation(1).is_some(), "it was not silent");
        assert_eq!(state.conversation(2), None);
        let sizes = &state.conversation(1).unwrap()["sizes"];
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
