//! The contract of a store, and tests beyond it.

use std::time::{Duration, SystemTime};

use offcut::agent::Tool;
use offcut::backend::{Backend, Key, PutOutcome};
use offcut::{ToolCall, ToolReduction};
use offcut_testkit::backend::conformance;

use crate::store::Sqlite;

#[tokio::test(flavor = "multi_thread")]
async fn keeps_the_contract() {
    let home = tempfile::tempdir().unwrap();
    let made = std::sync::atomic::AtomicUsize::new(0);
    conformance(async || {
        let nth = made.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Sqlite::open(home.path().join(format!("{nth}.db"))).unwrap()
    })
    .await;
}

/// Two connections see each other's content as two processes would.
#[tokio::test(flavor = "multi_thread")]
async fn only_one_of_two_connections_stores() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("store.db");
    let (one, two) = (Sqlite::open(&path).unwrap(), Sqlite::open(&path).unwrap());
    for round in 0..50 {
        let key = Key::new(format!("trunc/call_{round}")).unwrap();
        let (first, second) =
            tokio::join!(one.put(&key, "one".into()), two.put(&key, "two".into()));
        let mut both = [first.unwrap(), second.unwrap()];
        both.sort_by_key(|put| *put == PutOutcome::Taken);
        assert_eq!(both, [PutOutcome::Stored, PutOutcome::Taken]);
    }
}

#[tokio::test]
async fn results_are_read_back_by_the_next_process() {
    let home = tempfile::tempdir().unwrap();
    let open = || {
        let store = Sqlite::open(home.path().join("store.db")).unwrap();
        ToolReduction::recommended(store).build().unwrap()
    };
    let grep = ToolCall::new("call_1", "grep", "{}");
    let result: String = (1..=3_000)
        .map(|n| format!("src/a.rs:{n}: line {n}\n"))
        .collect();
    let shown = open().truncate(&grep, result.as_str()).await.unwrap();
    let location = shown.report.decisions[0].locations[0].to_string();
    assert!(location.starts_with("sqlite:") && location.ends_with("store.db/trunc/call_1"));

    let arguments = format!("{{\"path\": {location:?}, \"pattern\": \"line 2345$\"}}");
    let reader = open().read_file_tool();
    let page = reader
        .call(&ToolCall::new("call_2", "read_file", arguments))
        .await
        .unwrap();
    let (parts, _) = page.into_parts().await;
    assert!(format!("{parts:?}").contains("src/a.rs:2345: line 2345"));
}

#[tokio::test]
async fn tidying_removes_leftovers_of_processes() {
    let home = tempfile::tempdir().unwrap();
    let store = Sqlite::open(home.path().join("store.db")).unwrap();
    let mut writer = store.writer().await.unwrap();
    writer.write(vec![7; 1 << 20].into()).await.unwrap();
    // As if the process had ended here: nothing is dropped.
    std::mem::forget(writer);
    let later = SystemTime::now() + Duration::from_secs(3600);
    assert_eq!(
        store.tidy(later - Duration::from_secs(7200)).await.unwrap(),
        0
    );
    assert_eq!(store.tidy(later).await.unwrap(), 1);
    assert_eq!(store.tidy(later).await.unwrap(), 0);
}

#[cfg(unix)]
#[test]
fn the_database_is_private_to_its_user() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("store.db");
    let _store = Sqlite::open(&path).unwrap();
    for entry in std::fs::read_dir(home.path()).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
    }
}

#[test]
fn errors_say_what_to_do() {
    let home = tempfile::tempdir().unwrap();
    let missing = Sqlite::open(home.path().join("none/store.db")).unwrap_err();
    assert!(
        missing.to_string().contains("create its folder"),
        "{missing}"
    );
    std::fs::write(home.path().join("text"), "not a database. ".repeat(100)).unwrap();
    let text = Sqlite::open(home.path().join("text")).unwrap_err();
    assert!(
        text.to_string().contains("not an SQLite database"),
        "{text}"
    );
    #[cfg(unix)]
    {
        let hostile = Sqlite::open(home.path().join("a\x1b[31m.db")).unwrap_err();
        assert!(!hostile.to_string().contains('\x1b'), "{hostile}");
    }
}
