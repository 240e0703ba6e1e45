//! An S3 server in this process: the real protocol, signatures included, over buckets in memory,
//! with faults on cue.

mod bucket;
mod faults;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use offcut::backend::{Backend, Key, Writer};
use offcut_object_store::Objects;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use self::bucket::Buckets;
pub(crate) use self::faults::Fault;
use self::faults::Faults;

pub(crate) const BUCKET: &str = "bucket";
pub(crate) const KEY_ID: &str = "AKIAOFFCUT";
pub(crate) const SECRET: &str = "very/secret+key";
/// All bytes of some content.
pub(crate) const ALL: std::ops::Range<u64> = 0..u64::MAX;
/// Content of more bytes is uploaded in parts.
pub(crate) const MAX_SINGLE_PUT: usize = 8 << 20;

pub(crate) fn key(path: &str) -> Key {
    Key::new(path).unwrap()
}

/// The digest by which a key names its content.
pub(crate) fn digest(content: &[u8]) -> String {
    Sha256::digest(content)[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The name of a call with the digest of `content`.
pub(crate) fn named(content: &[u8]) -> Key {
    key(&format!("trunc/call_1-{}", digest(content)))
}

/// A writer of `store` with `content`, which came in chunks.
pub(crate) async fn written(store: &Objects, content: &Bytes) -> Box<dyn Writer> {
    let mut writer = store.writer().await.unwrap();
    for chunk in content.chunks(777_777) {
        writer.write(Bytes::copy_from_slice(chunk)).await.unwrap();
    }
    writer
}

/// A server that stops when dropped.
pub(crate) struct Server {
    address: SocketAddr,
    buckets: Buckets,
    faults: Arc<Mutex<Faults>>,
    accepting: JoinHandle<()>,
    spool: TempDir,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let buckets = Buckets::default();
        let mut service = S3ServiceBuilder::new(buckets.clone());
        service.set_auth(SimpleAuth::from_single(KEY_ID, SECRET));
        let (service, faults) = (service.build(), Arc::<Mutex<Faults>>::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepting = tokio::spawn(accept(listener, service, buckets.clone(), faults.clone()));
        Self {
            address,
            buckets,
            faults,
            accepting,
            spool: tempfile::tempdir().unwrap(),
        }
    }

    /// The URL that opens the store, with the options `more`. Attempts are short, since nothing
    /// here is slow on its own.
    pub(crate) fn url(&self, prefix: &str, more: &str) -> String {
        self.url_of(BUCKET, prefix, SECRET, more)
    }

    pub(crate) fn url_of(&self, bucket: &str, prefix: &str, secret: &str, more: &str) -> String {
        let Self { address, spool, .. } = self;
        format!(
            "s3://{bucket}/{prefix}?endpoint=http://{address}&region=us-east-1&access_key_id={KEY_ID}\
             &secret_access_key={}&spool={}&backoff=1ms{more}",
            secret.replace('/', "%2F").replace('+', "%2B"),
            spool.path().display(),
        )
    }

    pub(crate) fn open(&self, prefix: &str) -> Objects {
        Objects::open(&self.url(prefix, "")).unwrap()
    }

    /// Opens a store whose attempts time out after a second.
    pub(crate) fn open_impatient(&self, prefix: &str) -> Objects {
        Objects::open(&self.url(prefix, "&timeout=4s")).unwrap()
    }

    pub(crate) fn buckets(&self) -> &Buckets {
        &self.buckets
    }

    pub(crate) fn spool(&self) -> &std::path::Path {
        self.spool.path()
    }

    /// Makes the `nth` request of this kind from now on, counted from 1, meet the fault, once.
    pub(crate) fn fault(&self, method: &Method, nth: usize, fault: Fault) {
        self.faults.lock().unwrap().at(method, nth, fault);
    }

    /// Makes the `nth` request of any kind from now on meet the fault.
    pub(crate) fn fault_on_any(&self, nth: usize, fault: Fault) {
        self.faults.lock().unwrap().at_any(nth, fault);
    }

    /// Makes every request of this kind meet the fault from now on.
    pub(crate) fn fault_always(&self, method: &Method, fault: Fault) {
        self.faults.lock().unwrap().always(method, fault);
    }

    /// Makes one of every `requests` requests of each kind meet a fault that a caller who retries
    /// never notices.
    pub(crate) fn fault_often(&self, requests: usize) {
        self.faults.lock().unwrap().often(requests);
    }

    pub(crate) fn heal(&self) {
        self.faults.lock().unwrap().heal();
    }

    /// Number of requests of this kind so far.
    pub(crate) fn requests(&self, method: &Method) -> usize {
        self.faults.lock().unwrap().count(method)
    }

    /// Number of faults met since the last query.
    pub(crate) fn take_met(&self) -> usize {
        std::mem::take(&mut self.faults.lock().unwrap().met)
    }

    /// Stops accepting connections.
    pub(crate) fn stop(&self) {
        self.accepting.abort();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(
    listener: TcpListener,
    service: S3Service,
    buckets: Buckets,
    faults: Arc<Mutex<Faults>>,
) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        let (service, buckets, faults) = (service.clone(), buckets.clone(), faults.clone());
        let serve = service_fn(move |request: Request<Incoming>| {
            let (service, buckets) = (service.clone(), buckets.clone());
            let fault = faults.lock().unwrap().next(&request);
            async move { faults::answer(fault, request, &service, &buckets).await }
        });
        connections.spawn(async move {
            // Some faults break the connection.
            _ = http1::Builder::new()
                .serve_connection(TokioIo::new(socket), serve)
                .await;
        });
        while connections.try_join_next().is_some() {}
    }
}

/// Bytes without repetition.
pub(crate) fn noise(length: usize, seed: u64) -> Bytes {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes.into()
}
