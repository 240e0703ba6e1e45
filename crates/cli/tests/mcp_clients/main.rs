//! Official MCP clients and the official "everything" server, with and without `offcut mcp` between
//! them. `scripts/mcp-clients` installs them.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod conformance;
mod listening;
mod schemas;

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use listening::Listening;
use serde_json::{Value, json};

/// Number of calls of each kind.
const ROUNDS: usize = 50;
/// Number of those kinds whose results are over the limit.
const LONG: usize = 2;

fn installed() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/mcp-clients");
    assert!(
        folder.join("version").is_file(),
        "run scripts/mcp-clients first"
    );
    folder
}

/// Calls of ten kinds.
fn calls() -> Vec<Value> {
    let long = "ä line\n".repeat(2_000);
    let kinds = [
        ("echo", json!({"message": "short"})),
        ("echo", json!({"message": long})),
        ("echo", json!({"message": "x".repeat(100_000)})),
        ("get-sum", json!({"a": 1, "b": 2.5})),
        ("get-sum", json!({"a": "not a number"})),
        ("get-structured-content", json!({"location": "Chicago"})),
        ("get-tiny-image", json!({})),
        ("get-resource-links", json!({"count": 10})),
        (
            "get-annotated-message",
            json!({"messageType": "error", "includeImage": true}),
        ),
        ("no-such-tool", json!({})),
    ];
    let kinds = kinds.map(|(name, arguments)| json!({"name": name, "arguments": arguments}));
    (0..ROUNDS).flat_map(|_| kinds.clone()).collect()
}

/// The output of a client of `server`.
fn seen(client: &[&str], server: &[&str], home: &Path) -> Value {
    let calls_file = home.join("calls.json");
    std::fs::write(&calls_file, json!(calls()).to_string()).unwrap();
    let mut command = Command::new(client[0]);
    command
        .arg(client[1])
        .arg(&calls_file)
        .arg(client[2])
        .args(server);
    let output = command.env("OFFCUT_HOME", home).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Compares what a client sees with and without the gateway, over stdio and over HTTP, in front of a
/// server over stdio and of one over HTTP.
fn compare(client: &[&str]) {
    let server = installed().join("node_modules/.bin/mcp-server-everything");
    let server = [server.to_str().unwrap(), "stdio"];
    let home = tempfile::tempdir().unwrap();
    let bare = seen(client, &server, home.path());
    let offcut = [env!("CARGO_BIN_EXE_offcut"), "mcp"];
    let wrapped = seen(
        client,
        &[&offcut[..], &["--"], &server].concat(),
        home.path(),
    );
    is_equal(&wrapped, &bare);
    let (server, home) = (HttpServer::start(), tempfile::tempdir().unwrap());
    let remote = [&offcut[..], &["--url", &server.url]].concat();
    is_equal(&seen(client, &remote, home.path()), &bare);
    // Over HTTP, in front of both.
    let home = tempfile::tempdir().unwrap();
    let gateway = Listening::start(&["--url", remote[3]], home.path());
    is_equal(&seen(client, &[&gateway.url], home.path()), &bare);
    let home = tempfile::tempdir().unwrap();
    let stdio = installed().join("node_modules/.bin/mcp-server-everything");
    let gateway = Listening::start(&["--", stdio.to_str().unwrap(), "stdio"], home.path());
    is_equal(&seen(client, &[&gateway.url], home.path()), &bare);
}

/// The "everything" server over HTTP.
struct HttpServer {
    process: Child,
    url: String,
}

impl HttpServer {
    fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let process = Command::new(installed().join("node_modules/.bin/mcp-server-everything"))
            .arg("streamableHttp")
            .env("PORT", port.to_string())
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let url = format!("http://127.0.0.1:{port}/mcp");
        Self { process, url }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

fn is_equal(wrapped: &Value, bare: &Value) {
    assert_eq!(wrapped["tools"], bare["tools"]);
    let results = |seen: &Value| seen["results"].as_array().unwrap().clone();
    for (nth, (wrapped, bare)) in results(wrapped).iter().zip(results(bare)).enumerate() {
        assert!(*wrapped == bare, "call {nth}: {wrapped} {bare}");
    }
    assert_eq!(results(wrapped).len(), 10 * ROUNDS);
    assert_eq!(
        (&bare["has_reader"], &bare["stored"]),
        (&json!(false), &json!(0))
    );
    assert_eq!(
        (&wrapped["has_reader"], &wrapped["stored"]),
        (&json!(true), &json!(LONG * ROUNDS))
    );
    println!(
        "{} results are equal, {} of them read back",
        10 * ROUNDS,
        LONG * ROUNDS
    );
}

#[test]
#[ignore = "needs scripts/mcp-clients"]
fn the_typescript_client_sees_the_same_results() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp_clients/client.mjs");
    let sdk = installed().join("node_modules/@modelcontextprotocol/sdk");
    compare(&["node", script, sdk.to_str().unwrap()]);
}

#[test]
#[ignore = "needs scripts/mcp-clients"]
fn the_python_client_sees_the_same_results() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp_clients/client.py");
    let python = installed().join("python/bin/python");
    compare(&[python.to_str().unwrap(), script, "-"]);
}

