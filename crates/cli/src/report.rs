//! The HTML report: one self-contained file that needs no network and shows what each policy would
//! have done.
//!
//! It quotes transcripts where something that a model used was no longer shown, so it is as private
//! as they are.

use std::collections::BTreeMap;

use offcut::format::Message;
use offcut::report::Outcome;
use serde::Serialize;

use crate::evidence::Read;
use crate::failure::Failure;
use crate::replay::{
    self, Bounds, Card, Change, Figures, Miss, Prices, Replayed, Summary, Ungrounded,
};

/// Maximum number of moments of a transcript under a policy, of uses in each, and of characters
/// around each use.
const MOMENTS: usize = 8;
const USES: usize = 6;
const AROUND: usize = 100;

#[derive(Serialize)]
struct Page<'r> {
    sentence: String,
    card: Card,
    policies: &'r [&'r str],
    totals: Vec<Summary>,
    bounds: Vec<Bounds>,
    traces: Vec<Trace<'r>>,
}

/// One transcript. Its lists have an element for each policy.
#[derive(Serialize)]
struct Trace<'r> {
    name: &'r str,
    rows: Vec<Summary>,
    contexts: Vec<&'r [u64]>,
    changes: Vec<Vec<ReportRow<'r>>>,
    moments: Vec<Vec<MissedMoment<'r>>>,
    /// The first edit or action that repeats what was not in view.
    first: Vec<Option<&'r Ungrounded>>,
}

/// Index of the call that follows, message, outcome in one word, tokens before and after, and tool.
type ReportRow<'r> = (usize, usize, String, u64, u64, &'r str);

/// A call at which something that it used was no longer shown.
#[derive(Serialize)]
struct MissedMoment<'r> {
    call: usize,
    missed: usize,
    uses: Vec<Missed<'r>>,
}

#[derive(Serialize)]
struct Missed<'r> {
    text: &'r str,
    is_quote: bool,
    is_reachable: bool,
    result: usize,
    tool: &'r str,
    /// The outcome for the result, in words.
    fate: String,
    /// Text before and after it, in the result and where the model used it.
    around: (String, String),
    used: (String, String),
}

/// Builds the page.
pub(crate) fn html(
    names: &[&str],
    totals: &[Figures],
    replayed: &[Replayed],
    prices: &Prices,
) -> Result<String, Failure> {
    let card = prices.card;
    let page = Page {
        sentence: replay::sentence(names, totals, replayed.len(), prices),
        card,
        policies: names,
        totals: names
            .iter()
            .zip(totals)
            .map(|(name, total)| total.summary(name, card))
            .collect(),
        bounds: replay::all_bounds(replayed, names.len() - 1),
        traces: replayed.iter().map(|one| trace(one, names, card)).collect(),
    };
    let data = serde_json::to_string(&page)
        .map_err(|error| Failure::new(format!("the report can't be written as JSON: {error}")))?;
    // Text of a transcript must not close the element that holds it.
    let data = data.replace('<', "\\u003c");
    Ok(include_str!("report/page.html")
        .replace(
            "{{style}}",
            &[crate::page::STYLE, include_str!("report/page.css")].concat(),
        )
        .replace(
            "{{script}}",
            &[crate::page::SCRIPT, include_str!("report/page.js")].concat(),
        )
        // Last, so that placeholders in the data are not filled in.
        .replace("{{data}}", &data))
}

fn trace<'r>(replayed: &'r Replayed, names: &[&str], card: Card) -> Trace<'r> {
    let read = Read::of(&replayed.messages);
    let calls: Vec<usize> = (0..replayed.messages.len())
        .filter(|at| is_call(&replayed.messages[*at]))
        .collect();
    let row = |change: &Change| -> ReportRow<'r> {
        let tool = tool_of(&replayed.messages[change.message]);
        (
            change.call,
            change.message,
            word(change.outcome),
            change.before,
            change.after,
            tool,
        )
    };
    Trace {
        name: &replayed.name,
        rows: names
            .iter()
            .zip(&replayed.replays)
            .map(|(name, replay)| replay.figures.summary(name, card))
            .collect(),
        contexts: replayed
            .replays
            .iter()
            .map(|replay| &replay.contexts[..])
            .collect(),
        first: replayed
            .replays
            .iter()
            .map(|replay| replay.ungrounded.first())
            .collect(),
        changes: replayed
            .replays
            .iter()
            .map(|replay| replay.changes.iter().map(row).collect())
            .collect(),
        moments: replayed
            .replays
            .iter()
            .map(|replay| {
                moments(
                    &replay.misses,
                    &replay.changes,
                    &replayed.messages,
                    &read,
                    &calls,
                )
            })
            .collect(),
    }
}

/// Returns the calls that missed most.
fn moments<'r>(
    misses: &'r [Miss],
    changes: &[Change],
    messages: &'r [Message],
    read: &Read,
    calls: &[usize],
) -> Vec<MissedMoment<'r>> {
    let mut by_call: BTreeMap<usize, Vec<&Miss>> = BTreeMap::new();
    for miss in misses {
        by_call.entry(miss.call).or_default().push(miss);
    }
    let mut worst: Vec<_> = by_call.into_iter().collect();
    worst.sort_by_key(|(call, missed)| (std::cmp::Reverse(missed.len()), *call));
    let use_of = |miss: &&'r Miss| Missed {
        text: &miss.text,
        is_quote: miss.is_quote,
        is_reachable: miss.is_reachable,
        result: miss.result,
        tool: tool_of(&messages[miss.result]),
        fate: fate(miss, changes),
        around: read.around(miss.result, &miss.text, AROUND),
        used: calls
            .get(miss.call)
            .map(|at| read.around(*at, &miss.text, AROUND))
            .unwrap_or_default(),
    };
    let moment = |(call, missed): (usize, Vec<&'r Miss>)| MissedMoment {
        call,
        missed: missed.len(),
        uses: missed.iter().take(USES).map(use_of).collect(),
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

fn is_call(message: &Message) -> bool {
    matches!(message, Message::Assistant { .. })
}

/// Returns the tool that a message is about.
fn tool_of(message: &Message) -> &str {
    match message {
        Message::Tool { name, .. } => name,
        Message::Assistant { calls, .. } => calls.first().map_or("", |call| &call.name),
        Message::System { .. } | Message::User { .. } => "",
    }
}
