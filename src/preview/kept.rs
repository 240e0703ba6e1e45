//! Lines kept from a text as it arrives, so that the informative ones can be chosen at its end.

use crate::preview::choice::{Preview, choose};
use crate::preview::failures::{Templates, signs_of};
use crate::preview::names::each_name;
use crate::preview::outcomes::is_ruler;
use crate::preview::text::lines::Length;
use crate::preview::units::{OwnedUnit, Unit};

/// Maximum number of bytes that are kept of a text whose lines are chosen, and of one whose ends are shown: budgets, and
/// bytes beside them for lines that report failures.
const MAX_KEPT: usize = 256 * 1024;
const BUDGETS: usize = 3;
const BESIDE: usize = 2 * 1024;
/// Minimum number of bytes that a line counts for.
const MIN_COUNTED: usize = 16;
/// Lines are chosen by their names only if at least one in this many bytes is in lines with names.
/// Otherwise names say little, so the ends are shown.
const SURE: u64 = 10;

/// The lines of a text, or a selection of them. Rulers are kept only where the ends are shown.
#[derive(Clone, Debug)]
pub(crate) struct KeptLines {
    wanted: Preview,
    units: Vec<OwnedUnit>,
    /// Number of bytes that they count for, and the most.
    bytes: usize,
    most: usize,
    templates: Templates,
    /// Number of bytes of the text in lines with names.
    named: u64,
}

impl KeptLines {
    pub(crate) fn new(wanted: Preview, budget: usize) -> Self {
        Self {
            wanted,
            units: Vec::new(),
            bytes: 0,
            most: match wanted {
                Preview::HeadTail => budget.saturating_mul(BUDGETS).saturating_add(BESIDE),
                _ => MAX_KEPT,
            },
            templates: Templates::default(),
            named: 0,
        }
    }

    pub(crate) fn add(&mut self, unit: Unit<'_>) {
        let is_ruler = is_ruler(unit.text);
        if !is_ruler {
            self.templates.add(unit);
        }
        if self.wanted != Preview::HeadTail {
            if is_ruler {
                return;
            }
            let mut is_named = false;
            each_name(unit.text, |_| is_named = true);
            if is_named {
                self.named += unit.place.bytes + u64::from(unit.place.ends_line);
            }
        }
        self.bytes += counted(&unit);
        self.units.push(unit.into());
        if self.bytes > self.most {
            self.prune();
        }
    }

    /// Returns a preview of at most `budget` bytes of a text of this length. If there is too little to choose from, shows
    /// its ends.
    pub(crate) fn show(&self, length: Length, budget: usize) -> String {
        let all = self.all();
        let choose = |wanted| choose(&all, &self.templates, wanted, length, budget);
        let is_chosen = self.named >= length.bytes / SURE || self.templates.is_repetitive();
        let chosen = Some(self.wanted).filter(|wanted| is_chosen && *wanted != Preview::HeadTail);
        let chosen = chosen.map(choose).filter(|chosen| !chosen.is_empty());
        let shown = chosen.unwrap_or_else(|| choose(Preview::HeadTail));
        if shown.is_empty() {
            String::new()
        } else {
            shown.render(length)
        }
    }

    /// The kept units and the odd lines, in text order.
    fn all(&self) -> Vec<Unit<'_>> {
        let kept = self.units.iter().map(OwnedUnit::unit);
        let mut all: Vec<Unit<'_>> = kept.chain(self.templates.odd()).collect();
        // Mostly in order.
        all.sort_by_key(|unit| unit.place);
        all.dedup_by_key(|unit| unit.place);
        all
    }

    /// Keeps a quarter of the most at each end, and one of what tells of a failure or an outcome between them.
    fn prune(&mut self) {
        let share = self.most / 4;
        let (mut before, mut told, all) = (0, 0, self.bytes);
        self.bytes = 0;
        self.units.retain(|unit| {
            let unit = unit.unit();
            let bytes = counted(&unit);
            before += bytes;
            let is_end = before <= share || before + share > all;
            let is_told = !is_end && told + bytes <= share && signs_of(&unit) != 0;
            told += if is_told { bytes } else { 0 };
            let keeps = is_end || is_told;
            self.bytes += if keeps { bytes } else { 0 };
            keeps
        });
    }
}

fn counted(unit: &Unit<'_>) -> usize {
    unit.text.len().max(MIN_COUNTED)
}
