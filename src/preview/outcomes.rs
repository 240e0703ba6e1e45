//! Lines that tell how something ended: exit codes, counts of what passed and failed, and the last
//! line.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::preview::failures::may_be_failure;
use crate::preview::units::{Unit, is_excerpt_of_file, own_number};

/// Number of the first lines among which an exit code counts beside the last one.
const FRAME: u64 = 8;
/// Maximum number of lines of counts that come before all others.
const MAX_COUNTS: usize = 3;
/// Maximum length in bytes of a field's name in a header.
const MAX_NAME: usize = 24;

/// Number of first and of last lines that come before others. Rulers do not count.
pub(crate) const FIRST: usize = 2;
pub(crate) const LAST: usize = 2;
/// The same beside counts.
const FIRST_BESIDE: usize = 1;
const LAST_BESIDE: usize = 1;

/// Indexes of the units that tell how the text ended and began, the most telling first: the last
/// exit code, one at the beginning, then the last counts, the last and the first line; without counts,
/// two of each. Equal lines are named once.
///
/// An excerpt of a file ends nothing, whatever a reader adds to it. A line with a number of its own is
/// left out, and so is a piece of a long line.
pub(crate) fn ending(units: &[Unit<'_>]) -> Vec<usize> {
    if is_excerpt_of_file(units) {
        return Vec::new();
    }
    let (mut exit, mut counts) = (None, Vec::with_capacity(MAX_COUNTS));
    let mut after = "";
    for (at, unit) in units.iter().enumerate().rev() {
        // Of equal lines the last one counts.
        if std::mem::replace(&mut after, unit.text) == unit.text {
            continue;
        }
        let told = told(unit.text);
        if told.exit && exit.is_none() {
            exit = Some(at);
        }
        if told.counts && counts.len() < MAX_COUNTS {
            counts.push(at);
        }
        if exit.is_some() && counts.len() == MAX_COUNTS {
            break;
        }
    }
    // A shell may say how a command ended, or that it has not, before its output.
    let frame = units
        .iter()
        .take_while(|unit| unit.place.line <= FRAME)
        .position(|unit| told(unit.text).exit);
    let exits = exit.into_iter().chain(frame);
    // Counts tell more than what stands beside them.
    let (last, first) = if counts.is_empty() {
        (LAST, FIRST)
    } else {
        (LAST_BESIDE, FIRST_BESIDE)
    };
    let is_line = |at: &usize| !is_ruler(units[*at].text);
    let is_end = |at: &usize| {
        let unit = &units[*at];
        unit.place.byte == 0 && own_number(unit.text).is_none()
    };
    let last = (0..units.len())
        .rev()
        .filter(is_line)
        .take(last)
        .filter(is_end);
    let first = (0..units.len()).filter(is_line).take(first).filter(is_end);
    let mut seen = HashSet::new();
    let all = exits.chain(counts).chain(last).chain(first);
    all.filter(|at| seen.insert(units[*at].text)).collect()
}

/// All but the lines that a harness puts around the one that tells how a command ended, before its output: `Wall time:
/// 1.2 seconds`, `Output:`.
pub(crate) fn without_header<'u, 't>(units: &'u [Unit<'t>]) -> Cow<'u, [Unit<'t>]> {
    let frame = &units[..units.partition_point(|unit| unit.place.line <= FRAME)];
    let end = frame.iter().rposition(|unit| told(unit.text).exit);
    let is_header = |end: &usize| frame[..*end].iter().all(|unit| field(unit.text).is_some());
    let Some(end) = end.filter(is_header) else {
        return units.into();
    };
    // A program's own output may begin as a field does.
    let is_figure = |unit: &&Unit<'_>| {
        field(unit.text).is_some_and(|value| {
            value.is_empty() || value.starts_with(|c: char| c.is_ascii_digit())
        }) && !may_be_failure(unit.text)
    };
    let after = frame[end + 1..].iter().take_while(is_figure).count();
    [&units[end..=end], &units[end + 1 + after..]]
        .concat()
        .into()
}

