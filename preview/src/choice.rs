//! Choice of the lines and names of a text that are worth showing.
//!
//! A line is worth the names that it shows, most if they have not yet been shown in a line, and
//! extra if it reports a failure. An entry of the index is worth its name. Items with the highest
//! worth per token are taken first, until the budget is used up or nothing of worth is left.
//!
//! Worths only fall as more is taken, so a heap whose entries are checked again when popped gives
//! the exact order. They fall at most as often as there are names in the text, which bounds the
//! running time.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};

use crate::cost::about_tokens;
use crate::excerpt::{Excerpt, Length, is_number, most_of_name, most_of_unit, most_overhead};
use crate::failures::{FAILURE, MAX_FAILURES, is_failure};
use crate::names::each_name;
use crate::units::{Unit, own_number};

/// Extra worth of showing a name in a line, as a factor of its worth in the index.
const SHOWN: f32 = 2.0;
/// Length in bytes up to which longer names are worth more, with the fourth root of the length.
const FULL_WORTH: usize = 30;
/// Estimated tokens of an index entry, not counting its name.
const PER_ENTRY: f32 = 1.0;
/// Estimated tokens of the mark before a line, and of a line's end.
const PER_MARK: f32 = 2.5;
const PER_LINE: f32 = 1.0;

/// Number of items over the budget after which the search stops: a long text has thousands, and the
/// little budget left is not worth it.
const MAX_TOO_LONG: usize = 256;

/// The kinds of items to choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Lines,
    Index,
    Both,
}

/// Chooses from `units`, which are in text order, an excerpt of at most `budget` bytes. Empty if
/// nothing is worth showing.
pub(crate) fn choose<'t>(
    units: &[Unit<'t>],
    wanted: Wanted,
    length: Length,
    budget: usize,
) -> Excerpt<'t> {
    let Some(left) = budget.checked_sub(most_overhead(length, wanted != Wanted::Lines)) else {
        return Excerpt::default();
    };
    Chooser::new(units).choose(wanted, left)
}

/// Worth of a name.
pub(crate) fn worth(name: &str) -> f32 {
    (name.len().min(FULL_WORTH) as f32 / 12.0).sqrt().sqrt()
}

struct Chooser<'u, 't> {
    units: &'u [Unit<'t>],
    names: Vec<Named<'t>>,
    /// Indexes of the names in each unit.
    in_unit: Vec<Vec<usize>>,
    is_failure: Vec<bool>,
    is_taken: Vec<bool>,
}

struct Named<'t> {
    text: &'t str,
    worth: f32,
    /// The first unit that contains it.
    first: usize,
    /// Indexes of the names that are parts of it.
    parts: Vec<usize>,
    is_named: bool,
    is_shown: bool,
}

/// An item to take: a unit, or an index entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Line(usize),
    Name(usize),
}

