//! Nothing shows a store's credentials: no error, no log of this crate or its dependencies, no
//! location, no `Debug` (O4).

#![allow(clippy::unwrap_used, reason = "what helps tests is part of them")]

#[path = "../../../tests/common/leak.rs"]
mod leak;

use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use futures_util::TryStreamExt;
use offcut::backend::{Backend, BackendError, Key};
use offcut_object_store::Objects;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use self::leak::{Log, holds_no_secret, said};

/// Collects logs that do not go through tracing.
impl log::Log for Log {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        writeln!(self.0.lock().unwrap(), "{}", record.args()).unwrap();
    }

    fn flush(&self) {}
}

fn log() -> Log {
    static LOG: OnceLock<Log> = OnceLock::new();
    let install = || {
        let log = Log::install();
        log::set_boxed_logger(Box::new(log.clone())).unwrap();
        log::set_max_level(log::LevelFilter::Trace);
        log
    };
    LOG.get_or_init(install).clone()
}

/// A server's answer to every request.
#[derive(Clone, Copy, Debug)]
enum Answer {
    /// Repeats everything that it was sent, in its body and in a header, with this status.
    Echo(u16),
    /// Answers like a store without the bucket.
    NoBucket,
    /// Closes the connection.
    Nothing,
    /// Sends a body that ends early.
    CutShort,
    /// No server listens.
    Absent,
}

async fn serve(answer: Answer) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    if matches!(answer, Answer::Absent) {
        return address;
    }
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut asked = vec![0; 64 << 10];
                let length = socket.read(&mut asked).await.unwrap_or_default();
                let asked = String::from_utf8_lossy(&asked[..length]).into_owned();
                let first = asked.lines().next().unwrap_or_default();
                let (status, header, body, cut) = match answer {
                    Answer::Echo(status) => (
                        status,
                        first,
                        format!("<Error><Code>{asked}</Code></Error>{asked}"),
                        0,
                    ),
                    Answer::NoBucket => (
                        404,
                        "",
                        "<Error><Code>NoSuchBucket</Code></Error>".to_owned(),
                        0,
                    ),
                    Answer::CutShort => (200, first, asked.clone(), 100),
                    Answer::Nothing | Answer::Absent => return,
                };
                let length = body.len() + cut;
                let head = format!(
                    "HTTP/1.1 {status} Odd\r\nx-asked: {header}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
                );
                _ = socket.write_all((head + &body).as_bytes()).await;
            });
        }
    });
    address
}

/// URLs of stores at this endpoint, with the secret as every credential.
fn urls(at: SocketAddr) -> Vec<String> {
    let spool = std::env::temp_dir().join(format!("offcut-secrets-{}", std::process::id()));
    let more = format!(
        "endpoint=http://{at}&retries=1&backoff=1ms&timeout=2s&spool={}",
        spool.display()
    );
    vec![
        format!(
            "s3://bucket/p?{more}&access_key_id=pLanTeD-id&secret_access_key=pLanTeD&session_token=pLanTeD-token"
        ),
        format!("gs://bucket/p?{more}&bearer_token=pLanTeD"),
        format!("az://bucket/p?{more}&account_name=me&sas_token=sv%3D1%26sig%3DpLanTeD"),
        format!("az://bucket/p?{more}&account_name=me&bearer_token=pLanTeD"),
        format!("az://bucket/p?{more}&account_name=me&account_key=pLanTeD0"),
    ]
}

/// Makes every kind of call and returns the errors.
async fn ask(store: &Objects) -> Vec<BackendError> {
    let key = Key::new("trunc/call_1").unwrap();
    let mut errors = Vec::new();
    errors.extend(store.check().await.err());
    errors.extend(store.put(&key, "content".into()).await.err());
    errors.extend(store.read(&key, 0..10).await.err());
    errors.extend(store.list().try_collect::<Vec<_>>().await.err());
    errors.extend(store.remove(&key, std::time::SystemTime::now()).await.err());
    let mut writer = store.writer().await.unwrap();
    writer.write("content".into()).await.unwrap();
    for key in [key, Key::new("trunc/call_1-ed7002b439e9ac84").unwrap()] {
        errors.extend(writer.finish(&key).await.err());
    }
    errors
}

