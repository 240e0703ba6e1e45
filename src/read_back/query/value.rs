//! Values of a query: JSON whose memory and depth are bounded.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};
use std::rc::Rc;

use indexmap::IndexMap;
use jaq_core::box_iter::{BoxIter, box_once};
use jaq_core::ops::Math;
use jaq_core::path::Opt;
use jaq_core::{Exn, ValX};
use serde::ser::{Serialize, Serializer};

use super::bounds::{Charge, MAX_MEMORY, depth_above, give_up, step};
use crate::json::{InvalidJson, JsonText, Kind, Node, View};

pub(super) type Error = jaq_core::Error<Value>;
pub(super) type ValR = jaq_core::ValR<Value>;
type Range<T> = std::ops::Range<Option<T>>;
type Entries = IndexMap<Text, Value, foldhash::fast::RandomState>;

/// Bytes that an element of an array takes, and an entry of an object beside its key's text.
const ELEMENT: usize = size_of::<Value>();
const ENTRY: usize = size_of::<Value>() + size_of::<Text>() + 24;
/// Bytes that an allocation takes beside its content.
const ALLOCATION: usize = 48;
/// Bytes that a path takes while its place is deleted.
const PATH: usize = 96;
/// The most values of a JSON text. Each takes as much memory in the text as it does itself, at least.
const MAX_VALUES: usize = MAX_MEMORY / (2 * ELEMENT);

#[derive(Clone, Debug, Default)]
pub(super) enum Value {
    #[default]
    Null,
    Bool(bool),
    Int(i64),
    /// Integers that `Int` can't hold.
    Large(u64),
    Float(f64),
    Text(Text),
    Array(Rc<Held<Vec<Value>>>),
    Object(Rc<Held<Entries>>),
}

/// A text, and its charge, which follows from its length.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Text(Rc<(Box<str>, Charge)>);

impl Text {
    pub(super) fn new(text: impl Into<Box<str>>) -> Self {
        let text = text.into();
        let charge = Charge::new(text.len() + ALLOCATION);
        Self(Rc::new((text, charge)))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0.0
    }
}

/// The elements of an array, or the entries of an object.
#[derive(Clone, Debug)]
pub(super) struct Held<T> {
    pub(super) content: T,
    depth: u32,
    charge: Charge,
}

impl<T: Default> Default for Held<T> {
    fn default() -> Self {
        Self {
            content: T::default(),
            depth: depth_above(0),
            charge: Charge::new(ALLOCATION),
        }
    }
}

impl<T> Held<T> {
    /// Notes that it takes `bytes` more, and holds `value`.
    fn admit(&mut self, bytes: usize, value: &Value) {
        self.charge.add(bytes);
        self.depth = self.depth.max(depth_above(value.depth()));
    }
}

impl Held<Vec<Value>> {
    fn push(&mut self, value: Value) {
        self.admit(ELEMENT, &value);
        self.content.push(value);
    }
}

impl Held<Entries> {
    fn insert(&mut self, key: Text, value: Value) {
        self.admit(0, &value);
        if self.content.insert(key, value).is_none() {
            self.charge.add(ENTRY);
        }
    }

    fn sorted(&self) -> BTreeMap<&Text, &Value> {
        self.content.iter().inspect(|_| step()).collect()
    }
}

impl Value {
    pub(super) fn text(text: &str) -> Self {
        Self::Text(Text::new(text))
    }

    pub(super) fn as_text(&self) -> Result<&str, Error> {
        match self {
            Self::Text(text) => Ok(text.as_str()),
            _ => Err(Error::typ(self.clone(), "string")),
        }
    }

    fn depth(&self) -> u32 {
        match self {
            Self::Array(array) => array.depth,
            Self::Object(object) => object.depth,
            _ => 0,
        }
    }

    /// The range that an object such as `{"start": 1}` stands for.
    fn as_range(&self) -> Range<&Self> {
        let bound = |name: &str| match self {
            Self::Object(object) => object.content.get(&Text::new(name)),
            _ => None,
        };
        bound("start")..bound("end")
    }

