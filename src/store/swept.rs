//! A name means the same before, while and after its content is swept.
//!
//! A sweep first moves content from its key `K` to another, `S(K)`, and removes it from there much
//! later. One rule keeps what hints name readable meanwhile, whatever agents store at the same
//! moment: **where `S(K)` exists, it is what `K` means.** So `K` is looked at first and `S(K)` after
//! it, in reading and in storing: content only ever goes from `K` to `S(K)` before it leaves `K`.
//! What was stored at `K` in spite of that is nobody's, and harmless.
//!
//! The library puts, names and reads stored content here and nowhere else.

use std::ops::Range;

use bytes::Bytes;

use super::blocks::BLOCK;
use crate::backend::{
    Backend, BackendError, ErrorKind, Key, PutOutcome, ReadRange, Writer, indexes_within,
};

/// How a writer's content gets its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Finish,
    Keep,
}

/// `None` for what is not there.
fn found<T>(read: Result<T, BackendError>) -> Result<Option<T>, BackendError> {
    match read {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// Stores `content` as what `key` means.
pub(crate) async fn put(
    store: &dyn Backend,
    key: &Key,
    content: Bytes,
) -> Result<PutOutcome, BackendError> {
    let put = store.put(key, content.clone()).await?;
    if put == PutOutcome::Taken {
        return Ok(put);
    }
    let Some(swept) = key.swept().filter(|_| store.can_be_swept()) else {
        return Ok(put);
    };
    Ok(
        if is(store, &swept, &mut Other::Bytes(&content)).await? == Some(false) {
            PutOutcome::Taken
        } else {
            put
        },
    )
}

/// Names what `writer` was given, so that it is what `key` means. `store` is where it goes: the
/// writer's store, or its spool.
///
/// All is found out before, because afterwards the writer can't be read any more. What is not there
/// then, at `key` first and where it would be swept to after it, can't be swept for a grace, and
/// what is there and the same can only be swept as what it is.
pub(crate) async fn name(
    store: &dyn Backend,
    writer: &mut dyn Writer,
    key: &Key,
    by: By,
) -> Result<PutOutcome, BackendError> {
    if let Some(swept) = key.swept().filter(|_| store.can_be_swept()) {
        for place in [key, &swept] {
            if is(store, place, &mut Other::Writer(&mut *writer)).await? == Some(false) {
                return Ok(PutOutcome::Taken);
            }
        }
    }
    match by {
        By::Finish => writer.finish(key).await,
        By::Keep => writer.finish_in_spool(key).await,
    }
}

/// Whether exactly what is under `key` is the same as `other`; `None` if nothing is.
async fn is(
    store: &dyn Backend,
    key: &Key,
    other: &mut Other<'_>,
) -> Result<Option<bool>, BackendError> {
    // Nothing is there, nearly always: that is found out without a byte of content.
    match found(store.read(key, 0..0).await)? {
        None => Ok(None),
        // It may be removed meanwhile.
        Some(_) => found(is_same(store, key, other).await),
    }
}

/// The bytes of `range` of what `key` means. What was swept is brought back.
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
            // It may have been brought back between the two.
            None => store.read(key, range).await,
        };
    };
    if there.is_none() {
        bring_back(store, &swept, key).await;
    }
    Ok(page)
}

/// As well as it can: where it fails, the next sweep does it.
async fn bring_back(store: &dyn Backend, swept: &Key, key: &Key) {
    let location = store.locate(key);
    match store.copy(swept, key).await {
        Ok(_) => tracing::info!(%location, "swept content was read, and brought back"),
        Err(error) => {
            tracing::warn!(%location, %error, "swept content was read, and could not be brought back");
        }
    }
}

/// What stored content is compared with.
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

/// Whether exactly what is stored under `key`, without regard to what the key means, is the same as
/// `other`.
async fn is_same(
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
    use crate::backend::Memory;

    fn key(path: &str) -> Key {
        Key::new(path).unwrap()
    }

    #[tokio::test]
    async fn what_was_swept_is_what_a_name_means() {
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
    async fn reading_brings_back() {
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
    async fn a_writer_finds_another_name_where_something_else_was_swept() {
        let store = Memory::new();
        store
            .put(&key("swept/trunc/call_1"), "swept".into())
            .await
            .unwrap();
        let mut writer = store.writer().await.unwrap();
        writer.write("other".into()).await.unwrap();
        let named = name(&store, &mut *writer, &key("trunc/call_1"), By::Finish).await;
        assert_eq!(named.unwrap(), PutOutcome::Taken);
        assert_eq!(
            name(&store, &mut *writer, &key("trunc/call_2"), By::Finish)
                .await
                .unwrap(),
            PutOutcome::Stored
        );
        let mut same = store.writer().await.unwrap();
        same.write("swept".into()).await.unwrap();
        assert_eq!(
            name(&store, &mut *same, &key("trunc/call_1"), By::Finish)
                .await
                .unwrap(),
            PutOutcome::Stored
        );
    }
}