#[tokio::test(flavor = "multi_thread")]
async fn o4_no_failure_shows_a_credential() {
    let log = log();
    let answers = [
        Answer::Echo(400),
        Answer::Echo(401),
        Answer::Echo(403),
        Answer::Echo(404),
        Answer::Echo(500),
        Answer::Echo(301),
        Answer::NoBucket,
        Answer::Nothing,
        Answer::CutShort,
        Answer::Absent,
    ];
    for answer in answers {
        for url in urls(serve(answer).await) {
            let store = Objects::open(&url).unwrap();
            holds_no_secret(
                "Debug",
                &format!(
                    "{store:?} {store:#?} {}",
                    store.locate(&Key::new("a").unwrap())
                ),
            );
            let errors = ask(&store).await;
            assert!(!errors.is_empty(), "{answer:?} fails something");
            for error in errors {
                holds_no_secret(&format!("{answer:?}"), &said(&error));
            }
        }
    }
    let log = log.0.lock().unwrap();
    assert!(
        log.contains("backing off"),
        "what object_store logs is in it: {log:.500}"
    );
    assert!(log.contains("kept in the spool"));
    holds_no_secret("log", &log);
}

/// The probe is internal: an error about a missing bucket must not mention it.
#[tokio::test(flavor = "multi_thread")]
async fn o4_a_missing_bucket_is_named_with_what_to_do() {
    for url in urls(serve(Answer::NoBucket).await) {
        let store = Objects::open(&url).unwrap();
        for error in ask(&store).await {
            let said = said(&error);
            assert!(
                said.contains("://bucket/p/ failed: there is no such bucket; create it"),
                "{said}"
            );
            assert!(
                !said.contains(".offcut") && !said.contains("call_1"),
                "{said}"
            );
        }
    }
}

#[test]
fn o4_no_url_that_does_not_open_is_shown_with_its_secret() {
    for url in [
        "s3://AKIA:pLanTeD@bucket/p",
        "s3://pLanTeD@bucket",
        "s3://AKIA:with/slash?and@pLanTeD@bucket",
        "s3://AKIA:pLanTeD/p",
        "s3:AKIA:pLanTeD@bucket",
        "s3:/bucket?secret_access_key=pLanTeD",
        "pLanTeD",
        "redis://me:pLanTeD@host",
        "s3://pLanTeD..bucket",
        "s3://bucket/pLanTeD/../x",
        "s3://bucket/p%20?secret_access_key=pLanTeD",
        "s3://bucket?secret_acces_key=pLanTeD",
        "s3://bucket?pLanTeD=x",
        "s3://bucket#pLanTeD",
        "s3://bucket?access_key_id=pLanTeD",
        "s3://bucket?endpoint=https://me:pLanTeD@host",
        "s3://bucket?endpoint=https://host?key=pLanTeD",
        "s3://bucket?timeout=pLanTeD",
        "gs://bucket?service_account_key=%7BpLanTeD",
        "gs://bucket?service_account=/pLanTeD",
        "az://container?account_name=me&account_key=pLanTeD%21",
        "az://container?account_name=pLanTeD%21",
        "file://me:pLanTeD@host/x",
        "file:///x?token=pLanTeD",
        "memory:/p?token=pLanTeD",
        "memory://me:pLanTeD@host/p",
    ] {
        holds_no_secret(url, &said(&Objects::open(url).unwrap_err()));
    }
    let store = Arc::new(object_store::memory::InMemory::new());
    let builder = Objects::builder(store, "s3://AKIA:pLanTeD@bucket?token=pLanTeD");
    holds_no_secret("Builder", &format!("{builder:?}"));
    holds_no_secret("Builder", &said(&builder.build().unwrap_err()));
}
