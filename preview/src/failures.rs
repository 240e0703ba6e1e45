//! Lines that report failures. In a log or a test run they matter most, whatever names they
//! contain.

use std::sync::LazyLock;

use regex::Regex;

/// Extra worth of a line that reports a failure, for the first [`MAX_FAILURES`] such lines of a
/// text.
pub(crate) const FAILURE: f32 = 12.0;
pub(crate) const MAX_FAILURES: usize = 8;

/// Marks of such lines, as written by compilers, test runners and interpreters.
#[expect(clippy::expect_used, reason = "a pattern that does not change")]
static SIGNS: LazyLock<Regex> = LazyLock::new(|| {
    let signs = r"FAIL|ERROR|FATAL|error[:\[]|fatal:|Error:|Exception:|Traceback \(most|panicked at|assertion ";
    Regex::new(signs).expect("a pattern")
});

/// Returns true if `line` reports a failure.
pub(crate) fn is_failure(line: &str) -> bool {
    SIGNS.is_match(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_from_what_is_about_them() {
        for line in [
            "test a ... FAILED",
            "error[E0308]: mismatched types",
            "ValueError: no",
            "src/a.c:3: error: no",
        ] {
            assert!(is_failure(line), "{line}");
        }
        for line in [
            "fn error(&self) -> Error {",
            "throw new Error(\"no\")",
            "0 errors",
            "it failed to matter",
        ] {
            assert!(!is_failure(line), "{line}");
        }
    }
}
