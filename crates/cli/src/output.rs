//! Output: results go to stdout, everything else to stderr.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write};

use anstyle::{AnsiColor, Style};
use clap::Parser as _;
use offcut::Report;
use offcut::backend::StoreUrl;
use serde::Serialize;
use serde_json::json;

use crate::args::Args;
use crate::failure::{FAILED, Failure, OrFail as _};
pub(crate) use crate::visible::visible;
use crate::visible::visible_text;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default();

/// Writes to stdout.
pub(crate) fn write(text: &str) -> Result<(), Failure> {
    write_bytes(text.as_bytes())
}

/// Writes to stdout, in colour if it is shown.
pub(crate) fn write_styled(text: &clap::builder::StyledStr) -> Result<(), Failure> {
    match anstream::AutoStream::choice(&io::stdout()) {
        anstream::ColorChoice::Never => write(&text.to_string()),
        _ => write(&text.ansi().to_string()),
    }
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
/// ends without a word.
pub(crate) fn write_bytes(bytes: &[u8]) -> Result<(), Failure> {
    write_out(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => std::process::exit(i32::from(FAILED)),
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
        "stored content is kept: free some space or name another file, and run the command again",
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
    if wants_json() {
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
    if wants_json() {
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

/// Returns true if errors should be JSON too.
fn wants_json() -> bool {
    is_json_asked_for(&std::env::args_os().collect::<Vec<_>>())
}

/// Returns true if `--json` is among the arguments of this program, and not among those of a command
/// that it runs. Arguments that can't be parsed count up to `--`.
fn is_json_asked_for(arguments: &[OsString]) -> bool {
    Args::try_parse_from(arguments).map_or_else(
        |_| {
            let mut own = arguments.iter().take_while(|argument| *argument != "--");
            own.any(|argument| argument == "--json")
        },
        |args| args.json,
    )
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
    say(HINT, "note", text);
}

/// Writes stored text to stdout. A file or pipe gets it byte for byte, since an added byte would
/// change the page; a terminal gets it escaped and followed by a line feed.
pub(crate) fn write_stored(text: &str) -> Result<(), Failure> {
    if io::stdout().is_terminal() {
        write(&(visible_text(text) + "\n"))
    } else {
        write(text)
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
    say(WARNING, "warning", text);
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
    let mut text = String::new();
    for row in all {
        let cells = row.into_iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, &width))| match column < left {
            true => format!("{cell:width$}"),
            false => format!("{cell:>width$}"),
        });
        let line = cells.collect::<Vec<String>>().join("  ");
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Shows how much of long work is done: one line on stderr that is overwritten, if stderr is a terminal.
pub(crate) fn progress(what: &str, done: usize, total: usize) {
    if io::stderr().is_terminal() {
        let end = if done == total { "\n" } else { "" };
        let mut err = anstream::stderr().lock();
        _ = write!(err, "\r{what} {done}/{total}{end}").and_then(|()| err.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn json_errors_are_not_asked_for_by_a_wrapped_command() {
        let cases = [
            ("run -- cargo build --json", false),
            ("run cargo build --json", false),
            ("run --tool -- cargo build --json", false),
            ("--json run -- cargo build", true),
            ("run --json -- cargo build", true),
            ("gain --json", true),
            ("gain --nonsense --json", true),
            ("mcp -- server --json", false),
        ];
        for (line, expected) in cases {
            let arguments: Vec<_> = format!("offcut {line}")
                .split(' ')
                .map(OsString::from)
                .collect();
            assert_eq!(is_json_asked_for(&arguments), expected, "{line}");
        }
    }
}
