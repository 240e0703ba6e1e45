//! A scanner that finds every value of a JSON text in one pass, in linear time and without
//! recursion.

use crate::json::view::Kind;

/// A value or a key, and its place in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) kind: Kind,
    /// Offset of the first byte; a string's is its opening quote.
    pub(crate) start: u32,
    /// Offset after the last byte.
    pub(crate) end: u32,
    /// For a list or an object, the index after everything inside it. For a string with escapes,
    /// its number among such strings. Otherwise `u32::MAX`.
    pub(crate) link: u32,
}

/// The values of a text, in the order in which they begin. Keys of an object come before their
/// values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans {
    pub(crate) all: Vec<Span>,
    /// Number of strings with escapes.
    pub(crate) escaped: u32,
    /// True if an escape names half of a surrogate pair, so that a string may not be valid Unicode.
    pub(crate) has_surrogates: bool,
}

/// A text that is not JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not JSON: expected {expected} at line {line}, column {column}")]
pub struct InvalidJson {
    line: usize,
    column: usize,
    expected: &'static str,
}

impl InvalidJson {
    fn new(text: &[u8], at: usize, expected: &'static str) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let line_start = memchr::memrchr(b'\n', before).map_or(0, |feed| feed + 1);
        Self {
            line: memchr::memchr_iter(b'\n', before).count() + 1,
            column: before.len() - line_start + 1,
            expected,
        }
    }
}

/// Finds the values of `text` by the strict grammar of RFC 8259; `None` if there are more than about `most` values
/// and keys.
pub(crate) fn scan(text: &str, most: usize) -> Result<Option<Spans>, InvalidJson> {
    let bytes = text.as_bytes();
    if u32::try_from(bytes.len()).is_err() {
        return Err(InvalidJson::new(&[], 0, "at most 4 GiB"));
    }
    let mut scanner = Scanner {
        bytes,
        at: 0,
        spans: Spans::default(),
        most,
        open: NONE,
    };
    match scanner.run() {
        Ok(is_whole) => Ok(is_whole.then_some(scanner.spans)),
        Err(expected) => Err(InvalidJson::new(bytes, scanner.at, expected)),
    }
}

/// No link, and the value of `open` while no list or object is open.
const NONE: u32 = u32::MAX;

struct Scanner<'t> {
    bytes: &'t [u8],
    at: usize,
    spans: Spans,
    /// Number of values and keys after which it stops.
    most: usize,
    /// The innermost open list or object. While one is open, its link is the container around it.
    open: u32,
}

type Expected = &'static str;

// Offsets fit: `scan` refuses longer texts, and no text has more values than bytes.
#[expect(clippy::cast_possible_truncation, reason = "see above")]
impl Scanner<'_> {
    /// Returns false if there are too many values.
    fn run(&mut self) -> Result<bool, Expected> {
        loop {
            if self.spans.all.len() >= self.most {
                return Ok(false);
            }
            self.skip_space();
            // A value begins here.
            match self.peek() {
                Some(b'{') => {
                    self.begin(Kind::Object);
                    if self.peek() != Some(b'}') {
                        self.key()?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.begin(Kind::Array);
                    if self.peek() != Some(b']') {
                        continue;
                    }
                }
                Some(b'"') => self.string()?,
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b'n') => self.word(b"null", Kind::Null)?,
                Some(b't') => self.word(b"true", Kind::Bool)?,
                Some(b'f') => self.word(b"false", Kind::Bool)?,
                _ => return Err("a value"),
            }
            // A value ended here, or its container does.
            loop {
                self.skip_space();
                let Some(open) = self.spans.all.get(self.open as usize) else {
                    return if self.at == self.bytes.len() {
                        Ok(true)
                    } else {
                        Err("the end of the text")
                    };
                };
                let is_object = open.kind == Kind::Object;
                match (self.peek(), is_object) {
                    (Some(b','), _) => {
                        self.at += 1;
                        if is_object {
                            self.skip_space();
                            self.key()?;
                        }
                        break;
                    }
                    (Some(b'}'), true) | (Some(b']'), false) => self.end(),
                    (_, true) => return Err("`,` or `}`"),
                    (_, false) => return Err("`,` or `]`"),
                }
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn push(&mut self, kind: Kind, start: usize, link: u32) {
        self.spans.all.push(Span {
            kind,
            start: start as u32,
            end: self.at as u32,
            link,
        });
    }

    /// Opens a list or an object and moves to the first thing inside it.
    fn begin(&mut self, kind: Kind) {
        let index = self.spans.all.len() as u32;
        self.push(kind, self.at, self.open);
        self.open = index;
        self.at += 1;
        self.skip_space();
    }

    fn end(&mut self) {
        self.at += 1;
        let next = self.spans.all.len() as u32;
        if let Some(open) = self.spans.all.get_mut(self.open as usize) {
            self.open = open.link;
            open.link = next;
            open.end = self.at as u32;
        }
    }

    /// Reads a key and its colon.
    fn key(&mut self) -> Result<(), Expected> {
        if self.peek() != Some(b'"') {
            return Err("a key in quotes");
        }
        self.string()?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err("`:`");
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Result<(), Expected> {
        let start = self.at;
        self.at += 1;
        let mut link = NONE;
        loop {
            let rest = &self.bytes[self.at..];
            self.at += rest.iter().position(is_special).unwrap_or(rest.len());
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    link = self.spans.escaped;
                    self.escape()?;
                }
                Some(_) => return Err("an escaped control character"),
                None => return Err("a closing `\"`"),
            }
        }
        self.at += 1;
        self.spans.escaped += u32::from(link != NONE);
        self.push(Kind::String, start, link);
        Ok(())
    }

    fn escape(&mut self) -> Result<(), Expected> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => match self.bytes.get(self.at + 2..self.at + 6) {
                Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => {
                    let is_surrogate = matches!(digits[0], b'd' | b'D') && digits[1] >= b'8';
                    self.spans.has_surrogates |= is_surrogate;
                    self.at += 6;
                }
                _ => return Err("`\\u` and four hexadecimal digits"),
            },
            _ => return Err("a valid JSON escape"),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Expected> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        self.push(Kind::Number, start, NONE);
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Expected> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at > start {
            Ok(())
        } else {
            Err("a digit")
        }
    }

    fn word(&mut self, word: &[u8], kind: Kind) -> Result<(), Expected> {
        let start = self.at;
        if self.bytes.get(start..start + word.len()) != Some(word) {
            return Err("a value");
        }
        self.at += word.len();
        self.push(kind, start, NONE);
        Ok(())
    }
}

/// Returns true for what a string can't hold unescaped.
fn is_special(byte: &u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..0x20)
}
