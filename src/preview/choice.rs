//! Choice of the lines and names of a text that are worth showing.
//!
//! Of a text whose ends are shown, these are lines from the beginning in half of the budget, those that report failures, and
//! lines from the end. Of any other, the lines that tell how the text ended come first, in a part of the budget, and then, in another
//! part, those that report failures. Any other line is worth the names and values that it shows, most
//! if they have not yet been shown in a line, and extra if it reports a further failure. An entry of the
//! index is worth its name. Items with the highest worth per token are taken first, until the budget is
//! used up or nothing of worth is left.
//!
//! Worths only fall as more is taken, so a heap whose entries are checked again when popped gives
//! the exact order. They fall at most as often as there are names in the text, which bounds the
//! running time.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use serde::{Deserialize, Serialize};

use crate::preview::cost::about_tokens;
use crate::preview::excerpt::{Excerpt, is_number, most_of_unit, most_overhead};
use crate::preview::failures::{Templates, failing, failure_worth, signs_of};
use crate::preview::found::{Found, Named, pop_best};
use crate::preview::heads::{heads, without_repeats};
use crate::preview::middle::Middle;
use crate::preview::names::each_name;
use crate::preview::outcomes::{ending, is_ruler, without_header};
use crate::preview::plain::Plain;
use crate::preview::signs::{COUNTS, EXIT, signs};
use crate::preview::text::lines::{Length, Position};
use crate::preview::units::{CUT, Unit, is_excerpt_of_file, is_heading, own_text, units};

/// Maximum number of bytes in lines to choose from.
const MAX_KEPT: usize = 256 * 1024;
/// Minimum number of bytes that a line counts for.
const MIN_COUNTED: usize = 16;
/// Lines are chosen by their names only if at least one in this many bytes is in lines with names.
/// Otherwise names say little, so the ends are shown.
const SURE: u64 = 10;
/// One part in so many of the budget is for the lines that tell how the text ended.
const ENDING: usize = 4;
/// Minimum of that part in bytes for exit codes and counts, within half of the budget: `Process exited with code 0`.
const MIN_ENDING: usize = 36;
/// One in so many for the lines that report failures; the first of them may take twice that.
const FAILING: usize = 4;
/// One in so many for the heads of groups, if all fit.
const HEADS: usize = 3;
/// Extra worth of a heading: headings tell what a text is about, and where.
const HEADING: f32 = 1.0;
/// Extra worth of a Han character, and the number of characters that count: words of such scripts
/// are not found as names.
const HAN: f32 = 0.04;
const MAX_HAN: usize = 64;
/// Estimated tokens of an index entry, not counting its name.
const PER_ENTRY: f32 = 1.0;
/// Estimated tokens of the mark before a line, and of a line's end.
const PER_MARK: f32 = 2.5;
const PER_LINE: f32 = 1.0;

/// Number of items over the budget after which the search stops: a long text has thousands, and the
/// little budget left is not worth it.
const MAX_TOO_LONG: usize = 256;

/// A method of previewing texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Preview {
    /// The beginning and the end, about half of the budget each, and lines between them that report failures, verbatim
    /// and numbered.
    #[default]
    HeadTail,
    /// The lines with the most names and values, verbatim and numbered. In logs and test runs, lines
    /// that tell how it ended and lines that report failures take precedence.
    Lines,
    /// Names in the text, each after the number of a line that has it, so that this line can be
    /// read back.
    Index,
    /// Records, JSON documents, logs and matches of a search in their shape; of any other text lines and names
    /// together.
    Mixed,
}

