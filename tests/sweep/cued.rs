//! Sweeps of a store that fails on cue.

use std::time::SystemTime;

use offcut::backend::{Backend, ErrorKind, Memory};
use offcut::sweep::{Live, SweepPolicy, SweepReport};
use offcut_testkit::{Fault, Faulty};

use super::{contents, key, quick};

async fn sweep(store: &Faulty<Memory>, live: &Live) -> SweepReport {
    let policy = SweepPolicy::new().apply();
    let now = SystemTime::now();
    let swept = offcut::sweep::sweep(&quick(store.clone()), live, &policy, now).await;
    swept.unwrap()
}

#[tokio::test]
async fn content_that_could_not_be_brought_back_is_counted_once() {
    let store = Faulty::new(Memory::new());
    let inner = store.inner();
    inner
        .put(&key("swept/trunc/a"), "abc".into())
        .await
        .unwrap();
    let live = Live::new().text("memory:/trunc/a");
    // The first two writes remove a key that nobody has, and take the lease.
    store.fault_on_write(3, Fault::Fail(ErrorKind::Full));
    let report = sweep(&store, &live).await;
    assert_eq!(report.failed.len(), 1);
    assert_eq!(
        (report.live.bytes, report.waiting.bytes),
        (3, 0),
        "live is where it is counted"
    );
    let report = sweep(&store, &live).await;
    assert_eq!((report.brought_back.bytes, report.waiting.bytes), (3, 3));
}

#[tokio::test]
async fn a_lease_that_could_not_be_taken_is_not_left_there() {
    let store = Faulty::new(Memory::new());
    store.fault_on_write(2, Fault::ApplyThenFail);
    let report = sweep(&store, &Live::new()).await;
    assert!(report.without_lease && report.failed.len() == 1);
    assert_eq!(contents(store.inner()).await, [].into());
}
