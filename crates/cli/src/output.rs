//! Output: results go to stdout, everything else to stderr.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write};

use anstyle::{AnsiColor, Style};
use clap::Parser as _;
use offcut::backend::StoreUrl;
use serde::Serialize;
use serde_json::json;

use crate::args::Args;
use crate::failure::Failure;

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

/// Writes bytes to stdout unchanged. A closed reader is an error, because the output did not
/// arrive.
pub(crate) fn write_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = stdout();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::new("stdout was closed before everything was written")
            .hint("nothing is lost: stored content is kept; run the command again"),
        _ => Failure::new(format!("stdout can't be written to: {error}"))
            .hint("stored content is kept: free some space or name another file, and run the command again"),
    })
}

/// A stream of this program itself: the standard library ignores write errors if it is not open for
/// writing.
#[cfg(unix)]
pub(crate) struct Raw<S>(pub(crate) S);

#[cfg(unix)]
impl<S: std::os::fd::AsFd> Write for Raw<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(&self.0, bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(unix)]
fn stdout() -> impl Write {
    Raw(io::stdout())
}

#[cfg(not(unix))]
fn stdout() -> impl Write {
    io::stdout().lock()
}

/// Makes sure that a limit on file sizes is an error. Without a handler, it kills the program silently.
#[cfg(unix)]
pub(crate) fn get_ready() {
    let is_met = std::sync::Arc::default();
    if let Err(error) = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, is_met) {
        warn(&format!(
            "the signal for files over their size limit can't be caught: {error}"
        ));
    }
}

/// Writes `value` to stdout as JSON, followed by a line feed.
pub(crate) fn write_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::new(format!("the output can't be written as JSON: {error}")))?;
    write(&(text + "\n"))
}

/// Reports a failure. A closed stderr is not an error.
pub(crate) fn report(failure: &Failure) {
    let mut err = anstream::stderr().lock();
    if wants_json() {
        let hint = failure.what_to_do().map(shown);
        let _ = writeln!(
            err,
            "{}",
            json!({"error": shown(&failure.to_string()), "hint": hint, "code": failure.code()})
        );
        return;
    }
    let _ = writeln!(
        err,
        "{ERROR}error:{ERROR:#} {}",
        shown(&failure.to_string())
    );
    if let Some(hint) = failure.what_to_do() {
        let _ = writeln!(err, "{HINT}hint:{HINT:#} {}", shown(hint));
    }
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
fn shown(text: &str) -> Cow<'_, str> {
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
    let _ = writeln!(
        anstream::stderr().lock(),
        "{HINT}note:{HINT:#} {}",
        shown(text)
    );
}

/// Shows an untrusted name on one line, without control characters.
pub(crate) fn visible(name: &str) -> String {
    name.chars()
        .flat_map(|c| {
            if is_hidden(c) {
                c.escape_debug().collect()
            } else {
                vec![c]
            }
        })
        .collect()
}

/// Makes a text safe for a terminal: line feeds and tabs stay, other control characters are
/// escaped.
fn visible_text(text: &str) -> String {
    let show = |c: char| {
        if is_hidden(c) && !matches!(c, '\n' | '\t') {
            c.escape_debug().collect()
        } else {
            vec![c]
        }
    };
    text.chars().flat_map(show).collect()
}

/// Returns true if a terminal may obey `c` instead of showing it, or if `c` changes the order of
/// the text.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
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

/// Warns about a problem that does not stop the command.
pub(crate) fn warn(text: &str) {
    let _ = writeln!(
        anstream::stderr().lock(),
        "{WARNING}warning:{WARNING:#} {}",
        shown(text)
    );
}

/// A table in columns that are as wide as they have to be, the first `left` of them aligned to the left. Cells are
/// shown on one line, without what is too long.
pub(crate) fn table<const COLUMNS: usize>(
    left: usize,
    head: [&str; COLUMNS],
    rows: impl Iterator<Item = [String; COLUMNS]>,
) -> String {
    const MAX_CELL: usize = 40;
    let short = |cell: String| visible(&cell).chars().take(MAX_CELL).collect::<String>();
    let rows: Vec<_> = std::iter::once(head.map(str::to_owned))
        .chain(rows)
        .map(|row| row.map(short))
        .collect();
    let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    });
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            line += &match column < left {
                true => format!("{cell:width$}  "),
                false => format!("{cell:>width$}  "),
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Progress of long work: one line on stderr that is overwritten, if stderr is a terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    what: &'static str,
    total: usize,
    is_shown: bool,
}

impl Progress {
    pub(crate) fn new(what: &'static str, total: usize) -> Self {
        Self {
            what,
            total,
            is_shown: io::IsTerminal::is_terminal(&io::stderr()),
        }
    }

    pub(crate) fn at(&self, done: usize) {
        if self.is_shown {
            let end = if done == self.total { "\n" } else { "" };
            let mut err = anstream::stderr().lock();
            let _ = write!(err, "\r{} {done}/{}{end}", self.what, self.total);
            let _ = err.flush();
        }
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

    #[test]
    fn h3_a_terminal_gets_no_control_characters() {
        let text = "a\tb\r\n\u{1b}[2J\u{7}\u{9b}31m\u{202e}é字\n";
        assert_eq!(
            visible_text(text),
            "a\tb\\r\n\\u{1b}[2J\\u{7}\\u{9b}31m\\u{202e}é字\n"
        );
        assert_eq!(visible("grep\n\u{1b}[31m"), "grep\\n\\u{1b}[31m");
    }
}
