//! `dedupe_append` and `merge_by_key`: lists whose items are identified by a key.

use crate::key::KeyOf;
use crate::keyed::{KeyedDecision, MissingKey, OnMatch, Op, decide};
use crate::list::{ItemList, ListEdit};
use crate::reducer::{Cause, Change, Reducer, Side};

/// Merges items into a list by their keys.
///
/// | | [`dedupe_append`](Self::dedupe_append) | [`merge_by_key`](Self::merge_by_key) |
/// |---|---|---|
/// | an item whose key is there | is skipped | takes its place |
/// | [`missing_key`](Self::missing_key) | [`MissingKey::Fail`] | [`MissingKey::Fail`] |
///
/// # Guarantees
///
/// - The list keeps its order and its own duplicates. The last duplicate is the one that is
///   replaced. New items are appended in order.
/// - An empty update changes nothing, and no key is computed.
/// - One update or several with the same items in the same order give the same list.
/// - If the key of any item, in the update or in the list, can't be computed, the update fails and
///   the list is unchanged.
/// - Time is linear in the list and the update, memory in the update.
#[derive(Clone, Debug)]
pub struct KeyedList<K> {
    name: &'static str,
    key: K,
    on_match: OnMatch,
    missing_key: MissingKey,
}

impl<K> KeyedList<K> {
    /// OpenArmature's `dedupe_append` (proposal 0023) and Agentflow's `append_items`: appends the
    /// items whose key is neither in the list nor earlier in the update. The first wins.
    ///
    /// ```
    /// use offcut_state::{KeyedList, Reducer};
    /// let unique = KeyedList::dedupe_append(u8::clone);
    /// assert_eq!(unique.reduce(vec![1, 1], vec![2, 1, 2])?, [1, 1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn dedupe_append(key: K) -> Self {
        Self::new("dedupe_append", key, OnMatch::Keep)
    }

    /// OpenArmature's `merge_by_key` (proposal 0023): an item whose key is in the list replaces the
    /// one there; the others are appended. Within the update the last wins, in the place of the
    /// first.
    ///
    /// ```
    /// use offcut_state::{Field, KeyedList, Reducer};
    /// use serde_json::json;
    /// let merge = KeyedList::merge_by_key(Field::new("id"));
    /// let streamed = json!([{"id": 1, "text": "Hello"}, {"id": 2, "text": "new"}]);
    /// assert_eq!(merge.reduce(json!([{"id": 1, "text": "Hel"}]), streamed.clone())?, streamed);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn merge_by_key(key: K) -> Self {
        Self::new("merge_by_key", key, OnMatch::Replace)
    }

    fn new(name: &'static str, key: K, on_match: OnMatch) -> Self {
        Self {
            name,
            key,
            on_match,
            missing_key: MissingKey::Fail,
        }
    }

    /// Sets the rule for items without a key.
    #[must_use]
    pub fn missing_key(mut self, missing_key: MissingKey) -> Self {
        self.missing_key = missing_key;
        self
    }

    fn edit<T>(&self, existing: &[T], update: Vec<T>) -> Result<ListEdit<T>, Cause>
    where
        K: KeyOf<T>,
    {
        if update.is_empty() {
            return Ok(ListEdit::append(update));
        }
        let decision = self.decide(existing, &update)?;
        Ok(decision.into_edit(existing.len(), update.into_iter().map(Some)))
    }

    // Both slices share a lifetime so that their keys have one type.
    fn decide<'l, T>(&'l self, existing: &'l [T], update: &'l [T]) -> Result<KeyedDecision, Cause>
    where
        K: KeyOf<T>,
    {
        let key = |side, index, item| match self.key.key_of(item) {
            Ok(None) if self.missing_key == MissingKey::Fail => {
                Err(Cause::MissingKey { side, index })
            }
            Ok(key) => Ok(key),
            Err(failure) => Err(failure.at(side, index)),
        };
        let ops = update
            .iter()
            .enumerate()
            .map(|(index, item)| key(Side::Update, index, item).map(Op::Put));
        decide(
            ops,
            existing
                .iter()
                .enumerate()
                .map(|(index, item)| key(Side::Existing, index, item)),
            self.on_match,
        )
    }
}

impl<L: ItemList, K: KeyOf<L::Item>> Reducer<L> for KeyedList<K> {
    type Update = L;

    fn name(&self) -> &str {
        self.name
    }

    fn plan(&self, existing: &L, update: L) -> Result<Change<L>, Cause> {
        let edit = self.edit(existing.items()?, update.into_items()?)?;
        Ok(edit.into_change())
    }
}
