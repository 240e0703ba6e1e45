//! A replay's result in words and tables: the outcome in one sentence, figures of several policies, and the meaning of
//! the columns.

use super::figures::share;
use super::{Figures, Prices, Replayed};
use crate::evidence::Kind;
use crate::output;

/// Maximum width of the output, for a terminal of default size.
const WIDTH: usize = 80;

/// Meaning of the tables' columns.
pub(crate) const LEGEND: &str = "\
tokens      input tokens of all calls, in % of doing nothing (none)
bill        their cost: by default 0.1 for a token in the prompt cache, else 1
with reads  the bill, if the model read back all that it used but no longer saw
reads/100   such reads per 100 calls          peak    tokens of the largest call
named       share of the strings that it used from results and could still see
shown       the same, with their surroundings quoted  the same for whole lines
reachable   visible, or stored behind a hint  breaks  calls that miss the cache
numbers     of three digits and more, flags (--all), nouns (Ada Lovelace), dates
            and amounts: used from results and still seen
own         the same for names and lines from arguments of its own calls
verdicts    exit codes and counts of tests, builds, installs that it could see
failing     the same for their lines that report failures
edits       old texts of edits in view
flat        the bill with reads of 500 tokens each   flat/100  their number
";

/// Describes the outcome under the first policy, the main one.
pub(crate) fn sentence(
    names: &[&str],
    totals: &[Figures],
    transcripts: usize,
    prices: &Prices,
) -> String {
    let ([_, name, ..], [none, total, ..]) = (names, totals) else {
        return String::new();
    };
    let (bill, was) = (total.bill_with_pages(prices), none.bill(prices));
    let (these, they) = match transcripts {
        1 => ("this transcript".to_owned(), "it"),
        several => (format!("these {several} transcripts"), "they"),
    };
    let money = prices.money().map_or_else(String::new, |money| {
        let [currency, source, date] = money.map(output::visible);
        let [bill, was] = [bill, was].map(amount);
        format!(" ({currency} {bill} instead of {was}, by {source}, {date})")
    });
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let seen: Vec<String> = [(Kind::Name, "strings"), (Kind::Quote, "lines")]
        .map(|(kind, what)| (total.seen.count(kind), what))
        .into_iter()
        .filter(|(count, _)| count.needed > 0)
        .map(|(count, what)| {
            let share = percent(share(count.seen, count.needed));
            format!("{share} of the {what}")
        })
        .collect();
    let seen = if seen.is_empty() {
        "the model used nothing from tool results that could have been hidden".to_owned()
    } else {
        format!(
            "the model would still have seen {} that it used from tool results",
            seen.join(" and ")
        )
    };
    format!(
        "Under {}, {these} would have cost {} of what {they} did{money}, reading back included; {seen}.",
        output::visible(name),
        percent(ratio(bill, was)),
    )
}

/// Lists the cost of each policy, if the prices are money.
pub(crate) fn money(names: &[&str], totals: &[Figures], prices: &Prices) -> Option<String> {
    let [currency, source, date] = prices.money()?.map(output::visible);
    let each: Vec<String> = names
        .iter()
        .zip(totals)
        .map(|(name, total)| {
            let bill = amount(total.bill_with_pages(prices));
            format!("{} {bill}", output::visible(name))
        })
        .collect();
    Some(format!(
        "Input tokens with reads, in {currency} by {source}, {date}: {}.",
        each.join(", ")
    ))
}

/// Formats a bill as an amount of money, given prices for a million tokens.
fn amount(bill: f64) -> String {
    format!("{:.2}", bill / 1e6)
}

/// Wraps a text to the maximum width.
pub(crate) fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut width = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > WIDTH {
            lines.push('\n');
            width = 0;
        } else if width > 0 {
            lines.push(' ');
            width += 1;
        }
        lines.push_str(word);
        width += length;
    }
    lines
}

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
fn ratio(part: f64, whole: f64) -> f64 {
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
