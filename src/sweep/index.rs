//! Index of stored keys, searched by the names that texts hold.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use crate::backend::Key;

use super::names::Names;
use super::paths::{each_name, stem};

/// Keys of some stores, and which of them are live. A text is searched for all of them at once, and
/// nothing of it is kept.
///
/// A key is found by a hash of its segments, from last to first, so that one walk along a path
/// looks up every key that the path may end in. If one of two keys with the same hash is live, both
/// count as live: keeping too much is safe.
pub(super) struct Index<'k> {
    state: RandomState,
    /// Sorted by hash.
    keys: Vec<Indexed<'k>>,
    /// Index of the first key with each hash.
    begins: HashMap<u64, usize>,
    /// Keys that became live and were not yet handed out by [`take_new`](Self::take_new).
    new: Vec<usize>,
}

struct Indexed<'k> {
    hash: u64,
    store: usize,
    key: &'k Key,
    is_live: bool,
}

impl<'k> Index<'k> {
    /// Builds the index from keys, each with the number of its store.
    pub(super) fn new(keys: impl IntoIterator<Item = (usize, &'k Key)>) -> Self {
        let state = RandomState::new();
        let indexed = |(store, key)| Indexed {
            hash: hash(&state, key),
            store,
            key,
            is_live: false,
        };
        let mut keys: Vec<_> = keys.into_iter().map(indexed).collect();
        keys.sort_unstable_by_key(|indexed| indexed.hash);
        let mut begins = HashMap::with_capacity(keys.len());
        for (at, indexed) in keys.iter().enumerate() {
            begins.entry(indexed.hash).or_insert(at);
        }
        Self {
            state,
            keys,
            begins,
            new: Vec::new(),
        }
    }

    /// Marks everything that `piece` may name as live.
    pub(super) fn name(&mut self, piece: &[u8]) {
        let state = self.state.clone();
        each_name(piece, |segments| {
            let mut path = Path::new(&state);
            for (at, segment) in segments.enumerate() {
                path.push(segment);
                if at > 0 {
                    self.set_live(path.hash());
                }
            }
        });
    }

    /// Marks `key` as live.
    pub(super) fn keep(&mut self, key: &Key) {
        self.set_live(hash(&self.state, key));
    }

    fn set_live(&mut self, hash: u64) {
        let Some(&begin) = self
            .begins
            .get(&hash)
            .filter(|begin| !self.keys[**begin].is_live)
        else {
            return;
        };
        for (at, indexed) in self
            .keys
            .iter_mut()
            .enumerate()
            .skip(begin)
            .take_while(|(_, key)| key.hash == hash)
        {
            indexed.is_live = true;
            self.new.push(at);
        }
    }

    pub(super) fn is_live(&self, key: &Key) -> bool {
        self.begins
            .get(&hash(&self.state, key))
            .is_some_and(|begin| self.keys[*begin].is_live)
    }

    /// Returns a live key that was not handed out before.
    pub(super) fn take_new(&mut self) -> Option<(usize, &'k Key)> {
        let Indexed { store, key, .. } = &self.keys[self.new.pop()?];
        Some((*store, *key))
    }
}

/// Hash of a path, fed from the last segment to the first.
struct Path(<RandomState as BuildHasher>::Hasher);

impl Path {
    fn new(state: &RandomState) -> Self {
        Self(state.build_hasher())
    }

    fn push(&mut self, segment: &[u8]) {
        self.0.write(segment);
        self.0.write_u8(b'/');
    }

    fn hash(&self) -> u64 {
        self.0.finish()
    }
}

fn hash(state: &RandomState, key: &Key) -> u64 {
    let (key, mut path) = (key.as_str().to_ascii_lowercase(), Path::new(state));
    for (at, segment) in key.rsplit('/').enumerate() {
        path.push(if at == 0 {
            stem(segment.as_bytes())
        } else {
            segment.as_bytes()
        });
    }
    path.hash()
}

/// Returns true if `names` may refer to `key`.
pub(super) fn are_named(names: &Names, key: &Key) -> bool {
    let mut index = Index::new([(0, key)]);
    names.iter().for_each(|piece| index.name(piece));
    index.is_live(key)
}

/// Returns true if `text` may name `key`.
pub(super) fn names_it(text: &str, key: &Key) -> bool {
    let mut names = Names::default();
    names.read(text);
    are_named(&names, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w1_live_names_are_given_out_once() {
        let keys = ["s1/trunc/a", "s1/trunc/A", "s2/trunc/a", "trunc/b"]
            .map(|path| Key::new(path).unwrap());
        let mut index = Index::new(keys.iter().enumerate());
        let new = |index: &mut Index<'_>| {
            let mut new: Vec<_> = std::iter::from_fn(|| index.take_new())
                .map(|(store, _)| store)
                .collect();
            new.sort_unstable();
            new
        };
        index.name(b"x/s1/trunc/a");
        assert_eq!(
            new(&mut index),
            [0, 1],
            "on some file systems they are the same"
        );
        index.name(b"x/s1/trunc/a/trunc/b");
        assert_eq!(new(&mut index), [3]);
        index.keep(&keys[2]);
        assert_eq!(new(&mut index), [2]);
        assert!(keys.iter().all(|key| index.is_live(key)));
        assert!(!index.is_live(&Key::new("trunc/c").unwrap()));
    }
}
