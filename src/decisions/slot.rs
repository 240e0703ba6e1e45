//! Identities of results and of calls' arguments that are the same in every process.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// The identity of a result or of a call's arguments: a digest of id, tool and content, and its
/// number among those that have the same digest. Nothing else in the history counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlotId {
    digest: u128,
    nth: u32,
}

/// Writes the digest as 32 hexadecimal digits, then the number.
impl fmt::Display for SlotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}-{}", self.digest, self.nth)
    }
}

/// A text that is not the identity of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotASlotId;

impl FromStr for SlotId {
    type Err = NotASlotId;

    fn from_str(text: &str) -> Result<Self, NotASlotId> {
        let (digest, nth) = text.split_once('-').ok_or(NotASlotId)?;
        let read = Self {
            digest: u128::from_str_radix(digest, 16).map_err(|_| NotASlotId)?,
            nth: nth.parse().map_err(|_| NotASlotId)?,
        };
        // Each identity has one spelling.
        (read.to_string() == text).then_some(read).ok_or(NotASlotId)
    }
}

/// Gives identities to the slots of a history, in order.
#[derive(Debug, Default)]
pub struct SlotIds {
    /// Number of slots so far with each digest.
    seen: HashMap<u128, u32>,
}

impl SlotIds {
    /// Begins the digest of a result.
    #[must_use]
    pub fn result(id: &str, tool: &str) -> SlotDigest {
        SlotDigest::new(b'r', id, tool)
    }

    /// Begins the digest of a call's arguments.
    #[must_use]
    pub fn arguments(id: &str, tool: &str) -> SlotDigest {
        SlotDigest::new(b'c', id, tool)
    }

    /// The identity of the next slot, which has this `digest`.
    pub fn next(&mut self, digest: u128) -> SlotId {
        let seen = self.seen.entry(digest).or_default();
        let nth = *seen;
        *seen = nth.saturating_add(1);
        SlotId { digest, nth }
    }
}

/// An unfinished digest of a slot: several fields, each set apart from the next by its kind and length.
#[derive(Clone, Debug)]
pub struct SlotDigest(Sha256);

impl SlotDigest {
    fn new(kind: u8, id: &str, tool: &str) -> Self {
        let digest = Self(Sha256::new());
        digest.with(kind, id.as_bytes()).with(b'n', tool.as_bytes())
    }

    /// Adds bytes of a `kind`.
    #[must_use]
    pub fn with(mut self, kind: u8, bytes: &[u8]) -> Self {
        self.0.update([kind]);
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
        self
    }

    /// The digest.
    #[must_use]
    pub fn finish(self) -> u128 {
        let digest: [u8; 32] = self.0.finalize().into();
        let half = digest.iter().take(16);
        half.fold(0, |number, byte| number << 8 | u128::from(*byte))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn everything_about_a_slot_counts() {
        let digests = [
            SlotIds::result("a", "b").with(b't', b"c"),
            SlotIds::arguments("a", "b").with(b't', b"c"),
            SlotIds::result("ab", "").with(b't', b"c"),
            SlotIds::result("a", "bc").with(b't', b""),
            SlotIds::result("a", "b").with(b'j', b"c"),
            SlotIds::result("a", "b").with(b't', b"c").with(b't', b""),
        ];
        let distinct: HashSet<u128> = digests.iter().cloned().map(SlotDigest::finish).collect();
        assert_eq!(distinct.len(), digests.len());
    }

    #[test]
    fn a_slot_has_one_spelling() {
        let mut ids = SlotIds::default();
        let first = ids.next(7);
        assert_eq!(first.to_string(), format!("{}7-0", "0".repeat(31)));
        for id in [first, ids.next(7), ids.next(u128::MAX)] {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        for text in [
            "",
            "7-0",
            "x-0",
            &format!("{}7-00", "0".repeat(31)),
            &format!("{}7", "0".repeat(31)),
        ] {
            assert_eq!(text.parse::<SlotId>(), Err(NotASlotId), "{text}");
        }
    }
}
