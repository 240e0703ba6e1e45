//! Rendering chosen units and names as text, and recognizing such text.
//!
//! ```text
//! 12|fn main() {
//!     let settings = Settings::default();
//! 90+4800|…a piece of a long line, …
//! names: 40 read_back 52 Settings::eino MAX_LINE
//! [… 43000 B …]
//! ```
//!
//! `12|` precedes the first of adjacent lines; `+` and a byte offset mark a start inside a line. A
//! line that begins with its own, correct number needs no mark. Own numbers of lines that follow it
//! are left out while they go up by one. After `names:` come names that are in no shown line, each
//! after the number of a line that has it. The last line gives the number of bytes that are in no
//! shown line.

use std::fmt::Write;

use crate::preview::names::each_name;
use crate::preview::plain::PlainText;
use crate::preview::text::lines::count_feeds;
use crate::preview::units::{Cutter, Place, Unit, own_number};
use crate::preview::values::{Kind, each_value};

const NAMES: &str = "names:";
const CUT: &str = "…";

/// The shown parts of a text, in text order.
#[derive(Debug, Default)]
pub(crate) struct Excerpt<'t> {
    pub(crate) units: Vec<Unit<'t>>,
    /// Each with the number of a line that has it.
    pub(crate) names: Vec<(u64, &'t str)>,
}

/// The length of a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Length {
    pub(crate) bytes: u64,
    pub(crate) feeds: u64,
}

impl Unit<'_> {
    /// Returns true if it starts right at the end of `before`, in the same line.
    fn follows(&self, before: &Self) -> bool {
        let end = before.place.byte + before.place.bytes;
        self.place.line == before.place.line && self.place.byte == end
    }

    /// Returns true if its line comes right after the one that `before` ends.
    fn is_next_line(&self, before: &Self) -> bool {
        self.place.byte == 0 && before.place.ends_line && self.place.line == before.place.line + 1
    }

    /// Returns true if it needs no mark when it is shown after `before`.
    pub(crate) fn continues(&self, before: &Self) -> bool {
        self.follows(before) || self.is_next_line(before)
    }

    /// Returns true if `line` may start with this unit as shown.
    fn begins(&self, line: &str) -> bool {
        if self.place.ends_line {
            line == self.text
        } else {
            line.starts_with(self.text)
        }
    }

    fn number(&self) -> Option<(u64, usize)> {
        if self.place.byte == 0 {
            own_number(self.text)
        } else {
            None
        }
    }

    /// Returns true if the line begins with its own, correct number.
    pub(crate) fn is_numbered_right(&self) -> bool {
        self.number()
            .is_some_and(|(number, _)| number == self.place.line)
    }

    /// Length in bytes of the mark before it, if no shown unit comes right before.
    pub(crate) fn mark_length(&self) -> usize {
        match self.place {
            Place { byte: 0, .. } if self.is_numbered_right() => 0,
            Place { line, byte: 0, .. } => digits(line) + "|".len(),
            Place { line, byte, .. } => digits(line) + digits(byte) + "+|".len() + CUT.len(),
        }
    }
}

/// Upper bound in bytes for the parts of an excerpt other than units and names.
pub(crate) fn most_overhead(length: Length, has_names: bool) -> usize {
    mark(length.bytes).len()
        + if has_names {
            NAMES.len() + "\n".len()
        } else {
            0
        }
}

/// Upper bound in bytes for a unit without its mark.
pub(crate) fn most_of_unit(unit: &Unit<'_>) -> usize {
    unit.text.len() + CUT.len() + "\n".len()
}

/// Upper bound in bytes for a name.
pub(crate) fn most_of_name(line: u64, name: &str) -> usize {
    " ".len() + digits(line) + " ".len() + name.len()
}

