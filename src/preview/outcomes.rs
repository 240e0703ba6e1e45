//! Lines that tell how something ended: exit codes, counts of what passed and failed, and the last
//! line.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::preview::signs::{COUNTS, EXIT, FAILURE, PLACE, signs};
use crate::preview::units::{Unit, is_excerpt_of_file, own_number};

/// Number of the first lines among which a harness says how a command ended, before its output.
const FRAME: u64 = 8;
/// Maximum number of lines of counts that come before all others.
const MAX_COUNTS: usize = 3;
/// Maximum length in bytes of a field's name in a header.
const MAX_NAME: usize = 24;

/// Number of first and of last lines that come before others. Rulers do not count.
const FIRST: usize = 2;
const LAST: usize = 2;
/// The same beside counts.
const FIRST_BESIDE: usize = 1;
const LAST_BESIDE: usize = 1;

/// Indexes of the units that tell how the text ended and began, the most telling first: the last
/// exit code, then the last counts, the last and the first line; without counts,
/// two of each. Equal lines are named once.
///
/// An excerpt of a file ends nothing, whatever a reader adds to it. A line with a number of its own is
/// left out, and so is a piece of a long line that does not end a string of JSON.
pub(crate) fn ending(units: &[Unit<'_>]) -> Vec<usize> {
    if is_excerpt_of_file(units) {
        return Vec::new();
    }
    let (mut exit, mut counts) = (None, Vec::with_capacity(MAX_COUNTS));
    for (at, unit) in units.iter().enumerate().rev() {
        let told = signs(unit.text);
        if told & EXIT != 0 && exit.is_none() {
            exit = Some(at);
        }
        if told & COUNTS != 0 && counts.len() < MAX_COUNTS {
            counts.push(at);
        }
        if exit.is_some() && counts.len() == MAX_COUNTS {
            break;
        }
    }
    // Counts tell more than what stands beside them.
    let (last, first) = if counts.is_empty() {
        (LAST, FIRST)
    } else {
        (LAST_BESIDE, FIRST_BESIDE)
    };
    let is_line = |at: &usize| !is_ruler(units[*at].text);
    let is_end = |at: &usize| {
        let unit = &units[*at];
        let is_line = unit.place.byte == 0 || unit.place.begins && unit.place.ends_line;
        is_line && own_number(unit.text).is_none()
    };
    let lines = || (0..units.len()).filter(is_line);
    let last = lines().rev().take(last).filter(is_end);
    let first = lines().take(first).filter(is_end);
    let mut seen = HashSet::new();
    let all = exit.into_iter().chain(counts).chain(last).chain(first);
    all.filter(|at| seen.insert(units[*at].text)).collect()
}

/// All but the lines that a harness puts around the one that tells how a command ended, before its output: `Wall time:
/// 1.2 seconds`, `Output:`.
pub(crate) fn without_header<'u, 't>(units: &'u [Unit<'t>]) -> Cow<'u, [Unit<'t>]> {
    let frame = &units[..units.partition_point(|unit| unit.place.line <= FRAME)];
    let end = frame.iter().rposition(|unit| signs(unit.text) & EXIT != 0);
    let is_header = |end: &usize| frame[..*end].iter().all(|unit| field(unit.text).is_some());
    let Some(end) = end.filter(is_header) else {
        return units.into();
    };
    // A program's own output may begin as a field does.
    let is_figure = |unit: &&Unit<'_>| {
        field(unit.text).is_some_and(|value| {
            value.is_empty() || value.starts_with(|c: char| c.is_ascii_digit())
        }) && signs(unit.text) & (FAILURE | PLACE) == 0
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

/// Returns true for an empty line, or one of marks only.
pub(crate) fn is_ruler(line: &str) -> bool {
    !line.contains(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preview::Preview;
    use crate::preview::plain::Plain;
    use crate::preview::text::lines::Position;
    use crate::preview::units::units;

    fn ends(text: &str) -> Vec<String> {
        let plain = Plain::of(text);
        let units: Vec<Unit<'_>> = units(&plain, Position::START).collect();
        let ends = ending(&units).into_iter();
        ends.map(|at| units[at].text.to_owned()).collect()
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
            assert!(signs(line) & EXIT != 0, "{line}");
        }
        for line in [
            "let code = 1;",
            "HTTP status 404",
            "exit 7 on the left",
            "code 12",
            "user ID 7 is running",
        ] {
            assert!(signs(line) & EXIT == 0, "{line}");
        }
        for line in [
            " 1216 pass",
            "Found 2 errors.",
            "test result: ok. 12 passed; 0 failed",
            "Tests:       1 failed, 3 passed",
            "errors: 7",
            "2 high severity, 31 packages looked at",
        ] {
            assert!(signs(line) & COUNTS != 0, "{line}");
        }
        for line in [
            "all tests passed",
            "line 12 of the file",
            "v0.1.2 test",
            "error E0308",
        ] {
            assert!(signs(line) & COUNTS == 0, "{line}");
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
    }
}
