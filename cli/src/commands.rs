//! The commands, one file each.

pub(crate) mod clear;
pub(crate) mod config;
pub(crate) mod read;
pub(crate) mod replay;
pub(crate) mod state;
pub(crate) mod store;
pub(crate) mod sweep;
pub(crate) mod truncate;

use std::path::Path;

use offcut::Report;

use crate::failure::Failure;
use crate::{input, output};

/// All of a file, or of stdin for `-`.
fn read_text(path: &Path) -> Result<String, Failure> {
    if path.as_os_str() == "-" {
        return read_stdin();
    }
    std::fs::read_to_string(path).map_err(|error| {
        Failure::usage(
            format!("{} can't be read: {error}", path.display()),
            "name a file that is there, or - for stdin",
        )
    })
}

/// What an input is called in errors.
fn name_of(path: &Path) -> String {
    if path.as_os_str() == "-" { "stdin".to_owned() } else { path.display().to_string() }
}

fn read_stdin() -> Result<String, Failure> {
    String::from_utf8(input::read_all()?)
        .map_err(|error| Failure::usage(format!("stdin can't be read: {error}"), "JSON is text in UTF-8"))
}

/// Says of each result that could not be stored that it was not.
fn note_failures(report: &Report) {
    for decision in &report.decisions {
        if let Some(error) = &decision.error {
            output::warn(&format!("the result of {} was not stored: {error}", decision.tool));
        }
    }
}