/// Returns a preview of at most `budget` bytes of a text of this length, of which these parts are held, each with its
/// beginning, and of what stands between them, some lines. If there is too little to choose from, shows its ends. Rulers are shown only there.
pub(crate) fn show(
    wanted: Preview,
    parts: &[(Plain<'_>, Position)],
    middle: &Middle,
    length: Length,
    budget: usize,
) -> String {
    let are_ends = wanted == Preview::HeadTail;
    let all = || {
        let units = parts.iter().flat_map(|(plain, start)| units(plain, *start));
        units.filter(move |unit| are_ends || !is_ruler(unit.text))
    };
    let bytes = all().map(|unit| counted(&unit)).sum();
    let (mut templates, mut named) = (Templates::default(), 0);
    for unit in all().chain(middle.units()) {
        if !is_ruler(unit.text) {
            templates.add(unit);
        }
        let mut is_named = false;
        each_name(unit.text, |_, _| is_named = true);
        if is_named {
            named += unit.place.bytes + u64::from(unit.place.ends_line);
        }
    }
    let kept = kept(all(), bytes).chain(middle.units());
    let mut kept: Vec<Unit<'_>> = kept.chain(templates.odd()).collect();
    // Mostly in order.
    kept.sort_by_key(|unit| unit.place);
    kept.dedup_by_key(|unit| unit.place);
    let choose = |wanted| choose(&kept, &templates, wanted, length, budget);
    let is_chosen = !are_ends && (named >= length.bytes / SURE || templates.is_repetitive());
    let chosen = is_chosen.then(|| choose(wanted));
    let chosen = chosen.filter(|chosen| !chosen.is_empty());
    let shown = chosen.unwrap_or_else(|| choose(Preview::HeadTail));
    if shown.is_empty() {
        String::new()
    } else {
        shown.render(length)
    }
}

/// Of units of more than [`MAX_KEPT`] bytes, a quarter of these at each end, and one of what tells of a failure or an outcome
/// between them.
fn kept<'t>(units: impl Iterator<Item = Unit<'t>>, all: usize) -> impl Iterator<Item = Unit<'t>> {
    let share = MAX_KEPT / 4;
    let (mut before, mut told) = (0, 0);
    units.filter(move |unit| {
        let bytes = counted(unit);
        before += bytes;
        let is_end = all <= MAX_KEPT || before <= share || before + share > all;
        let is_told = !is_end && told + bytes <= share && signs_of(unit) != 0;
        told += if is_told { bytes } else { 0 };
        is_end || is_told
    })
}

fn counted(unit: &Unit<'_>) -> usize {
    unit.text.len().max(MIN_COUNTED)
}

/// Chooses from `units`, which are in text order, an excerpt of at most `budget` bytes. Empty if
/// nothing is worth showing.
fn choose<'t>(
    units: &[Unit<'t>],
    templates: &Templates<'_>,
    wanted: Preview,
    length: Length,
    budget: usize,
) -> Excerpt<'t> {
    let has_names = matches!(wanted, Preview::Index | Preview::Mixed);
    let Some(left) = budget.checked_sub(most_overhead(length, has_names)) else {
        return Excerpt::default();
    };
    if wanted == Preview::HeadTail {
        return ends(units, templates, left);
    }
    let units = without_repeats(&without_header(units));
    let mut chooser = Chooser::new(&units, heads(&units), left);
    if wanted != Preview::Index {
        chooser.take_ending();
        chooser.take_failing(templates);
        chooser.take_heads();
    }
    chooser.take_best(wanted);
    chooser.excerpt()
}

/// Chooses lines of both ends, and between them those that report failures. If there is no room for all of the first, it
/// is cut.
fn ends<'t>(units: &[Unit<'t>], templates: &Templates<'_>, left: usize) -> Excerpt<'t> {
    let mut chooser = Chooser::new(units, vec![None; units.len()], left);
    chooser.take_ends(templates);
    let is_begun = chooser.is_taken.first() == Some(&true);
    let left = chooser.left;
    let mut excerpt = chooser.excerpt();
    if let Some(unit) = units.first().filter(|_| !is_begun) {
        let room = left.checked_sub(unit.mark().len() + CUT.len() + "\n".len());
        let cut = room.and_then(|room| unit.cut(room));
        excerpt.units.splice(0..0, cut);
    }
    excerpt
}

struct Chooser<'u, 't> {
    units: &'u [Unit<'t>],
    found: Found<'t>,
    /// Extra worth of each unit, as of a failure or a heading.
    extra: Vec<f32>,
    is_taken: Vec<bool>,
    /// By unit: the head that is shown with it.
    heads: Vec<Option<usize>>,
    /// Names in the index.
    listed: Vec<usize>,
    /// Number of bytes left of the budget.
    left: usize,
}

/// An item to take: a unit, or an index entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ChoiceItem {
    Line(usize),
    Name(usize),
}

