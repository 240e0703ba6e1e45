//! Records that can't be written, can't be read, or are not ours.

use std::time::{Duration, SystemTime};

use offcut::OnOffloadError;
use offcut::backend::{Backend, ErrorKind, Fs, Key, Location};
use offcut::format::{Message, Plain};
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
        .on_offload_error(OnOffloadError::Fail)
        .build()
        .unwrap();
    store.fault_on_next_read(Fault::Fail(ErrorKind::Unavailable));
    let mut messages = more.clone();
    assert!(strict.reduce(Plain, &mut messages).await.is_err());
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
async fn hostile_records_are_ignored() {
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
    let first = store;
    for hostile in ["{", &longer, &lost, "[]"] {
        let store = memory();
        store.put(&key, hostile.to_owned().into()).await.unwrap();
        for content in keys(&first, "call_") {
            let key = Key::new(content).unwrap();
            let content = first.read(&key, 0..u64::MAX).await.unwrap().bytes;
            store.put(&key, content).await.unwrap();
        }
        let (again, _) = reduce(&new_process(&store), &messages).await;
        assert_eq!(again, sent, "{hostile:.60}");
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
    let harms: [Harm; 6] = [
        |store| std::fs::remove_dir_all(store),
        |store| std::fs::remove_dir_all(store.join("trunc")),
        |store| {
            let mut files = std::fs::read_dir(store.join("trunc"))?;
            std::fs::remove_file(files.next().unwrap()?.path())
        },
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
    for (number, harm) in harms.repeat(2).into_iter().enumerate() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("store");
        let reduction = small(Fs::open(&path).unwrap()).build().unwrap();
        let messages = history(6);
        let (sent, _) = reduce(&reduction, &messages).await;
        assert_ne!(sent, messages);
        harm(&path).unwrap();
        // Whoever has made the decisions, or reads them now.
        let reduction = match number < harms.len() {
            true => reduction,
            false => match Fs::open(&path) {
                Ok(store) => small(store).build().unwrap(),
                Err(_) => continue,
            },
        };
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
        let later = SystemTime::now() + Duration::from_secs(60);
        store.remove(&Key::new(key).unwrap(), later).await.unwrap();
    }
    let (again, report) = reduce(&reduction, &messages).await;
    assert_eq!(again, sent);
    assert!(report.decisions.iter().any(|one| one.outcome.is_change()));
    assert_ne!(keys(&store, ""), Vec::<String>::new());
}

const HOUR: Duration = Duration::from_secs(60 * 60);

/// A sweep may be removing what old decisions name, so processes make them anew, and agree about it.
#[tokio::test]
async fn b6_decisions_are_repeated_for_a_day_and_then_made_anew() {
    let store = memory();
    let messages = history(6);
    let (sent, _) = reduce(&new_process(&store), &messages).await;
    let records = |store| keys(store, "meta/decided-").len();
    let soon = store.later_by(23 * HOUR);
    assert_eq!(reduce(&new_process(&soon), &messages).await.0, sent);
    assert_eq!(records(&soon), 1);

    let later = store.later_by(25 * HOUR);
    let process = new_process(&later);
    let (anew, report) = reduce(&process, &messages).await;
    assert_eq!(records(&later), 2);
    let old: Vec<_> = locations(&sent);
    for location in report.decisions.iter().flat_map(|one| &one.locations) {
        assert!(
            !old.contains(location),
            "{location} was stored 25 hours ago"
        );
    }
    assert_eq!(locations(&anew).len(), old.len());
    // Whoever comes later repeats the new ones, and so does the process itself.
    assert_eq!(reduce(&new_process(&later), &messages).await.0, anew);
    assert_eq!(reduce(&process, &messages).await.0, anew);
    let next = later.later_by(23 * HOUR);
    assert_eq!(reduce(&new_process(&next), &messages).await.0, anew);
    assert_eq!(records(&next), 2);
    let last = later.later_by(25 * HOUR);
    assert_ne!(reduce(&new_process(&last), &messages).await.0, anew);
    assert_eq!(records(&last), 3);
}

/// The locations in the hints of a conversation.
fn locations(messages: &[Message]) -> Vec<Location> {
    let results = messages
        .iter()
        .filter(|message| matches!(message, Message::Tool { .. }));
    let hints = results.filter_map(|message| Hint::parse(text(content(message))));
    hints.filter_map(|hint| hint.location).collect()
}
