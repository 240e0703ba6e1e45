//! Lists: their edits, and the reducers that need no keys.

use std::num::NonZeroUsize;

use serde_json::Value;

use crate::reducer::{Cause, Change, Reducer, Side};
use crate::value::{each, wrong_type};

/// The planned edit of a list. All indexes refer to the list before the edit.
#[derive(Debug)]
pub(crate) struct ListEdit<T> {
    pub(crate) replace: Vec<(usize, T)>,
    /// Ascending.
    pub(crate) remove: Vec<usize>,
    /// Number of items to drop from the front. Not combined with `remove`.
    pub(crate) drop_front: usize,
    pub(crate) append: Vec<T>,
}

impl<T> ListEdit<T> {
    pub(crate) fn append(append: Vec<T>) -> Self {
        Self {
            replace: Vec::new(),
            remove: Vec::new(),
            drop_front: 0,
            append,
        }
    }

    /// Appends `update` to a list of `existing` items, without those at `gone`: ascending indexes into both together.
    pub(crate) fn append_without(
        mut gone: Vec<usize>,
        existing: usize,
        mut update: Vec<T>,
    ) -> Self {
        let of_update = gone.split_off(gone.partition_point(|&at| at < existing));
        let of_update = of_update.into_iter().map(|at| at - existing);
        drop_at(&mut update, of_update.collect());
        Self {
            remove: gone,
            ..Self::append(update)
        }
    }

    pub(crate) fn apply(self, list: &mut Vec<T>) {
        for (at, item) in self.replace {
            if let Some(slot) = list.get_mut(at) {
                *slot = item;
            }
        }
        drop_at(list, self.remove);
        list.drain(..self.drop_front.min(list.len()));
        list.extend(self.append);
    }
}

/// Removes the items at ascending indexes.
pub(crate) fn drop_at<T>(list: &mut Vec<T>, gone: Vec<usize>) {
    if gone.is_empty() {
        return;
    }
    let mut gone = gone.into_iter().peekable();
    let mut at = 0;
    list.retain(|_| {
        let goes = gone.next_if_eq(&at).is_some();
        at += 1;
        !goes
    });
}

impl<T: 'static> ListEdit<T> {
    pub(crate) fn into_change<L: ItemList<Item = T>>(self) -> Change<L> {
        let is_short = self.append.is_empty() && self.drop_front == 0;
        if is_short && self.replace.is_empty() && self.remove.is_empty() {
            return Change::Keep;
        }
        Change::Edit(Box::new(move |list: &mut L| {
            if let Some(items) = list.items_mut() {
                self.apply(items);
            }
        }))
    }
}

/// A list that reducers accept: a `Vec`, or a JSON value, which must be a list.
pub trait ItemList: Sized + 'static {
    /// Type of the items.
    type Item: 'static;
    /// Several lists, for [`ConcatFlatten`].
    type Lists;

    /// The items of an existing value.
    ///
    /// # Errors
    ///
    /// It is not a list.
    fn items(&self) -> Result<&[Self::Item], Cause>;

    /// The items to change; `None` if it is not a list.
    fn items_mut(&mut self) -> Option<&mut Vec<Self::Item>>;

    /// The items of an update.
    ///
    /// # Errors
    ///
    /// It is not a list.
    fn into_items(self) -> Result<Vec<Self::Item>, Cause>;

    /// The items of all lists in an update.
    ///
    /// # Errors
    ///
    /// It is not a list of lists.
    fn flatten(lists: Self::Lists) -> Result<Vec<Self::Item>, Cause>;
}

impl<T: 'static> ItemList for Vec<T> {
    type Item = T;
    type Lists = Vec<Self>;

    fn items(&self) -> Result<&[T], Cause> {
        Ok(self)
    }

    fn items_mut(&mut self) -> Option<&mut Self> {
        Some(self)
    }

    fn into_items(self) -> Result<Self, Cause> {
        Ok(self)
    }

    fn flatten(lists: Vec<Self>) -> Result<Self, Cause> {
        Ok(lists.into_iter().flatten().collect())
    }
}