/// Compares what the inspector's command line sees of two servers, of which the first has the gateway before it.
fn inspect(wrapped: &[&str], bare: &[&str], home: &Path) {
    let inspector = installed().join("node_modules/.bin/mcp-inspector");
    let inspect = |server: &[&str], asked: &[&str]| {
        let mut command = Command::new(&inspector);
        command.arg("--cli").args(server).args(asked);
        let output = command.env("OFFCUT_HOME", home).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{error}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let sum = [
        "--method",
        "tools/call",
        "--tool-name",
        "get-sum",
        "--tool-arg",
        "a=1",
        "--tool-arg",
        "b=2",
    ];
    assert_eq!(inspect(wrapped, &sum), inspect(bare, &sum));
    let list = ["--method", "tools/list"];
    let (mut listed, bare) = (inspect(wrapped, &list), inspect(bare, &list));
    let reader = listed["tools"].as_array_mut().unwrap().pop().unwrap();
    assert_eq!(reader["name"], "read_stored_result");
    assert_eq!(listed, bare);
}

#[test]
#[ignore = "needs scripts/mcp-clients"]
fn the_inspectors_command_line_sees_the_same_results() {
    let server = installed().join("node_modules/.bin/mcp-server-everything");
    let stdio = [server.to_str().unwrap(), "stdio"];
    let home = tempfile::tempdir().unwrap();
    let gateway = [&[env!("CARGO_BIN_EXE_offcut"), "mcp", "--"], &stdio[..]].concat();
    inspect(&gateway, &stdio, home.path());
    let http = HttpServer::start();
    let bare = [&*http.url, "--transport", "http"];
    for server in [vec!["--url", &*http.url], [&["--"], &stdio[..]].concat()] {
        let gateway = Listening::start(&server, home.path());
        inspect(&[&gateway.url, "--transport", "http"], &bare, home.path());
    }
}

#[test]
#[ignore = "needs scripts/mcp-clients"]
fn a_client_that_asks_for_a_revision_without_sessions_falls_back_and_calls_a_server_over_stdio() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp_clients/modern.py");
    let python = installed().join("python/bin/python");
    let home = tempfile::tempdir().unwrap();
    let gateway = Listening::start(&["--", python.to_str().unwrap(), script], home.path());
    let output = Command::new(python).args([script, &gateway.url]).output();
    let output = output.unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        seen["tools"],
        json!(["lines", "steps", "read_stored_result"])
    );
    assert_eq!(
        (&seen["steps"], &seen["done"]),
        (&json!([0.0, 1.0, 2.0]), &json!("done"))
    );
    let line = "a line of a log\n";
    assert_eq!(seen["results"][0], line);
    assert_eq!(seen["results"][2], line.repeat(2));
    let shown = seen["results"][1].as_str().unwrap();
    assert!(
        shown.starts_with("[offcut/1 truncated 80000B/5000L ") && shown.len() < 8_000,
        "{shown}"
    );
    let page = seen["page"].as_str().unwrap();
    assert!(
        page.contains("Lines 4999-5000.") && page.contains(&line.repeat(2)),
        "{page}"
    );
}