    fn integer(&self) -> Option<i128> {
        match self {
            Self::Int(number) => Some((*number).into()),
            Self::Large(number) => Some((*number).into()),
            _ => None,
        }
    }

    /// An integer, or a float that is one.
    fn exact(&self) -> Option<i128> {
        match self {
            Self::Float(number) if number.fract() == 0.0 && number.abs() < 1e30 => {
                Some(*number as i128)
            }
            _ => self.integer(),
        }
    }

    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Float(number) => Some(*number),
            _ => self.integer().map(|number| number as f64),
        }
    }

    pub(super) fn is_nan(&self) -> bool {
        self.number().is_some_and(f64::is_nan)
    }

    /// An index or a bound: floats are rounded down.
    fn whole(&self) -> Option<i128> {
        match self {
            Self::Float(number) => Some((number.floor() as i64).into()),
            _ => self.integer(),
        }
    }

    /// An index or a bound of something of `length` elements, counted from its start; a negative one counts
    /// from its end, and may lie before the start.
    fn counted_from_start(&self, length: usize) -> Option<i128> {
        let at = self.whole()?;
        Some(if at < 0 { at + length as i128 } else { at })
    }

    /// An index of something of `length` elements, unless it lies before its start.
    fn place(&self, length: usize) -> Option<usize> {
        usize::try_from(self.counted_from_start(length)?).ok()
    }

    /// The kinds of values in the order that jq gives them.
    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Bool(_) => 1,
            Self::Int(_) | Self::Large(_) | Self::Float(_) => 2,
            Self::Text(_) => 3,
            Self::Array(_) => 4,
            Self::Object(_) => 5,
        }
    }

    pub(super) fn length(&self) -> ValR {
        Ok(match self {
            Self::Null => 0usize.into(),
            Self::Bool(_) => return Err(Error::typ(self.clone(), "something that has a length")),
            Self::Int(_) | Self::Large(_) => self.integer().unwrap_or_default().abs().into(),
            Self::Float(number) => number.abs().into(),
            Self::Text(text) => text.as_str().chars().count().into(),
            Self::Array(array) => array.content.len().into(),
            Self::Object(object) => object.content.len().into(),
        })
    }

    pub(super) fn has(&self, key: &Self) -> ValR {
        let has = match (self, key, key.whole()) {
            (Self::Array(array), _, Some(at)) => {
                usize::try_from(at).is_ok_and(|at| at < array.content.len())
            }
            (Self::Object(object), Self::Text(key), _) => object.content.contains_key(key),
            _ => return Err(Error::index(self.clone(), key.clone())),
        };
        Ok(has.into())
    }

    pub(super) fn contains(&self, other: &Self) -> bool {
        step();
        match (self, other) {
            (Self::Text(text), Self::Text(part)) => text.as_str().contains(part.as_str()),
            (Self::Array(array), Self::Array(parts)) => {
                let mut parts = parts.content.iter();
                parts.all(|part| array.content.iter().any(|item| item.contains(part)))
            }
            (Self::Object(object), Self::Object(parts)) => {
                parts.content.iter().all(|(key, part)| {
                    let value = object.content.get(key);
                    value.is_some_and(|value| value.contains(part))
                })
            }
            _ => self == other,
        }
    }

    /// The places at which `part` begins: in characters in a text, as jq counts, in elements in an array.
    pub(super) fn indices(&self, part: &Self) -> ValR {
        match (self, part) {
            (Self::Null, _) => Ok(Self::Null),
            (Self::Text(text), Self::Text(part)) if !part.as_str().is_empty() => {
                let mut characters = Characters::default();
                let found = text.as_str().match_indices(part.as_str());
                let places = found.map(|(at, _)| characters.before(text.as_str(), at));
                Ok(places.map(Self::from).collect())
            }
            (Self::Text(_), Self::Text(_)) => Ok(Self::Null),
            (Self::Array(array), part) => {
                let part = part.items().unwrap_or(std::slice::from_ref(part));
                if part.is_empty() {
                    return Ok(Self::Null);
                }
                let windows = array.content.windows(part.len()).enumerate();
                let found = windows.filter(|(_, window)| *window == part);
                Ok(found.map(|(at, _)| Self::from(at)).collect())
            }
            _ => Err(Error::index(self.clone(), part.clone())),
        }
    }

    /// The value without what is at these paths, all of which are of the value as it is now.
    pub(super) fn without(&self, paths: &Self) -> ValR {
        let paths: Result<Vec<_>, _> = paths.items()?.iter().map(Self::items).collect();
        let paths = paths?;
        if paths.iter().any(|path| path.is_empty()) {
            return Ok(Self::Null);
        }
        self.without_inner(&paths)
    }

    /// The same, if no path is empty.
    fn without_inner(&self, paths: &[&[Self]]) -> ValR {
        step();
        let length = match self {
            Self::Array(array) => array.content.len(),
            Self::Object(object) => object.content.len(),
            _ => 0,
        };
        // The values that go, and the paths into each of the others.
        let (mut gone, mut inner) = (vec![false; length], BTreeMap::<_, Vec<_>>::new());
        let mut charge = Charge::new(length);
        for path in paths {
            step();
            let (places, rest) = match (self, &path[0]) {
                (Self::Null, _) => continue,
                (Self::Object(object), Self::Text(key)) => match object.content.get_index_of(key) {
                    Some(at) => (at..at + 1, &path[1..]),
                    None => continue,
                },
                (Self::Array(array), _) => place_in(array.content.len(), path)?,
                (_, key) => return Err(Error::index(self.clone(), key.clone())),
            };
            if rest.is_empty() {
                gone[places].fill(true);
            } else if !places.is_empty() {
                charge.add(PATH);
                inner.entry(places.start).or_default().push(rest);
            }
        }
        let left = |at: usize, value: &Self| match inner.get(&at) {
            _ if gone[at] => None,
            Some(paths) => Some(value.without_inner(paths)),
            None => Some(Ok(value.clone())),
        };
        match self {
            Self::Array(array) => {
                let items = array.content.iter().enumerate();
                items.filter_map(|(at, item)| left(at, item)).collect()
            }
            Self::Object(object) => {
                let entries = object.content.iter().enumerate();
                let entries = entries.filter_map(|(at, (key, value))| {
                    Some(left(at, value)?.map(|value| (key.clone(), value)))
                });
                entries.collect()
            }
            other => Ok(other.clone()),
        }
    }

    fn items(&self) -> Result<&[Self], Error> {
        match self {
            Self::Array(array) => Ok(&array.content),
            _ => Err(Error::typ(self.clone(), "array")),
        }
    }

    /// The value of a JSON text. As in jq, a number beyond the range of floats is the last one within it.
    pub(super) fn from_json(text: &str) -> Result<Self, InvalidJson> {
        let json = JsonText::parse_within(text, MAX_VALUES)?;
        Ok(Node::root(&json.unwrap_or_else(|| give_up())).into())
    }

    pub(super) fn parse_json(&self) -> ValR {
        match self.as_text()? {
            "nan" => Ok(Self::Float(f64::NAN)),
            text => Self::from_json(text).map_err(Error::str),
        }
    }

    /// The value of a number as JSON writes it: of integers beyond 64 bits, and of all others, the nearest float.
    pub(super) fn number_of(text: &str) -> Self {
        let integer = text.parse().map(|number: i128| number.into());
        integer.unwrap_or_else(|_| Self::Float(text.parse().unwrap_or(f64::NAN)))
    }

    /// The bounds of a slice of something of `length` elements.
    fn bounds(range: &Range<&Self>, length: usize) -> Result<std::ops::Range<usize>, Error> {
        let bound = |bound: Option<&Self>, otherwise| {
            let Some(bound) = bound.filter(|bound| !matches!(bound, Self::Null)) else {
                return Ok(otherwise);
            };
            let at = bound.counted_from_start(length);
            let at = at.ok_or_else(|| Error::typ(bound.clone(), "integer"))?;
            Ok(at.clamp(0, length as i128) as usize)
        };
        let start = bound(range.start, 0)?;
        Ok(start..bound(range.end, length)?.max(start))
    }

    /// The JSON of the value, which can be longer than the value takes memory.
    pub(super) fn to_json(&self) -> Self {
        let mut text = Bounded::default();
        _ = fmt::Write::write_fmt(&mut text, format_args!("{self}"));
        Self::from(text.0)
    }
}

