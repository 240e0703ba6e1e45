//! Hints, and hints as text: rendering and parsing.

use std::sync::LazyLock;

use regex::Regex;

use crate::backend::Location;
use crate::preview::pattern::pattern;
use crate::preview::text::lines::Position;

/// Start of every header. The number is the version of the envelope.
pub(crate) const OPENING: &str = "[offcut/1 ";

/// Words for the flags, in the order of their fields.
const NOTES: [&str; 3] = ["interrupted", "not-utf8", "joined"];

/// A header: kind, notes, start of a page, bytes, lines, lengths of sentence and preview, location.
static HEADER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"^\[offcut/1 ([a-z]+)((?:,[a-z0-9-]+)*)(?:@([0-9+]+))? ([0-9]+)B(?:/([0-9]+)L)? ([0-9]+)(?:\+([0-9]+))? (-|"(?:[^"\\\n]|\\.)*")\]"#,
    )
});

/// The contents of a hint.
///
/// ```
/// use offcut::hint::{Hint, Kind};
/// let text = "[offcut/1 cleared 51200B/812L 4 \"/tmp/a/clear/call_1\"] Gone";
/// let hint = Hint::parse(text).expect("a hint");
/// assert_eq!((hint.kind, hint.bytes, hint.lines), (Kind::Cleared, 51_200, Some(812)));
/// assert_eq!(hint.render(), text);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hint {
    /// The kind of hint.
    pub kind: Kind,
    /// Further facts about the original.
    pub flags: Flags,
    /// The original's length in bytes.
    pub bytes: u64,
    /// Number of lines of the original, if known.
    pub lines: Option<u64>,
    /// The original's location; `None` if it was not saved.
    pub location: Option<Location>,
    /// The sentence for the model.
    pub prose: String,
    /// The preview of the original.
    pub preview: String,
}

/// The kinds of hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The result was too long when its tool returned.
    Truncated,
    /// The content was too old before a model call.
    Cleared,
    /// A link was cleared; the location is the link itself.
    Link,
    /// The original is stored, and the preview is a page of it.
    Page {
        /// The start of the page.
        from: Position,
    },
    /// The original is stored, and the preview has the lines that match a pattern.
    Matches,
}

/// Circumstances that a hint reports, in its header and in sentences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    /// The tool's output broke off; the original is the part before that.
    pub interrupted: bool,
    /// The original is not UTF-8; the preview has replacement characters.
    pub not_utf8: bool,
    /// The original was several texts; the stored content ends with a line that lists their
    /// lengths.
    pub joined: bool,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Cleared => "cleared",
            Self::Link => "link",
            Self::Page { .. } => "page",
            Self::Matches => "matches",
        }
    }
}

impl Hint {
    /// A hint without sentence and preview.
    #[must_use]
    pub fn new(kind: Kind, bytes: u64) -> Self {
        Self {
            kind,
            flags: Flags::default(),
            bytes,
            lines: None,
            location: None,
            prose: String::new(),
            preview: String::new(),
        }
    }

    /// Renders the hint. [`parse`](Self::parse) returns the same hint.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = self.header(self.prose.len(), self.preview.len());
        for (before, part) in [(" ", &self.prose), ("\n", &self.preview)] {
            if !part.is_empty() {
                text = text + before + part;
            }
        }
        text
    }

    fn header(&self, prose: usize, preview: usize) -> String {
        let mut header = format!("{OPENING}{}", self.kind.name());
        let Flags {
            interrupted,
            not_utf8,
            joined,
        } = self.flags;
        let notes = NOTES.into_iter().zip([interrupted, not_utf8, joined]);
        for (note, _) in notes.filter(|(_, is_set)| *is_set) {
            header += &format!(",{note}");
        }
        if let Kind::Page { from } = self.kind {
            header += &format!("@{from}");
        }
        header += &format!(" {}B", self.bytes);
        if let Some(lines) = self.lines {
            header += &format!("/{lines}L");
        }
        header += &format!(" {prose}");
        if preview > 0 {
            header += &format!("+{preview}");
        }
        let location = self.location.as_ref().map(Location::as_str);
        let location = location.map(|location| serde_json::json!(location).to_string());
        format!("{header} {}]", location.as_deref().unwrap_or("-"))
    }

    /// Parses a text that is exactly one hint.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (hint, rest) = Self::parse_first(text)?;
        rest.is_empty().then_some(hint)
    }

    /// Parses a text that consists of one or more hints, each starting on a new line.
    #[must_use]
    pub fn parse_all(text: &str) -> Option<Vec<Self>> {
        let mut hints = Vec::new();
        let mut rest = text;
        loop {
            let (hint, tail) = Self::parse_first(rest)?;
            hints.push(hint);
            if tail.is_empty() {
                return Some(hints);
            }
            rest = tail.strip_prefix('\n')?;
        }
    }

    /// The locations in the headers of hints at starts of lines, whatever stands between and after them.
    pub fn locations_in(text: &str) -> impl Iterator<Item = Location> {
        let headers = text.lines().filter_map(parse_header);
        headers.filter_map(|(hint, _, _)| hint.location)
    }

    /// Parses a hint, and returns the text after it.
    fn parse_first(text: &str) -> Option<(Self, &str)> {
        let (mut hint, [prose, preview], mut rest) = parse_header(text)?;
        if prose > 0 {
            (hint.prose, rest) = take(rest.strip_prefix(' ')?, prose)?;
        }
        if preview > 0 {
            (hint.preview, rest) = take(rest.strip_prefix('\n')?, preview)?;
        }
        Some((hint, rest))
    }
}

