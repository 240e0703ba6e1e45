//! Whole histories over the S3 protocol: the same bytes from any process.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "what helps tests is part of them"
)]

#[path = "../../../tests/histories/arms.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod arms;
#[path = "server/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod server;
#[path = "../../../tests/histories/traces.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod traces;

use std::sync::{Arc, LazyLock};

use tokio::runtime::{Builder, Runtime};

use server::Server;

/// Servers run next to the test, which has a runtime of its own.
fn start() -> Server {
    static SERVERS: LazyLock<Runtime> = LazyLock::new(|| {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).enable_all().build().unwrap()
    });
    let (started, server) = std::sync::mpsc::channel();
    SERVERS.spawn(async move { started.send(Server::start().await).ok() });
    server.recv().unwrap()
}

#[test]
fn l4_transcripts_have_the_same_bytes_from_any_process_over_s3() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    // Each arm has its own server, so that the stores have the same URLs.
    let mut servers = Vec::new();
    traces::compare(&runtime, "S3's protocol", || {
        servers = (0..3).map(|_| start()).collect();
        [0, 1, 2].map(|arm: usize| Arc::new(servers[arm].open("agents")))
    });
}
