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

/// A unit that is shown, and the aligned number that its line begins with.
type ShownUnit<'t> = (Unit<'t>, Option<(u64, usize)>);

impl<'t> Unit<'t> {
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

    /// The unit as it is shown after `last`, with the end of that one's line.
    fn shown_after(self, last: Option<ShownUnit<'_>>) -> (String, ShownUnit<'t>) {
        let number = self.aligned_number();
        match last {
            Some((last, own)) if self.follows(&last) => (self.text.to_owned(), (self, own)),
            Some((last, own)) if self.is_next_line(&last) => {
                // The number is left out if it continues the numbering of the line before.
                let next = own.map(|(own, length)| (own + 1, length));
                let left_out = number.filter(|_| number == next);
                let from = left_out.map_or(0, |(_, length)| length);
                (format!("\n{}", &self.text[from..]), (self, number))
            }
            _ => {
                let text = format!("{}{}{}", end(last), self.mark(), self.text);
                (text, (self, number))
            }
        }
    }
}

/// The end of a shown line.
fn end(last: Option<ShownUnit<'_>>) -> &'static str {
    match last {
        None => "",
        Some((last, _)) if last.place.ends_line => "\n",
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

/// Upper bound in bytes for a name.
pub(crate) fn most_of_name(line: u64, name: &str) -> usize {
    format!(" {line} ").len() + name.len()
}

fn mark(bytes: u64) -> String {
    format!("[… {bytes} B …]")
}

impl Excerpt<'_> {
    pub(crate) fn render(&self, length: Length) -> String {
        let mut out = String::new();
        let (mut last, mut shown) = (None, 0);
        for unit in &self.units {
            let place = unit.place;
            shown += place.bytes + u64::from(place.ends_line && place.line <= length.end.feeds());
            let (text, this) = unit.shown_after(last);
            out.push_str(&text);
            last = Some(this);
        }
        out.push_str(end(last));
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

/// Returns true if `preview` is an excerpt of `text` and has no other content. Linear in the text, and in memory in the
/// preview.
pub(crate) fn holds_only(preview: &str, text: &str) -> bool {
    let Some((shown, _)) = preview.rsplit_once('\n') else {
        return false;
    };
    let (lines, last) = shown.rsplit_once('\n').unwrap_or(("", shown));
    let names = last.strip_prefix(NAMES).and_then(parse_names);
    // A line that looks like names may be part of the text.
    let mut readings = vec![ShownText::new(shown, Vec::new())];
    readings.extend(names.map(|names| ShownText::new(lines, names)));
    let (mut cutter, mut plain) = (Cutter::new(), PlainText::default());
    let mut see = |unit: Unit<'_>| readings.iter_mut().for_each(|one| one.see(unit));
    plain.push(text, &mut |piece| cutter.push(piece, &mut see));
    plain.end(&mut |piece| cutter.push(piece, &mut see));
    cutter.end(&mut see);
    let length = Length::of(text);
    readings.iter().any(|one| one.holds(preview, length))
}

/// A reading of a preview: the units that its lines show, and the names after them.
struct ShownText<'p> {
    /// The lines whose units have not come yet.
    lines: &'p str,
    /// The first units that the lines may begin with, and those that may follow.
    found: Vec<OwnedUnit>,
    /// The number of the last one's line, as the text has it.
    number: Option<(u64, usize)>,
    names: Vec<(u64, &'p str)>,
    /// The names that have not been found in their lines yet, by line.
    missing: BTreeMap<u64, BTreeSet<&'p str>>,
}

impl<'p> ShownText<'p> {
    fn new(lines: &'p str, names: Vec<(u64, &'p str)>) -> Self {
        let mut missing = BTreeMap::<u64, BTreeSet<&str>>::new();
        for (line, name) in &names {
            missing.entry(*line).or_default().insert(*name);
        }
        Self {
            lines,
            found: Vec::new(),
            number: None,
            missing,
            names,
        }
    }

    fn see(&mut self, unit: Unit<'_>) {
        let line = unit.place.line;
        if let Some(missing) = self.missing.get_mut(&line) {
            each_name(unit.text, |name| _ = missing.remove(name.text));
            each_value(unit.text, |kind, text| {
                if kind == Kind::Flag {
                    missing.remove(text);
                }
            });
            if missing.is_empty() {
                self.missing.remove(&line);
            }
        }
        if self.lines.is_empty() {
            return;
        }
        let last = self.found.last();
        let last = last.map(|last| (last.unit(), self.number));
        let (text, (_, number)) = unit.shown_after(last);
        if let Some(rest) = self.lines.strip_prefix(&text)
            && (!unit.place.ends_line || rest.is_empty() || rest.starts_with('\n'))
        {
            (self.lines, self.number) = (rest, number);
            self.found.push(unit.into());
        }
    }

    fn holds(&self, preview: &str, length: Length) -> bool {
        let units = self.found.iter().map(OwnedUnit::unit).collect();
        let names = self.names.clone();
        self.missing.is_empty() && Excerpt { units, names }.render(length) == preview
    }
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
