//! The reducer contract: a pure decision about a borrowed value, and a change that can't fail.

use std::fmt;

/// An error from code outside this crate.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Decides what a field keeps when an update is merged into it.
///
/// A reducer is pure and synchronous: the same value and update give the same result. It borrows
/// the value, so it can't change it; it returns a [`Change`], and applying one can't fail. So an
/// error leaves the value unchanged, and several fields change together or not at all.
///
/// Call [`reduce`](Self::reduce); implement [`plan`](Self::plan), or wrap a closure with
/// [`custom`](crate::custom).
///
/// ```
/// use offcut_state::{Append, Reducer};
/// assert_eq!(Append.reduce(vec![1, 2], vec![2, 3])?, [1, 2, 2, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Reducer<T>: Send + Sync {
    /// The update to merge into the value.
    type Update;

    /// Returns the name used in errors.
    fn name(&self) -> &str;

    /// Plans the change of `existing`.
    ///
    /// # Errors
    ///
    /// The update does not fit: see [`Cause`].
    fn plan(&self, existing: &T, update: Self::Update) -> Result<Change<T>, Cause>;

    /// Returns whether parallel updates can be folded in their order. False if each update replaces
    /// the value.
    fn folds(&self) -> bool {
        true
    }

    /// Returns the value with the update merged in.
    ///
    /// # Errors
    ///
    /// The update does not fit. The error carries the unchanged value.
    fn reduce(&self, mut existing: T, update: Self::Update) -> Result<T, ReducerError<T>> {
        match self.plan(&existing, update) {
            Ok(change) => {
                change.apply(&mut existing);
                Ok(existing)
            }
            Err(cause) => Err(ReducerError {
                reducer: self.name().to_owned(),
                cause,
                value: Box::new(existing),
            }),
        }
    }
}

/// The decision of a reducer. Applying it can't fail.
pub enum Change<T> {
    /// Keeps the value.
    Keep,
    /// Replaces the value.
    Replace(T),
    /// Changes the value in place, at the cost of the edit and not of the value.
    Edit(Box<dyn FnOnce(&mut T)>),
}

impl<T> Change<T> {
    /// Changes `value`.
    pub fn apply(self, value: &mut T) {
        match self {
            Self::Keep => {}
            Self::Replace(new) => *value = new,
            Self::Edit(edit) => edit(value),
        }
    }
}

impl<T> fmt::Debug for Change<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Keep => "Keep",
            Self::Replace(_) => "Replace(..)",
            Self::Edit(_) => "Edit(..)",
        })
    }
}

/// An update that could not be merged: OpenArmature's `reducer_error`. It carries the unchanged
/// value.
#[derive(thiserror::Error)]
#[error("the reducer `{reducer}` rejected the update; the value is unchanged")]
pub struct ReducerError<T> {
    reducer: String,
    #[source]
    cause: Cause,
    value: Box<T>,
}

impl<T> ReducerError<T> {
    /// Returns the reducer's name.
    #[must_use]
    pub fn reducer(&self) -> &str {
        &self.reducer
    }

    /// Returns the reason.
    #[must_use]
    pub fn cause(&self) -> &Cause {
        &self.cause
    }

    /// Returns the unchanged value.
    #[must_use]
    pub fn value(&self) -> &T {
        &self.value
    }

    /// Returns the unchanged value, consuming the error.
    #[must_use]
    pub fn into_value(self) -> T {
        *self.value
    }

    /// Returns OpenArmature's category: always `reducer_error`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "reducer_error"
    }
}

/// Leaves the value out, since it may hold content of tool results.
impl<T> fmt::Debug for ReducerError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReducerError")
            .field("reducer", &self.reducer)
            .field("cause", &self.cause)
            .finish_non_exhaustive()
    }
}

/// Reason for an update that could not be merged. Indexes start at 0. It holds no content.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The value or the update has the wrong type.
    #[error("the {side} is {found}, but must be {wanted}")]
    WrongType {
        /// The side at fault.
        side: Side,
        /// The type found, with its article.
        found: &'static str,
        /// The type wanted.
        wanted: &'static str,
    },
    /// An item has the wrong type.
    #[error("item {index} of the {side} is {found}, but the items must be {wanted}")]
    WrongItem {
        /// The list that holds the item.
        side: Side,
        /// Index of the item.
        index: usize,
        /// The type found, with its article.
        found: &'static str,
        /// The type wanted.
        wanted: &'static str,
    },
    /// An item has no key, and the reducer requires one.
    #[error("item {index} of the {side} has no key: give it one")]
    MissingKey {
        /// The list that holds the item.
        side: Side,
        /// Index of the item.
        index: usize,
    },
    /// An item's key has a type that keys can't have.
    #[error(
        "the key of item {index} of the {side} is {found}: use a field that holds null, a boolean, an integer or a \
         string"
    )]
    BadKey {
        /// The list that holds the item.
        side: Side,
        /// Index of the item.
        index: usize,
        /// The key's type, with its article.
        found: &'static str,
    },
    /// The key function failed.
    #[error("the key function failed on item {index} of the {side}")]
    KeyFunction {
        /// The list that holds the item.
        side: Side,
        /// Index of the item.
        index: usize,
        /// The function's error.
        #[source]
        source: BoxError,
    },
    /// A removal names a message that is not there.
    #[error("item {index} of the update removes a message that does not exist")]
    UnknownRemoval {
        /// Index in the update.
        index: usize,
    },
    /// The reducer takes no removals.
    #[error(
        "item {index} of the update is a removal, which this reducer does not support: use LangGraph's `add_messages`"
    )]
    RemovalNotTaken {
        /// Index in the update.
        index: usize,
    },
    /// A custom reducer failed.
    #[error("the reducer failed")]
    Failed {
        /// The reducer's error.
        #[source]
        source: BoxError,
    },
}

impl Cause {
    /// Creates the failure of a custom reducer.
    pub fn failed(source: impl Into<BoxError>) -> Self {
        Self::Failed {
            source: source.into(),
        }
    }
}

/// One of the two values that a reducer merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The field's value.
    Existing,
    /// The update to merge into it.
    Update,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Existing => "existing value",
            Self::Update => "update",
        })
    }
}
