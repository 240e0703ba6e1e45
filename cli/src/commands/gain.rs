//! `offcut gain`.

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use offcut_agents::gain::{Gain, Gains};
use offcut_agents::journal;
use offcut_agents::layout::Home;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::{args, output};

/// Bytes of a token, for figures that nobody is billed by: tool output of coding agents has three to four.
const BYTES_PER_TOKEN: i64 = 4;

/// Adds the journal of the hooks up.
pub(crate) fn run(args: &args::Gain, json: bool) -> Result<ExitCode, Failure> {
    let home = Home::from_env().ok_or_else(|| {
        Failure::usage(
            "there is no home directory",
            "set OFFCUT_HOME to the directory that the hooks use",
        )
    })?;
    let path = home.journal();
    let mut entries = journal::read(&path)
        .map_err(|error| Failure::new(format!("{} can't be read: {error}", path.display())))?;
    if let Some(age) = args.since {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let since = now.saturating_sub(age).as_secs();
        entries.retain(|entry| entry.time >= since);
    }
    let gains = Gains::of(&entries);
    if json {
        output::write_json(&as_json(&gains))?;
    } else if gains.total.results == 0 {
        output::write(&format!("{} has no results yet\n", path.display()))?;
        output::note("`offcut doctor AGENT` tells whether the hook works");
    } else {
        output::write(&as_text(&gains))?;
    }
    Ok(ExitCode::SUCCESS)
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

fn as_text(gains: &Gains) -> String {
    let total = &gains.total;
    let mut text = format!(
        "In {}, {} of {} were shortened, and {} read back.\n\
         The model was shown {} bytes in place of {}: {} less, about {} tokens.\n",
        count(gains.sessions, "session"),
        total.shortened,
        count(total.results, "result"),
        count(total.reads, "stored result"),
        number(total.after.cast_signed()),
        number(total.before.cast_signed()),
        number(total.saved()),
        number(total.saved() / BYTES_PER_TOKEN),
    );
    let counted = total.shortened + total.reads;
    let note = match counted - total.known {
        0 => String::new(),
        unknown => format!(
            " ({unknown} of {counted} are counted for one call, since their agent's log does not say more)"
        ),
    };
    text += &format!(
        "Over the model calls that followed: {} bytes less, about {} input tokens{note}.\n\n",
        number(total.over_calls),
        number(total.over_calls / BYTES_PER_TOKEN),
    );
    text += &format!(
        "{:34} {:>8} {:>9} {:>6} {:>13} {:>13}\n",
        "tool", "results", "shortened", "reads", "bytes before", "bytes after"
    );
    for ((agent, tool), gain) in &gains.tools {
        let name = output::visible(&format!("{agent} {tool}"))
            .chars()
            .take(34)
            .collect::<String>();
        text += &format!(
            "{name:34} {:>8} {:>9} {:>6} {:>13} {:>13}\n",
            gain.results,
            gain.shortened,
            gain.reads,
            number(gain.before.cast_signed()),
            number(gain.after.cast_signed()),
        );
    }
    text + "\nHints and reads are counted in. A token is taken as four bytes.\n"
}

fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// A number with gaps between groups of three digits.
fn number(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    if number < 0 { format!("-{text}") } else { text }
}
