//! The contract of a backend, over the S3 protocol and over `object_store`'s own stores.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "what helps tests is part of them")]

#[path = "server/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use offcut::testkit::backend::conformance;
use offcut_object_store::Objects;

use server::Server;

#[tokio::test(flavor = "multi_thread")]
async fn s3_keeps_the_contract() {
    let server = Server::start().await;
    let made = AtomicUsize::new(0);
    conformance(async || server.open(&format!("run-{}", made.fetch_add(1, Ordering::Relaxed)))).await;
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
    conformance(async || {
        Objects::builder(Arc::new(InMemory::new()), "memory://mine").spool(spool.path()).build().unwrap()
    })
    .await;
    conformance(async || Objects::open(&format!("memory:/agents?spool={}", spool.path().display())).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_keep_the_contract() {
    let home = tempfile::tempdir().unwrap();
    let made = AtomicUsize::new(0);
    let fresh = || {
        let path = home.path().join(format!("store-{}", made.fetch_add(1, Ordering::Relaxed)));
        std::fs::create_dir(&path).unwrap();
        path
    };
    let spool = home.path().join("spool");
    conformance(async || {
        let store = LocalFileSystem::new_with_prefix(fresh()).unwrap();
        Objects::builder(Arc::new(store), "file://mine").spool(&spool).build().unwrap()
    })
    .await;
    conformance(async || Objects::open(&format!("file://{}?spool={}", fresh().display(), spool.display())).unwrap())
        .await;
}

/// The same over a server of your own: `OFFCUT_S3_URL=s3://bucket/prefix?endpoint=…`, a prefix that is used for nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_your_own_keeps_the_contract() {
    let Ok(url) = std::env::var("OFFCUT_S3_URL") else {
        eprintln!("SKIPPED: set OFFCUT_S3_URL to hold a server of your own to the contract");
        return;
    };
    let (root, query) = url.split_once('?').unwrap_or((&url, ""));
    let started = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let made = AtomicUsize::new(0);
    conformance(async || {
        let run = made.fetch_add(1, Ordering::Relaxed);
        Objects::open(&format!("{}/conformance-{started}/{run}?{query}", root.trim_end_matches('/'))).unwrap()
    })
    .await;
}
