//! Kinds of lines, told from the text alone: tests that passed, both sides of a change, the line
//! below a heading.

use crate::preview::units::{Unit, is_excerpt_of_file, is_heading};

/// Number of lines about tests that passed that are worth what is in them. Further ones say the same.
const FEW_PASSED: usize = 3;
/// Worth of further ones, as a factor.
const PASSED: f32 = 0.2;
/// Worth of a line that a diff leaves as it is, as a factor.
const UNCHANGED: f32 = 0.5;

/// Worth of each unit's names and values, as a factor. Code that prints what tests print tells
/// nothing about them.
pub(crate) fn factors(units: &[Unit<'_>]) -> Vec<f32> {
    let mut factors = vec![1.0; units.len()];
    if is_excerpt_of_file(units) {
        return factors;
    }
    let (is_diff, mut passed) = (is_diff(units), 0);
    for (factor, unit) in factors.iter_mut().zip(units) {
        if is_diff && is_unchanged(unit) {
            *factor = UNCHANGED;
        } else if is_passed(unit) {
            passed += 1;
            if passed > FEW_PASSED {
                *factor = PASSED;
            }
        }
    }
    factors
}

/// For each unit, another one that should be shown with it: the line below a heading, or the other
/// side of a changed line.
pub(crate) fn companions(units: &[Unit<'_>]) -> Vec<Option<usize>> {
    let mut companions = vec![None; units.len()];
    for (at, pair) in units.windows(2).enumerate() {
        // A blank line may be between them.
        let is_near = pair[1].place.byte == 0 && pair[1].place.line <= pair[0].place.line + 2;
        if is_near && is_heading(&pair[0]) && !is_heading(&pair[1]) {
            companions[at] = Some(at + 1);
        }
    }
    if is_diff(units) {
        let mut at = 0;
        while at < units.len() {
            let removed = run(units, at, '-');
            let added = run(units, at + removed, '+');
            if removed == 0 || added == 0 || !is_next(units, at + removed) {
                at += removed.max(1);
                continue;
            }
            // Line by line, as far as there are as many.
            for old in at..at + removed.min(added) {
                companions[old] = Some(old + removed);
                companions[old + removed] = Some(old);
            }
            at += removed + added;
        }
    }
    companions
}

/// Returns true for a line that a diff adds or removes, and for the head of its hunk.
pub(crate) fn is_of_diff(unit: &Unit<'_>) -> bool {
    unit.place.byte == 0 && (unit.text.starts_with(['+', '-']) || is_hunk(unit))
}

fn is_hunk(unit: &Unit<'_>) -> bool {
    unit.text.starts_with("@@ -")
}

fn is_diff(units: &[Unit<'_>]) -> bool {
    units.iter().any(is_hunk)
}

fn is_unchanged(unit: &Unit<'_>) -> bool {
    unit.text.starts_with(' ') || unit.text.starts_with("index ")
}

/// Returns true for a line about a test that passed, by the words and signs of most test runners.
fn is_passed(unit: &Unit<'_>) -> bool {
    let text = unit.text.trim();
    let begins = ["✓", "✔", "ok ", "(pass)", "PASS", "--- PASS"];
    unit.place.byte == 0
        && (begins.iter().any(|sign| text.starts_with(sign))
            || text.ends_with(" ok")
            || text.contains(" PASSED"))
}

/// Number of adjacent lines from unit `at` on that begin with `sign`.
fn run(units: &[Unit<'_>], at: usize, sign: char) -> usize {
    let is_of_run = |unit: &usize| {
        units[*unit].text.starts_with(sign)
            && units[*unit].place.byte == 0
            && (*unit == at || is_next(units, *unit))
    };
    (at..units.len()).take_while(is_of_run).count()
}

/// Returns true if unit `at` is in the line after that of the unit before.
fn is_next(units: &[Unit<'_>], at: usize) -> bool {
    at > 0 && units[at].place.line == units[at - 1].place.line + 1
}

/// Han characters of `text`.
pub(crate) fn han(text: &str) -> usize {
    if text.is_ascii() {
        return 0;
    }
    let is_han = |letter: &char| ('\u{4e00}'..='\u{9fff}').contains(letter);
    text.chars().filter(is_han).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preview::units::Place;

    fn units(text: &str) -> Vec<Unit<'_>> {
        let lines = text
            .split('\n')
            .zip(1..)
            .filter(|(text, _)| !text.is_empty());
        let unit = |(text, line)| Unit {
            text,
            place: Place {
                line,
                byte: 0,
                bytes: text.len() as u64,
                ends_line: true,
            },
        };
        lines.map(unit).collect()
    }

    #[test]
    fn further_tests_that_passed_are_worth_less() {
        let run = "ok 1\n✓ b\ntest c ... ok\nnot ok 4\n(pass) e\nf PASSED [ 9%]\nit is ok so far";
        let expected = [1.0, 1.0, 1.0, 1.0, PASSED, PASSED, 1.0];
        assert_eq!(factors(&units(run)), expected);
        let file = run.split('\n').zip(1..);
        let file: Vec<String> = file.map(|(line, at)| format!("{at}\t{line}")).collect();
        assert_eq!(factors(&units(&file.join("\n"))), [1.0; 7]);
    }

    #[test]
    fn both_sides_of_a_change_belong_together() {
        let diff = "@@ -1 +1 @@\n a\n-b\n-c\n+B\n d\n+e\n-f\n\n+g";
        let found = companions(&units(diff));
        let pairs = found.iter().enumerate();
        let pairs: Vec<_> = pairs
            .filter_map(|(at, other)| Some((at, (*other)?)))
            .collect();
        assert_eq!(pairs, [(2, 4), (4, 2)]);
        assert_eq!(factors(&units(diff))[..3], [1.0, UNCHANGED, 1.0]);
        // Without the head of a hunk it is a list.
        assert_eq!(companions(&units("-b\n+B")), [None, None]);
    }

    #[test]
    fn the_line_below_a_heading_belongs_to_it() {
        let text = "## A\n\none\ntwo\n## B\n## C\n\n\nfar";
        let expected = [Some(1), None, None, None, None, None];
        assert_eq!(companions(&units(text)), expected);
    }
}
