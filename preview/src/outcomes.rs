//! Lines that tell how something ended: exit codes, counts of what passed and failed, and the last
//! line.

use crate::units::{Unit, own_number};

/// Maximum number of lines of counts that come before all others.
const MAX_COUNTS: usize = 3;

/// Words that are counted after or before a number: `12 tests`, `12 new tests`, `failed: 3`.
const COUNTED: [&str; 34] = [
    "test",
    "tests",
    "pass",
    "passed",
    "passes",
    "passing",
    "fail",
    "failed",
    "failing",
    "failure",
    "failures",
    "error",
    "errors",
    "warning",
    "warnings",
    "skip",
    "skipped",
    "ignored",
    "problem",
    "problems",
    "issue",
    "issues",
    "suite",
    "suites",
    "example",
    "examples",
    "vulnerability",
    "vulnerabilities",
    "package",
    "packages",
    "spec",
    "specs",
    "assertion",
    "assertions",
];

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

/// Returns true if `line` tells an exit code: a number after `exit code`, `returncode`, `finished with
/// status` and the like.
pub(crate) fn tells_exit(line: &str) -> bool {
    each_number(line, |before, _| {
        if before.last().is_none_or(u8::is_ascii_alphanumeric) {
            return false;
        }
        let before = before.strip_suffix(b"-").unwrap_or(before);
        let before = before.strip_suffix(b" ").unwrap_or(before);
        let marks = |byte: u8| matches!(byte, b':' | b'=' | b'>' | b'"' | b'\'');
        let before = trim_end(before, marks);
        // The last letter of `code` or `status`.
        if !matches!(before.last(), Some(b'e' | b'E' | b's' | b'S')) {
            return false;
        }
        let said = trim_end(before, |byte| byte.is_ascii_alphabetic() || byte == b'_');
        let said = &before[said.len()..];
        let has_end = |words: &[&str], text: &[u8]| {
            words.iter().any(|word| {
                let end = text.len().checked_sub(word.len());
                end.is_some_and(|end| text[end..].eq_ignore_ascii_case(word.as_bytes()))
            })
        };
        if !has_end(&["code", "status"], said) {
            return false;
        }
        // The verb is in the same word, or one or two words before.
        let words = before.rsplit(|byte| !byte.is_ascii_alphabetic());
        words.take(3).any(|word| {
            ["exit", "return", "finish", "terminat", "complet"]
                .iter()
                .any(|verb| {
                    word.len() >= verb.len()
                        && word[..verb.len()].eq_ignore_ascii_case(verb.as_bytes())
                })
        })
    })
}

/// Returns true if `line` counts tests, errors or the like.
pub(crate) fn tells_counts(line: &str) -> bool {
    each_number(line, |before, behind| {
        let is_free = before
            .last()
            .is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'.');
        let mut next = behind.strip_prefix(b" ").unwrap_or_default();
        for _ in 0..2 {
            let word = word_of(next);
            if is_free && is_counted(word) {
                return true;
            }
            next = next[word.len()..].strip_prefix(b" ").unwrap_or_default();
        }
        if before.last() != Some(&b' ') {
            return false;
        }
        let spaces = trim_end(before, |byte| byte == b' ');
        let marks = spaces
            .strip_suffix(b":")
            .or_else(|| spaces.strip_suffix(b"="));
        let word = marks.unwrap_or(spaces);
        let from = trim_end(word, |byte| byte.is_ascii_alphabetic()).len();
        is_counted(&word[from..])
    })
}

/// Returns true if `tells` does for any whole number of `line`, given the text on either side.
fn each_number(line: &str, tells: impl Fn(&[u8], &[u8]) -> bool) -> bool {
    let bytes = line.as_bytes();
    let mut at = 0;
    while let Some(from) = bytes[at..].iter().position(u8::is_ascii_digit) {
        let start = at + from;
        let digits = bytes[start..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit());
        at = start + digits.count();
        if tells(&bytes[..start], &bytes[at..]) {
            return true;
        }
    }
    false
}

/// The letters at the start of `text`.
fn word_of(text: &[u8]) -> &[u8] {
    let letters = text.iter().take_while(|byte| byte.is_ascii_alphabetic());
    &text[..letters.count()]
}

fn is_counted(word: &[u8]) -> bool {
    let is_it = |counted: &&str| counted.as_bytes().eq_ignore_ascii_case(word);
    !word.is_empty() && COUNTED.iter().any(is_it)
}

fn trim_end(mut text: &[u8], is_so: impl Fn(u8) -> bool) -> &[u8] {
    while let Some((last, rest)) = text.split_last()
        && is_so(*last)
    {
        text = rest;
    }
    text
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
