//! The laws of the library, over S3's protocol on a wire that fails: every third request meets a
//! fault, and no test may notice.
//!
//! These are the library's own tests, over other stores. If a test makes its store fail, the wire
//! fails too, permanently.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "what helps tests is part of them"
)]

#[path = "server/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod server;

#[path = "../../../tests/laws/c13.rs"]
mod c13;
#[path = "../../../tests/laws/drive.rs"]
mod drive;
#[path = "../../../tests/laws/generate.rs"]
#[allow(dead_code, reason = "other laws use the rest")]
mod generate;
#[path = "../../../tests/laws/harness.rs"]
mod harness;
#[path = "../../../tests/laws/l1_to_l5.rs"]
mod l1_to_l5;
#[path = "../../../tests/laws/l2.rs"]
mod l2;
#[path = "../../../tests/laws/l9/mod.rs"]
mod l9;
#[path = "../../../tests/laws/names.rs"]
mod names;
#[path = "../../../tests/laws/output.rs"]
mod output;
#[path = "../../../tests/laws/pass.rs"]
#[allow(dead_code, reason = "other laws use the rest")]
mod pass;
#[path = "../../../tests/laws/shadow.rs"]
mod shadow;
#[path = "../../../tests/laws/subject.rs"]
mod subject;
#[path = "../../../tests/laws/text.rs"]
mod text;
#[path = "../../../tests/laws/valid.rs"]
mod valid;
#[path = "../../../tests/laws/wire/mod.rs"]
mod wire;
#[path = "../../../tests/laws/world.rs"]
#[allow(dead_code, reason = "other laws use the rest")]
mod world;

use std::fmt;
use std::sync::{Arc, LazyLock};

use hyper::Method;
use offcut::backend::Backend;
use tokio::runtime::{Builder, Runtime};

use harness::{Violation, block_on, hold, require};
use server::{Fault, Server};
use world::{Home, Store};

/// Number of conversations, unless `OFFCUT_CASES` is set.
const CASES: u64 = 12;
const STORE: Store = s3_that_fails;
const OTHER_STORE: Store = s3;

/// Each home has its own server, so that stores have the same URLs in all homes.
impl Home for Server {
    fn open(&self, name: &str) -> Arc<dyn Backend> {
        Arc::new(Self::open(self, name))
    }

    fn fault(&self, nth: u64, is_done: bool) {
        let fault = if is_done {
            Fault::ApplyThenRefuse(403)
        } else {
            Fault::Refuse(403)
        };
        Self::fault(self, &Method::PUT, nth as usize, fault);
    }

    fn heal(&self) {
        Self::heal(self);
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

/// Servers run next to the tests, which have runtimes of their own.
fn start() -> Server {
    static SERVERS: LazyLock<Runtime> = LazyLock::new(|| {
        Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap()
    });
    let (started, server) = std::sync::mpsc::channel();
    SERVERS.spawn(async move { started.send(Server::start().await).ok() });
    server.recv().unwrap()
}

fn s3() -> Box<dyn Home> {
    Box::new(start())
}

fn s3_that_fails() -> Box<dyn Home> {
    let server = start();
    server.fault_often(3);
    Box::new(server)
}
