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

use std::collections::{BTreeMap, BTreeSet};

use crate::preview::names::each_name;
use crate::preview::plain::Plain;
use crate::preview::text::lines::{Length, Position, number};
use crate::preview::units::{CUT, Place, Unit, own_number, units};
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
            _ => {
                let cut = if byte > 0 { CUT } else { "" };
                format!("{}|{cut}", Position { line, byte })
            }
        }
    }
}

/// The end of a shown line.
fn end(last: Option<&Unit<'_>>) -> &'static str {
    match last {
        None => "",
        Some(last) if last.place.ends_line => "\n",
        Some(_) => "…\n",
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

fn mark(bytes: u64) -> String {
    format!("[… {bytes} B …]")
}

/// The number of bytes in a mark.
fn marked(line: &str) -> Option<u64> {
    let count = line.strip_prefix("[… ")?.strip_suffix(" B …]")?;
    number(count)
}

/// The preview of a decoded text of `text` bytes, with the hidden ones counted as they are stored: a replacement
/// character takes three bytes, and mostly stands for one. A text that is shorter than what is stored, as of UTF-16 it
/// often is, counts itself.
pub(crate) fn in_stored_bytes(preview: String, text: u64, stored: u64) -> String {
    let more = text.saturating_sub(stored);
    let Some((shown, last)) = preview.rsplit_once('\n').filter(|_| more > 0) else {
        return preview;
    };
    let Some(hidden) = marked(last) else {
        return preview;
    };
    let of_shown = 2 * shown.matches('\u{fffd}').count() as u64;
    let hidden = hidden.saturating_sub(more.saturating_sub(of_shown));
    format!("{shown}\n{}", mark(hidden))
}

impl Excerpt<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.units.is_empty() && self.names.is_empty()
    }

    pub(crate) fn render(&self, length: Length) -> String {
        let (mut out, mut shown) = (String::new(), 0);
        // The last unit, and the aligned number that its line begins with.
        let (mut last, mut own) = (None::<&Unit<'_>>, None);
        for unit in &self.units {
            let place = unit.place;
            shown += place.bytes + u64::from(place.ends_line && place.line <= length.end.feeds());
            let number = unit.aligned_number();
            match last {
                Some(last) if unit.follows(last) => out += unit.text,
                Some(last) if unit.is_next_line(last) => {
                    // The number is left out if it continues the numbering of the line before.
                    let next = own.map(|(own, length)| (own + 1, length));
                    let left_out = number.filter(|_| number == next);
                    out += "\n";
                    out += &unit.text[left_out.map_or(0, |(_, length)| length)..];
                }
                _ => out += &format!("{}{}{}", end(last), unit.mark(), unit.text),
            }
            if !last.is_some_and(|last| unit.follows(last)) {
                own = number;
            }
            last = Some(unit);
        }
        out += end(last);
        if !self.names.is_empty() {
            out += &listed(&self.names);
            out.push('\n');
        }
        out.push_str(&mark(length.bytes.saturating_sub(shown)));
        out
    }
}

/// Returns true if `preview` is an excerpt of a text of `bytes` bytes that has this plain form, and has no other content.
/// Linear.
pub(crate) fn holds_only(preview: &str, plain: &Plain<'_>, bytes: u64) -> bool {
    let Some((shown, last)) = preview.rsplit_once('\n') else {
        return false;
    };
    let count = marked(last).filter(|count| *count <= bytes);
    let (rows, last) = shown.rsplit_once('\n').unwrap_or(("", shown));
    let names = last.strip_prefix(NAMES).and_then(parse_names);
    let names = names.filter(|names| listed(names) == last);
    let are_listed =
        |names| (rows.is_empty() || are_rows(rows, &plain.text, bytes)) && are_names(names, plain);
    // A line that looks like names may be part of the text.
    count.is_some() && (are_rows(shown, &plain.text, bytes) || names.is_some_and(are_listed))
}

/// Returns true if each row shows a line of `plain`, or a part of it, under its number or right below the one before.
fn are_rows(rows: &str, plain: &str, bytes: u64) -> bool {
    // From line 1 on.
    let lines: Vec<&str> = std::iter::once("").chain(plain.split('\n')).collect();
    let line = |number: u64| lines.get(usize::try_from(number).ok()?).copied();
    let begin_of = |line: u64| Position { line, byte: 0 };
    // The place of the row before, and what is left of its line.
    let (mut last, mut open) = (begin_of(0), "");
    rows.split('\n').all(|row| {
        let place = begin_of(last.line + 1);
        let next = line(place.line).filter(|_| last.line > 0);
        let below = next.and_then(|line| Some((place, after(row, line)?)));
        let marked = || {
            let mark = row.split_once('|');
            let mark = mark.and_then(|(place, text)| Some((Position::parse(place)?, text)));
            let own = || Some((begin_of(own_number(row)?.0), row));
            let (place, text) = mark.or_else(own)?;
            let is_same = place.line == last.line;
            let begun = if is_same { open } else { line(place.line)? };
            let rest = if place.byte == 0 {
                after(row, begun).or_else(|| after(text, begun))?
            } else {
                let piece = text.strip_prefix(CUT)?;
                let piece = piece.strip_suffix(CUT).unwrap_or(piece);
                begun.split_once(piece).filter(|_| !piece.is_empty())?.1
            };
            (place > last && place.byte < bytes).then_some((place, rest))
        };
        // Last, since a line may begin with very many blanks.
        let without_number = || {
            let line = next?;
            let (_, length) = Unit::line(line, place.line).aligned_number()?;
            Some((place, after(row, &line[length..])?))
        };
        let shown = below.or_else(marked).or_else(without_number);
        (last, open) = shown.unwrap_or((last, open));
        shown.is_some()
    })
}

/// The rest of a line that a row shows whole, or up to a cut.
fn after<'t>(row: &str, line: &'t str) -> Option<&'t str> {
    match row.strip_suffix(CUT) {
        _ if row == line => Some(""),
        begin => line.strip_prefix(begin?),
    }
}

/// Returns true if each name stands in the line of its number.
fn are_names(names: Vec<(u64, &str)>, plain: &Plain<'_>) -> bool {
    let mut missing = BTreeMap::<u64, BTreeSet<&str>>::new();
    for (line, name) in names {
        if !missing.entry(line).or_default().insert(name) {
            return false;
        }
    }
    for unit in units(plain, Position::START) {
        if let Some(missing) = missing.get_mut(&unit.place.line) {
            each_name(unit.text, |name, _| _ = missing.remove(name));
            each_value(unit.text, |kind, text| {
                if kind == Kind::Flag {
                    missing.remove(text);
                }
            });
        }
    }
    missing.values().all(BTreeSet::is_empty)
}

/// The row of names, each after the number of its line.
fn listed(names: &[(u64, &str)]) -> String {
    let (mut row, mut at) = (NAMES.to_owned(), None);
    for (line, name) in names {
        if at != Some(line) {
            row += &format!(" {line}");
        }
        row += &format!(" {name}");
        at = Some(line);
    }
    row
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
