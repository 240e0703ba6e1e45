//! The decision that all keyed reducers share; they differ only in its settings. It knows keys and
//! positions, not items.

use std::collections::HashMap;
use std::hash::Hash;

use serde::Deserialize;

use crate::list::ListEdit;
use crate::reducer::Cause;

/// Rule for an item of the update whose key is in the list, or earlier in the update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnMatch {
    /// The item is skipped: the one that is there stays.
    Keep,
    /// The item replaces the one that is there, the last one if several have the key.
    Replace,
}

/// Rule for an item without a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum MissingKey {
    /// The item is new, whatever it holds. If it is in the list, it stays and matches nothing.
    New,
    /// The update fails.
    #[default]
    Fail,
}

/// One operation of an update.
pub(crate) enum Op<K> {
    /// Adds an item; without a key it is new.
    Put(Option<K>),
    /// Removes everything with this key.
    Remove(K),
    /// Removes everything before it.
    RemoveAll,
    /// Does nothing.
    Skip,
}

/// The planned outcome for the list, with the operations whose items get into it.
#[derive(Debug)]
pub(crate) struct KeyedDecision {
    clear: bool,
    remove: Vec<usize>,
    replace: Vec<(usize, usize)>,
    append: Vec<usize>,
}

/// A key of the update.
#[derive(Default)]
struct Slot {
    /// The places of its items in the list, or the one that it gets after the list's end.
    places: Vec<usize>,
    last: LastItem,
}

/// The item that is to stand in the last place of a key.
#[derive(Default)]
enum LastItem {
    /// The one that is there.
    #[default]
    Old,
    /// That of an operation.
    Of(usize),
    /// Nothing, as in all its other places.
    Removed,
}

/// Decides for `ops` against a list whose keys are `existing`, in order.
///
/// The update is indexed and the list only read. Memory is linear in the update, time in both.
pub(crate) fn decide<K: Hash + Eq>(
    ops: impl Iterator<Item = Result<Op<K>, Cause>>,
    existing: impl ExactSizeIterator<Item = Result<Option<K>, Cause>>,
    on_match: OnMatch,
) -> Result<KeyedDecision, Cause> {
    let (ops, length) = (ops.collect::<Result<Vec<_>, _>>()?, existing.len());
    // Operations before a removal of everything have no effect, so unknown removals among them do not fail.
    let clears = |op: &Op<K>| matches!(op, Op::RemoveAll);
    let start = ops.iter().rposition(clears).map_or(0, |at| at + 1);
    // Has room for all keys, since growing would hash every one again.
    let mut slots: HashMap<&K, Slot> = HashMap::with_capacity(ops.len() - start);
    for op in &ops[start..] {
        if let Op::Put(Some(key)) | Op::Remove(key) = op {
            slots.insert(key, Slot::default());
        }
    }
    if start == 0 {
        for (at, key) in existing.enumerate() {
            if let Some(slot) = key?.and_then(|key| slots.get_mut(&key)) {
                slot.places.push(at);
            }
        }
    }
    // The operation that has each item to append; `None` if the item is removed.
    let mut append = Vec::new();
    for (at, op) in ops.iter().enumerate().skip(start) {
        match op {
            Op::Put(None) => append.push(Some(at)),
            Op::Put(Some(key)) => {
                let slot = slots.entry(key).or_default();
                let is_new = slot.places.is_empty();
                if is_new {
                    slot.places.push(length + append.len());
                    append.push(None);
                }
                // An item that was removed and is put again takes its old place, as in LangGraph.
                if is_new || on_match == OnMatch::Replace {
                    slot.last = LastItem::Of(at);
                }
            }
            Op::Remove(key) => {
                let slot = slots.entry(key).or_default();
                if slot.places.is_empty() {
                    return Err(Cause::UnknownRemoval { index: at });
                }
                slot.last = LastItem::Removed;
            }
            Op::RemoveAll | Op::Skip => {}
        }
    }
    let (mut remove, mut replace) = (Vec::new(), Vec::new());
    for Slot { places, last } in slots.into_values() {
        match (last, places.last()) {
            (LastItem::Of(op), Some(at)) if *at < length => replace.push((*at, op)),
            (LastItem::Of(op), Some(at)) => append[at - length] = Some(op),
            (LastItem::Removed, _) => remove.extend(places.into_iter().filter(|at| *at < length)),
            (LastItem::Old | LastItem::Of(_), _) => {}
        }
    }
    remove.sort_unstable();
    Ok(KeyedDecision {
        clear: start > 0,
        remove,
        replace,
        append: append.into_iter().flatten().collect(),
    })
}

impl KeyedDecision {
    /// Creates the edit of a list of `existing` items. `items` has one entry for each operation;
    /// those of removals are dropped.
    pub(crate) fn into_edit<T>(
        self,
        existing: usize,
        items: impl Iterator<Item = Option<T>>,
    ) -> ListEdit<T> {
        let mut items: Vec<Option<T>> = items.collect();
        let replace = self.replace.into_iter();
        let replace = replace.filter_map(|(at, op)| Some((at, items[op].take()?)));
        ListEdit {
            replace: replace.collect(),
            remove: self.remove,
            drop_front: if self.clear { existing } else { 0 },
            append: self
                .append
                .into_iter()
                .filter_map(|op| items[op].take())
                .collect(),
        }
    }
}
