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
//! line that begins with its own, correct number needs no mark. Numbers that a reader of files has
//! aligned are left out of the lines that follow it while they go up by one. After `names:` come
//! names that are in no shown line, each after the number of a line that has it. The last line gives
//! the number of bytes that are in no shown line.

use std::collections::HashSet;

use crate::preview::names::each_name;
use crate::preview::plain::PlainText;
use crate::preview::text::lines::{Length, Position};
use crate::preview::units::{CUT, Cutter, OwnedUnit, Place, Unit, mark_of};
use crate::preview::values::{Kind, each_value};

const NAMES: &str = "names:";

/// The shown parts of a text, in text order.
#[derive(Debug, Default)]
pub(crate) struct Excerpt<'t> {
    pub(crate) units: Vec<Unit<'t>>,
    /// Each with the number of a line that has it.
    pub(crate) names: Vec<(u64, &'t str)>,
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

    /// The mark before it, if no shown unit comes right before. A line that begins with its own, correct number needs none.
    pub(crate) fn mark(&self) -> String {
        let Place { line, byte, .. } = self.place;
        match self.number() {
            Some((number, _)) if number == line => String::new(),
            _ => mark_of(Position { line, byte }),
        }
    }

    /// Length of the beginning of `line` that shows this unit after `last`, if it may.
    fn begins(&self, line: &str, last: Option<&Self>) -> Option<usize> {
        let is_next = last.is_some_and(|last| self.is_next_line(last));
        let verbatim = is_next.then(|| (String::new(), 0));
        let aligned = self.aligned_number().filter(|_| is_next);
        let counted_on = aligned.map(|(_, length)| (String::new(), length));
        let next = verbatim.into_iter().chain(counted_on);
        let mut forms = next.chain([(self.mark(), 0)]);
        forms.find_map(|(mark, from)| {
            let text = &self.text[from..];
            let shown = line.strip_prefix(&mark)?;
            let fits = shown.starts_with(text) && !(self.place.ends_line && shown != text);
            fits.then_some(mark.len() + text.len())
        })
    }
}

/// Upper bound in bytes for the parts of an excerpt other than units and names.
pub(crate) fn most_overhead(length: Length, has_names: bool) -> usize {
    let of_names = NAMES.len() + "\n".len();
    mark(length.bytes).len() + usize::from(has_names) * of_names
}

/// Upper bound in bytes for a unit without its mark.
pub(crate) fn most_of_unit(unit: &Unit<'_>) -> usize {
    unit.text.len() + CUT.len() + "\n".len()
}

/// Upper bound in bytes for a name.
pub(crate) fn most_of_name(line: u64, name: &str) -> usize {
    format!(" {line} ").len() + name.len()
}

fn mark(bytes: u64) -> String {
    format!("[… {bytes} B …]")
}

impl Excerpt<'_> {
    pub(crate) fn render(&self, length: Length) -> String {
        let end = |last: &Unit<'_>| if last.place.ends_line { "\n" } else { "…\n" };
        let mut out = String::new();
        let mut before: Option<(&Unit<'_>, Option<(u64, usize)>)> = None;
        let mut shown = 0;
        for unit in &self.units {
            let Unit { text, place } = unit;
            shown += place.bytes + u64::from(place.ends_line && place.line <= length.end.feeds());
            let number = unit.aligned_number();
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
                    let end = before.map(|(last, _)| end(last)).unwrap_or_default();
                    out += &format!("{end}{}{text}", unit.mark());
                }
            }
            before = Some((unit, number));
        }
        out += before.map(|(last, _)| end(last)).unwrap_or_default();
        if !self.names.is_empty() {
            out.push_str(NAMES);
            let mut at = None;
            for (line, name) in &self.names {
                if at != Some(line) {
                    out += &format!(" {line}");
                }
                out += &format!(" {name}");
                at = Some(line);
            }
            out.push('\n');
        }
        // An imitation may show more than there is.
        out.push_str(&mark(length.bytes.saturating_sub(shown)));
        out
    }
}

/// Length in bytes of a line's aligned number, if it continues the numbering of the shown line
/// before it; otherwise 0.
fn counted_on(before: Option<(u64, usize)>, number: Option<(u64, usize)>) -> usize {
    let next = before.map(|(before, length)| (before + 1, length));
    number
        .filter(|_| number == next)
        .map_or(0, |(_, length)| length)
}

/// Returns true if `preview` is an excerpt of `text` and has no other content. Linear in the text.
pub(crate) fn holds_only(preview: &str, text: &str) -> bool {
    let Some((shown, _)) = preview.rsplit_once('\n') else {
        return false;
    };
    let (lines, last) = shown.rsplit_once('\n').unwrap_or(("", shown));
    let names = last.strip_prefix(NAMES).and_then(parse_names);
    let length = Length::of(text);
    let (mut cutter, mut plain) = (Cutter::new(), PlainText::default());
    let mut all = Vec::<OwnedUnit>::new();
    let mut see = |unit: Unit<'_>| all.push(unit.into());
    plain.push(text, &mut |piece| cutter.push(piece, &mut see));
    plain.end(&mut |piece| cutter.push(piece, &mut see));
    cutter.end(&mut see);
    let all: Vec<Unit<'_>> = all.iter().map(OwnedUnit::unit).collect();
    let is = |lines: &str, names| {
        let excerpt = find(lines, &all).map(|units| Excerpt { units, names });
        excerpt.is_some_and(|excerpt| excerpt.render(length) == preview)
    };
    // A line that looks like names may be part of the text.
    names.is_some_and(|names| are_in(&all, &names) && is(lines, names)) || is(shown, Vec::new())
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

/// The units that these lines show: for each line, the first that it may begin with, and those that follow.
fn find<'u>(lines: &str, all: &[Unit<'u>]) -> Option<Vec<Unit<'u>>> {
    let mut found: Vec<Unit<'_>> = Vec::new();
    let mut units = all.iter().copied().peekable();
    for line in lines.split('\n').filter(|_| !lines.is_empty()) {
        let mut rest = loop {
            let unit = units.next()?;
            if let Some(length) = unit.begins(line, found.last()) {
                found.push(unit);
                break &line[length..];
            }
        };
        while let Some(last) = found.last()
            && let Some(unit) = units.next_if(|unit| {
                unit.follows(last)
                    && rest.starts_with(unit.text)
                    && !(unit.place.ends_line && rest != unit.text)
            })
        {
            rest = &rest[unit.text.len()..];
            found.push(unit);
        }
    }
    Some(found)
}

/// Returns true if each of these names is in its line.
fn are_in(all: &[Unit<'_>], names: &[(u64, &str)]) -> bool {
    let lines: HashSet<u64> = names.iter().map(|(line, _)| *line).collect();
    let mut found = HashSet::new();
    let listed = all.iter().filter(|unit| lines.contains(&unit.place.line));
    for Unit { text, place } in listed {
        each_name(text, |name| {
            found.insert((place.line, name.text));
        });
        each_value(text, |kind, text| {
            if kind == Kind::Flag {
                found.insert((place.line, text));
            }
        });
    }
    names.iter().all(|name| found.contains(name))
}