/// The value of a field with a name of a few words.
fn field(line: &str) -> Option<&str> {
    let (name, value) = line.split_once(':')?;
    let is_name = (1..=MAX_NAME).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_alphabetic() || c == ' ');
    is_name.then(|| value.trim_start())
}

/// The ways in which a line tells how something ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// An exit code: a number after `exit code`, `returncode`, `finished with status` and the like.
    pub(crate) exit: bool,
    /// A count of tests, errors or the like.
    pub(crate) counts: bool,
}

impl Told {
    pub(crate) fn any(self) -> bool {
        self.exit || self.counts
    }
}

/// Looks at each whole number of `line`. Most are done with at a glance, for logs are full of them.
pub(crate) fn told(line: &str) -> Told {
    let bytes = line.as_bytes();
    let (mut told, mut at) = (Told::default(), 0);
    while let Some(byte) = bytes.get(at) {
        let start = at;
        at += 1;
        if !byte.is_ascii_digit() {
            continue;
        }
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        let (before, after) = (&bytes[..start], &bytes[at..]);
        // Times and other groups of numbers.
        let is_grouped = matches!(before, [.., b'0'..=b'9', _]) && after.first() != Some(&b' ');
        if is_grouped || before.last().is_some_and(u8::is_ascii_alphanumeric) {
            continue;
        }
        told.exit |= is_exit(before);
        told.counts |= counts_after(before, after) || counts_before(before);
    }
    told
}

