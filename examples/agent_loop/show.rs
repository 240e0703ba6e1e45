//! The output for the user.

use std::io::Write as _;

use offcut::ToolCall;
use offcut::backend::Location;
use offcut::format::Message;
use offcut::report::{Decision, Outcome, Reason};
use serde_json::{Value, json};

use crate::args::Options;
use crate::messages::{READER, text_of};
use crate::tally::{Original, Tally};
use crate::tools::Directory;
use crate::verify::Verdict;

const WIDTH: usize = 94;

/// Prints a line. The run continues if the reader is gone (`| head`).
macro_rules! say {
    ($($line:tt)*) => {{ let _ = writeln!(std::io::stdout(), $($line)*); }};
}

pub(crate) fn introduction(options: &Options, directory: &Directory, tally: &Tally) {
    let store = match options.backend.as_deref() {
        None => format!("in a temporary directory that hints call {}", tally.store()),
        Some("memory") => format!("in memory, which hints call {}", tally.store()),
        Some(_) => format!("in {}", tally.store()),
    };
    let old = match options.keep_rounds {
        0 => "results that the model has answered".to_owned(),
        1 => "results older than the newest round".to_owned(),
        more => format!("results older than the newest {more} rounds"),
    };
    let long = options.max_length.map_or_else(
        || "long result".to_owned(),
        |length| format!("result over {} bytes", number(length as u64)),
    );
    let text = format!(
        "A model explores {} with tools. A {long} is truncated when it comes in; when the context is over {} \
         tokens, {old} are cleared. Either way it is stored whole first, {store}, and the model can read it back. \
         \"would be\" is the context without offcut, \"is\" with it, the reader's own description included.",
        directory.root().display(),
        number(options.max_tokens),
    );
    paragraph(&text, "");
}

/// Prints one line for the call, and the model's reply.
pub(crate) fn model_call(call: usize, without: Option<u64>, with: u64, reply: &Message) {
    let Message::Assistant { content, calls } = reply else {
        return;
    };
    let says = if calls.is_empty() {
        "Here is the answer."
    } else {
        text_of(content).unwrap_or_default()
    };
    let without = match without {
        Some(tokens) => format!("would be {:>8} tokens,", number(tokens)),
        None => "would not be made,".to_owned(),
    };
    say!(
        "\ncall {call:>2}   {without:<25} is {:>7}   {says}",
        number(with)
    );
}

/// Prints one line for each new result.
pub(crate) fn results(tally: &Tally, mut decisions: Vec<Decision>, messages: &[Message]) {
    // Parallel calls end in any order; they are shown in the order of the conversation.
    decisions.sort_by_key(|decision| message_of(decision, messages));
    for decision in &decisions {
        let original = tally.original(&decision.call_id);
        let what = match (decision.outcome, &original) {
            (Outcome::Truncated, _) => "truncated",
            (Outcome::Lost, _) => "LOST",
            (Outcome::Kept(Reason::StoreFailed), _) => "not stored",
            (_, Some(Original { is_error: true, .. })) => "failed",
            _ if decision.tool == READER => "read back",
            _ => "whole",
        };
        line(tally, what, decision, original);
    }
    sample(tally, &decisions, Outcome::Truncated, messages);
}

/// Prints one line for each old result that was replaced before the call.
pub(crate) fn cleared(tally: &Tally, decisions: &[Decision], messages: &[Message]) {
    for decision in decisions
        .iter()
        .filter(|decision| decision.outcome.is_change())
    {
        line(
            tally,
            "cleared",
            decision,
            tally.original(&decision.call_id),
        );
    }
    sample(tally, decisions, Outcome::Cleared, messages);
}

fn line(tally: &Tally, what: &str, decision: &Decision, original: Option<Original>) {
    let asked = original.map_or_else(
        || decision.tool.clone(),
        |original| in_short(&original.call, tally.store()),
    );
    let asked = cut(&asked, 38);
    let bytes = decision.bytes;
    let size = match decision.outcome.is_change() {
        true => format!(
            "{:>8} B -> {:>5} B",
            number(bytes.before),
            number(bytes.after)
        ),
        false => format!("{:>8} B", number(bytes.before)),
    };
    let place = decision.locations.first().map(Location::as_str);
    let place = place
        .map(|place| place.strip_prefix(tally.store()).unwrap_or(place))
        .unwrap_or_default();
    say!(
        "{}",
        format!("          {what:<10} {asked:<38} {size:<19}  {place}").trim_end()
    );
}

/// The tool and its arguments, on one line.
fn in_short(call: &ToolCall, store: &str) -> String {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let mut words = vec![call.name.clone()];
    words.extend(arguments["program"].as_str().map(str::to_owned));
    words.extend(
        arguments["args"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned),
    );
    words.extend(
        arguments["path"]
            .as_str()
            .map(|path| path.strip_prefix(store).unwrap_or(path).to_owned()),
    );
    words.extend(arguments["pattern"].as_str().map(str::to_owned));
    words.extend(
        arguments["offset"]
            .as_u64()
            .map(|line| format!("from line {line}")),
    );
    words.extend(
        arguments["offset"]
            .as_str()
            .map(|place| format!("from {place}")),
    );
    words.join(" ")
}

