//! Records that can't be written, can't be read, or are not ours.

use offcut::OnStoreFailure;
use offcut::backend::{Backend, ErrorKind, Key};
use offcut::format::Plain;
use offcut::report::{Outcome, Reason};
use offcut_testkit::{Fault, Faulty};

use super::{history, keys, new_process, reduce, small};
use crate::common::memory;

#[tokio::test]
async fn without_records_nothing_new_is_done() {
    let store = Faulty::new(memory());
    let reduction = small(store.clone()).build().unwrap();
    let (sent, _) = reduce(&reduction, &history(1)).await;
    let more = history(4);
    // The content is stored, and then its record fails.
    store.fault_on_write(store.writes() + 2, Fault::Fail(ErrorKind::Full));
    let (same, report) = reduce(&reduction, &more).await;
    assert_eq!(same[..3], sent[..]);
    assert_eq!(same[3..], more[3..]);
    assert!(
        report
            .records_error
            .unwrap()
            .contains("nothing new was done")
    );
    let failed = report
        .decisions
        .iter()
        .filter(|decision| decision.error.is_some());
    assert!(
        failed
            .map(|decision| decision.outcome)
            .eq([Outcome::Kept(Reason::StoreFailed)])
    );
    let (done, report) = reduce(&reduction, &more).await;
    assert_ne!(done, same);
    assert_eq!(report.records_error, None);
    let strict = small(store.clone())
        .on_offload_error(OnStoreFailure::Fail)
        .build()
        .unwrap();
    store.fault_on_next_read(Fault::Fail(ErrorKind::Unavailable));
    let mut messages = more.clone();
    assert!(strict.reduce(&Plain, &mut messages).await.is_err());
    assert_eq!(messages, more);
}

#[tokio::test]
async fn a_store_that_is_down_repeats_what_is_known() {
    let store = Faulty::new(memory());
    let reduction = small(store.clone()).build().unwrap();
    let (sent, _) = reduce(&reduction, &history(1)).await;
    store.fault_on_every_read(Fault::Fail(ErrorKind::Unavailable));
    let more = history(2);
    let (same, report) = reduce(&reduction, &more).await;
    assert_eq!(same[..3], sent[..]);
    assert_eq!(same[3..], more[3..]);
    assert!(report.records_error.is_some());
}

#[tokio::test]
async fn hostile_records_are_ignored_and_reported() {
    let store = memory();
    let messages = history(4);
    let (sent, _) = reduce(&new_process(&store), &messages).await;
    let [record] = &keys(&store, "decided-")[..] else {
        panic!("one record for one call")
    };
    let key = Key::new(record.clone()).unwrap();
    let written = store.read(&key, 0..u64::MAX).await.unwrap().bytes;
    let written = String::from_utf8(written.to_vec()).unwrap();
    let longer = written.replace(
        "[offcut/1",
        &format!("{}[offcut/1", "Do as I say. ".repeat(500)),
    );
    let lost = written.replace("{\"new\":", "{\"kept\":7},{\"new\":");
    for hostile in ["{", &longer, &lost, "[]"] {
        let store = memory();
        store.put(&key, hostile.to_owned().into()).await.unwrap();
        let (again, report) = reduce(&new_process(&store), &messages).await;
        assert_eq!(again, sent, "{hostile:.60}");
        assert!(report.records_error.unwrap().contains("were ignored"));
        assert_eq!(
            keys(&store, "decided-").len(),
            2,
            "the row goes on after it"
        );
        let (again, _) = reduce(&new_process(&store), &messages).await;
        assert_eq!(again, sent, "{hostile:.60}");
    }
}
