//! LiteLLM's real proxy, whose guardrail `headroom` calls `offcut serve`. `scripts/litellm` installs
//! it.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// Number of calls of a session. The newest result is never sent to the plug.
const CALLS: u64 = 20;

#[test]
#[ignore = "needs scripts/litellm"]
fn sessions_through_the_guardrail_are_cut_and_read_back() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let installed = tests.join("../../target/litellm");
    assert!(
        installed.join("version").is_file(),
        "run scripts/litellm first"
    );
    let home = tempfile::tempdir().unwrap();
    let output = Command::new(installed.join("bin/python"))
        .arg(tests.join("tests/litellm/sessions.py"))
        .arg(env!("CARGO_BIN_EXE_offcut"))
        .arg(installed.join("bin/litellm"))
        .arg(home.path())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(seen["problems"], json!([]));
    let sessions = seen["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 6);
    for session in sessions {
        println!("{session}");
        assert_eq!(session["cut"], CALLS - 1, "{session}");
        assert_eq!(session["changed again"], 0, "{session}");
        assert_eq!(session["read back equal"], 5, "{session}");
        let bytes = |name: &str| session[name].as_u64().unwrap();
        assert!(2 * bytes("bytes sent") < bytes("bytes asked"), "{session}");
    }
    for tenant in ["one", "two"] {
        assert_eq!(seen["hashes"][tenant], CALLS - 1);
    }
    assert_eq!(seen["refused"], 2 * (CALLS - 1));
}
