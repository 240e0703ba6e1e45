//! A replay's result in words and tables: the outcome in one sentence, figures of several policies, and the meaning of
//! the columns.

use super::figures::share;
use super::{Figures, Prices};
use crate::evidence::Kind;
use crate::{output, units};

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

/// Tables with a row for each policy, doing nothing first: costs; and what the model could still see, and what was
/// stored. Both are aligned Markdown that fits a terminal of 80 columns.
pub(crate) fn tables(names: &[&str], totals: &[Figures], prices: &Prices) -> [String; 2] {
    let table = |head: &str, cells: &dyn Fn(&Figures) -> Vec<String>| {
        let rows = names.iter().zip(totals);
        let rows = rows.map(|(name, total)| [vec![output::visible(name)], cells(total)].concat());
        markdown(&output::aligned(1, head, rows))
    };
    let none = totals.first().copied().unwrap_or_default();
    let relative = |bill: f64| percent(ratio(bill, none.bill(prices)));
    let by_call = |total: &Figures, count: u64| count as f64 / total.model_calls.max(1) as f64;
    [
        table(
            "policy|tokens|bill|with reads|reads/100|peak|breaks",
            &|total| {
                vec![
                    percent(share(total.tokens, none.tokens)),
                    relative(total.bill(prices)),
                    relative(total.bill_with_pages(prices)),
                    format!("{:.1}", 100.0 * by_call(total, total.pages)),
                    format!("{:.0}k", total.peak as f64 / 1e3),
                    percent(by_call(total, total.breaks)),
                ]
            },
        ),
        table("policy|named|shown|quoted|reachable|stored", &|total| {
            let [names, lines] = [Kind::Name, Kind::Quote].map(|kind| total.seen.count(kind));
            let size = units::size(total.stored_bytes);
            vec![
                share_of(names.seen, names.needed),
                share_of(total.shown, names.needed),
                share_of(lines.seen, lines.needed),
                share_of(names.readable, names.needed),
                format!("{} ({size})", total.stored_objects),
            ]
        }),
    ]
}

/// `part / whole`, or 1 if `whole` is 0.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 1.0 }
}

/// A share in percent; a dash if there is nothing to have a share of.
fn share_of(part: u64, whole: u64) -> String {
    match whole {
        0 => "-".to_owned(),
        _ => percent(share(part, whole)),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
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