/// Counts characters up to places of a text that mostly come in order.
#[derive(Default)]
pub(super) struct Characters {
    at: usize,
    count: usize,
}

impl Characters {
    pub(super) fn before(&mut self, text: &str, place: usize) -> usize {
        if place < self.at {
            *self = Self::default();
        }
        self.count += text[self.at..place].chars().count();
        self.at = place;
        self.count
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        step();
        match self {
            Self::Null => to.serialize_unit(),
            Self::Bool(truth) => to.serialize_bool(*truth),
            Self::Int(number) => to.serialize_i64(*number),
            Self::Large(number) => to.serialize_u64(*number),
            Self::Float(number) if number.fract() == 0.0 && number.abs() < 1e17 => {
                to.serialize_i64(*number as i64)
            }
            // Writes infinity as jq does; NaN becomes `null`.
            Self::Float(number) => to.serialize_f64(number.clamp(f64::MIN, f64::MAX)),
            Self::Text(text) => to.serialize_str(text.as_str()),
            Self::Array(array) => to.collect_seq(&array.content),
            Self::Object(object) => {
                let entries = object.content.iter();
                to.collect_map(entries.map(|(key, value)| (key.as_str(), value)))
            }
        }
    }
}

/// Takes the JSON of a value to where it is shown.
struct JsonWriter<'a, 'f>(&'a mut fmt::Formatter<'f>);

