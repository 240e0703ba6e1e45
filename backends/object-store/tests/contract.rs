//! The contract of a backend, over the S3 protocol and over `object_store`'s own stores.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "what helps tests is part of them"
)]

#[path = "server/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt;
use object_store::memory::InMemory;
use offcut::backend::{Backend, ErrorKind, Key, PutOutcome};
use offcut_object_store::Objects;
use offcut_testkit::backend::conformance;

use server::Server;

fn in_memory(spool: &std::path::Path) -> Objects {
    Objects::builder(Arc::new(InMemory::new()), "memory://mine")
        .spool(spool)
        .build()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_keeps_the_contract() {
    let server = Server::start().await;
    let made = AtomicUsize::new(0);
    conformance(async || server.open(&format!("run-{}", made.fetch_add(1, Ordering::Relaxed))))
        .await;
    assert_eq!(server.buckets().overwrites(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_without_a_prefix_keeps_the_contract() {
    let servers = std::sync::Mutex::new(Vec::new());
    conformance(async || {
        let server = Server::start().await;
        let store = server.open("");
        servers.lock().unwrap().push(server);
        store
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_keeps_the_contract() {
    let spool = tempfile::tempdir().unwrap();
    conformance(async || in_memory(spool.path())).await;
}

#[tokio::test]
async fn o2_opening_writes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let store = in_memory(&home.path().join("other/spool"));
    let call = Key::new("trunc/call_1").unwrap();
    assert_eq!(
        store.read(&call, 0..1).await.unwrap_err().kind(),
        ErrorKind::NotFound
    );
    store
        .remove(&call, std::time::SystemTime::now())
        .await
        .unwrap();
    assert_eq!(store.list().count().await, 0);
    assert_eq!(home.path().read_dir().unwrap().count(), 0);
    let mut writer = store.writer().await.unwrap();
    writer.write("content".into()).await.unwrap();
    assert_eq!(writer.finish(&call).await.unwrap(), PutOutcome::Stored);
    assert_eq!(store.read(&call, 0..9).await.unwrap().bytes, "content");
}

/// If the spool can't be created, streams fail but whole content is stored.
#[tokio::test]
async fn o2_a_store_opens_where_its_spool_can_not_be_made() {
    // Not even root can create a directory there.
    let store = in_memory("/proc/no/spool".as_ref());
    assert!(store.writer().await.is_err());
    assert!(
        store
            .check()
            .await
            .unwrap_err()
            .to_string()
            .contains("/proc/no/spool")
    );
    let call = Key::new("trunc/call_1").unwrap();
    assert_eq!(
        store.put(&call, "content".into()).await.unwrap(),
        PutOutcome::Stored
    );
}

/// A copy that can't be read does not keep content out of the store.
#[cfg(unix)]
#[tokio::test]
async fn o2_long_content_is_stored_where_its_spool_can_not_be_read() {
    let home = tempfile::tempdir().unwrap();
    let store = in_memory(&home.path().join("spool"));
    std::os::unix::fs::symlink("spool", home.path().join("spool")).unwrap();
    let long = server::noise(server::MAX_SINGLE_PUT + 1, 9);
    assert_eq!(
        store.put(&server::named(&long), long).await.unwrap(),
        PutOutcome::Stored
    );
}

/// The contract on a server of your own: `OFFCUT_S3_URL=s3://bucket/prefix?endpoint=…`, with a
/// prefix used for nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_your_own_keeps_the_contract() {
    let Ok(url) = std::env::var("OFFCUT_S3_URL") else {
        eprintln!("SKIPPED: set OFFCUT_S3_URL to hold a server of your own to the contract");
        return;
    };
    let (root, query) = url.split_once('?').unwrap_or((&url, ""));
    let started = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_millis();
    let made = AtomicUsize::new(0);
    conformance(async || {
        let run = made.fetch_add(1, Ordering::Relaxed);
        Objects::open(&format!(
            "{}/conformance-{started}/{run}?{query}",
            root.trim_end_matches('/')
        ))
        .unwrap()
    })
    .await;
}
