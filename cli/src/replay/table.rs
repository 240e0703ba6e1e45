//! The figures of several policies side by side.

use super::{Card, Figures, share};

/// A row for each policy, doing nothing first: a Markdown table that is aligned, so that it reads well in a terminal too.
/// `by_trace` has the figures of each transcript, in the same order.
pub(crate) fn table(names: &[&str], totals: &[Figures], by_trace: &[Vec<Figures>], card: Card) -> String {
    let head = [
        "policy",
        "tokens",
        "peak",
        "bill",
        "with reads",
        "worst",
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
    let Some(none) = totals.first() else { return String::new() };
    for (index, (name, total)) in names.iter().zip(totals).enumerate() {
        let relative = |part: f64, whole: f64| if whole > 0.0 { percent(part / whole) } else { percent(1.0) };
        let worst = by_trace.iter().filter_map(|trace| Some(trace.get(index)?.bill(card) / trace.first()?.bill(card)));
        rows.push([
            (*name).to_owned(),
            relative(total.tokens as f64, none.tokens as f64),
            format!("{:.0}k", total.peak as f64 / 1e3),
            relative(total.bill(card), none.bill(card)),
            relative(total.bill_with_reads(card), none.bill(card)),
            percent(worst.filter(|worst| worst.is_finite()).fold(0.0, f64::max)),
            format!("{:.1}", 100.0 * if total.model_calls > 0 { share(total.reads, total.model_calls) } else { 0.0 }),
            percent(if total.model_calls > 0 { share(total.breaks, total.model_calls) } else { 0.0 }),
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

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

/// A size as people read it.
pub(crate) fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.0} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let widths: [usize; N] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default());
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            text.push_str(&if column == 0 { format!("| {cell:<width$} ") } else { format!("| {cell:>width$} ") });
        }
        text.push_str("|\n");
        if index == 0 {
            for (column, width) in widths.iter().enumerate() {
                let rule = "-".repeat(*width);
                text.push_str(&if column == 0 { format!("|-{rule}-") } else { format!("|-{rule}:") });
            }
            text.push_str("|\n");
        }
    }
    text
}
