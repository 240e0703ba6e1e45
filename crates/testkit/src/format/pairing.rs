//! Clauses about the call that a result answers, checked over all messages together.

use std::collections::{BTreeMap, BTreeSet};

use offcut::format::{Format, Piece};
use offcut::rounds::pair_results;
use serde_json::Value;

/// The ids of all calls and results, and other evidence of which belong together.
#[derive(Debug, Default)]
pub(super) struct Ids {
    calls: BTreeSet<String>,
    results: BTreeSet<String>,
    has_named_result: bool,
    /// A message has several calls, so that order alone is a guess.
    has_parallel_calls: bool,
}

impl Ids {
    pub(super) fn of<F: Format>(format: &F, messages: &[F::Message]) -> Self {
        let mut ids = Self::default();
        for message in messages {
            let mut calls = 0;
            format.visit(message, &mut |piece| match piece {
                Piece::Call(call) => {
                    calls += 1;
                    ids.calls.insert(call.id.to_owned());
                }
                Piece::Result(head) => {
                    ids.results.insert(head.id.to_owned());
                    ids.has_named_result |= head.name.is_some_and(|name| !name.is_empty());
                }
                _ => {}
            });
            ids.has_parallel_calls |= calls > 1;
        }
        ids
    }

    /// Returns whether a result has the id of a call.
    pub(super) fn agree(&self) -> bool {
        self.calls
            .intersection(&self.results)
            .any(|id| !id.is_empty())
    }

    fn are_none(&self) -> bool {
        self.calls.iter().chain(&self.results).all(String::is_empty)
    }
}

/// Checks that the pieces show which call a result answers.
pub(super) fn results_have_calls<F: Format>(format: &F, messages: &[F::Message]) {
    let ids = Ids::of(format, messages);
    let is_paired = pair_results(format, messages)
        .iter()
        .any(|result| result.call.is_some());
    match () {
        () if !ids.agree() && !ids.are_none() => fail_clause(
            "it shows ids, and no result among the messages has the id of a call; show both alike, numbers as the same text",
        ),
        () if ids.are_none() && !ids.has_named_result && ids.has_parallel_calls => fail_clause(
            "it shows no ids and no names of results, so with several calls in a message nothing says which one a result answers; \
             show `Call::id` and `ResultHead::id`, numbers as text, or `ResultHead::name` where there are no ids",
        ),
        () if !is_paired => fail_clause(
            "no result among the messages answers a call before it; add a call with its result, and show the same id of both",
        ),
        () => {}
    }
}

/// Checks messages for which the format shows no id that a call and a result share: their JSON must
/// have none either. An id is a field whose name ends in `id`, with the same value in a call's and a
/// result's message and in no other message.
pub(super) fn no_ids_are_dropped<F: Format>(format: &F, messages: &[(&F::Message, Value)]) {
    let (mut in_calls, mut in_results) = (BTreeMap::new(), BTreeMap::new());
    let mut elsewhere = BTreeMap::new();
    for (message, json) in messages {
        let (mut has_call, mut has_result) = (false, false);
        format.visit(message, &mut |piece| {
            has_call |= matches!(piece, Piece::Call(_));
            has_result |= matches!(piece, Piece::Result(_));
        });
        for (is_one, found) in [
            (has_call, &mut in_calls),
            (has_result, &mut in_results),
            (!has_call && !has_result, &mut elsewhere),
        ] {
            if is_one {
                gather_ids(json, found);
            }
        }
    }
    for (id, result_field) in in_results {
        if let Some(call_field) = in_calls.get(&id)
            && !elsewhere.contains_key(&id)
        {
            fail_clause(&format!(
                "`{call_field}` of a call and `{result_field}` of a result have the same value in the messages' JSON, and the format \
                 shows no such id; show it as `Call::id` and `ResultHead::id`, a number as text",
            ));
        }
    }
}

/// Collects the values of all fields whose name ends in `id`, with their names.
fn gather_ids(json: &Value, found: &mut BTreeMap<String, String>) {
    match json {
        Value::Object(fields) => {
            for (name, value) in fields {
                let is_id = name.to_ascii_lowercase().ends_with("id");
                match value {
                    Value::String(id) if is_id && !id.is_empty() => {
                        found.insert(id.clone(), name.clone());
                    }
                    Value::Number(id) if is_id => {
                        found.insert(id.to_string(), name.clone());
                    }
                    _ => gather_ids(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| gather_ids(item, found)),
        _ => {}
    }
}

#[track_caller]
fn fail_clause(what: &str) -> ! {
    panic!(
        "the format breaks the contract, clause `a result leads to its call`, with the messages together: {what}"
    )
}
