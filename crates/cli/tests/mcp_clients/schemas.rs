//! Structured content with a schema, which official clients check: with schemas that they ask for, and with those of
//! a list from before the gateway was there.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::installed;
use crate::listening::Listening;

/// The output of a client: its words, with the tools that it knows from before.
fn seen(client: &[&str], known: &str, server: &[&str], home: &Path) -> Value {
    let mut command = Command::new(client[0]);
    command.args([client[1], known, client[2]]).args(server);
    let output = command.env("OFFCUT_HOME", home).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Compares what a client sees without the gateway and with it, over both transports on both sides.
fn compare(client: &[&str]) {
    let modules = installed().join("node_modules").canonicalize().unwrap();
    let sdk = modules.join("@modelcontextprotocol/sdk");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp_clients/server.mjs");
    let (node, sdk) = (modules.join(".bin/node"), sdk.to_str().unwrap());
    let stdio = [node.to_str().unwrap(), script, sdk, "stdio"];
    let mut http = Command::new(&node);
    http.args([script, sdk, "http"]);
    let http = Listening::of(http);

    let home = tempfile::tempdir().unwrap();
    let bare = seen(client, "-", &[&http.url], home.path());
    assert_eq!(bare["whole"], Value::Null);
    let known = home.path().join("tools.json");
    std::fs::write(&known, bare["tools"].to_string()).unwrap();

    let offcut = [env!("CARGO_BIN_EXE_offcut"), "mcp"];
    let before_url = Listening::start(&["--url", &http.url], home.path());
    let before_command = Listening::start(&[&["--"], &stdio[..]].concat(), home.path());
    let ways = [
        ("stdio to stdio", [&offcut[..], &["--"], &stdio].concat()),
        (
            "stdio to HTTP",
            [&offcut[..], &["--url", &http.url]].concat(),
        ),
        ("HTTP to stdio", vec![&*before_command.url]),
        ("HTTP to HTTP", vec![&*before_url.url]),
    ];
    for (way, server) in &ways {
        for known in ["-", known.to_str().unwrap()] {
            let shown = seen(client, known, server, home.path());
            let table = &shown["structured"];
            assert!(table.to_string().len() < 9_000, "{way}: it is shortened");
            assert_eq!(table["total"], json!(2_000), "{way}");
            // The first one has the hint, since the schema has no room for another field.
            assert_eq!(table["rows"][1], bare["structured"]["rows"][1], "{way}");
            let whole: Value = serde_json::from_str(shown["whole"].as_str().unwrap()).unwrap();
            assert_eq!(whole, bare["structured"], "{way}");
        }
    }
    println!("{} ways, with a new list and with an old one", ways.len());
}

#[test]
#[ignore = "needs scripts/mcp-clients"]
fn the_typescript_client_accepts_shortened_tables() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp_clients/schemas.mjs");
    let sdk = installed().join("node_modules/@modelcontextprotocol/sdk");
    compare(&["node", script, sdk.to_str().unwrap()]);
}

#[test]
#[ignore = "needs scripts/mcp-clients"]
fn the_python_client_accepts_shortened_tables() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp_clients/schemas.py");
    let python = installed().join("python/bin/python");
    compare(&[python.to_str().unwrap(), script, "-"]);
}
