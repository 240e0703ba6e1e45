//! Lines kept from a text as it arrives, so that the informative ones can be chosen at its end.

use std::collections::HashSet;
use std::hash::BuildHasher;

use foldhash::fast::RandomState;

use crate::preview::choice::{Preview, choose};
use crate::preview::excerpt::Excerpt;
use crate::preview::failures::{HASHER, Templates, failing, signs_of};
use crate::preview::found::worth;
use crate::preview::head_tail::HeadTailSketch;
use crate::preview::names::each_name;
use crate::preview::outcomes::is_ruler;
use crate::preview::signs::{FAILURE, FATAL, PLACE};
use crate::preview::text::lines::Length;
use crate::preview::units::{OwnedUnit, Unit};

/// Maximum number of bytes, and of lines, that are kept. A longer text keeps those
/// at both ends, and from the rest those with many new names.
const MAX_KEPT: usize = 256 * 1024;
const MAX_UNITS: usize = 16 * 1024;
/// Share of [`MAX_KEPT`], in bytes, for the lines at each end.
const END: usize = MAX_KEPT / 8;
/// Maximum number of names remembered, to detect new ones. Any further name counts as known.
const MAX_SEEN: usize = 32 * 1024;
/// Worth of a failure or an outcome, in names, where lines are dropped.
const TELLING: f32 = 12.0;
/// Lines are chosen by their names only if at least one in this many bytes is in lines with names.
/// Otherwise names say little, so head and tail are shown.
const SURE: u64 = 10;

/// The lines of a text but for rulers, or a selection of them; of a text whose ends are shown, those that report failures.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptLines {
    wanted: Preview,
    /// Each with the worth of its names that no earlier line has.
    units: Vec<(OwnedUnit, f32)>,
    /// Number of bytes of their texts.
    bytes: usize,
    /// Hashes of the names so far.
    seen: HashSet<u64, RandomState>,
    templates: Templates,
    /// Number of bytes of the text in lines with names.
    named: u64,
}

impl KeptLines {
    pub(crate) fn new(wanted: Preview) -> Self {
        Self {
            wanted,
            ..Self::default()
        }
    }

    pub(crate) fn add(&mut self, unit: Unit<'_>) {
        if !is_ruler(unit.text) {
            self.templates.add(unit);
        }
        self.keep(unit);
    }

    /// Keeps a unit if it is worth that.
    fn keep(&mut self, unit: Unit<'_>) {
        let signs = signs_of(&unit);
        let may_fail = signs & (FAILURE | PLACE) != 0;
        let mut news = if signs & !FATAL != 0 { TELLING } else { 0.0 };
        if self.wanted != Preview::HeadTail {
            let mut is_named = false;
            each_name(unit.text, |name| {
                is_named = true;
                if self.seen.len() < MAX_SEEN && self.seen.insert(HASHER.hash_one(name.text)) {
                    news += worth(name.text);
                }
            });
            if is_named {
                self.named += unit.place.bytes + u64::from(unit.place.ends_line);
            }
        }
        if !may_fail && (self.wanted == Preview::HeadTail || is_ruler(unit.text)) {
            return;
        }
        self.bytes += unit.text.len();
        self.units.push((unit.into(), news));
        if self.bytes > MAX_KEPT || self.units.len() > MAX_UNITS {
            self.prune();
        }
    }

    /// Returns a preview of at most `budget` bytes of a text of this length with these `ends`. If there is too little to
    /// choose from, shows head and tail.
    pub(crate) fn show(&self, ends: &HeadTailSketch, length: Length, budget: usize) -> String {
        let all = self.all();
        let is_long = ends.bytes() > budget as u64;
        let is_chosen = is_long
            && self.wanted != Preview::HeadTail
            && (self.named >= length.bytes / SURE || self.templates.is_repetitive());
        if is_chosen {
            let chosen = choose(&all, &self.templates, self.wanted, length, budget);
            if !chosen.units.is_empty() || !chosen.names.is_empty() {
                return chosen.render(length);
            }
        }
        // Most of it may be blank lines.
        let is_little = is_long && self.bytes < budget && !all.is_empty();
        if is_little && matches!(self.wanted, Preview::Lines | Preview::Mixed) {
            let (units, names) = (all.clone(), Vec::new());
            let shown = Excerpt { units, names }.render(length);
            if shown.len() <= budget {
                return shown;
            }
        }
        let failing = failing(&all, &self.templates).into_iter();
        ends.show(budget, failing.map(|at| all[at]))
    }

    /// The kept units and the odd lines, in text order.
    fn all(&self) -> Vec<Unit<'_>> {
        let odd = self.templates.odd().map(|(unit, _)| unit);
        let kept = self.units.iter().map(|(unit, _)| unit.unit());
        let mut all: Vec<Unit<'_>> = kept.chain(odd).collect();
        // Mostly in order.
        all.sort_by_key(|unit| unit.place);
        all.dedup_by_key(|unit| unit.place);
        all
    }

    /// Drops about half: keeps both ends and the units with the most news per byte.
    fn prune(&mut self) {
        let (count, bytes) = (self.units.len(), self.bytes);
        let (ends, mut end) = (count / 8, 0);
        let mut middle: Vec<(f32, usize, usize)> = Vec::new();
        for (at, (unit, news)) in self.units.iter().enumerate() {
            let length = unit.unit().text.len();
            end += length;
            let is_end = end <= END && at < ends || end + END > bytes && at >= count - ends;
            if !is_end {
                middle.push((news / (length + 16) as f32, at, length));
            }
        }
        // Of two with equal news per byte, the later one is newer.
        middle.sort_unstable_by(|(news, at, _), (other_news, other, _)| {
            other_news.total_cmp(news).then(other.cmp(at))
        });
        let mut keeps = vec![true; count];
        let mut bytes = 0;
        for (nth, (_, at, length)) in middle.into_iter().enumerate() {
            bytes += length;
            keeps[at] = bytes <= MAX_KEPT / 4 && nth < MAX_UNITS / 4;
        }
        let mut keeps = keeps.into_iter();
        self.units.retain(|_| keeps.next().unwrap_or(true));
        let lengths = self.units.iter().map(|(unit, _)| unit.unit().text.len());
        self.bytes = lengths.sum();
    }
}
