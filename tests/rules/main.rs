//! The rules of docs/rules.md, case by case, and other tests of the library's behaviour. One program:
//! each costs a build.

// Helpers may unwrap, as tests may, and a skipped test must say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

#[path = "../common/mod.rs"]
mod common;
#[cfg(unix)]
#[path = "../common/mount.rs"]
mod mount;

mod agent;
mod backends;
mod clear;
mod config;
mod context;
mod counters;
mod errors;
mod formats;
mod handlers;
mod hints;
mod hostile;
mod moments;
mod options;
mod pinning;
mod previews;
mod read_back;
mod sessions;
mod settings_files;
mod spelled;
mod streams;
mod thresholds;
mod tokens;
mod truncate;
mod user_texts;
mod visits;
