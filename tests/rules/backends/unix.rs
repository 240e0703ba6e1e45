//! The store in a directory on Unix: modes, links, and file systems mounted for a test.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use bytes::Bytes;
use futures_util::StreamExt;
use offcut::backend::{Backend, ErrorKind, Fs, PutOutcome};

use super::fs::names_in;
use super::{content, key, listed};
use crate::mount::in_a_mount;

#[tokio::test]
async fn files_and_directories_are_private() {
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("parent/store");
    let store = Fs::open(&root).unwrap();
    store
        .put(&key("s-1/trunc/call_1"), "content".into())
        .await
        .unwrap();
    for directory in ["", "..", ".staging", "s-1", "s-1/trunc"] {
        assert_eq!(mode(&root.join(directory)), 0o700, "{directory:?}");
    }
    assert_eq!(mode(&root.join("s-1/trunc/call_1")), 0o600);
}

#[tokio::test]
async fn a_root_that_is_a_link_is_resolved_once() {
    let home = tempfile::tempdir().unwrap();
    let (real, other, link) = (
        home.path().join("real"),
        home.path().join("other"),
        home.path().join("link"),
    );
    std::fs::create_dir(&real).unwrap();
    std::fs::create_dir(&other).unwrap();
    symlink(&real, &link).unwrap();
    let store = Fs::open(&link).unwrap();
    std::fs::remove_file(&link).unwrap();
    symlink(&other, &link).unwrap();
    store
        .put(&key("trunc/call_1"), "content".into())
        .await
        .unwrap();
    assert_eq!(
        std::fs::read(real.join("trunc/call_1")).unwrap(),
        b"content"
    );
    assert!(names_in(&other).is_empty());
    let real = real.canonicalize().unwrap();
    assert_eq!(
        store.locate(&key("x")).as_str(),
        real.join("x").to_str().unwrap()
    );
    let dangling = home.path().join("dangling");
    symlink(home.path().join("nowhere"), &dangling).unwrap();
    assert!(Fs::open(&dangling).is_err());
    assert!(!home.path().join("nowhere").exists());
}

#[test]
fn o2_a_root_that_no_hint_can_show_is_refused_and_not_made() {
    use std::os::unix::ffi::OsStrExt;
    let home = tempfile::tempdir().unwrap();
    for name in [&b"\xff"[..], b"two\nlines"] {
        for path in [
            home.path().join(std::ffi::OsStr::from_bytes(name)),
            home.path().join("a").join("\u{1b}[2J"),
        ] {
            // Some file systems refuse such names themselves, which is an error too.
            let error = Fs::open(path).unwrap_err().to_string();
            assert!(
                error.contains("opening the store") && !error.contains(char::is_control),
                "{error:?}"
            );
        }
    }
    assert!(names_in(home.path()).is_empty());
}

