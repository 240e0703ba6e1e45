//! Lines about tests that passed, told from the text alone.

use crate::preview::units::{Unit, is_excerpt_of_file};

/// Number of lines about tests that passed that are worth what is in them. Further ones say the same.
const FEW_PASSED: usize = 3;
/// Worth of further ones, as a factor.
const PASSED: f32 = 0.2;

/// Worth of each unit's names and values, as a factor. Code that prints what tests print tells
/// nothing about them.
pub(crate) fn factors(units: &[Unit<'_>]) -> Vec<f32> {
    let mut factors = vec![1.0; units.len()];
    if is_excerpt_of_file(units) {
        return factors;
    }
    let passed = factors
        .iter_mut()
        .zip(units)
        .filter(|(_, unit)| is_passed(unit));
    for (factor, _) in passed.skip(FEW_PASSED) {
        *factor = PASSED;
    }
    factors
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
        let expected = [1.0, 1.0, 1.0, 1.0, PASSED, PASSED, 1.0];
        assert_eq!(factors(&units(run)), expected);
        let file = run.split('\n').zip(1..);
        let file: Vec<String> = file.map(|(line, at)| format!("{at}\t{line}")).collect();
        assert_eq!(factors(&units(&file.join("\n"))), [1.0; 7]);
    }
}
