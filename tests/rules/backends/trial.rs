//! Trying out the stores of a reduction: what can't be written to or read back is found at once.

use offcut::ToolReduction;
use offcut::backend::{Backend, BackendError, ErrorKind, Memory};
use offcut_testkit::{Fault, Faulty};

use super::{content, listed};
#[cfg(all(unix, feature = "fs"))]
use crate::mount::in_a_mount;

/// The name of what a trial stores, for a session `chat` within the root `agents`.
const PROBE: &str = "agents/chat/meta/check-6db44dcd67b620b7";

fn reduction(store: impl Backend) -> ToolReduction {
    let builder = ToolReduction::recommended(store).root_dir("agents");
    builder.build().unwrap().session("chat")
}

/// Puts a fault into a store.
type BreakStore = fn(&Faulty<Memory>);

async fn error_of(store: impl Backend) -> BackendError {
    reduction(store).check_stores().await.unwrap_err()
}

#[tokio::test]
async fn o2_a_store_is_tried_out_under_the_prefix_in_use() {
    let store = Memory::named("t").unwrap();
    let reduction = reduction(store.clone());
    for _ in 0..2 {
        reduction.check_stores().await.unwrap();
        let listed: Vec<_> = listed(&store).await.into_keys().collect();
        assert_eq!(listed, [PROBE], "however often it is tried out");
    }
    assert!(content(&store, PROBE).await.starts_with(b"Offcut"));
    let at = store.locate(&super::key(PROBE));
    assert!(
        reduction.read_original(&at).await.is_none(),
        "no content of the session"
    );
}

#[tokio::test]
async fn o2_the_stores_of_single_tools_are_tried_out_too() {
    let other = Faulty::new(Memory::named("grep").unwrap());
    other.fault_on_every_write(Fault::Fail(ErrorKind::Full));
    let reduction = ToolReduction::recommended(Memory::named("t").unwrap())
        .tool("grep", offcut::ToolPolicy::new().backend(other))
        .build()
        .unwrap();
    let error = reduction.check_stores().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Full);
    assert!(
        error
            .to_string()
            .starts_with("the store memory://grep/ failed when it was tried out: "),
        "{error}"
    );
}

#[tokio::test]
async fn o2_without_a_backend_there_is_nothing_to_try_out() {
    let reduction = ToolReduction::builder()
        .skip_truncation(true)
        .build()
        .unwrap();
    reduction.check_stores().await.unwrap();
}

#[tokio::test]
async fn o2_any_failure_of_storing_and_reading_is_found() {
    let faults: [(&str, BreakStore); 4] = [
        ("put", |store| {
            store.fault_on_write(1, Fault::Fail(ErrorKind::Denied));
        }),
        ("a chunk of a writer", |store| {
            store.fault_on_chunk(1, Fault::Fail(ErrorKind::Denied));
        }),
        ("a writer's end", |store| {
            store.fault_on_write(2, Fault::Fail(ErrorKind::Denied));
        }),
        ("reading", |store| {
            store.fault_on_every_read(Fault::Fail(ErrorKind::Denied));
        }),
    ];
    for (what, fault) in faults {
        let store = Faulty::new(Memory::named("t").unwrap());
        fault(&store);
        let error = error_of(store.clone()).await;
        assert_eq!(error.kind(), ErrorKind::Denied, "{what}: {error}");
        store.heal();
        reduction(store).check_stores().await.unwrap();
    }
}

#[tokio::test]
async fn o2_other_content_under_the_probes_key_is_named() {
    let store = Memory::named("t").unwrap();
    let probe = super::key(PROBE);
    store.put(&probe, "something else".into()).await.unwrap();
    let error = error_of(store).await.to_string();
    assert!(
        error.contains(PROBE) && error.contains("remove it"),
        "{error}"
    );
}

/// A store that has the content already finds that out without writing.
#[cfg(all(unix, feature = "fs"))]
#[test]
fn o2_a_directory_that_became_read_only_is_found() {
    use offcut::backend::Fs;

    let name = "backends::trial::o2_a_directory_that_became_read_only_is_found";
    let Some(at) = in_a_mount(name, "mount -t tmpfs -o size=1m none $AT") else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let path = at.join("store");
        reduction(Fs::open(&path).unwrap())
            .check_stores()
            .await
            .unwrap();
        let mut remount = std::process::Command::new("mount");
        remount.args(["-o", "remount,ro"]).arg(&at);
        assert!(remount.status().unwrap().success());
        let error = error_of(Fs::open(&path).unwrap()).await;
        assert_eq!(error.kind(), ErrorKind::Denied);
        let said = error.to_string();
        assert!(said.contains(path.to_str().unwrap()), "{said}");
        assert!(
            said.contains("choose a directory that can be written to"),
            "{said}"
        );
    });
}

#[cfg(all(target_os = "linux", feature = "fs"))]
#[tokio::test]
async fn o2_a_directory_that_cannot_be_made_is_named() {
    use offcut::backend::Fs;

    // Not by root either.
    let store = Fs::open("/proc/nope/deep").unwrap();
    for error in [
        store
            .put(&super::key("trunc/call_1"), "x".into())
            .await
            .unwrap_err(),
        store.writer().await.unwrap_err(),
        store.check().await.unwrap_err(),
        error_of(store.clone()).await,
    ] {
        let said = error.to_string();
        assert!(
            said.contains("/proc/nope/deep") && said.contains("its directory can't be made there"),
            "{said}"
        );
    }
}
