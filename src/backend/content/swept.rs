//! Keeps the meaning of a name while its content is swept.
//!
//! A sweep first moves content from its key `K` to another, `S(K)`, and removes it from there much
//! later. One rule keeps everything that hints name readable, whatever agents store at the same
//! moment: **where `S(K)` exists, it is what `K` means.** So reading and storing look at `K` first
//! and at `S(K)` after it: content always reaches `S(K)` before it leaves `K`. Content stored at
//! `K` in spite of that is unused and harmless.
//!
//! The library puts, names and reads stored content here and nowhere else.

use std::ops::Range;

use bytes::Bytes;

use super::blocks::BLOCK;
use crate::backend::error::found;
use crate::backend::range::indexes_within;
use crate::backend::{Backend, BackendError, Key, PutOutcome, ReadRange, Writer};

/// The way in which a writer's content gets its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NamedBy {
    /// By [`Writer::finish`].
    Finish,
    /// By [`Writer::finish_in_spool`].
    FinishInSpool,
}

/// Stores `content` as the meaning of `key`.
pub(crate) async fn put(
    store: &dyn Backend,
    key: &Key,
    content: Bytes,
) -> Result<PutOutcome, BackendError> {
    let Some(swept) = key.swept().filter(|_| store.can_be_swept()) else {
        return store.put(key, content).await;
    };
    let (put, is_swept) = store.put_then_find(key, content.clone(), &swept).await?;
    // It may have been removed since.
    if is_swept
        && found(stored_equals(store, &swept, &mut Other::Bytes(&content)).await)? == Some(false)
    {
        return Ok(PutOutcome::Taken);
    }
    Ok(put)
}

/// Stores the bytes written to `writer` under `key`. They go to `store`, which is the writer's
/// store or its spool.
///
/// Existing content is compared in advance, because the writer can't be read once it is named.
/// Content that is missing then, first at `key` and afterwards at its swept place, can't get to the
/// swept place within the grace. Equal content found at either place may be swept, which keeps its
/// meaning.
pub(crate) async fn name(
    store: &dyn Backend,
    writer: &mut dyn Writer,
    key: &Key,
    by: NamedBy,
) -> Result<PutOutcome, BackendError> {
    if let Some(swept) = key.swept().filter(|_| store.can_be_swept()) {
        for place in [key, &swept] {
            if compare(store, place, &mut Other::Writer(&mut *writer)).await? == Some(false) {
                return Ok(PutOutcome::Taken);
            }
        }
    }
    match by {
        NamedBy::Finish => writer.finish(key).await,
        NamedBy::FinishInSpool => writer.finish_in_spool(key).await,
    }
}

/// Compares the bytes stored under `key` with `other`; `None` if the key is absent.
async fn compare(
    store: &dyn Backend,
    key: &Key,
    other: &mut Other<'_>,
) -> Result<Option<bool>, BackendError> {
    // Usually nothing is there, which an empty read finds out without reading content.
    match found(store.read(key, 0..0).await)? {
        None => Ok(None),
        // It may have been removed since.
        Some(_) => found(stored_equals(store, key, other).await),
    }
}

/// Reads `range` of what `key` means. Brings back swept content.
pub(crate) async fn read(
    store: &dyn Backend,
    key: &Key,
    range: Range<u64>,
) -> Result<ReadRange, BackendError> {
    let Some(swept) = key.swept().filter(|_| store.can_be_swept()) else {
        return store.read(key, range).await;
    };
    let there = found(store.read(key, range.clone()).await)?;
    let Some(page) = found(store.read(&swept, range.clone()).await)? else {
        return match there {
            Some(page) => Ok(page),
            // It may have been brought back between the two reads.
            None => store.read(key, range).await,
        };
    };
    if there.is_none() {
        bring_back(store, &swept, key).await;
    }
    Ok(page)
}

/// Copies swept content back. If that fails, the next sweep does it.
async fn bring_back(store: &dyn Backend, swept: &Key, key: &Key) {
    let location = store.locate(key);
    match store.copy(swept, key).await {
        Ok(_) => tracing::info!(%location, "restored swept content because it was read"),
        Err(error) => {
            tracing::warn!(%location, %error, "read swept content, but could not restore it");
        }
    }
}

/// Bytes to compare stored content with.
enum Other<'o> {
    Bytes(&'o Bytes),
    Writer(&'o mut dyn Writer),
}

impl Other<'_> {
    async fn read(&mut self, range: Range<u64>) -> Result<Bytes, BackendError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.slice(indexes_within(&range, bytes.len()))),
            Self::Writer(writer) => writer.read(range).await,
        }
    }
}

/// Compares the bytes stored under `key`, whatever the key means, with `other`.
async fn stored_equals(
    store: &dyn Backend,
    key: &Key,
    other: &mut Other<'_>,
) -> Result<bool, BackendError> {
    let mut at = 0;
    loop {
        let block = at..at + BLOCK;
        let page = store.read(key, block.clone()).await?;
        if other.read(block.clone()).await? != page.bytes {
            return Ok(false);
        }
        at += page.bytes.len() as u64;
        if at < block.end {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{ErrorKind, Memory};

    fn key(path: &str) -> Key {
        Key::new(path).unwrap()
    }

    #[tokio::test]
    async fn a_swept_key_means_the_swept_content() {
        let store = Memory::new();
        let (call, place) = (key("trunc/call_1"), key("swept/trunc/call_1"));
        store.put(&place, "swept".into()).await.unwrap();
        assert_eq!(
            put(&store, &call, "other".into()).await.unwrap(),
            PutOutcome::Taken
        );
        assert_eq!(
            read(&store, &call, 0..9).await.unwrap().bytes,
            "swept",
            "what is there is nobody's"
        );
        store.remove(&call).await.unwrap();
        assert_eq!(
            put(&store, &call, "swept".into()).await.unwrap(),
            PutOutcome::Stored
        );
        assert_eq!(
            put(&store, &call, "swept".into()).await.unwrap(),
            PutOutcome::AlreadyThere
        );
    }

    #[tokio::test]
    async fn reading_brings_swept_content_back() {
        let store = Memory::new();
        let (call, place) = (key("trunc/call_1"), key("swept/trunc/call_1"));
        store.put(&place, "swept".into()).await.unwrap();
        let page = read(&store, &call, 1..3).await.unwrap();
        assert_eq!((&*page.bytes, page.total), (&b"we"[..], 5));
        assert_eq!(store.read(&call, 0..9).await.unwrap().bytes, "swept");
        assert_eq!(
            read(&store, &key("trunc/call_2"), 0..9)
                .await
                .unwrap_err()
                .kind(),
            ErrorKind::NotFound
        );
    }

    #[tokio::test]
    async fn a_writer_takes_another_name_if_its_own_was_swept_with_other_content() {
        let store = Memory::new();
        store
            .put(&key("swept/trunc/call_1"), "swept".into())
            .await
            .unwrap();
        let mut writer = store.writer().await.unwrap();
        writer.write("other".into()).await.unwrap();
        let named = name(&store, &mut *writer, &key("trunc/call_1"), NamedBy::Finish).await;
        assert_eq!(named.unwrap(), PutOutcome::Taken);
        assert_eq!(
            name(&store, &mut *writer, &key("trunc/call_2"), NamedBy::Finish)
                .await
                .unwrap(),
            PutOutcome::Stored
        );
        let mut same = store.writer().await.unwrap();
        same.write("swept".into()).await.unwrap();
        assert_eq!(
            name(&store, &mut *same, &key("trunc/call_1"), NamedBy::Finish)
                .await
                .unwrap(),
            PutOutcome::Stored
        );
    }
}
