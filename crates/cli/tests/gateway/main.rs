//! The server between agents and their providers.
#![cfg(feature = "serve")]
#![allow(
    clippy::expect_used,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test that can't be set up has failed, and says what it saw"
)]

mod cache;
mod holdout;
mod hostile;
mod page;
mod plug;
mod reduce;
mod refusals;
mod stored;
mod support;
mod transparent;