#[tokio::test]
async fn l6_links_to_directories_are_not_followed() {
    let home = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::write(elsewhere.path().join("secret"), "secret").unwrap();
    let store = Fs::open(home.path()).unwrap();
    symlink(elsewhere.path(), home.path().join("trunc")).unwrap();
    symlink("../..", home.path().join("up")).unwrap();
    for path in [
        "trunc/call_1",
        "trunc/deep/er/call_1",
        "trunc/secret",
        "up/call_1",
    ] {
        let call = key(path);
        let error = store.put(&call, "content".into()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{path}: {error}");
        assert!(error.to_string().contains("symbolic link"), "{error}");
        let mut writer = store.writer().await.unwrap();
        writer.write("content".into()).await.unwrap();
        assert!(writer.finish(&call).await.is_err());
        assert!(store.read(&call, 0..100).await.is_err());
    }
    assert!(listed(&store).await.is_empty());
    assert_eq!(names_in(elsewhere.path()), ["secret"]);
    assert_eq!(
        std::fs::read(elsewhere.path().join("secret")).unwrap(),
        b"secret"
    );
    assert!(names_in(&home.path().join(".staging")).is_empty());
}

#[tokio::test]
async fn l1_a_link_to_another_directory_of_the_store_is_not_listed_as_nothing() {
    let home = tempfile::tempdir().unwrap();
    let store = Fs::open(home.path()).unwrap();
    store
        .put(&key("s1/trunc/call_1"), "one".into())
        .await
        .unwrap();
    symlink("s1", home.path().join("s2")).unwrap();
    // Its key differs from the one it would be listed under, so it would be impossible to tell what
    // is live.
    assert_eq!(
        store
            .put(&key("s2/trunc/call_2"), "two".into())
            .await
            .unwrap(),
        PutOutcome::Stored
    );
    let entries: Vec<_> = store.list().collect().await;
    let (found, failed): (Vec<_>, Vec<_>) = entries.into_iter().partition(Result::is_ok);
    let mut found: Vec<_> = found
        .into_iter()
        .map(|entry| entry.unwrap().key.to_string())
        .collect();
    found.sort();
    assert_eq!(
        found,
        ["s1/trunc/call_1", "s1/trunc/call_2"],
        "and the rest of the store is listed"
    );
    let error = failed.into_iter().next().unwrap().unwrap_err().to_string();
    assert!(
        error.contains("`s2` is a symbolic link to another directory of the store"),
        "{error}"
    );
}

#[tokio::test]
async fn l6_only_regular_files_are_read_or_replaced() {
    let home = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let secret = elsewhere.path().join("secret");
    std::fs::write(&secret, "secret").unwrap();
    let store = Fs::open(home.path()).unwrap();
    store
        .put(&key("trunc/call_1"), "content".into())
        .await
        .unwrap();
    let trunc = home.path().join("trunc");
    symlink(&secret, trunc.join("out")).unwrap();
    symlink("call_1", trunc.join("in")).unwrap();
    symlink(elsewhere.path().join("new"), trunc.join("dangling")).unwrap();
    symlink("loop", trunc.join("loop")).unwrap();
    std::fs::create_dir(trunc.join("directory")).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(trunc.join("pipe"))
            .status()
            .unwrap()
            .success()
    );
    for name in ["out", "in", "dangling", "loop", "directory", "pipe"] {
        let call = key(&format!("trunc/{name}"));
        for content in ["secret", "content", "other"] {
            assert_eq!(
                store.put(&call, content.into()).await.unwrap(),
                PutOutcome::Taken,
                "{name}"
            );
            let mut writer = store.writer().await.unwrap();
            writer.write(content.into()).await.unwrap();
            assert_eq!(
                writer.finish(&call).await.unwrap(),
                PutOutcome::Taken,
                "{name}"
            );
        }
        let error = store.read(&call, 0..100).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{name}: {error}");
        let now = trunc.join(name).symlink_metadata().unwrap();
        assert!(!now.is_file(), "{name} was replaced");
    }
    assert_eq!(
        listed(&store).await.into_keys().collect::<Vec<_>>(),
        ["trunc/call_1"]
    );
    assert_eq!(names_in(elsewhere.path()), ["secret"]);
    assert_eq!(std::fs::read(&secret).unwrap(), b"secret");
}

#[tokio::test]
async fn l6_a_staging_directory_that_leads_out_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    symlink(elsewhere.path(), home.path().join(".staging")).unwrap();
    let store = Fs::open(home.path()).unwrap();
    for error in [
        store.check().await.unwrap_err(),
        store.put(&key("trunc/a"), "a".into()).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    }
    assert!(names_in(elsewhere.path()).is_empty());
}

#[test]
fn l1_a_full_disk_loses_nothing() {
    let Some(at) = in_a_mount(
        "backends::unix::l1_a_full_disk_loses_nothing",
        "mount -t tmpfs -o size=1m none $AT",
    ) else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = Fs::open(at.join("store")).unwrap();
        let small = Bytes::from(vec![1; 300_000]);
        let large = Bytes::from(vec![2; 2_000_000]);
        assert_eq!(
            store.put(&key("trunc/small"), small.clone()).await.unwrap(),
            PutOutcome::Stored
        );
        let error = store
            .put(&key("trunc/large"), large.clone())
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Full, "{error}");
        assert!(error.to_string().contains("free some"), "{error}");

        let mut writer = store.writer().await.unwrap();
        let error = loop {
            if let Err(error) = writer.write(large.slice(..100_000)).await {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::Full, "{error}");
        assert!(
            writer.finish(&key("trunc/large")).await.is_err(),
            "what is missing must not go unnoticed"
        );
        drop(writer);

        assert_eq!(
            listed(&store).await,
            BTreeMap::from([("trunc/small".to_owned(), 300_000)])
        );
        assert_eq!(content(&store, "trunc/small").await, small);
        let error = store.read(&key("trunc/large"), 0..1).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);

        // The failed write gave its room back, and stored content survives on a full disk.
        assert!(names_in(&at.join("store/.staging")).is_empty());
        assert_eq!(
            store
                .put(&key("trunc/second"), small.slice(1..))
                .await
                .unwrap(),
            PutOutcome::Stored
        );
        _ = std::fs::write(at.join("filler"), &large);
        assert_eq!(
            store
                .put(&key("trunc/third"), small.clone())
                .await
                .unwrap_err()
                .kind(),
            ErrorKind::Full
        );
        assert!(matches!(
            store.put(&key("trunc/small"), small.clone()).await.unwrap(),
            PutOutcome::AlreadyThere { .. }
        ));
        assert_eq!(
            store.put(&key("trunc/small"), large).await.unwrap(),
            PutOutcome::Taken
        );
    });
}
