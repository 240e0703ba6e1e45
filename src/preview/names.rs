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
pub(crate) const WORD: u8 = 1;
const JOINT: u8 = 2;
pub(crate) const DIGIT: u8 = 4;
pub(crate) const UPPER: u8 = 8;
pub(crate) const LOWER: u8 = 16;
/// A byte that makes a name distinctive on its own.
pub(crate) const TELLING: u8 = 32;

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

/// The classes of a byte; none if it is not ASCII.
pub(crate) fn class(byte: u8) -> u8 {
    CLASSES[usize::from(byte)]
}

/// Passes every distinctive name to `see`, a joined name before its parts. Linear.
pub(crate) fn each_name<'t>(text: &'t str, mut see: impl FnMut(NameFound<'t>)) {
    let bytes = text.as_bytes();
    let (mut at, mut seen) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        if class(*byte) & WORD == 0 {
            at += 1;
            continue;
        }
        let start = at;
        let run = Run::at(&bytes[start..]);
        at += run.length;
        // A part has no class that the whole has not, so it is no more distinctive.
        if run.name < MIN_NAME || !is_distinctive(run.all, run.rest) {
            continue;
        }
        // A run is all ASCII, so its ends are character boundaries.
        let name = &text[start..start + run.name];
        let mut within = None;
        if name.len() <= MAX_NAME {
            see(NameFound { text: name, within });
            within = Some(seen);
            seen += 1;
        }
        if run.all & JOINT == 0 {
            continue;
        }
        let mut from = 0;
        for part in name.as_bytes().split(|byte| class(*byte) & JOINT != 0) {
            let text = &name[from..from + part.len()];
            from += part.len() + 1;
            if (MIN_NAME..=MAX_NAME).contains(&part.len()) {
                let part = Run::at(part);
                if is_distinctive(part.all, part.rest) {
                    see(NameFound { text, within });
                    seen += 1;
                }
            }
        }
    }
}

/// Words joined to one, and the joints after them.
struct Run {
    /// Number of bytes.
    length: usize,
    /// Number of bytes without the joints after the last word.
    name: usize,
    /// Classes of the name's bytes.
    all: u8,
    /// Classes of all but the first.
    rest: u8,
}

impl Run {
    /// The run at the start of `bytes`, which begins with a word. Text is mostly short words, so each
    /// byte takes one look into the table.
    fn at(bytes: &[u8]) -> Self {
        let mut rest = 0;
        let mut length = 1;
        for byte in &bytes[1..] {
            let class = class(*byte);
            if class & (WORD | JOINT) == 0 {
                break;
            }
            rest |= class;
            length += 1;
        }
        let mut name = length;
        if class(bytes[length - 1]) & WORD == 0 {
            while class(bytes[name - 1]) & WORD == 0 {
                name -= 1;
            }
            let classes = bytes[1..name].iter().map(|byte| class(*byte));
            rest = classes.fold(0, |all, class| all | class);
        }
        Self {
            length,
            name,
            all: class(bytes[0]) | rest,
            rest,
        }
    }
}

/// Returns true for a name with these classes, and with those of its `rest` after the first byte.
fn is_distinctive(all: u8, rest: u8) -> bool {
    all & TELLING != 0 || rest & UPPER != 0 && all & LOWER != 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::*;

    fn names(text: &str) -> Vec<(&str, Option<usize>)> {
        let mut names = Vec::new();
        each_name(text, |name| names.push((name.text, name.within)));
        names
    }

    /// A run as it is defined, byte by byte.
    fn naive_run(bytes: &[u8]) -> (usize, usize, u8, u8) {
        let is_of_run = |byte: &&u8| class(**byte) & (WORD | JOINT) != 0;
        let length = bytes.iter().take_while(is_of_run).count();
        let last = bytes[..length]
            .iter()
            .rposition(|byte| class(*byte) & WORD != 0);
        let name = last.map_or(0, |last| last + 1);
        let classes = |bytes: &[u8]| bytes.iter().fold(0, |all, byte| all | class(*byte));
        (
            length,
            name,
            classes(&bytes[..name]),
            classes(&bytes[1..name]),
        )
    }

    proptest! {
        #[test]
        fn runs_are_as_defined(text in "[a-zA-Z0-9_][a-zA-Z0-9_./:@# -]{0,12}") {
            let run = Run::at(text.as_bytes());
            prop_assert_eq!(
                (run.length, run.name, run.all, run.rest),
                naive_run(text.as_bytes())
            );
        }
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
