//! The HTML report: one self-contained file that needs no network and shows what each policy would
//! have done.
//!
//! It quotes transcripts where something that a model used was no longer shown, so it is as private
//! as they are.

use std::collections::BTreeMap;

use offcut::format::Message;
use offcut::report::Outcome;
use serde_json::{Value, json};

use crate::evidence::Read;
use crate::replay::{self, Change, Figures, Miss, Prices, Replay, Replayed};

/// Maximum number of moments of a transcript under a policy, of uses in each, and of characters
/// around each use.
const MOMENTS: usize = 8;
const USES: usize = 6;
const AROUND: usize = 100;

/// Builds the page.
pub(crate) fn html(
    names: &[&str],
    totals: &[Figures],
    replayed: &[Replayed],
    prices: &Prices,
) -> String {
    let data = json!({
        "sentence": replay::sentence(names, totals, replayed.len(), prices),
        "card": {"cached": prices.cached, "fresh": prices.fresh},
        "policies": names,
        "totals": rows(names, totals, prices),
        "traces": replayed.iter().map(|one| trace(one, names, prices)).collect::<Vec<_>>(),
    });
    let data = data.to_string().replace('<', "\\u003c");
    include_str!("report/page.html")
        .replace(
            "{{style}}",
            &[crate::page::STYLE, include_str!("report/page.css")].concat(),
        )
        .replace(
            "{{script}}",
            &[crate::page::SCRIPT, include_str!("report/page.js")].concat(),
        )
        // Last, so that placeholders in the data are not filled in.
        .replace("{{data}}", &data)
}

fn rows<'f>(
    names: &[&str],
    figures: impl IntoIterator<Item = &'f Figures>,
    prices: &Prices,
) -> Vec<Value> {
    let rows = names.iter().zip(figures);
    rows.map(|(name, figures)| figures.summary(name, prices))
        .collect()
}

/// One transcript. Its lists have an element for each policy.
fn trace(replayed: &Replayed, names: &[&str], prices: &Prices) -> Value {
    let (messages, replays) = (&replayed.messages, &replayed.replays);
    let read = Read::of(messages);
    // Index of the call that follows, message, outcome in one word, tokens before and after, and tool.
    let row = |change: &Change| {
        let tool = tool_of(&messages[change.message]);
        json!([
            change.call,
            change.message,
            word(change.outcome),
            change.before,
            change.after,
            tool
        ])
    };
    let changes = |changes: &[Change]| changes.iter().map(row).collect::<Vec<_>>();
    json!({
        "name": replayed.name,
        "rows": rows(names, replays.iter().map(|replay| &replay.figures), prices),
        "contexts": replays.iter().map(|replay| &replay.contexts).collect::<Vec<_>>(),
        "changes": replays.iter().map(|replay| changes(&replay.changes)).collect::<Vec<_>>(),
        "moments": replays.iter().map(|replay| moments(replay, messages, &read)).collect::<Vec<_>>(),
    })
}

/// The calls that missed most.
fn moments(replay: &Replay, messages: &[Message], read: &Read<'_>) -> Vec<Value> {
    let turns = (0..messages.len()).filter(|at| matches!(messages[*at], Message::Assistant { .. }));
    let turns: Vec<usize> = turns.collect();
    let mut by_call: BTreeMap<usize, Vec<&Miss>> = BTreeMap::new();
    for miss in &replay.misses {
        by_call.entry(miss.call).or_default().push(miss);
    }
    let mut worst: Vec<_> = by_call.into_iter().collect();
    worst.sort_by_key(|(call, missed)| (std::cmp::Reverse(missed.len()), *call));
    let use_of = |miss: &&Miss| {
        let around = |at: usize| read.around(at, &miss.text, AROUND);
        json!({
            "text": miss.text,
            "is_quote": miss.is_quote,
            "is_reachable": miss.is_reachable,
            "result": miss.result,
            "tool": tool_of(&messages[miss.result]),
            "fate": fate(miss, &replay.changes),
            "around": around(miss.result),
            "used": turns.get(miss.call).copied().map(around).unwrap_or_default(),
        })
    };
    let moment = |(call, missed): (usize, Vec<&Miss>)| {
        let uses: Vec<Value> = missed.iter().take(USES).map(use_of).collect();
        json!({"call": call, "missed": missed.len(), "uses": uses})
    };
    worst.into_iter().take(MOMENTS).map(moment).collect()
}

fn fate(miss: &Miss, changes: &[Change]) -> String {
    let last = changes
        .iter()
        .rfind(|change| change.message == miss.result && change.call <= miss.call);
    match last {
        Some(change) if change.outcome == Outcome::Truncated => "truncated on arrival".to_owned(),
        Some(change) if change.outcome == Outcome::Lost => {
            format!("lost before call {}", change.call + 1)
        }
        Some(change) => format!("cleared before call {}", change.call + 1),
        None => "changed".to_owned(),
    }
}

/// An outcome in one word.
fn word(outcome: Outcome) -> String {
    let json = serde_json::to_value(outcome).unwrap_or_default();
    json["outcome"].as_str().unwrap_or_default().to_owned()
}

/// Returns the tool that a message is about.
fn tool_of(message: &Message) -> &str {
    match message {
        Message::Tool { name, .. } => name,
        Message::Assistant { calls, .. } => calls.first().map_or("", |call| &call.name),
        Message::System { .. } | Message::User { .. } => "",
    }
}
