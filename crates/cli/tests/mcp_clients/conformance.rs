//! The official conformance suite, with and without the gateway.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::installed;
use crate::listening::Listening;

/// A check: its scenario and its id.
type Check = (String, String);

fn modules() -> PathBuf {
    installed().join("node_modules").canonicalize().unwrap()
}

fn script(name: &str) -> String {
    format!("{}/tests/mcp_clients/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn sdk() -> String {
    modules()
        .join("@modelcontextprotocol/sdk")
        .display()
        .to_string()
}

/// Runs the suite. Returns the checks that passed, and the number of all that were judged.
fn run(args: &[&str], home: &Path, environment: &[(&str, &str)]) -> (BTreeSet<Check>, usize) {
    let folder = home.join("checks");
    let mut suite = Command::new(modules().join(".bin/node"));
    suite
        .arg(modules().join("@modelcontextprotocol/conformance/dist/index.js"))
        .args(args)
        .arg("-o")
        .arg(&folder)
        .env("OFFCUT_HOME", home)
        .envs(environment.iter().copied());
    let Output { stdout, stderr, .. } = suite.output().unwrap();
    let said = || String::from_utf8_lossy(&stdout) + String::from_utf8_lossy(&stderr);
    let files = files(&folder);
    assert!(!files.is_empty(), "{}", said());
    let (mut passed, mut judged) = (BTreeSet::new(), 0);
    for file in files {
        let name = file.parent().unwrap().strip_prefix(&folder).unwrap();
        // The time follows.
        let name = name
            .to_str()
            .unwrap()
            .split("-202")
            .next()
            .unwrap()
            .to_owned();
        let checks = std::fs::read_to_string(file).unwrap();
        let checks: Vec<Value> = serde_json::from_str(&checks).unwrap();
        for check in checks.iter().filter(|check| check["status"] != "INFO") {
            judged += 1;
            if check["status"] == "SUCCESS" {
                passed.insert((name.clone(), check["id"].as_str().unwrap().to_owned()));
            }
        }
    }
    (passed, judged)
}

/// The files of checks in a folder. Some scenarios have slashes in their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    let files = paths.flat_map(|path| match path.join("checks.json") {
        file if file.is_file() => vec![file],
        _ => files(&path),
    });
    files.collect()
}

/// The checks that the official TypeScript client passes.
fn of_client(scenario: &str, environment: &[(&str, &str)]) -> (BTreeSet<Check>, usize) {
    let home = tempfile::tempdir().unwrap();
    let client = format!("node {} {}", script("conformance.mjs"), sdk());
    let args = ["client", "--scenario", scenario, "--command", &client];
    run(&args, home.path(), environment)
}

#[test]
#[ignore = "needs scripts/mcp-clients"]
fn a_client_passes_the_same_checks_of_the_conformance_suite() {
    let offcut = ("OFFCUT", env!("CARGO_BIN_EXE_offcut"));
    let mut all = 0;
    for scenario in [
        "initialize",
        "tools_call",
        "elicitation-sep1034-client-defaults",
        "sse-retry",
    ] {
        let (bare, judged) = of_client(scenario, &[]);
        assert!(judged > 0 && bare.len() <= judged, "{scenario}: {bare:?}");
        let (wrapped, _) = of_client(scenario, &[offcut]);
        assert_eq!(wrapped, bare, "{scenario} over stdio");
        let (wrapped, _) = of_client(scenario, &[offcut, ("OFFCUT_LISTENS", "1")]);
        assert_eq!(wrapped, bare, "{scenario} over HTTP");
        all += bare.len();
    }
    println!("{all} checks of the conformance suite pass with and without the gateway");
}

#[test]
#[ignore = "needs scripts/mcp-clients"]
fn a_client_logs_in_through_the_gateway() {
    let gateway = [
        ("OFFCUT", env!("CARGO_BIN_EXE_offcut")),
        ("OFFCUT_LISTENS", "1"),
    ];
    let mut all = 0;
    for scenario in [
        "metadata-default",
        "metadata-var1",
        "metadata-var2",
        "metadata-var3",
        "basic-cimd",
        "scope-from-www-authenticate",
        "scope-from-scopes-supported",
        "scope-omitted-when-undefined",
        "scope-step-up",
        "token-endpoint-auth-basic",
        "token-endpoint-auth-post",
        "token-endpoint-auth-none",
        "pre-registration",
        "resource-mismatch",
    ] {
        let scenario = format!("auth/{scenario}");
        let (bare, _) = of_client(&scenario, &[]);
        let (wrapped, _) = of_client(&scenario, &gateway);
        let missing: Vec<_> = bare.difference(&wrapped).collect();
        println!("{scenario}: {} of {} checks", wrapped.len(), bare.len());
        assert!(missing.is_empty(), "{scenario}: {missing:?}");
        all += bare.len();
    }
    println!("{all} checks of logins pass with and without the gateway");
}

/// The checks of the suite's scenarios for servers that the server at `url` passes.
fn of_server(url: &str, home: &Path) -> BTreeSet<Check> {
    let (passed, judged) = run(&["server", "--url", url, "--suite", "all"], home, &[]);
    println!("{} of {judged} checks pass at {url}", passed.len());
    passed
}

#[test]
#[ignore = "needs scripts/mcp-clients"]
fn a_server_passes_the_same_checks_of_the_conformance_suite() {
    let (server, sdk) = (script("server.mjs"), sdk());
    let home = || tempfile::tempdir().unwrap();
    let mut bare = Command::new(modules().join(".bin/node"));
    bare.args([&*server, &*sdk, "http"]);
    let bare = Listening::of(bare);
    let (at_bare, at_proxy, at_host) = (home(), home(), home());
    let expected = of_server(&bare.url, at_bare.path());
    assert!(expected.len() >= 44, "{expected:?}");
    let gateway = Listening::start(&["--url", &bare.url], at_proxy.path());
    let passed = of_server(&gateway.url, at_proxy.path());
    assert_eq!(passed, expected, "in front of a server over HTTP");
    let gateway = Listening::start(&["--", "node", &server, &sdk, "stdio"], at_host.path());
    let passed = of_server(&gateway.url, at_host.path());
    assert_eq!(passed, expected, "in front of servers over stdio");
}
