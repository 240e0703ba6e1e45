//! Records that can't be written, can't be read, or are not ours.

use offcut::OnStoreFailure;
use offcut::backend::{Backend, ErrorKind, Fs, Key};
use offcut::format::Plain;
use offcut::hint::Hint;
use offcut::report::{Outcome, Reason};
use offcut_testkit::{Fault, Faulty};

use super::{history, keys, new_process, reduce, small};
use crate::common::{content, memory, text};

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

/// Decisions that a process remembers are repeated only while their content is where hints say.
#[tokio::test]
async fn what_was_swept_or_moved_is_not_repeated() {
    type Harm = fn(&std::path::Path) -> std::io::Result<()>;
    let harms: [Harm; 4] = [
        |store| std::fs::remove_dir_all(store),
        |store| std::fs::rename(store, store.with_extension("moved")),
        |store| {
            std::fs::rename(store, store.with_extension("moved"))?;
            std::fs::create_dir(store)
        },
        |store| {
            std::fs::remove_dir_all(store)?;
            std::fs::write(store, "a file")
        },
    ];
    for (number, harm) in harms.into_iter().enumerate() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("store");
        let reduction = small(Fs::open(&path).unwrap()).build().unwrap();
        let messages = history(6);
        let (sent, _) = reduce(&reduction, &messages).await;
        assert_ne!(sent, messages);
        harm(&path).unwrap();
        let (again, report) = reduce(&reduction, &messages).await;
        let locations = report.decisions.iter().flat_map(|one| &one.locations);
        for location in locations {
            assert!(
                std::fs::metadata(location.as_str()).is_ok(),
                "{number}: {location}"
            );
        }
        for (now, original) in again.iter().zip(&messages) {
            if now == original {
                continue;
            }
            let hint = Hint::parse(text(content(now)));
            assert!(
                hint.is_some_and(|hint| hint
                    .location
                    .is_some_and(|at| std::fs::metadata(at.as_str()).is_ok())),
                "{number}: {now:?}"
            );
        }
    }
    // A sweep removes content and records alike; the same process stores both again.
    let store = memory();
    let reduction = small(store.clone()).build().unwrap();
    let messages = history(6);
    let (sent, _) = reduce(&reduction, &messages).await;
    for key in keys(&store, "") {
        store.remove(&Key::new(key).unwrap()).await.unwrap();
    }
    let (again, report) = reduce(&reduction, &messages).await;
    assert_eq!(again, sent);
    assert!(report.decisions.iter().any(|one| one.outcome.is_change()));
    assert_ne!(keys(&store, ""), Vec::<String>::new());
}
