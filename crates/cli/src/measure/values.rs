//! Values of a text: numbers, options, proper nouns, dates and amounts.

use std::sync::LazyLock;

use regex::Regex;

use crate::evidence::{Kind, pattern};

/// Minimum number of digits of a number.
const MIN_DIGITS: usize = 3;

static NUMBER: LazyLock<Regex> = LazyLock::new(|| pattern("[0-9]+(?:[.,][0-9]+)*"));
static FLAG: LazyLock<Regex> = LazyLock::new(|| pattern("--[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9]"));
static WORD: LazyLock<Regex> = LazyLock::new(|| pattern(r"\p{Lu}\p{Ll}\p{L}*"));
static DATE: LazyLock<Regex> = LazyLock::new(|| {
    let month = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*";
    let dates = [
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
        r"[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{4}",
        r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?",
        &format!("{month} [0-9]{{1,2}}(?:, [0-9]{{4}})?"),
        &format!("[0-9]{{1,2}} {month}(?: [0-9]{{4}})?"),
        r"[$€£¥][0-9][0-9.,]*",
        r"[0-9][0-9.,]* ?(?:%|€|USD|EUR|GBP)",
    ];
    pattern(&dates.join("|"))
});

/// Calls `see` with each value of `text`.
pub(super) fn each<'t>(text: &'t str, mut see: impl FnMut(Kind, &'t str)) {
    let joins_word = |c: char| c.is_alphanumeric() || c == '_';
    let stands_alone = |start: usize, end: usize| {
        !text[..start].ends_with(joins_word) && !text[end..].starts_with(joins_word)
    };
    for number in NUMBER.find_iter(text) {
        let digits = number.as_str().bytes().filter(u8::is_ascii_digit).count();
        if digits >= MIN_DIGITS && stands_alone(number.start(), number.end()) {
            see(Kind::Number, number.as_str());
        }
    }
    for flag in FLAG.find_iter(text) {
        if !text[..flag.start()].ends_with(|c: char| joins_word(c) || c == '-') {
            see(Kind::Flag, flag.as_str());
        }
    }
    let mut before: Option<(usize, usize)> = None;
    for word in WORD.find_iter(text) {
        if !stands_alone(word.start(), word.end()) {
            continue;
        }
        if let Some((start, end)) = before
            && &text[end..word.start()] == " "
        {
            see(Kind::Noun, &text[start..word.end()]);
        }
        before = Some((word.start(), word.end()));
    }
    for date in DATE.find_iter(text) {
        if !text[..date.start()].ends_with(joins_word) {
            see(Kind::Date, date.as_str());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(Kind, String)> {
        let mut found = Vec::new();
        each(text, |kind, value| found.push((kind, value.to_owned())));
        found
    }

    #[test]
    fn each_kind_of_value_is_found_and_its_neighbours_are_not() {
        let of = |kind, text: &str| -> Vec<String> {
            let all = found(text).into_iter();
            all.filter(|(own, _)| *own == kind)
                .map(|(_, value)| value)
                .collect()
        };
        assert_eq!(
            of(
                Kind::Number,
                "12 of 345, 1,234.5 and 99.1; x100 100x _123 5768."
            ),
            ["345", "1,234.5", "99.1", "5768"]
        );
        assert_eq!(
            of(Kind::Flag, "run --dry-run --n -x ---no a--b --x=1 --all"),
            ["--dry-run", "--all"]
        );
        assert_eq!(
            of(
                Kind::Noun,
                "see New York Times, then Ada Lovelace. NASA Report; Old\nTown"
            ),
            ["New York", "York Times", "Ada Lovelace"]
        );
        assert_eq!(
            of(
                Kind::Date,
                "2026-11-23 at 14:45, 3 May 2024, $12.50, 40 % and v1.2.3"
            ),
            ["2026-11-23", "14:45", "3 May 2024", "$12.50,", "40 %"]
        );
    }
}
