//! The decision that all keyed reducers share; they differ only in its settings. It knows keys and
//! positions, not items.

use std::collections::HashMap;
use std::hash::Hash;

use serde::Deserialize;

use crate::list::ListEdit;
use crate::reducer::Cause;

/// Rule for an item of the update whose key is in the list, or earlier in the update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnMatch {
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

/// Rule for removals of messages that are not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UnknownRemoval {
    /// The update fails.
    Fail,
    /// The removal does nothing.
    Ignore,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) on_match: OnMatch,
    pub(crate) unknown: UnknownRemoval,
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

/// Facts known about one key of the update.
#[derive(Default)]
struct Slot {
    place: Place,
    /// True if the list's items with this key are removed.
    is_removed: bool,
    /// The operation whose item takes its place in the list.
    winner: Option<usize>,
}

#[derive(Clone, Copy, Default)]
enum Place {
    #[default]
    Nowhere,
    /// The last item of the list with this key.
    Existing(usize),
    /// Among the items to append.
    Entry(usize),
}

/// Decides for `ops` against a list whose keys are `existing`, in order.
///
/// The update is indexed and the list only read. Memory is linear in the update, time in both; each
/// key is hashed once.
pub(crate) fn decide<K: Hash + Eq>(
    ops: impl ExactSizeIterator<Item = Result<Op<K>, Cause>>,
    existing: impl Iterator<Item = Result<Option<K>, Cause>>,
    rules: Rules,
) -> Result<KeyedDecision, Cause> {
    // Reserves room for all keys, since growing would rehash every one.
    let mut index: HashMap<K, usize> = HashMap::with_capacity(ops.len());
    let mut slots: Vec<Slot> = Vec::new();
    // The operations, with the slots of their keys.
    let mut steps: Vec<Op<usize>> = Vec::with_capacity(ops.len());
    let (mut start, mut clear, mut has_removals) = (0, false, false);
    for (at, op) in ops.enumerate() {
        let mut slot_of = |key| {
            let slot = *index.entry(key).or_insert(slots.len());
            if slot == slots.len() {
                slots.push(Slot::default());
            }
            slot
        };
        match op? {
            Op::Put(key) => steps.push(Op::Put(key.map(slot_of))),
            Op::Remove(key) => {
                steps.push(Op::Remove(slot_of(key)));
                has_removals = true;
            }
            Op::RemoveAll => {
                // Earlier operations have no effect, and unknown removals among them are not
                // errors: everything before this one is removed anyway.
                index.clear();
                slots.clear();
                steps.clear();
                (start, clear) = (at + 1, true);
            }
            Op::Skip => steps.push(Op::Skip),
        }
    }

    let mut matches = Vec::new();
    if !clear {
        for (at, key) in existing.enumerate() {
            if let Some(&slot) = key?.as_ref().and_then(|key| index.get(key)) {
                slots[slot].place = Place::Existing(at);
                if has_removals {
                    matches.push((at, slot));
                }
            }
        }
    }
    drop(index);

    // The operation that has each item to append; `None` if the item is removed.
    let mut entries: Vec<Option<usize>> = Vec::new();
    for (step, at) in steps.into_iter().zip(start..) {
        match step {
            Op::Put(Some(slot)) => put(&mut slots[slot], at, &mut entries, rules),
            Op::Put(None) => entries.push(Some(at)),
            Op::Remove(slot) => {
                let slot = &mut slots[slot];
                match slot.place {
                    Place::Nowhere if rules.unknown == UnknownRemoval::Fail => {
                        return Err(Cause::UnknownRemoval { index: at });
                    }
                    Place::Entry(rank) => entries[rank] = None,
                    Place::Nowhere | Place::Existing(_) => slot.is_removed = true,
                }
            }
            Op::RemoveAll | Op::Skip => {}
        }
    }

    let replaced = |slot: &Slot| match (slot.place, slot.winner) {
        (Place::Existing(at), Some(winner)) if !slot.is_removed => Some((at, winner)),
        _ => None,
    };
    let removed = |(at, slot): (usize, usize)| slots[slot].is_removed.then_some(at);
    Ok(KeyedDecision {
        clear,
        remove: matches.into_iter().filter_map(removed).collect(),
        replace: slots.iter().filter_map(replaced).collect(),
        append: entries.into_iter().flatten().collect(),
    })
}

fn put(slot: &mut Slot, at: usize, entries: &mut Vec<Option<usize>>, rules: Rules) {
    let replaces = rules.on_match == OnMatch::Replace;
    match slot.place {
        Place::Existing(_) => {
            // An item that was removed and is put again takes its old place, as in LangGraph.
            if replaces || slot.is_removed {
                slot.winner = Some(at);
            }
            slot.is_removed = false;
        }
        Place::Entry(rank) => {
            if replaces || entries[rank].is_none() {
                entries[rank] = Some(at);
            }
        }
        Place::Nowhere => {
            slot.place = Place::Entry(entries.len());
            entries.push(Some(at));
        }
    }
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
