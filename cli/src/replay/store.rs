//! A store whose locations are all 40 bytes long, so that hints cost the same whatever a transcript's ids look like.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use offcut::backend::{Backend, BackendError, Entry, Key, Location, Memory, Page, Put, Writer};
use sha2::{Digest, Sha256};

/// What stands before the digest, 14 bytes of 40.
const FOLDER: &str = ".offcut/store/";
/// As many characters as the ids of providers have, or so: a name of words would cost fewer tokens than theirs.
const NAME: usize = 26;

/// Keeps content in memory, under names that are digests of the keys.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    content: Memory,
    named: Mutex<HashMap<Location, Key>>,
}

#[async_trait]
impl Backend for Scratch {
    fn locate(&self, key: &Key) -> Location {
        const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
        let digest = Sha256::digest(key.as_str());
        let name = digest.iter().take(NAME).map(|byte| char::from(LETTERS[usize::from(byte % 32)]));
        let location = Location::new(FOLDER.chars().chain(name).collect::<String>());
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        named.entry(location.clone()).or_insert_with(|| key.clone());
        location
    }

    fn resolve(&self, location: &str) -> Option<Key> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner).get(&Location::new(location)).cloned()
    }

    fn identity(&self) -> Option<usize> {
        self.content.identity()
    }

    async fn put(&self, key: &Key, content: Bytes) -> Result<Put, BackendError> {
        self.content.put(key, content).await
    }

    async fn writer(&self) -> Result<Box<dyn Writer>, BackendError> {
        self.content.writer().await
    }

    async fn read(&self, key: &Key, range: Range<u64>) -> Result<Page, BackendError> {
        self.content.read(key, range).await
    }

    fn list(&self) -> BoxStream<'_, Result<Entry, BackendError>> {
        self.content.list()
    }

    /// It is gone when the replay ends.
    fn can_be_swept(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_have_40_bytes_and_lead_back() {
        let store = Scratch::default();
        for key in ["trunc/a", "clear/a", "clear/toolu_01A09q90qw90lq917835lq9"].map(|key| Key::new(key).unwrap()) {
            let location = store.locate(&key);
            assert_eq!(location.as_str().len(), 40);
            assert_eq!(store.resolve(location.as_str()), Some(key));
        }
        assert_eq!(store.resolve(".offcut/store/abcdefghijklmnopqrstuvwxyz"), None);
    }
}
