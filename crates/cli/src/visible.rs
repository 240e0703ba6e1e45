//! Text of others, made safe for a terminal, or for a shell.

/// Shows an untrusted name on one line, without control characters.
pub(crate) fn visible(name: &str) -> String {
    escaped(name, is_hidden)
}

/// Makes a text safe for a terminal: line feeds and tabs stay, other control characters are
/// escaped.
pub(crate) fn visible_text(text: &str) -> String {
    escaped(text, |c| is_hidden(c) && !matches!(c, '\n' | '\t'))
}

/// Writes a word as a shell reads it, for a command that is to be copied.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        match is_escaped(c) {
            true => shown.extend(c.escape_debug()),
            false => shown.push(c),
        }
    }
    shown
}

/// Returns true if a terminal may obey `c` instead of showing it, or if `c` changes the order of
/// the text.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h3_a_terminal_gets_no_control_characters() {
        let text = "a\tb\r\n\u{1b}[2J\u{7}\u{9b}31m\u{202e}é字\n";
        assert_eq!(
            visible_text(text),
            "a\tb\\r\n\\u{1b}[2J\\u{7}\\u{9b}31m\\u{202e}é字\n"
        );
        assert_eq!(visible("grep\n\u{1b}[31m"), "grep\\n\\u{1b}[31m");
    }
}