/// Prints the first hint of its kind, as the model sees it.
fn sample(tally: &Tally, decisions: &[Decision], outcome: Outcome, messages: &[Message]) {
    let Some(decision) = decisions
        .iter()
        .find(|decision| decision.outcome == outcome)
    else {
        return;
    };
    let Some(Message::Tool { content, .. }) =
        message_of(decision, messages).and_then(|at| messages.get(at))
    else {
        return;
    };
    let Some(text) = text_of(content).filter(|_| tally.is_first(outcome)) else {
        return;
    };
    say!(
        "          In place of {} the model is shown:",
        decision.call_id
    );
    let (header, preview) = text.split_once('\n').unwrap_or((text, ""));
    paragraph(header, "          | ");
    for line in preview.lines().take(4) {
        say!("          | {}", cut(line, WIDTH - 12));
    }
    let more = preview.lines().count().saturating_sub(4);
    if more > 0 {
        say!("          | ({more} more lines)");
    }
}

fn message_of(decision: &Decision, messages: &[Message]) -> Option<usize> {
    messages.iter().position(
        |message| matches!(message, Message::Tool { call_id, .. } if *call_id == decision.call_id),
    )
}

/// Prints the totals for a program, on one line.
pub(crate) fn totals(tally: &Tally, verdict: &Verdict) {
    let totals = tally.totals();
    let line = json!({
        "model_calls": totals.model_calls,
        "tokens_without": totals.tokens_without,
        "tokens_with": totals.tokens_with,
        "truncated": totals.truncated,
        "cleared": totals.cleared,
        "stored": verdict.stored,
        "verified": verdict.verified,
        "lost": verdict.lost(),
    });
    say!("{line}");
}

/// Prints the answer, its cost, and the verdict on the stored content.
pub(crate) fn summary(tally: &Tally, verdict: &Verdict, messages: &[Message]) {
    if let Some(Message::Assistant { content, .. }) = messages.last() {
        text_of(content)
            .unwrap_or_default()
            .lines()
            .for_each(|line| paragraph(line, "          "));
    }
    let totals = tally.totals();
    say!(
        "\nOver {} model calls the model was sent",
        totals.model_calls
    );
    say!(
        "  without offcut   {:>10} tokens",
        number(totals.tokens_without)
    );
    say!(
        "  with offcut      {:>10} tokens, {}",
        number(totals.tokens_with),
        saving(totals.tokens_without, totals.tokens_with)
    );
    say!(
        "{} results were truncated, {} cleared.",
        totals.truncated,
        totals.cleared
    );

    say!(
        "\nOf {} results, {} are in the conversation unchanged, and {} hints lead to the others.",
        verdict.results,
        verdict.in_place,
        verdict.behind_hint
    );
    let outcome = match (verdict.stored, verdict.lost()) {
        (0, 0) => "Nothing was long or old enough to be stored.".to_owned(),
        (stored, 0) => format!("Read back {stored} stored originals: all equal byte for byte."),
        (stored, lost) => {
            format!(
                "Read back {stored} stored originals: {} equal byte for byte. {lost} LOST:",
                verdict.verified
            )
        }
    };
    say!("{outcome}");
    for problem in &verdict.problems {
        say!("  {problem}");
    }
}

fn saving(without: u64, with: u64) -> String {
    let percent = |part: u64| (part * 100 + without / 2) / without.max(1);
    match without.checked_sub(with) {
        Some(saved) => format!("{} % less", percent(saved)),
        None => format!("{} % more", percent(with - without)),
    }
}

/// Formats `48120` as `48 120`.
fn number(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&[u8]> = digits.as_bytes().rchunks(3).rev().collect();
    groups
        .into_iter()
        .map(|group| String::from_utf8_lossy(group))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Cuts a text to `width` characters.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        text.to_owned()
    } else {
        text.chars().take(width - 1).chain(['…']).collect()
    }
}

/// Prints a text in lines of [`WIDTH`] columns, each after `margin`. Chinese takes two columns.
fn paragraph(text: &str, margin: &str) {
    let (mut line, mut columns) = (String::new(), 0);
    for char in text.chars() {
        columns += width(char);
        line.push(char);
        if columns > WIDTH - margin.len() {
            let begins_word = line
                .rfind(' ')
                .filter(|_| char != ' ')
                .map_or(line.len() - char.len_utf8(), |space| space + 1);
            let rest = line.split_off(begins_word);
            say!("{}", format!("{margin}{line}").trim_end());
            columns = rest.chars().map(width).sum();
            line = rest;
        }
    }
    say!("{}", format!("{margin}{line}").trim_end());
}

fn width(char: char) -> usize {
    if char < '\u{2e80}' { 1 } else { 2 }
}