fn digits(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

fn mark(bytes: u64) -> String {
    format!("[… {bytes} B …]")
}

impl Excerpt<'_> {
    pub(crate) fn render(&self, length: Length) -> String {
        let mut out = String::new();
        let mut before: Option<(&Unit<'_>, Option<u64>)> = None;
        let mut shown = 0;
        for unit in &self.units {
            let Unit { text, place } = unit;
            shown += place.bytes + u64::from(place.ends_line && place.line <= length.feeds);
            let number = unit.number();
            match before {
                Some((last, own)) if unit.follows(last) => {
                    out.push_str(text);
                    before = Some((unit, own));
                    continue;
                }
                Some((last, own)) if unit.is_next_line(last) => {
                    out.push('\n');
                    out.push_str(&text[counted_on(own, number)..]);
                }
                _ => {
                    if let Some((last, _)) = before {
                        out.push_str(if last.place.ends_line { "\n" } else { "…\n" });
                    }
                    // Writing to a String can't fail.
                    let _ = match place {
                        Place { byte: 0, .. } if unit.is_numbered_right() => Ok(()),
                        Place { line, byte: 0, .. } => write!(out, "{line}|"),
                        Place { line, byte, .. } => write!(out, "{line}+{byte}|{CUT}"),
                    };
                    out.push_str(text);
                }
            }
            before = Some((unit, number.map(|(number, _)| number)));
        }
        if let Some((last, _)) = before {
            out.push_str(if last.place.ends_line { "\n" } else { "…\n" });
        }
        if !self.names.is_empty() {
            out.push_str(NAMES);
            let mut at = None;
            for (line, name) in &self.names {
                if at != Some(line) {
                    let _ = write!(out, " {line}");
                }
                let _ = write!(out, " {name}");
                at = Some(line);
            }
            out.push('\n');
        }
        // An imitation may show more than there is.
        out.push_str(&mark(length.bytes.saturating_sub(shown)));
        out
    }
}

/// Length in bytes of a line's own number, if it continues the numbering of the shown line before
/// it; otherwise 0.
fn counted_on(before: Option<u64>, number: Option<(u64, usize)>) -> usize {
    match (before, number) {
        (Some(before), Some((number, length))) if number == before + 1 => length,
        _ => 0,
    }
}

/// Returns true if `preview` is an excerpt of `text` and has no other content. Linear in the text; keeps
/// no more than the preview in memory.
pub(crate) fn holds_only(preview: &str, text: &str) -> bool {
    let Some((shown, _)) = preview.rsplit_once('\n') else {
        return false;
    };
    let last = shown.rfind('\n').map_or(0, |feed| feed + 1);
    let names = shown[last..].strip_prefix(NAMES).and_then(parse_names);
    let length = Length {
        bytes: text.len() as u64,
        feeds: count_feeds(text.as_bytes()),
    };
    let is = |lines: &str, names| {
        let excerpt = Reader::new(lines, names).read(text);
        excerpt.is_some_and(|excerpt| excerpt.render(length) == preview)
    };
    // A line that looks like names may be part of the text.
    names.is_some_and(|names| is(shown[..last].strip_suffix('\n').unwrap_or_default(), names))
        || is(shown, Vec::new())
}

fn parse_names(list: &str) -> Option<Vec<(u64, &str)>> {
    let (mut names, mut line) = (Vec::new(), None);
    for word in list.strip_prefix(' ')?.split(' ') {
        match word.parse() {
            Ok(number) if is_number(word) => line = Some(number),
            _ => names.push((line?, word)),
        }
    }
    Some(names)
}

/// Returns true if a name would be read as a line number.
pub(crate) fn is_number(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_digit())
}

/// Finds the parts of an excerpt in its text.
struct Reader<'p> {
    lines: Vec<&'p str>,
    /// The line to find, and the number of its bytes already found.
    at: usize,
    found: usize,
    names: Vec<(u64, &'p str)>,
    is_found: Vec<bool>,
    units: Vec<(Place, String)>,
}

