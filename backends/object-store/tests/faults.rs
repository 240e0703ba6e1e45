//! All faults on the wire.

#![allow(clippy::unwrap_used, reason = "what helps tests is part of them")]

#[path = "server/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod server;

use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use hyper::Method;
use offcut::backend::{Backend, BackendError, ErrorKind, Key, PutOutcome};
use offcut_object_store::Objects;

use server::{ALL, Fault, Server, key, named, noise};

/// Opens a store that has already proved that it overwrites nothing, so that the next request is
/// the one that counts.
async fn proven(server: &Server) -> Objects {
    let store = server.open_impatient("p");
    store.check().await.unwrap();
    store
}

/// Checks what must hold after any answer: nothing was overwritten, and a reported object exists.
async fn check(
    server: &Server,
    store: &Objects,
    key: &Key,
    content: &Bytes,
    put: &Result<PutOutcome, BackendError>,
) {
    assert_eq!(server.buckets().overwrites(), Vec::<String>::new());
    server.heal();
    match put {
        Ok(PutOutcome::Stored | PutOutcome::AlreadyThere { .. }) => {
            assert_eq!(store.read(key, ALL).await.unwrap().bytes, content);
        }
        Ok(PutOutcome::Taken) => assert_ne!(store.read(key, ALL).await.unwrap().bytes, content),
        // The outcome is unknown. Trying again is safe, and settles it.
        Err(_) => assert!(matches!(
            store.put(key, content.clone()).await,
            Ok(PutOutcome::Stored | PutOutcome::AlreadyThere { .. })
        )),
    }
}

/// Checks all cases. Hanging ones are slow, so they run at the same time.
async fn all<C>(cases: impl IntoIterator<Item = C>, check: impl AsyncFn(C)) {
    stream::iter(cases)
        .map(|case| check(case))
        .buffer_unordered(16)
        .collect::<Vec<()>>()
        .await;
}

/// Returns the outcome of a put whose first request meets `fault`.
async fn put_with(fault: Fault) -> Result<PutOutcome, ErrorKind> {
    let server = Server::start().await;
    let store = proven(&server).await;
    let (key, content) = (key("trunc/call_1"), noise(10_000, 1));
    server.fault(&Method::PUT, 1, fault);
    let put = store.put(&key, content.clone()).await;
    check(&server, &store, &key, &content, &put).await;
    let timeless = |put| match put {
        PutOutcome::AlreadyThere { .. } => THERE,
        put => put,
    };
    put.map(timeless).map_err(|error| error.kind())
}

