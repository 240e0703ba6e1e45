//! Names: nothing that a model wrote becomes a path without passing through `Key`, and locations
//! lead back to their keys.

use std::path::{Component, Path};
use std::sync::LazyLock;

use futures_util::StreamExt;
use offcut::backend::{Backend, Fs, Key, Memory};
use offcut::{TokenCounter, ToolCall, ToolReduction};
use tempfile::TempDir;

use crate::laws::block_on;

/// Takes a text as a path, a location, the end of a location, a call id and a session id.
pub(crate) fn key(data: &[u8]) {
    static FILES: LazyLock<(TempDir, Fs)> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        let store = Fs::open(folder.path().join("root")).unwrap();
        (folder, store)
    });
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (memory, files) = (Memory::named("t").unwrap(), &FILES.1);
    let shown = files.clone().shown_as(".offcut");
    for store in [&memory as &dyn Backend, files, &shown] {
        check_locations(store, text);
    }
    if let Ok(key) = Key::new(text) {
        check_path(text);
        assert_eq!(key.as_str(), text);
        assert!(!key.is_addressed_by(&[0xa5; 32]) || text.contains("a5a5a5a5a5a5a5a5"));
    }
    block_on(check_ids(text));
}

/// Checks that the path only leads below its start, on any system.
fn check_path(path: &str) {
    assert!(path.len() <= 900 && path.split('/').count() <= 16);
    assert!(
        Path::new(path)
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
    );
    for name in path.split('/') {
        assert!(
            !name.is_empty() && name.len() <= 240 && !name.starts_with('.') && !name.ends_with('.')
        );
        assert!(
            name.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        );
    }
}

fn check_locations(store: &dyn Backend, text: &str) {
    let known = store.locate(&Key::new("trunc/call_1").unwrap());
    let root = known.as_str().strip_suffix("trunc/call_1").unwrap();
    for location in [
        text.to_owned(),
        format!("{root}{text}"),
        format!("{known}{text}"),
    ] {
        let Some(key) = store.resolve(&location) else {
            continue;
        };
        check_path(key.as_str());
        assert_eq!(store.resolve(store.locate(&key).as_str()), Some(key));
    }
    if let Ok(key) = Key::new(text) {
        assert_eq!(store.resolve(store.locate(&key).as_str()), Some(key));
    }
}

async fn check_ids(id: &str) {
    let store = Memory::new();
    let builder = ToolReduction::builder()
        .backend(store.clone())
        .token_counter(TokenCounter::Estimate);
    let session = builder
        .max_length_for_trunc(3_000)
        .preview_length(0)
        .build()
        .unwrap()
        .session(id);
    let result = "a line that is long enough\n".repeat(200);
    let call = ToolCall::new(id, id, "{}");
    let shown = session.truncate(&call, result.as_str()).await.unwrap();
    let location = &shown.report.decisions[0].locations[0];
    assert_eq!(
        session.read_original(location).await.unwrap().unwrap(),
        result
    );
    let stored: Vec<_> = store.list().map(|entry| entry.unwrap().key).collect().await;
    let [key] = &stored[..] else {
        panic!("{stored:?} was stored")
    };
    check_path(key.as_str());
    assert_eq!(key.as_str().split('/').nth(1), Some("trunc"));
    assert_eq!(key.as_str().split('/').count(), 3);
}