/// Extra worth of each unit.
fn extra_worth(units: &[Unit<'_>]) -> Vec<f32> {
    // Names are mostly how one looks something up in a file.
    let of_han = if is_excerpt_of_file(units) { 0.0 } else { HAN };
    let extra = failure_worth(units).into_iter().zip(units);
    let extra = extra.map(|(failure, unit)| {
        let heading = if is_heading(unit) { HEADING } else { 0.0 };
        let han = unit
            .text
            .chars()
            .filter(|sign| ('\u{4e00}'..='\u{9fff}').contains(sign));
        failure + heading + of_han * han.take(MAX_HAN).count() as f32
    });
    extra.collect()
}

impl<'u, 't> Chooser<'u, 't> {
    fn new(units: &'u [Unit<'t>], heads: Vec<Option<usize>>, left: usize) -> Self {
        Self {
            units,
            found: Found::new(units),
            extra: extra_worth(units),
            heads,
            is_taken: vec![false; units.len()],
            listed: Vec::new(),
            left,
        }
    }

    /// Takes lines from the beginning in half of the budget, then those that report failures, and in another half lines
    /// from the end.
    fn take_ends(&mut self, templates: &Templates<'_>) {
        let (all, half) = (self.units.len(), self.left / 2);
        let rest = self.left - half;
        _ = (0..all).find(|unit| !self.take_next(*unit, rest));
        self.take_failing(templates);
        let rest = self.left.saturating_sub(half);
        _ = (0..all).rev().find(|unit| !self.take_next(*unit, rest));
    }

    /// Takes a line beside those that are taken, and no more of the budget than it needs. Returns true if it is taken.
    fn take_next(&mut self, unit: usize, rest: usize) -> bool {
        if self.is_taken[unit] {
            return true;
        }
        let is_taken = self.take_line(unit, rest);
        if is_taken && self.units[unit].place.ends_line {
            self.left += CUT.len();
        }
        if is_taken && self.follows_taken(unit + 1) && self.is_taken[unit + 1] {
            // The next line no longer needs its mark.
            self.left += self.units[unit + 1].mark().len();
        }
        is_taken
    }

    /// Takes the lines that tell how the text ended, in a part of the budget.
    fn take_ending(&mut self) {
        let (all, share) = (self.left, self.left / ENDING);
        let of_told = share.max(MIN_ENDING.min(all / 2));
        for unit in ending(self.units) {
            let is_told = signs(self.units[unit].text) & (EXIT | COUNTS) != 0;
            self.take_line(unit, all - if is_told { of_told } else { share });
        }
    }

    /// Takes the lines that report failures, in another part of the budget.
    fn take_failing(&mut self, templates: &Templates<'_>) {
        let (all, share) = (self.left, self.left / FAILING);
        for (nth, unit) in failing(self.units, templates).into_iter().enumerate() {
            self.take_line(unit, all - if nth == 0 { 2 * share } else { share });
        }
    }

    /// Takes the heads of all groups, if that leaves most of the budget: a group that is not named seems not to be there.
    fn take_heads(&mut self) {
        let heads: BTreeSet<usize> = self.heads.iter().copied().flatten().collect();
        let outermost = heads.into_iter().filter(|head| self.heads[*head].is_none());
        let heads: Vec<usize> = outermost.collect();
        let bytes: usize = heads.iter().map(|head| self.line_bytes(*head)).sum();
        if bytes <= self.left / HEADS {
            heads
                .into_iter()
                .for_each(|head| _ = self.take_line(head, 0));
        }
    }

    /// Takes a line with its heads, if that leaves `rest` bytes of the budget. Returns true if it is taken.
    fn take_line(&mut self, unit: usize, rest: usize) -> bool {
        if self.is_taken[unit] {
            return true;
        }
        let mut group = self.open_heads(unit);
        group.push(unit);
        let bytes: usize = group.iter().map(|unit| self.line_bytes(*unit)).sum();
        if rest + bytes > self.left {
            return false;
        }
        self.left -= bytes;
        for unit in group {
            self.is_taken[unit] = true;
            self.found.show(unit);
        }
        true
    }

    /// Lists a name, if there is room for it. Returns true if it is listed.
    fn take_name(&mut self, name: usize) -> bool {
        let Named { text, first, .. } = self.found.names[name];
        let bytes = format!(" {} {text}", self.units[first].place.line).len();
        if bytes > self.left {
            return false;
        }
        self.left -= bytes;
        self.found.name(name);
        self.listed.push(name);
        true
    }

    fn take_best(&mut self, wanted: Preview) {
        let mut heap = self.items(wanted);
        let mut too_long = 0;
        while let Some((density, Reverse(item))) =
            pop_best(&mut heap, |(_, Reverse(item))| self.entry(*item))
            && density > 0
            && too_long <= MAX_TOO_LONG
        {
            let is_taken = match item {
                ChoiceItem::Line(unit) if self.is_taken[unit] => continue,
                ChoiceItem::Line(unit) => self.take_line(unit, 0),
                ChoiceItem::Name(name) => self.take_name(name),
            };
            too_long += usize::from(!is_taken);
            if let ChoiceItem::Line(unit) = item
                && self.follows_taken(unit + 1)
                && !self.is_taken[unit + 1]
            {
                // The next line no longer needs a mark.
                heap.push(self.entry(ChoiceItem::Line(unit + 1)));
            }
        }
    }

    /// The head of a line that is not taken yet, and the heads above it, but for those that are taken.
    fn open_heads(&self, unit: usize) -> Vec<usize> {
        let head = self.heads[unit].filter(|_| !self.is_taken[unit]);
        let heads = std::iter::successors(head, |head| self.heads[*head]);
        heads.filter(|head| !self.is_taken[*head]).collect()
    }

    fn items(&self, wanted: Preview) -> BinaryHeap<Entry> {
        let lines = (0..self.units.len()).filter(|unit| !self.is_taken[*unit]);
        let lines = lines.filter(|_| wanted != Preview::Index);
        let names = self.found.names.iter().enumerate();
        let names = names.filter(|(_, name)| name.is_listed() && !is_number(name.text));
        let names = names.filter(|_| wanted != Preview::Lines);
        let names = names.map(|(at, _)| ChoiceItem::Name(at));
        let items = lines.map(ChoiceItem::Line).chain(names);
        items.map(|item| self.entry(item)).collect()
    }

    /// An item with its worth per token.
    fn entry(&self, item: ChoiceItem) -> Entry {
        let (gain, text, overhead) = match item {
            ChoiceItem::Line(unit) => (
                self.extra[unit] + self.found.gain_of_unit(unit),
                own_text(&self.units[unit]),
                PER_LINE
                    + if self.follows_taken(unit) {
                        0.0
                    } else {
                        PER_MARK
                    },
            ),
            ChoiceItem::Name(name) => (
                self.found.gain_of_name(name),
                self.found.names[name].text,
                PER_ENTRY,
            ),
        };
        let density = gain / (about_tokens(text) + overhead);
        (density.to_bits(), Reverse(item))
    }

    fn excerpt(self) -> Excerpt<'t> {
        let names = self.listed.iter().map(|name| &self.found.names[*name]);
        // Names in shown lines need no entry.
        let mut names: Vec<&Named<'_>> = names.filter(|name| !name.is_shown).collect();
        names.sort_unstable_by_key(|name| (name.first, name.text));
        let line = |name: &Named<'t>| (self.units[name.first].place.line, name.text);
        let taken = self.units.iter().zip(&self.is_taken);
        let taken = taken.filter_map(|(unit, is_taken)| is_taken.then_some(*unit));
        Excerpt {
            units: taken.collect(),
            names: names.into_iter().map(line).collect(),
        }
    }

    /// Upper bound for the bytes of a line.
    fn line_bytes(&self, at: usize) -> usize {
        let unit = &self.units[at];
        let is_marked = !self.follows_taken(at);
        most_of_unit(unit) + if is_marked { unit.mark().len() } else { 0 }
    }

    /// Returns true if the unit right before this one is taken.
    fn follows_taken(&self, unit: usize) -> bool {
        let before = unit.checked_sub(1).filter(|before| self.is_taken[*before]);
        let pair = before
            .zip(self.units.get(unit))
            .map(|(before, unit)| (&self.units[before], unit));
        pair.is_some_and(|(before, unit)| unit.continues(before))
    }
}

/// An item with its worth per token, in bits of a number that is not negative and so in its order. Ties put lines before
/// names, and earlier items first.
type Entry = (u32, Reverse<ChoiceItem>);
