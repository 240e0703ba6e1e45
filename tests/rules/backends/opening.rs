//! Opening writes nothing: a broken store opens and reads, and fails only when it must store.

use std::path::Path;

use offcut::backend::{Backend, BackendError, ErrorKind, Fs, PutOutcome};
use offcut::report::{Outcome, Reason};
use offcut::{ToolCall, ToolReduction};

use super::fs::names_in;
use super::{content, key, listed};
#[cfg(unix)]
use crate::mount::in_a_mount;

/// Starts an agent: opens its store, begins a session and truncates a long result.
async fn outcome_of_a_long_result(at: &Path, id: &str) -> (Outcome, String) {
    let reduction = ToolReduction::recommended(Fs::open(at).unwrap())
        .build()
        .unwrap();
    let long = format!("{id}\n").repeat(20_000);
    let session = reduction.session("chat");
    let shown = session
        .truncate(&ToolCall::new(id, "grep", "{}"), long.clone())
        .await
        .unwrap();
    let decision = &shown.report.decisions[0];
    if decision.outcome == Outcome::Kept(Reason::StoreFailed) {
        assert_eq!(shown.text(), long, "it stays in the context");
    }
    (decision.outcome, decision.error.clone().unwrap_or_default())
}

async fn put(store: &Fs, path: &str, content: &str) -> Result<PutOutcome, BackendError> {
    store.put(&key(path), content.to_owned().into()).await
}

async fn stream(store: &Fs, path: &str, content: &str) -> Result<PutOutcome, BackendError> {
    let mut writer = store.writer().await?;
    writer.write(content.to_owned().into()).await?;
    writer.finish(&key(path)).await
}

#[tokio::test]
async fn o2_opening_writes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let (at, call) = (home.path().join("some/new/store"), key("trunc/call_1"));
    let store = Fs::open(&at).unwrap();
    store.check().await.unwrap();
    assert!(listed(&store).await.is_empty());
    assert_eq!(
        store.read(&call, 0..1).await.unwrap_err().kind(),
        ErrorKind::NotFound
    );
    store
        .remove(&call, std::time::SystemTime::now())
        .await
        .unwrap();
    assert_eq!(store.tidy(std::time::SystemTime::now()).await.unwrap(), 0);
    assert!(names_in(home.path()).is_empty());

    let location = store.locate(&call);
    let other = Fs::open(&at).unwrap();
    assert_eq!(
        put(&store, "trunc/call_1", "content").await.unwrap(),
        PutOutcome::Stored
    );
    assert_eq!(
        std::fs::read(location.as_str()).unwrap(),
        b"content",
        "named as it was before it was there"
    );
    assert_eq!(
        content(&other, "trunc/call_1").await,
        "content",
        "who opened it before sees it too"
    );
    assert_eq!(names_in(&at.join(".staging")), [""; 0]);
}

#[tokio::test]
async fn o2_checking_leaves_nothing_behind() {
    let home = tempfile::tempdir().unwrap();
    Fs::open(home.path()).unwrap().check().await.unwrap();
    Fs::open(home.path().join("not/there"))
        .unwrap()
        .check()
        .await
        .unwrap();
    assert!(names_in(home.path()).is_empty());
}

#[cfg(unix)]
#[test]
fn o2_a_store_opens_on_a_full_disk() {
    let name = "backends::opening::o2_a_store_opens_on_a_full_disk";
    let Some(at) = in_a_mount(name, "mount -t tmpfs -o size=1m none $AT") else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (path, new) = (at.join("store"), at.join("new"));
        put(&Fs::open(&path).unwrap(), "trunc/call_1", "before")
            .await
            .unwrap();
        _ = std::fs::write(at.join("filler"), vec![0; 2_000_000]);

        let (store, other) = (Fs::open(&path).unwrap(), Fs::open(&new).unwrap());
        assert_eq!(content(&store, "trunc/call_1").await, "before");
        assert!(matches!(
            put(&store, "trunc/call_1", "before").await.unwrap(),
            PutOutcome::AlreadyThere { .. }
        ));
        for store in [&store, &other] {
            for error in [
                put(store, "trunc/call_2", "more").await.unwrap_err(),
                stream(store, "trunc/call_2", "more").await.unwrap_err(),
                store.check().await.unwrap_err(),
            ] {
                assert_eq!(error.kind(), ErrorKind::Full, "{error}");
                assert!(error.to_string().contains("free some"), "{error}");
            }
            assert_eq!(
                listed(store).await.len(),
                usize::from(store.path() == path.join("")),
                "{store:?}"
            );
        }
        for path in [&path, &new] {
            let (outcome, error) = outcome_of_a_long_result(path, "call_3").await;
            assert_eq!(outcome, Outcome::Kept(Reason::StoreFailed));
            assert!(error.contains("no space is left"), "{error}");
        }

        std::fs::remove_file(at.join("filler")).unwrap();
        for store in [&store, &other] {
            store.check().await.unwrap();
            assert_eq!(
                put(store, "trunc/call_2", "more").await.unwrap(),
                PutOutcome::Stored,
                "all goes on"
            );
        }
        assert_eq!(
            outcome_of_a_long_result(&new, "call_3").await.0,
            Outcome::Truncated
        );
    });
}

