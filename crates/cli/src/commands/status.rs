//! `offcut status`.

use std::process::ExitCode;

use crate::agents::layout::Home;
use crate::gateway::figures;
use offcut::backend::StoreUrl;
use serde_json::{Value, json};

use crate::failure::{FAILED, Failure, OrFail as _};
use crate::serving::Running;
use crate::units::{BYTES_PER_TOKEN, count, grouped, size, span};
use crate::{output, settings};

/// Number of conversations that are listed for each server, last call first.
const CONVERSATIONS: usize = 10;

pub(crate) fn run(json: bool) -> Result<ExitCode, Failure> {
    let home = Home::required()?;
    let folder = home.servers();
    let pages = Running::all(&home);
    let pages = pages.or_fail(format_args!("{} can't be read", folder.display()))?;
    let runtime = settings::runtime()?;
    let asked = pages.iter().map(|page| figures(page));
    let asked = runtime.block_on(futures_util::future::join_all(asked));
    let asked: Vec<_> = pages.iter().zip(asked).collect();
    if asked.is_empty() {
        return Err(Failure::new("no server of this user runs").hint(
            "start one with `offcut serve`, or set OFFCUT_HOME to the folder of the user whose server runs",
        ));
    }
    if json {
        let servers = asked.iter().map(|(page, figures)| match figures {
            Ok(figures) => json!({"page": page, "figures": figures}),
            Err(error) => json!({"page": page, "error": error.to_string()}),
        });
        output::write_json(&json!({"servers": servers.collect::<Vec<_>>()}))?;
    }
    let mut code = ExitCode::SUCCESS;
    for (page, figures) in &asked {
        match figures {
            Ok(_) if json => {}
            Ok(figures) => output::write(&as_text(page, figures))?,
            Err(error) => {
                // Without the token.
                let server = StoreUrl::from(page.split('#').next().unwrap_or_default());
                let server = output::visible(&server.to_string());
                output::warn(&format!("{server} does not tell its figures: {error}"));
                code = ExitCode::from(FAILED);
            }
        }
    }
    Ok(code)
}

fn as_text(page: &str, figures: &Value) -> String {
    let number = |name: &str| number(figures, name);
    let (before, after) = (number("before"), number("after"));
    let mut text = format!(
        "{} for {}\n",
        output::visible(page),
        span(number("seconds"))
    );
    if number("calls") == 0 {
        return text + "No request yet.\n\n";
    }
    text += &format!(
        "{} of {} sent {} in place of {}: {} saved, about {} tokens.\n",
        count(number("calls"), "call"),
        count(number("known"), "conversation"),
        size(after),
        size(before),
        share(before, after),
        grouped(before.cast_signed().saturating_sub(after.cast_signed()) / BYTES_PER_TOKEN),
    );
    text += &estimate(figures);
    text += &format!(
        "{} cut, {} cleared, {} read back.\n",
        count(number("cut"), "result"),
        number("cleared"),
        number("reads"),
    );
    let list = |name: &str| figures[name].as_array().into_iter().flatten();
    for open in list("passed") {
        let passed = count(self::number(open, "count"), "request");
        let (reason, meaning) = (said(open, "reason"), said(open, "meaning"));
        text += &format!("{passed} passed open ({reason}): {meaning}.\n");
    }
    text += &misses(&figures["misses"]);
    let mut conversations: Vec<_> = list("conversations").collect();
    let order = |one: &&Value| (one["last"].as_u64(), one["number"].as_u64());
    conversations.sort_by_key(|one| std::cmp::Reverse(order(one)));
    let left = conversations.len().saturating_sub(CONVERSATIONS);
    conversations.truncate(CONVERSATIONS);
    if !conversations.is_empty() {
        text += &table(&conversations, number("seconds"));
    }
    if left > 0 {
        text += &format!("{left} more, which --json has\n");
    }
    text + "\n"
}

/// A line for each reason for which a provider's cache missed.
pub(super) fn misses(rows: &Value) -> String {
    let row = |miss: &Value| {
        format!(
            "{} billed about {} tokens again ({}): {}. To mend it, {}.\n",
            count(number(miss, "count"), "call"),
            grouped(miss["tokens"].as_i64().unwrap_or(0)),
            said(miss, "kind"),
            said(miss, "meaning"),
            said(miss, "cure"),
        )
    };
    rows.as_array().into_iter().flatten().map(row).collect()
}

fn table(conversations: &[&Value], now: u64) -> String {
    let rows = conversations.iter().map(|one| {
        let number = |name: &str| number(one, name);
        let count = |name: &str| number(name).to_string();
        [
            count("number"),
            said(one, "upstream"),
            count("calls"),
            size(number("before")),
            size(number("after")),
            share(number("before"), number("after")),
            count("cut"),
            count("cleared"),
            count("reads"),
            count("passed"),
            format!("{} ago", span(now.saturating_sub(number("last")))),
        ]
    });
    let head = "number|provider|calls|before|after|saved|cut|cleared|reads|passed|last call";
    format!("\n{}", output::table(2, head, rows))
}

/// A number of the figures, or 0.
fn number(figures: &Value, name: &str) -> u64 {
    figures[name].as_u64().unwrap_or(0)
}

/// A text of the figures, which may be untrusted.
pub(super) fn said(figures: &Value, name: &str) -> String {
    output::visible(figures[name].as_str().unwrap_or_default())
}

/// The estimated bill, by the server's price card. With a currency and the source of its prices, it is money. Empty
/// if there is nothing to pay.
fn estimate(figures: &Value) -> String {
    let card = &figures["card"];
    let price = |name: &str| card[name].as_f64().unwrap_or(0.0);
    let cost = |name: &str| {
        let [bytes, fresh] = [name.to_owned(), format!("{name}_fresh")]
            .map(|name| figures[name].as_f64().unwrap_or(0.0));
        price("cached") * (bytes - fresh) + price("fresh") * fresh
    };
    let (before, after) = (cost("before"), cost("after"));
    if before <= 0.0 {
        return String::new();
    }
    let share = format!("{:.1} %", 100.0 * after / before);
    let amount = |bytes: f64| bytes / BYTES_PER_TOKEN as f64 / 1e6;
    match card["currency"].as_str().zip(card["source"].as_str()) {
        Some((currency, source)) => format!(
            "By estimate, the input costs {} {:.2} in place of {:.2}, {share} ({}).\n",
            output::visible(currency),
            amount(after),
            amount(before),
            output::visible(source),
        ),
        None => format!("By estimate, the input costs {share} of what it would have.\n"),
    }
}

fn share(before: u64, after: u64) -> String {
    if before == 0 {
        return "–".to_owned();
    }
    format!("{:.1} %", 100.0 * (1.0 - after as f64 / before as f64))
}