/// Returns true if the number after `before` is an exit code.
fn is_exit(before: &[u8]) -> bool {
    let before = before.strip_suffix(b"-").unwrap_or(before);
    let before = before.strip_suffix(b" ").unwrap_or(before);
    let marks = |byte: u8| matches!(byte, b':' | b'=' | b'>' | b'"' | b'\'');
    let before = trim_end(before, marks);
    // The last letter of `code`, `status` or `ID`.
    if !matches!(before.last(), Some(b'e' | b'E' | b's' | b'S' | b'd' | b'D')) {
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
    let mut words = before.rsplit(|byte| !byte.is_ascii_alphabetic());
    if said.eq_ignore_ascii_case(b"id") {
        // It has not ended: `Process running with session ID 7`.
        return words
            .take(4)
            .any(|word| word.eq_ignore_ascii_case(b"running"));
    }
    if !has_end(&["code", "status"], said) {
        return false;
    }
    // The verb is in the same word, or one or two words before.
    words.by_ref().take(3).any(|word| {
        ["exit", "return", "finish", "terminat", "complet"]
            .iter()
            .any(|verb| {
                word.len() >= verb.len() && word[..verb.len()].eq_ignore_ascii_case(verb.as_bytes())
            })
    })
}

/// Returns true if the number between `before` and `after` counts what follows: `12 tests`, `12 new
/// tests`.
fn counts_after(before: &[u8], after: &[u8]) -> bool {
    let Some(mut next) = after
        .strip_prefix(b" ")
        .filter(|_| before.last() != Some(&b'.'))
    else {
        return false;
    };
    for _ in 0..2 {
        let word = word_of(next);
        if is_counted(word) {
            return true;
        }
        let Some(rest) = next[word.len()..].strip_prefix(b" ") else {
            break;
        };
        next = rest;
    }
    false
}

/// Returns true if the number after `before` counts what comes before it: `failed: 3`.
fn counts_before(before: &[u8]) -> bool {
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
}

/// The letters at the start of `text`.
fn word_of(text: &[u8]) -> &[u8] {
    let letters = text.iter().take_while(|byte| byte.is_ascii_alphabetic());
    &text[..letters.count()]
}

/// Returns true for a word of things that test runs, compilers and package managers count.
fn is_counted(word: &[u8]) -> bool {
    let Some(first) = word.first() else {
        return false;
    };
    // By the first letter, for most words are others.
    let counted: &[&str] = match first.to_ascii_lowercase() {
        b'a' => &["assertion", "assertions"],
        b'e' => &["error", "errors", "example", "examples"],
        b'f' => &["fail", "failed", "failing", "failure", "failures"],
        b'i' => &["ignored", "issue", "issues"],
        b'p' => &[
            "package", "packages", "pass", "passed", "passes", "passing", "problem", "problems",
        ],
        b's' => &["skip", "skipped", "spec", "specs", "suite", "suites"],
        b't' => &["test", "tests"],
        b'v' => &["vulnerability", "vulnerabilities"],
        b'w' => &["warning", "warnings"],
        _ => &[],
    };
    counted
        .iter()
        .any(|counted| counted.as_bytes().eq_ignore_ascii_case(word))
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
    // Han is the slowest to look up.
    let is_han = |letter| ('\u{4e00}'..='\u{9fff}').contains(&letter);
    !line.contains(|letter: char| is_han(letter) || letter.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preview::Preview;
    use crate::preview::plain::Piece;
    use crate::preview::units::Cutter;

    fn ends(text: &str) -> Vec<&str> {
        let mut places = Vec::new();
        let mut cutter = Cutter::new();
        let mut see = |unit: Unit<'_>| places.push(unit.place);
        let bytes = text.len() as u64;
        cutter.push(Piece { text, bytes }, &mut see);
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
    fn a_header_is_told_from_output() {
        let shown = |text: &str| Preview::Mixed.show(text, 150);
        let files: String = (1..60).map(|n| format!("src/part_{n}.rs\n")).collect();
        let codex = format!(
            "Chunk ID: de7930\nWall time: 1.2360 seconds\nProcess exited with code 0\nOriginal token count: 1234\nOutput:\n{files}"
        );
        insta::assert_snapshot!(shown(&codex), @"
        3|Process exited with code 0
        15|src/part_10.rs
        src/part_11.rs
        src/part_12.rs
        src/part_13.rs
        src/part_14.rs
        [… 879 B …]
        ");
        // These fields are output.
        let git = format!("Exit code 1\nerror: 3 failed to push\nhint: try --force\n{files}");
        insta::assert_snapshot!(shown(&git), @"
        1|Exit code 1
        error: 3 failed to push
        hint: try --force
        src/part_1.rs
        src/part_2.rs
        src/part_3.rs
        names: 13 part_10
        [… 834 B …]
        ");
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
            "Process running with session ID 61348",
        ] {
            assert!(told(line).exit, "{line}");
        }
        for line in [
            "let code = 1;",
            "HTTP status 404",
            "exit 7 on the left",
            "code 12",
            "user ID 7 is running",
        ] {
            assert!(!told(line).exit, "{line}");
        }
        for line in [
            " 1216 pass",
            "Found 2 errors.",
            "test result: ok. 12 passed; 0 failed",
            "Tests:       1 failed, 3 passed",
            "errors: 7",
            "2 high severity, 31 packages looked at",
        ] {
            assert!(told(line).counts, "{line}");
        }
        for line in [
            "all tests passed",
            "line 12 of the file",
            "v0.1.2 test",
            "error E0308",
        ] {
            assert!(!told(line).counts, "{line}");
        }
    }

    #[test]
    fn an_ending_is_the_exit_code_the_last_counts_and_both_ends() {
        let run = "$ bun test\n3 errors\n1 pass\n2 pass\n\n 12 pass\n 0 fail\n30 calls\nRan 12 tests\nexit code 0\n----\n";
        assert_eq!(
            ends(run),
            [
                "exit code 0",
                "Ran 12 tests",
                " 0 fail",
                " 12 pass",
                "$ bun test"
            ]
        );
    }

    #[test]
    fn without_codes_and_counts_there_are_the_last_and_the_first_lines() {
        assert_eq!(
            ends("$ make\nCompiling x\nLinking x\nFinished in 2s\n=====\n\n"),
            ["Finished in 2s", "Linking x", "$ make", "Compiling x"]
        );
        assert_eq!(ends("  1→fn a() {\n  2→}\n  3→// end\n"), [""; 0]);
        assert_eq!(ends("-----\n"), [""; 0]);
        let frame = "Process running with session ID 7\na\nb: exit code 0\nc\nd\n";
        assert_eq!(
            ends(frame)[..3],
            ["b: exit code 0", "Process running with session ID 7", "d"]
        );
    }
}