impl io::Write for JsonWriter<'_, '_> {
    fn write(&mut self, json: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(json).map_err(io::Error::other)?;
        self.0.write_str(text).map_err(io::Error::other)?;
        Ok(json.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        serde_json::to_writer(JsonWriter(f), self).map_err(|_| fmt::Error)
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

impl From<isize> for Value {
    fn from(number: isize) -> Self {
        Self::Int(number as i64)
    }
}

impl From<i128> for Value {
    fn from(number: i128) -> Self {
        let small = i64::try_from(number).map(Self::Int);
        let large = || u64::try_from(number).map(Self::Large);
        small
            .or_else(|_| large())
            .unwrap_or(Self::Float(number as f64))
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Self::from(number as i128)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(Text::new(text))
    }
}

impl From<Range<Value>> for Value {
    fn from(range: Range<Value>) -> Self {
        let bounds = [("start", range.start), ("end", range.end)].into_iter();
        let given = bounds.filter_map(|(name, bound)| Some((Text::new(name), bound?)));
        given.collect()
    }
}

impl FromIterator<Value> for Value {
    fn from_iter<I: IntoIterator<Item = Value>>(values: I) -> Self {
        let mut array = Held::<Vec<_>>::default();
        for value in values {
            step();
            array.push(value);
        }
        Self::Array(Rc::new(array))
    }
}

impl FromIterator<(Text, Value)> for Value {
    fn from_iter<I: IntoIterator<Item = (Text, Value)>>(entries: I) -> Self {
        let mut object = Held::default();
        for (key, value) in entries {
            object.insert(key, value);
        }
        Self::Object(Rc::new(object))
    }
}

impl<T: PartialEq> PartialEq for Held<T> {
    fn eq(&self, other: &Self) -> bool {
        step();
        self.content == other.content
    }
}

impl<T: Eq> Eq for Held<T> {}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Array(a), Self::Array(b)) => a == b,
            // Without an order of the keys.
            (Self::Object(a), Self::Object(b)) => a == b,
            _ => !self.is_nan() && self.cmp(other).is_eq(),
        }
    }
}

