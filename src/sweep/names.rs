//! The names of stored content in a text, whatever the text is.
//!
//! A text is searched in linear time. What of it may name something is handed on in pieces: a path
//! in lower case, for on some file systems that is the same content, without the punctuation behind
//! its last name.

use std::collections::HashSet;

use super::spelling::{is_of_path, is_part, read_layer};
use crate::backend::Key;
use crate::store::layout::{FOLDERS, SWEPT};

/// How many layers of other spellings are read.
const LAYERS: usize = 4;
/// A stretch of a text without an end is looked at in parts of this many bytes.
const LONGEST_STRETCH: usize = 128 << 10;
/// This much of a part is looked at with the next one again: more than a name takes in any spelling
/// that is promised.
const OVERLAP: usize = 32 << 10;
/// A path of very many names is handed on in pieces of this many, so that one which repeats itself
/// is kept once.
const NAMES_IN_PIECE: usize = 64;
/// How many segments there may be before a name, with one more where the place is named that it was
/// swept to.
const MAX_BEFORE: usize = Key::MAX_SEGMENTS;

/// Every name that some texts may mean, and perhaps more than they do. Takes memory for each of
/// them once.
#[derive(Clone, Default)]
pub(super) struct Names(HashSet<Box<[u8]>>);

impl Names {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes what `text` names.
    pub(super) fn read(&mut self, text: &str) {
        let mut scanner = Scanner::default();
        scanner.push(text.as_bytes(), &mut |piece| self.take(piece));
        scanner.finish(&mut |piece| self.take(piece));
    }

    /// Takes a piece that a [`Scanner`] has found.
    pub(super) fn take(&mut self, piece: &[u8]) {
        if !self.0.contains(piece) {
            self.0.insert(piece.into());
        }
    }

    /// The pieces.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|piece| &**piece)
    }
}

/// Finds names in a text that comes in parts of any length.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    /// What came since the last character that ends any name in any spelling.
    stretch: Vec<u8>,
    /// The stretch after each layer, in turn.
    layers: [Vec<u8>; 2],
    piece: Vec<u8>,
    /// How many bytes were looked at, in all layers.
    #[cfg(test)]
    looked_at: usize,
}

impl Scanner {
    /// Hands to `found` all that `bytes` ends a name of.
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

    /// Looks at the stretch as it stands, then in each layer, for it may be meant in any of them.
    fn look(&mut self, found: &mut impl FnMut(&[u8])) {
        let Self {
            stretch,
            layers: [from, to],
            piece,
            ..
        } = self;
        if !stretch
            .iter()
            .any(|byte| matches!(byte, b'/' | b'\\' | b'%' | b'&'))
        {
            // A word, nearly always: no path, and nothing that a slash could be spelled by.
            return;
        }
        #[cfg(test)]
        {
            self.looked_at += stretch.len();
        }
        look_at(stretch, piece, found);
        if !read_layer(stretch, from) {
            return;
        }
        for layer in 1..=LAYERS {
            #[cfg(test)]
            {
                self.looked_at += from.len();
            }
            look_at(from, piece, found);
            if layer == LAYERS || !read_layer(from, to) {
                break;
            }
            std::mem::swap(from, to);
        }
        // All kinds are read at once. Where an outer one spells half of an inner one's escape, the
        // other half was read too early, and a backslash is left over.
        if from.contains(&b'\\') {
            #[cfg(test)]
            {
                self.looked_at += from.len();
            }
            from.retain(|byte| *byte != b'\\');
            look_at(from, piece, found);
        }
    }
}

/// Looks for names in a text as it stands.
fn look_at(text: &[u8], piece: &mut Vec<u8>, found: &mut impl FnMut(&[u8])) {
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
        pieces(run, piece, found);
        // What stands before a run may have taken its first characters: `\n`, `\u003e`, `%20`.
        let taken: &[usize] = match begin.checked_sub(1).map(|before| text[before]) {
            Some(b'\\') if matches!(run[0], b'u' | b'U') => &[1, 5],
            Some(b'\\') => &[1],
            Some(b'%') => &[2],
            _ => &[],
        };
        taken
            .iter()
            .filter_map(|taken| run.get(*taken..))
            .for_each(|run| pieces(run, piece, found));
    }
}

