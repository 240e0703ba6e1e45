//! Settings files: what can be read can be written and read again, errors name their line, and
//! settings that build keep their limits.

use std::convert::Infallible;

use offcut::backend::Memory;
use offcut::{Settings, SettingsError, ToolCall, ToolReduction};

use crate::laws::block_on;

/// Reads the text as JSON and as TOML.
pub(crate) fn settings_file(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    for read in [Settings::from_json(text), Settings::from_toml(text)] {
        match read {
            Ok(settings) => check(&settings),
            Err(error) => check_error(&error, text),
        }
    }
}

fn check_error(error: &SettingsError, text: &str) {
    assert!(!error.problem.is_empty());
    let lines = text.split('\n').count();
    assert!(
        error.line.is_none_or(|line| (1..=lines).contains(&line)),
        "line {:?} of {lines}: {error}",
        error.line
    );
}

fn check(settings: &Settings) {
    let written = serde_json::to_string(settings).unwrap();
    assert_eq!(
        Settings::from_json(&written)
            .as_ref()
            .map_err(ToString::to_string),
        Ok(settings),
        "{written}"
    );
    // The caller opens stores, so nothing here names a place on a disk.
    let builder =
        ToolReduction::builder().settings(settings.clone(), |_| Ok::<_, Infallible>(Memory::new()));
    match builder.build() {
        Ok(reduction) => block_on(truncates(&reduction)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Checks L1, L3 and L4 for one result.
async fn truncates(reduction: &ToolReduction) {
    let (call, result) = (
        ToolCall::new("call_1", "grep", "{}"),
        "src/pool.rs:7: alloc_it\n".repeat(300),
    );
    let Ok(shown) = reduction.truncate(&call, result.as_str()).await else {
        panic!("memory does not fail")
    };
    let text = shown.text();
    if text == result {
        return;
    }
    assert!(text.len() < result.len());
    let location = &shown.report.decisions[0].locations[0];
    assert_eq!(
        reduction.read_original(location).await.unwrap().unwrap(),
        result
    );
    assert_eq!(
        reduction
            .truncate(&call, text.as_str())
            .await
            .unwrap()
            .text(),
        text
    );
}
