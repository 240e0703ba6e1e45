//! What is kept of a text as it comes, so that its informative lines can be chosen at its end.

use std::collections::HashSet;

use super::choice::{Wanted, choose, worth};
use super::excerpt::Length;
use super::failures::is_failure;
use super::head_tail;
use super::names::each_name;
use super::units::{Cutter, Place, Unit};

/// So many bytes of lines with names are kept at most, and so many lines. Of a longer text, those
/// at both ends, and those of the rest whose names are new and many.
const MAX_KEPT: usize = 256 * 1024;
const MAX_UNITS: usize = 16 * 1024;
/// What of [`MAX_KEPT`] the lines at each end take.
const END: usize = MAX_KEPT / 8;
/// So many names are remembered, to tell which are new. What comes then is taken for new.
const MAX_SEEN: usize = 32 * 1024;
/// Lines are chosen by their names only where so much of the text, one part in this, is lines with
/// names. Otherwise what matters is not named, and head and tail are shown.
const SURE: u64 = 10;

/// All of a text that is not long, or a choice of its lines. Costs about a megabyte at most, and a
/// few times the budget.
#[derive(Clone, Debug)]
pub(crate) struct Gathered {
    /// For a text without names, and for its length.
    ends: head_tail::Sketch,
    cutter: Cutter,
    kept: Kept,
}

/// The lines with names and those that say what went wrong, or those of them that are kept.
#[derive(Clone, Debug, Default)]
struct Kept {
    text: String,
    units: Vec<KeptUnit>,
    seen: HashSet<u64>,
    /// How many bytes of the text are lines with names.
    named: u64,
}

#[derive(Clone, Copy, Debug)]
struct KeptUnit {
    /// Where its text ends in what is kept; it begins where the one before ends.
    end: usize,
    place: Place,
    /// What its names are worth that no earlier line has.
    news: f32,
}

impl Gathered {
    pub(super) fn new(budget: usize) -> Self {
        Self {
            ends: head_tail::Sketch::new(budget),
            cutter: Cutter::new(),
            kept: Kept::default(),
        }
    }

    pub(super) fn push(&mut self, text: &str) {
        self.ends.push(text);
        self.cutter.push(text, &mut |unit| self.kept.add(unit));
    }

    /// The text goes on with another one. A line feed has to come next.
    pub(super) fn append(&mut self, other: &Self) {
        self.ends.append(&other.ends);
        let (before, _) = self.cutter.position();
        let mut other = other.clone();
        other.cutter.end(&mut |unit| other.kept.add(unit));
        for (_, unit) in other.kept.units() {
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

    pub(super) fn ends(&self) -> &head_tail::Sketch {
        &self.ends
    }

    /// What is shown in at most `budget` bytes; head and tail, with so much for the head, where
    /// there is little to choose by.
    pub(super) fn show(&self, wanted: Wanted, head: usize, budget: usize) -> String {
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
        let units: Vec<Unit<'_>> = kept.units().map(|(_, unit)| unit).collect();
        let chosen = choose(&units, wanted, length, budget);
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
            if self.seen.len() < MAX_SEEN && self.seen.insert(hash(name.text)) {
                news += worth(name.text);
            }
        });
        if is_named {
            self.named += unit.text.len() as u64 + u64::from(unit.place.ends_line);
        } else if !is_failure(unit.text) {
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

    /// Keeps about half: both ends, and what has the most news for its bytes.
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
        // The later of two that are worth the same is newer.
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

/// FNV-1a: names are short.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
