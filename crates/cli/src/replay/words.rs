//! A replay's result in words and tables: the outcome in one sentence, figures of several policies, and the meaning of
//! the columns.

use super::figures::{ratio, share};
use super::{Figures, Prices};
use crate::evidence::Kind;
use crate::output;
use crate::units::{count, size};

/// Meaning of the columns of the table, and of the one with everything else.
const LEGEND: &str = "\
bill        the cost of all calls, in % of doing nothing (none): by default 0.1
            for a token in the prompt cache, else 1
with reads  the bill, if the model read back all that it used but no longer saw
reads/100   such reads per 100 calls
named       share of the strings that it used from results and could still see
quoted      the same for whole lines
";
const MORE: &str = "\
tokens      input tokens of all calls, in % of none
peak        tokens of the largest call
breaks      calls that miss the cache
shown       named strings that it could see with their surroundings
edits       old texts of edits that it could see at that call
reachable   named strings that are visible, or stored behind a hint
";

/// The whole result for a terminal, with a row for each policy, doing nothing first: `verdict` is its end. Everything
/// that is measured is in it if it `is_whole`.
pub(crate) fn overview(
    names: &[&str],
    totals: &[Figures],
    transcripts: usize,
    prices: &Prices,
    is_whole: bool,
) -> String {
    let none = totals[0];
    let relative = |bill: f64| percent(ratio(bill, none.bill(prices)));
    let by_call = |total: &Figures, count: u64| count as f64 / total.model_calls.max(1) as f64;
    let rows = || names.iter().map(|name| (*name).to_owned()).zip(totals);
    let costs = rows().map(|(name, total)| {
        let [names, lines] = [Kind::Name, Kind::Quote].map(|kind| total.seen.count(kind));
        [
            name,
            relative(total.bill(prices)),
            relative(total.bill_with_pages(prices)),
            format!("{:.1}", 100.0 * by_call(total, total.pages)),
            share_of(names.seen, names.needed),
            share_of(lines.seen, lines.needed),
        ]
    });
    let rest = rows().map(|(name, total)| {
        let [names, edits] = [Kind::Name, Kind::Edit].map(|kind| total.seen.count(kind));
        [
            name,
            percent(share(total.tokens, none.tokens)),
            format!("{:.0}k", total.peak as f64 / 1e3),
            percent(by_call(total, total.breaks)),
            share_of(total.shown, names.needed),
            share_of(edits.seen, edits.needed),
            share_of(names.readable, names.needed),
            format!("{} ({})", total.stored_objects, size(total.stored_bytes)),
        ]
    });
    let needed = |kind| none.seen.count(kind).needed;
    let mut parts = vec![
        format!(
            "{}, {}, {:.1} M tokens sent, {} and {} used from results.\n",
            count(transcripts as u64, "transcript"),
            count(none.model_calls, "model call"),
            none.tokens as f64 / 1e6,
            count(needed(Kind::Name), "string"),
            count(needed(Kind::Quote), "line"),
        ),
        output::table(1, "policy|bill|with reads|reads/100|named|quoted", costs),
        LEGEND.to_owned(),
    ];
    if is_whole {
        let head = "policy|tokens|peak|breaks|shown|edits|reachable|stored";
        parts.extend([output::table(1, head, rest), MORE.to_owned()]);
    }
    parts.join("\n")
}

/// The policy that costs least with the reads that it causes, by its place: 0 if none costs less than doing nothing. Of
/// those that cost the same percentage, the one that hides least.
pub(crate) fn cheapest(totals: &[Figures], prices: &Prices) -> usize {
    let none = totals[0].bill_with_pages(prices);
    let rank = |place: &usize| {
        let total = &totals[*place];
        let names = total.seen.count(Kind::Name);
        let cost = (100.0 * ratio(total.bill_with_pages(prices), none)).round() as u64;
        (cost, names.needed - names.seen)
    };
    (0..totals.len()).min_by_key(rank).unwrap_or_default()
}

/// Says what the cheapest policy would have cost, and what the model would have lost.
pub(crate) fn verdict(
    names: &[&str],
    totals: &[Figures],
    transcripts: usize,
    prices: &Prices,
) -> String {
    let best = cheapest(totals, prices);
    let cost = |total: &Figures| {
        let part = ratio(total.bill_with_pages(prices), totals[0].bill(prices));
        format!("{:.0} %", 100.0 * part)
    };
    if best == 0 {
        let all = names.iter().zip(totals).skip(1);
        let all = all.map(|(name, total)| format!("{} {}", output::visible(name), cost(total)));
        let all = all.collect::<Vec<_>>().join(", ");
        return format!(
            "No policy would have cost noticeably less than doing nothing, reading back included: {all}."
        );
    }
    let (name, none, total) = (names[best], totals[0], totals[best]);
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
        "{}{}, {these} would have cost {} of what {they} did{money}, reading back included; the model {seen}.",
        if names.len() > 2 {
            "Cheapest: under "
        } else {
            "Under "
        },
        output::visible(name),
        cost(&total),
    )
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
