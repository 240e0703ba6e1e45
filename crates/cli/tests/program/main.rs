//! The program `offcut`, as its users run it.
#![allow(
    clippy::expect_used,
    clippy::needless_pass_by_value,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    dead_code,
    unreachable_pub,
    reason = "a test that can't be set up has failed, and says what it saw; JSON is written where it is used; helpers are shared"
)]

#[path = "../support/browser.rs"]
mod chromium;
#[cfg(unix)]
#[path = "../../../../tests/common/mount.rs"]
mod mount;
#[cfg(all(feature = "serve", unix))]
#[path = "../support/serving.rs"]
mod serving;
#[path = "../support/mod.rs"]
mod support;

mod browser;
mod commands;
mod gain;
mod hook;
mod install;
mod live_page;
mod mcp;
mod mcp_listen;
mod pipes;
mod replay;
mod requests;
mod run;
mod secrets;
mod sessions;
mod settings;
mod status;
mod surface;
mod sweep;
mod tidy;
mod trial;
