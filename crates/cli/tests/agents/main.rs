//! Offcut around the tools of coding agents: hooks and installation.

#![allow(
    clippy::expect_used,
    clippy::needless_pass_by_value,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test that can't be set up has failed, and says what it saw; JSON is written where it is used"
)]

mod codex;
mod gemini_cli;
mod hook;
mod install;
mod plain;
mod plugins;
mod support;
mod tenants;
