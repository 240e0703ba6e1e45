//! The plain form of a text: what a person sees of it. Escape sequences are left out, also of strings of JSON, a line that a
//! program redrew is in its last state, and encoded data is named by its length.
//!
//! Line feeds stay where they are, so that lines keep their numbers.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::preview::pattern::pattern;

/// Minimum length in bytes of data in base64, and of such data that has its line for itself.
const MIN_BASE64: usize = 100;
const MIN_LINE_OF_BASE64: usize = 60;
/// Minimum length of data in base64 that does not look random: no path is so long.
const MIN_LONG: usize = 4096;
/// Signs around data in a line of source code.
const AROUND: [char; 6] = [' ', '\t', '"', '\'', ',', ';'];
/// One in so many characters of data is of another class than the one before it. In words it is one in
/// five and fewer, in random data two in three.
const CHANGES: usize = 4;

/// A text in its plain form.
#[derive(Clone, Debug)]
pub(crate) struct Plain<'t> {
    pub(crate) text: Cow<'t, str>,
    /// The offsets in it at which bytes of the text are not shown, in order, and their numbers.
    pub(crate) hidden: Vec<(usize, u64)>,
    /// True if its last line goes on elsewhere.
    pub(crate) is_cut: bool,
}

/// Something that is not plain.
static NOT_PLAIN: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"[\x00\x08\x1b]|\r[^\n]|(?:[A-Za-z0-9+/_-]|\\/){56}|\\u001[bB]"));

