//! A replay's result in words: the outcome in one sentence, and the meaning of the columns.

use super::seen::share;
use super::table::ratio;
use super::{Figures, Prices};
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
