//! The names and values in the units of a text, and which of them an excerpt shows.

use std::collections::BinaryHeap;

use foldhash::{HashMap, HashMapExt};

use crate::preview::names::each_name;
use crate::preview::units::{Unit, own_text};
use crate::preview::values::{Kind, each_value};

/// Extra worth of showing a name in a line, as a factor of its worth in the index.
const SHOWN: f32 = 2.0;
/// Length in bytes up to which longer names are worth more, with the fourth root of the length.
const FULL_WORTH: usize = 30;

/// Takes the best of entries that may be worth less by now.
pub(crate) fn pop_best<E: Ord>(heap: &mut BinaryHeap<E>, now: impl Fn(&E) -> E) -> Option<E> {
    while let Some(entry) = heap.pop() {
        let now = now(&entry);
        if heap.peek().is_none_or(|next| now >= *next) {
            return Some(now);
        }
        heap.push(now);
    }
    None
}

/// The names and values of some units.
#[derive(Debug)]
pub(crate) struct Found<'t> {
    pub(crate) names: Vec<Named<'t>>,
    /// Indexes of those in each unit.
    names_in: Vec<Vec<usize>>,
}

/// A name or a value.
#[derive(Debug)]
pub(crate) struct Named<'t> {
    pub(crate) text: &'t str,
    /// Worth of naming it, 0 for a value, and of showing it in a line.
    named: f32,
    shown: f32,
    /// The first unit that contains it.
    pub(crate) first: usize,
    /// Indexes of the names that are parts of it.
    parts: Vec<usize>,
    is_named: bool,
    pub(crate) is_shown: bool,
}

impl<'t> Found<'t> {
    /// Finds all names and values of `units`.
    pub(crate) fn new(units: &[Unit<'t>]) -> Self {
        let mut names = Vec::<Named<'t>>::with_capacity(2 * units.len());
        let mut known = HashMap::with_capacity(2 * units.len());
        let mut names_in = Vec::with_capacity(units.len());
        for (first, unit) in units.iter().enumerate() {
            let mut all = Vec::new();
            let mut add = |names: &mut Vec<Named<'t>>, text: &'t str, named: f32, shown: f32| {
                let index = *known.entry((text, named > 0.0)).or_insert(names.len());
                if index == names.len() {
                    names.push(Named {
                        text,
                        named,
                        shown,
                        first,
                        parts: Vec::new(),
                        is_named: false,
                        is_shown: false,
                    });
                }
                if !all.contains(&index) {
                    all.push(index);
                }
                index
            };
            let mut whole = 0;
            each_name(unit.text, |name, is_part| {
                let worth = (name.len().min(FULL_WORTH) as f32 / 12.0).sqrt().sqrt();
                let index = add(&mut names, name, worth, SHOWN * worth);
                if !is_part {
                    whole = index;
                } else if !names[whole].parts.contains(&index) {
                    names[whole].parts.push(index);
                }
            });
            each_value(own_text(unit), |kind, text| {
                // An option is listed like a name; a long name's own worth is about 1.
                let (named, shown) = match kind {
                    Kind::Flag => (2.0, SHOWN * 2.0),
                    Kind::Number => (0.0, 2.5),
                    Kind::Noun => (0.0, 1.3),
                };
                add(&mut names, text, named, shown);
            });
            names_in.push(all);
        }
        Self { names, names_in }
    }

    /// Marks all in a unit as shown, and its names as named.
    pub(crate) fn show(&mut self, unit: usize) {
        for at in 0..self.names_in[unit].len() {
            let name = self.names_in[unit][at];
            self.name(name);
            self.names[name].is_shown = true;
        }
    }

    /// Marks a name and its parts as named.
    pub(crate) fn name(&mut self, name: usize) {
        self.names[name].is_named = true;
        for at in 0..self.names[name].parts.len() {
            let part = self.names[name].parts[at];
            self.names[part].is_named = true;
        }
    }

    /// Worth of what a unit would show for the first time.
    pub(crate) fn gain_of_unit(&self, unit: usize) -> f32 {
        // From 0, since the sum of no numbers is -0.
        self.names_in[unit].iter().fold(0.0, |sum, name| {
            let name = &self.names[*name];
            sum + name.gain() + if name.is_shown { 0.0 } else { name.shown }
        })
    }

    /// Worth of what an index entry would name for the first time.
    pub(crate) fn gain_of_name(&self, name: usize) -> f32 {
        let parts = self.names[name].parts.iter();
        let parts: f32 = parts.map(|part| self.names[*part].gain()).sum();
        self.names[name].gain() + parts
    }
}

impl Named<'_> {
    /// Returns true for a name, which may be in the index.
    pub(crate) fn is_listed(&self) -> bool {
        self.named > 0.0
    }

    fn gain(&self) -> f32 {
        if self.is_named { 0.0 } else { self.named }
    }
}
