//! Units of a text: lines, and pieces of long lines.

use std::sync::LazyLock;

use regex::Regex;

use crate::preview::pattern::pattern;
use crate::preview::plain::Plain;
use crate::preview::text::lines::Position;

/// Maximum length in bytes of a line that is not cut into pieces.
const MAX_LINE: usize = 400;
/// Maximum length of a piece in bytes.
const MAX_PIECE: usize = 310;
/// Number of bytes at a piece's end that are searched for [`SEPARATORS`], to end the piece after
/// one.
const NEAR_THE_END: usize = 40;
const SEPARATORS: [char; 7] = [' ', ',', ';', '{', '}', '[', ']'];
/// A line feed in a string of JSON.
const FEED: &str = r"\n";
/// Stands for what is left out of a line.
pub(crate) const CUT: &str = "…";

/// A number at the start of a line. No file has more lines.
static NUMBER: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[ \t]*([0-9]{1,9})[→:|\t]"));

/// A line, or a piece of a long one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit<'t> {
    pub(crate) text: &'t str,
    pub(crate) place: Place,
}

impl<'t> Unit<'t> {
    /// A whole line.
    pub(crate) fn line(text: &'t str, line: u64) -> Self {
        let place = Place {
            line,
            byte: 0,
            bytes: text.len() as u64,
            begins: true,
            ends_line: true,
        };
        Self { text, place }
    }

    /// The lines that begin in it: itself, or of a piece those of a string of JSON.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &'t str> + Clone {
        let place = self.place;
        let is_line = place.byte == 0 && place.ends_line;
        let pieces = (!is_line).then(|| self.text.split(FEED).skip(usize::from(!place.begins)));
        let line = is_line.then_some(self.text).into_iter();
        let lines = line.chain(pieces.into_iter().flatten());
        lines.filter(|line| !line.is_empty())
    }

    /// The number that its line begins with, if it begins its line, and its length.
    pub(crate) fn number(&self) -> Option<(u64, usize)> {
        own_number(self.text).filter(|_| self.place.byte == 0)
    }

    /// That number, if a reader of files has aligned it: to the right, before `→` or a tab. Other
    /// numbers that count up may be ids (`1000: Bob`) or data (`8<tab>./src` of `du`), which a line
    /// must keep, and readers that write such numbers can't be told from them.
    pub(crate) fn aligned_number(&self) -> Option<(u64, usize)> {
        self.number().filter(|(_, length)| {
            let prefix = self.text[..*length].trim_start_matches(' ');
            prefix.len() < *length
                && prefix.starts_with(|c: char| c.is_ascii_digit())
                && prefix.ends_with(['→', '\t'])
        })
    }

    /// It, or its first `most` bytes if they have a character.
    pub(crate) fn cut(self, most: usize) -> Option<Self> {
        if self.text.len() <= most {
            return Some(self);
        }
        let text = &self.text[..self.text.floor_char_boundary(most)];
        let (bytes, ends_line) = (text.len() as u64, false);
        let place = Place {
            bytes,
            ends_line,
            ..self.place
        };
        (!text.is_empty()).then_some(Self { text, place })
    }
}

/// The position of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The line, counted from 1.
    pub(crate) line: u64,
    /// The byte in the line, counted from 0.
    pub(crate) byte: u64,
    /// Number of bytes that it stands for, which are more than its text has if that is not all plain.
    pub(crate) bytes: u64,
    /// True if the unit begins its line, or a line that another program wrote into a string of JSON.
    pub(crate) begins: bool,
    /// True if the unit ends its line.
    pub(crate) ends_line: bool,
}

/// The units of a plain text, or of the part of one that begins at `start`.
pub(crate) fn units<'t>(plain: &'t Plain<'_>, start: Position) -> impl Iterator<Item = Unit<'t>> {
    let (mut rest, mut end) = (&*plain.text, 0);
    let Position { mut line, mut byte } = start;
    let mut hidden = plain.hidden.iter().peekable();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let most = if byte == 0 { MAX_LINE } else { MAX_PIECE };
        let near = &rest.as_bytes()[..rest.len().min(most + 1)];
        let feed = memchr::memchr(b'\n', near);
        let length = feed.or_else(|| Some(rest.len()).filter(|length| *length <= most));
        let ends_line = feed.is_some() || length.is_some() && !plain.is_cut;
        let (text, after) = rest.split_at(length.unwrap_or_else(|| piece_length(rest)));
        end += text.len();
        let mut bytes = text.len() as u64;
        while let Some((_, more)) = hidden.next_if(|(at, _)| *at < end + usize::from(ends_line)) {
            bytes += more;
        }
        let place = Place {
            line,
            byte,
            bytes,
            begins: byte == 0 || text.starts_with(FEED),
            ends_line,
        };
        (rest, byte) = (after, byte + bytes);
        if ends_line {
            rest = after.strip_prefix('\n').unwrap_or_default();
            (line, byte, end) = (line + 1, 0, end + 1);
        }
        Some(Unit { text, place })
    })
}

