//! Lines kept from a text as it arrives, so that the informative ones can be chosen at its end.

use std::collections::HashSet;
use std::hash::BuildHasher;

use foldhash::fast::{FixedState, RandomState};

use crate::choice::{Wanted, choose};
use crate::excerpt::Length;
use crate::failures::is_failure;
use crate::found::worth;
use crate::head_tail;
use crate::kinds::is_of_diff;
use crate::names::each_name;
use crate::outcomes::{FIRST, LAST, is_ruler, told};
use crate::telling::TellingLines;
use crate::text::lines::Position;
use crate::units::{Cutter, Place, Unit, is_heading};
use crate::values::{has_value, may_have_value};

/// Maximum number of bytes, and of lines, kept of the lines with names. A longer text keeps those
/// at both ends, and from the rest those with many new names.
const MAX_KEPT: usize = 256 * 1024;
const MAX_UNITS: usize = 16 * 1024;
/// Share of [`MAX_KEPT`], in bytes, for the lines at each end.
const END: usize = MAX_KEPT / 8;
/// Maximum number of names remembered, to detect new ones. Any further name counts as known.
const MAX_SEEN: usize = 32 * 1024;
/// The same in every run, so that a preview is.
const NAMES: FixedState = FixedState::with_seed(0);
/// Worth of a failure or an outcome, in names, where lines are dropped.
const TELLING: f32 = 12.0;
/// Lines are chosen by their names only if at least one in this many bytes is in lines with names.
/// Otherwise names say little, so head and tail are shown.
const SURE: u64 = 10;

/// A short text in full, or a selection of a long text's lines. Takes about a megabyte at most,
/// plus a few times the budget.
#[derive(Clone, Debug)]
pub(crate) struct Gathered {
    /// For texts without names, and for the length.
    ends: head_tail::Sketch,
    cutter: Cutter,
    kept: Kept,
}

/// The lines with names, values, failures or outcomes, or a selection of them.
#[derive(Clone, Debug, Default)]
struct Kept {
    text: String,
    units: Vec<KeptUnit>,
    /// Number of the first units that have been looked at for what they tell.
    judged: usize,
    /// Hashes of the names so far.
    seen: HashSet<u64, RandomState>,
    /// Number of bytes of the text in lines with names.
    named: u64,
    /// Number of the first lines so far, which are kept whatever they tell.
    first: usize,
    /// The last lines that are neither kept nor rulers.
    last: Vec<(String, Place)>,
    /// Number of such lines so far, of which the newest take the place of the oldest.
    unkept: usize,
}

#[derive(Clone, Copy, Debug)]
struct KeptUnit {
    /// End of its text in `Kept::text`; it begins at the end of the unit before.
    end: usize,
    place: Place,
    /// Worth of its names that no earlier line has.
    news: f32,
}

impl Gathered {
    pub(crate) fn new(budget: usize) -> Self {
        Self {
            ends: head_tail::Sketch::new(budget),
            cutter: Cutter::new(),
            kept: Kept::default(),
        }
    }

    pub(crate) fn push(&mut self, text: &str) {
        self.ends.push(text);
        self.cutter.push(text, &mut |unit| self.kept.add(unit));
    }

    pub(crate) fn skip(&mut self, text: &str) {
        self.ends.skip(text);
        let Position { line, byte } = self.ends.end();
        self.cutter.skip_to((line, byte));
    }

    /// Appends another text. A line feed must come next.
    pub(crate) fn append(&mut self, other: &Self) {
        self.ends.append(&other.ends);
        let (before, _) = self.cutter.position();
        let mut other = other.clone();
        other.cutter.end(&mut |unit| other.kept.add(unit));
        for unit in other.kept.all() {
            self.kept.add(Unit {
                place: Place {
                    line: before - 1 + unit.place.line,
                    ..unit.place
                },
                ..unit
            });
        }
        let (line, byte) = other.cutter.position();
        self.cutter.skip_to((before - 1 + line, byte));
    }

    pub(crate) fn ends(&self) -> &head_tail::Sketch {
        &self.ends
    }

    /// Returns a preview of at most `budget` bytes. If there is too little to choose from, shows
    /// head and tail, with `head` bytes for the head.
    pub(crate) fn show(&self, wanted: Wanted, head: usize, budget: usize) -> String {
        let bytes = self.ends.bytes();
        let mut kept = &self.kept;
        let mut whole;
        if !self.cutter.is_at_end() {
            whole = self.kept.clone();
            self.cutter.clone().end(&mut |unit| whole.add(unit));
            kept = &whole;
        }
        if bytes <= budget as u64 || kept.named < bytes / SURE {
            return self.ends.show(head, budget);
        }
        let length = Length {
            bytes,
            feeds: self.ends.feeds(),
        };
        let chosen = choose(&kept.all(), wanted, length, budget);
        if chosen.units.is_empty() && chosen.names.is_empty() {
            return self.ends.show(head, budget);
        }
        chosen.render(length)
    }
}

