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
pub(crate) struct Name<'t> {
    pub(crate) text: &'t str,
    /// Index of the name that contains it, among those seen in this text.
    pub(crate) within: Option<usize>,
}

const WORD: u8 = 1;
const JOINT: u8 = 2;
const DIGIT: u8 = 4;
const UPPER: u8 = 8;
const LOWER: u8 = 16;
/// A byte that makes a name distinctive on its own.
const TELLING: u8 = 32;

static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'0'..=b'9' => WORD | DIGIT | TELLING,
            b'A'..=b'Z' => WORD | UPPER,
            b'a'..=b'z' => WORD | LOWER,
            b'_' => WORD | TELLING,
            b'.' | b'/' => JOINT | TELLING,
            b':' | b'@' | b'#' | b'-' => JOINT,
            _ => 0,
        };
        byte += 1;
    }
    classes
}

fn class(byte: u8) -> u8 {
    CLASSES[usize::from(byte)]
}

/// Passes every distinctive name to `see`, a joined name before its parts. Linear.
pub(crate) fn each_name<'t>(text: &'t str, mut see: impl FnMut(Name<'t>)) {
    let bytes = text.as_bytes();
    let mut seen = 0;
    let mut at = 0;
    while let Some(from) = bytes[at..].iter().position(|byte| class(*byte) & WORD != 0) {
        let start = at + from;
        let run = bytes[start..]
            .iter()
            .position(|byte| class(*byte) & (WORD | JOINT) == 0);
        at = run.map_or(bytes.len(), |length| start + length);
        let last_word = bytes[start..at]
            .iter()
            .rposition(|byte| class(*byte) & WORD != 0);
        let end = last_word.map_or(start, |last| start + last + 1);
        if end - start < MIN_NAME {
            continue;
        }
        // A run is all ASCII, so both ends are character boundaries.
        let run = &text[start..end];
        let mut within = None;
        if run.len() <= MAX_NAME && is_distinctive(run) {
            see(Name { text: run, within });
            within = Some(seen);
            seen += 1;
        }
        for part in run.split(|joint: char| class(joint as u8) & JOINT != 0) {
            let is_part = part.len() < run.len() && (MIN_NAME..=MAX_NAME).contains(&part.len());
            if is_part && is_distinctive(part) {
                see(Name { text: part, within });
                seen += 1;
            }
        }
    }
}

fn is_distinctive(name: &str) -> bool {
    let (mut all, mut behind) = (0, 0);
    for (at, byte) in name.bytes().enumerate() {
        let class = class(byte);
        all |= class;
        if at > 0 {
            behind |= class;
        }
    }
    all & TELLING != 0 || behind & UPPER != 0 && all & LOWER != 0
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
