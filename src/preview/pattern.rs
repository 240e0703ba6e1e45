//! Patterns that do not change.

use regex::Regex;

/// Compiles a pattern of ours. Tests use each, so a wrong one is found.
#[expect(clippy::expect_used, reason = "a pattern that does not change")]
pub(crate) fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern")
}
