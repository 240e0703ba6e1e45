//! Real coding agents from npm, in sessions with a scripted model on loopback, with and without
//! Offcut. No key and no network are needed. `scripts/agents` installs the agents into `target/agents`; OFFCUT_AGENTS
//! names another folder.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    unreachable_pub,
    dead_code,
    reason = "a test that can't be set up has failed, and figures are shown"
)]

mod claude_code;
mod codex;
mod compare;
mod gemini_cli;
mod model;
mod opencode;
mod permissions;
mod pi;
mod protocol;
mod resumed;
mod script;
mod session;
#[path = "../support/mod.rs"]
mod support;
