//! The cost of a provider's cache that missed, against a provider that keeps its own account.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::support::{Provider, Server, memory, ok};
use serde_json::{Value, json};

const PATH: &str = "/v1/chat/completions";

/// A provider with a cache, which counts words and knows what it has billed before.
#[derive(Default)]
struct Account {
    /// The parts of each request, in the order in which the provider reads them.
    seen: Vec<Vec<String>>,
    /// Tokens that were sent before and were billed as new once more.
    again: u64,
}

impl Account {
    /// The usage of a request, from which all is new if the cache is `lost`.
    fn bill(&mut self, body: &str, is_lost: bool) -> Value {
        let body: Value = serde_json::from_str(body).unwrap();
        let parts = ["tools", "messages"].map(|field| body[field].as_array().unwrap());
        let parts = parts.into_iter().flatten().map(Value::to_string);
        let parts: Vec<String> = [body["model"].to_string()]
            .into_iter()
            .chain(parts)
            .collect();
        let tokens = |parts: &[String]| -> u64 {
            let words = parts.iter().map(|part| part.split(' ').count() as u64);
            words.sum()
        };
        let same = |seen: &Vec<String>| {
            let pairs = seen.iter().zip(&parts);
            pairs.take_while(|(seen, part)| seen == part).count()
        };
        let held = self.seen.iter().map(same).max().unwrap_or(0);
        let held = if is_lost { 0 } else { held };
        let new = parts[held..].iter();
        let before = new.filter(|part| self.seen.iter().flatten().any(|seen| seen == *part));
        self.again += tokens(&before.cloned().collect::<Vec<_>>());
        let usage = json!({
            "prompt_tokens": tokens(&parts),
            "prompt_tokens_details": {"cached_tokens": tokens(&parts[..held])},
        });
        self.seen.push(parts);
        usage
    }
}

/// A conversation of some rounds, whose results differ in length.
fn conversation(rounds: usize) -> Value {
    let words = |word: &str, count: usize| format!("{word} ").repeat(count);
    let tool = |name: &str| json!({"type": "function", "function": {"name": name, "description": words("does this", 300)}});
    let mut messages = vec![json!({"role": "user", "content": words("the task", 400)})];
    for round in 0..rounds {
        let id = format!("call_{round}");
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "run", "arguments": "{}"}}
        ]}));
        let result = words(&format!("line {round}"), 150 + 20 * round);
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": result}));
    }
    let tools = ["read", "run", "list"].map(tool);
    json!({"model": "m", "tools": tools, "messages": messages})
}

/// Sends a conversation of twelve rounds call by call, changed from the sixth call on. Returns the tokens that the
/// server has counted for each reason, and the provider's account.
async fn missed(change: impl Fn(&mut Value), loses: bool, says: bool) -> (Vec<(String, u64)>, u64) {
    let account = Arc::new(Mutex::new(Account::default()));
    let is_lost = Arc::new(AtomicBool::new(false));
    let (own, lost) = (account.clone(), is_lost.clone());
    let provider = Provider::start(move |seen| {
        let mut usage = own
            .lock()
            .unwrap()
            .bill(seen.text(), lost.load(Ordering::Relaxed));
        if !says {
            usage
                .as_object_mut()
                .unwrap()
                .remove("prompt_tokens_details");
        }
        ok(&json!({"choices": [], "usage": usage}).to_string())
    })
    .await;
    let server = Server::reducing(&provider.url, &memory(), |serve| {
        serve.cut_without_reader = true;
    })
    .await;
    for rounds in 1..=12 {
        let mut body = conversation(rounds);
        is_lost.store(loses && rounds == 6, Ordering::Relaxed);
        if rounds >= 6 {
            change(&mut body);
        }
        let answer = server.post(PATH, &[], &body.to_string()).await;
        assert_eq!(answer.header("x-offcut"), Some("unchanged"));
    }
    let metrics = server.get("/metrics").await;
    let counted = metrics.text().lines().filter_map(|line| {
        let line =
            line.strip_prefix("offcut_cache_missed_tokens_total{upstream=\"openai\",reason=\"")?;
        let (reason, tokens) = line.split_once("\"} ")?;
        Some((reason.to_owned(), tokens.parse().unwrap()))
    });
    let counted = counted.collect();
    let again = account.lock().unwrap().again;
    (counted, again)
}

type Change = fn(&mut Value);

#[tokio::test]
async fn a_miss_costs_what_the_provider_bills_again() {
    let changes: [(&str, Change); 6] = [
        ("model", |body| body["model"] = json!("n")),
        ("tools", |body| {
            body["tools"][1]["function"]["strict"] = json!(true);
        }),
        ("tool-order", |body| {
            body["tools"].as_array_mut().unwrap().swap(1, 2);
        }),
        ("edited", |body| {
            body["messages"][4]["content"] = json!("[gone]");
        }),
        ("inserted", |body| {
            let reminder = json!({"role": "user", "content": "a reminder"});
            body["messages"].as_array_mut().unwrap().insert(5, reminder);
        }),
        ("removed", |body| {
            body["messages"].as_array_mut().unwrap().drain(3..5);
        }),
    ];
    for (reason, change) in changes {
        let (counted, again) = missed(change, false, true).await;
        assert_eq!(counted.len(), 1, "{counted:?}");
        let (named, tokens) = &counted[0];
        assert_eq!(named, reason);
        assert!(again > 1_000, "{reason}: {again}");
        let off = tokens.abs_diff(again) * 100 / again;
        assert!(off <= 5, "{reason}: {tokens} of {again}");
    }
}

#[tokio::test]
async fn a_client_that_has_broken_its_prefix_gets_the_pass_at_once() {
    let provider = Provider::start(|_| ok("{}")).await;
    let mut reduction = crate::support::reduction();
    reduction.max_tokens_for_clear = 12_000;
    reduction.clear_at_least_tokens = 0;
    let mut settings = crate::support::settings(&provider.url);
    settings.cut_without_reader = true;
    let server = Server::with(settings, &reduction, &memory()).await;
    let mut outcomes = Vec::new();
    for rounds in 6..=12 {
        let mut body = conversation(rounds);
        if rounds >= 11 {
            body["messages"][4]["content"] = json!("[gone]");
        }
        let answer = server.post(PATH, &[], &body.to_string()).await;
        outcomes.push(answer.header("x-offcut").unwrap().to_owned());
    }
    assert_eq!(outcomes[..5], ["unchanged"; 5]);
    assert_eq!(outcomes[5..], ["reduced"; 2]);
}

#[tokio::test]
async fn a_provider_that_lost_its_cache_is_named_if_it_says_so() {
    let (counted, again) = missed(|_| (), true, true).await;
    let [(reason, tokens)] = &*counted else {
        panic!("{counted:?}");
    };
    assert_eq!(reason, "provider");
    assert!(
        again > 1_000 && tokens.abs_diff(again) * 100 / again <= 5,
        "{tokens} of {again}"
    );
    assert_eq!(missed(|_| (), true, false).await.0, [], "it does not say");
    assert_eq!(missed(|_| (), false, true).await, (vec![], 0));
}
