//! The HTML report: one self-contained file that needs no network and shows what each policy would
//! have done.
//!
//! It quotes transcripts where something that a model used was no longer shown, so it is as private
//! as they are.

use std::cmp::Reverse;

use offcut::format::Message;
use serde_json::{Value, json};

use crate::evidence::Read;
use crate::replay::{self, Figures, Miss, Prices, Replay, Replayed};

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
        "sentence": replay::verdict(names, totals, replayed.len(), prices),
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

/// One transcript. Its lists have an element for each policy, but for that of each message's tool.
fn trace(replayed: &Replayed, names: &[&str], prices: &Prices) -> Value {
    let replays = &replayed.replays;
    let read = Read::of(&replayed.messages);
    json!({
        "name": replayed.name,
        "tools": replayed.messages.iter().map(tool_of).collect::<Vec<_>>(),
        "rows": rows(names, replays.iter().map(|replay| &replay.figures), prices),
        "contexts": replays.iter().map(|replay| &replay.contexts).collect::<Vec<_>>(),
        "changes": replays.iter().map(|replay| &replay.changes).collect::<Vec<_>>(),
        "moments": replays.iter().map(|replay| moments(replay, &read)).collect::<Vec<_>>(),
    })
}

/// The calls that missed most.
fn moments(replay: &Replay, read: &Read<'_>) -> Vec<Value> {
    let turns = (0..read.messages.len()).filter(|at| read.messages[*at].is_turn());
    let turns: Vec<usize> = turns.collect();
    let by_call = replay.misses.chunk_by(|one, next| one.call == next.call);
    let mut worst: Vec<&[Miss]> = by_call.collect();
    worst.sort_by_key(|missed| Reverse(missed.len()));
    let use_of = |miss: &Miss| {
        let around = |at| read.around(at, &miss.text, AROUND);
        json!({"miss": miss, "around": around(miss.result), "used": around(turns[miss.call])})
    };
    let moment = |missed: &[Miss]| {
        let uses: Vec<Value> = missed.iter().take(USES).map(use_of).collect();
        json!({"call": missed[0].call, "missed": missed.len(), "uses": uses})
    };
    worst.into_iter().take(MOMENTS).map(moment).collect()
}

/// Returns the tool that a message is about.
fn tool_of(message: &Message) -> &str {
    match message {
        Message::Tool { name, .. } => name,
        Message::Assistant { calls, .. } => calls.first().map_or("", |call| &call.name),
        Message::System { .. } | Message::User { .. } => "",
    }
}
