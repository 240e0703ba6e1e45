//! The distinctive names in a text: what models use next mostly has a name.
//!
//! A name is a run of letters, digits and `_`, or several such runs joined by `. / : @ # -`, of at
//! least six characters. It is distinctive if it contains a digit, `_`, `/` or `.`, or both a
//! lower-case letter and a capital after its first character.

/// Minimum length of a name in bytes.
const MIN_NAME: usize = 6;
/// Maximum length of a name in bytes. A longer run is data rather than a name.
const MAX_NAME: usize = 99;

/// An occurrence of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameFound<'t> {
    pub(crate) text: &'t str,
    /// Index of the name that contains it, among those seen in this text.
    pub(crate) within: Option<usize>,
}

/// Classes of bytes: letters, digits and `_` are of words.
const WORD: u8 = 1;
const JOINT: u8 = 2;
pub(crate) const DIGIT: u8 = 4;
pub(crate) const UPPER: u8 = 8;
pub(crate) const LOWER: u8 = 16;
/// A byte that makes a name distinctive on its own.
const TELLING: u8 = 32;

/// The classes of a byte; none if it is not ASCII.
pub(crate) fn class(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => WORD | DIGIT | TELLING,
        b'A'..=b'Z' => WORD | UPPER,
        b'a'..=b'z' => WORD | LOWER,
        b'_' => WORD | TELLING,
        b'.' | b'/' => JOINT | TELLING,
        b':' | b'@' | b'#' | b'-' => JOINT,
        _ => 0,
    }
}

/// Passes every distinctive name to `see`, a joined name before its parts. Linear.
pub(crate) fn each_name<'t>(text: &'t str, mut see: impl FnMut(NameFound<'t>)) {
    let is_of = |sign: char, classes: u8| sign.is_ascii() && class(sign as u8) & classes != 0;
    let is_outside = |sign: char| !is_of(sign, WORD | JOINT);
    let is_joint = |sign: char| is_of(sign, JOINT);
    let mut seen = 0;
    for run in text.split(is_outside) {
        let name = run.trim_matches(is_joint);
        // A part has no class that the whole has not, so it is no more distinctive.
        if name.len() < MIN_NAME || !is_distinctive(name) {
            continue;
        }
        let mut within = None;
        if name.len() <= MAX_NAME {
            see(NameFound { text: name, within });
            within = Some(seen);
            seen += 1;
        }
        let parts = name.split(is_joint).filter(|part| part.len() < name.len());
        for text in parts.filter(|part| (MIN_NAME..=MAX_NAME).contains(&part.len())) {
            if is_distinctive(text) {
                see(NameFound { text, within });
                seen += 1;
            }
        }
    }
}

fn is_distinctive(name: &str) -> bool {
    let rest = name.bytes().skip(1).fold(0, |all, byte| all | class(byte));
    let all = rest | name.bytes().next().map_or(0, class);
    all & TELLING != 0 || rest & UPPER != 0 && all & LOWER != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<(&str, Option<usize>)> {
        let mut names = Vec::new();
        each_name(text, |name| names.push((name.text, name.within)));
        names
    }

    #[test]
    fn names_are_told_from_words() {
        assert_eq!(names("a plain sentence, HTTPSERVER, foo-bars"), []);
        assert_eq!(
            names("-- parse_all() 'fooBar' Foobar 6x1"),
            [("parse_all", None), ("fooBar", None)]
        );
        assert_eq!(
            names("see src/read_back.rs: done"),
            [("src/read_back.rs", None), ("read_back", Some(0))],
        );
        assert_eq!(names("中文 user_name中文"), [("user_name", None)]);
        assert_eq!(names(&"x1".repeat(50)), []);
    }
}
