//! Hints as text: rendering and parsing.

use crate::backend::Location;
use crate::preview::text::lines::{Position, number};

use crate::hint::{Flags, Hint, Kind};

/// Start of every header. The number is the version of the envelope.
pub(crate) const OPENING: &str = "[offcut/1 ";

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
        let kind = match self.kind {
            Kind::Truncated => "truncated",
            Kind::Cleared => "cleared",
            Kind::Link => "link",
            Kind::Page { .. } => "page",
            Kind::Matches => "matches",
        };
        let Flags {
            interrupted,
            not_utf8,
            joined,
        } = self.flags;
        let notes = NOTES.into_iter().zip([interrupted, not_utf8, joined]);
        let notes = notes.filter(|(_, is_set)| *is_set);
        let notes: String = notes.map(|(note, _)| format!(",{note}")).collect();
        let from = match self.kind {
            Kind::Page { from } => format!("@{from}"),
            _ => String::new(),
        };
        let bytes = self.bytes;
        let lines = self.lines.map(|lines| format!("/{lines}L"));
        let lines = lines.unwrap_or_default();
        let preview = Some(preview).filter(|preview| *preview > 0);
        let preview = preview.map(|preview| format!("+{preview}"));
        let preview = preview.unwrap_or_default();
        let location = self.location.as_ref();
        let location = location.map(|location| serde_json::json!(location.as_str()).to_string());
        let location = location.as_deref().unwrap_or("-");
        format!("{OPENING}{kind}{notes}{from} {bytes}B{lines} {prose}{preview} {location}]")
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

/// Words for the flags, in the order of their fields.
const NOTES: [&str; 3] = ["interrupted", "not-utf8", "joined"];

/// Parses a header: the hint without sentence and preview, their lengths, and the text after the header.
fn parse_header(text: &str) -> Option<(Hint, [usize; 2], &str)> {
    let rest = text.strip_prefix(OPENING)?;
    let (what, rest) = rest.split_once(' ')?;
    let (size, rest) = rest.split_once(' ')?;
    let (lengths, rest) = rest.split_once(' ')?;
    let (location, rest) = match rest.strip_prefix("-]") {
        Some(rest) => (None, rest),
        None => {
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<String>();
            let location = values.next()?.ok()?;
            let rest = rest.get(values.byte_offset()..)?.strip_prefix(']')?;
            (Some(Location::new(location)), rest)
        }
    };
    let (what, from) = match what.split_once('@') {
        Some((what, from)) => (what, Some(Position::parse(from)?)),
        None => (what, None),
    };
    let mut words = what.split(',');
    let kind = match (words.next()?, from) {
        ("truncated", None) => Kind::Truncated,
        ("cleared", None) => Kind::Cleared,
        ("link", None) => Kind::Link,
        ("matches", None) => Kind::Matches,
        ("page", Some(from)) => Kind::Page { from },
        _ => return None,
    };
    let mut set = [false; 3];
    for word in words {
        set[NOTES.iter().position(|note| *note == word)?] = true;
    }
    let [interrupted, not_utf8, joined] = set;
    let flags = Flags {
        interrupted,
        not_utf8,
        joined,
    };
    let (bytes, lines) = match size.split_once('/') {
        Some((bytes, lines)) => (bytes, Some(number(lines.strip_suffix('L')?)?)),
        None => (size, None),
    };
    let (prose, preview) = lengths.split_once('+').unwrap_or((lengths, "0"));
    let length = |length| number(length)?.try_into().ok();
    let (prose, preview) = (length(prose)?, length(preview)?);
    let hint = Hint {
        flags,
        lines,
        location,
        ..Hint::new(kind, number(bytes.strip_suffix('B')?)?)
    };
    // A header has only one valid spelling, so that rendering returns the bytes that were read.
    let header = &text[..text.len() - rest.len()];
    (hint.header(prose, preview) == header).then_some((hint, [prose, preview], rest))
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
