//! Values in a text beside its names: options, numbers and proper nouns.

/// Minimum number of digits of a number.
const MIN_DIGITS: usize = 3;
/// Maximum length of an option in bytes.
const MAX_FLAG: usize = 99;
/// Numbers in a row that count; further ones are data.
const IN_A_ROW: usize = 3;

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

impl Kind {
    /// Worth of a value of this kind. An option counts as a name, which is worth three times as much
    /// in a line; a long name's own worth is about 1.
    pub(crate) fn worth(self) -> f32 {
        match self {
            Self::Flag => 2.0,
            Self::Number => 2.5,
            Self::Noun => 1.3,
        }
    }
}

/// Passes every value to `see`, in text order. Linear.
pub(crate) fn each_value<'t>(text: &'t str, mut see: impl FnMut(Kind, &'t str)) {
    let bytes = text.as_bytes();
    let (mut in_a_row, mut capitalised) = (0, None::<(usize, usize)>);
    let mut at = 0;
    while let Some(first) = bytes.get(at) {
        let start = at;
        // All ends are next to ASCII, so they are character boundaries.
        if is_word(*first) {
            at += bytes[at..]
                .iter()
                .take_while(|byte| is_word(**byte))
                .count();
            let word = &text[start..at];
            if word.bytes().all(|byte| byte.is_ascii_digit()) {
                in_a_row += 1;
                let digits = word.len() + further_digits(bytes, &mut at);
                if in_a_row <= IN_A_ROW && digits >= MIN_DIGITS {
                    see(Kind::Number, &text[start..at]);
                }
                continue;
            }
            in_a_row = 0;
            if is_capitalised(word) {
                if let Some((first, end)) = capitalised
                    && &bytes[end..start] == b" "
                {
                    see(Kind::Noun, &text[first..at]);
                }
                capitalised = Some((start, at));
            }
        } else if *first == b'-' && begins_flag(bytes, at) {
            let rest = bytes[at + 2..].iter();
            let rest = rest.take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'-');
            at += 2 + rest.count();
            in_a_row = 0;
            let flag = text[start..at].trim_end_matches('-');
            if ("--nn".len()..=MAX_FLAG).contains(&flag.len()) {
                see(Kind::Flag, flag);
            }
        } else {
            at += 1;
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_capitalised(word: &str) -> bool {
    let mut letters = word.chars();
    letters
        .next()
        .is_some_and(|first| first.is_ascii_uppercase())
        && letters
            .next()
            .is_some_and(|second| second.is_ascii_lowercase())
        && letters.all(|further| further.is_ascii_alphabetic())
}

/// Moves `end`, the end of a number's first digits, over the groups of digits that points and commas
/// join to it. Returns the number of their digits.
fn further_digits(bytes: &[u8], end: &mut usize) -> usize {
    let mut further = 0;
    while matches!(bytes.get(*end), Some(b'.' | b',')) {
        let group = bytes[*end + 1..].iter();
        let digits = group.take_while(|byte| byte.is_ascii_digit()).count();
        let next = *end + 1 + digits;
        if digits == 0 || bytes.get(next).copied().is_some_and(is_word) {
            break;
        }
        further += digits;
        *end = next;
    }
    further
}

fn begins_flag(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1);
    bytes[at..].starts_with(b"--")
        && bytes.get(at + 2).is_some_and(u8::is_ascii_alphabetic)
        && before.is_none_or(|before| bytes[before] != b'-' && !is_word(bytes[before]))
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
