//! Lines that tell how something ended: exit codes, counts of what passed and failed, and the last
//! line.

use std::sync::LazyLock;

use regex::bytes::Regex;

use crate::units::{Unit, own_number};

/// Maximum number of lines of counts that come before all others.
const MAX_COUNTS: usize = 3;

struct Patterns {
    exit: Regex,
    counts: Regex,
}

#[expect(clippy::expect_used, reason = "patterns that do not change")]
static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| {
    let pattern = |pattern: &str| Regex::new(pattern).expect("a pattern");
    let counted = "tests?|pass(?:ed|es|ing)?|fail(?:ed|ing|ures?)?|errors?|warnings?|skipped|ignored|problems?|\
                   issues?|suites?|examples?|vulnerabilit(?:y|ies)|packages?|specs?|assertions?";
    Patterns {
        exit: pattern(
            r#"(?i-u)(?:exit|return|finish|terminat|complet)[a-z]*(?:[ _-]?(?:with|code|status))+["':=>]* ?-?[0-9]+"#,
        ),
        counts: pattern(&format!(
            "(?i-u)(?:^|[^0-9a-z.])[0-9]+ (?:[a-z_]+ )?(?:{counted})(?:[^a-z]|$)|(?:^|[^a-z])(?:{counted})[:=]? +[0-9]+(?:[^0-9]|$)"
        )),
    }
});

/// Indexes of the units that tell how the text ended, the most telling first: the last exit code,
/// then the last counts; in a text without both, the last line.
///
/// The last line of an excerpt of a file tells nothing about an end, so a line with a number of its
/// own is left out, and so is a piece of a long line.
pub(crate) fn ending(units: &[Unit<'_>]) -> Vec<usize> {
    let mut ending = Vec::with_capacity(MAX_COUNTS + 1);
    let backwards = || (0..units.len()).rev();
    ending.extend(backwards().find(|at| tells_exit(units[*at].text)));
    let mut before = "";
    let is_new = |at: &usize| std::mem::replace(&mut before, units[*at].text) != units[*at].text;
    let counts = backwards().filter(is_new);
    let counts = counts.filter(|at| tells_counts(units[*at].text));
    ending.extend(counts.take(MAX_COUNTS));
    if ending.is_empty() {
        let last = backwards().find(|at| !is_ruler(units[*at].text));
        ending.extend(last.filter(|at| {
            let unit = &units[*at];
            unit.place.byte == 0 && own_number(unit.text).is_none()
        }));
    }
    ending
}

/// Returns true if `line` tells an exit code.
pub(crate) fn tells_exit(line: &str) -> bool {
    has_digit(line) && PATTERNS.exit.is_match(line.as_bytes())
}

/// Returns true if `line` counts tests, errors or the like.
pub(crate) fn tells_counts(line: &str) -> bool {
    has_digit(line) && PATTERNS.counts.is_match(line.as_bytes())
}

/// A quick look, as most lines are no outcomes.
fn has_digit(line: &str) -> bool {
    line.bytes().any(|byte| byte.is_ascii_digit())
}

/// Returns true for an empty line, or one of marks only.
pub(crate) fn is_ruler(line: &str) -> bool {
    !line.contains(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Cutter;

    fn ends(text: &str) -> Vec<&str> {
        let mut places = Vec::new();
        let mut cutter = Cutter::new();
        let mut see = |unit: Unit<'_>| places.push(unit.place);
        cutter.push(text, &mut see);
        cutter.end(&mut see);
        let lines: Vec<&str> = text.split('\n').collect();
        let units: Vec<Unit<'_>> = places
            .into_iter()
            .map(|place| Unit {
                text: lines[place.line as usize - 1],
                place,
            })
            .collect();
        ending(&units)
            .into_iter()
            .map(|at| units[at].text)
            .collect()
    }

    #[test]
    fn exit_codes_and_counts_are_told_from_other_numbers() {
        for line in [
            "Process exited with code 1",
            "Exit code: 0",
            "exit status 2",
            r#"{"output":"","exit_code":137}"#,
            "<returncode>0</returncode>",
            "Command completed with code -9",
        ] {
            assert!(tells_exit(line), "{line}");
        }
        for line in [
            "let code = 1;",
            "HTTP status 404",
            "exit 7 on the left",
            "code 12",
        ] {
            assert!(!tells_exit(line), "{line}");
        }
        for line in [
            " 1216 pass",
            "Found 2 errors.",
            "test result: ok. 12 passed; 0 failed",
            "Tests:       1 failed, 3 passed",
            "errors: 7",
            "2 high severity, 31 packages looked at",
        ] {
            assert!(tells_counts(line), "{line}");
        }
        for line in [
            "all tests passed",
            "line 12 of the file",
            "v0.1.2 test",
            "error E0308",
        ] {
            assert!(!tells_counts(line), "{line}");
        }
    }

    #[test]
    fn an_ending_is_the_exit_code_and_the_last_counts() {
        let run = "$ bun test\n3 errors\n1 pass\n2 pass\n\n 12 pass\n 0 fail\n30 calls\nRan 12 tests\nexit code 0\n----\n";
        assert_eq!(
            ends(run),
            ["exit code 0", "Ran 12 tests", " 0 fail", " 12 pass"]
        );
    }

    #[test]
    fn without_codes_and_counts_the_last_line_is_the_ending() {
        assert_eq!(
            ends("Compiling x\nFinished in 2s\n=====\n\n"),
            ["Finished in 2s"]
        );
        assert_eq!(ends("  1→fn a() {\n  2→}\n  3→// end\n"), [""; 0]);
        assert_eq!(ends("-----\n"), [""; 0]);
    }
}
