//! Memory use of a long result. Alone in its process, because the whole process is measured.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "what helps tests is part of them"
)]

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use offcut::backend::{Backend, Key, PutOutcome};
use offcut_object_store::Objects;
use peak_alloc::PeakAlloc;
use sha2::{Digest, Sha256};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// A store in memory that takes uploads slowly and counts them without keeping them.
#[derive(Debug, Default)]
struct Counting {
    inner: InMemory,
    uploaded: Arc<AtomicU64>,
}

impl fmt::Display for Counting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counting")
    }
}

#[derive(Debug)]
struct Discard(Arc<AtomicU64>);

#[async_trait]
impl MultipartUpload for Discard {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let uploaded = Arc::clone(&self.0);
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            uploaded.fetch_add(data.content_length() as u64, Ordering::Relaxed);
            Ok(())
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        Ok(PutResult {
            e_tag: None,
            version: None,
            extensions: Default::default(),
        })
    }

    async fn abort(&mut self) -> Result<()> {
        Ok(())
    }
}

#[async_trait]
impl ObjectStore for Counting {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        _: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Ok(Box::new(Discard(Arc::clone(&self.uploaded))))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn l9_two_long_results_at_once_take_less_than_64_mib() {
    const LENGTH: usize = 256 << 20;
    const CHUNK: usize = 1 << 20;
    let (store, spool) = (Counting::default(), tempfile::tempdir().unwrap());
    let uploaded = Arc::clone(&store.uploaded);
    let store = Objects::builder(Arc::new(store), "memory://counting")
        .spool(spool.path())
        .build()
        .unwrap();
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    let write = async |byte: u8| {
        let mut writer = store.writer().await.unwrap();
        let mut sha256 = Sha256::new();
        for _ in 0..LENGTH / CHUNK {
            let chunk = Bytes::from(vec![byte; CHUNK]);
            sha256.update(&chunk);
            writer.write(chunk).await.unwrap();
        }
        let digest: String = sha256.finalize()[..8]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(
            writer.finish(&Key::new(digest).unwrap()).await.unwrap(),
            PutOutcome::Stored
        );
    };
    futures_util::future::join(write(1), write(2)).await;
    assert_eq!(uploaded.load(Ordering::Relaxed), 2 * LENGTH as u64);
    let peak = MEMORY.peak_usage() - before;
    eprintln!(
        "two results of 256 MiB at once took {} KiB at most",
        peak >> 10
    );
    assert!(peak < 64 << 20, "{} MiB", peak >> 20);
}
