//! Finds names of stored content in any text.
//!
//! A text is searched in linear time. Each name is handed on with the path before it: in lower case,
//! because some file systems ignore case, and without punctuation at its end.

use std::collections::{HashSet, VecDeque};

use crate::backend::Key;

use super::spelling::{is_of_path, is_part, read_layer};

/// Number of layers of other spellings that are read.
const LAYERS: usize = 4;
/// A stretch without an end is searched in parts of this many bytes.
const LONGEST_STRETCH: usize = 128 << 10;
/// Number of bytes of a part that are searched again with the next one: more than a name takes in
/// any spelling that is promised.
const OVERLAP: usize = 32 << 10;
/// Maximum number of segments before a name.
const MAX_BEFORE: usize = Key::MAX_SEGMENTS - 1;

/// Every name that some texts may hold, and perhaps more. Takes memory once for each name.
#[derive(Clone, Default)]
pub(super) struct Names(HashSet<Box<[u8]>>);

impl Names {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds what `text` names.
    pub(super) fn read(&mut self, text: &str) {
        let mut scanner = NameScanner::default();
        scanner.push(text.as_bytes(), &mut |name| self.take(name));
        scanner.finish(&mut |name| self.take(name));
    }

    /// Adds a name that a [`NameScanner`] has found.
    pub(super) fn take(&mut self, name: &[u8]) {
        if !self.0.contains(name) {
            self.0.insert(name.into());
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|name| &**name)
    }
}

/// Finds names in a text that arrives in parts of any length.
#[derive(Debug, Default)]
pub(super) struct NameScanner {
    /// Bytes since the last character that ends a name in any spelling.
    stretch: Vec<u8>,
    /// A layer of the stretch, and the next one.
    layers: [Vec<u8>; 2],
    name: Vec<u8>,
}

impl NameScanner {
    /// Hands to `found` all names that are complete with `bytes`.
    pub(super) fn push(&mut self, mut bytes: &[u8], found: &mut impl FnMut(&[u8])) {
        while !bytes.is_empty() {
            let room = &bytes[..bytes.len().min(LONGEST_STRETCH - self.stretch.len())];
            let end = room.iter().position(|byte| !is_part(*byte));
            self.stretch
                .extend_from_slice(&room[..end.unwrap_or(room.len())]);
            if let Some(end) = end {
                self.look(found);
                self.stretch.clear();
                bytes = &bytes[end + 1..];
            } else {
                bytes = &bytes[room.len()..];
                if self.stretch.len() == LONGEST_STRETCH {
                    self.look(found);
                    self.stretch.drain(..LONGEST_STRETCH - OVERLAP);
                }
            }
        }
    }

    pub(super) fn finish(mut self, found: &mut impl FnMut(&[u8])) {
        self.look(found);
    }

    /// Searches the stretch as it stands, then each layer of it: a name may be meant in any of
    /// them.
    fn look(&mut self, found: &mut impl FnMut(&[u8])) {
        let Self {
            stretch,
            layers: [layer, next],
            name,
        } = self;
        if !stretch
            .iter()
            .any(|byte| matches!(byte, b'/' | b'\\' | b'%' | b'&'))
        {
            // Nearly always a word: not a path, and nothing that could spell a slash.
            return;
        }
        stretch.clone_into(layer);
        look_at(layer, name, found);
        for _ in 0..LAYERS {
            if !read_layer(layer, next) {
                break;
            }
            std::mem::swap(layer, next);
            look_at(layer, name, found);
        }
        // All spellings are read at once. If an outer one spells half of an inner escape, the other
        // half was read too early, and a backslash is left over.
        if layer.contains(&b'\\') {
            layer.retain(|byte| *byte != b'\\');
            look_at(layer, name, found);
        }
    }
}

