//! The store in a directory, checked against its docs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use bytes::Bytes;
use futures_util::FutureExt;
use offcut::backend::{Backend, ErrorKind, Fs, PutOutcome};
use offcut_testkit::backend::conformance;
use tempfile::TempDir;

use super::{content, key, listed};

/// Makes a store's directory, which `homes` keeps as long as the suite needs it.
fn made(homes: &Mutex<Vec<TempDir>>) -> PathBuf {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("some/new/store");
    homes.lock().unwrap().push(home);
    path
}

/// The names in the directory `path`, sorted.
pub(super) fn names_in(path: &Path) -> Vec<String> {
    let mut names: Vec<_> = path
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_keeps_the_contract() {
    let homes = Mutex::default();
    conformance(async || Fs::open(made(&homes)).unwrap()).await;
}

#[tokio::test]
async fn a_directory_keeps_the_contract_on_one_thread() {
    let homes = Mutex::default();
    conformance(async || Fs::open(made(&homes)).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_durable_directory_keeps_the_contract() {
    let homes = Mutex::default();
    conformance(async || Fs::open(made(&homes)).unwrap().durable(true)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_directory_keeps_the_contract() {
    let homes = Mutex::default();
    for prefix in ["s3://x/", "", "呼 叫"] {
        conformance(async || Fs::open(made(&homes)).unwrap().shown_as(prefix)).await;
    }
}

#[test]
fn both_forms_of_a_location_resolve() {
    let home = tempfile::tempdir().unwrap();
    let plain = Fs::open(home.path()).unwrap();
    let shown = plain.clone().shown_as(".offcut");
    let call = key("trunc/call_1");
    let absolute = home
        .path()
        .canonicalize()
        .unwrap()
        .join("trunc")
        .join("call_1");
    if cfg!(unix) {
        assert_eq!(plain.locate(&call).as_str(), absolute.to_str().unwrap());
    }
    assert_eq!(shown.locate(&call).as_str(), ".offcut/trunc/call_1");
    assert_eq!(
        shown.resolve(plain.locate(&call).as_str()),
        Some(call.clone())
    );
    assert_eq!(shown.resolve(".offcut/trunc/call_1"), Some(call));
    assert_eq!(plain.resolve(".offcut/trunc/call_1"), None);
    let root = plain
        .locate(&key("x"))
        .as_str()
        .strip_suffix("/x")
        .unwrap()
        .to_owned();
    for hostile in [
        "x/trunc/call_1",
        "/../trunc/call_1",
        "/.staging/.0123456789abcdef",
        "//trunc/call_1",
        "/",
        "",
    ] {
        assert_eq!(
            shown.resolve(&format!("{root}{hostile}")),
            None,
            "{hostile:?}"
        );
    }
}

#[test]
fn a_location_that_fits_both_forms_is_the_shown_one() {
    let home = tempfile::tempdir().unwrap();
    let store = Fs::open(home.path().join("store")).unwrap();
    let absolute = store.locate(&key("x"));
    let above = absolute.as_str().strip_suffix("/store/x").unwrap();
    let store = store.shown_as(above);
    let inner = key("store/trunc/call_1");
    assert_eq!(store.resolve(store.locate(&inner).as_str()), Some(inner));
}

#[tokio::test]
async fn a_process_that_was_killed_leaves_nothing_to_see() {
    let home = tempfile::tempdir().unwrap();
    let staging = home.path().join(".staging");
    std::fs::create_dir(&staging).unwrap();
    std::fs::write(staging.join(".0123456789abcdef"), "half of").unwrap();
    std::fs::write(home.path().join("a file of somebody else's"), "hello").unwrap();
    let store = Fs::open(home.path()).unwrap();
    assert!(listed(&store).await.is_empty());
    store
        .put(&key("trunc/call_1"), "content".into())
        .await
        .unwrap();
    assert_eq!(
        listed(&store).await,
        BTreeMap::from([("trunc/call_1".to_owned(), 7)])
    );
    assert_eq!(
        names_in(&staging),
        [".0123456789abcdef"],
        "it may belong to a process that lives"
    );
}

/// A runtime ends only after its blocking calls. By then, dropped calls must have left no file.
#[test]
fn dropped_calls_leave_no_staging_file() {
    let home = tempfile::tempdir().unwrap();
    let store = Fs::open(home.path()).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let large = Bytes::from(vec![1; 4 << 20]);
        for round in 0..20 {
            let mut writer = store.writer().await.unwrap();
            writer.write(large.clone()).await.unwrap();
            // Polled once, then dropped.
            _ = writer.write(large.clone()).now_or_never();
            drop(writer);
            _ = store
                .put(&key(&format!("trunc/call_{round}")), large.clone())
                .now_or_never();
            _ = store.writer().now_or_never();
            let mut writer = store.writer().await.unwrap();
            writer.write("small".into()).await.unwrap();
            _ = writer.finish(&key("trunc/small")).now_or_never();
            drop(writer);
        }
    });
    drop(runtime);
    assert!(names_in(&home.path().join(".staging")).is_empty());
    let files = names_in(&home.path().join("trunc"));
    for file in files.iter().filter(|file| *file != "small") {
        assert_eq!(
            home.path()
                .join("trunc")
                .join(file)
                .metadata()
                .unwrap()
                .len(),
            4 << 20
        );
    }
}

#[test]
fn a_writer_whose_call_was_dropped_is_an_error_not_a_shorter_content() {
    // The only blocking thread is kept busy, so the write can't be done when its call is dropped.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(1)
        .build()
        .unwrap();
    runtime.block_on(async {
        let home = tempfile::tempdir().unwrap();
        let store = Fs::open(home.path()).unwrap();
        let mut writer = store.writer().await.unwrap();
        writer.write("kept".into()).await.unwrap();
        let (release, held) = std::sync::mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || held.recv());
        assert!(
            writer
                .write(vec![1; 1 << 20].into())
                .now_or_never()
                .is_none()
        );
        drop(release);
        assert!(writer.write("more".into()).await.is_err());
        assert_eq!(writer.read(0..4).await.unwrap(), "kept");
        assert!(writer.finish(&key("trunc/call_1")).await.is_err());
        assert!(listed(&store).await.is_empty());
    });
}

#[test]
fn two_handles_race_and_lose_nothing() {
    const THREADS: usize = 16;
    const KEYS: usize = 40;
    let home = tempfile::tempdir().unwrap();
    let handles = [
        Fs::open(home.path()).unwrap(),
        Fs::open(home.path()).unwrap(),
    ];
    let start = std::sync::Barrier::new(THREADS);
    let race = |thread: usize| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let store = &handles[thread % 2];
        let mut answers = Vec::new();
        for number in 0..KEYS {
            start.wait();
            let key = key(&format!("race-{number}/trunc/call_1"));
            let put = runtime.block_on(store.put(&key, vec![thread as u8; 10_000].into()));
            answers.push((put, runtime.block_on(store.read(&key, 0..u64::MAX))));
        }
        answers
    };
    // Checked after the threads have ended: an earlier panic would leave the others at the barrier.
    let answers: Vec<_> = std::thread::scope(|scope| {
        let race = &race;
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || race(thread)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let mut stored = [0; KEYS];
    for (thread, answers) in answers.into_iter().enumerate() {
        for (number, (put, page)) in answers.into_iter().enumerate() {
            let (put, page) = (put.unwrap(), page.unwrap());
            assert_eq!((page.bytes.len(), page.total), (10_000, 10_000));
            let mine = page.bytes.iter().all(|byte| usize::from(*byte) == thread);
            assert_eq!(
                put,
                if mine {
                    PutOutcome::Stored
                } else {
                    PutOutcome::Taken
                }
            );
            stored[number] += usize::from(put == PutOutcome::Stored);
        }
    }
    assert_eq!(stored, [1; KEYS]);
    assert!(names_in(&home.path().join(".staging")).is_empty());
}

#[tokio::test]
async fn directories_may_be_removed_meanwhile() {
    let home = tempfile::tempdir().unwrap();
    let store = Fs::open(home.path()).unwrap().durable(true);
    for round in 0..3 {
        let call = key("s-1/trunc/call_1");
        assert_eq!(
            store.put(&call, "content".into()).await.unwrap(),
            PutOutcome::Stored,
            "round {round}"
        );
        std::fs::remove_dir_all(home.path().join("s-1")).unwrap();
        std::fs::remove_dir_all(home.path().join(".staging")).unwrap();
        assert_eq!(
            store.read(&call, 0..1).await.unwrap_err().kind(),
            ErrorKind::NotFound
        );
    }
    std::fs::remove_dir_all(home.path()).unwrap();
    let stored = store.put(&key("trunc/call_1"), "content".into()).await;
    assert_eq!(stored.unwrap(), PutOutcome::Stored);
    assert_eq!(content(&store, "trunc/call_1").await, "content");
}

#[test]
fn a_root_that_is_a_file_says_so() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    std::fs::write(&file, "mine").unwrap();
    for path in [file.clone(), file.join("below")] {
        let error = Fs::open(&path).unwrap_err();
        assert!(error.to_string().contains("not a directory"), "{error}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    assert!(Fs::open("").is_err());
}

#[tokio::test]
async fn sweeping_leaves_no_directories_and_no_staging_files() {
    let home = tempfile::tempdir().unwrap();
    let store = Fs::open(home.path()).unwrap();
    store
        .put(&key("a/b/trunc/call_1"), "one".into())
        .await
        .unwrap();
    store
        .put(&key("a/trunc/call_2"), "two".into())
        .await
        .unwrap();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    store.remove(&key("a/b/trunc/call_1"), later).await.unwrap();
    assert!(!home.path().join("a/b").exists() && home.path().join("a/trunc").exists());

    let staging = home.path().join(".staging");
    let (old, new) = (staging.join(".old"), staging.join(".new"));
    std::fs::write(&old, "left by a process that was killed").unwrap();
    std::fs::write(&new, "written to now").unwrap();
    std::fs::create_dir(staging.join("folder")).unwrap();
    let now = std::time::SystemTime::now();
    let day = std::time::Duration::from_secs(86_400);
    std::fs::File::options()
        .write(true)
        .open(&old)
        .unwrap()
        .set_modified(now - 2 * day)
        .unwrap();
    assert_eq!(store.tidy(now - day).await.unwrap(), 1);
    assert!(!old.exists() && new.exists());
    assert_eq!(
        Fs::open(home.path().join("empty"))
            .unwrap()
            .tidy(now)
            .await
            .unwrap(),
        0
    );
}

/// Two sweeps that have listed the same content, and an agent that stores it again in between.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn w5_sweeps_in_turn_remove_only_what_is_old() {
    use std::time::{Duration, SystemTime};
    let home = tempfile::tempdir().unwrap();
    let store = Fs::open(home.path()).unwrap();
    let call = key("trunc/call_1");
    let age = |hours: u64| {
        let file = std::fs::File::options()
            .write(true)
            .open(home.path().join("trunc/call_1"))
            .unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(hours * 3_600))
            .unwrap();
    };
    let before = SystemTime::now() - Duration::from_secs(48 * 3_600);
    for _ in 0..200 {
        store.put(&call, "old".into()).await.unwrap();
        age(49);
        let sweep = || {
            let (store, call) = (store.clone(), call.clone());
            tokio::spawn(async move {
                for _ in 0..4 {
                    store.remove(&call, before).await.unwrap();
                }
            })
        };
        let sweeps = [sweep(), sweep()];
        while store.put(&call, "new".into()).await.unwrap() == PutOutcome::Taken {}
        for sweep in sweeps {
            sweep.await.unwrap();
        }
        assert_eq!(store.read(&call, 0..9).await.unwrap().bytes, "new");
        age(49);
        store.remove(&call, before).await.unwrap();
    }
}

#[tokio::test]
async fn a_stream_is_as_new_as_its_end() {
    use std::time::{Duration, SystemTime};
    let home = tempfile::tempdir().unwrap();
    let store = Fs::open(home.path()).unwrap();
    let mut writer = store.writer().await.unwrap();
    writer.write(vec![7; 3 << 20].into()).await.unwrap();
    assert_eq!(writer.read(0..1).await.unwrap().len(), 1);
    let day = Duration::from_secs(86_400);
    for staged in std::fs::read_dir(home.path().join(".staging")).unwrap() {
        let file = std::fs::File::options()
            .write(true)
            .open(staged.unwrap().path())
            .unwrap();
        file.set_modified(SystemTime::now() - 2 * day).unwrap();
    }
    writer.finish(&key("trunc/call_1")).await.unwrap();
    let page = store.read(&key("trunc/call_1"), 0..0).await.unwrap();
    assert!(page.stored_at > SystemTime::now() - day);
}

#[cfg(unix)]
#[tokio::test]
async fn links_are_not_tidied() {
    let home = tempfile::tempdir().unwrap();
    let store = Fs::open(home.path()).unwrap();
    store
        .put(&key("s1/trunc/call_1"), "one".into())
        .await
        .unwrap();
    let link = home.path().join("s1/trunc/link");
    std::os::unix::fs::symlink("call_1", &link).unwrap();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    store.remove(&key("s1/trunc/link"), later).await.unwrap();
    store.remove(&key("s1/trunc/call_1"), later).await.unwrap();
    assert!(link.is_symlink());
}
