//! Output: results go to stdout, everything else to stderr.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write};
use std::sync::OnceLock;
use std::time::Instant;

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use clap::ColorChoice;
use offcut::Report;
use offcut::backend::StoreUrl;
use serde::Serialize;
use serde_json::json;

use crate::failure::{Failure, OrFail as _};
use crate::manner::Manner;
use crate::units;
use crate::visible::visible_text;
pub(crate) use crate::visible::{quoted, visible};

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default();
/// Clears the line of a terminal.
const CLEAR: &str = "\r\u{1b}[K";
const HEAD: Style = Style::new().bold();

static MANNER: OnceLock<Manner> = OnceLock::new();

/// Has everything from now on written as the arguments ask for.
pub(crate) fn speak(manner: Manner) {
    match manner.color {
        ColorChoice::Always => anstream::ColorChoice::Always.write_global(),
        ColorChoice::Never => anstream::ColorChoice::Never.write_global(),
        ColorChoice::Auto => {}
    }
    // Nobody has set it before.
    _ = MANNER.set(manner);
}

fn manner() -> Manner {
    MANNER.get().copied().unwrap_or_default()
}

/// Returns true if only results and errors are wanted.
pub(crate) fn is_quiet() -> bool {
    manner().quiet
}

/// The manner that arguments up to `--` ask for, also if they can't be parsed.
pub(crate) fn guessed(words: impl Iterator<Item = OsString>) -> Manner {
    let own = words.take_while(|word| word != "--");
    let own: Vec<String> = own
        .map(|word| word.to_string_lossy().replace('=', " "))
        .collect();
    let line = own.join(" ");
    let mut words = line.split(' ').skip_while(|word| *word != "--color");
    let color = words.nth(1);
    Manner {
        json: line.split(' ').any(|word| word == "--json"),
        color: color.and_then(|when| when.parse().ok()).unwrap_or_default(),
        ..Manner::default()
    }
}

/// Writes to stdout.
pub(crate) fn write(text: &str) -> Result<(), Failure> {
    write_bytes(text.as_bytes())
}

/// Writes to stdout, in colour if it is shown.
pub(crate) fn write_styled(text: &clap::builder::StyledStr) -> Result<(), Failure> {
    match is_coloured() {
        true => write(&text.ansi().to_string()),
        false => write(&text.to_string()),
    }
}

fn is_coloured() -> bool {
    AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never
}

/// Writes a server's address to stdout. That nobody takes it is an error.
#[cfg(feature = "serve")]
pub(crate) fn announce(address: &str) -> Result<(), Failure> {
    write_out(address.as_bytes()).map_err(|error| {
        Failure::new(format!("stdout can't be written to: {error}"))
            .hint("redirect it to a file or to /dev/null")
    })
}

/// Writes bytes to stdout unchanged. A reader that has closed it, such as `head`, has what it wants: the program
/// ends without a word, with the exit code 0, as ripgrep does.
pub(crate) fn write_bytes(bytes: &[u8]) -> Result<(), Failure> {
    write_out(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => std::process::exit(0),
        _ => unwritable("stdout", &error),
    })
}

fn write_out(bytes: &[u8]) -> io::Result<()> {
    #[cfg(unix)]
    let mut stdout = file(io::stdout())?;
    #[cfg(not(unix))]
    let mut stdout = io::stdout();
    stdout.write_all(bytes).and_then(|()| stdout.flush())
}

/// The failure of a stream that can't be written to.
pub(crate) fn unwritable(stream: &str, error: &io::Error) -> Failure {
    Failure::new(format!("{stream} can't be written to: {error}")).hint(
        "free some space or name another file, and run the command again; what was stored is kept",
    )
}

/// A stream of this program as a file: the standard library ignores errors if it is not open for writing.
#[cfg(unix)]
pub(crate) fn file(stream: impl std::os::fd::AsFd) -> io::Result<std::fs::File> {
    Ok(stream.as_fd().try_clone_to_owned()?.into())
}

/// Writes `value` to stdout as JSON, followed by a line feed.
pub(crate) fn write_json(value: &impl Serialize) -> Result<(), Failure> {
    let text =
        serde_json::to_string_pretty(value).or_fail("the output can't be written as JSON")?;
    write(&(text + "\n"))
}

/// Reports a failure. A closed stderr is not an error.
pub(crate) fn report(failure: &Failure) {
    let (error, hint) = (failure.to_string(), failure.what_to_do());
    if manner().json {
        let (error, hint) = (shown(&error), hint.map(shown));
        let failure = json!({"error": error, "hint": hint, "code": failure.code()});
        _ = writeln!(io::stderr(), "{failure}");
        return;
    }
    say(ERROR, "error", &error);
    if let Some(hint) = hint {
        say(HINT, "hint", hint);
    }
}

/// Prints a line to stderr.
fn say(style: Style, kind: &str, text: &str) {
    let text = shown(text);
    _ = writeln!(anstream::stderr().lock(), "{style}{kind}:{style:#} {text}");
}

/// Reports wrong arguments. A closed stderr is not an error.
pub(crate) fn usage(error: &clap::Error) {
    if manner().json {
        let text = error.render().to_string();
        let text = text.trim_start_matches("error: ").trim_end();
        return report(&Failure::usage(
            text,
            "`offcut --help` lists all commands and options",
        ));
    }
    let text = error.render().ansi().to_string();
    let _ = write!(anstream::stderr().lock(), "{}", shown(&text));
}

