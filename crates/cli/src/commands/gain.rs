//! `offcut gain`.

use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::agents::gain::{Gain, Gains, ServedGain, ServedGains};
use crate::agents::journal::{self, Entry, Row, Served};
use crate::agents::layout::Home;
use serde_json::{Value, json};

use crate::bill::BYTES_PER_TOKEN;
use crate::failure::Failure;
use crate::replay::Prices;
use crate::units::{count, grouped};
use crate::{args, output};

/// Adds the journals of hooks and servers up.
pub(crate) fn run(args: &args::Gain, json: bool) -> Result<ExitCode, Failure> {
    let home = Home::from_env().ok_or_else(|| {
        Failure::usage(
            "there is no home directory",
            "set OFFCUT_HOME to the directory that the hooks use",
        )
    })?;
    let prices = Prices::open(&args.prices)?;
    let since = args.since.map_or(0, |age| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.unwrap_or_default().saturating_sub(age).as_secs()
    });
    let entries: Vec<Entry> = rows(&home.journal(), since)?;
    let served: Vec<Served> = rows(&home.served(), since)?;
    let (gains, served) = (Gains::of(&entries), ServedGains::of(&served));
    let is_empty = gains.total.results == 0 && served.total.requests == 0;
    if json {
        let mut all = as_json(&gains);
        all["served"] = served_as_json(&served);
        output::write_json(&all)?;
    } else if is_empty {
        let path = home.path().display();
        output::write(&match args.since {
            None => format!("{path} has no journals yet\n"),
            Some(_) => format!("the journals in {path} have nothing that recent\n"),
        })?;
        output::note(
            "`offcut doctor AGENT` tells whether a hook works, and `offcut status` whether a server runs",
        );
    } else {
        let mut parts = Vec::new();
        if gains.total.results > 0 {
            parts.push(as_text(&gains));
        }
        if served.total.requests > 0 {
            parts.push(served_as_text(&served, &prices));
        }
        output::write(&parts.join("\n"))?;
        output::write("\nA token is taken as four bytes.\n")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The rows of a journal that are not older than `since`.
fn rows<R: Row>(path: &Path, since: u64) -> Result<Vec<R>, Failure> {
    let mut rows: Vec<R> = journal::read(path)
        .map_err(|error| Failure::new(format!("{} can't be read: {error}", path.display())))?;
    rows.retain(|row| row.time() >= since);
    Ok(rows)
}

fn as_json(gains: &Gains) -> Value {
    let tools = gains.tools.iter().map(|((agent, tool), gain)| {
        let mut row = figures(gain);
        row["agent"] = agent.as_str().into();
        row["tool"] = tool.as_str().into();
        row
    });
    let mut all = figures(&gains.total);
    all["sessions"] = gains.sessions.into();
    all["since"] = gains.since.into();
    all["tools"] = tools.collect();
    all
}

fn figures(gain: &Gain) -> Value {
    json!({
        "results": gain.results,
        "shortened": gain.shortened,
        "reads": gain.reads,
        "bytes_before": gain.before,
        "bytes_after": gain.after,
        "bytes_saved": gain.saved(),
        "bytes_saved_over_calls": gain.over_calls,
        "with_known_calls": gain.known,
    })
}

fn served_as_json(gains: &ServedGains) -> Value {
    let figures = |gain: &ServedGain| {
        json!({
            "requests": gain.requests,
            "reduced": gain.reduced,
            "replaced": gain.replaced,
            "bytes_before": gain.before,
            "bytes_before_fresh": gain.before_fresh,
            "bytes_after": gain.after,
            "bytes_after_fresh": gain.after_fresh,
            "bytes_saved": gain.saved(),
        })
    };
    let senders = gains.senders.iter().map(|(sender, gain)| {
        let mut row = figures(gain);
        for (name, value) in ["upstream", "model", "client"].into_iter().zip(sender) {
            row[name] = value.as_str().into();
        }
        row
    });
    let mut all = figures(&gains.total);
    all["conversations"] = gains.conversations.into();
    all["passed"] = json!(gains.passed);
    all["since"] = gains.since.into();
    all["senders"] = senders.collect();
    all
}

fn served_as_text(gains: &ServedGains, prices: &Prices) -> String {
    let total = &gains.total;
    let mut text = format!(
        "Through servers, in {}, {} of {} went on shorter, with {} replaced.\n\
         They had {} bytes in place of {}: {}, about {} input tokens.\n",
        count(gains.conversations, "conversation"),
        total.reduced,
        count(total.requests, "request"),
        count(total.replaced, "result"),
        grouped(total.after.cast_signed()),
        grouped(total.before.cast_signed()),
        less(total.saved(), ""),
        tokens(total.saved()),
    );
    let passed: u64 = gains.passed.values().sum();
    if passed > 0 {
        let reasons = gains.passed.iter();
        let reasons = reasons.map(|(reason, count)| format!("{count} {}", output::visible(reason)));
        text += &format!(
            "{} passed open: {}.\n",
            count(passed, "request"),
            reasons.collect::<Vec<_>>().join(", ")
        );
    }
    text += &prices.estimate(
        cached_and_fresh(total.after, total.after_fresh),
        cached_and_fresh(total.before, total.before_fresh),
    );
    let rows = gains.senders.iter().map(|(sender, gain)| {
        let counts = [gain.requests, gain.reduced, gain.replaced];
        let name = sender.join(" ");
        (
            name.trim_end().to_owned(),
            counts,
            [gain.before, gain.after],
        )
    });
    text + &table(
        ["upstream, model, client", "requests", "shortened", "cut"],
        rows,
    )
}

/// An amount that was saved, in words; below zero, it was spent.
fn less(saved: i64, unit: &str) -> String {
    let word = if saved < 0 { "more" } else { "less" };
    format!("{}{unit} {word}", grouped(saved.saturating_abs()))
}

/// The tokens of a text of that length, estimated.
fn tokens(bytes: i64) -> String {
    grouped((bytes / BYTES_PER_TOKEN).abs())
}

fn cached_and_fresh(bytes: u64, fresh: u64) -> [f64; 2] {
    [bytes.saturating_sub(fresh), fresh].map(|bytes| bytes as f64)
}

/// A table with a row for each name: three counts, and bytes before and after.
fn table(head: [&str; 4], rows: impl Iterator<Item = (String, [u64; 3], [u64; 2])>) -> String {
    let row = |[name, one, two, three, before, after]: [&str; 6]| {
        format!("{name:34} {one:>8} {two:>9} {three:>6} {before:>13} {after:>13}\n")
    };
    let [name, one, two, three] = head;
    let mut text = format!(
        "\n{}",
        row([name, one, two, three, "bytes before", "bytes after"])
    );
    for (name, counts, bytes) in rows {
        let name: String = output::visible(&name).chars().take(34).collect();
        let [one, two, three] = counts.map(|count| count.to_string());
        let [before, after] = bytes.map(|bytes| grouped(bytes.cast_signed()));
        text += &row([&name, &one, &two, &three, &before, &after]);
    }
    text
}

fn as_text(gains: &Gains) -> String {
    let total = &gains.total;
    let mut text = format!(
        "In {}, {} of {} were shortened, and {} read back.\n\
         The model was shown {} bytes in place of {}: {}, about {} tokens.\n",
        count(gains.sessions, "session"),
        total.shortened,
        count(total.results, "result"),
        count(total.reads, "stored result"),
        grouped(total.after.cast_signed()),
        grouped(total.before.cast_signed()),
        less(total.saved(), ""),
        tokens(total.saved()),
    );
    let counted = total.shortened + total.reads;
    let note = match counted - total.known {
        0 => String::new(),
        unknown => format!(
            " ({unknown} of {counted} are counted for one call, since their agent's log does not say more)"
        ),
    };
    text += &format!(
        "Over the model calls that followed: {}, about {} input tokens{note}.\n",
        less(total.over_calls, " bytes"),
        tokens(total.over_calls),
    );
    text += "Hints and reads are counted in.\n";
    let rows = gains.tools.iter().map(|((agent, tool), gain)| {
        let counts = [gain.results, gain.shortened, gain.reads];
        (format!("{agent} {tool}"), counts, [gain.before, gain.after])
    });
    text + &table(["tool", "results", "shortened", "reads"], rows)
}
