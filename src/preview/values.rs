//! Values in a text beside its names: options, numbers and proper nouns.

use std::sync::LazyLock;

use regex::Regex;

use crate::preview::pattern::pattern;

/// Minimum number of digits of a number.
const MIN_DIGITS: usize = 3;
/// Maximum length of an option in bytes.
const MAX_FLAG: usize = 99;
/// Numbers in a row that count; further ones are data.
const IN_A_ROW: usize = 3;

/// An option, dashes, a number, or a word. Dashes after the last two begin no option.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"--[A-Za-z][A-Za-z0-9-]*|-+|[0-9]+(?-u:\b)(?:[.,][0-9]+(?-u:\b))*-*|[A-Za-z0-9_]+-*")
});

/// A kind of value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An option such as `--all`.
    Flag,
    /// A number of three digits and more.
    Number,
    /// Two capitalised words in a row.
    Noun,
}

/// Passes every value to `see`, in text order. Linear.
pub(crate) fn each_value<'t>(text: &'t str, mut see: impl FnMut(Kind, &'t str)) {
    let (mut in_a_row, mut capitalised) = (0, None::<(usize, usize)>);
    for token in TOKEN.find_iter(text) {
        let value = token.as_str().trim_end_matches('-');
        let (start, end) = (token.start(), token.start() + value.len());
        let is_number = !value.contains(|sign: char| sign.is_ascii_alphabetic() || sign == '_');
        match value.as_bytes() {
            [] => {}
            [b'-', ..] => {
                in_a_row = 0;
                if ("--nn".len()..=MAX_FLAG).contains(&value.len()) {
                    see(Kind::Flag, value);
                }
            }
            _ if is_number => {
                in_a_row += 1;
                let digits = value.bytes().filter(u8::is_ascii_digit).count();
                if in_a_row <= IN_A_ROW && digits >= MIN_DIGITS {
                    see(Kind::Number, value);
                }
            }
            [b'A'..=b'Z', b'a'..=b'z', rest @ ..] if rest.iter().all(u8::is_ascii_alphabetic) => {
                in_a_row = 0;
                if let Some((first, last)) = capitalised
                    && &text[last..start] == " "
                {
                    see(Kind::Noun, &text[first..end]);
                }
                capitalised = Some((start, end));
            }
            _ => in_a_row = 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<(Kind, &str)> {
        let mut values = Vec::new();
        each_value(text, |kind, value| values.push((kind, value)));
        values
    }

    #[test]
    fn each_kind_of_value_is_found_and_its_neighbours_are_not() {
        assert_eq!(
            values("12 of 345, then 1,234.5 for 99.1; x100 100x _123 so 5768."),
            ["345", "1,234.5", "99.1", "5768"].map(|number| (Kind::Number, number))
        );
        assert_eq!(
            values("run --dry-run --n -x ---no a--b --x=1 --all-"),
            ["--dry-run", "--all"].map(|flag| (Kind::Flag, flag))
        );
        assert_eq!(
            values("see New York Times, then Ada Lovelace. NASA Report; Old\tTown"),
            ["New York", "York Times", "Ada Lovelace"].map(|noun| (Kind::Noun, noun))
        );
        assert_eq!(values("没有 so plain 字"), []);
        assert_eq!(
            values("字100字 é200"),
            [(Kind::Number, "100"), (Kind::Number, "200")]
        );
    }

    #[test]
    fn long_rows_of_numbers_are_data() {
        assert_eq!(values("[101, 102, 103, 104, 105, 106]").len(), IN_A_ROW);
        assert_eq!(values("101 a 102 b 103 c 104").len(), 4);
    }
}