impl ItemList for Value {
    type Item = Self;
    type Lists = Self;

    fn items(&self) -> Result<&[Self], Cause> {
        let items = self.as_array().map(Vec::as_slice);
        items.ok_or_else(|| wrong_type(Side::Existing, self, "a list"))
    }

    fn items_mut(&mut self) -> Option<&mut Vec<Self>> {
        self.as_array_mut()
    }

    fn into_items(self) -> Result<Vec<Self>, Cause> {
        match self {
            Self::Array(items) => Ok(items),
            other => Err(wrong_type(Side::Update, &other, "a list")),
        }
    }

    fn flatten(lists: Self) -> Result<Vec<Self>, Cause> {
        let lists = each(lists.into_items()?, "lists", |item| match item {
            Self::Array(items) => Ok(items),
            other => Err(other),
        })?;
        Ok(lists.into_iter().flatten().collect())
    }
}

/// OpenArmature's `append`: the list, then the update. Nothing is removed.
///
/// ```
/// use offcut_state::{Append, Reducer};
/// assert_eq!(Append.reduce(vec!["a"], vec!["a", "b"])?, ["a", "a", "b"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Append;

impl<L: ItemList> Reducer<L> for Append {
    type Update = L;

    fn name(&self) -> &str {
        "append"
    }

    fn plan(&self, existing: &L, update: L) -> Result<Change<L>, Cause> {
        existing.items()?;
        Ok(ListEdit::append(update.into_items()?).into_change())
    }
}

/// OpenArmature's `concat_flatten`: the list, then the items of the lists in the update. Flattens
/// one level.
///
/// ```
/// use offcut_state::{ConcatFlatten, Reducer};
/// assert_eq!(ConcatFlatten.reduce(vec![1], vec![vec![2], vec![], vec![3, 4]])?, [1, 2, 3, 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ConcatFlatten;

impl<L: ItemList> Reducer<L> for ConcatFlatten {
    type Update = L::Lists;

    fn name(&self) -> &str {
        "concat_flatten"
    }

    fn plan(&self, existing: &L, update: L::Lists) -> Result<Change<L>, Cause> {
        existing.items()?;
        Ok(ListEdit::append(L::flatten(update)?).into_change())
    }
}

/// OpenArmature's `bounded_append` (proposal 0023): appends, then drops from the front until at
/// most `max_len` items are left. If the update alone is longer, only its last items are left. An
/// empty update changes nothing, even if the list is over the bound.
///
/// Dropped items are gone. In a list of messages this can leave a result without its call, which
/// providers reject: use [`BoundedMessages`](crate::BoundedMessages) there.
///
/// ```
/// use offcut_state::{BoundedAppend, Reducer};
/// # use std::num::NonZeroUsize;
/// # let three = NonZeroUsize::MIN.saturating_add(2);
/// assert_eq!(BoundedAppend::new(three).reduce(vec![1, 2], vec![3, 4])?, [2, 3, 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct BoundedAppend {
    max_len: NonZeroUsize,
}

impl BoundedAppend {
    /// Keeps at most `max_len` items.
    #[must_use]
    pub fn new(max_len: NonZeroUsize) -> Self {
        Self { max_len }
    }

    fn edit<T>(self, existing: &[T], mut update: Vec<T>) -> ListEdit<T> {
        if update.is_empty() {
            return ListEdit::append(update);
        }
        let over = (existing.len() + update.len()).saturating_sub(self.max_len.get());
        let of_existing = over.min(existing.len());
        update.drain(..(over - of_existing).min(update.len()));
        ListEdit {
            drop_front: of_existing,
            ..ListEdit::append(update)
        }
    }
}

impl<L: ItemList> Reducer<L> for BoundedAppend {
    type Update = L;

    fn name(&self) -> &str {
        "bounded_append"
    }

    fn plan(&self, existing: &L, update: L) -> Result<Change<L>, Cause> {
        Ok(self
            .edit(existing.items()?, update.into_items()?)
            .into_change())
    }
}
