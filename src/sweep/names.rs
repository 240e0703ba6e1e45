//! The names of stored content in a text, whatever the text is.

use std::collections::BTreeSet;
use std::mem::take;

use crate::backend::Key;
use crate::store::{FOLDERS, is_swept_segment};

/// A run of characters without an end is looked at in pieces of so many bytes.
const LONGEST_RUN: usize = 64 << 10;
/// So many of them are looked at with the next piece again: more than a name with its path has.
const OVERLAP: usize = 2 << 10;
/// A key has no more segments.
const MAX_SEGMENTS: usize = 16;

/// Every name that some texts may mean, and perhaps more than they do. Its memory follows the number of names.
#[derive(Clone, Default)]
pub(super) struct Names {
    /// In lower case, and the segments from the last to the first: `call_1/trunc/s1/store`. So all that end in one key are
    /// neighbours. In lower case, because on some file systems that is the same content.
    reversed: BTreeSet<String>,
}

impl Names {
    pub(super) fn len(&self) -> usize {
        self.reversed.len()
    }

    /// Takes what `text` names.
    pub(super) fn read(&mut self, text: &str) {
        let mut scanner = Scanner::default();
        scanner.push(text.as_bytes(), self);
        scanner.finish(self);
    }

    /// Whether one of them is `key`, or ends in a slash and `key`.
    pub(super) fn contain(&self, key: &Key) -> bool {
        let key = key.as_str().to_ascii_lowercase();
        let reversed = key.rsplit('/').collect::<Vec<_>>().join("/");
        self.reversed.contains(&reversed) || {
            let longer = reversed + "/";
            self.reversed.range(longer.clone()..).next().is_some_and(|name| name.starts_with(&longer))
        }
    }

    /// Takes the names that a run of the characters of paths may mean.
    fn take_from(&mut self, run: &[u8]) {
        let Ok(run) = std::str::from_utf8(run) else { return };
        let run = run.to_ascii_lowercase();
        let segments: Vec<&str> = run.split('/').collect();
        for (at, pair) in segments.windows(2).enumerate() {
            let [phase, name] = *pair else { continue };
            if FOLDERS.contains(&phase) {
                let before = &segments[..at];
                self.insert(name, phase, before);
                // Somebody who looked into the store may have named the place where it was swept to.
                if let Some((last, before)) = before.split_last()
                    && is_swept_segment(last)
                {
                    self.insert(name, phase, before);
                }
            }
        }
    }

    /// Takes one name, with what may be the end of a sentence behind it and without.
    fn insert(&mut self, name: &str, phase: &str, before: &[&str]) {
        let before = before.iter().rev().take_while(|segment| !segment.is_empty()).take(MAX_SEGMENTS);
        let path = before.fold(phase.to_owned(), |path, segment| path + "/" + segment);
        let mut name = name;
        while !name.is_empty() {
            self.reversed.insert(format!("{name}/{path}"));
            name = match name.strip_suffix(['.', '_', '-']) {
                Some(shorter) => shorter,
                None => return,
            };
        }
    }
}

/// How else a slash is written: in JSON for scripts, in HTML, in URLs. In any case.
const SLASHES: [&[u8]; 5] = [b"\\u002f", b"%2f", b"&#x2f;", b"&#47;", b"&sol;"];

/// Finds names in a text that comes in pieces.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    /// What may be the begin of one of [`SLASHES`].
    pending: Vec<u8>,
    /// Characters of a path, as far as they came.
    run: Vec<u8>,
    /// A backslash came behind them: in JSON, `\/` is a slash.
    is_behind_backslash: bool,
    /// A backslash came before them: in JSON, the first character may be one of an escape.
    is_escaped: bool,
}

impl Scanner {
    pub(super) fn push(&mut self, bytes: &[u8], names: &mut Names) {
        for &byte in bytes {
            if self.pending.is_empty() && !matches!(byte, b'\\' | b'%' | b'&') {
                self.character(byte, names);
                continue;
            }
            self.pending.push(byte);
            // What does not go on as it should is what it is, and the last of it may begin anew.
            while !self.is_begin_of_slash() {
                let first = self.pending.remove(0);
                self.character(first, names);
            }
            if SLASHES.iter().any(|slash| slash.eq_ignore_ascii_case(&self.pending)) {
                self.pending.clear();
                self.character(b'/', names);
            }
        }
    }

    /// Whether what is pending is how an escaped slash begins, or nothing.
    fn is_begin_of_slash(&self) -> bool {
        let begins = |slash: &&[u8]| {
            slash.get(..self.pending.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(&self.pending))
        };
        SLASHES.iter().any(begins)
    }

