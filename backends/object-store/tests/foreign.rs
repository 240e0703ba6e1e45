//! Stores from other crates, which may do anything.

#![allow(clippy::unwrap_used, reason = "what helps tests is part of them")]

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use offcut::backend::{Backend, ErrorKind, Key, PutOutcome};
use offcut_object_store::Objects;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// The flaw of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    None,
    /// Answers only the requests of the proof.
    Hangs,
    /// Silently ends bodies early.
    GivesLess,
    /// Sends bodies that continue past their end.
    GivesMore,
    /// Returns the whole object, whatever range was requested.
    IgnoresRanges,
}

#[derive(Debug)]
struct Flawed {
    inner: InMemory,
    flaw: Flaw,
}

impl fmt::Display for Flawed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Flawed")
    }
}

impl Flawed {
    async fn hang(&self, location: &Path) {
        if self.flaw == Flaw::Hangs && !location.as_ref().starts_with('.') {
            std::future::pending::<()>().await;
        }
    }
}

#[async_trait]
impl ObjectStore for Flawed {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.hang(location).await;
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.hang(location).await;
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, mut options: GetOptions) -> Result<GetResult> {
        self.hang(location).await;
        if self.flaw == Flaw::IgnoresRanges {
            options.range = None;
        }
        let GetResult {
            meta,
            range,
            attributes,
            payload,
            extensions,
        } = self.inner.get_opts(location, options).await?;
        let whole = GetResult {
            meta: meta.clone(),
            range: range.clone(),
            attributes,
            payload,
            extensions,
        };
        let bytes = whole.bytes().await?;
        let bytes = match self.flaw {
            Flaw::GivesLess => bytes.slice(..bytes.len() / 2),
            Flaw::GivesMore => [&bytes[..], b"more"].concat().into(),
            _ => bytes,
        };
        let payload = GetResultPayload::Stream(stream::iter([Ok(bytes)]).boxed());
        Ok(GetResult {
            meta,
            range,
            payload,
            attributes: Default::default(),
            extensions: Default::default(),
        })
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        if self.flaw == Flaw::Hangs {
            stream::pending().boxed()
        } else {
            self.inner.list(prefix)
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// Returns the key of `content` that is derived from it.
fn named(content: &Bytes) -> Key {
    let digest: String = Sha256::digest(content)[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Key::new(format!("trunc/{digest}")).unwrap()
}

/// A store and its temporary spool.
fn flawed(flaw: Flaw) -> (Objects, TempDir) {
    let spool = tempfile::tempdir().unwrap();
    let store = Arc::new(Flawed {
        inner: InMemory::new(),
        flaw,
    });
    (
        Objects::builder(store, "flawed:")
            .spool(spool.path())
            .build()
            .unwrap(),
        spool,
    )
}

#[tokio::test(start_paused = true)]
async fn no_call_waits_forever() {
    let (store, _spool) = flawed(Flaw::Hangs);
    let key = Key::new("trunc/call_1").unwrap();
    let long = Bytes::from(vec![7; 9 << 20]);
    let named = named(&long);
    let kinds = [
        store.put(&key, "content".into()).await.unwrap_err().kind(),
        store.put(&named, long.clone()).await.unwrap_err().kind(),
        store.read(&key, 0..10).await.unwrap_err().kind(),
        store.read(&key, 0..0).await.unwrap_err().kind(),
        store.list().next().await.unwrap().unwrap_err().kind(),
    ];
    assert_eq!(kinds, [ErrorKind::Unavailable; 5]);
    for content in [Bytes::from("content"), long] {
        let mut writer = store.writer().await.unwrap();
        let named = self::named(&content);
        writer.write(content).await.unwrap();
        assert_eq!(writer.finish(&named).await.unwrap(), PutOutcome::Stored);
    }
}

#[tokio::test(start_paused = true)]
async fn an_impossible_answer_is_an_error() {
    let key = Key::new("trunc/call_1").unwrap();
    let content = Bytes::from(vec![7; 1_000]);
    for flaw in [Flaw::GivesLess, Flaw::GivesMore, Flaw::IgnoresRanges] {
        let (store, _spool) = flawed(flaw);
        assert_eq!(
            store.put(&key, content.clone()).await.unwrap(),
            PutOutcome::Stored
        );
        let read = tokio::time::timeout(Duration::from_secs(3600), store.read(&key, 10..20))
            .await
            .unwrap();
        assert_eq!(read.unwrap_err().kind(), ErrorKind::Unavailable, "{flaw:?}");
        if flaw != Flaw::IgnoresRanges {
            assert!(
                store.put(&key, content.clone()).await.is_err(),
                "{flaw:?}: nobody knows what is there"
            );
        }
    }
    let (store, _spool) = flawed(Flaw::None);
    assert_eq!(
        store.put(&key, content.clone()).await.unwrap(),
        PutOutcome::Stored
    );
    assert_eq!(
        store.read(&key, 10..20).await.unwrap().bytes,
        content.slice(10..20)
    );
    assert!(matches!(
        store.put(&key, content).await.unwrap(),
        PutOutcome::AlreadyThere { .. }
    ));
}
