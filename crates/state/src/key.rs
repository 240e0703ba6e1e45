//! Keys that identify the items of a list.

use std::borrow::Cow;
use std::hash::Hash;

use serde_json::Value;

use crate::reducer::{BoxError, Cause, Side};
use crate::value::kind;

/// Finds the key of an item.
///
/// Closures serve typed lists, and [`Field`] serves JSON. Implement this trait if the key
/// should be borrowed from the item, may be missing, or can't always be found.
pub trait KeyOf<T>: Send + Sync {
    /// The key to compare. It may borrow from the item.
    type Key<'a>: Hash + Eq
    where
        Self: 'a,
        T: 'a;

    /// Returns the key of `item`; `None` if it has none.
    ///
    /// # Errors
    ///
    /// The key could not be found, or has a type that keys can't have.
    fn key_of<'a>(&'a self, item: &'a T) -> Result<Option<Self::Key<'a>>, KeyFailure>;
}

/// Reason for an item without a usable key.
#[derive(Debug)]
#[non_exhaustive]
pub enum KeyFailure {
    /// The key has a type that keys can't have; the type found, with its article.
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

/// A JSON key: null, a boolean, an integer or a string. `1` is not `"1"`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ItemKey<'a> {
    /// Null, a key like any other.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer of an `i64` or a `u64`.
    Int(i128),
    /// A string.
    Str(Cow<'a, str>),
}

impl<'a> ItemKey<'a> {
    /// Returns `value` as a key.
    ///
    /// # Errors
    ///
    /// `value` is a number with a fraction or an exponent, a list or a map.
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

    /// Returns an owned copy of the key.
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

/// The result of a closure, such as an id or a tuple of fields.
///
/// ```
/// use offcut_state::{KeyedList, Reducer};
/// let merge = KeyedList::merge_by_key(|(id, _): &(u32, &str)| *id);
/// assert_eq!(merge.reduce(vec![(1, "a"), (2, "b")], vec![(1, "c")])?, [(1, "c"), (2, "b")]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<T, K, F> KeyOf<T> for F
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
        Ok(Some(self(item)))
    }
}

/// Uses a field of the item, a JSON object. An object without the field has no key; null in the
/// field is a key.
#[derive(Clone, Debug)]
pub struct Field(String);

impl Field {
    /// Uses the field `name`, or the JSON pointer `name` if it begins with `/`: `/meta/id`. An empty one is the item
    /// itself.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// Finds the key, borrowed from the item alone.
    pub(crate) fn find<'a>(&self, item: &'a Value) -> Result<Option<ItemKey<'a>>, KeyFailure> {
        if self.0.is_empty() {
            return ItemKey::of(item).map(Some);
        }
        if !item.is_object() {
            return Err(KeyFailure::Failed(
                format!("the item is {}, so it has no fields", kind(item)).into(),
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
