//! Index of stored keys, searched by the names that texts hold.

use std::collections::{HashMap, HashSet};

use crate::backend::Key;

use super::names::stem;

/// Keys of all stores, and which of their conversations are live. A text is searched for all keys at
/// once, and nothing of it is kept.
#[derive(Default)]
pub(super) struct Index<'k> {
    /// The conversations of keys, by the key in lower case and without punctuation at its end.
    keys: HashMap<Vec<u8>, Vec<&'k str>>,
    live: HashSet<&'k str>,
    /// Conversations that became live and were not yet handed out by [`take_new`](Self::take_new).
    new: Vec<&'k str>,
}

impl<'k> Index<'k> {
    /// Builds the index from keys, each with its conversation.
    pub(super) fn new(keys: impl IntoIterator<Item = (&'k str, &'k Key)>) -> Self {
        let mut index = Self::default();
        for (conversation, key) in keys {
            let key = key.as_str().to_ascii_lowercase().into_bytes();
            let name = key.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            let end = key.len() - name.len() + stem(name).len();
            let conversations = index.keys.entry(key[..end].to_vec()).or_default();
            conversations.push(conversation);
        }
        index
    }

    /// Marks every conversation as live that has a key in which `path`, a name that a
    /// [`NameScanner`](super::names::NameScanner) has found, ends.
    pub(super) fn name(&mut self, path: &[u8]) {
        let slashes = (0..path.len()).filter(|at| path[*at] == b'/');
        for begin in slashes.map(|at| at + 1).chain([0]) {
            let conversations = self.keys.get(&path[begin..]).cloned();
            for conversation in conversations.unwrap_or_default() {
                self.keep(conversation);
            }
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

#[cfg(test)]
pub(super) mod tests {
    use super::super::names::Names;
    use super::*;

    /// Returns true if `names` may refer to `key`.
    pub(in crate::sweep) fn are_named(names: &Names, key: &Key) -> bool {
        let mut index = Index::new([("", key)]);
        names.iter().for_each(|name| index.name(name));
        index.is_live("")
    }

    /// Returns true if `text` may name `key`.
    pub(in crate::sweep) fn names_it(text: &str, key: &Key) -> bool {
        let mut names = Names::default();
        names.read(text);
        are_named(&names, key)
    }

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
