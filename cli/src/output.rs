//! What is written: results to stdout, everything else to stderr.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::failure::Failure;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default();

/// Writes to stdout.
pub(crate) fn write(text: &str) -> Result<(), Failure> {
    write_bytes(text.as_bytes())
}

/// Writes to stdout, as it is. Where nobody reads any more, that is an error: what was to be shown did not arrive.
pub(crate) fn write_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::new("stdout was closed before everything was written")
            .hint("nothing is lost: what was stored stays stored; run the command again"),
        _ => Failure::new(format!("stdout can't be written to: {error}")),
    })
}

/// Writes `value` to stdout as JSON with a line feed behind it.
pub(crate) fn write_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::new(format!("no JSON: {error}")))?;
    write(&(text + "\n"))
}

/// Says what went wrong. That stderr is closed is nothing to fail for.
pub(crate) fn report(failure: &Failure) {
    let mut err = anstream::stderr().lock();
    let _ = writeln!(err, "{ERROR}error:{ERROR:#} {failure}");
    if let Some(hint) = failure.what_to_do() {
        let _ = writeln!(err, "{HINT}hint:{HINT:#} {hint}");
    }
}

/// Says something beside the result.
pub(crate) fn note(text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{HINT}note:{HINT:#} {text}");
}

/// Says that something is not as it should be, though the command goes on.
pub(crate) fn warn(text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{WARNING}warning:{WARNING:#} {text}");
}

/// How far a long work is: one line that is written over and over, where stderr is a terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    what: &'static str,
    total: usize,
    is_shown: bool,
}

impl Progress {
    pub(crate) fn new(what: &'static str, total: usize) -> Self {
        Self { what, total, is_shown: io::IsTerminal::is_terminal(&io::stderr()) }
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
