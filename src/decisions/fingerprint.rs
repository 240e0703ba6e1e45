//! Fingerprints of bytes: short keyed hashes, valid within the process, that nobody outside can
//! make collide.
//!
//! Token counts are remembered by fingerprint, and a pass recognizes the content of a slot by it. The hash is
//! the standard library's, which withstands chosen input. Its key is random and new for each reduction, and
//! nothing that depends on it leaves the process.

use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash, Hasher, RandomState};
use std::io;

/// A fingerprint of some bytes: their length and their keyed hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    hash: u64,
    len: u64,
}

impl Fingerprint {
    /// Number of bytes that were hashed.
    #[must_use]
    pub(crate) fn len(self) -> u64 {
        self.len
    }
}

/// The hash can be used directly, since it is as good as random.
impl Hash for Fingerprint {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// The hasher of maps whose keys are fingerprints.
pub(crate) type PassThroughHash = BuildHasherDefault<PassThroughHasher>;

/// A hasher that uses the hash in a fingerprint unchanged.
#[derive(Debug, Default)]
pub(crate) struct PassThroughHasher(u64);

impl Hasher for PassThroughHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    #[inline]
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// The key of fingerprints. Only those made with the same key can be compared.
pub(crate) struct FingerprintKey(RandomState);

/// Shows nothing of the key.
impl fmt::Debug for FingerprintKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FingerprintKey").finish_non_exhaustive()
    }
}

impl FingerprintKey {
    /// Makes a new key from the operating system's randomness.
    #[must_use]
    pub(crate) fn random() -> Self {
        Self(RandomState::new())
    }

    /// The fingerprint of `bytes`.
    pub(crate) fn of(&self, bytes: &[u8]) -> Fingerprint {
        let mut stream = self.stream();
        stream.write(bytes);
        stream.finish()
    }

    /// Starts a fingerprint of bytes that arrive in pieces. It does not depend on how they are cut,
    /// and equals that of [`of`](Self::of).
    pub(crate) fn stream(&self) -> Stream {
        Stream {
            hasher: self.0.build_hasher(),
            len: 0,
        }
    }

    /// Starts a fingerprint of several things together.
    pub(crate) fn record(&self) -> Record {
        Record {
            outer: self.0.build_hasher(),
            len: 0,
        }
    }
}

/// An unfinished [`Fingerprint`] of bytes that arrive in pieces. Does not allocate.
pub(crate) struct Stream {
    hasher: DefaultHasher,
    len: u64,
}

/// Shows nothing of the key.
impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").finish_non_exhaustive()
    }
}

impl Stream {
    /// Appends bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.len += bytes.len() as u64;
        self.hasher.write(bytes);
    }

    /// The fingerprint.
    pub(crate) fn finish(mut self) -> Fingerprint {
        self.hasher.write_u64(self.len);
        Fingerprint {
            hash: self.hasher.finish(),
            len: self.len,
        }
    }
}

/// Lets serializers write to it.
impl io::Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Stream::write(self, bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An unfinished [`Fingerprint`] of several short things. It is never compared with the fingerprint
/// of a text.
pub(crate) struct Record {
    outer: DefaultHasher,
    len: u64,
}

/// Shows nothing of the key.
impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").finish_non_exhaustive()
    }
}

impl Record {
    /// Adds bytes of a `kind`, set apart from the fields before and after.
    #[inline]
    pub(crate) fn field(&mut self, kind: u8, bytes: &[u8]) {
        self.outer.write_u8(kind);
        self.outer.write_u64(bytes.len() as u64);
        self.outer.write(bytes);
        self.len += bytes.len() as u64;
    }

    /// Adds something of a `kind` by its own fingerprint.
    #[inline]
    pub(crate) fn known(&mut self, kind: u8, print: Fingerprint) {
        self.outer.write_u8(kind);
        self.outer.write_u64(print.len);
        self.outer.write_u64(print.hash);
        self.len += print.len;
    }

    /// The fingerprint.
    #[inline]
    pub(crate) fn finish(self) -> Fingerprint {
        Fingerprint {
            hash: self.outer.finish(),
            len: self.len,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::{any, proptest};

    use super::*;

    proptest! {
        #[test]
        fn chunk_boundaries_do_not_change_the_fingerprint(
            bytes in proptest::collection::vec(any::<u8>(), 0..5_000),
            cuts in proptest::collection::vec(0_usize..5_000, 0..8),
        ) {
            let secret = FingerprintKey::random();
            let mut stream = secret.stream();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            for piece in cuts.windows(2) {
                stream.write(&bytes[piece[0]..piece[1]]);
            }
            assert_eq!(stream.finish(), secret.of(&bytes));
        }
    }

    #[test]
    fn every_byte_and_every_length_counts() {
        let secret = FingerprintKey::random();
        for len in [0, 1, 7, 8, 9, 100, 3_000] {
            let bytes = vec![0; len];
            let mut seen = HashSet::from([secret.of(&bytes)]);
            for at in 0..len {
                let mut changed = bytes.clone();
                changed[at] = 1;
                assert!(
                    seen.insert(secret.of(&changed)),
                    "byte {at} of {len} does not count"
                );
            }
            assert_ne!(secret.of(&bytes), secret.of(&vec![0; len + 1]));
        }
    }

    #[test]
    fn every_key_gives_different_fingerprints() {
        for len in [10, 100, 3_000] {
            let bytes = vec![7; len];
            assert_ne!(
                FingerprintKey::random().of(&bytes),
                FingerprintKey::random().of(&bytes)
            );
        }
    }

    #[test]
    fn neighbouring_fields_stay_distinct() {
        let secret = FingerprintKey::random();
        let two = |a: &[u8], b: &[u8]| {
            let mut record = secret.record();
            record.field(b't', a);
            record.field(b't', b);
            record.finish()
        };
        assert_ne!(two(b"ab", b"c"), two(b"a", b"bc"));
        assert_ne!(two(b"", b"a"), two(b"a", b""));
    }
}
