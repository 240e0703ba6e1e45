//! The distinctive names in a text: what models use next mostly has a name.
//!
//! A name is a run of letters, digits and `_`, or several such runs joined by `. / : @ # -`, of at
//! least six characters. It is distinctive if it contains a digit, `_`, `/` or `.`, or both a
//! lower-case letter and a capital after its first character.

/// Minimum length of a name in bytes.
const MIN_NAME: usize = 6;
/// Maximum length of a name in bytes. A longer run is data rather than a name.
const MAX_NAME: usize = 99;
/// Signs that join words to a name.
const JOINTS: [char; 6] = ['.', '/', ':', '@', '#', '-'];

/// Passes every distinctive name to `see`, a joined name before its parts, which are told by `true`. Linear.
pub(crate) fn each_name<'t>(text: &'t str, mut see: impl FnMut(&'t str, bool)) {
    let is_of_name =
        |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || JOINTS.contains(&sign);
    for run in text.split(|sign| !is_of_name(sign)) {
        let name = run.trim_matches(JOINTS);
        // A part has no sign that the whole has not, so it is no more distinctive.
        if name.len() < MIN_NAME || !is_distinctive(name) {
            continue;
        }
        let is_name = name.len() <= MAX_NAME;
        if is_name {
            see(name, false);
        }
        let parts = name.split(JOINTS).filter(|part| part.len() < name.len());
        let parts = parts.filter(|part| (MIN_NAME..=MAX_NAME).contains(&part.len()));
        for part in parts.filter(|part| is_distinctive(part)) {
            see(part, is_name);
        }
    }
}

fn is_distinctive(name: &str) -> bool {
    let is_telling = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'_' | b'.' | b'/');
    let is_mixed = || {
        let has_capital = name.bytes().skip(1).any(|byte| byte.is_ascii_uppercase());
        has_capital && name.bytes().any(|byte| byte.is_ascii_lowercase())
    };
    name.bytes().any(is_telling) || is_mixed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<(&str, bool)> {
        let mut names = Vec::new();
        each_name(text, |name, is_part| names.push((name, is_part)));
        names
    }

    #[test]
    fn names_are_told_from_words() {
        assert_eq!(names("a plain sentence, HTTPSERVER, foo-bars"), []);
        assert_eq!(
            names("-- parse_all() 'fooBar' Foobar 6x1"),
            [("parse_all", false), ("fooBar", false)]
        );
        assert_eq!(
            names("see src/read_back.rs: done"),
            [("src/read_back.rs", false), ("read_back", true)],
        );
        assert_eq!(names("中文 user_name中文"), [("user_name", false)]);
        assert_eq!(names(&"x1".repeat(50)), []);
    }
}
