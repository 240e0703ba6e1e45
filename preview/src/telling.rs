//! Lines of a buffer that report a failure or tell an outcome. Most lines of a log do neither, and are
//! done with in one search over all of them.

use std::iter::Peekable;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Matches, Regex};

use crate::failures::{self, is_failure};
use crate::outcomes::told;

/// Words of which every outcome has one, as they are mostly written.
#[expect(clippy::expect_used, reason = "a pattern that does not change")]
static OUTCOMES: LazyLock<Regex> = LazyLock::new(|| {
    let words = [
        "assertion",
        "complet",
        "error",
        "exampl",
        "exit",
        "fail",
        "finish",
        "ignored",
        "issue",
        "packag",
        "pass",
        "problem",
        "return",
        "running",
        "skip",
        "spec",
        "suite",
        "terminat",
        "test",
        "vulnerab",
        "warning",
    ];
    let forms = words.map(|word| {
        let (first, rest) = word.split_at(1);
        format!(
            "{word}|{}|{}{rest}",
            word.to_uppercase(),
            first.to_uppercase()
        )
    });
    Regex::new(&forms.join("|")).expect("a pattern")
});

/// Tells, line by line, which lines of a text report a failure or tell an outcome.
pub(crate) struct TellingLines<'t> {
    text: &'t str,
    failures: Words<'t>,
    outcomes: Words<'t>,
}

impl<'t> TellingLines<'t> {
    /// Looks at a text, with or without line feeds.
    pub(crate) fn new(text: &'t str) -> Self {
        Self {
            text,
            failures: Words(failures::words(text).peekable()),
            outcomes: Words(OUTCOMES.find_iter(text).peekable()),
        }
    }

    /// Returns true if the line there tells something. Lines must be asked for in text order.
    pub(crate) fn tells(&mut self, line: Range<usize>) -> bool {
        let (may_fail, may_tell) = (self.failures.are_in(&line), self.outcomes.are_in(&line));
        let line = &self.text[line];
        may_tell && told(line).any() || may_fail && is_failure(line)
    }
}

struct Words<'t>(Peekable<Matches<'static, 't>>);

impl Words<'_> {
    /// Returns true if one of the words is in `line`, or begins or ends there: what spans two lines
    /// may hide a word of the second.
    fn are_in(&mut self, line: &Range<usize>) -> bool {
        let mut are_in = false;
        while let Some(word) = self.0.peek()
            && word.start() < line.end
        {
            are_in |= word.end() > line.start;
            if word.end() > line.end {
                break;
            }
            self.0.next();
        }
        are_in
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{prop_assert_eq, proptest};
    use proptest::sample::select;

    use super::*;

    /// Failures, outcomes, and what such begin and end with.
    const PARTS: [&str; 40] = [
        "FAIL ",
        "ERROR",
        "FATAL",
        "error[",
        "error TS1",
        "fatal:",
        "Error:",
        "Exception:",
        "Traceback (most",
        "panicked at",
        "assertion ",
        "not ok ",
        "✗ ",
        "× ",
        "exit code 1",
        "Exited with code 0",
        "returncode: 2",
        "COMPLETED WITH STATUS 3",
        "Finished, status 4",
        "terminated with code 5",
        "running with session ID 6",
        " 12 tests",
        "3 Examples ",
        "assertions: 4",
        "5 new vulnerabilities",
        "issues 6",
        "7 packages",
        "8 passed",
        "9 FAILED ",
        "1 spec",
        "suites: 2",
        "warnings = 3",
        "2 skipped",
        "exi",
        "er",
        "spe",
        "tes",
        "E",
        "ERR",
        " ",
    ];

    proptest! {
        #[test]
        fn lines_are_told_together_as_they_are_alone(parts in vec(vec(select(&PARTS), 0..4), 0..9)) {
            let lines: Vec<String> = parts.into_iter().map(|parts| parts.concat()).collect();
            let text = lines.concat();
            let mut telling = TellingLines::new(&text);
            let mut start = 0;
            for line in lines {
                let range = start..start + line.len();
                start = range.end;
                let alone = told(&line).any() || is_failure(&line);
                prop_assert_eq!(telling.tells(range), alone, "{} of {}", line, &text);
            }
        }
    }
}
