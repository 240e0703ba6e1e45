//! The plain form of a text: what a person sees of it. Escape sequences are left out, a line that a
//! program redrew is in its last state, and encoded data is named by its length.
//!
//! Line feeds stay where they are, so that lines keep their numbers.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::preview::failure_words::{differ_in_digits, is_failure};
use crate::preview::names::{DIGIT, LOWER, UPPER, class};
use crate::preview::pattern::pattern;

/// Maximum length in bytes of a line that is held until its end. A longer one is made plain in parts of this length.
const MAX_OPEN: usize = 128 * 1024;
/// Minimum length in bytes of data in base64, and of such data that has its line for itself.
const MIN_BASE64: usize = 100;
const MIN_LINE_OF_BASE64: usize = 60;
/// Minimum length in digits of hexadecimal data. Digests have up to 128.
const MIN_HEX: usize = 129;
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

/// Something that is not plain.
static NOT_PLAIN: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"[\x00\x08\x1b]|\r[^\n]|(?:[A-Za-z0-9+/_-]|\\/){60}"));

/// An escape sequence, backspaces, NUL, or what may be data. In JSON, the line feeds inside data are
/// escaped, and by some writers the slashes.
static TOKENS: LazyLock<Regex> = LazyLock::new(|| {
    let control = r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-OQ-WYZ`-~]|\x08+|[\x00\x1b]";
    pattern(&format!(r"{control}|(?:[A-Za-z0-9+/_-]|\\[rn/]){{60,}}=*"))
});

/// The ways in which programs begin to draw a line once more.
static REDRAWN: LazyLock<Regex> = LazyLock::new(|| pattern(r"\r|\x1b\[(?:[01]?G|2K)"));

/// Makes a text plain as it arrives, whatever the chunks.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlainText {
    /// The part of the current line that is not passed on yet.
    open: String,
}

impl PlainText {
    /// Appends `text`, and passes on what is settled.
    pub(crate) fn push(&mut self, text: &str, see: &mut impl FnMut(Piece<'_>)) {
        let mut rest = text;
        if !self.open.is_empty() {
            let end = memchr::memchr(b'\n', text.as_bytes()).map_or(text.len(), |feed| feed + 1);
            self.go_on(&text[..end], see);
            rest = &text[end..];
        }
        let (lines, last) = rest.split_at(rest.rfind('\n').map_or(0, |feed| feed + 1));
        let is_short = |line: &str| line.len() < MAX_OPEN;
        let are_short = is_short(lines) || lines.split('\n').all(is_short);
        if are_short && !NOT_PLAIN.is_match(lines) {
            verbatim(lines, see);
        } else {
            for line in lines.split_inclusive('\n') {
                self.go_on(line, see);
            }
        }
        self.go_on(last, see);
    }

    /// Ends the text, or its line before a line feed.
    pub(crate) fn end(&mut self, see: &mut impl FnMut(Piece<'_>)) {
        pass_line(&std::mem::take(&mut self.open), see);
    }

    /// Appends a part of a line, or the rest of it with its line feed.
    fn go_on(&mut self, mut part: &str, see: &mut impl FnMut(Piece<'_>)) {
        while self.open.len() + part.len() > MAX_OPEN {
            let (room, rest) = part.split_at(part.floor_char_boundary(MAX_OPEN - self.open.len()));
            self.open.push_str(room);
            self.end(see);
            part = rest;
        }
        if part.ends_with('\n') && self.open.is_empty() {
            pass_line(part, see);
        } else {
            self.open.push_str(part);
            if part.ends_with('\n') {
                self.end(see);
            }
        }
    }
}

/// Passes on a line: its last state, after earlier ones that report failures.
fn pass_line(line: &str, see: &mut impl FnMut(Piece<'_>)) {
    let body = line.strip_suffix('\n').unwrap_or(line);
    let body = body.strip_suffix('\r').unwrap_or(body);
    let (failed, last) = states(body);
    let mut done = 0;
    for state in failed {
        hidden(state.start - done, see);
        // The blank stands for the return, which is there.
        done = state.end + 1;
        pass(&body[state], see);
        see(Piece {
            text: " ",
            bytes: 1,
        });
    }
    hidden(last.start - done, see);
    pass(&body[last.clone()], see);
    hidden(body.len() - last.end, see);
    verbatim(&line[body.len()..], see);
}

/// Passes on a state of a line.
fn pass(text: &str, see: &mut impl FnMut(Piece<'_>)) {
    let mut done = 0;
    for token in TOKENS.find_iter(text) {
        let (mut start, mut name) = (token.start(), String::new());
        match text.as_bytes()[start] {
            ESCAPE | 0 => {}
            BACKSPACE => {
                let before = &text[done..start];
                let erased = before.char_indices().rev().nth(token.len() - 1);
                start = done + erased.map_or(0, |(at, _)| at);
            }
            _ => match data(token.as_str(), text.trim() == token.as_str()) {
                Some(data) => name = data,
                None => continue,
            },
        }
        verbatim(&text[done..start], see);
        done = token.end();
        see(Piece {
            text: &name,
            bytes: (done - start) as u64,
        });
    }
    verbatim(&text[done..], see);
}

const ESCAPE: u8 = 0x1b;
const BACKSPACE: u8 = 0x08;

fn verbatim(text: &str, see: &mut impl FnMut(Piece<'_>)) {
    if !text.is_empty() {
        let bytes = text.len() as u64;
        see(Piece { text, bytes });
    }
}

fn hidden(bytes: usize, see: &mut impl FnMut(Piece<'_>)) {
    if bytes > 0 {
        let bytes = bytes as u64;
        see(Piece { text: "", bytes });
    }
}

/// The last state of a line that is not blank, after those before it that report a failure, in order, unless they differ
/// from the next one in digits alone.
fn states(line: &str) -> (Vec<Range<usize>>, Range<usize>) {
    let mut end = line.len();
    let whole = 0..end;
    if memchr::memchr2(b'\r', ESCAPE, line.as_bytes()).is_none() {
        return (Vec::new(), whole);
    }
    let redrawn: Vec<(usize, usize)> = REDRAWN
        .find_iter(line)
        .map(|sign| (sign.start(), sign.end()))
        .collect();
    let (mut failed, mut last): (Vec<Range<usize>>, _) = (Vec::new(), None);
    for (before, start) in redrawn.into_iter().rev().chain([(0, 0)]) {
        let state = &line[start..end];
        if let Some(last) = &last {
            let next = failed.last().unwrap_or(last).clone();
            if is_failure(state) && !differ_in_digits(state, &line[next]) {
                failed.push(start..end);
            }
        } else if !is_blank(state) {
            last = Some(start..end);
        }
        end = before;
    }
    failed.reverse();
    (failed, last.unwrap_or(whole))
}

fn is_blank(state: &str) -> bool {
    let mut from = 0;
    let controls = TOKENS.find_iter(state).all(|token| {
        let before = &state[from..token.start()];
        from = token.end();
        before.trim().is_empty() && token.as_str().starts_with(['\0', '\x08', '\x1b'])
    });
    controls && state[from..].trim().is_empty()
}

/// The name of encoded data; `None` for anything else, as a long word or path.
fn data(text: &str, has_line: bool) -> Option<String> {
    let (mut kinds, mut changes, mut last) = (0, 0, 0);
    let mut is_hex = true;
    for byte in text.bytes() {
        let kind = class(byte) & (UPPER | LOWER | DIGIT);
        is_hex &= byte.is_ascii_hexdigit();
        if kind != 0 {
            changes += usize::from(last != kind);
            (kinds, last) = (kinds | kind, kind);
        }
    }
    let is_random = changes * CHANGES >= text.len();
    let is_data = if is_hex {
        text.len() >= MIN_HEX && kinds & DIGIT != 0 && is_random
    } else {
        let least = if has_line {
            MIN_LINE_OF_BASE64
        } else {
            MIN_BASE64
        };
        text.len() >= least && kinds == UPPER | LOWER | DIGIT && is_random
    };
    let kind = if is_hex { "hex" } else { "base64" };
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
            (
                "1%\rERROR: disk full\r2%\r100%\n",
                "ERROR: disk full 100%\n",
            ),
            ("1\rERROR 1\rERROR 2\r3", "ERROR 2 3"),
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
        assert_eq!(plain(&"0a1".repeat(50)), "[hex, 150 B]");
        let lines = base64(76) + "\\n";
        assert_eq!(
            plain(&format!("\"{}\"", lines.repeat(9))),
            "\"[base64, 702 B]\""
        );
        for other in [
            "0a1".repeat(42),
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