/// The outcome for content that is there already, without its time.
const THERE: PutOutcome = PutOutcome::AlreadyThere {
    stored_at: std::time::SystemTime::UNIX_EPOCH,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_put_survives_every_fault() {
    let cases = [
        (Fault::Refuse(503), Ok(PutOutcome::Stored)),
        (Fault::Refuse(500), Ok(PutOutcome::Stored)),
        (Fault::Hang, Ok(PutOutcome::Stored)),
        (Fault::Disconnect, Ok(PutOutcome::Stored)),
        (Fault::Refuse(409), Ok(PutOutcome::Stored)),
        // The object there is our own.
        (Fault::ApplyThenRefuse(503), Ok(THERE)),
        (Fault::ApplyThenRefuse(500), Ok(THERE)),
        (Fault::ApplyThenHang, Ok(THERE)),
        (Fault::ApplyThenDisconnect, Ok(THERE)),
        (Fault::CutBody, Ok(THERE)),
        // Another writer was faster.
        (Fault::StoreOther, Ok(PutOutcome::Taken)),
        // Trying again would not help.
        (Fault::Refuse(403), Err(ErrorKind::Denied)),
    ];
    all(cases, async |(fault, should)| {
        assert_eq!(put_with(fault).await, should, "{fault:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_put_that_always_fails_terminates() {
    all(
        [Fault::Refuse(503), Fault::Hang, Fault::Disconnect],
        async |fault| {
            let server = Server::start().await;
            let store = proven(&server).await;
            server.fault_always(&Method::PUT, fault);
            let error = store
                .put(&key("trunc/call_1"), noise(10, 1))
                .await
                .unwrap_err();
            assert_eq!(
                (error.kind(), error.is_retryable()),
                (ErrorKind::Unavailable, true),
                "{fault:?}"
            );
            assert!(
                error
                    .to_string()
                    .starts_with("storing s3://bucket/p/trunc/call_1 failed: "),
                "{error}"
            );
            assert_eq!(server.buckets().objects().len(), 0);
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_put_whose_answers_are_lost_is_found_to_be_stored() {
    all(
        [
            Fault::ApplyThenRefuse(503),
            Fault::ApplyThenHang,
            Fault::ApplyThenDisconnect,
        ],
        async |fault| {
            let server = Server::start().await;
            let store = proven(&server).await;
            server.fault_always(&Method::PUT, fault);
            assert!(
                matches!(
                    store.put(&key("trunc/call_1"), noise(10, 1)).await.unwrap(),
                    PutOutcome::AlreadyThere { .. }
                ),
                "{fault:?}"
            );
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_comparison_claims_nothing() {
    let server = Server::start().await;
    let store = proven(&server).await;
    let (key, content) = (key("trunc/call_1"), noise(10, 1));
    store.put(&key, content.clone()).await.unwrap();
    server.fault_always(&Method::GET, Fault::Refuse(503));
    assert_eq!(
        store.put(&key, content.clone()).await.unwrap_err().kind(),
        ErrorKind::Unavailable
    );
    server.fault_always(&Method::GET, Fault::Refuse(403));
    assert_eq!(
        store.put(&key, content.clone()).await.unwrap_err().kind(),
        ErrorKind::Denied
    );
    server.heal();
    assert!(matches!(
        store.put(&key, content).await.unwrap(),
        PutOutcome::AlreadyThere { .. }
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_survives_every_fault() {
    all(Fault::ALL, async |fault| {
        let server = Server::start().await;
        let store = proven(&server).await;
        let (key, content) = (key("trunc/call_1"), noise(100_000, 1));
        store.put(&key, content.clone()).await.unwrap();
        server.fault(&Method::GET, 1, fault);
        let page = store
            .read(&key, 1_000..90_000)
            .await
            .map_err(|error| error.kind());
        match fault {
            Fault::Refuse(403) => assert_eq!(page, Err(ErrorKind::Denied)),
            // No store answers a read like this.
            Fault::Refuse(409) => assert!(page.is_err()),
            _ => assert_eq!(
                page.map(|page| (page.bytes, page.total)),
                Ok((content.slice(1_000..90_000), 100_000)),
                "{fault:?}"
            ),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_always_fails_terminates() {
    all(
        [
            Fault::Refuse(503),
            Fault::Hang,
            Fault::Disconnect,
            Fault::CutBody,
        ],
        async |fault| {
            let server = Server::start().await;
            let store = proven(&server).await;
            store
                .put(&key("trunc/call_1"), noise(100_000, 1))
                .await
                .unwrap();
            server.fault_always(&Method::GET, fault);
            let error = store.read(&key("trunc/call_1"), ALL).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{fault:?}");
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_that_fails_is_an_error() {
    for fault in [Fault::Refuse(403), Fault::Hang] {
        let server = Server::start().await;
        let store = proven(&server).await;
        for number in 0..150 {
            server
                .buckets()
                .insert(&format!("p/trunc/call_{number}"), "x");
        }
        // The first page arrives, the second does not. The probe is on one of them.
        server.fault(&Method::GET, 2, fault);
        server.fault(&Method::GET, 3, fault);
        server.fault(&Method::GET, 4, fault);
        let entries: Vec<_> = store.list().collect().await;
        let failed = entries.iter().filter(|entry| entry.is_err()).count();
        match fault {
            Fault::Hang => assert!(
                entries.len() == 150 || failed == 1,
                "{failed} of {}",
                entries.len()
            ),
            _ => assert_eq!((failed, entries.last().unwrap().is_err()), (1, true)),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_overwrites_is_refused_before_anything_is_stored() {
    let server = Server::start().await;
    server.buckets().ignore_conditions();
    let store = server.open("p");
    for _ in 0..2 {
        let error = store
            .put(&key("trunc/call_1"), "content".into())
            .await
            .unwrap_err();
        assert!(error.to_string().contains("`If-None-Match: *`"), "{error}");
    }
    let long = noise(9 << 20, 1);
    assert!(store.put(&named(&long), long).await.is_err());
    assert!(store.check().await.is_err());
    assert_eq!(server.buckets().objects().len(), 0);
}

/// Number of uploads that stay open forever because the answer with their id was lost. They can't
/// be aborted, so they need a lifecycle rule.
fn orphans(fault: Fault, nth: usize) -> usize {
    const BEGUN: usize = 2;
    let is_lost = match fault {
        Fault::ApplyThenRefuse(_)
        | Fault::ApplyThenHang
        | Fault::ApplyThenDisconnect
        | Fault::CutBody => true,
        Fault::Refuse(_)
        | Fault::Hang
        | Fault::Disconnect
        | Fault::ApplyThenWait
        | Fault::StoreOther => false,
    };
    usize::from(is_lost && nth == BEGUN)
}

/// Number of uploads left open. Dropped ones are aborted in the background.
async fn left_open(server: &Server, should: usize) -> usize {
    for _ in 0..200 {
        if server.buckets().uploads().1 == should {
            return should;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    server.buckets().uploads().1
}

/// Runs an upload whose `nth` request meets `fault`. The requests: compare, begin, two parts,
/// compare, complete, and those that follow a failure.
async fn upload_with(fault: Fault, nth: usize, content: Bytes) {
    let key = named(&content);
    let server = Server::start().await;
    let store = Objects::open(&server.url("p", "&timeout=12s")).unwrap();
    store.check().await.unwrap();
    server.fault_on_any(nth, fault);
    let mut writer = store.writer().await.unwrap();
    for chunk in content.chunks(1_000_000) {
        writer.write(Bytes::copy_from_slice(chunk)).await.unwrap();
    }
    let put = writer.finish(&key).await;
    // Without waiting: a command's runtime ends here.
    assert_eq!(
        server.buckets().uploads().1,
        orphans(fault, nth),
        "{fault:?} at {nth}"
    );
    let is_uploaded = server.buckets().objects().contains_key(&format!("p/{key}"));
    match (&put, fault) {
        (Ok(PutOutcome::Taken), Fault::StoreOther) => {}
        (Ok(PutOutcome::Stored | PutOutcome::AlreadyThere { .. }), _) if is_uploaded => {}
        // It is in the spool.
        (Ok(PutOutcome::Stored), Fault::Refuse(403 | 409)) => {}
        (other, _) => panic!("{fault:?} at {nth}: {other:?}"),
    }
    check(&server, &store, &key, &content, &put).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_survives_every_fault_at_every_request() {
    let content = noise((8 << 20) + 7, 3);
    let cases = Fault::ALL
        .iter()
        .flat_map(|fault| (1..=7).map(move |nth| (*fault, nth)));
    all(cases, async |(fault, nth)| {
        upload_with(fault, nth, content.clone()).await;
    })
    .await;
}

/// Runs an upload whose `nth` request is answered late or never, and drops it before the answer.
async fn drop_upload(fault: Fault, nth: usize, content: Bytes) {
    let key = named(&content);
    let server = Server::start().await;
    let store = server.open("p");
    store.check().await.unwrap();
    server.fault_on_any(nth, fault);
    let dropped =
        tokio::time::timeout(Duration::from_secs(3), store.put(&key, content.clone())).await;
    assert!(dropped.is_err(), "request {nth} is part of the upload");
    assert_eq!(
        left_open(&server, orphans(fault, nth)).await,
        orphans(fault, nth),
        "{fault:?} at {nth}"
    );
    server.heal();
    let again = store.put(&key, content.clone()).await.unwrap();
    assert_ne!(again, PutOutcome::Taken);
    assert_eq!(store.read(&key, ALL).await.unwrap().bytes, content);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_is_dropped_is_aborted() {
    let content = noise((8 << 20) + 7, 4);
    let faults = [Fault::Hang, Fault::ApplyThenHang, Fault::ApplyThenWait];
    let cases = faults
        .into_iter()
        .flat_map(|fault| (1..=6).map(move |nth| (fault, nth)));
    all(cases, async |(fault, nth)| {
        drop_upload(fault, nth, content.clone()).await;
    })
    .await;
}
