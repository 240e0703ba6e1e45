//! The names and values in the units of a text, and which of them an excerpt shows.

use std::collections::HashMap;

use crate::names::each_name;
use crate::units::{Unit, own_text};
use crate::values::{each_value, may_have_value};

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
    names_in: Vec<Vec<usize>>,
    values_in: Vec<Vec<usize>>,
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
        let mut names_in = Vec::with_capacity(units.len());
        for (first, unit) in units.iter().enumerate() {
            let mut here = Vec::new();
            seen.clear();
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
            names_in.push(here);
        }
        let (values, values_in) = values_of(units);
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
        for name in &self.names_in[unit] {
            self.names[*name].is_shown = true;
        }
        for value in &self.values_in[unit] {
            self.values[*value].is_shown = true;
        }
    }

    /// Marks all names in a unit as named, and their parts.
    pub(crate) fn name_all_in(&mut self, unit: usize) {
        for at in 0..self.names_in[unit].len() {
            self.name(self.names_in[unit][at]);
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
        let values: f32 = self.values_in[unit].iter().map(of_value).sum();
        values + self.names_in[unit].iter().map(of_name).sum::<f32>()
    }

    /// Worth of what an index entry would name for the first time.
    pub(crate) fn gain_of_name(&self, name: usize) -> f32 {
        let parts = self.names[name].parts.iter();
        let parts: f32 = parts.map(|part| self.names[*part].gain()).sum();
        self.names[name].gain() + parts
    }
}

impl Named<'_> {
    fn gain(&self) -> f32 {
        if self.is_named { 0.0 } else { self.worth }
    }
}

fn values_of<'t>(units: &[Unit<'t>]) -> (Vec<Value>, Vec<Vec<usize>>) {
    let (mut values, mut known) = (Vec::new(), HashMap::new());
    let in_unit = |unit: &Unit<'t>| {
        let mut here = Vec::new();
        let text = own_text(unit);
        if !may_have_value(text) {
            return here;
        }
        each_value(text, |kind, text| {
            let index = *known.entry(text).or_insert(values.len());
            if index == values.len() {
                values.push(Value {
                    worth: kind.worth(),
                    is_shown: false,
                });
            }
            if !here.contains(&index) {
                here.push(index);
            }
        });
        here
    };
    let values_in = units.iter().map(in_unit).collect();
    (values, values_in)
}
