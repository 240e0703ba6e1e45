//! `offcut gain`.

use std::path::Path;
use std::process::ExitCode;

use serde_json::json;

use crate::agents::gain::{Gain, Gains};
use crate::agents::journal;
use crate::agents::layout::Home;
use crate::failure::{Failure, OrFail as _};
use crate::units::{self, BYTES_PER_TOKEN, count, grouped};
use crate::{args, output};

/// Adds the journals of hooks and servers up.
pub(crate) fn run(args: &args::Gain, json: bool) -> Result<ExitCode, Failure> {
    let home = Home::required()?;
    let since = args
        .since
        .map_or(0, |age| units::now().saturating_sub(age.as_secs()));
    let hooks = sums(&home.journal(), since)?;
    let served = sums(&home.served(), since)?;
    if json {
        output::write_json(&json!({"hooks": hooks, "served": served}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let both = [(&hooks, of_hooks(&hooks)), (&served, of_servers(&served))];
    let parts = both.into_iter().filter(|(gains, _)| gains.total.count > 0);
    let parts: Vec<_> = parts.map(|(_, text)| text).collect();
    if parts.is_empty() {
        let path = home.path().display();
        output::write(&match args.since {
            None => format!("{path} has no journals yet\n"),
            Some(_) => format!("the journals in {path} have nothing that recent\n"),
        })?;
        output::note(
            "`offcut doctor AGENT` tells whether a hook works, and `offcut status` whether a server runs",
        );
    } else {
        output::write(&parts.join("\n"))?;
        output::write("\nA token is taken as four bytes.\n")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The sums of a journal, without rows that are older than `since`.
fn sums(path: &Path, since: u64) -> Result<Gains, Failure> {
    let mut rows = journal::read(path).or_fail(format_args!("{} can't be read", path.display()))?;
    rows.retain(|row| row.time >= since);
    Ok(Gains::of(&rows))
}

fn of_hooks(gains: &Gains) -> String {
    let total = &gains.total;
    let text = format!(
        "In {}, {} of {} became shorter, and {} read back.\n\
         The model was shown {}. Hints and reads are counted in.\n",
        count(gains.sessions, "session"),
        total.shortened,
        count(total.count, "result"),
        count(total.reads, "stored result"),
        in_place(total),
    );
    text + &table("tool|results|shortened|reads", gains, |gain| {
        [gain.count, gain.shortened, gain.reads]
    })
}

fn of_servers(gains: &Gains) -> String {
    let total = &gains.total;
    let text = format!(
        "Through servers, in {}, {} of {} went on shorter, with {} replaced.\n\
         They had {}.\n",
        count(gains.sessions, "conversation"),
        total.shortened,
        count(total.count, "request"),
        count(total.replaced, "result"),
        in_place(total),
    );
    let head = "upstream, model, client|requests|shortened|cut";
    text + &table(head, gains, |gain| {
        [gain.count, gain.shortened, gain.replaced]
    })
}

/// The bytes of a sum in words; if nothing was saved, more was spent.
fn in_place(total: &Gain) -> String {
    let saved = total.saved();
    format!(
        "{} bytes in place of {}: {} {}, about {} tokens",
        grouped(total.bytes_after.cast_signed()),
        grouped(total.bytes_before.cast_signed()),
        grouped(saved.saturating_abs()),
        if saved < 0 { "more" } else { "less" },
        grouped((saved / BYTES_PER_TOKEN).abs()),
    )
}

/// A table with a row for each name: three counts, and bytes before and after.
fn table(head: &str, gains: &Gains, counts: impl Fn(&Gain) -> [u64; 3]) -> String {
    let head = format!("{head}|bytes before|bytes after");
    let rows = gains.rows.iter().map(|row| {
        let name = format!("{} {} {}", row.by, row.what, row.client);
        let [one, two, three] = counts(&row.gain).map(|count| count.to_string());
        let [before, after] =
            [row.gain.bytes_before, row.gain.bytes_after].map(|bytes| grouped(bytes.cast_signed()));
        [name.trim_end().to_owned(), one, two, three, before, after]
    });
    format!("\n{}", output::table(1, &head, rows))
}
