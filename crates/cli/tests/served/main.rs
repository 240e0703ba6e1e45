//! `offcut serve` as a process: killed under load, restarted, in two versions, over stores that break, before
//! a provider whose cache breaks, and searched for secrets.

#![cfg(all(unix, feature = "serve"))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::print_stdout,
    unreachable_pub,
    reason = "a test that can't be set up has failed, and figures are shown"
)]

mod breaks;
mod conversations;
#[path = "../../../../tests/trace_formats/convert.rs"]
mod convert;
mod http;
mod killed;
mod many;
mod planted;
#[cfg(feature = "s3")]
#[allow(dead_code, reason = "the tests of the store use the rest")]
#[path = "../../../../backends/object-store/tests/server/mod.rs"]
mod s3;
#[path = "../support/server.rs"]
mod server;
#[cfg(feature = "s3")]
mod stores;
mod traces;
mod versions;
