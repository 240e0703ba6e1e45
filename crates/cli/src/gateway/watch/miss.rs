//! The reasons for which a provider's cache holds less of a request than it could.

use std::collections::{BTreeMap, HashMap, VecDeque};

use serde_json::{Value, json};

use super::prompt::{PartHash, Prompt, PromptPart, Size};
use crate::units::BYTES_PER_TOKEN;
use crate::usage::ProviderUsage;

/// Fewer bytes are not worth a word: providers cache from 1,024 tokens on.
const LEAST: u64 = 4096;
/// Number of requests that a request is compared with.
const RECENT: usize = 4;

/// The newest requests of a conversation, as they came and as they went on. One on the side, such as
/// one for a summary, leaves the cache of the others as it is.
#[derive(Debug, Default)]
pub(crate) struct RecentPrompts(VecDeque<[Prompt; 2]>);

impl RecentPrompts {
    /// The sizes of the next request, which comes `seconds` after the last one, and what its provider's cache should
    /// hold of it.
    pub(crate) fn next(&self, now: &[Prompt; 2], seconds: u64) -> ([Size; 2], ExpectedCache) {
        let none = <[Prompt; 2]>::default();
        let before = self.nearest(&now[1], |[_, sent]| sent).unwrap_or(&none);
        let sizes = [now[0].after(&before[0]), now[1].after(&before[1])];
        let expected = ExpectedCache {
            miss: miss([&now[0], &now[1]], [&before[0], &before[1]], seconds),
            kept: now[1].kept_of(&before[1]),
            bytes: now[1].bytes(),
        };
        (sizes, expected)
    }

    /// Adds a request that the provider has taken.
    pub(crate) fn add(&mut self, now: [Prompt; 2]) {
        if self.0.len() >= RECENT {
            self.0.pop_front();
        }
        self.0.push_back(now);
    }

    /// The request of which a prompt begins with the most bytes, the newest of several.
    fn nearest(
        &self,
        now: &Prompt,
        form: impl Fn(&[Prompt; 2]) -> &Prompt,
    ) -> Option<&[Prompt; 2]> {
        let all = self.0.iter();
        all.max_by_key(|one| now.differs_from(form(one)).1)
    }

    /// Returns true if the provider's cache holds little of a request that comes `seconds` after the last one: its
    /// lifetime is over, or the client has changed messages in its first half. Other tools or instructions, now or
    /// before, are those of a request on the side.
    pub(crate) fn is_cold(&self, would: &Prompt, seconds: u64) -> bool {
        let Some([came, sent]) = self.nearest(would, |[came, _]| came) else {
            return false;
        };
        let (part, front) = would.differs_from(came);
        let has_same_head = |[before, _]: &[Prompt; 2]| {
            matches!(would.differs_from(before).0, PromptPart::Message(_))
        };
        let is_broken = matches!(part, PromptPart::Message(_))
            && front < would.bytes() / 2
            && self.0.iter().all(has_same_head);
        sent.has_expired(seconds) || is_broken && front < came.bytes() / 2
    }
}

/// The expectation of what a provider's cache holds of a request, to be compared with its own count.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExpectedCache {
    pub(crate) miss: Option<PromptMiss>,
    /// Number of bytes that the provider was asked to keep.
    kept: u64,
    bytes: u64,
}

impl ExpectedCache {
    /// The miss, with the tokens that it cost by the provider's count, if it says what its cache held. If the request
    /// had none, there is one if the provider held less than half of what it was asked to keep.
    pub(crate) fn billed(&self, usage: ProviderUsage) -> Option<PromptMiss> {
        let new = usage.fresh + usage.written;
        let Some(cached) = usage.cached.filter(|cached| new + cached > 0) else {
            return self.miss;
        };
        let all = new + cached;
        if let Some(miss) = self.miss {
            let tokens = share(new, miss.bytes, miss.new).min(new);
            return Some(PromptMiss { tokens, ..miss });
        }
        let kept = share(all, self.kept, self.bytes);
        let tokens = kept.saturating_sub(cached);
        let bytes = share(self.bytes, tokens, all);
        (bytes >= LEAST && tokens > kept / 2).then_some(PromptMiss {
            why: Why::Provider,
            part: PromptPart::Request,
            bytes,
            new: self.bytes,
            tokens,
        })
    }
}

