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

#[path = "real_agents/claude_code.rs"]
mod claude_code;
#[path = "real_agents/model.rs"]
mod model;
#[path = "real_agents/script.rs"]
mod script;
#[path = "real_agents/session.rs"]
mod session;
mod support;