fn piece_length(text: &str) -> usize {
    let most = text.floor_char_boundary(MAX_PIECE);
    // Of JSON, a piece ends where a line in a string does.
    let feed = text[..most].rfind(FEED);
    if let Some(end) = feed.filter(|end| *end > MAX_PIECE / 2) {
        return end;
    }
    let end = text.floor_char_boundary(most - NEAR_THE_END);
    let separator = text[end..most].rfind(SEPARATORS);
    separator.map_or(most, |separator| end + separator + 1)
}

/// The text of a unit without its own line number, as shown after another unit.
pub(crate) fn own_text<'t>(unit: &Unit<'t>) -> &'t str {
    &unit.text[unit.number().map_or(0, |(_, length)| length)..]
}

/// Returns true for a heading of Markdown below the first level, whose sign also begins comments.
pub(crate) fn is_heading(unit: &Unit<'_>) -> bool {
    let text = own_text(unit);
    let text = text.strip_prefix(' ').unwrap_or(text);
    let signs = text.len() - text.trim_start_matches('#').len();
    unit.place.byte == 0 && (2..=4).contains(&signs) && text[signs..].starts_with(' ')
}

/// Returns true for an excerpt of a file: its first lines have numbers of their own that go up by one.
pub(crate) fn is_excerpt_of_file(units: &[Unit<'_>]) -> bool {
    let number = |at: usize| units.get(at).and_then(|unit| own_number(unit.text));
    let first = number(0).zip(number(1));
    first.is_some_and(|((first, _), (second, _))| second == first + 1)
}

/// The number at the start of a line, as file readers write it: `  12→text`, `12:text`, `12|text`,
/// `12<tab>text`; with the length of this prefix in bytes. Blanks after it belong to the text, as its
/// indentation.
pub(crate) fn own_number(line: &str) -> Option<(u64, usize)> {
    let found = NUMBER.captures(line)?;
    Some((found[1].parse().ok()?, found[0].len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    fn cut(text: &str) -> Vec<(String, Place)> {
        let plain = Plain::of(text);
        let units = units(&plain, Position::START);
        units
            .map(|unit| (unit.text.to_owned(), unit.place))
            .collect()
    }

    #[test]
    fn readers_number_their_lines() {
        assert_eq!(own_number("    12→fn main() {"), Some((12, 9)));
        assert_eq!(own_number("7:    x"), Some((7, 2)));
        assert_eq!(own_number("12"), None);
        assert_eq!(own_number("12 monkeys"), None);
        assert_eq!(own_number("1234567890|x"), None);
    }

    #[test]
    fn long_lines_are_cut_behind_separators() {
        let line = "0123456789 ".repeat(80);
        let units = cut(&line);
        assert!(
            units.len() > 2 && units.iter().all(|(text, _)| text.ends_with(' ')),
            "{units:?}"
        );
        assert_eq!(units.iter().filter(|(_, place)| place.ends_line).count(), 1);
    }

    #[test]
    fn places_count_what_is_hidden() {
        let red = format!("\x1b[31m{}\x1b[0m", "a b, ".repeat(120));
        let units = cut(&format!("{red}\n\x1b[1mb\x1b[0m\x1b[0m\n\x1b[m\nc"));
        let (last, lines) = (&units[units.len() - 3..], &units[..units.len() - 3]);
        let mut at = 0;
        for (text, place) in lines {
            assert_eq!((place.line, place.byte), (1, at), "{text}");
            at += place.bytes;
        }
        assert_eq!(at, red.len() as u64);
        let places: Vec<_> = last
            .iter()
            .map(|(text, place)| (text.as_str(), place.line, place.bytes))
            .collect();
        assert_eq!(places, [("b", 2, 13), ("", 3, 3), ("c", 4, 1)]);
    }

    proptest! {
        #[test]
        fn units_are_the_text(text in "([a-z €字]{0,300}\n?){0,8}") {
            let lines: Vec<&str> = text.split('\n').collect();
            let mut shown = 0;
            for (unit, place) in cut(&text) {
                let line = lines[place.line as usize - 1];
                let at = place.byte as usize;
                prop_assert_eq!(&line[at..at + unit.len()], &unit);
                prop_assert_eq!(place.ends_line, at + unit.len() == line.len());
                let most = if place.byte == 0 && place.ends_line { MAX_LINE } else { MAX_PIECE };
                prop_assert!(unit.len() <= most);
                shown += unit.len();
            }
            prop_assert_eq!(shown + text.matches('\n').count(), text.len());
        }
    }
}
