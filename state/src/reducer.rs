//! What a reducer is: a pure decision about a borrowed value, and a change that can't fail.

use std::fmt;
use std::sync::Arc;

/// The error of somebody else's code.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Decides what a field keeps when an update is merged into it.
///
/// A reducer is pure and synchronous: the same value and update give the same result. It only
/// borrows the value, so it can't change it; what is to change is the [`Change`] that it returns,
/// which can't fail. So an error leaves the value as it was, and several fields change together or
/// not at all.
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
    /// What is merged into the value.
    type Update;

    /// What errors call it.
    fn name(&self) -> &str;

    /// What is to become of `existing`.
    ///
    /// # Errors
    ///
    /// The update does not fit: see [`Cause`].
    fn plan(&self, existing: &T, update: Self::Update) -> Result<Change<T>, Cause>;

    /// Whether several updates that arrive in parallel can be folded in their order. Not where each
    /// replaces the value.
    fn folds(&self) -> bool {
        true
    }

    /// The value with the update merged in.
    ///
    /// # Errors
    ///
    /// The update does not fit. The error carries the value, untouched.
    fn reduce(&self, mut existing: T, update: Self::Update) -> Result<T, ReducerError<T>> {
        match self.plan(&existing, update) {
            Ok(change) => {
                change.apply(&mut existing);
                Ok(existing)
            }
            Err(cause) => Err(ReducerError::new(self.name(), cause, existing)),
        }
    }
}

/// A reducer that is shared is a reducer.
#[deny(clippy::missing_trait_methods)]
impl<T, R: Reducer<T> + ?Sized> Reducer<T> for Arc<R> {
    type Update = R::Update;

    fn name(&self) -> &str {
        (**self).name()
    }

    fn plan(&self, existing: &T, update: Self::Update) -> Result<Change<T>, Cause> {
        (**self).plan(existing, update)
    }

    fn folds(&self) -> bool {
        (**self).folds()
    }

    fn reduce(&self, existing: T, update: Self::Update) -> Result<T, ReducerError<T>> {
        (**self).reduce(existing, update)
    }
}

/// What a reducer has decided. Applying it can't fail.
pub struct Change<T>(What<T>);

enum What<T> {
    Keep,
    Replace(T),
    Edit(Box<dyn FnOnce(&mut T)>),
}

impl<T> Change<T> {
    /// The value stays as it is.
    #[must_use]
    pub fn keep() -> Self {
        Self(What::Keep)
    }

    /// `value` takes its place.
    #[must_use]
    pub fn replace(value: T) -> Self {
        Self(What::Replace(value))
    }

    /// The value is changed in place, at the cost of the edit and not of the value.
    #[must_use]
    pub fn edit(edit: impl FnOnce(&mut T) + 'static) -> Self {
        Self(What::Edit(Box::new(edit)))
    }

    /// Changes `value`.
    pub fn apply(self, value: &mut T) {
        match self.0 {
            What::Keep => {}
            What::Replace(new) => *value = new,
            What::Edit(edit) => edit(value),
        }
    }

    /// Whether nothing changes.
    #[must_use]
    pub fn is_keep(&self) -> bool {
        matches!(self.0, What::Keep)
    }

    /// What takes the value's place, if something does.
    pub(crate) fn replacement(&self) -> Option<&T> {
        match &self.0 {
            What::Replace(new) => Some(new),
            What::Keep | What::Edit(_) => None,
        }
    }
}

impl<T> fmt::Debug for Change<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            What::Keep => "Keep",
            What::Replace(_) => "Replace(..)",
            What::Edit(_) => "Edit(..)",
        })
    }
}

/// An update that could not be merged: OpenArmature's `reducer_error`. It carries the value as it
/// was.
pub struct ReducerError<T>(Box<Failed<T>>);

struct Failed<T> {
    reducer: String,
    cause: Cause,
    value: T,
}

impl<T> ReducerError<T> {
    fn new(reducer: &str, cause: Cause, value: T) -> Self {
        Self(Box::new(Failed {
            reducer: reducer.to_owned(),
            cause,
            value,
        }))
    }

    /// The reducer's name.
    #[must_use]
    pub fn reducer(&self) -> &str {
        &self.0.reducer
    }

    /// Why.
    #[must_use]
    pub fn cause(&self) -> &Cause {
        &self.0.cause
    }

    /// The value, untouched.
    #[must_use]
    pub fn value(&self) -> &T {
        &self.0.value
    }

    /// The value, untouched.
    #[must_use]
    pub fn into_value(self) -> T {
        self.0.value
    }

    /// The category that OpenArmature gives it: always `reducer_error`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "reducer_error"
    }
}

impl<T> fmt::Display for ReducerError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the reducer `{}` could not take the update; the value is as it was",
            self.0.reducer
        )
    }
}

/// Without the value: it may hold what tools returned.
impl<T> fmt::Debug for ReducerError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReducerError")
            .field("reducer", &self.0.reducer)
            .field("cause", &self.0.cause)
            .finish_non_exhaustive()
    }
}

impl<T> std::error::Error for ReducerError<T> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0.cause)
    }
}

/// Why an update could not be merged. Places are counted from 0; no content is in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The value or the update is of another type.
    #[error("the {side} is {found}; this takes {wanted}")]
    WrongType {
        /// Which of the two.
        side: Side,
        /// What it is, with its article.
        found: &'static str,
        /// What was wanted.
        wanted: &'static str,
    },
    /// An item is of another type.
    #[error("item {index} of the {side} is {found}; this takes {wanted}")]
    WrongItem {
        /// Of which list.
        side: Side,
        /// Its place.
        index: usize,
        /// What it is, with its article.
        found: &'static str,
        /// What was wanted.
        wanted: &'static str,
    },
    /// An item has no key, and the reducer takes none without.
    #[error("item {index} of the {side} has no key")]
    MissingKey {
        /// Of which list.
        side: Side,
        /// Its place.
        index: usize,
    },
    /// An item's key is nothing that a key can be.
    #[error(
        "the key of item {index} of the {side} is {found}: keys are null, booleans, integers and strings; name a field \
         that holds one"
    )]
    BadKey {
        /// Of which list.
        side: Side,
        /// Its place.
        index: usize,
        /// What the key is, with its article.
        found: &'static str,
    },
    /// The key function failed.
    #[error("the key function failed on item {index} of the {side}")]
    KeyFunction {
        /// Of which list.
        side: Side,
        /// Its place.
        index: usize,
        /// What it said.
        #[source]
        source: BoxError,
    },
    /// A removal names a message that is not there.
    #[error("item {index} of the update removes a message that is not there")]
    UnknownRemoval {
        /// Its place in the update.
        index: usize,
    },
    /// The reducer takes no removals.
    #[error(
        "item {index} of the update is a removal, which this reducer does not take: LangGraph's `add_messages` does"
    )]
    RemovalNotTaken {
        /// Its place in the update.
        index: usize,
    },
    /// A reducer of the user's failed.
    #[error("the reducer failed")]
    Failed {
        /// What it said.
        #[source]
        source: BoxError,
    },
}

impl Cause {
    /// A failure of a reducer of one's own.
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
    /// What is merged into it.
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
