//! Index of stored keys, searched by the names that texts hold.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use crate::backend::Key;

use super::names::Names;
use super::paths::{each_name, stem};

/// Keys of all stores, and which of their conversations are live. A text is searched for all keys at
/// once, and nothing of it is kept.
///
/// A key is found by a hash of its segments, from last to first, so that one walk along a path
/// looks up every key that the path may end in. If a name has the hash of two keys, both of their
/// conversations count as live: keeping too much is safe.
pub(super) struct Index<'k> {
    state: RandomState,
    /// The hash of each key with its conversation, sorted.
    keys: Vec<(u64, &'k str)>,
    live: HashSet<&'k str>,
    /// Conversations that became live and were not yet handed out by [`take_new`](Self::take_new).
    new: Vec<&'k str>,
}

impl<'k> Index<'k> {
    /// Builds the index from keys, each with its conversation.
    pub(super) fn new(keys: impl IntoIterator<Item = (&'k str, &'k Key)>) -> Self {
        let state = RandomState::new();
        let keys = keys.into_iter();
        let mut keys: Vec<_> = keys
            .map(|(conversation, key)| (hash(&state, key), conversation))
            .collect();
        keys.sort_unstable();
        Self {
            state,
            keys,
            live: HashSet::new(),
            new: Vec::new(),
        }
    }

    /// Marks every conversation of which `piece` may name something as live.
    pub(super) fn name(&mut self, piece: &[u8]) {
        let state = self.state.clone();
        each_name(piece, |segments| {
            let mut path = Path::new(&state);
            for (at, segment) in segments.enumerate() {
                path.push(segment);
                if at > 0 {
                    self.find(path.hash());
                }
            }
        });
    }

    fn find(&mut self, hash: u64) {
        let first = self.keys.partition_point(|(other, _)| *other < hash);
        for at in first..self.keys.len() {
            let (other, conversation) = self.keys[at];
            if other != hash {
                break;
            }
            self.keep(conversation);
        }
    }

    /// Marks a conversation as live.
    pub(super) fn keep(&mut self, conversation: &'k str) {
        if self.live.insert(conversation) {
            self.new.push(conversation);
        }
    }

    pub(super) fn is_live(&self, conversation: &str) -> bool {
        self.live.contains(conversation)
    }

    /// Returns a live conversation that was not handed out before.
    pub(super) fn take_new(&mut self) -> Option<&'k str> {
        self.new.pop()
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
    let mut index = Index::new([("", key)]);
    names.iter().for_each(|piece| index.name(piece));
    index.is_live("")
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

    fn new<'k>(index: &mut Index<'k>) -> Vec<&'k str> {
        let mut new: Vec<_> = std::iter::from_fn(|| index.take_new()).collect();
        new.sort_unstable();
        new
    }

    #[test]
    fn w3_live_conversations_are_given_out_once() {
        let keys = ["s1/trunc/a", "S1/trunc/A", "s2/trunc/a", "trunc/b"]
            .map(|path| Key::new(path).unwrap());
        let of = |key| Key::conversation(key).unwrap();
        let mut index = Index::new(keys.iter().map(|key| (of(key), key)));
        index.name(b"x/s1/trunc/a");
        assert_eq!(
            new(&mut index),
            ["S1/", "s1/"],
            "on some file systems they are the same"
        );
        index.name(b"x/s1/trunc/a/trunc/b");
        assert_eq!(new(&mut index), [""]);
        index.keep("s2/");
        assert_eq!(new(&mut index), ["s2/"]);
        assert!(keys.iter().all(|key| index.is_live(of(key))));
        assert!(!index.is_live("s3/"));
    }
}
