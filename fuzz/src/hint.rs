//! Hints: parsing and rendering give the same bytes again, and rendering and parsing the same hint.

use offcut::backend::Location;
use offcut::hint::{Hint, Kind, Position};

/// Parses the text as it is, and renders a hint from its parts between zero bytes.
pub(crate) fn hint(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Some(hint) = Hint::parse(text) {
        assert_eq!(hint.render(), text);
        assert_eq!(Hint::parse_all(text), Some(vec![hint]));
    }
    if let Some(hints) = Hint::parse_all(text) {
        let rendered: Vec<String> = hints.iter().map(Hint::render).collect();
        assert_eq!(rendered.join("\n"), text);
        // Each hint of several can also stand alone.
        assert!(
            hints
                .iter()
                .zip(&rendered)
                .all(|(hint, text)| Hint::parse(text).as_ref() == Some(hint))
        );
    }
    if let Some(position) = Position::parse(text) {
        assert_eq!(position.to_string(), text);
    }
    let hint = made_of(data, text);
    assert_eq!(Hint::parse(&hint.render()), Some(hint));
}

fn made_of(data: &[u8], text: &str) -> Hint {
    let number = |at: usize| {
        let bytes: Vec<u8> = (at..at + 8)
            .map(|at| data.get(at).copied().unwrap_or_default())
            .collect();
        u64::from_le_bytes(bytes.try_into().unwrap()) >> (number_of(data, at) % 64)
    };
    let is = |bit: u32| number_of(data, 9) >> bit & 1 == 1;
    let kind = match number_of(data, 8) % 5 {
        0 => Kind::Truncated,
        1 => Kind::Cleared,
        2 => Kind::Link,
        3 => Kind::Matches,
        _ => Kind::Page {
            from: Position {
                line: number(1).max(1),
                byte: number(2),
            },
        },
    };
    let mut hint = Hint::new(kind, number(0));
    (
        hint.flags.interrupted,
        hint.flags.not_utf8,
        hint.flags.joined,
    ) = (is(0), is(1), is(2));
    hint.lines = is(4).then(|| number(3));
    let mut parts = text.split('\0').map(str::to_owned);
    let mut part = || parts.next().unwrap_or_default();
    hint.prose = part();
    hint.preview = part();
    hint.location = parts.next().map(Location::new);
    hint
}

fn number_of(data: &[u8], at: usize) -> u8 {
    data.get(at).copied().unwrap_or_default()
}
