//! Tables that compare the figures of several policies.

use super::seen::share;
use super::{Figures, Prices, Replayed};
use crate::evidence::Kind;
use crate::output;

/// A figure about nothing.
const NOTHING: &str = "-";

/// Tables with a row for each policy, doing nothing first: costs; what the model could still see, and what was stored;
/// values and own words; outcomes, old texts of edits, and the bill with reads of a flat 500 tokens; and differences
/// that sums hide: each figure's mean over the transcripts, unweighted, and its worst value. All are aligned Markdown
/// that fits a terminal of 80 columns.
pub(crate) fn tables(
    names: &[&str],
    totals: &[Figures],
    replayed: &[Replayed],
    prices: &Prices,
) -> [String; 5] {
    let table = |head: &str, cells: &dyn Fn(usize, &Figures) -> Vec<String>| {
        let rows = names.iter().zip(totals).enumerate();
        let rows = rows.map(|(index, (name, total))| {
            [vec![output::visible(name)], cells(index, total)].concat()
        });
        markdown(&output::aligned(1, head, rows))
    };
    let none = totals.first().copied().unwrap_or_default();
    let relative = |bill: f64| percent(ratio(bill, none.bill(prices)));
    let by_call = |total: &Figures, count: u64| count as f64 / total.model_calls.max(1) as f64;
    let by_hundred = |total: &Figures, count: u64| format!("{:.1}", 100.0 * by_call(total, count));
    let values = [Kind::Number, Kind::Flag, Kind::Noun, Kind::Date, Kind::Own];
    let values_head = format!("policy|{}", values.map(Kind::name).join("|"));
    [
        table(
            "policy|tokens|bill|with reads|reads/100|peak|breaks",
            &|_, total| {
                vec![
                    percent(share(total.tokens, none.tokens)),
                    relative(total.bill(prices)),
                    relative(total.bill_with_pages(prices)),
                    by_hundred(total, total.pages),
                    format!("{:.0}k", total.peak as f64 / 1e3),
                    percent(by_call(total, total.breaks)),
                ]
            },
        ),
        table("policy|named|shown|quoted|reachable|stored", &|_, total| {
            let names = total.seen.count(Kind::Name);
            let size = bytes(total.stored_bytes);
            vec![
                seen(total, Kind::Name),
                share_of(total.shown, names.needed),
                seen(total, Kind::Quote),
                share_of(names.readable, names.needed),
                format!("{} ({size})", total.stored_objects),
            ]
        }),
        table(&values_head, &|_, total| {
            values.map(|kind| seen(total, kind)).into()
        }),
        table(
            "policy|verdicts|failing|edits|flat|flat/100",
            &|_, total| {
                vec![
                    seen_in_cut(total, Kind::Verdict),
                    seen_in_cut(total, Kind::Failing),
                    seen(total, Kind::Edit),
                    relative(total.bill_with_reads(prices)),
                    by_hundred(total, total.reads),
                ]
            },
        ),
        table("mean, worst|bill|with reads|named|quoted", &|index, _| {
            let over = |figure: &dyn Fn(&Figures, f64) -> Option<f64>,
                        worse: fn(f64, f64) -> f64| {
                let of = |one: &Replayed| {
                    let none = one.replays[0].figures.bill(prices);
                    figure(&one.replays[index].figures, none)
                };
                mean_and_worst(&replayed.iter().filter_map(of).collect::<Vec<_>>(), worse)
            };
            let cost = |bill: f64, none: f64| (none > 0.0).then(|| bill / none);
            let seen = |kind| {
                let share = |own: &Figures, _| {
                    let count = own.seen.count(kind);
                    (count.needed > 0).then(|| share(count.seen, count.needed))
                };
                over(&share, f64::min)
            };
            vec![
                over(&|own, none| cost(own.bill(prices), none), f64::max),
                over(
                    &|own, none| cost(own.bill_with_pages(prices), none),
                    f64::max,
                ),
                seen(Kind::Name),
                seen(Kind::Quote),
            ]
        }),
    ]
}

/// `part / whole`, or 1 if `whole` is 0.
pub(super) fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 1.0 }
}

fn seen_in_cut(total: &Figures, kind: Kind) -> String {
    let count = total.seen.count(kind);
    share_of(count.seen_in_cut(), count.cut)
}

fn seen(total: &Figures, kind: Kind) -> String {
    let count = total.seen.count(kind);
    share_of(count.seen, count.needed)
}

fn mean_and_worst(values: &[f64], worse: fn(f64, f64) -> f64) -> String {
    let Some(worst) = values.iter().copied().reduce(worse) else {
        return NOTHING.to_owned();
    };
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    format!("{} {:3.0}%", percent(mean), 100.0 * worst)
}

/// A share in percent; a dash if there is nothing to have a share of.
fn share_of(part: u64, whole: u64) -> String {
    match whole {
        0 => NOTHING.to_owned(),
        _ => percent(share(part, whole)),
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

/// A table of cells that are aligned already.
fn markdown(rows: &[Vec<String>]) -> String {
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
