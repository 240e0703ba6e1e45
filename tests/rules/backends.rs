//! The stores, checked against their contract and their own docs.

#[cfg(feature = "fs")]
mod fs;
#[cfg(all(unix, feature = "fs"))]
#[cfg(feature = "fs")]
mod opening;
mod trial;
#[cfg(all(unix, feature = "fs"))]
mod unix;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use offcut::backend::{Backend, Key, Memory};
use offcut_testkit::backend::conformance;

fn key(path: &str) -> Key {
    Key::new(path).unwrap()
}

async fn listed(store: &impl Backend) -> BTreeMap<String, u64> {
    store
        .list()
        .map(|entry| {
            entry
                .map(|entry| (entry.key.to_string(), entry.bytes))
                .unwrap()
        })
        .collect()
        .await
}

async fn content(store: &impl Backend, path: &str) -> Bytes {
    store.read(&key(path), 0..u64::MAX).await.unwrap().bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_keeps_the_contract() {
    conformance(async || Memory::new()).await;
    conformance(async || Memory::named("grep").unwrap()).await;
}

#[tokio::test]
async fn memory_keeps_the_contract_on_one_thread() {
    conformance(async || Memory::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_store_keeps_the_contract() {
    conformance(async || Arc::new(Memory::new()) as Arc<dyn Backend>).await;
}
