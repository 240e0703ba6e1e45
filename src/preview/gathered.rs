//! Lines kept from a text as it arrives, so that the informative ones can be chosen at its end.

use std::collections::HashSet;
use std::hash::BuildHasher;

use foldhash::fast::{FixedState, RandomState};

use crate::preview::choice::{Wanted, choose};
use crate::preview::excerpt::Length;
use crate::preview::failures::{Templates, failing, may_be_failure};
use crate::preview::found::worth;
use crate::preview::head_tail;
use crate::preview::names::each_name;
use crate::preview::outcomes::{FIRST, LAST, is_ruler, told};
use crate::preview::plain::Piece;
use crate::preview::units::{Cutter, Place, Unit, is_heading};
use crate::preview::values::{has_value, may_have_value};

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
    ends: head_tail::HeadTailSketch,
    cutter: Cutter,
    kept: Kept,
}

/// The lines with names, values, failures or outcomes, or a selection of them.
#[derive(Clone, Debug)]
struct Kept {
    wanted: Wanted,
    text: String,
    units: Vec<KeptUnit>,
    /// Hashes of the names so far.
    seen: HashSet<u64, RandomState>,
    templates: Templates,
    /// Number of bytes of the text in lines with names.
    named: u64,
    /// Number of the first lines so far, which are kept whatever they tell.
    first: usize,
    /// The last lines that are neither kept nor rulers.
    last: Vec<(String, Place)>,
    /// Number of such lines so far, of which the newest take the place of the oldest.
    unkept: usize,
    /// The newest line that may report a failure. If it comes in pieces, the last one is kept.
    failing: u64,
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
    pub(crate) fn new(wanted: Wanted, budget: usize) -> Self {
        Self {
            ends: head_tail::HeadTailSketch::new(budget),
            cutter: Cutter::new(),
            kept: Kept::new(wanted),
        }
    }

    pub(crate) fn push(&mut self, piece: Piece<'_>) {
        self.ends.push(piece);
        self.cutter.push(piece, &mut |unit| self.kept.add(unit));
    }

    /// Ends the text, or its line before a line feed.
    pub(crate) fn end(&mut self) {
        self.cutter.end(&mut |unit| self.kept.add(unit));
        self.ends.shrink();
    }

    /// Appends another text, which has ended. A line feed must come next.
    pub(crate) fn append(&mut self, other: &Self) {
        self.ends.append(&other.ends);
        let before = self.cutter.line() - 1;
        self.kept.append(&other.kept, before);
        self.cutter.skip_to(before + other.cutter.line());
    }

    /// Returns true if all text so far has been looked at.
    pub(crate) fn has_ended(&self) -> bool {
        self.cutter.has_ended()
    }

    /// Returns a preview of at most `budget` bytes of this text, which has ended and stands for `bytes`
    /// bytes. If there is too little to choose from, shows head and tail.
    pub(crate) fn show(&self, bytes: u64, budget: usize) -> String {
        if self.ends.bytes() <= budget as u64 {
            return self.ends.show(budget, std::iter::empty());
        }
        let (kept, all) = (&self.kept, self.kept.all());
        let is_chosen = kept.wanted != Wanted::Ends
            && (kept.named >= bytes / SURE || kept.templates.is_repetitive());
        if is_chosen {
            let length = Length {
                bytes,
                feeds: self.ends.feeds(),
            };
            let chosen = choose(&all, &kept.templates, kept.wanted, length, budget);
            if !chosen.units.is_empty() || !chosen.names.is_empty() {
                return chosen.render(length);
            }
        }
        let failing = failing(&all, &kept.templates).into_iter();
        self.ends.show(budget, failing.map(|at| all[at]))
    }
}

impl Kept {
    fn new(wanted: Wanted) -> Self {
        Self {
            wanted,
            text: String::new(),
            units: Vec::new(),
            seen: HashSet::default(),
            templates: Templates::default(),
            named: 0,
            first: 0,
            last: Vec::new(),
            unkept: 0,
            failing: 0,
        }
    }

    fn add(&mut self, unit: Unit<'_>) {
        let is_ruler = is_ruler(unit.text);
        if unit.place.byte == 0 && !is_ruler {
            self.templates.add(unit);
        }
        self.keep(unit, is_ruler);
    }

    /// Keeps a unit if it is worth that.
    fn keep(&mut self, unit: Unit<'_>, is_ruler: bool) {
        let may_fail = may_be_failure(unit.text);
        if may_fail {
            self.failing = unit.place.line;
        }
        let is_failing = may_fail || self.failing == unit.place.line && unit.place.ends_line;
        // A piece of a long line is data.
        let is_telling = unit.place.byte == 0 && (may_fail || told(unit.text).any());
        let mut news = if is_telling { TELLING } else { 0.0 };
        let mut is_kept = is_failing;
        if self.wanted != Wanted::Ends {
            let mut is_named = false;
            each_name(unit.text, |name| {
                is_named = true;
                if self.seen.len() < MAX_SEEN && self.seen.insert(NAMES.hash_one(name.text)) {
                    news += worth(name.text);
                }
            });
            if is_named {
                self.named += unit.place.bytes + u64::from(unit.place.ends_line);
            }
            let is_first = self.first < FIRST && !is_ruler;
            self.first += usize::from(is_first);
            is_kept |= is_named || is_first || is_telling || is_worth_keeping(&unit);
            if !is_kept && !is_ruler {
                self.set_last(unit);
            }
        }
        if !is_kept {
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

    /// Appends those of another text, which comes after `lines` lines.
    fn append(&mut self, other: &Self, lines: u64) {
        self.templates.append(&other.templates, lines);
        for unit in other.all() {
            self.keep(unit.moved(lines), is_ruler(unit.text));
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

    /// The kept units, the last lines and the odd ones, in text order.
    fn all(&self) -> Vec<Unit<'_>> {
        let last = self.last.iter().map(|(text, place)| Unit {
            text,
            place: *place,
        });
        let others = last.chain(self.templates.odd());
        let mut all: Vec<Unit<'_>> = self.units().map(|(_, unit)| unit).chain(others).collect();
        // Mostly in order.
        all.sort_by_key(|unit| unit.place);
        all.dedup_by_key(|unit| unit.place);
        all
    }

    /// Drops about half: keeps both ends and the units with the most news per byte.
    fn prune(&mut self) {
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
        (self.text, self.units) = (text, units);
    }
}

/// Returns true for a line that is worth something without a name.
fn is_worth_keeping(unit: &Unit<'_>) -> bool {
    let line = unit.text;
    may_have_value(line) && has_value(line) || is_heading(unit) || line.ends_with(':')
}
