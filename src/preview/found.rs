//! The names and values in the units of a text, and which of them an excerpt shows.

use std::ops::Range;

use foldhash::{HashMap, HashMapExt};

use crate::preview::names::each_name;
use crate::preview::units::{Unit, own_text};
use crate::preview::values::{Kind, each_value, may_have_value};

/// Extra worth of showing a name in a line, as a factor of its worth in the index.
const SHOWN: f32 = 2.0;
/// Length in bytes up to which longer names are worth more, with the fourth root of the length.
const FULL_WORTH: usize = 30;

/// Worth of a name.
pub(crate) fn worth(name: &str) -> f32 {
    (name.len().min(FULL_WORTH) as f32 / 12.0).sqrt().sqrt()
}

#[derive(Debug)]
pub(crate) struct Found<'t> {
    pub(crate) names: Vec<Named<'t>>,
    values: Vec<Value>,
    /// Indexes of the names, and of the values, in each unit.
    names_in: Groups,
    values_in: Groups,
}

/// A list of indexes for each unit, all in one.
#[derive(Debug, Default)]
struct Groups {
    all: Vec<usize>,
    /// End of each unit's list.
    ends: Vec<usize>,
}

impl Groups {
    /// Adds an index to the list that is open, unless it is there.
    fn add(&mut self, index: usize) {
        let open = self.ends.last().copied().unwrap_or_default();
        if !self.all[open..].contains(&index) {
            self.all.push(index);
        }
    }

    /// Ends the list that is open.
    fn end(&mut self) {
        self.ends.push(self.all.len());
    }

    fn range(&self, unit: usize) -> Range<usize> {
        unit.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[unit]
    }

    fn of(&self, unit: usize) -> &[usize] {
        &self.all[self.range(unit)]
    }
}

#[derive(Debug)]
pub(crate) struct Named<'t> {
    pub(crate) text: &'t str,
    worth: f32,
    /// The first unit that contains it.
    pub(crate) first: usize,
    /// Indexes of the names that are parts of it.
    parts: Vec<usize>,
    pub(crate) is_named: bool,
    is_shown: bool,
}

#[derive(Debug)]
struct Value {
    worth: f32,
    is_shown: bool,
}

impl<'t> Found<'t> {
    /// Finds all names and values of `units`.
    pub(crate) fn new(units: &[Unit<'t>]) -> Self {
        let mut names = Vec::<Named<'t>>::with_capacity(2 * units.len());
        let mut known = HashMap::with_capacity(2 * units.len());
        let mut seen = Vec::new();
        let mut names_in = Groups::default();
        let (mut values, mut known_values) = (Vec::new(), HashMap::<&'t str, usize>::new());
        let mut values_in = Groups::default();
        for (first, unit) in units.iter().enumerate() {
            seen.clear();
            each_name(unit.text, |name| {
                let index = *known.entry(name.text).or_insert(names.len());
                if index == names.len() {
                    names.push(Named::new(name.text, worth(name.text), first));
                }
                seen.push(index);
                if let Some(whole) = name.within.map(|whole| seen[whole])
                    && !names[whole].parts.contains(&index)
                {
                    names[whole].parts.push(index);
                }
                names_in.add(index);
            });
            let text = own_text(unit);
            if may_have_value(text) {
                each_value(text, |kind, text| {
                    // An option is listed like a name.
                    if kind == Kind::Flag {
                        let index = *known.entry(text).or_insert(names.len());
                        if index == names.len() {
                            names.push(Named::new(text, kind.worth(), first));
                        }
                        names_in.add(index);
                        return;
                    }
                    let index = *known_values.entry(text).or_insert(values.len());
                    if index == values.len() {
                        values.push(Value {
                            worth: kind.worth(),
                            is_shown: false,
                        });
                    }
                    values_in.add(index);
                });
            }
            names_in.end();
            values_in.end();
        }
        Self {
            names,
            values,
            names_in,
            values_in,
        }
    }

    /// Marks all in a unit as shown.
    pub(crate) fn show(&mut self, unit: usize) {
        self.name_all_in(unit);
        for name in self.names_in.of(unit) {
            self.names[*name].is_shown = true;
        }
        for value in self.values_in.of(unit) {
            self.values[*value].is_shown = true;
        }
    }

    /// Marks all names in a unit as named, and their parts.
    pub(crate) fn name_all_in(&mut self, unit: usize) {
        for at in self.names_in.range(unit) {
            self.name(self.names_in.all[at]);
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
        let of_name = |name: &usize| {
            let name = &self.names[*name];
            let shown = if name.is_shown {
                0.0
            } else {
                SHOWN * name.worth
            };
            shown + name.gain()
        };
        let of_value = |value: &usize| {
            let value = &self.values[*value];
            if value.is_shown { 0.0 } else { value.worth }
        };
        let values: f32 = self.values_in.of(unit).iter().map(of_value).sum();
        values + self.names_in.of(unit).iter().map(of_name).sum::<f32>()
    }

    /// Worth of what an index entry would name for the first time.
    pub(crate) fn gain_of_name(&self, name: usize) -> f32 {
        let parts = self.names[name].parts.iter();
        let parts: f32 = parts.map(|part| self.names[*part].gain()).sum();
        self.names[name].gain() + parts
    }
}

impl<'t> Named<'t> {
    fn new(text: &'t str, worth: f32, first: usize) -> Self {
        Self {
            text,
            worth,
            first,
            parts: Vec::new(),
            is_named: false,
            is_shown: false,
        }
    }

    fn gain(&self) -> f32 {
        if self.is_named { 0.0 } else { self.worth }
    }
}
