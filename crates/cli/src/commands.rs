//! The commands, one file each.

#[cfg(feature = "serve")]
pub(crate) mod cache;
pub(crate) mod clear;
pub(crate) mod config;
#[cfg(unix)]
pub(crate) mod drain;
pub(crate) mod gain;
pub(crate) mod hook;
pub(crate) mod install;
#[cfg(unix)]
pub(crate) mod mcp;
pub(crate) mod read;
pub(crate) mod replay;
#[cfg(unix)]
pub(crate) mod run;
#[cfg(feature = "serve")]
pub(crate) mod serve;
pub(crate) mod shell_files;
pub(crate) mod state;
#[cfg(feature = "serve")]
pub(crate) mod status;
pub(crate) mod store;
pub(crate) mod sweep;
pub(crate) mod tidy;
#[cfg(unix)]
pub(crate) mod trial;
pub(crate) mod truncate;
#[cfg(all(feature = "serve", unix))]
pub(crate) mod wrap;

use std::path::Path;

use crate::failure::Failure;
use crate::input;

/// Reads a whole file, or stdin for `-`.
fn read_text(path: &Path) -> Result<String, Failure> {
    if path.as_os_str() == "-" {
        return read_stdin();
    }
    std::fs::read_to_string(path).map_err(|error| {
        Failure::usage(
            format!("{} can't be read: {error}", path.display()),
            "name an existing file, or - for stdin",
        )
    })
}

/// Returns the name of an input for errors.
fn name_of(path: &Path) -> String {
    if path.as_os_str() == "-" {
        "stdin".to_owned()
    } else {
        path.display().to_string()
    }
}

fn read_stdin() -> Result<String, Failure> {
    String::from_utf8(input::read_all()?).map_err(|error| {
        Failure::usage(
            format!("stdin can't be read: {error}"),
            "JSON must be UTF-8 text",
        )
    })
}
