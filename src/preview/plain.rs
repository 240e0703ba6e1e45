//! The plain form of a text: what a person sees of it. Escape sequences are left out, a line that a
//! program redrew is in its last state, and encoded data is named by its length. Strings of JSON have such lines too.
//!
//! Line feeds stay where they are, so that lines keep their numbers.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Match, Regex};

use crate::preview::names::{DIGIT, LOWER, UPPER, class};
use crate::preview::pattern::pattern;
use crate::preview::signs::differ_in_digits;

/// Maximum length in bytes of a line that is held until its end. A longer one is made plain in parts of this length.
const MAX_OPEN: usize = 128 * 1024;
/// Minimum length in bytes of data in base64, and of such data that has its line for itself.
const MIN_BASE64: usize = 100;
const MIN_LINE_OF_BASE64: usize = 60;
/// Minimum length in digits of hexadecimal data. Digests have up to 128.
const MIN_HEX: usize = 129;
/// Minimum length of data in base64 that does not look random: no path is so long.
const MIN_LONG: usize = 4096;
/// Returns in a text are ends of lines if it has so many, and one in so many of its lines is shorter than the one before.
const MIN_RETURNS: usize = 8;
const RETURNS: usize = 4;
/// Signs around data in a line of source code.
const AROUND: [char; 6] = [' ', '\t', '"', '\'', ',', ';'];
/// One in so many characters of data is of another class than the one before it. In words it is one in
/// five and fewer, in random data two in three.
const CHANGES: usize = 4;

/// A part of a text, in its plain form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'t> {
    pub(crate) text: &'t str,
    /// Number of bytes that it stands for. If they are more than its own, it has no line feed.
    pub(crate) bytes: u64,
}

impl<'t> Piece<'t> {
    /// A part that is plain.
    pub(crate) fn plain(text: &'t str) -> Self {
        let bytes = text.len() as u64;
        Self { text, bytes }
    }

    /// A part of this many bytes that shows nothing.
    fn hidden(bytes: usize) -> Self {
        let (text, bytes) = ("", bytes as u64);
        Self { text, bytes }
    }
}

/// Something that is not plain.
static NOT_PLAIN: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"[\x00\x08\x1b]|\r[^\n]|(?:[A-Za-z0-9+/_-]|\\/){56}|\\u001[bB]|\\r(?:[^\\\x22]|\\[^n])",
    )
});

