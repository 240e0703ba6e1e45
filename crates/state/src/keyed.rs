//! The decision that all keyed reducers share; they differ only in its settings. It knows keys and
//! positions, not items.

use std::collections::HashMap;
use std::hash::Hash;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MissingKey {
    /// The item is new, whatever it holds. If it is in the list, it stays and matches nothing.
    New,
    /// The update fails.
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
}

/// The planned outcome for the list and for each operation.
#[derive(Debug)]
pub(crate) struct KeyedDecision {
    clear: bool,
    remove: Vec<usize>,
    fates: Vec<Fate>,
    appended: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Drop,
    Replace(usize),
    /// The n-th of the appended items.
    Append(usize),
}

/// Facts known about one key of the update.
#[derive(Default)]
struct Slot {
    place: Place,
    /// True if the list's items with this key are removed.
    is_removed: bool,
    /// The operation whose item takes its place in the list.
    winner: Option<usize>,
    /// Entries before this one are removed.
    dead_before: usize,
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

/// An item to append.
struct Entry {
    slot: Option<usize>,
    winner: usize,
}

/// An operation, with the slot of its key.
enum Step {
    Put(Option<usize>),
    Remove(usize),
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
    let len = ops.len();
    // Reserves room for all keys, since growing would rehash every one.
    let mut index: HashMap<K, usize> = HashMap::with_capacity(len);
    let mut slots: Vec<Slot> = Vec::new();
    let mut steps: Vec<Step> = Vec::with_capacity(len);
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
            Op::Put(key) => steps.push(Step::Put(key.map(slot_of))),
            Op::Remove(key) => {
                steps.push(Step::Remove(slot_of(key)));
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

    let mut entries: Vec<Entry> = Vec::new();
    for (step, at) in steps.into_iter().zip(start..) {
        match step {
            Step::Put(Some(slot)) => put(&mut slots[slot], slot, at, &mut entries, rules),
            Step::Put(None) => entries.push(Entry {
                slot: None,
                winner: at,
            }),
            Step::Remove(slot) => {
                let slot = &mut slots[slot];
                if matches!(slot.place, Place::Nowhere) && rules.unknown == UnknownRemoval::Fail {
                    return Err(Cause::UnknownRemoval { index: at });
                }
                slot.is_removed = true;
                slot.dead_before = entries.len();
            }
        }
    }

    let mut fates = vec![Fate::Drop; len];
    for slot in &slots {
        if let (Place::Existing(at), Some(winner), false) =
            (slot.place, slot.winner, slot.is_removed)
        {
            fates[winner] = Fate::Replace(at);
        }
    }
    let mut appended = 0;
    for (rank, entry) in entries.iter().enumerate() {
        if entry
            .slot
            .is_none_or(|slot| slots[slot].dead_before <= rank)
        {
            fates[entry.winner] = Fate::Append(appended);
            appended += 1;
        }
    }
    let remove = matches
        .into_iter()
        .filter_map(|(at, slot)| slots[slot].is_removed.then_some(at))
        .collect();
    Ok(KeyedDecision {
        clear,
        remove,
        fates,
        appended,
    })
}

fn put(slot: &mut Slot, index: usize, at: usize, entries: &mut Vec<Entry>, rules: Rules) {
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
            if replaces || slot.dead_before > rank {
                entries[rank].winner = at;
            }
            slot.dead_before = 0;
        }
        Place::Nowhere => {
            slot.place = Place::Entry(entries.len());
            entries.push(Entry {
                slot: Some(index),
                winner: at,
            });
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
        let mut replace = Vec::new();
        let mut append: Vec<Option<T>> = Vec::new();
        append.resize_with(self.appended, || None);
        for (item, fate) in items.zip(self.fates) {
            match fate {
                Fate::Drop => {}
                Fate::Replace(at) => replace.extend(item.map(|item| (at, item))),
                Fate::Append(rank) => append[rank] = item,
            }
        }
        let drop_front = if self.clear { existing } else { 0 };
        ListEdit {
            replace,
            remove: self.remove,
            drop_front,
            append: append.into_iter().flatten().collect(),
        }
    }
}
