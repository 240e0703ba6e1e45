//! Factors for what is in lines that say little: about tests that passed, and comments around a few settings.

use crate::preview::units::{Unit, is_excerpt_of_file, is_heading, own_text};

/// Number of lines about tests that passed that are worth what is in them. Further ones say the same.
const FEW_PASSED: usize = 3;
/// Worth of further ones as a factor, and of comments where they are most of the text.
const LITTLE: f32 = 0.2;

/// Worth of each unit's names and values, as a factor. Code that prints what tests print tells
/// nothing about them.
pub(crate) fn factors(units: &[Unit<'_>]) -> Vec<f32> {
    let mut factors = vec![1.0; units.len()];
    let comments: Vec<bool> = units.iter().map(is_comment).collect();
    if 3 * comments.iter().filter(|is| **is).count() > 2 * units.len() {
        let factor = |is_comment| if is_comment { LITTLE } else { 1.0 };
        return comments.into_iter().map(factor).collect();
    }
    if is_excerpt_of_file(units) {
        return factors;
    }
    let passed = factors
        .iter_mut()
        .zip(units)
        .filter(|(_, unit)| is_passed(unit));
    for (factor, _) in passed.skip(FEW_PASSED) {
        *factor = LITTLE;
    }
    factors
}

/// Returns true for a comment of a settings file or a script.
fn is_comment(unit: &Unit<'_>) -> bool {
    own_text(unit).trim_start().starts_with(['#', ';']) && !is_heading(unit)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn units(text: &str) -> Vec<Unit<'_>> {
        let lines = text
            .split('\n')
            .zip(1..)
            .filter(|(text, _)| !text.is_empty());
        lines.map(|(text, line)| Unit::line(text, line)).collect()
    }

    #[test]
    fn further_tests_that_passed_are_worth_less() {
        let run = "ok 1\n✓ b\ntest c ... ok\nnot ok 4\n(pass) e\nf PASSED [ 9%]\nit is ok so far";
        let expected = [1.0, 1.0, 1.0, 1.0, LITTLE, LITTLE, 1.0];
        assert_eq!(factors(&units(run)), expected);
        let file = run.split('\n').zip(1..);
        let file: Vec<String> = file.map(|(line, at)| format!("{at}\t{line}")).collect();
        assert_eq!(factors(&units(&file.join("\n"))), [1.0; 7]);
    }

    #[test]
    fn comments_around_a_few_settings_are_worth_less() {
        let settings = "# a\n#port = 1\n#b = 2\n ; c\nport = 3\n# d";
        let expected = [LITTLE, LITTLE, LITTLE, LITTLE, 1.0, LITTLE];
        assert_eq!(factors(&units(settings)), expected);
        assert_eq!(factors(&units("# a\nb = 1\nc = 2")), [1.0; 3]);
    }
}
