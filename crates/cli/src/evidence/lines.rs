//! Lines of a text that are long enough to be a quotation.

use std::collections::HashSet;

/// Minimum length of a quotation, in characters.
const MIN_LINE: usize = 20;

/// Finds the lines of `text` with at least 20 characters, without whitespace at their ends: as
/// they stand, without the line number of a file reader, and without the `+` or `-` of a diff.
pub(crate) fn quotable(text: &str) -> HashSet<&str> {
    let mut found = HashSet::new();
    for line in text.split('\n') {
        let in_diff = line.strip_prefix(['+', '-']).unwrap_or_default();
        for quotation in [line, without_number(line), in_diff].map(str::trim) {
            if quotation.chars().nth(MIN_LINE - 1).is_some() {
                found.insert(quotation);
            }
        }
    }
    found
}

/// Returns `text` without the numbers that a file reader puts before its lines.
pub(crate) fn unnumbered(text: &str) -> String {
    let lines: Vec<&str> = text.split('\n').map(without_number).collect();
    lines.join("\n")
}

/// Strips the number from `12→text`, `12: text`, `12|text` and `12<TAB>text`.
fn without_number(line: &str) -> &str {
    let numbered = line.trim_start();
    let rest = numbered.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == numbered.len() {
        return line;
    }
    rest.strip_prefix(['→', ':', '|', '\t']).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lines_are_not_quotations() {
        assert!(quotable("nineteen characters\n   nineteen characters   ").is_empty());
        assert_eq!(
            quotable("  twenty characters it\n"),
            HashSet::from(["twenty characters it"])
        );
    }

    #[test]
    fn line_numbers_and_diff_marks_are_ignored() {
        for line in [
            "   12→let total = sum(values);",
            "12: let total = sum(values);",
            "+    let total = sum(values);",
        ] {
            assert!(
                quotable(line).contains("let total = sum(values);"),
                "{line}"
            );
        }
        assert!(!quotable("12 let total = sum(values);").contains("let total = sum(values);"));
    }
}