/// As much of `number` as `part` is of `whole`.
fn share(number: u64, part: u64, whole: u64) -> u64 {
    number.saturating_mul(part) / whole.max(1)
}

/// A miss: bytes that were sent before, and are billed as new once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PromptMiss {
    pub(crate) why: Why,
    pub(crate) part: PromptPart,
    pub(crate) bytes: u64,
    /// Number of all bytes that are billed as new, these among them.
    new: u64,
    /// Their tokens: by the provider's count, or an estimate where that is not known.
    pub(crate) tokens: u64,
}

impl PromptMiss {
    /// The miss with its meaning, as JSON.
    pub(crate) fn row(&self) -> Value {
        let [kind, meaning, cure] = self.why.row();
        json!({"kind": kind, "part": self.part.name(), "bytes": self.bytes, "tokens": self.tokens, "meaning": meaning, "cure": cure})
    }
}

/// Sums of misses by reason: their number, bytes and tokens.
#[derive(Debug, Default)]
pub(crate) struct MissSums(BTreeMap<Why, [u64; 3]>);

impl MissSums {
    pub(crate) fn add(&mut self, miss: &PromptMiss) {
        let [count, bytes, tokens] = self.0.entry(miss.why).or_default();
        *count += 1;
        *bytes += miss.bytes;
        *tokens += miss.tokens;
    }

    pub(crate) fn rows(&self) -> Value {
        let rows = self.0.iter().map(|(why, [count, bytes, tokens])| {
            let [kind, meaning, cure] = why.row();
            json!({"kind": kind, "count": count, "bytes": bytes, "tokens": tokens, "meaning": meaning, "cure": cure})
        });
        rows.collect()
    }
}

rows! {
    /// The reason for a miss: its name in metrics, headers and logs, the meaning, and what to do.
    Why: [&'static str; 3] {
        Model => ["model",
            "another model was asked",
            "keep one model for a conversation"],
        Tools => ["tools",
            "a tool was added, removed or changed",
            "send all tools from the first call on, each in the same words"],
        ToolOrder => ["tool-order",
            "the tools came in another order",
            "sort the tools by name"],
        Dated => ["dated",
            "a date, a time or a number in the instructions changed",
            "move it to the end of the last message"],
        Instructions => ["instructions",
            "the instructions changed",
            "add what is new to the last message"],
        Options => ["options",
            "an option that is part of the prompt changed: thinking, the choice of tools, or the answer's schema",
            "keep it for a conversation"],
        Inserted => ["inserted",
            "a message was put before others that were sent already",
            "add it at the end"],
        Removed => ["removed",
            "messages that were sent already are gone",
            "compact seldom, and much at once"],
        Thinking => ["thinking",
            "the model's thinking was left out of its earlier messages",
            "send its messages back as they came"],
        Edited => ["edited",
            "a message that was sent already has changed",
            "leave earlier messages as they are"],
        Reduced => ["reduced",
            "this server has cleared old results",
            "if it happens often, raise `clear_at_least_tokens`"],
        Expired => ["expired",
            "the cache's lifetime was over before this call",
            "ask for a longer one: `\"ttl\": \"1h\"` in `cache_control`, or `prompt_cache_retention`"],
        Unmarked => ["unmarked",
            "the request has no `cache_control` from there on, so nothing of that is cached",
            "set `cache_control` in the request, or on its last message"],
        Provider => ["provider",
            "nothing changed, and yet the provider held less than half of it",
            "shorten the pauses or ask for a longer lifetime, and keep one route to the provider: a cache belongs to a machine or region"],
    }
}

/// The miss of a request that came as `would` and goes on as `sent`, `seconds` after another one of the
/// conversation.
fn miss([would, sent]: [&Prompt; 2], before: [&Prompt; 2], seconds: u64) -> Option<PromptMiss> {
    if !sent.is_read() || !before[1].is_read() {
        return None;
    }
    let is_expired = before[1].has_expired(seconds);
    let (part, _) = sent.differs_from(before[1]);
    let (came, _) = would.differs_from(before[0]);
    let unmarked = sent.unmarked().filter(|unmarked| *unmarked < part);
    let (why, part) = if let Some(part) = unmarked {
        (Why::Unmarked, part)
    } else if is_expired {
        (Why::Expired, PromptPart::Request)
    } else if came > part {
        (Why::Reduced, part)
    } else {
        (why(would, before[0], came)?, came)
    };
    let lost = sent.sent_again(part, before[1]);
    let new = match why {
        Why::Expired | Why::Unmarked => sent.bytes_from(part),
        _ => sent.after(before[1]).fresh,
    };
    (lost >= LEAST).then_some(PromptMiss {
        why,
        part,
        bytes: lost,
        new,
        tokens: lost / BYTES_PER_TOKEN as u64,
    })
}

