//! The figures of several policies side by side.

use super::figures::share;
use super::{Card, Figures};

/// A row for each policy, doing nothing first: a Markdown table that is aligned, so that it reads
/// well in a terminal too.
pub(crate) fn table(names: &[&str], totals: &[Figures], card: Card) -> String {
    let head = [
        "policy",
        "tokens",
        "peak",
        "bill",
        "with reads",
        "reads/100",
        "breaks",
        "named",
        "shown",
        "quoted",
        "reachable",
        "stored",
        "passes",
    ];
    let mut rows = vec![head.map(str::to_owned)];
    let Some(none) = totals.first() else {
        return String::new();
    };
    for (name, total) in names.iter().zip(totals) {
        rows.push([
            (*name).to_owned(),
            percent(ratio(total.tokens as f64, none.tokens as f64)),
            format!("{:.0}k", total.peak as f64 / 1e3),
            percent(ratio(total.bill(card), none.bill(card))),
            percent(ratio(total.bill_with_reads(card), none.bill(card))),
            format!(
                "{:.1}",
                100.0 * total.reads as f64 / total.model_calls.max(1) as f64
            ),
            percent(total.breaks as f64 / total.model_calls.max(1) as f64),
            percent(share(total.named, total.uses)),
            percent(share(total.shown, total.uses)),
            percent(share(total.quoted, total.quotes)),
            percent(share(total.reachable, total.uses)),
            format!("{} ({})", total.stored_objects, bytes(total.stored_bytes)),
            format!("{:.2} s", total.pass.as_secs_f64()),
        ]);
    }
    aligned(&rows)
}

/// What sums hide: each figure's mean over the transcripts, each counting the same, and the worst
/// of them. `by_trace` has the figures of each transcript, policy by policy, doing nothing first.
pub(crate) fn table_by_trace(names: &[&str], by_trace: &[Vec<Figures>], card: Card) -> String {
    let head = [
        "each transcript",
        "bill, mean",
        "worst",
        "with reads, mean",
        "worst",
        "named, mean",
        "worst",
        "quoted, mean",
        "worst",
    ];
    let mut rows = vec![head.map(str::to_owned)];
    for (index, name) in names.iter().enumerate() {
        // Nothing says anything about a transcript that sends or uses nothing.
        let figures = |figure: &dyn Fn(&Figures, &Figures) -> Option<f64>| -> Vec<f64> {
            by_trace
                .iter()
                .filter_map(|trace| figure(trace.get(index)?, trace.first()?))
                .collect()
        };
        let cost = |bill: f64, none: f64| (none > 0.0).then(|| bill / none);
        let bills = figures(&|own, none| cost(own.bill(card), none.bill(card)));
        let with_reads = figures(&|own, none| cost(own.bill_with_reads(card), none.bill(card)));
        let named = figures(&|own, _| (own.uses > 0).then(|| share(own.named, own.uses)));
        let quoted = figures(&|own, _| (own.quotes > 0).then(|| share(own.quoted, own.quotes)));
        let mean = |of: &[f64]| {
            percent(if of.is_empty() {
                1.0
            } else {
                of.iter().sum::<f64>() / of.len() as f64
            })
        };
        let most = |of: &[f64]| percent(of.iter().copied().reduce(f64::max).unwrap_or(1.0));
        let least = |of: &[f64]| percent(of.iter().copied().reduce(f64::min).unwrap_or(1.0));
        rows.push([
            (*name).to_owned(),
            mean(&bills),
            most(&bills),
            mean(&with_reads),
            most(&with_reads),
            mean(&named),
            least(&named),
            mean(&quoted),
            least(&quoted),
        ]);
    }
    aligned(&rows)
}

/// The part of the whole; of nothing, as much as there was.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 1.0 }
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

/// A size as people read it.
fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.0} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let widths: [usize; N] = std::array::from_fn(|column| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or_default()
    });
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            text.push_str(&if column == 0 {
                format!("| {cell:<width$} ")
            } else {
                format!("| {cell:>width$} ")
            });
        }
        text.push_str("|\n");
        if index == 0 {
            for (column, width) in widths.iter().enumerate() {
                let rule = "-".repeat(*width);
                text.push_str(&if column == 0 {
                    format!("|-{rule}-")
                } else {
                    format!("|-{rule}:")
                });
            }
            text.push_str("|\n");
        }
    }
    text
}