impl Eq for Value {}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        step();
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Array(a), Self::Array(b)) if Rc::ptr_eq(a, b) => Ordering::Equal,
            (Self::Array(a), Self::Array(b)) => a.content.cmp(&b.content),
            (Self::Object(a), Self::Object(b)) if Rc::ptr_eq(a, b) => Ordering::Equal,
            (Self::Object(a), Self::Object(b)) => {
                let (a, b) = (a.sorted(), b.sorted());
                let keys = a.keys().cmp(b.keys());
                keys.then_with(|| a.values().cmp(b.values()))
            }
            _ => match (self.number(), other.number()) {
                (Some(a), Some(b)) => match (self.exact(), other.exact()) {
                    // An order by the nearest float of each integer would be none.
                    (Some(a), Some(b)) => a.cmp(&b),
                    // No number is less than itself, so that sorting has an order; NaN comes first.
                    _ => a
                        .partial_cmp(&b)
                        .unwrap_or_else(|| b.is_nan().cmp(&a.is_nan())),
                },
                _ => self.rank().cmp(&other.rank()),
            },
        }
    }
}

/// Calculates with integers as long as the result is one. Fails unless both are numbers.
fn calculate(
    a: Value,
    by: Math,
    b: Value,
    whole: impl Fn(i128, i128) -> Option<i128>,
    float: impl Fn(f64, f64) -> f64,
) -> ValR {
    if let (Some(a), Some(b)) = (a.integer(), b.integer())
        && let Some(number) = whole(a, b)
    {
        return Ok(number.into());
    }
    match (a.number(), b.number()) {
        (Some(a), Some(b)) => Ok(Value::Float(float(a, b))),
        _ => Err(Error::math(a, by, b)),
    }
}

impl Add for Value {
    type Output = ValR;

    fn add(self, other: Self) -> ValR {
        step();
        match (self, other) {
            (Self::Null, other) | (other, Self::Null) => Ok(other),
            (Self::Text(a), Self::Text(b)) => Ok([a.as_str(), b.as_str()].concat().into()),
            (Self::Array(mut a), Self::Array(b)) => {
                let array = Rc::make_mut(&mut a);
                for value in &b.content {
                    array.push(value.clone());
                }
                Ok(Self::Array(a))
            }
            (Self::Object(mut a), Self::Object(b)) => {
                let object = Rc::make_mut(&mut a);
                // Others may hold it, so that it is not cloned as a whole.
                for (key, value) in &b.content {
                    object.insert(key.clone(), value.clone());
                }
                Ok(Self::Object(a))
            }
            (a, b) => calculate(a, Math::Add, b, i128::checked_add, |a, b| a + b),
        }
    }
}

impl Sub for Value {
    type Output = ValR;

    fn sub(self, other: Self) -> ValR {
        step();
        match (self, other) {
            (Self::Array(a), Self::Array(b)) => {
                let without: BTreeSet<&Value> = b.content.iter().collect();
                let left = a.content.iter().filter(|item| !without.contains(item));
                Ok(left.cloned().collect())
            }
            (a, b) => calculate(a, Math::Sub, b, i128::checked_sub, |a, b| a - b),
        }
    }
}

impl Mul for Value {
    type Output = ValR;

    fn mul(self, other: Self) -> ValR {
        step();
        match (self, other) {
            (Self::Text(text), times) | (times, Self::Text(text)) if times.number().is_some() => {
                let times = times.number().unwrap_or_default();
                if times <= 0.0 {
                    return Ok(Self::Null);
                }
                let times = times.ceil() as usize;
                // Before it is allocated.
                drop(Charge::new(text.as_str().len().saturating_mul(times)));
                Ok(text.as_str().repeat(times).into())
            }
            (Self::Object(a), Self::Object(b)) => Ok(merge(a, &b)),
            (a, b) => calculate(a, Math::Mul, b, i128::checked_mul, |a, b| a * b),
        }
    }
}