    /// Takes a character that is no part of an escaped slash.
    fn character(&mut self, byte: u8, names: &mut Names) {
        match byte {
            b'\\' => self.is_behind_backslash = true,
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' | b'/' => {
                if take(&mut self.is_behind_backslash) {
                    match byte {
                        b'/' => {}
                        // Markdown writes `call\_1`: with what came before, and without.
                        b'.' | b'_' | b'-' => names.take_from(&self.run),
                        _ => {
                            self.end(names);
                            self.is_escaped = true;
                        }
                    }
                }
                self.run.push(byte);
                if self.run.len() == LONGEST_RUN {
                    names.take_from(&self.run);
                    self.run.drain(..LONGEST_RUN - OVERLAP);
                }
            }
            _ => self.end(names),
        }
    }

    pub(super) fn finish(mut self, names: &mut Names) {
        for byte in take(&mut self.pending) {
            self.character(byte, names);
        }
        self.end(names);
    }

    fn end(&mut self, names: &mut Names) {
        if self.run.contains(&b'/') {
            names.take_from(&self.run);
            if self.is_escaped {
                // `\n`, and `\u003e`.
                names.take_from(self.run.get(1..).unwrap_or_default());
                names.take_from(self.run.get(5..).unwrap_or_default());
            }
        }
        self.run.clear();
        (self.is_behind_backslash, self.is_escaped) = (false, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Names {
        let mut names = Names::default();
        names.read(text);
        names
    }

    #[track_caller]
    fn names_it(text: &str, key: &str) {
        assert!(names(text).contain(&Key::new(key).unwrap()), "{text:?} does not name {key}");
    }

    #[test]
    fn a_text_names_what_it_may_mean() {
        for text in [
            "s1/trunc/call_1",
            "[offcut/1 truncated 20000B/1000L 9+0 \"memory://t/s1/trunc/call_1\"]",
            r#"{"text":"[offcut/1 … \"/store/s1/trunc/call_1\"]"}"#,
            r#"{\\\"path\\\":\\\"s3:\\/\\/bucket\\/s1\\/trunc\\/call_1\\\"}"#,
            r#""see\ns1/trunc/call_1\nand""#,
            r#""\u003es1/trunc/call_1""#,
            "cat s1/trunc/call_1|head",
            "It is in s1/trunc/call_1.",
            "(s1/trunc/call_1...)",
            "s1/trunc/call_1_",
            "/store/s1/swept/trunc/call_1",
            "/Store/S1/trunc/Call_1",
            "/store/s1/trunc/call_1/",
            "看s1/trunc/call_1。",
            r#""\u002Fstore\u002Fs1\u002ftrunc\u002Fcall_1""#,
            r#"{\"a\":\"s3:\\u002f\\u002fb\\u002fs1\\u002ftrunc\\u002fcall_1\"}"#,
            r"in s1/trunc/call\_1, it says",
            "s1&#x2F;trunc&#x2f;call_1",
            "s1&#47;trunc&sol;call_1",
            "https://x/?path=%2Fstore%2Fs1%2ftrunc%2Fcall_1&more=1",
            r"\\s1/trunc/call_1%",
            "%&s1/trunc/call_1&#x2",
            "a%%2fs1/trunc/call_1",
        ] {
            names_it(text, "s1/trunc/call_1");
        }
        names_it("a/trunc/clear/trunc/x", "clear/trunc/x");
        names_it("a/trunc/clear/trunc/x", "a/trunc/clear");
    }

    #[test]
    fn a_text_names_nothing_else() {
        let all = names("/store/s1/trunc/call_1 and s2/clear/call_12-args");
        for other in ["s2/trunc/call_1", "trunc/call_12", "s1/clear/call_1", "trunc/call", "x/store/s1/trunc/call_1"] {
            assert!(!all.contain(&Key::new(other).unwrap()), "{other}");
        }
        assert_eq!(names("no names at all: trunc, clear/, /trunc/").len(), 0);
        assert!(!names("xs1/trunc/call_1").contain(&Key::new("s1/trunc/call_1").unwrap()));
    }

    #[test]
    fn pieces_and_long_runs_hide_nothing() {
        let text = format!("{}/store/s1%2Ftrunc\\u002Fcall_1 {}", "a/".repeat(100_000), "b".repeat(100_000));
        for piece in [1, 7, 4096, text.len()] {
            let (mut names, mut scanner) = (Names::default(), Scanner::default());
            text.as_bytes().chunks(piece).for_each(|piece| scanner.push(piece, &mut names));
            scanner.finish(&mut names);
            assert!(names.contain(&Key::new("s1/trunc/call_1").unwrap()), "pieces of {piece}");
            assert!(names.len() <= 2, "memory follows the names");
        }
    }
}