/// The reason for a difference in a part; `None` if one prompt only goes on where the other ends.
fn why(now: &Prompt, before: &Prompt, part: PromptPart) -> Option<Why> {
    let (now, before) = (now.from(part), before.from(part));
    Some(match part {
        PromptPart::Request | PromptPart::Model => Why::Model,
        PromptPart::Tool(_) if tools(now) == tools(before) => Why::ToolOrder,
        PromptPart::Tool(_) => Why::Tools,
        PromptPart::Options => Why::Options,
        PromptPart::Instructions | PromptPart::Message(_) => {
            let (own, other) = (now.first()?, before.first()?);
            let (are_instructions, is_same) =
                (own.instructs && other.instructs, own.gist == other.gist);
            match rejoined(now, before) {
                _ if are_instructions && is_same => Why::Dated,
                _ if are_instructions => Why::Instructions,
                _ if is_same => Why::Thinking,
                Some((0, gone)) if before[..gone].iter().all(|one| one.is_thinking) => {
                    Why::Thinking
                }
                Some((new, gone)) if new > gone => Why::Inserted,
                Some((new, gone)) if new < gone => Why::Removed,
                _ => Why::Edited,
            }
        }
    })
}

/// The hashes of the tools in some parts, in an order of their own.
fn tools(parts: &[PartHash]) -> Vec<u64> {
    let tools = parts
        .iter()
        .take_while(|part| matches!(part.at, PromptPart::Tool(_)));
    let mut hashes: Vec<u64> = tools.map(|tool| tool.hash).collect();
    hashes.sort_unstable();
    hashes
}