fn merge(mut a: Rc<Held<Entries>>, b: &Held<Entries>) -> Value {
    step();
    let object = Rc::make_mut(&mut a);
    for (key, value) in &b.content {
        let value = match (object.content.get(key), value) {
            (Some(Value::Object(ours)), Value::Object(theirs)) => merge(Rc::clone(ours), theirs),
            _ => value.clone(),
        };
        object.insert(key.clone(), value);
    }
    // The deepest may have been replaced.
    let deepest = object.content.values().map(Value::depth).max();
    object.depth = depth_above(deepest.unwrap_or(0));
    Value::Object(a)
}

impl Div for Value {
    type Output = ValR;

    fn div(self, other: Self) -> ValR {
        step();
        match (self, other) {
            (Self::Text(text), Self::Text(by)) => {
                let (text, by) = (text.as_str(), by.as_str());
                Ok(match (text.is_empty(), by.is_empty()) {
                    (true, _) => Self::Array(Rc::default()),
                    (_, true) => text.chars().map(|c| Self::from(c.to_string())).collect(),
                    _ => text.split(by).map(Self::text).collect(),
                })
            }
            (a, b) if b.number() == Some(0.0) => Err(Error::math(a, Math::Div, b)),
            (a, b) => {
                let divide = |a: i128, b: i128| (a.checked_rem(b)? == 0).then(|| a / b);
                calculate(a, Math::Div, b, divide, |a, b| a / b)
            }
        }
    }
}

impl Rem for Value {
    type Output = ValR;

    fn rem(self, other: Self) -> ValR {
        match (self.whole(), other.whole()) {
            (Some(a), Some(b)) if b != 0 => Ok((a % b).into()),
            _ => Err(Error::math(self, Math::Rem, other)),
        }
    }
}

impl Neg for Value {
    type Output = ValR;

    fn neg(self) -> ValR {
        Self::Int(0) - self
    }
}

impl jaq_core::ValT for Value {
    fn from_num(number: &str) -> ValR {
        Ok(Self::number_of(number))
    }

    fn from_map<I: IntoIterator<Item = (Self, Self)>>(entries: I) -> ValR {
        let entries = entries.into_iter().map(|(key, value)| match key {
            Self::Text(key) => Ok((key, value)),
            key => Err(Error::typ(key, "a key: keys are strings")),
        });
        entries.collect()
    }

