//! `offcut mcp --listen`: real processes, clients over HTTP.
#![cfg(all(unix, feature = "serve"))]
// Helpers are part of the tests.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};

use crate::support::{command, run_command};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};
use tempfile::tempdir;

/// A running `offcut mcp --listen` with a store of its own.
struct Gateway {
    process: Child,
    address: String,
}

impl Gateway {
    fn start(home: &Path, args: &[&str]) -> Self {
        let mut gateway = command(&[&["mcp", "--listen", "127.0.0.1:0"], args].concat());
        gateway.env("OFFCUT_HOME", home).stderr(Stdio::null());
        let mut process = gateway.spawn().unwrap();
        let mut url = String::new();
        let stdout = process.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut url).unwrap();
        let address = url.strip_prefix("http://").unwrap();
        let address = address.strip_suffix("/mcp\n").unwrap().to_owned();
        Self { process, address }
    }

    /// Sends a request. Returns the head and the body of the answer.
    fn send(&self, method: &str, session: Option<&str>, body: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let session = session.map_or(String::new(), |id| format!("mcp-session-id: {id}\r\n"));
        write!(
            stream,
            "{method} /mcp HTTP/1.1\r\nhost: {}\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json\r\n{session}content-length: {}\r\nconnection: close\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    /// Begins a session. Returns its id.
    fn open(&self) -> String {
        let (head, _) = self.ask(None, &request(1, "initialize"));
        let id = head
            .lines()
            .find_map(|line| line.strip_prefix("mcp-session-id: "));
        id.unwrap().to_owned()
    }

    /// Sends a message, and returns the only one of the answer.
    fn ask(&self, session: Option<&str>, message: &Value) -> (String, Value) {
        let (head, body) = self.send("POST", session, &message.to_string());
        let data = body
            .lines()
            .find(|line| line.trim_start_matches("data: ").starts_with('{'));
        let data = data.unwrap_or_else(|| panic!("{head}\n{body}"));
        // A chunk ends with its line break.
        let data = data.trim_start_matches("data: ").trim_end();
        (head, serde_json::from_str(data).unwrap())
    }

    fn stop(mut self) -> i32 {
        let pid = Pid::from_child(&self.process);
        kill_process(pid, Signal::TERM).unwrap();
        self.process.wait().unwrap().code().unwrap()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // Killed, it would leave its servers behind.
        if matches!(self.process.try_wait(), Ok(None)) {
            _ = kill_process(Pid::from_child(&self.process), Signal::TERM);
            _ = self.process.wait();
        }
    }
}

/// A server that writes its process id to a file, and answers each request with a long result. It
/// does not end by itself.
fn server(home: &Path) -> String {
    let result = json!({"content": [{"type": "text", "text": log()}], "tools": [], "protocolVersion": "2025-11-25", "capabilities": {}});
    let said = home.join("said");
    fs::write(&said, format!("{result}")).unwrap();
    format!(
        "echo $$ >>'{home}/pids'; while :; do if IFS= read -r asked; then id=${{asked##*\\\"id\\\":}}; printf '{{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}}\\n' \"${{id%%[,\\}}]*}}\" \"$(cat '{home}/said')\"; else sleep 1; fi; done",
        home = home.display()
    )
}

fn log() -> String {
    (1..=20_000).map(|n| format!("{n}\n")).collect()
}

fn request(id: u32, method: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": {"name": "log"}, "id": id})
}

/// The ids of the servers' processes.
fn pids(home: &Path) -> Vec<Pid> {
    let pids = fs::read_to_string(home.join("pids")).unwrap();
    let pid = |line: &str| Pid::from_raw(line.parse().unwrap()).unwrap();
    pids.lines().map(pid).collect()
}

fn wait_for_the_end_of(pid: Pid) {
    while test_kill_process(pid).is_ok() {
        std::thread::yield_now();
    }
}

#[test]
fn each_session_has_a_process_that_ends_with_it() {
    let home = tempdir().unwrap();
    let script = server(home.path());
    let gateway = Gateway::start(home.path(), &["--", "sh", "-c", &script]);
    gateway.open();
    assert_eq!(pids(home.path()).len(), 1);
    gateway.open();
    let pids = pids(home.path());
    assert_eq!(pids.len(), 2);
    assert_eq!(gateway.stop(), 0);
    // They don't end when their stdin does, so they were asked to.
    for pid in pids {
        wait_for_the_end_of(pid);
    }
}

#[test]
fn a_result_is_stored_and_a_url_is_served_too() {
    let home = tempdir().unwrap();
    let script = server(home.path());
    let hosted = Gateway::start(home.path(), &["--", "sh", "-c", &script]);
    let second = tempdir().unwrap();
    let url = format!("http://{}/mcp", hosted.address);
    let proxy = Gateway::start(second.path(), &["--url", &url]);
    for (gateway, home) in [(&hosted, home.path()), (&proxy, second.path())] {
        let session = gateway.open();
        let (_, shown) = gateway.ask(Some(&session), &request(2, "tools/call"));
        let text = shown["result"]["content"][0]["text"].as_str().unwrap();
        assert!(
            text.starts_with("[offcut/1 truncated ") && text.len() < 8_000,
            "{text}"
        );
        let location = text.split('"').nth(1).unwrap();
        assert!(location.starts_with(home.to_str().unwrap()), "{location}");
        // The second gateway stores what the first one shows.
        assert!(!fs::read_to_string(location).unwrap().is_empty());
        let (head, _) = gateway.send("DELETE", Some(&session), "");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let (head, _) = gateway.send("POST", Some(&session), &request(3, "ping").to_string());
        assert!(head.starts_with("HTTP/1.1 404"), "{head}");
    }
}

#[test]
fn the_place_of_results_can_not_be_computed() {
    let mut places = std::collections::HashSet::new();
    for _ in 0..2 {
        let home = tempdir().unwrap();
        fs::write(home.path().join("run"), server(home.path())).unwrap();
        for _ in 0..2 {
            // The command and the directory are the same.
            let gateway =
                Gateway::start(home.path(), &["--", "sh", "-c", "sh \"$OFFCUT_HOME/run\""]);
            let session = gateway.open();
            let (_, shown) = gateway.ask(Some(&session), &request(2, "tools/call"));
            let text = shown["result"]["content"][0]["text"].as_str().unwrap();
            let location = Path::new(text.split('"').nth(1).unwrap()).to_owned();
            let name = location.file_name().unwrap().to_str().unwrap();
            assert!(name.len() > 20 && name.ends_with("-2"), "{name}");
            let place = location.ancestors().nth(2).unwrap();
            places.insert(place.file_name().unwrap().to_owned());
        }
        let secret = fs::metadata(home.path().join("mcp.secret")).unwrap();
        assert_eq!(secret.permissions().mode() & 0o777, 0o600);
    }
    // It stays the same after a restart, and each user has another.
    assert_eq!(places.len(), 2, "{places:?}");
}

#[test]
fn m6_clients_over_http_do_not_share_the_place_of_those_over_stdio() {
    let home = tempdir().unwrap();
    let script = server(home.path());
    let args = ["--session", "mine", "--", "sh", "-c", &script];
    let gateway = Gateway::start(home.path(), &args);
    let session = gateway.open();
    let (_, shown) = gateway.ask(Some(&session), &request(2, "tools/call"));
    let text = shown["result"]["content"][0]["text"].as_str().unwrap();
    let location = Path::new(text.split('"').nth(1).unwrap());
    // Over stdio, it would be `mine`, whose names are ids of calls.
    let place = location.ancestors().nth(2).unwrap();
    assert_eq!(place.file_name().unwrap(), "mine-http");
}

#[test]
fn other_machines_are_not_let_in_unless_that_is_said() {
    let home = tempdir().unwrap();
    let mut gateway = command(&["mcp", "--listen", "0.0.0.0:0", "--", "cat"]);
    let ran = run_command(gateway.env("OFFCUT_HOME", home.path()), "");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("--expose"), "{}", ran.err);
    let mut both = command(&[
        "mcp",
        "--listen",
        "127.0.0.1:0",
        "--url",
        "http://a",
        "--",
        "cat",
    ]);
    assert_eq!(
        run_command(both.env("OFFCUT_HOME", home.path()), "").code,
        2
    );
}

#[test]
fn a_command_that_does_not_exist_is_refused_at_the_start() {
    let home = tempdir().unwrap();
    fs::write(home.path().join("data"), "no program").unwrap();
    let data = home.path().join("data").display().to_string();
    for program in ["no-such-server", "./no/such/server", "/", &data] {
        let mut gateway = command(&["mcp", "--listen", "127.0.0.1:0", "--", program, "x"]);
        let ran = run_command(gateway.env("OFFCUT_HOME", home.path()), "");
        assert_eq!((ran.code, &*ran.out), (2, ""), "{program}: {}", ran.err);
        assert!(
            ran.err.contains(&format!("there is no program {program}")),
            "{}",
            ran.err
        );
    }
}