impl Kept {
    fn add(&mut self, unit: Unit<'_>) {
        let mut is_named = false;
        let mut news = 0.0;
        each_name(unit.text, |name| {
            is_named = true;
            if self.seen.len() < MAX_SEEN && self.seen.insert(NAMES.hash_one(name.text)) {
                news += worth(name.text);
            }
        });
        if is_named {
            self.named += unit.text.len() as u64 + u64::from(unit.place.ends_line);
        }
        let is_first = self.first < FIRST && !is_ruler(unit.text);
        self.first += usize::from(is_first);
        if !is_named && !is_first && !is_worth_keeping(&unit) {
            if !is_ruler(unit.text) {
                self.set_last(unit);
            }
            return;
        }
        self.text.push_str(unit.text);
        self.units.push(KeptUnit {
            end: self.text.len(),
            place: unit.place,
            news,
        });
        if self.text.len() > MAX_KEPT || self.units.len() > MAX_UNITS {
            self.prune();
        }
    }

    /// Keeps a line for as long as it is one of the last.
    fn set_last(&mut self, unit: Unit<'_>) {
        if self.last.len() < LAST {
            self.last.push((unit.text.to_owned(), unit.place));
        } else {
            // The buffer of the oldest is used again.
            let (text, place) = &mut self.last[self.unkept % LAST];
            unit.text.clone_into(text);
            *place = unit.place;
        }
        self.unkept += 1;
    }

    fn units(&self) -> impl Iterator<Item = (f32, Unit<'_>)> {
        let mut start = 0;
        self.units.iter().map(move |unit| {
            let text = &self.text[start..unit.end];
            start = unit.end;
            (
                unit.news,
                Unit {
                    text,
                    place: unit.place,
                },
            )
        })
    }

    /// The kept units and the last lines, in text order.
    fn all(&self) -> Vec<Unit<'_>> {
        let last = self.last.iter().map(|(text, place)| Unit {
            text,
            place: *place,
        });
        let mut all: Vec<Unit<'_>> = self.units().map(|(_, unit)| unit).chain(last).collect();
        // Mostly in order.
        all.sort_by_key(|unit| unit.place);
        all
    }

    /// Drops about half: keeps both ends and the units with the most news per byte.
    fn prune(&mut self) {
        self.judge();
        let ends = self.units.len() / 8;
        let (from, to) = (END, self.text.len() - END);
        let mut middle: Vec<(f32, usize)> = Vec::new();
        let mut keeps = vec![true; self.units.len()];
        for (at, (news, unit)) in self.units().enumerate() {
            let end = self.units[at].end;
            let is_end = end <= from && at < ends || end > to && at >= self.units.len() - ends;
            if !is_end {
                middle.push((news / (unit.text.len() + 16) as f32, at));
            }
        }
        // Of two with equal news per byte, the later one is newer.
        middle.sort_unstable_by(|(news, at), (other_news, other)| {
            other_news.total_cmp(news).then(other.cmp(at))
        });
        let (mut bytes, mut count) = (0, 0);
        for (_, at) in middle {
            let start = at.checked_sub(1).map_or(0, |before| self.units[before].end);
            bytes += self.units[at].end - start;
            count += 1;
            keeps[at] = bytes <= MAX_KEPT / 4 && count <= MAX_UNITS / 4;
        }
        let (mut text, mut units) = (String::new(), Vec::new());
        for (at, (_, unit)) in self.units().enumerate().filter(|(at, _)| keeps[*at]) {
            text.push_str(unit.text);
            units.push(KeptUnit {
                end: text.len(),
                ..self.units[at]
            });
        }
        self.judged = units.len();
        (self.text, self.units) = (text, units);
    }

    /// Adds the worth of failures and outcomes to the units that came since the last time. A piece of
    /// a long line is data.
    fn judge(&mut self) {
        let mut start = self
            .judged
            .checked_sub(1)
            .map_or(0, |before| self.units[before].end);
        let fresh = start;
        let mut lines = TellingLines::new(&self.text[fresh..]);
        for unit in &mut self.units[self.judged..] {
            let tells = lines.tells(start - fresh..unit.end - fresh);
            start = unit.end;
            if unit.place.byte == 0 && tells {
                unit.news += TELLING;
            }
        }
    }
}

/// Returns false for most lines without ASCII, at the speed of memory. Of all signs, only the crosses
/// of failures are not ASCII.
fn may_tell(line: &str) -> bool {
    let is_telling =
        |byte: u8| byte.is_ascii() | (byte == "×".as_bytes()[0]) | (byte == "✗".as_bytes()[0]);
    line.bytes()
        .fold(false, |found, byte| found | is_telling(byte))
}

/// Returns true for a line that is worth something without a name.
fn is_worth_keeping(unit: &Unit<'_>) -> bool {
    let line = unit.text;
    may_tell(line)
        && (may_have_value(line) && (has_value(line) || told(line).any())
            || is_failure(line)
            || is_heading(unit)
            || is_of_diff(unit))
}