#[cfg(unix)]
#[test]
fn o2_a_store_opens_on_a_read_only_file_system() {
    let name = "backends::opening::o2_a_store_opens_on_a_read_only_file_system";
    let mount = "mount -t tmpfs -o size=1m none $AT && mkdir -p $AT/store/trunc && printf before > $AT/store/trunc/call_1 \
                 && mount -o bind,remount,ro $AT";
    let Some(at) = in_a_mount(name, mount) else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (store, new) = (
            Fs::open(at.join("store")).unwrap(),
            Fs::open(at.join("new")).unwrap(),
        );
        assert_eq!(content(&store, "trunc/call_1").await, "before");
        assert!(matches!(
            put(&store, "trunc/call_1", "before").await.unwrap(),
            PutOutcome::AlreadyThere { .. }
        ));
        assert!(listed(&new).await.is_empty());
        for store in [&store, &new] {
            for error in [
                put(store, "trunc/call_2", "more").await.unwrap_err(),
                store.writer().await.unwrap_err(),
                store.check().await.unwrap_err(),
            ] {
                assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
                assert!(error.to_string().contains("read-only"), "{error}");
            }
        }
        for path in ["store", "new"] {
            let (outcome, error) = outcome_of_a_long_result(&at.join(path), "call_3").await;
            assert_eq!(outcome, Outcome::Kept(Reason::StoreFailed));
            assert!(error.contains("read-only"), "{error}");
        }
    });
}

#[cfg(unix)]
#[tokio::test]
async fn o2_a_store_opens_without_permission() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("store");
    let allow =
        |mode: u32| std::fs::set_permissions(&root, PermissionsExt::from_mode(mode)).unwrap();
    std::fs::create_dir(&root).unwrap();
    allow(0o500);
    if std::fs::write(root.join("probe"), "").is_ok() {
        eprintln!(
            "SKIPPED o2_a_store_opens_without_permission: this user may write everywhere (root?)"
        );
        return;
    }
    for mode in [0o500, 0o000] {
        allow(mode);
        let (store, below) = (
            Fs::open(&root).unwrap(),
            Fs::open(root.join("below")).unwrap(),
        );
        for store in [&store, &below] {
            for error in [
                put(store, "trunc/call_1", "content").await.unwrap_err(),
                store.writer().await.unwrap_err(),
                store.check().await.unwrap_err(),
            ] {
                assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
            }
        }
        allow(0o700);
        for store in [&store, &below] {
            let name = format!("trunc/call_{mode}");
            assert_eq!(
                put(store, &name, "content").await.unwrap(),
                PutOutcome::Stored,
                "all goes on"
            );
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn l1_content_goes_where_the_path_leads() {
    let home = tempfile::tempdir().unwrap();
    let (path, away) = (home.path().join("store"), home.path().join("away"));
    std::fs::create_dir(&path).unwrap();
    let store = Fs::open(&path).unwrap();
    put(&store, "trunc/call_1", "before").await.unwrap();
    let mut writer = store.writer().await.unwrap();
    writer.write("written before".into()).await.unwrap();

    std::fs::rename(&path, &away).unwrap();
    store.check().await.unwrap();
    let error = store.read(&key("trunc/call_1"), 0..9).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    for (name, now) in [("trunc/call_1", "new"), ("trunc/call_2", "newer")] {
        assert_eq!(put(&store, name, now).await.unwrap(), PutOutcome::Stored);
        assert_eq!(content(&store, name).await, now);
    }
    assert_eq!(
        writer.finish(&key("trunc/call_3")).await.unwrap(),
        PutOutcome::Stored
    );
    assert_eq!(content(&store, "trunc/call_3").await, "written before");
    assert_eq!(
        names_in(&path.join("trunc")),
        ["call_1", "call_2", "call_3"]
    );
    assert_eq!(std::fs::read(away.join("trunc/call_1")).unwrap(), b"before");
    assert_eq!(names_in(&away.join(".staging")), [""; 0]);
}

/// A hard link can't lead to another file system.
#[cfg(unix)]
#[test]
fn l1_a_stream_whose_directory_was_mounted_over_stays_readable() {
    let name = "backends::opening::l1_a_stream_whose_directory_was_mounted_over_stays_readable";
    let Some(at) = in_a_mount(name, "mount -t tmpfs -o size=1m none $AT") else {
        return;
    };
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let store = Fs::open(at.join("store")).unwrap();
        let mut writer = store.writer().await.unwrap();
        writer.write("written before".into()).await.unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1m", "none"])
            .arg(at.join("store"))
            .status()
            .unwrap();
        assert!(mounted.success());
        let error = writer.finish(&key("trunc/call_1")).await.unwrap_err();
        assert!(error.to_string().contains("call_1 failed"), "{error}");
        assert_eq!(writer.read(0..100).await.unwrap(), "written before");
        assert!(names_in(&at.join("store/trunc")).is_empty());
    });
}

#[cfg(unix)]
#[tokio::test]
async fn l6_a_link_in_place_of_the_store_is_not_followed() {
    let (home, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = Fs::open(home.path().join("deep/store")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), home.path().join("deep")).unwrap();
    let error = put(&store, "trunc/call_1", "content").await.unwrap_err();
    assert!(
        error.to_string().contains("a symbolic link leads out"),
        "{error}"
    );
    assert!(listed(&store).await.is_empty());
    assert!(names_in(elsewhere.path()).is_empty());
}
