//! Identities of texts, results and calls: digests that are the same in every process, and that nobody can
//! make collide.
//!
//! Token counts are remembered by fingerprint, what was decided about a result or a call by its [`SlotId`].

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A fingerprint of some bytes: half of their SHA-256, and their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint {
    digest: u128,
    bytes: u64,
}

impl Fingerprint {
    /// The fingerprint of `bytes`.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self::new(Sha256::new_with_prefix(bytes), bytes.len() as u64)
    }

    fn new(sha256: Sha256, bytes: u64) -> Self {
        let digest: [u8; 32] = sha256.finalize().into();
        let half = digest.iter().take(16);
        let digest = half.fold(0, |number, byte| number << 8 | u128::from(*byte));
        Self { digest, bytes }
    }

    /// Number of bytes that were digested.
    pub(crate) fn bytes(self) -> u64 {
        self.bytes
    }

    pub(crate) fn digest(self) -> u128 {
        self.digest
    }
}

/// An unfinished [`Fingerprint`] of several fields, each set apart from the next by its kind and length. No text
/// has the same one.
#[derive(Clone, Debug)]
pub(crate) struct FieldPrint {
    sha256: Sha256,
    bytes: u64,
}

impl FieldPrint {
    pub(crate) fn new(kind: u8, bytes: &[u8]) -> Self {
        let empty = Self {
            // No text begins with this byte.
            sha256: Sha256::new_with_prefix([0xff]),
            bytes: 0,
        };
        empty.with(kind, bytes)
    }

    /// Adds bytes of a `kind`.
    pub(crate) fn with(mut self, kind: u8, bytes: &[u8]) -> Self {
        self.add(kind, bytes);
        self
    }

    /// Adds bytes of a `kind`.
    pub(crate) fn add(&mut self, kind: u8, bytes: &[u8]) {
        self.begin(kind, bytes.len() as u64);
        self.sha256.update(bytes);
    }

    /// Adds something of a `kind` by its own fingerprint.
    pub(crate) fn add_print(&mut self, kind: u8, print: Fingerprint) {
        self.begin(kind, print.bytes);
        self.sha256.update(print.digest.to_be_bytes());
    }

    fn begin(&mut self, kind: u8, length: u64) {
        self.sha256.update([kind]);
        self.sha256.update(length.to_be_bytes());
        self.bytes += length;
    }

    /// The fingerprint.
    pub(crate) fn finish(self) -> Fingerprint {
        Fingerprint::new(self.sha256, self.bytes)
    }
}

/// The identity of a result or of a call's arguments: a digest of id, tool and content, and its
/// number, from 0, among those that have the same digest. Nothing else in the history counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct SlotId {
    pub(crate) digest: u128,
    pub(crate) nth: u32,
}

/// The digest as 32 hexadecimal digits, then the number.
impl From<SlotId> for String {
    fn from(SlotId { digest, nth }: SlotId) -> Self {
        format!("{digest:032x}-{nth}")
    }
}

impl TryFrom<String> for SlotId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let read = text.split_once('-').and_then(|(digest, nth)| {
            let digest = u128::from_str_radix(digest, 16).ok()?;
            let nth = nth.parse().ok()?;
            Some(Self { digest, nth })
        });
        // Each identity has one spelling.
        let read = read.filter(|read| String::from(*read) == text);
        read.ok_or("not the identity of a slot")
    }
}

/// Numbers the slots of a history, in order.
#[derive(Debug, Default)]
pub(crate) struct SlotIds(HashMap<u128, u32>);

impl SlotIds {
    /// The identity of the next slot, which has this `digest`.
    pub(crate) fn next(&mut self, digest: u128) -> SlotId {
        let seen = self.0.entry(digest).or_default();
        let nth = *seen;
        *seen = nth.saturating_add(1);
        SlotId { digest, nth }
    }
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
        let mut nested = FieldPrint::new(b'r', b"a");
        nested.add_print(b't', Fingerprint::of(b"c"));
        let prints = [
            of(&[(b't', b"c")]),
            of(&[(b'j', b"c")]),
            of(&[(b't', b"c"), (b't', b"")]),
            of(&[(b't', b""), (b't', b"c")]),
            of(&[]),
            FieldPrint::new(b'c', b"a").with(b't', b"c").finish(),
            FieldPrint::new(b'r', b"ac").with(b't', b"").finish(),
            nested.finish(),
            Fingerprint::of(b"ra"),
        ];
        assert_eq!(HashSet::from(prints).len(), prints.len());
    }

    #[test]
    fn a_slot_has_one_spelling() {
        let mut ids = SlotIds::default();
        let first = ids.next(7);
        assert_eq!(String::from(first), format!("{}7-0", "0".repeat(31)));
        for id in [first, ids.next(7), ids.next(u128::MAX)] {
            assert_eq!(SlotId::try_from(String::from(id)), Ok(id));
        }
        for text in [
            "",
            "7-0",
            "x-0",
            &format!("{}7-00", "0".repeat(31)),
            &format!("{}7", "0".repeat(31)),
        ] {
            assert!(SlotId::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
