//! What an item of a list is known by.

use std::borrow::Cow;
use std::hash::Hash;

use serde_json::Value;

use crate::reducer::{BoxError, Cause, Side};
use crate::value::kind;

/// How an item's key is found.
///
/// [`by`], [`try_by`] and [`ByValue`] serve typed lists, [`Field`] and [`Scalar`] JSON. Implement it
/// where a key is to be borrowed from the item.
pub trait KeyOf<T>: Send + Sync {
    /// What is compared. It may borrow from the item.
    type Key<'a>: Hash + Eq
    where
        Self: 'a,
        T: 'a;

    /// The key of `item`; `None` if it has none.
    ///
    /// # Errors
    ///
    /// It could not be found, or is nothing that a key can be.
    fn key_of<'a>(&'a self, item: &'a T) -> Result<Option<Self::Key<'a>>, KeyFailure>;
}

/// Why an item has no usable key.
#[derive(Debug)]
#[non_exhaustive]
pub enum KeyFailure {
    /// It is nothing that a key can be; what it is, with its article.
    Kind(&'static str),
    /// The key function failed.
    Failed(BoxError),
}

impl KeyFailure {
    pub(crate) fn at(self, side: Side, index: usize) -> Cause {
        match self {
            Self::Kind(found) => Cause::BadKey { side, index, found },
            Self::Failed(source) => Cause::KeyFunction {
                side,
                index,
                source,
            },
        }
    }
}

/// A key as JSON has it: null, a boolean, an integer or a string. `1` is not `"1"`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ItemKey<'a> {
    /// Null is a key like any other.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer; every one that JSON has fits.
    Int(i128),
    /// A string.
    Str(Cow<'a, str>),
}

impl<'a> ItemKey<'a> {
    /// The key that `value` is.
    ///
    /// # Errors
    ///
    /// It is a number with a fraction or an exponent, a list or a map.
    pub fn of(value: &'a Value) -> Result<Self, KeyFailure> {
        match value {
            Value::Null => Ok(Self::Null),
            Value::Bool(is) => Ok(Self::Bool(*is)),
            Value::String(text) => Ok(Self::Str(Cow::Borrowed(text))),
            Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(int), _) => Ok(Self::Int(int.into())),
                (None, Some(int)) => Ok(Self::Int(int.into())),
                (None, None) => Err(KeyFailure::Kind(kind(value))),
            },
            Value::Array(_) | Value::Object(_) => Err(KeyFailure::Kind(kind(value))),
        }
    }

    /// The same key, borrowing nothing.
    #[must_use]
    pub fn into_owned(self) -> ItemKey<'static> {
        match self {
            Self::Null => ItemKey::Null,
            Self::Bool(is) => ItemKey::Bool(is),
            Self::Int(int) => ItemKey::Int(int),
            Self::Str(text) => ItemKey::Str(Cow::Owned(text.into_owned())),
        }
    }
}

impl<'a> From<&'a str> for ItemKey<'a> {
    fn from(text: &'a str) -> Self {
        Self::Str(Cow::Borrowed(text))
    }
}

impl From<String> for ItemKey<'_> {
    fn from(text: String) -> Self {
        Self::Str(Cow::Owned(text))
    }
}

impl From<i64> for ItemKey<'_> {
    fn from(int: i64) -> Self {
        Self::Int(int.into())
    }
}

impl From<u64> for ItemKey<'_> {
    fn from(int: u64) -> Self {
        Self::Int(int.into())
    }
}

/// The item is its own key. For lists of JSON use [`Scalar`], which refuses what can't be a key.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByValue;

impl<T: Hash + Eq> KeyOf<T> for ByValue {
    type Key<'a>
        = &'a T
    where
        T: 'a;

    fn key_of<'a>(&'a self, item: &'a T) -> Result<Option<&'a T>, KeyFailure> {
        Ok(Some(item))
    }
}

/// A key that a closure gives: see [`by`].
#[derive(Clone, Copy, Debug)]
pub struct By<F>(F);

/// The key is what `key` gives: an id, a tuple of fields. A closure that may fail goes into
/// [`try_by`].
///
/// ```
/// use offcut_state::{KeyedList, Reducer, by};
/// let merge = KeyedList::merge_by_key(by(|(id, _): &(u32, &str)| *id));
/// assert_eq!(merge.reduce(vec![(1, "a"), (2, "b")], vec![(1, "c")])?, [(1, "c"), (2, "b")]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn by<T, K, F>(key: F) -> By<F>
where
    F: Fn(&T) -> K + Send + Sync,
    K: Hash + Eq,
{
    By(key)
}

impl<T, K, F> KeyOf<T> for By<F>
where
    F: Fn(&T) -> K + Send + Sync,
    K: Hash + Eq,
{
    type Key<'a>
        = K
    where
        Self: 'a,
        T: 'a;

    fn key_of<'a>(&'a self, item: &'a T) -> Result<Option<K>, KeyFailure> {
        Ok(Some((self.0)(item)))
    }
}

/// A key that a closure gives or fails to give: see [`try_by`].
#[derive(Clone, Copy, Debug)]
pub struct TryBy<F>(F);

/// The key is what `key` gives. `Ok(None)` means that the item has none; an error is the reducer's
/// error.
pub fn try_by<T, K, E, F>(key: F) -> TryBy<F>
where
    F: Fn(&T) -> Result<Option<K>, E> + Send + Sync,
    K: Hash + Eq,
    E: Into<BoxError>,
{
    TryBy(key)
}

impl<T, K, E, F> KeyOf<T> for TryBy<F>
where
    F: Fn(&T) -> Result<Option<K>, E> + Send + Sync,
    K: Hash + Eq,
    E: Into<BoxError>,
{
    type Key<'a>
        = K
    where
        Self: 'a,
        T: 'a;

    fn key_of<'a>(&'a self, item: &'a T) -> Result<Option<K>, KeyFailure> {
        (self.0)(item).map_err(|error| KeyFailure::Failed(error.into()))
    }
}

/// The key is the item, a JSON value: null, a boolean, an integer or a string.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scalar;

impl KeyOf<Value> for Scalar {
    type Key<'a> = ItemKey<'a>;

    fn key_of<'a>(&'a self, item: &'a Value) -> Result<Option<ItemKey<'a>>, KeyFailure> {
        ItemKey::of(item).map(Some)
    }
}

/// The key is a field of the item, a JSON object. An object without the field has no key; a null in
/// it is one.
#[derive(Clone, Debug)]
pub struct Field(String);

impl Field {
    /// The field `name`, or, if it begins with `/`, what this JSON pointer finds: `/meta/id`.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The key, borrowed from the item alone.
    pub(crate) fn find<'a>(&self, item: &'a Value) -> Result<Option<ItemKey<'a>>, KeyFailure> {
        if !item.is_object() {
            return Err(KeyFailure::Failed(
                format!("it is {} and has no fields", kind(item)).into(),
            ));
        }
        let value = if self.0.starts_with('/') {
            item.pointer(&self.0)
        } else {
            item.get(&self.0)
        };
        value.map(ItemKey::of).transpose()
    }
}

impl KeyOf<Value> for Field {
    type Key<'a> = ItemKey<'a>;

    fn key_of<'a>(&'a self, item: &'a Value) -> Result<Option<ItemKey<'a>>, KeyFailure> {
        self.find(item)
    }
}
