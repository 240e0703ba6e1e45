//! Tables that compare the figures of several policies.

use super::seen::share;
use super::{Card, Figures};
use crate::measure::Kind;
use crate::output;

/// A figure about nothing.
const NOTHING: &str = "-";

/// Costs: a row for each policy, doing nothing first. All tables are aligned Markdown that fits a
/// terminal of 80 columns.
pub(crate) fn costs(names: &[&str], totals: &[Figures], card: Card) -> String {
    let Some(none) = totals.first() else {
        return String::new();
    };
    let head = "policy|tokens|bill|with reads|reads/100|peak|breaks";
    table(head, names, totals, |total| {
        let calls = total.model_calls.max(1) as f64;
        vec![
            percent(ratio(total.tokens as f64, none.tokens as f64)),
            percent(ratio(total.bill(card), none.bill(card))),
            percent(ratio(total.bill_with_pages(card), none.bill(card))),
            format!("{:.1}", 100.0 * total.pages as f64 / calls),
            format!("{:.0}k", total.peak as f64 / 1e3),
            percent(total.breaks as f64 / calls),
        ]
    })
}

/// Visibility and storage: what the model could still see under each policy, and what was stored.
pub(crate) fn visibility(names: &[&str], totals: &[Figures]) -> String {
    let head = "policy|named|shown|quoted|reachable|stored";
    table(head, names, totals, |total| {
        vec![
            share_of(total.named, total.uses),
            share_of(total.shown, total.uses),
            share_of(total.quoted, total.quotes),
            share_of(total.reachable, total.uses),
            format!("{} ({})", total.stored_objects, bytes(total.stored_bytes)),
        ]
    })
}

/// Values and own words: what turns needed beside names and lines, and still saw.
pub(crate) fn values(names: &[&str], totals: &[Figures]) -> String {
    let kinds = [Kind::Number, Kind::Flag, Kind::Noun, Kind::Date, Kind::Own];
    let head = format!("policy|{}", kinds.map(Kind::name).join("|"));
    table(&head, names, totals, |total| {
        kinds.map(|kind| seen(total, kind)).into()
    })
}

/// Outcomes, old texts of edits, and the bill with reads of a flat 500 tokens, as it was measured earlier.
pub(crate) fn outcomes(names: &[&str], totals: &[Figures], card: Card) -> String {
    let none = totals.first().map_or(0.0, |none| none.bill(card));
    let head = "policy|verdicts|failing|edits|flat|flat/100";
    table(head, names, totals, |total| {
        let calls = total.model_calls.max(1) as f64;
        vec![
            seen_in_cut(total, Kind::Verdict),
            seen_in_cut(total, Kind::Failing),
            seen(total, Kind::Edit),
            percent(ratio(total.bill_with_reads(card), none)),
            format!("{:.1}", 100.0 * total.reads as f64 / calls),
        ]
    })
}

fn seen_in_cut(total: &Figures, kind: Kind) -> String {
    let count = total.seen.count(kind);
    share_of(count.seen_in_cut(), count.cut)
}

fn seen(total: &Figures, kind: Kind) -> String {
    let count = total.seen.count(kind);
    share_of(count.seen, count.needed)
}

/// Differences that sums hide: each figure's mean over the transcripts, unweighted, and its worst
/// value. `by_trace` has the figures of each transcript by policy, doing nothing first.
pub(crate) fn table_by_trace(names: &[&str], by_trace: &[Vec<Figures>], card: Card) -> String {
    let head = "mean, worst|bill|with reads|named|quoted";
    let policies: Vec<usize> = (0..names.len()).collect();
    table(head, names, &policies, |index| {
        let figures = |figure: &dyn Fn(&Figures, &Figures) -> Option<f64>| -> Vec<f64> {
            by_trace
                .iter()
                .filter_map(|trace| figure(trace.get(*index)?, trace.first()?))
                .collect()
        };
        let cost = |bill: f64, none: f64| (none > 0.0).then(|| bill / none);
        let bills = figures(&|own, none| cost(own.bill(card), none.bill(card)));
        let with_reads = figures(&|own, none| cost(own.bill_with_pages(card), none.bill(card)));
        let named = figures(&|own, _| (own.uses > 0).then(|| share(own.named, own.uses)));
        let quoted = figures(&|own, _| (own.quotes > 0).then(|| share(own.quoted, own.quotes)));
        let both = |of: &[f64], worse: fn(f64, f64) -> f64| {
            let Some(worst) = of.iter().copied().reduce(worse) else {
                return NOTHING.to_owned();
            };
            let mean = of.iter().sum::<f64>() / of.len() as f64;
            format!("{} {:3.0}%", percent(mean), 100.0 * worst)
        };
        vec![
            both(&bills, f64::max),
            both(&with_reads, f64::max),
            both(&named, f64::min),
            both(&quoted, f64::min),
        ]
    })
}

/// `part / whole`, or 1 if `whole` is 0.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 1.0 }
}

/// A share in percent; a dash if there is nothing to have a share of.
fn share_of(part: u64, whole: u64) -> String {
    if whole == 0 {
        NOTHING.to_owned()
    } else {
        percent(share(part, whole))
    }
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

/// Formats a size for people.
fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.0} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// A table with a row for each policy: its name, then its `cells`. Bars separate the titles in `head`.
fn table<T>(
    head: &str,
    names: &[&str],
    policies: &[T],
    cells: impl Fn(&T) -> Vec<String>,
) -> String {
    let rows = names.iter().zip(policies);
    let rows = rows.map(|(name, policy)| [vec![output::visible(name)], cells(policy)].concat());
    let rows = output::aligned(1, head, rows);
    let rules: Vec<String> = rows[0]
        .iter()
        .map(|title| "-".repeat(title.chars().count()))
        .collect();
    // Only the names are aligned to the left.
    let rules = format!("|-{}:|\n", rules.join(":|-").replacen(':', "-", 1));
    let mut lines: Vec<String> = rows
        .iter()
        .map(|row| format!("| {} |\n", row.join(" | ")))
        .collect();
    lines.insert(1, rules);
    lines.concat()
}