/// Replaces each argument of this program in `text` by what [`StoreUrl`] shows of it. Errors repeat
/// arguments, and a store's URL may be given in the wrong place.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    for argument in std::env::args_os().skip(1) {
        let argument = argument.to_string_lossy();
        // The text after the first `=` is an option's value, or a policy's file.
        let value = argument.split_once('=').map(|(_, value)| value);
        for written in value.into_iter().chain([&*argument]) {
            let shown = StoreUrl::from(written).to_string();
            if shown == written {
                continue;
            }
            for written in [written.to_owned(), written.escape_debug().to_string()] {
                if text.contains(&written) {
                    text = Cow::Owned(text.replace(&written, &shown));
                }
            }
        }
    }
    text
}

/// Prints a note to stderr, not as part of the result.
pub(crate) fn note(text: &str) {
    if !manner().quiet {
        say(HINT, "note", text);
    }
}

/// Says what is read, if that is asked for.
pub(crate) fn detail(text: &str) {
    if manner().verbose {
        say(HINT, "read", &visible(text));
    }
}

/// Writes stored text to stdout. A file or pipe gets it byte for byte, since an added byte would
/// change the page; a terminal gets it escaped, and its last line ended.
pub(crate) fn write_stored(text: &str) -> Result<(), Failure> {
    match io::stdout().is_terminal() {
        true => write(&format!("{}\n", visible_text(text.trim_end_matches('\n')))),
        false => write(text),
    }
}

/// Writes stored bytes that are not text to stdout, which must not be a terminal.
pub(crate) fn write_media(bytes: &[u8]) -> Result<(), Failure> {
    if io::stdout().is_terminal() {
        return Err(Failure::usage(
            "the content is not text, and stdout is a terminal",
            "redirect it to a file: offcut read … > FILE",
        ));
    }
    write_bytes(bytes)
}

/// Reports what became of each result that could not be treated as it should.
pub(crate) fn note_failures(report: &Report) {
    for decision in &report.decisions {
        if let Some(error) = &decision.error {
            let tool = visible(&decision.tool);
            let became = match decision.locations.first() {
                None => "was not stored",
                Some(_) => "is stored, but something failed",
            };
            warn(&format!("the result of {tool} {became}: {error}"));
        }
    }
    for problem in [&report.records_error, &report.notice]
        .into_iter()
        .flatten()
    {
        warn(problem);
    }
}

/// Warns about a problem that does not stop the command.
pub(crate) fn warn(text: &str) {
    if !manner().quiet {
        say(WARNING, "warning", text);
    }
}

/// A table in columns that are as wide as they have to be, the first `left` of them aligned to the left. Bars separate
/// the titles in `head`. Cells are shown on one line, without what is too long.
pub(crate) fn table<const COLUMNS: usize>(
    left: usize,
    head: &str,
    rows: impl Iterator<Item = [String; COLUMNS]>,
) -> String {
    const MAX_CELL: usize = 40;
    let short = |cell: String| visible(&cell).chars().take(MAX_CELL).collect();
    let head = head.split('|').map(str::to_owned).collect();
    let mut all: Vec<Vec<String>> = vec![head];
    all.extend(rows.map(|row| row.map(short).to_vec()));
    let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..COLUMNS).filter_map(width).collect();
    let style = if is_coloured() { HEAD } else { Style::new() };
    let mut text = String::new();
    for (at, row) in all.into_iter().enumerate() {
        let cells = row.into_iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, &width))| match column < left {
            true => format!("{cell:width$}"),
            false => format!("{cell:>width$}"),
        });
        let line = cells.collect::<Vec<String>>().join("  ");
        text += &match at {
            0 => format!("{style}{}{style:#}\n", line.trim_end()),
            _ => format!("{}\n", line.trim_end()),
        };
    }
    text
}

/// Long work, of which one line on stderr shows how much is done, if stderr is a terminal and has no other lines.
pub(crate) struct Progress {
    what: &'static str,
    start: Instant,
    is_shown: bool,
}

impl Progress {
    pub(crate) fn new(what: &'static str) -> Self {
        Self {
            what,
            start: Instant::now(),
            is_shown: io::stderr().is_terminal() && !manner().quiet && !manner().verbose,
        }
    }

    /// Shows that `done` of `total` are, and from the `share` of the work in them the time that is left.
    pub(crate) fn show(&self, done: usize, total: usize, share: f64) {
        if !self.is_shown {
            return;
        }
        let spent = self.start.elapsed().as_secs_f64();
        let left = (spent / share.max(f64::EPSILON) * (1.0 - share)) as u64;
        let left = match share > 0.0 && done < total {
            true => format!(", {} left", units::span(left)),
            false => String::new(),
        };
        let mut err = anstream::stderr().lock();
        let line = format!("{CLEAR}{} {done}/{total}{left}", self.what);
        _ = err.write_all(line.as_bytes()).and_then(|()| err.flush());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            _ = write!(anstream::stderr().lock(), "{CLEAR}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_cannot_be_parsed_still_say_how_to_speak() {
        let (always, never) = (ColorChoice::Always, ColorChoice::Never);
        for (line, json, color) in [
            ("gain --nonsense --json", true, ColorChoice::Auto),
            ("--color never --help", false, never),
            ("serve --color=always --json -x", true, always),
            (
                "run --x -- build --json --color=always",
                false,
                ColorChoice::Auto,
            ),
        ] {
            let guessed = guessed(line.split(' ').map(OsString::from));
            assert_eq!((guessed.json, guessed.color), (json, color), "{line}");
        }
    }
}