    fn key_values(self) -> BoxIter<'static, Result<(Self, Self), Error>> {
        match self {
            Self::Array(array) => Box::new((0..array.content.len()).map(move |at| {
                step();
                Ok((at.into(), array.content[at].clone()))
            })),
            Self::Object(object) => Box::new((0..object.content.len()).map(move |at| {
                step();
                let entry = object.content.get_index(at);
                let (key, value) = entry.ok_or_else(|| Error::str("gone"))?;
                Ok((Self::Text(key.clone()), value.clone()))
            })),
            other => box_once(Err(Error::typ(other, "array or object"))),
        }
    }

    fn values(self) -> Box<dyn Iterator<Item = ValR>> {
        Box::new(self.key_values().map(|entry| entry.map(|(_, value)| value)))
    }

    fn index(self, index: &Self) -> ValR {
        step();
        match (&self, index) {
            (Self::Null, Self::Null | Self::Text(_)) => Ok(Self::Null),
            (Self::Null, index) if index.number().is_some() => Ok(Self::Null),
            (Self::Object(object), Self::Text(key)) => {
                Ok(object.content.get(key).cloned().unwrap_or_default())
            }
            (Self::Array(array), index) if index.number().is_some() => {
                let at = index.place(array.content.len());
                let item = at.and_then(|at| array.content.get(at));
                Ok(item.cloned().unwrap_or_default())
            }
            (Self::Array(_) | Self::Text(_) | Self::Null, Self::Object(_)) => {
                self.range(index.as_range())
            }
            (Self::Array(_), Self::Array(_)) => self.indices(index),
            _ => Err(Error::index(self, index.clone())),
        }
    }

    fn range(self, range: Range<&Self>) -> ValR {
        match &self {
            Self::Null => Ok(Self::Null),
            Self::Array(array) => {
                let bounds = Self::bounds(&range, array.content.len())?;
                Ok(array.content[bounds].iter().cloned().collect())
            }
            Self::Text(text) => {
                let text = text.as_str();
                let bounds = Self::bounds(&range, text.chars().count())?;
                let part = text.chars().skip(bounds.start).take(bounds.len());
                Ok(Self::from(part.collect::<String>()))
            }
            _ => Err(Error::typ(self, "array or string")),
        }
    }

    fn map_values<'a, I: Iterator<Item = ValX<'a, Self>>>(
        self,
        opt: Opt,
        f: impl Fn(Self) -> I,
    ) -> ValX<'a, Self> {
        match self {
            Self::Array(array) => {
                let items = array.content.iter().cloned().flat_map(f);
                items.collect::<Result<Self, _>>()
            }
            Self::Object(object) => {
                let entries = object.content.iter().filter_map(|(key, value)| {
                    f(value.clone())
                        .next()
                        .map(|value| Ok((key.clone(), value?)))
                });
                entries.collect::<Result<Self, _>>()
            }
            other => opt.fail(other, |other| {
                Exn::from(Error::typ(other, "array or object"))
            }),
        }
    }

    fn map_index<'a, I: Iterator<Item = ValX<'a, Self>>>(
        mut self,
        index: &Self,
        opt: Opt,
        f: impl Fn(Self) -> I,
    ) -> ValX<'a, Self> {
        step();
        if let (Self::Array(_), Self::Object(_)) = (&self, index) {
            return self.map_range(index.as_range(), opt, f);
        }
        if let (Self::Null, Self::Text(_)) = (&self, index) {
            self = Self::Object(Rc::default());
        }
        if let (Self::Null, Some(_)) = (&self, index.whole()) {
            self = Self::Array(Rc::default());
        }
        match (&mut self, index) {
            (Self::Object(object), Self::Text(key)) => {
                // Taken out, so that it can be changed in place.
                let object = Rc::make_mut(object);
                let old = object.content.get_mut(key).map(std::mem::take);
                match f(old.unwrap_or_default()).next().transpose()? {
                    Some(new) => object.insert(key.clone(), new),
                    None => drop(object.content.shift_remove(key)),
                }
                Ok(self)
            }
            (Self::Array(array), index) if index.number().is_some() => {
                let length = array.content.len();
                let Some(at) = index.place(length) else {
                    return opt.fail(self, |_| Exn::from(Error::str("an index is out of bounds")));
                };
                let array = Rc::make_mut(array);
                if at >= length {
                    array
                        .charge
                        .add((at - length).saturating_add(1).saturating_mul(ELEMENT));
                    array.content.resize(at + 1, Self::Null);
                }
                let old = std::mem::take(&mut array.content[at]);
                match f(old).next().transpose()? {
                    Some(new) => {
                        array.admit(0, &new);
                        array.content[at] = new;
                    }
                    None => drop(array.content.remove(at)),
                }
                Ok(self)
            }
            _ => opt.fail(self, |value| Exn::from(Error::index(value, index.clone()))),
        }
    }

    fn map_range<'a, I: Iterator<Item = ValX<'a, Self>>>(
        self,
        range: Range<&Self>,
        opt: Opt,
        f: impl Fn(Self) -> I,
    ) -> ValX<'a, Self> {
        let Self::Array(array) = &self else {
            return opt.fail(self, |value| Exn::from(Error::typ(value, "array")));
        };
        let bounds = Self::bounds(&range, array.content.len())?;
        let (before, after) = (&array.content[..bounds.start], &array.content[bounds.end..]);
        let part = array.content[bounds.clone()].iter().cloned().collect();
        let new = f(part).next().transpose()?;
        let new = match new.unwrap_or_else(|| Self::Array(Rc::default())) {
            Self::Array(new) => new,
            other => return Err(Exn::from(Error::typ(other, "array"))),
        };
        let parts = [before, &new.content, after].into_iter().flatten();
        Ok(parts.cloned().collect())
    }

    fn as_bool(&self) -> bool {
        step();
        !matches!(self, Self::Null | Self::Bool(false))
    }

    fn into_string(self) -> Self {
        match self {
            Self::Text(_) => self,
            other => other.to_json(),
        }
    }
}