impl<'p> Reader<'p> {
    fn new(lines: &'p str, names: Vec<(u64, &'p str)>) -> Self {
        let lines = if lines.is_empty() {
            Vec::new()
        } else {
            lines.split('\n').collect()
        };
        let is_found = vec![false; names.len()];
        Self {
            lines,
            at: 0,
            found: 0,
            names,
            is_found,
            units: Vec::new(),
        }
    }

    fn read(mut self, text: &str) -> Option<OwnedExcerpt<'p>> {
        let mut cutter = Cutter::new();
        let mut first_name = 0;
        let mut see = |unit: Unit<'_>| {
            self.look_for_line(&unit);
            while self
                .names
                .get(first_name)
                .is_some_and(|(line, _)| *line < unit.place.line)
            {
                first_name += 1;
            }
            let named = first_name
                ..first_name
                    + self.names[first_name..]
                        .partition_point(|(line, _)| *line <= unit.place.line);
            if !named.is_empty() {
                let mut see = |text: &str| {
                    for at in named.clone().filter(|at| self.names[*at].1 == text) {
                        self.is_found[at] = true;
                    }
                };
                each_name(unit.text, |name| see(name.text));
                each_value(unit.text, |kind, text| {
                    if kind == Kind::Flag {
                        see(text);
                    }
                });
            }
        };
        let mut plain = PlainText::default();
        plain.push(text, &mut |piece| cutter.push(piece, &mut see));
        plain.end(&mut |piece| cutter.push(piece, &mut see));
        cutter.end(&mut see);
        let is_all = self.at == self.lines.len()
            || self.at + 1 == self.lines.len() && self.lines[self.at][self.found..] == *CUT;
        (is_all && self.is_found.iter().all(|is_found| *is_found)).then_some(OwnedExcerpt {
            units: self.units,
            names: self.names,
        })
    }

    fn look_for_line(&mut self, unit: &Unit<'_>) {
        let Some(mut line) = self.lines.get(self.at) else {
            return;
        };
        let last = self.units.last().map(|(place, text)| Unit {
            text,
            place: *place,
        });
        if self.found > 0 {
            let rest = &line[self.found..];
            if last.is_some_and(|last| unit.follows(&last)) && unit.begins(rest) {
                return self.take(unit, self.found + unit.text.len());
            }
            if rest != CUT {
                return;
            }
            (self.at, self.found) = (self.at + 1, 0);
            let Some(next) = self.lines.get(self.at) else {
                return;
            };
            line = next;
        }
        let last = self.units.last().map(|(place, text)| Unit {
            text,
            place: *place,
        });
        let number = unit.number();
        let is_next_line = last.is_some_and(|last| unit.is_next_line(&last));
        let skipped = number
            .filter(|_| is_next_line)
            .map_or(0, |(_, length)| length);
        let counted_on = Unit {
            text: &unit.text[skipped..],
            ..*unit
        };
        let mark = match unit.place {
            Place { line, byte: 0, .. } => format!("{line}|"),
            Place { line, byte, .. } => format!("{line}+{byte}|{CUT}"),
        };
        if (is_next_line || unit.is_numbered_right()) && unit.begins(line) {
            self.take(unit, unit.text.len());
        } else if skipped > 0 && counted_on.begins(line) {
            self.take(unit, counted_on.text.len());
        } else if line
            .strip_prefix(mark.as_str())
            .is_some_and(|line| unit.begins(line))
        {
            self.take(unit, mark.len() + unit.text.len());
        }
    }

    fn take(&mut self, unit: &Unit<'_>, found: usize) {
        self.units.push((unit.place, unit.text.to_owned()));
        let is_whole = unit.place.ends_line && self.lines[self.at].len() == found;
        (self.at, self.found) = if is_whole {
            (self.at + 1, 0)
        } else {
            (self.at, found)
        };
    }
}

/// An excerpt that owns its text.
struct OwnedExcerpt<'p> {
    units: Vec<(Place, String)>,
    names: Vec<(u64, &'p str)>,
}

impl OwnedExcerpt<'_> {
    fn render(&self, length: Length) -> String {
        let units = self
            .units
            .iter()
            .map(|(place, text)| Unit {
                text,
                place: *place,
            })
            .collect();
        Excerpt {
            units,
            names: self.names.clone(),
        }
        .render(length)
    }
}
