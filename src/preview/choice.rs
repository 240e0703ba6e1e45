//! Which lines and names of a text are worth their place.
//!
//! A line is worth the names that it shows, most if they are not shown with their surroundings yet,
//! and much if it says that something failed; an entry of the index is worth the name that it
//! names. What is worth most for its tokens is taken first, until the budget is used up or nothing
//! is worth anything any more. Worths only fall as more is taken, so a heap whose entries are
//! looked at again as they come out gives the exact order; and they fall no more often than there
//! are names in the text, so it takes no longer than that.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};

use super::cost::about_tokens;
use super::excerpt::{Excerpt, Length, is_number, most_of_name, most_of_unit, most_overhead};
use super::failures::is_failure;
use super::names::each_name;
use super::units::{Unit, own_number};

/// What showing a name is worth beside naming it.
const SHOWN: f32 = 2.0;
/// Longer names are worth more, in fourth roots, up to so many bytes.
const FULL_WORTH: usize = 30;
/// What a line is worth beside its names that says what went wrong: the first ones in a text, so
/// many.
const FAILURE: f32 = 12.0;
const MAX_FAILURES: usize = 8;
/// About the tokens that an entry of the index takes beside its name.
const PER_ENTRY: f32 = 1.0;
/// About the tokens that the mark before a line takes, and the end of a line.
const PER_MARK: f32 = 2.5;
const PER_LINE: f32 = 1.0;

/// After so many that no longer fit, what little is left of the budget is not worth looking for
/// more: a long text has thousands.
const MAX_TOO_LONG: usize = 256;

/// What may be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Lines,
    Index,
    Both,
}

/// What of `units`, which are in their order, is shown in at most `budget` bytes. Nothing if there
/// is nothing to choose by.
pub(super) fn choose<'t>(
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

/// What a name is worth.
pub(super) fn worth(name: &str) -> f32 {
    (name.len().min(FULL_WORTH) as f32 / 12.0).sqrt().sqrt()
}

struct Chooser<'u, 't> {
    units: &'u [Unit<'t>],
    names: Vec<Named<'t>>,
    /// The names of each unit, by index.
    in_unit: Vec<Vec<usize>>,
    is_failure: Vec<bool>,
    is_taken: Vec<bool>,
}

struct Named<'t> {
    text: &'t str,
    worth: f32,
    /// The first unit that has it.
    first: usize,
    /// The names that are parts of it.
    parts: Vec<usize>,
    is_named: bool,
    is_shown: bool,
}

/// What can be taken: a unit, or an entry of the index.
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
                    // It costs no mark any more.
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
                    self.name(name);
                    listed.push(name);
                }
            }
            left -= bytes;
        }
        self.excerpt(&listed)
    }

    fn excerpt(mut self, listed: &[usize]) -> Excerpt<'t> {
        // What a shown line has needs no entry, nor does a part of a longer entry of the same line.
        for name in &mut self.names {
            name.is_named = false;
        }
        let taken: Vec<usize> = (0..self.units.len())
            .filter(|unit| self.is_taken[*unit])
            .collect();
        for unit in &taken {
            for at in 0..self.in_unit[*unit].len() {
                self.name(self.in_unit[*unit][at]);
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
            self.name(name);
        }
    }

    fn name(&mut self, name: usize) {
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

    /// About how many tokens it takes beside its text.
    fn overhead(&self, item: Item) -> f32 {
        match item {
            Item::Name(_) => PER_ENTRY,
            Item::Line(unit) if self.follows_taken(unit) => PER_LINE,
            Item::Line(_) => PER_LINE + PER_MARK,
        }
    }

    /// The most bytes that it takes.
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

    /// Whether what stands right before it is taken.
    fn follows_taken(&self, unit: usize) -> bool {
        let before = unit.checked_sub(1).filter(|before| self.is_taken[*before]);
        let pair = before
            .zip(self.units.get(unit))
            .map(|(before, unit)| (&self.units[before], unit));
        pair.is_some_and(|(before, unit)| unit.is_behind(before))
    }
}

/// The text of a unit without its own number: what it costs where it follows another.
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
    /// About the tokens of its text.
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

/// By density; among equals, lines before names, and what comes first in the text.
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