impl<'u, 't> Chooser<'u, 't> {
    fn new(units: &'u [Unit<'t>]) -> Self {
        let (mut names, mut known) = (Vec::<Named<'t>>::new(), HashMap::new());
        let mut in_unit = Vec::with_capacity(units.len());
        for (first, unit) in units.iter().enumerate() {
            let (mut here, mut seen) = (Vec::new(), Vec::new());
            each_name(unit.text, |name| {
                let index = *known.entry(name.text).or_insert(names.len());
                if index == names.len() {
                    let (text, worth) = (name.text, worth(name.text));
                    names.push(Named {
                        text,
                        worth,
                        first,
                        parts: Vec::new(),
                        is_named: false,
                        is_shown: false,
                    });
                }
                seen.push(index);
                if let Some(whole) = name.within.map(|whole| seen[whole])
                    && !names[whole].parts.contains(&index)
                {
                    names[whole].parts.push(index);
                }
                if !here.contains(&index) {
                    here.push(index);
                }
            });
            in_unit.push(here);
        }
        let mut failures = 0;
        let is_failure = |unit: &Unit<'_>| {
            let is_failure = failures < MAX_FAILURES && is_failure(unit.text);
            failures += usize::from(is_failure);
            is_failure
        };
        let is_failure = units.iter().map(is_failure).collect();
        let is_taken = vec![false; units.len()];
        Self {
            units,
            names,
            in_unit,
            is_failure,
            is_taken,
        }
    }

    fn choose(mut self, wanted: Wanted, mut left: usize) -> Excerpt<'t> {
        let mut heap = BinaryHeap::new();
        if wanted != Wanted::Index {
            let tokens: Vec<f32> = self
                .units
                .iter()
                .map(|unit| about_tokens(own_text(unit)))
                .collect();
            heap.extend(
                (0..self.units.len()).map(|unit| Entry::of(&self, Item::Line(unit), tokens[unit])),
            );
        }
        if wanted != Wanted::Lines {
            let names = self
                .names
                .iter()
                .enumerate()
                .filter(|(_, name)| !is_number(name.text));
            heap.extend(
                names.map(|(index, name)| {
                    Entry::of(&self, Item::Name(index), about_tokens(name.text))
                }),
            );
        }
        let (mut listed, mut too_long) = (Vec::new(), 0);
        while let Some(entry) = heap.pop() {
            if entry.density <= 0.0 {
                break;
            }
            let now = Entry::of(&self, entry.item, entry.tokens);
            if now.density < entry.density && heap.peek().is_some_and(|next| now < *next) {
                heap.push(now);
                continue;
            }
            let bytes = self.bytes(entry.item);
            if now.density <= 0.0 || bytes > left {
                too_long += usize::from(bytes > left);
                if too_long > MAX_TOO_LONG {
                    break;
                }
                continue;
            }
            match entry.item {
                Item::Line(unit) if self.is_taken[unit] => continue,
                Item::Line(unit) => {
                    self.take_line(unit);
                    // The next line no longer needs a mark.
                    let next = unit + 1;
                    if self.follows_taken(next) && !self.is_taken[next] {
                        heap.push(Entry::of(
                            &self,
                            Item::Line(next),
                            about_tokens(own_text(&self.units[next])),
                        ));
                    }
                }
                Item::Name(name) => {
                    self.mark_named(name);
                    listed.push(name);
                }
            }
            left -= bytes;
        }
        self.excerpt(&listed)
    }

    fn excerpt(mut self, listed: &[usize]) -> Excerpt<'t> {
        // Names in shown lines need no entry, nor do parts of a longer entry for the same line.
        for name in &mut self.names {
            name.is_named = false;
        }
        let taken: Vec<usize> = (0..self.units.len())
            .filter(|unit| self.is_taken[*unit])
            .collect();
        for unit in &taken {
            for at in 0..self.in_unit[*unit].len() {
                self.mark_named(self.in_unit[*unit][at]);
            }
        }
        let entry = |name: &usize| {
            let Named { text, first, .. } = self.names[*name];
            (first, text)
        };
        let mut names: Vec<(usize, &str)> = listed
            .iter()
            .filter(|name| !self.names[**name].is_named)
            .map(entry)
            .collect();
        names.sort_unstable();
        Excerpt {
            units: taken.into_iter().map(|unit| self.units[unit]).collect(),
            names: names
                .into_iter()
                .map(|(first, name)| (self.units[first].place.line, name))
                .collect(),
        }
    }

    fn take_line(&mut self, unit: usize) {
        self.is_taken[unit] = true;
        for at in 0..self.in_unit[unit].len() {
            let name = self.in_unit[unit][at];
            self.names[name].is_shown = true;
            self.mark_named(name);
        }
    }

    fn mark_named(&mut self, name: usize) {
        self.names[name].is_named = true;
        for at in 0..self.names[name].parts.len() {
            let part = self.names[name].parts[at];
            self.names[part].is_named = true;
        }
    }

    fn gain(&self, item: Item) -> f32 {
        let named = |name: &Named<'_>| if name.is_named { 0.0 } else { name.worth };
        match item {
            Item::Line(unit) => {
                let shown = |name: &Named<'_>| {
                    if name.is_shown {
                        0.0
                    } else {
                        SHOWN * name.worth
                    }
                };
                let names = self.in_unit[unit].iter().map(|name| &self.names[*name]);
                let failure = if self.is_failure[unit] { FAILURE } else { 0.0 };
                failure + names.map(|name| shown(name) + named(name)).sum::<f32>()
            }
            Item::Name(name) => {
                let parts = self.names[name]
                    .parts
                    .iter()
                    .map(|part| named(&self.names[*part]));
                named(&self.names[name]) + parts.sum::<f32>()
            }
        }
    }

    /// Estimated tokens of an item, not counting its text.
    fn overhead(&self, item: Item) -> f32 {
        match item {
            Item::Name(_) => PER_ENTRY,
            Item::Line(unit) if self.follows_taken(unit) => PER_LINE,
            Item::Line(_) => PER_LINE + PER_MARK,
        }
    }

    /// Upper bound for the bytes of an item.
    fn bytes(&self, item: Item) -> usize {
        match item {
            Item::Line(at) => {
                let unit = &self.units[at];
                most_of_unit(unit)
                    + if self.follows_taken(at) {
                        0
                    } else {
                        unit.mark_length()
                    }
            }
            Item::Name(name) => {
                let Named { text, first, .. } = self.names[name];
                most_of_name(self.units[first].place.line, text)
            }
        }
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

/// The text of a unit without its own line number, as shown after another unit.
fn own_text<'t>(unit: &Unit<'t>) -> &'t str {
    let number = if unit.place.byte == 0 {
        own_number(unit.text)
    } else {
        None
    };
    &unit.text[number.map_or(0, |(_, length)| length)..]
}

#[derive(Debug)]
struct Entry {
    density: f32,
    item: Item,
    /// Estimated tokens of its text.
    tokens: f32,
}

impl Entry {
    fn of(chooser: &Chooser<'_, '_>, item: Item, tokens: f32) -> Self {
        Self {
            density: chooser.gain(item) / (tokens + chooser.overhead(item)),
            item,
            tokens,
        }
    }
}

/// By density; ties put lines before names, and earlier items first.
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.density
            .total_cmp(&other.density)
            .then_with(|| Reverse(self.item).cmp(&Reverse(other.item)))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}
