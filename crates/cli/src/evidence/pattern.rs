//! Constant patterns.

use regex::Regex;

/// Compiles a constant pattern, which every test does too.
#[allow(
    clippy::expect_used,
    reason = "a constant pattern, compiled by every test"
)]
pub(crate) fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a regular expression")
}