/// The range of an array of `length` items that a path leads to, and what is left of the path; it is empty beyond the
/// array.
fn place_in(length: usize, path: &[Value]) -> Result<(std::ops::Range<usize>, &[Value]), Error> {
    let mut range = 0..length;
    for (nth, key) in path.iter().enumerate() {
        if let Value::Object(_) = key {
            let part = Value::bounds(&key.as_range(), range.len())?;
            range = range.start + part.start..range.start + part.end;
        } else if key.number().is_some() {
            let at = key.place(range.len()).filter(|at| *at < range.len());
            let place = at.map_or(length..length, |at| range.start + at..range.start + at + 1);
            return Ok((place, &path[nth + 1..]));
        } else {
            return Err(Error::typ(key.clone(), "an index of an array"));
        }
    }
    Ok((range, &[]))
}

/// A text that grows within the bounds of memory.
#[derive(Default)]
struct Bounded(String, Charge);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.1.add(text.len());
        self.0.push_str(text);
        Ok(())
    }
}

impl jaq_std::ValT for Value {
    fn into_seq<S: FromIterator<Self>>(self) -> Result<S, Self> {
        match self {
            Self::Array(array) => Ok(array.content.iter().cloned().collect()),
            other => Err(other),
        }
    }

    fn is_int(&self) -> bool {
        match self {
            Self::Int(_) | Self::Large(_) => true,
            Self::Float(number) => number.fract() == 0.0,
            _ => false,
        }
    }

    fn as_isize(&self) -> Option<isize> {
        self.whole()
            .filter(|_| self.is_int())
            .and_then(|number| isize::try_from(number).ok())
    }

    fn as_f64(&self) -> Option<f64> {
        self.number()
    }

    fn is_utf8_str(&self) -> bool {
        matches!(self, Self::Text(_))
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        self.as_text().ok().map(str::as_bytes)
    }

    fn as_sub_str(&self, part: &[u8]) -> Self {
        Self::from(String::from_utf8_lossy(part).into_owned())
    }

    fn from_utf8_bytes(bytes: impl AsRef<[u8]> + Send + 'static) -> Self {
        Self::from(String::from_utf8_lossy(bytes.as_ref()).into_owned())
    }
}

impl From<Node<'_>> for Value {
    fn from(node: Node<'_>) -> Self {
        step();
        let text = |node: Node<'_>| {
            let spelling = node.spelling();
            // One that is not valid Unicode, as it is spelled.
            Text::new(node.as_str().unwrap_or(&spelling[1..spelling.len() - 1]))
        };
        match node.kind() {
            Kind::Null => Self::Null,
            Kind::Bool => Self::Bool(node.as_bool() == Some(true)),
            Kind::Number => Self::number_of(node.spelling()),
            Kind::String => Self::Text(text(node)),
            Kind::Array => node.items().map(Self::from).collect(),
            Kind::Object => {
                let entries = node.keys();
                entries.map(|key| (text(key), key.value().into())).collect()
            }
        }
    }
}