/// Parses a header: the hint without sentence and preview, their lengths, and the text after the header.
fn parse_header(text: &str) -> Option<(Hint, [usize; 2], &str)> {
    // Few texts are hints.
    let found = text.starts_with(OPENING).then(|| HEADER.captures(text))??;
    let part = |at: usize| found.get(at).map(|part| part.as_str());
    let named = [Kind::Truncated, Kind::Cleared, Kind::Link, Kind::Matches];
    let kind = match part(3) {
        Some(from) => Kind::Page {
            from: Position::parse(from)?,
        },
        None => named
            .into_iter()
            .find(|kind| part(1) == Some(kind.name()))?,
    };
    let notes = |note: &str| part(2).is_some_and(|notes| notes.split(',').any(|set| set == note));
    let [interrupted, not_utf8, joined] = NOTES.map(notes);
    let location = match part(8)? {
        "-" => None,
        json => Some(Location::new(serde_json::from_str::<String>(json).ok()?)),
    };
    let hint = Hint {
        flags: Flags {
            interrupted,
            not_utf8,
            joined,
        },
        lines: part(5).map(str::parse).transpose().ok()?,
        location,
        ..Hint::new(kind, part(4)?.parse().ok()?)
    };
    let [prose, preview] = [part(6)?, part(7).unwrap_or("0")].map(str::parse);
    let (prose, preview) = (prose.ok()?, preview.ok()?);
    // A header has only one valid spelling, so that rendering returns the bytes that were read.
    let header = &found[0];
    let is_valid = hint.header(prose, preview) == header;
    is_valid.then(|| (hint, [prose, preview], &text[header.len()..]))
}

fn take(text: &str, length: usize) -> Option<(String, &str)> {
    let (head, rest) = text.split_at_checked(length)?;
    Some((head.to_owned(), rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

    use super::*;

    fn hints() -> impl Strategy<Value = Hint> {
        let position = (1u64.., any::<u64>()).prop_map(|(line, byte)| Position { line, byte });
        let kind = prop_oneof![
            Just(Kind::Truncated),
            Just(Kind::Cleared),
            Just(Kind::Link),
            Just(Kind::Matches),
            position.prop_map(|from| Kind::Page { from }),
        ];
        let flags = any::<[bool; 3]>().prop_map(|[interrupted, not_utf8, joined]| Flags {
            interrupted,
            not_utf8,
            joined,
        });
        // Texts with marks like the envelope's own.
        let text = proptest::collection::vec(
            prop_oneof![
                Just("[offcut/1 "),
                Just("]"),
                Just("\n"),
                Just("\""),
                Just(" 4"),
                Just("\\"),
                Just("€"),
                Just("-] "),
                Just("x")
            ],
            0..12,
        )
        .prop_map(|pieces| pieces.concat());
        let location = proptest::option::of(text.clone().prop_map(Location::new));
        let sizes = (any::<u64>(), any::<Option<u64>>());
        (kind, flags, sizes, location, text.clone(), text).prop_map(
            |(kind, flags, (bytes, lines), location, prose, preview)| Hint {
                kind,
                flags,
                bytes,
                lines,
                location,
                prose,
                preview,
            },
        )
    }

    #[test]
    fn h1_locations_are_found_in_headers_at_starts_of_lines() {
        let header = |at: &str| format!("[offcut/1 truncated 9B/1L 5+4 {at}]");
        let text = format!(
            "before\n{} Read.\nhead\n[offcut/1 odd \"/c\"]\na {}\n{}",
            header(r#""/a\n""#),
            header(r#""/d""#),
            header(r#""/b""#)
        );
        let found: Vec<Location> = Hint::locations_in(&text).collect();
        assert_eq!(found, ["/a\n", "/b"].map(Location::new));
    }

    proptest! {
        #[test]
        fn h1_parsing_inverts_rendering(hint in hints()) {
            let text = hint.render();
            assert_eq!(Hint::parse(&text), Some(hint));
        }

        #[test]
        fn h1_adjacent_hints_are_separated(hints in proptest::collection::vec(hints(), 1..4)) {
            let text = hints.iter().map(Hint::render).collect::<Vec<_>>().join("\n");
            assert_eq!(Hint::parse_all(&text), Some(hints));
        }

        #[test]
        fn l7_no_text_panics(text in "(\\[offcut/1 |truncated|cleared|page@|[0-9]|B|/|L| |\"|-|\\+|\\]|\n|.){0,30}") {
            if let Some(hint) = Hint::parse(&text) {
                assert_eq!(hint.render(), text);
            }
        }

        #[test]
        fn h1_unterminated_headers_hide_nothing(hint in hints(), count in 0..300usize) {
            let many = "[offcut/1 link 0B 0-0 \"[offcut/1 ".repeat(count);
            for hint in [Hint { prose: many.clone(), ..hint.clone() }, Hint { preview: many.clone(), ..hint.clone() }] {
                assert_eq!(Hint::parse(&hint.render()), Some(hint));
            }
        }

        #[test]
        fn a_hint_with_text_around_it_is_not_parsed(hint in hints(), more in "[a-z ]{1,9}") {
            let text = hint.render();
            assert_eq!(Hint::parse(&format!("{text}{more}")), None);
            assert_eq!(Hint::parse_all(&format!("{text}{more}")), None);
        }
    }
}