#[cfg(test)]
thread_local! {
    /// Number of bytes that were searched, in all layers.
    static LOOKED_AT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Searches a text for names as it stands.
fn look_at(text: &[u8], name: &mut Vec<u8>, found: &mut impl FnMut(&[u8])) {
    #[cfg(test)]
    LOOKED_AT.set(LOOKED_AT.get() + text.len());
    let mut at = 0;
    while let Some(begin) = text[at..].iter().position(|byte| is_of_path(*byte)) {
        let begin = at + begin;
        let end = text[begin..]
            .iter()
            .position(|byte| !is_of_path(*byte))
            .map_or(text.len(), |length| begin + length);
        let run = &text[begin..end];
        at = end;
        if !run.contains(&b'/') {
            continue;
        }
        // An escape before a run may have taken its first characters: `\n`, `\u003e`, `%20`.
        let taken: &[usize] = match begin.checked_sub(1).map(|before| text[before]) {
            Some(b'\\') if matches!(run[0], b'u' | b'U') => &[0, 1, 5],
            Some(b'\\') => &[0, 1],
            Some(b'%') => &[0, 2],
            _ => &[0],
        };
        for run in taken.iter().filter_map(|taken| run.get(*taken..)) {
            names_in(run, name, found);
        }
    }
}

/// Hands to `found` each part of a path that may name content, in lower case, with as many segments
/// before the name as a key can have.
fn names_in(path: &[u8], named: &mut Vec<u8>, found: &mut impl FnMut(&[u8])) {
    // Starts of the last segments that a name may follow, newest last.
    let mut before = VecDeque::with_capacity(MAX_BEFORE);
    let (mut is_after_phase, mut begin) = (false, 0);
    for segment in path.split(|byte| *byte == b'/') {
        let name = stem(segment);
        let is_name = !name.is_empty() && name.len() <= Key::MAX_SEGMENT;
        if let Some(from) = before.front().filter(|_| is_after_phase && is_name) {
            named.clear();
            named.extend_from_slice(&path[*from..begin + name.len()]);
            named.make_ascii_lowercase();
            found(named);
        }
        if segment.is_empty() || segment.len() > Key::MAX_SEGMENT {
            before.clear();
        } else {
            if before.len() == MAX_BEFORE {
                before.pop_front();
            }
            before.push_back(begin);
        }
        is_after_phase = is_phase(segment);
        begin += segment.len() + 1;
    }
}

/// Strips trailing punctuation, which may belong to a sentence, a rule or emphasis. Keys that
/// differ only in that are all kept if one of them is named. Of a name that is all punctuation, the
/// first character stays.
pub(super) fn stem(name: &[u8]) -> &[u8] {
    let end = name
        .iter()
        .rposition(|byte| !matches!(byte, b'.' | b'_' | b'-'));
    &name[..end.map_or(name.len().min(1), |end| end + 1)]
}

fn is_phase(segment: &[u8]) -> bool {
    Key::FOLDERS
        .iter()
        .any(|folder| segment.eq_ignore_ascii_case(folder.as_bytes()))
}

#[cfg(test)]
mod tests {
    use crate::backend::Key;

    use super::super::index::tests::{are_named, names_it};
    use super::*;

    fn key(path: &str) -> Key {
        Key::new(path).unwrap()
    }

    fn names(text: &str) -> Names {
        let mut names = Names::default();
        names.read(text);
        names
    }

    #[test]
    fn w3_a_text_names_every_location_that_it_may_mean() {
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
            // JSON in JSON in a URL in HTML, which spells the last digit of every other `%5C`.
            "s1/trunc/%5&#67;%5Cu0063all_%5&#67;%5Cu0031",
        ] {
            assert!(names_it(text, &key("s1/trunc/call_1")), "{text}");
        }
        assert!(names_it("a/trunc/clear/trunc/x", &key("clear/trunc/x")));
        assert!(names_it("a/trunc/clear/trunc/x", &key("a/trunc/clear")));
        assert!(
            names_it("see\\ntrunc/call_1", &key("trunc/call_1")),
            "the first segment is a phase"
        );
        let deep = "a/b/c/d/e/f/g/h/i/j/k/l/m/n/trunc/o";
        assert!(names_it(&format!("/x/y/{deep}"), &key(deep)));
    }

    #[test]
    fn w3_a_text_names_no_other_location() {
        for other in [
            "s2/trunc/call_1",
            "trunc/call_12",
            "s1/clear/call_1",
            "trunc/call",
            "x/store/s1/trunc/call_1",
        ] {
            assert!(
                !names_it(
                    "/store/s1/trunc/call_1 and s2/clear/call_12-args",
                    &key(other)
                ),
                "{other}"
            );
        }
        assert_eq!(names("no names at all: trunc, clear/, /trunc/").len(), 0);
        assert!(!names_it("xs1/trunc/call_1", &key("s1/trunc/call_1")));
        assert!(!names_it("s1//trunc/call_1", &key("s1/trunc/call_1")));
    }

    #[test]
    fn w3_punctuation_after_a_name_is_not_a_name() {
        let rule = "-".repeat(60_000);
        assert_eq!(
            names(&format!(
                "/s/trunc/a{rule} /s/trunc/a_ /s/trunc/a... /s/trunc/a"
            ))
            .len(),
            1
        );
        for key in ["s/trunc/a", "s/trunc/a_", "s/trunc/a-_-"].map(key) {
            assert!(names_it(&format!("/s/trunc/a{rule}"), &key), "{key}");
        }
        assert!(
            names_it("/s/trunc/__", &key("s/trunc/_")),
            "a name of nothing else"
        );
        for (text, none) in [("s/trunc/", "x"), ("trunc/a/", "x"), ("s/trunc/a", "a")] {
            assert_eq!(
                names(&format!("{text}{}", none.repeat(256))).len(),
                usize::from(text == "trunc/a/"),
                "{text}"
            );
        }
    }

    #[test]
    fn w3_chunks_and_long_runs_hide_no_name() {
        let text = format!(
            "{}/store/s1%2Ftrunc\\u002Fcall_1 {}",
            "a/".repeat(100_000),
            "b".repeat(100_000)
        );
        for part in [1, 7, 4096, text.len()] {
            let (mut names, mut scanner) = (Names::default(), NameScanner::default());
            text.as_bytes()
                .chunks(part)
                .for_each(|part| scanner.push(part, &mut |name| names.take(name)));
            scanner.finish(&mut |name| names.take(name));
            assert!(
                are_named(&names, &key("s1/trunc/call_1")),
                "parts of {part}"
            );
            assert!(names.len() <= 2, "memory follows the names");
        }
    }

    /// Counted in bytes, not in time: each byte is searched a bounded number of times.
    #[test]
    fn w3_scanning_takes_linear_time() {
        for part in [
            "-",
            r"\-",
            "%25",
            "%252D",
            "&amp;",
            "&#0",
            "\\",
            "trunc/",
            "/s1/trunc/abc",
            "a/",
            "/",
            "\\u005c",
            "%5C%75002d",
        ] {
            for bytes in [1 << 18, 1 << 20] {
                let text = format!("/s/trunc/a{}", part.repeat(bytes / part.len()));
                let (mut scanner, mut found) = (NameScanner::default(), 0);
                LOOKED_AT.set(0);
                scanner.push(text.as_bytes(), &mut |name| found += name.len());
                scanner.finish(&mut |name| found += name.len());
                let most = text.len() * (LAYERS + 2) * LONGEST_STRETCH
                    / (LONGEST_STRETCH - OVERLAP)
                    + LONGEST_STRETCH;
                assert!(
                    LOOKED_AT.get() <= most,
                    "{part}: {} bytes of {}",
                    LOOKED_AT.get(),
                    text.len()
                );
                assert!(
                    found <= 3 * most,
                    "{part}: {found} bytes of names in {}",
                    text.len()
                );
            }
        }
    }
}