/// The beginning of a line of JSON.
static JSON: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[ \t\[{]*\x22[^\x22\\]*\x22[ \t]*:"));

/// Encoded data. In JSON, the line feeds inside are escaped, and by some writers the slashes.
const DATA: &str = r"(?:[A-Za-z0-9+/_-]|\\[rn/]){56,}=*";

/// An escape sequence, backspaces, NULs, or what may be data.
static IN_TEXT: LazyLock<Regex> = LazyLock::new(|| {
    let control = r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-OQ-WYZ`-~]|\x08+|\x00+|\x1b";
    pattern(&format!("{control}|{DATA}"))
});

/// The same in strings of JSON, where they are escaped. A backslash that is escaped itself begins none.
static IN_JSON: LazyLock<Regex> = LazyLock::new(|| {
    let control = r"\\\\|\\u001[bB](?:\[[0-?]*[@-~]|\][^\\\x22]*(?:\\u0007|\\u001[bB]\\\\)|\([0-9A-Z]|[78=>])?";
    pattern(&format!("{control}|{DATA}"))
});

/// The ways in which programs begin to draw a line once more.
static REDRAWN: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\r|\x1b(?:8|\[(?:[01]?G|2K|[0-9]{2,}D|u))"));

impl<'t> Plain<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        let mut plain = Self {
            text: text.into(),
            hidden: Vec::new(),
            is_cut: false,
        };
        if NOT_PLAIN.is_match(text) {
            plain.text = String::with_capacity(text.len()).into();
            for line in text.split_inclusive('\n') {
                plain.push_line(line);
            }
        }
        plain
    }

    /// Appends a line in its last state.
    fn push_line(&mut self, line: &str) {
        if !NOT_PLAIN.is_match(line) {
            return self.push(line, line.len());
        }
        let body = line.strip_suffix('\n').unwrap_or(line);
        let body = body.strip_suffix('\r').unwrap_or(body);
        // JSON itself has no such signs, only its strings have, escaped.
        if !body.contains(['\r', '\x1b']) && JSON.is_match(body) {
            self.push_state(body, &IN_JSON);
        } else {
            let last = last_state(body);
            self.push("", last.start);
            self.push_state(&body[last.clone()], &IN_TEXT);
            self.push("", body.len() - last.end);
        }
        let end = &line[body.len()..];
        self.push(end, end.len());
    }

    /// Appends a state of a line.
    fn push_state(&mut self, text: &str, not_plain: &Regex) {
        let (line, mut done) = (text.trim_matches(AROUND), 0);
        for token in not_plain.find_iter(text) {
            let (before, sign) = (&text[done..token.start()], token.as_str());
            let (mut kept, mut name) = (before, String::new());
            if sign.starts_with('\x08') {
                let erased = before.char_indices().rev().nth(sign.len() - 1);
                kept = &before[..erased.map_or(0, |(at, _)| at)];
            } else if sign.starts_with('\0') && before.len() > 1 {
                // It separates words, but not the letters of UTF-16.
                name.push(' ');
            } else if !is_control(sign) {
                match data(sign, sign == line) {
                    Some(data) => name = data,
                    None => continue,
                }
            }
            self.push(kept, kept.len());
            self.push(&name, before.len() - kept.len() + sign.len());
            done = token.end();
        }
        self.push(&text[done..], text.len() - done);
    }

    /// Appends what is shown in place of a number of bytes, which are no fewer.
    fn push(&mut self, shown: &str, bytes: usize) {
        let hidden = (bytes - shown.len()) as u64;
        match self.hidden.last_mut() {
            Some((at, all)) if *at == self.text.len() => *all += hidden,
            _ if hidden > 0 => self.hidden.push((self.text.len(), hidden)),
            _ => {}
        }
        self.text.to_mut().push_str(shown);
    }
}

/// The last state of a line that is not blank.
fn last_state(line: &str) -> Range<usize> {
    let ends = REDRAWN.find_iter(line).map(|sign| sign.range());
    let (mut start, mut last) = (0, 0..line.len());
    for end in ends.chain(std::iter::once(line.len()..line.len())) {
        if !is_blank(&line[start..end.start]) {
            last = start..end.start;
        }
        start = end.end;
    }
    last
}

fn is_control(token: &str) -> bool {
    token.starts_with(['\0', '\x08', '\x1b']) || token.starts_with(r"\u")
}

fn is_blank(state: &str) -> bool {
    let mut tokens = IN_TEXT.find_iter(state);
    let are_controls = tokens.all(|token| is_control(token.as_str()));
    are_controls && IN_TEXT.replace_all(state, "").trim().is_empty()
}

/// The name of encoded data, which may be a whole line; `None` for anything else, as a long word or path.
fn data(text: &str, is_line: bool) -> Option<String> {
    let count = |is: fn(&u8) -> bool| text.bytes().filter(is).count();
    let (digits, capitals) = (count(u8::is_ascii_digit), count(u8::is_ascii_uppercase));
    let has_case = capitals > 0 && count(u8::is_ascii_lowercase) > 0;
    let least = if is_line {
        MIN_LINE_OF_BASE64
    } else {
        MIN_BASE64
    };
    let is_random = digits > 0 && changes(text) * CHANGES >= text.len();
    let is_data = text.len() >= least && has_case && (is_random || text.len() >= MIN_LONG);
    is_data.then(|| format!("[base64, {} B]", text.len()))
}

/// Number of the capitals, small letters and digits in a text that follow one of another class, or begin.
fn changes(text: &str) -> usize {
    let class = |byte: u8| (byte.is_ascii_digit(), byte.is_ascii_uppercase());
    let classes = text.bytes().filter(u8::is_ascii_alphanumeric).map(class);
    let mut last = None;
    classes
        .filter(|class| last.replace(*class) != Some(*class))
        .count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, prop_assert_eq, prop_oneof, proptest};

    use super::*;

    fn plain(text: &str) -> String {
        Plain::of(text).text.into_owned()
    }

    fn base64(length: usize) -> String {
        // Digits of e would do; any sequence without a pattern does.
        let signs = b"Ab3dEf5Gh+jK7mNoP9qRs/TuV1wXyZ2cL4";
        let sign = |at: usize| char::from(signs[(at * at + at / 7) % signs.len()]);
        (0..length).map(sign).collect()
    }

    #[test]
    fn escapes_leave_no_trace() {
        for (text, expected) in [
            ("\x1b[1;31mFAILED\x1b[0m a", "FAILED a"),
            (
                "\x1b]0;title\x07$ \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\",
                "$ link",
            ),
            ("\x1b(Ba\x1b[?25lb\x1b7c\0d", "abcd"),
            ("N\x08NA\x08AME 10%\x08\x08\x0820%", "NAME 20%"),
            ("an end\x1b", "an end"),
            ("a.rs\0b.rs\0\0c.rs\0", "a.rs b.rs c.rs "),
            (
                r#"{"out":"\u001b[1;31mFAILED\u001b[0m a\u001B(B\n\\u001b[0m"}"#,
                r#"{"out":"FAILED a\n\\u001b[0m"}"#,
            ),
            (r#"RED="\u001b[31m""#, r#"RED="\u001b[31m""#),
            (" \"a\": \x1b[1m\"b\"\r \"a\": \"c\"", " \"a\": \"c\""),
            ("\x1b]0;no end\nnext", "]0;no end\nnext"),
        ] {
            assert_eq!(plain(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_redrawn_line_is_in_its_last_state() {
        for (text, expected) in [
            ("10%\r20%\r100%\ndone\n", "100%\ndone\n"),
            ("\r1\r2\r3", "3"),
            ("1\r2\r   \r\n", "2\r\n"),
            ("1\r2\x1b[K\r\x1b[0K\nx", "2\nx"),
            ("one\x1b[1Gtwo\x1b[2K\x1b[0Gthree", "three"),
            ("a\r\nb\r\n", "a\r\nb\r\n"),
            ("1%\rERROR: disk full\r2%\r100%\n", "100%\n"),
            ("one\x1b[80Dtwo\x1b[utwo\x1b8three", "three"),
        ] {
            assert_eq!(plain(text), expected, "{text:?}");
        }
        let states: String = (0..4_000).map(|n| format!("\rstep {n} of 4000")).collect();
        assert_eq!(plain(&states), "step 3999 of 4000");
    }

    #[test]
    fn data_is_named_by_its_length() {
        let data = base64(30_000);
        let text = format!("<img src=\"data:image/png;base64,{data}\"> due: 129");
        assert_eq!(
            plain(&text),
            "<img src=\"data:image/png;base64,[base64, 30000 B]\"> due: 129"
        );
        assert_eq!(plain(&base64(60)), "[base64, 60 B]");
        let lines = base64(76) + "\\n";
        assert_eq!(
            plain(&format!("\"{}\"", lines.repeat(9))),
            "\"[base64, 702 B]\""
        );
        assert_eq!(
            plain(&format!("iVBORw{}", "A".repeat(5_000))),
            "[base64, 5006 B]"
        );
        assert_eq!(
            plain(&format!("  \"{}\",\n", base64(76))),
            "  \"[base64, 76 B]\",\n"
        );
        for other in [
            "0a1".repeat(42),
            format!("{}\n{}\n", "0a1".repeat(20), "0a1".repeat(30)).repeat(9),
            "/home/Jane/projects/part2/src/and/so/on/and/so/forth/it/goes\n".repeat(20),
            "=".repeat(200),
            "/home/Jane/projects/part2/src".repeat(9),
            "a-title-of-2-Words-and-more-".repeat(9),
            format!("key {}", base64(90)),
        ] {
            assert_eq!(plain(&other), other);
        }
    }

    /// Texts of all that is not plain, some of it too long to be held.
    fn texts() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            4 => "[a-z€ ]{0,9}",
            1 => (0usize..90_000).prop_map(base64),
            1 => (0usize..90_000).prop_map(|length| "a word ".repeat(length / 7)),
            1 => "[\\x08\\x00\\x1b\r]{1,2}",
            1 => "\x1b\\[[0-9]{0,2}[KGm]",
            1 => Just("\x1b]0;t\x07".to_owned()),
            1 => Just("{\"a\":\"\\r1\\u001b[1m".to_owned()),
            1 => Just("0a1".repeat(20) + "\n"),
            2 => Just("\n".to_owned()),
            1 => Just("\r\n".to_owned()),
        ];
        proptest::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn every_byte_is_shown_or_hidden(text in texts()) {
            let made = Plain::of(&text);
            let hidden: u64 = made.hidden.iter().map(|(_, bytes)| bytes).sum();
            prop_assert_eq!(made.text.len() as u64 + hidden, text.len() as u64);
            let feeds = |text: &str| crate::preview::text::lines::count_feeds(text.as_bytes());
            prop_assert_eq!(feeds(&made.text), feeds(&text));
        }
    }
}
