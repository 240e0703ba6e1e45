//! A replay's result in words and tables: the outcome in one sentence, figures of several policies, and the meaning of
//! the columns.

use super::figures::share;
use super::{Figures, Prices};
use crate::evidence::Kind;
use crate::output;
use crate::units::{count, size};

/// Maximum width of the output.
const WIDTH: usize = 80;

/// Meaning of the tables' columns.
const LEGEND: &str = "\
tokens      input tokens of all calls, in % of doing nothing (none)
bill        their cost: by default 0.1 for a token in the prompt cache, else 1
with reads  the bill, if the model read back all that it used but no longer saw
reads/100   such reads per 100 calls          peak    tokens of the largest call
named       share of the strings that it used from results and could still see
shown       the same, with their surroundings quoted  the same for whole lines
reachable   visible, or stored behind a hint  breaks  calls that miss the cache
";

/// The whole result for a terminal, with a row for each policy, doing nothing first.
pub(crate) fn overview(
    names: &[&str],
    totals: &[Figures],
    transcripts: usize,
    prices: &Prices,
) -> String {
    let none = totals[0];
    let relative = |bill: f64| percent(ratio(bill, none.bill(prices)));
    let by_call = |total: &Figures, count: u64| count as f64 / total.model_calls.max(1) as f64;
    let rows = || names.iter().map(|name| (*name).to_owned()).zip(totals);
    let costs = rows().map(|(name, total)| {
        [
            name,
            percent(share(total.tokens, none.tokens)),
            relative(total.bill(prices)),
            relative(total.bill_with_pages(prices)),
            format!("{:.1}", 100.0 * by_call(total, total.pages)),
            format!("{:.0}k", total.peak as f64 / 1e3),
            percent(by_call(total, total.breaks)),
        ]
    });
    let sights = rows().map(|(name, total)| {
        let [names, lines] = [Kind::Name, Kind::Quote].map(|kind| total.seen.count(kind));
        [
            name,
            share_of(names.seen, names.needed),
            share_of(total.shown, names.needed),
            share_of(lines.seen, lines.needed),
            share_of(names.readable, names.needed),
            format!("{} ({})", total.stored_objects, size(total.stored_bytes)),
        ]
    });
    let needed = |kind| none.seen.count(kind).needed;
    [
        wrapped(&sentence(names, totals, transcripts, prices)),
        wrapped(&format!(
            "{}, {}, {:.1} M tokens sent, {} and {} used from results.",
            count(transcripts as u64, "transcript"),
            count(none.model_calls, "model call"),
            none.tokens as f64 / 1e6,
            count(needed(Kind::Name), "string"),
            count(needed(Kind::Quote), "line"),
        )),
        output::table(
            1,
            "policy|tokens|bill|with reads|reads/100|peak|breaks",
            costs,
        ),
        output::table(1, "policy|named|shown|quoted|reachable|stored", sights),
        LEGEND.to_owned(),
    ]
    .join("\n")
}

/// Wraps a text for a terminal of default size.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    let width = |text: &str| text.trim_end().chars().count();
    for word in text.split_inclusive(' ') {
        match lines.last_mut() {
            Some(line) if width(&format!("{line}{word}")) <= WIDTH => *line += word,
            _ => lines.push(word.to_owned()),
        }
    }
    let lines = lines.iter().map(|line| line.trim_end().to_owned() + "\n");
    lines.collect()
}

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
        // Prices are those of a million tokens.
        let [bill, was] = [bill, was].map(|bill| format!("{:.2}", bill / 1e6));
        format!(" ({currency} {bill} instead of {was}, by {source}, {date})")
    });
    let seen = [(Kind::Name, "strings"), (Kind::Quote, "lines")].into_iter();
    let seen = seen.filter_map(|(kind, what)| {
        let count = total.seen.count(kind);
        let share = 100.0 * share(count.seen, count.needed);
        (count.needed > 0).then(|| format!("{share:.0} % of the {what}"))
    });
    let seen: Vec<String> = seen.collect();
    let seen = match seen.is_empty() {
        true => "used nothing from tool results that could have been hidden".to_owned(),
        false => format!(
            "would still have seen {} that it used from tool results",
            seen.join(" and ")
        ),
    };
    format!(
        "Under {}, {these} would have cost {:.0} % of what {they} did{money}, reading back included; the model {seen}.",
        output::visible(name),
        100.0 * ratio(bill, was),
    )
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