/// Hands to `found` those parts of a path that hold names, each with as many segments before as a
/// key can have.
fn pieces(run: &[u8], piece: &mut Vec<u8>, found: &mut impl FnMut(&[u8])) {
    let mut hand_on = |from: usize, to: usize| {
        piece.clear();
        piece.extend_from_slice(&run[from..to]);
        piece.make_ascii_lowercase();
        found(piece);
    };
    // Where the last segments begin that a name may follow, newest last.
    let mut before = [0; MAX_BEFORE];
    let (mut count, mut is_after_phase, mut begin) = (0, false, 0);
    let mut pending: Option<(usize, usize)> = None;
    let mut names = 0;
    for segment in run.split(|byte| *byte == b'/') {
        let name = stem(segment);
        if is_after_phase && is_name(name) {
            let (from, to) = (before[0], begin + name.len());
            names += 1;
            pending = Some(match pending {
                // They have segments in common.
                Some((first, end)) if from <= end && names <= NAMES_IN_PIECE => (first, to),
                Some((first, end)) => {
                    hand_on(first, end);
                    names = 1;
                    (from, to)
                }
                None => (from, to),
            });
        }
        if segment.is_empty() || segment.len() > Key::MAX_SEGMENT {
            count = 0;
        } else {
            if count == MAX_BEFORE {
                before.rotate_left(1);
                count -= 1;
            }
            before[count] = begin;
            count += 1;
        }
        is_after_phase = count > 0 && is_phase(segment);
        begin += segment.len() + 1;
    }
    if let Some((from, to)) = pending {
        hand_on(from, to);
    }
}

/// Hands to `name` each name that a piece may mean, by its segments from the last to the first.
pub(super) fn each_name<'p>(
    piece: &'p [u8],
    mut name: impl FnMut(&mut dyn Iterator<Item = &'p [u8]>),
) {
    let segments: Vec<&'p [u8]> = piece.split(|byte| *byte == b'/').collect();
    for (at, pair) in segments.windows(2).enumerate() {
        let [phase, last] = *pair else { continue };
        let last = stem(last);
        if !is_phase(phase) || !is_name(last) {
            continue;
        }
        let begin = at.saturating_sub(MAX_BEFORE - 1);
        let usable = |segment: &&&'p [u8]| !segment.is_empty() && segment.len() <= Key::MAX_SEGMENT;
        let before = segments[begin..at].iter().rev().take_while(usable).copied();
        name(&mut [last, phase].into_iter().chain(before.clone()));
        // Who looked into the store may have named the place where it was swept to.
        if at > begin && segments[at - 1].eq_ignore_ascii_case(SWEPT.as_bytes()) {
            name(&mut [last, phase].into_iter().chain(before.skip(1)));
        }
    }
}

/// A name without what may be the end of a sentence, a rule or emphasis behind it. All that differ
/// in that alone are kept where one of them is named. Of one that is nothing else, the first
/// character stays.
pub(super) fn stem(name: &[u8]) -> &[u8] {
    let end = name
        .iter()
        .rposition(|byte| !matches!(byte, b'.' | b'_' | b'-'));
    &name[..end.map_or(name.len().min(1), |end| end + 1)]
}

fn is_name(stem: &[u8]) -> bool {
    !stem.is_empty() && stem.len() <= Key::MAX_SEGMENT
}

fn is_phase(segment: &[u8]) -> bool {
    FOLDERS
        .iter()
        .any(|folder| segment.eq_ignore_ascii_case(folder.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::super::index::names_it;
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
    fn w1_a_text_names_what_it_may_mean() {
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
            // JSON in JSON in a URL in HTML, which spells a digit of one `%5C` and not of the next.
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
        assert!(names_it(
            &format!("/x/y/{}", deep.replace("trunc", "swept/trunc")),
            &key(deep)
        ));
    }

    #[test]
    fn w1_a_text_names_nothing_else() {
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
    fn w1_punctuation_behind_a_name_is_no_name_of_its_own() {
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
    fn w1_parts_and_long_runs_hide_nothing() {
        let text = format!(
            "{}/store/s1%2Ftrunc\\u002Fcall_1 {}",
            "a/".repeat(100_000),
            "b".repeat(100_000)
        );
        for part in [1, 7, 4096, text.len()] {
            let (mut names, mut scanner) = (Names::default(), Scanner::default());
            text.as_bytes()
                .chunks(part)
                .for_each(|part| scanner.push(part, &mut |piece| names.take(piece)));
            scanner.finish(&mut |piece| names.take(piece));
            assert!(
                super::super::index::are_named(&names, &key("s1/trunc/call_1")),
                "parts of {part}"
            );
            assert!(names.len() <= 2, "memory follows the names");
        }
    }

    /// Counted in bytes, and not in time: each is looked at a bounded number of times.
    #[test]
    fn w1_whatever_is_scanned_takes_linear_time() {
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
                let (mut scanner, mut found) = (Scanner::default(), 0);
                scanner.push(text.as_bytes(), &mut |piece| found += piece.len());
                scanner.look(&mut |piece| found += piece.len());
                let most = text.len() * (LAYERS + 2) * LONGEST_STRETCH
                    / (LONGEST_STRETCH - OVERLAP)
                    + LONGEST_STRETCH;
                assert!(
                    scanner.looked_at <= most,
                    "{part}: {} bytes of {}",
                    scanner.looked_at,
                    text.len()
                );
                assert!(
                    found <= 2 * most,
                    "{part}: {found} bytes of names in {}",
                    text.len()
                );
            }
        }
    }
}
