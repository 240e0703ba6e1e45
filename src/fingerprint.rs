//! Identities of texts, results and calls: digests that are the same in every process, and that nobody can
//! make collide.
//!
//! Token counts are remembered by fingerprint, what was decided about a result or a call by its [`SlotId`].

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A fingerprint of some bytes: half of their SHA-256.
pub(crate) type Fingerprint = u128;

/// The fingerprint of `bytes`.
pub(crate) fn fingerprint(bytes: &[u8]) -> Fingerprint {
    half_of(Sha256::new_with_prefix(bytes))
}

fn half_of(sha256: Sha256) -> Fingerprint {
    let digest: [u8; 32] = sha256.finalize().into();
    let half = digest.iter().take(16);
    half.fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// An unfinished [`Fingerprint`] of several fields, each set apart from the next by its kind and length. No text
/// has the same one.
#[derive(Clone, Debug)]
pub(crate) struct FieldPrint(Sha256);

impl FieldPrint {
    /// One that begins with bytes of a `kind`.
    pub(crate) fn new(kind: u8, bytes: &[u8]) -> Self {
        // No text begins with this byte.
        let mut print = Self(Sha256::new_with_prefix([0xff]));
        print.add(kind, bytes);
        print
    }

    /// Adds bytes of a `kind`.
    pub(crate) fn add(&mut self, kind: u8, bytes: &[u8]) {
        self.put(kind, bytes.len() as u64, bytes);
    }

    /// Adds `length` bytes of a `kind` by their own fingerprint.
    pub(crate) fn add_print(&mut self, kind: u8, length: u64, print: Fingerprint) {
        self.put(kind, length, &print.to_be_bytes());
    }

    fn put(&mut self, kind: u8, length: u64, bytes: &[u8]) {
        self.0.update([kind]);
        self.0.update(length.to_be_bytes());
        self.0.update(bytes);
    }

    /// The fingerprint.
    pub(crate) fn finish(self) -> Fingerprint {
        half_of(self.0)
    }
}

/// The identity of a result or of a call's arguments: a digest of id, tool and content, and its
/// number, from 0, among those that have the same digest. Nothing else in the history counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SlotId {
    pub(crate) digest: u128,
    pub(crate) nth: u32,
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn everything_about_a_slot_counts() {
        let of = |fields: &[(u8, &[u8])]| {
            let mut print = FieldPrint::new(b'r', b"a");
            for (kind, bytes) in fields {
                print.add(*kind, bytes);
            }
            print.finish()
        };
        let of_begun = |mut print: FieldPrint, bytes: &[u8]| {
            print.add(b't', bytes);
            print.finish()
        };
        let mut nested = FieldPrint::new(b'r', b"a");
        nested.add_print(b't', 1, fingerprint(b"c"));
        let prints = [
            of(&[(b't', b"c")]),
            of(&[(b'j', b"c")]),
            of(&[(b't', b"c"), (b't', b"")]),
            of(&[(b't', b""), (b't', b"c")]),
            of(&[]),
            of_begun(FieldPrint::new(b'c', b"a"), b"c"),
            of_begun(FieldPrint::new(b'r', b"ac"), b""),
            nested.finish(),
            fingerprint(b"ra"),
        ];
        assert_eq!(HashSet::from(prints).len(), prints.len());
    }
}
