//! Lines that report failures. In a log or a test run they matter most, whatever names they
//! contain.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::{Matches, Regex};

use crate::units::{Unit, is_excerpt_of_file, own_text};

/// Extra worth of a line that reports a failure, for the first [`MAX_FAILURES`] distinct ones of a
/// text.
const FAILURE: f32 = 10.0;
const MAX_FAILURES: usize = 16;

/// Marks of such lines, as written by compilers, test runners and interpreters.
#[expect(clippy::expect_used, reason = "patterns that do not change")]
static SIGNS: LazyLock<[Regex; 2]> = LazyLock::new(|| {
    // Plain words are found fast, so most lines meet nothing else.
    let words = r"FAIL|ERROR|FATAL|error[:\[]|error TS|fatal:|Error:|Exception:|Traceback \(most|panicked at|assertion |not ok |✗|✘|✕|✖|×";
    let signs = r"(?-u:\b)(?:FAIL(?:ED|URES?)?|ERROR|FATAL)(?-u:\b)|error[:\[]|error TS[0-9]|fatal:|Error:|Exception:|Traceback \(most|panicked at|assertion |^[ \t]*(?:[✗✘✕✖×]|not ok) ";
    [words, signs].map(|pattern| Regex::new(pattern).expect("a pattern"))
});

/// Finds in `text`, of whatever length, the words of which every report of a failure has one.
pub(crate) fn words(text: &str) -> Matches<'static, '_> {
    SIGNS[0].find_iter(text)
}

/// Returns true if `line` reports a failure.
pub(crate) fn is_failure(line: &str) -> bool {
    SIGNS.iter().all(|pattern| pattern.is_match(line))
}

/// Extra worth of each unit for the failure that it reports. Code that could fail reports nothing.
pub(crate) fn failure_worth<'t>(units: &[Unit<'t>]) -> Vec<f32> {
    if is_excerpt_of_file(units) {
        return vec![0.0; units.len()];
    }
    let mut distinct = HashSet::new();
    let worth = |unit: &Unit<'t>| {
        let counts = distinct.len() < MAX_FAILURES
            && is_failure(unit.text)
            && distinct.insert(own_text(unit).trim());
        if counts { FAILURE } else { 0.0 }
    };
    units.iter().map(worth).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Place;

    #[test]
    fn failures_are_told_from_what_is_about_them() {
        for line in [
            "test a ... FAILED",
            "error[E0308]: mismatched types",
            "ValueError: no",
            "src/a.c:3: error: no",
            "src/a.ts(1,2): error TS2304: no",
            "  ✗ adds",
            "not ok 3 - adds",
        ] {
            assert!(is_failure(line), "{line}");
        }
        for line in [
            "fn error(&self) -> Error {",
            "throw new Error(\"no\")",
            "0 errors",
            "it failed to matter",
            "const MAX_FAILURES: usize = 8;",
            "2 × 3",
        ] {
            assert!(!is_failure(line), "{line}");
        }
    }

    #[test]
    fn a_repeated_failure_counts_once() {
        let lines = ["FAIL a", "ok", "FAIL a", "  FAIL a", "FAIL b"];
        let units = lines.iter().zip(1..).map(|(text, line)| Unit {
            text,
            place: Place {
                line,
                byte: 0,
                ends_line: true,
            },
        });
        let units: Vec<Unit<'_>> = units.collect();
        assert_eq!(failure_worth(&units), [FAILURE, 0.0, 0.0, 0.0, FAILURE]);
        let many: Vec<String> = (0..99).map(|n| format!("FAIL {n}")).collect();
        let units: Vec<Unit<'_>> = many.iter().map(|text| Unit { text, ..units[0] }).collect();
        let worth: f32 = failure_worth(&units).into_iter().sum();
        assert!((worth - FAILURE * MAX_FAILURES as f32).abs() < 0.01);
    }
}
