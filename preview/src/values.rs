//! Values in a text beside its names: options, numbers and proper nouns.

/// Minimum number of digits of a number.
const MIN_DIGITS: usize = 3;
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
    /// Worth of showing a value of this kind; a name in a line is worth about 3.
    pub(crate) fn worth(self) -> f32 {
        match self {
            Self::Flag => 3.0,
            Self::Number | Self::Noun => 0.5,
        }
    }
}

/// Returns false for most texts without values, at the speed of memory.
pub(crate) fn may_have_value(text: &str) -> bool {
    let is_telling =
        |byte: &u8| byte.is_ascii_digit() | byte.is_ascii_uppercase() | (*byte == b'-');
    // Without an early end, so that many bytes are looked at at once.
    text.as_bytes()
        .iter()
        .fold(false, |found, byte| found | is_telling(byte))
}

/// Returns true if `text` has a value.
pub(crate) fn has_value(text: &str) -> bool {
    let mut has_value = false;
    each_value(text, |_, _| has_value = true);
    has_value
}

/// Passes every value to `see`, in text order. Linear.
pub(crate) fn each_value<'t>(text: &'t str, mut see: impl FnMut(Kind, &'t str)) {
    let bytes = text.as_bytes();
    let (mut in_a_row, mut capitalised) = (0, None::<(usize, usize)>);
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        // All ends are next to ASCII, so they are character boundaries.
        if is_word(bytes, at) {
            at += length(bytes, at, |byte| {
                byte.is_ascii_alphanumeric() || byte == b'_'
            });
            let word = &bytes[start..at];
            if word.iter().all(u8::is_ascii_digit) {
                at = end_of_number(bytes, at);
                let digits = bytes[start..at].iter().filter(|byte| byte.is_ascii_digit());
                in_a_row += 1;
                if in_a_row <= IN_A_ROW && digits.count() >= MIN_DIGITS {
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
        } else if begins_flag(bytes, at) {
            at += 2 + length(bytes, at + 2, |byte| {
                byte.is_ascii_alphanumeric() || byte == b'-'
            });
            in_a_row = 0;
            let flag = text[start..at].trim_end_matches('-');
            if flag.len() > "--n".len() {
                see(Kind::Flag, flag);
            }
        } else {
            at += 1;
        }
    }
}

fn is_word(bytes: &[u8], at: usize) -> bool {
    bytes
        .get(at)
        .is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// Number of bytes from `at` on that are so.
fn length(bytes: &[u8], at: usize, is_so: impl Fn(u8) -> bool) -> usize {
    bytes[at..].iter().take_while(|byte| is_so(**byte)).count()
}

/// The end of a number whose first digits end at `end`: points and commas join groups of digits.
fn end_of_number(bytes: &[u8], mut end: usize) -> usize {
    while matches!(bytes.get(end), Some(b'.' | b',')) {
        let digits = length(bytes, end + 1, |byte| byte.is_ascii_digit());
        let next = end + 1 + digits;
        if digits == 0 || is_word(bytes, next) {
            break;
        }
        end = next;
    }
    end
}

fn is_capitalised(word: &[u8]) -> bool {
    word[0].is_ascii_uppercase()
        && word.get(1).is_some_and(u8::is_ascii_lowercase)
        && word.iter().all(u8::is_ascii_alphabetic)
}

fn begins_flag(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1);
    bytes[at..].starts_with(b"--")
        && bytes.get(at + 2).is_some_and(u8::is_ascii_alphabetic)
        && before.is_none_or(|before| bytes[before] != b'-' && !is_word(bytes, before))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<(Kind, &str)> {
        let mut values = Vec::new();
        each_value(text, |kind, value| values.push((kind, value)));
        assert_eq!(has_value(text), !values.is_empty(), "{text}");
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