/// The beginning of a line of JSON.
static JSON: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[ \t\[{]*\x22[^\x22\\]*\x22[ \t]*:"));

/// An escaped sign in a string of JSON, or an end of the string.
static ENDS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\\.|\x22"));

/// The signs in a line that are not plain.
struct NotPlain {
    /// An escape sequence, backspaces, NULs, or what may be data. In JSON, the line feeds inside data are escaped, and by
    /// some writers the slashes.
    tokens: Regex,
    /// The ways in which programs begin to draw a line once more, and the least number of them. In JSON, fewer may be of a
    /// pattern: `[^\r\n]`.
    redrawn: Regex,
    least: usize,
}

static IN_TEXT: LazyLock<NotPlain> = LazyLock::new(|| {
    NotPlain::new(
        r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-OQ-WYZ`-~]|\x08+|\x00+|\x1b",
        r"\r|\x1b(?:8|\[(?:[01]?G|2K|[0-9]{2,}D|u))",
        1,
    )
});

/// The same in strings of JSON, where they are escaped. A backslash that is escaped itself begins none.
static IN_JSON: LazyLock<NotPlain> = LazyLock::new(|| {
    NotPlain::new(
        r"\\\\|\\u001[bB](?:\[[0-?]*[@-~]|\][^\\\x22]*(?:\\u0007|\\u001[bB]\\\\)|\([0-9A-Z]|[78=>])?",
        r"\\\\|\\r|\\u001[bB](?:8|\[(?:[01]?G|2K|[0-9]{2,}D|u))",
        4,
    )
});

impl NotPlain {
    fn new(control: &str, redrawn: &str, least: usize) -> Self {
        let data = r"(?:[A-Za-z0-9+/_-]|\\[rn/]){56,}=*";
        Self {
            tokens: pattern(&format!("{control}|{data}")),
            redrawn: pattern(redrawn),
            least,
        }
    }
}

/// Makes a text plain as it arrives, whatever the chunks.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlainText {
    /// The part of the current line that is not passed on yet.
    open: String,
    /// True if the part of it that is passed on is of JSON.
    is_json: bool,
}

impl PlainText {
    /// Appends `text`, and passes on what is settled.
    pub(crate) fn push(&mut self, text: &str, see: &mut impl FnMut(Piece<'_>)) {
        for mut part in text.split_inclusive('\n') {
            if self.open.is_empty() && part.len() <= MAX_OPEN && part.ends_with('\n') {
                self.pass_line(part, see);
                continue;
            }
            while self.open.len() + part.len() > MAX_OPEN {
                let room = part.floor_char_boundary(MAX_OPEN - self.open.len());
                self.open.push_str(&part[..room]);
                self.end(see);
                part = &part[room..];
            }
            self.open.push_str(part);
            if part.ends_with('\n') {
                self.end(see);
            }
        }
    }

    /// Ends the text, or its line before a line feed.
    pub(crate) fn end(&mut self, see: &mut impl FnMut(Piece<'_>)) {
        let line = std::mem::take(&mut self.open);
        self.pass_line(&line, see);
    }

    /// Passes on a line in its last state. In JSON, the lines in strings have states.
    fn pass_line(&mut self, line: &str, see: &mut impl FnMut(Piece<'_>)) {
        let body = line.strip_suffix('\n').unwrap_or(line);
        if body.len() < line.len() && !self.is_json && !NOT_PLAIN.is_match(line) {
            return see(Piece::plain(line));
        }
        let body = body.strip_suffix('\r').unwrap_or(body);
        // JSON itself has no such signs, only its strings have, escaped.
        let is_drawn = memchr::memchr2(b'\r', 0x1b, body.as_bytes()).is_some();
        let is_json = !is_drawn && (self.is_json || JSON.is_match(body));
        self.is_json = is_json && !line.ends_with('\n');
        let not_plain: &NotPlain = if is_json { &IN_JSON } else { &IN_TEXT };
        let pass = |text: &str, see: &mut _| pass(text, not_plain, see);
        let parts = if not_plain.redrawn.is_match(body) {
            parts(body, is_json)
        } else {
            Vec::new()
        };
        let mut done = 0;
        for part in parts {
            let text = &body[part.clone()];
            let last = last_state(text, not_plain);
            if last.len() == text.len() {
                continue;
            }
            pass(&body[done..part.start], see);
            see(Piece::hidden(last.start));
            pass(&text[last.clone()], see);
            see(Piece::hidden(text.len() - last.end));
            done = part.end;
        }
        pass(&body[done..], see);
        see(Piece::plain(&line[body.len()..]));
    }
}

/// The parts of a line that may be redrawn each for itself: of JSON the lines in its strings, without the return of a line
/// that ends.
fn parts(line: &str, is_json: bool) -> Vec<Range<usize>> {
    let is_end = |sign: &Match<'_>| is_json && matches!(sign.as_str(), "\"" | r"\n");
    let ends = ENDS.find_iter(line).filter(is_end).map(|end| end.range());
    let mut start = 0;
    ends.chain(std::iter::once(line.len()..line.len()))
        .map(|end| {
            let from = std::mem::replace(&mut start, end.end);
            let part = &line[from..end.start];
            from..from + part.strip_suffix(r"\r").unwrap_or(part).len()
        })
        .collect()
}

/// Passes on a state of a line.
fn pass(text: &str, not_plain: &NotPlain, see: &mut impl FnMut(Piece<'_>)) {
    let mut done = 0;
    for token in not_plain.tokens.find_iter(text) {
        let (mut start, mut name) = (token.start(), String::new());
        match text.as_bytes()[start] {
            // It separates words, but not the letters of UTF-16.
            0 if start > done + 1 => name.push(' '),
            _ if is_control(token.as_str()) => {
                if text.as_bytes()[start] == BACKSPACE {
                    let before = &text[done..start];
                    let erased = before.char_indices().rev().nth(token.len() - 1);
                    start = done + erased.map_or(0, |(at, _)| at);
                }
            }
            _ => {
                let place = match text.trim_matches(AROUND) == token.as_str() {
                    true => DataPlace::Line,
                    false if text[..start].ends_with("base64,") => DataPlace::Named,
                    false => DataPlace::Within,
                };
                match data(token.as_str(), place) {
                    Some(data) => name = data,
                    None => continue,
                }
            }
        }
        see(Piece::plain(&text[done..start]));
        done = token.end();
        see(Piece {
            text: &name,
            bytes: (done - start) as u64,
        });
    }
    see(Piece::plain(&text[done..]));
}

const BACKSPACE: u8 = 0x08;

/// The last state of a line that is not blank.
fn last_state(line: &str, not_plain: &NotPlain) -> Range<usize> {
    let mut end = line.len();
    let whole = 0..end;
    let signs = not_plain.redrawn.find_iter(line);
    let signs = signs.filter(|sign| sign.as_str() != r"\\");
    let redrawn: Vec<(usize, usize)> = signs.map(|sign| (sign.start(), sign.end())).collect();
    if redrawn.len() < not_plain.least || are_lines(line, &redrawn) {
        return whole;
    }
    for (before, start) in redrawn.into_iter().rev().chain([(0, 0)]) {
        if !is_blank(&line[start..end], not_plain) {
            return start..end;
        }
        end = before;
    }
    whole
}

/// Returns true if these are lines that end with a return: many are shorter than the one before, of which a program that
/// draws a line again would leave the end.
fn are_lines(text: &str, ends: &[(usize, usize)]) -> bool {
    let starts = [0].into_iter().chain(ends.iter().map(|(_, start)| *start));
    let lines = starts.zip(ends.iter().map(|(end, _)| *end).chain([text.len()]));
    let lines: Vec<&str> = lines.map(|(start, end)| &text[start..end]).collect();
    let is_shorter = |pair: &&[&str]| {
        let (one, next) = (pair[0].trim_end(), pair[1]);
        !next.is_empty() && next.len() < one.len() && !differ_in_digits(one, next)
    };
    let shorter = lines.windows(2).filter(is_shorter).count();
    lines.len() >= MIN_RETURNS && shorter * RETURNS >= lines.len() && !text.contains('\x1b')
}

fn is_control(token: &str) -> bool {
    token.starts_with(['\0', '\x08', '\x1b']) || token.starts_with(r"\u")
}

fn is_blank(state: &str, not_plain: &NotPlain) -> bool {
    let mut from = 0;
    let controls = not_plain.tokens.find_iter(state).all(|token| {
        let before = &state[from..token.start()];
        from = token.end();
        before.trim().is_empty() && is_control(token.as_str())
    });
    controls && state[from..].trim().is_empty()
}

/// The place of what may be data.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DataPlace {
    Within,
    /// After its name.
    Named,
    /// A line for itself.
    Line,
}

/// The name of encoded data; `None` for anything else, as a long word or path.
fn data(text: &str, place: DataPlace) -> Option<String> {
    let (mut kinds, mut changes, mut last) = (0, 0, 0);
    for byte in text.bytes() {
        let kind = class(byte) & (UPPER | LOWER | DIGIT);
        if kind != 0 {
            changes += usize::from(last != kind);
            (kinds, last) = (kinds | kind, kind);
        }
    }
    let (kind, is_data) = if text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let has_letters = kinds & DIGIT != 0 && kinds != DIGIT;
        ("hex", text.len() >= MIN_HEX && has_letters)
    } else {
        let least = match place {
            DataPlace::Line => MIN_LINE_OF_BASE64,
            DataPlace::Named | DataPlace::Within => MIN_BASE64,
        };
        let is_long = text.len() >= MIN_LONG && kinds & (UPPER | LOWER) == UPPER | LOWER;
        let is_random = changes * CHANGES >= text.len();
        let is_mixed = is_random && kinds == UPPER | LOWER | DIGIT;
        let is_told = is_long || is_mixed || place == DataPlace::Named;
        ("base64", text.len() >= least && is_told)
    };
    is_data.then(|| format!("[{kind}, {} B]", text.len()))
}

/// The plain form of a whole text.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if !NOT_PLAIN.is_match(text) {
        return Cow::Borrowed(text);
    }
    let mut all = String::with_capacity(text.len());
    let mut plain = PlainText::default();
    plain.push(text, &mut |piece| all.push_str(piece.text));
    plain.end(&mut |piece| all.push_str(piece.text));
    Cow::Owned(all)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, prop_assert_eq, prop_oneof, proptest};

    use super::*;

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
            (
                r#" "a": "\r1 \r2\r3\r4\r\n5\r\n", "b": "C:\\run\r4 error: no\r5\r6\r7", "c": "[^\r\n\r]""#,
                r#" "a": "4\r\n5\r\n", "b": "7", "c": "[^\r\n\r]""#,
            ),
        ] {
            assert_eq!(plain(text), expected, "{text:?}");
        }
        let states: String = (0..4_000).map(|n| format!("\rstep {n} of 4000")).collect();
        assert_eq!(plain(&states), "step 3999 of 4000");
        let lines = "id,name\r1,Ada\r2,Konrad\r3,Bo\r4,Grace\r5,Alan\r6,Edsger\r7,Tony";
        assert_eq!(plain(lines), lines);
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
        assert_eq!(plain(&"0a1".repeat(50)), "[hex, 150 B]");
        let lines = base64(76) + "\\n";
        assert_eq!(
            plain(&format!("\"{}\"", lines.repeat(9))),
            "\"[base64, 702 B]\""
        );
        let low = format!("data:image/bmp;base64,{}", "/".repeat(200));
        assert_eq!(plain(&low), "data:image/bmp;base64,[base64, 200 B]");
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
        fn it_does_not_depend_on_the_chunks(text in texts(), cuts in proptest::collection::vec(0usize..200_000, 0..9)) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| text.floor_char_boundary(cut)).collect();
            cuts.sort_unstable();
            let (mut all, mut bytes, mut from) = (String::new(), 0, 0);
            let mut see = |piece: Piece<'_>| {
                all.push_str(piece.text);
                bytes += piece.bytes;
                assert!(piece.bytes == piece.text.len() as u64 || !piece.text.contains('\n'));
            };
            let mut made = PlainText::default();
            for cut in cuts.into_iter().chain([text.len()]) {
                made.push(&text[from..cut], &mut see);
                from = cut;
            }
            made.end(&mut see);
            prop_assert_eq!(bytes, text.len() as u64);
            prop_assert_eq!(&all, &plain(&text));
            prop_assert_eq!(crate::preview::text::lines::count_feeds(all.as_bytes()), crate::preview::text::lines::count_feeds(text.as_bytes()));
        }
    }
}
