//! `Faulty`: faults come on cue; without a cue it behaves like the inner store.
// Helpers may unwrap, as tests may.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use offcut::backend::{Backend, ErrorKind, Key, Memory, PutOutcome};
use offcut_testkit::backend::conformance;
use offcut_testkit::{Fault, Faulty};

fn key(path: &str) -> Key {
    Key::new(path).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_faulty_store_without_faults_keeps_the_contract() {
    conformance(async || Faulty::new(Memory::new())).await;
}

#[tokio::test]
async fn faults_come_on_cue() {
    let store = Faulty::new(Memory::new());
    let shared = store.clone();
    shared
        .fault_on_write(2, Fault::Fail(ErrorKind::Full))
        .fault_on_write(3, Fault::ApplyThenFail);
    let kinds = async |path: &str| {
        store
            .put(&key(path), "content".into())
            .await
            .map_err(|error| error.kind())
    };
    assert_eq!(kinds("a").await, Ok(PutOutcome::Stored));
    assert_eq!(kinds("b").await, Err(ErrorKind::Full));
    assert_eq!(kinds("c").await, Err(ErrorKind::Unavailable));
    assert!(
        matches!(kinds("c").await, Ok(PutOutcome::AlreadyThere { .. })),
        "it was applied"
    );
    assert_eq!(kinds("b").await, Ok(PutOutcome::Stored), "it was not");
    assert_eq!(
        (store.writes(), shared.writes(), store.inner().len()),
        (5, 5, 3)
    );

    shared
        .fault_on_every_write(Fault::Fail(ErrorKind::Denied))
        .fault_on_next_write(Fault::Fail(ErrorKind::Full));
    assert_eq!(kinds("d").await, Err(ErrorKind::Full));
    assert_eq!(kinds("d").await, Err(ErrorKind::Denied));
    assert_eq!(kinds("d").await, Err(ErrorKind::Denied));
    shared.heal();
    assert_eq!(kinds("d").await, Ok(PutOutcome::Stored));
}

#[tokio::test]
async fn faults_reach_reads_and_writers() {
    let store = Faulty::new(Memory::new());
    store.put(&key("a"), "content".into()).await.unwrap();
    store.fault_on_read(2, Fault::Fail(ErrorKind::Unavailable));
    assert!(store.read(&key("a"), 0..1).await.is_ok());
    assert!(
        store
            .read(&key("a"), 0..1)
            .await
            .unwrap_err()
            .is_retryable()
    );
    assert!(store.read(&key("a"), 0..1).await.is_ok());
    store.fault_on_next_read(Fault::ApplyThenFail);
    assert!(store.read(&key("a"), 0..1).await.is_err());
    store.fault_on_every_read(Fault::Fail(ErrorKind::Denied));
    assert!(store.read(&key("a"), 0..1).await.is_err());
    assert_eq!(store.reads(), 5);

    store
        .fault_on_chunk(2, Fault::Fail(ErrorKind::Full))
        .fault_on_write(2, Fault::ApplyThenFail);
    let mut writer = store.writer().await.unwrap();
    writer.write("one".into()).await.unwrap();
    assert_eq!(
        writer.write("two".into()).await.unwrap_err().kind(),
        ErrorKind::Full
    );
    assert!(writer.finish(&key("b")).await.is_err());
    assert_eq!(
        store.inner().read(&key("b"), 0..9).await.unwrap().bytes,
        "one"
    );
    assert_eq!((store.chunks(), store.writes()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_hangs_can_be_given_up() {
    let store = Faulty::new(Memory::new());
    for (path, fault, applied) in [("a", Fault::Hang, false), ("b", Fault::ApplyThenHang, true)] {
        store.fault_on_next_write(fault);
        let path = key(path);
        let put = store.put(&path, "content".into());
        assert!(
            tokio::time::timeout(Duration::from_secs(60), put)
                .await
                .is_err()
        );
        assert_eq!(store.inner().read(&path, 0..1).await.is_ok(), applied);
        let again = store.put(&path, "content".into()).await.unwrap();
        assert_eq!(again != PutOutcome::Stored, applied, "{again:?}");
    }
}