/// The numbers of messages now and before until both go on with the same one.
fn rejoined(now: &[PartHash], before: &[PartHash]) -> Option<(usize, usize)> {
    let mut places = HashMap::new();
    for (at, message) in before.iter().enumerate() {
        places.entry(message.hash).or_insert(at);
    }
    let mut now = now.iter().enumerate();
    now.find_map(|(at, message)| Some((at, *places.get(&message.hash)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use offcut::format::RequestBody;
    use proptest::prelude::*;

    const ROUNDS: usize = 12;

    fn prompt(body: &Value) -> Prompt {
        let body = body.to_string();
        Prompt::of(&RequestBody::parse(&*body).unwrap(), body.len() as u64, "")
    }

    fn long(what: &str) -> String {
        what.repeat(6_000 / what.len())
    }

    /// A conversation of calls and results, after which another round follows.
    fn anthropic(rounds: usize) -> Value {
        let mut messages = vec![json!({"role": "user", "content": long("task ")})];
        for round in 0..rounds {
            messages.push(json!({"role": "assistant", "content": [
                {"type": "thinking", "thinking": long("hm "), "signature": "s"},
                {"type": "tool_use", "id": format!("t{round}"), "name": "a", "input": {}},
            ]}));
            messages.push(json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": format!("t{round}"), "content": long(&format!("line {round} "))},
            ]}));
        }
        let last = messages.last_mut().unwrap();
        if last["content"].is_array() {
            last["content"][0]["cache_control"] = json!({"type": "ephemeral"});
        }
        let tools = ["a", "b", "c"].map(|name| json!({"name": name, "description": long(name)}));
        json!({
            "model": "m",
            "tools": tools,
            "system": [{"type": "text", "text": format!("{}It is Monday, 2 Nov, 10:31.", long("be good "))}],
            "messages": messages,
            "cache_control": {"type": "ephemeral"},
        })
    }

    fn chat(rounds: usize) -> Value {
        let mut messages = vec![
            json!({"role": "system", "content": format!("{}at 10:31", long("be good "))}),
            json!({"role": "user", "content": long("task ")}),
        ];
        for round in 0..rounds {
            let call = json!({"id": format!("t{round}"), "type": "function", "function": {"name": "a", "arguments": "{}"}});
            messages.push(json!({"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [call]}));
            messages.push(json!({"role": "tool", "tool_call_id": format!("t{round}"), "content": long(&format!("line {round} "))}));
        }
        let tools = ["a", "b", "c"].map(|name| {
            json!({"type": "function", "function": {"name": name, "description": long(name)}})
        });
        json!({"model": "m", "tools": tools, "messages": messages})
    }

    fn found(now: &Value, before: &Value) -> Option<(Why, String)> {
        let (now, before) = (prompt(now), prompt(before));
        let found = miss([&now, &now], [&before, &before], 60)?;
        Some((found.why, found.part.name()))
    }

    /// Plants a break. Returns its kind and place, if this format can have it.
    fn plant(body: &mut Value, kind: usize, at: usize) -> Option<(Why, String)> {
        let is_chat = body.get("system").is_none();
        let messages = body["messages"].as_array_mut().unwrap();
        // The results have even places in one format, and odd ones in the other.
        let at = 2 + 2 * at + usize::from(is_chat);
        let place = |at: usize| format!("message {}", at + 1);
        Some(match kind {
            0 => {
                body["model"] = json!("n");
                (Why::Model, "model".into())
            }
            1 => {
                body["tools"].as_array_mut().unwrap().swap(1, 2);
                (Why::ToolOrder, "tool 2".into())
            }
            2 => {
                body["tools"].as_array_mut().unwrap().remove(1);
                (Why::Tools, "tool 2".into())
            }
            3 => {
                body["tools"]
                    .as_array_mut()
                    .unwrap()
                    .push(json!({"name": "late"}));
                (Why::Tools, "tool 4".into())
            }
            4 | 5 => {
                let (text, place) = if is_chat {
                    (&mut messages[0]["content"], "message 1")
                } else {
                    (&mut body["system"][0]["text"], "instructions")
                };
                let new = if kind == 4 {
                    "Tuesday, 3 Nov, 10:45"
                } else {
                    "be bad"
                };
                let old = if is_chat {
                    "10:31"
                } else {
                    "Monday, 2 Nov, 10:31"
                };
                let new = if kind == 4 && is_chat { "10:45" } else { new };
                *text = text.as_str().unwrap().replace(old, new).into();
                (
                    if kind == 4 {
                        Why::Dated
                    } else {
                        Why::Instructions
                    },
                    place.into(),
                )
            }
            6 if is_chat => {
                body["response_format"] = json!({"type": "json_object"});
                (Why::Options, "options".into())
            }
            6 => {
                body["thinking"] = json!({"type": "enabled", "budget_tokens": 2048});
                (Why::Options, "options".into())
            }
            7 => {
                messages.insert(at, json!({"role": "user", "content": "a reminder"}));
                (Why::Inserted, place(at))
            }
            8 => {
                messages.drain(at - 1..=at);
                (Why::Removed, place(at - 1))
            }
            9 if is_chat => {
                messages[at - 1]
                    .as_object_mut()
                    .unwrap()
                    .remove("reasoning_content");
                (Why::Thinking, place(at - 1))
            }
            9 => {
                messages[at - 1]["content"]
                    .as_array_mut()
                    .unwrap()
                    .remove(0);
                (Why::Thinking, place(at - 1))
            }
            10 => {
                messages[at]["content"] = json!("[old result removed]");
                (Why::Edited, place(at))
            }
            _ => {
                if is_chat {
                    return None;
                }
                for message in messages {
                    if message["content"].is_array() {
                        message["content"][0]
                            .as_object_mut()
                            .unwrap()
                            .remove("cache_control");
                    }
                }
                body.as_object_mut().unwrap().remove("cache_control");
                (Why::Unmarked, "request".into())
            }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]
        #[test]
        fn breaks_are_named_by_their_kind_and_first_place(
            is_chat: bool, kind in 0usize..12, rounds in 2..ROUNDS, at in 0..ROUNDS
        ) {
            let make = if is_chat { chat } else { anthropic };
            let (before, mut now) = (make(rounds), make(rounds + 1));
            prop_assert_eq!(found(&now, &before), None);
            // The last round was not sent before.
            if let Some(planted) = plant(&mut now, kind, at % (rounds - 1)) {
                prop_assert_eq!(found(&now, &before), Some(planted));
            }
        }
    }

    #[test]
    fn what_a_client_may_do_is_no_miss() {
        for make in [anthropic, chat] {
            assert_eq!(found(&make(4), &make(9)), None, "rewound");
            assert_eq!(found(&make(9), &make(9)), None, "sent again");
            let mut reminded = make(5);
            let messages = reminded["messages"].as_array_mut().unwrap();
            messages.push(json!({"role": "user", "content": "a reminder"}));
            assert_eq!(
                found(&make(6), &reminded),
                None,
                "a last message that does not stay"
            );
            let mut compacted = make(9);
            let messages = compacted["messages"].as_array_mut().unwrap();
            messages.drain(4..18);
            assert_eq!(
                found(&compacted, &make(8)),
                None,
                "what is new was not sent before"
            );
        }
        let mut reminded = anthropic(5);
        let last = reminded["messages"][10]["content"].as_array_mut().unwrap();
        last.push(json!({"type": "text", "text": "a reminder"}));
        assert_eq!(
            found(&anthropic(6), &reminded),
            None,
            "nothing came after it"
        );
        let mut marked = anthropic(6);
        marked["tools"][2]["cache_control"] = json!({"type": "ephemeral"});
        assert_eq!(found(&marked, &anthropic(5)), None, "a mark on a tool");
    }

    #[test]
    fn all_tools_of_gemini_are_in_one_item_and_its_model_in_the_path() {
        let body = |names: &[&str]| {
            let declared = names.iter().map(|name| json!({"name": name}));
            let declared: Vec<Value> = declared.collect();
            json!({
                "tools": [{"functionDeclarations": declared}],
                "contents": [{"role": "user", "parts": [{"text": long("task ")}]}],
            })
        };
        let of = |names: &[&str], model| {
            let body = body(names).to_string();
            Prompt::of(
                &RequestBody::parse(&*body).unwrap(),
                body.len() as u64,
                model,
            )
        };
        let before = of(&["a", "b", "c"], "m");
        for (now, expected) in [
            (
                of(&["a", "c", "b"], "m"),
                (Why::ToolOrder, PromptPart::Tool(1)),
            ),
            (of(&["a", "b"], "m"), (Why::Tools, PromptPart::Tool(2))),
            (of(&["a", "b", "c"], "n"), (Why::Model, PromptPart::Model)),
        ] {
            let found = miss([&now, &now], [&before, &before], 0).unwrap();
            assert_eq!((found.why, found.part), expected);
        }
    }

    #[test]
    fn what_comes_after_the_last_mark_is_not_cached() {
        let mut now = anthropic(6);
        now.as_object_mut().unwrap().remove("cache_control");
        now["messages"][12]["content"][0]
            .as_object_mut()
            .unwrap()
            .remove("cache_control");
        now["messages"][2]["content"][0]["cache_control"] = json!({"type": "ephemeral"});
        let (sent, before) = (prompt(&now), prompt(&anthropic(5)));
        let found = miss([&sent, &sent], [&before, &before], 0).unwrap();
        assert_eq!(
            (found.why, found.part),
            (Why::Unmarked, PromptPart::Message(3))
        );
        let from = |end: u32| {
            let [from, end] = [3, end].map(|at| sent.bytes_from(PromptPart::Message(at)));
            from - end
        };
        assert_eq!(found.bytes, from(11));
        assert!(
            found.new >= from(13) && found.new < from(13) + 500,
            "{}",
            found.new
        );
    }

    #[test]
    fn a_summary_removes_messages_and_a_clearing_edits_them() {
        let before = anthropic(9);
        let mut compacted = anthropic(10);
        let messages = compacted["messages"].as_array_mut().unwrap();
        messages.splice(
            3..11,
            [json!({"role": "user", "content": "So far so good."})],
        );
        let removed = Some((Why::Removed, "message 4".to_owned()));
        assert_eq!(found(&compacted, &before), removed);
        let mut cleared = anthropic(10);
        for at in [4, 6, 8, 10, 12, 14] {
            cleared["messages"][at]["content"][0]["content"] = json!("cleared");
        }
        let edited = Some((Why::Edited, "message 5".to_owned()));
        assert_eq!(found(&cleared, &before), edited);
    }

    #[test]
    fn a_round_that_begins_with_thinking_is_removed_or_only_its_thinking() {
        let body = |rounds: std::ops::Range<usize>| {
            let mut input = vec![json!({"role": "user", "content": "task"})];
            for n in rounds {
                input.push(json!({"type": "reasoning", "id": format!("r{n}"), "summary": []}));
                input.push(json!({"type": "function_call", "call_id": format!("c{n}"), "name": "a", "arguments": "{}"}));
                input.push(json!({"type": "function_call_output", "call_id": format!("c{n}"), "output": long("line ")}));
            }
            json!({"model": "m", "input": input})
        };
        let mut now = body(0..4);
        let input = now["input"].as_array_mut().unwrap();
        let round: Vec<Value> = input.drain(1..4).collect();
        let removed = Some((Why::Removed, "message 2".to_owned()));
        assert_eq!(found(&now, &body(0..3)), removed);
        let input = now["input"].as_array_mut().unwrap();
        input.splice(1..1, round[1..].to_vec());
        let thinking = Some((Why::Thinking, "message 2".to_owned()));
        assert_eq!(found(&now, &body(0..3)), thinking);
    }

    #[test]
    fn a_request_on_the_side_leaves_the_cache_as_it_is() {
        let mut recent = RecentPrompts::default();
        let mut next = |body: &Value| {
            let forms = [prompt(body), prompt(body)];
            let (_, expected) = recent.next(&forms, 1);
            recent.add(forms);
            expected.miss.map(|miss| miss.why)
        };
        let mut aside = anthropic(5);
        aside["tools"] = json!([]);
        assert_eq!([&anthropic(4), &anthropic(5)].map(&mut next), [None, None]);
        assert_eq!(next(&aside), Some(Why::Tools));
        assert_eq!([&aside, &aside, &anthropic(6)].map(&mut next), [None; 3]);
    }

    #[test]
    fn a_cache_is_cold_after_its_lifetime_and_after_an_early_change() {
        let mut recent = RecentPrompts::default();
        assert!(
            !recent.is_cold(&prompt(&anthropic(9)), 900),
            "nothing is known"
        );
        recent.add([prompt(&anthropic(8)), prompt(&anthropic(8))]);
        let cold = |body: &Value, seconds| recent.is_cold(&prompt(body), seconds);
        assert!(!cold(&anthropic(9), 300) && cold(&anthropic(9), 301));
        let mut edited = anthropic(9);
        edited["messages"][16]["content"] = json!("late");
        assert!(!cold(&edited, 1));
        edited["messages"][2]["content"] = json!("early");
        assert!(cold(&edited, 1));
        let mut aside = anthropic(9);
        aside["tools"] = json!([]);
        assert!(!cold(&aside, 1), "it may be a request on the side");
        let mut others = RecentPrompts::default();
        others.add([prompt(&aside), prompt(&aside)]);
        let mut early = aside.clone();
        early["messages"][2]["content"] = json!("early");
        assert!(others.is_cold(&prompt(&early), 1));
        others.add([prompt(&anthropic(8)), prompt(&anthropic(8))]);
        assert!(!others.is_cold(&prompt(&early), 1), "and so is the next");
        assert!(!cold(&anthropic(2), 1), "it goes back, and all is held");
    }

    #[test]
    fn our_own_pass_and_time_are_reasons_too() {
        let (before, now) = (prompt(&anthropic(5)), prompt(&anthropic(6)));
        let mut cleared = anthropic(6);
        cleared["messages"][4]["content"][0]["content"] = json!("cleared");
        let sent = prompt(&cleared);
        let found = miss([&now, &sent], [&before, &before], 60).unwrap();
        assert_eq!(
            (found.why, found.part),
            (Why::Reduced, PromptPart::Message(4))
        );
        let lost: usize = (5..11)
            .map(|at| anthropic(6)["messages"][at].to_string().len())
            .sum();
        assert_eq!(found.bytes, lost as u64, "the cleared one is new");
        // A result that stays cleared is missed only once.
        let next = [
            &prompt(&anthropic(7)),
            &prompt(&{
                let mut next = anthropic(7);
                next["messages"][4]["content"][0]["content"] = json!("cleared");
                next
            }),
        ];
        assert_eq!(miss(next, [&now, &sent], 60), None);
        let late = miss([&now, &now], [&before, &before], 301).unwrap();
        assert_eq!((late.why, late.part), (Why::Expired, PromptPart::Request));
        assert!(late.bytes < before.bytes() && late.bytes > before.bytes() - 500);
        let mut hour = anthropic(6);
        hour["cache_control"]["ttl"] = json!("1h");
        let hour = prompt(&hour);
        assert_eq!(miss([&now, &now], [&hour, &hour], 301), None);
        assert!(miss([&now, &now], [&hour, &hour], 3_601).is_some());
    }
}
