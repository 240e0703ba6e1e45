//! `offcut mcp`: a server's long results shortened, and everything else as without it.
#![cfg(unix)]
// Helpers are part of the tests.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::support::{command, run_command, text};
use serde_json::{Value, json};
use tempfile::tempdir;

/// `offcut mcp` with a store of its own. `args` are its options and the server.
fn gateway(home: &Path, args: &[&str]) -> Command {
    let mut gateway = command(&[&["mcp"], args].concat());
    gateway.env("OFFCUT_HOME", home);
    gateway
}

/// A server that says `lines`, each once it has read a line.
fn saying(home: &Path, lines: &[Value]) -> String {
    let said = home.join("said");
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(&said, text).unwrap();
    format!(
        "while IFS= read -r said <&3; do read -r asked || exit 0; printf '%s\\n' \"$said\"; done 3<'{}'",
        said.display()
    )
}

fn start(mut command: Command) -> (Child, BufReader<ChildStdout>) {
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    (child, lines)
}

fn next(lines: &mut impl BufRead) -> Value {
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

fn log() -> String {
    (1..=20_000).map(|n| format!("{n}\n")).collect()
}

fn listed(tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": tool, "inputSchema": {"type": "object"}}]}})
}

fn result() -> Value {
    json!({"jsonrpc": "2.0", "id": 2, "result": {"content": [{"type": "text", "text": log()}]}})
}

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"log"}}"#;

#[test]
fn a_long_result_is_shortened_and_read_back_and_after_a_restart_too() {
    let home = tempdir().unwrap();
    let script = saying(home.path(), &[listed("log"), result()]);
    let server = ["--", "sh", "-c", &script];
    let (mut child, mut lines) = start(gateway(home.path(), &server));
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{LIST}").unwrap();
    assert_eq!(
        next(&mut lines)["result"]["tools"][1]["name"],
        "read_stored_result"
    );
    writeln!(stdin, "{CALL}").unwrap();
    let shown = next(&mut lines);
    let text = shown["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("[offcut/1 truncated 108894B/20000L ") && text.len() < 8_000,
        "{text}"
    );
    assert!(text.contains("Read it with read_stored_result."));
    let location = text.split('"').nth(1).unwrap();
    assert_eq!(fs::read_to_string(location).unwrap(), log());

    // The reader of another process of the same server, which says nothing.
    drop(stdin);
    assert!(child.wait().unwrap().success());
    let read = json!({"jsonrpc": "2.0", "id": "r", "method": "tools/call", "params": {"name": "read_stored_result", "arguments": {"path": location, "offset": 19_999}}});
    let ran = run_command(&mut gateway(home.path(), &server), &format!("{read}\n"));
    let page: Value = serde_json::from_str(&ran.out).unwrap();
    let text = page["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        page["id"] == "r" && text.ends_with("\n19999\n20000\n"),
        "{text}"
    );
    // One of another server does not read it.
    let ran = run_command(
        &mut gateway(home.path(), &["--", "cat"]),
        &format!("{read}\n"),
    );
    assert!(ran.out.contains(r#""isError":true"#), "{}", ran.out);
}

#[test]
fn a_client_that_closes_its_end_early_gets_its_answers() {
    let home = tempdir().unwrap();
    let answer = r#"{"jsonrpc":"2.0","id":2,"result":{}}"#;
    // The server does not answer once its stdin has ended.
    let script = format!(
        "exec 3<&0; read -r asked; (cat <&3 >/dev/null; : >\"$OFFCUT_HOME/ended\") & sleep 1; [ -e \"$OFFCUT_HOME/ended\" ] || echo '{answer}'; wait"
    );
    let ran = run_command(
        &mut gateway(home.path(), &["--", "sh", "-c", &script]),
        &format!("{CALL}\n"),
    );
    // The gateway has asked for the tools too.
    assert_eq!((ran.out, ran.code), (format!("{answer}\n"), 0));
}

#[test]
fn other_bytes_pass_in_both_directions() {
    let home = tempdir().unwrap();
    for text in [
        "",
        "\n",
        "no JSON\r\n{\"id\":1,",
        "{ \"method\":\"x/y\", \"params\": {\"n\": 1E400} }\n\n[1]\n",
    ] {
        let ran = run_command(&mut gateway(home.path(), &["--", "cat"]), text);
        assert_eq!(
            (ran.out.as_str(), ran.err.as_str(), ran.code),
            (text, "", 0)
        );
    }
    let long = "x".repeat(1_000_000) + "\nshort\n";
    let ran = run_command(
        &mut gateway(home.path(), &["--max-message", "10kB", "--", "cat"]),
        &long,
    );
    // But for messages over the maximum.
    assert_eq!(ran.out, "short\n");
    assert!(
        ran.err
            .contains("a message of the client is longer than 10000 bytes"),
        "{}",
        ran.err
    );
}

#[test]
fn stderr_and_the_exit_code_are_the_servers() {
    let home = tempdir().unwrap();
    let flood = "yes flood | head -c 300000 >&2; printf '{}\\n'; exit 7";
    let ran = run_command(&mut gateway(home.path(), &["--", "sh", "-c", flood]), "");
    assert_eq!(
        (ran.code, ran.out.as_str(), ran.err.len()),
        (7, "{}\n", 300_000)
    );
    let ran = run_command(
        &mut gateway(home.path(), &["--", "sh", "-c", "kill -KILL $$"]),
        "",
    );
    assert_eq!(ran.code, 137);
    let ran = run_command(&mut gateway(home.path(), &["--", "/no/such/server"]), "");
    assert_eq!(ran.code, 127);
    assert!(
        ran.err.contains("does not start") && ran.err.contains("hint: "),
        "{}",
        ran.err
    );
}

#[test]
fn a_server_that_dies_ends_the_gateway_although_the_client_is_there() {
    let home = tempdir().unwrap();
    let (mut child, mut lines) = start(gateway(
        home.path(),
        &["--", "sh", "-c", "read -r a; exit 3"],
    ));
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{LIST}").unwrap();
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), child.wait().unwrap().code()), ("", Some(3)));
    drop(stdin);
}

#[test]
fn signals_reach_the_server_and_one_that_hangs_is_killed() {
    let home = tempdir().unwrap();
    let traps = "trap 'echo asked; exit 9' TERM; echo ready; while :; do sleep 0.05; done";
    let hangs = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
    for (script, said, code) in [(traps, "asked\n", 9), (hangs, "", 143)] {
        let (mut child, mut lines) = start(gateway(home.path(), &["--", "sh", "-c", script]));
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let term = Command::new("kill")
            .arg(child.id().to_string())
            .status()
            .unwrap();
        assert!(term.success());
        let mut rest = String::new();
        lines.read_to_string(&mut rest).unwrap();
        assert_eq!(
            (rest.as_str(), child.wait().unwrap().code()),
            (said, Some(code))
        );
    }
}

#[test]
fn a_client_that_is_gone_ends_a_server_that_goes_on() {
    let home = tempdir().unwrap();
    let mut command = gateway(home.path(), &["--", "yes"]);
    command.stdin(Stdio::null());
    let (mut child, mut lines) = start(command);
    lines.read_line(&mut String::new()).unwrap();
    drop(lines);
    let ended = child.wait().unwrap();
    assert_eq!(ended.signal(), None);
    assert!(ended.code().is_some_and(|code| code > 128), "{ended}");
}

#[test]
fn with_wrong_settings_the_server_runs_without_offcut() {
    let home = tempdir().unwrap();
    let script = saying(home.path(), &[listed("log"), result()]);
    fs::write(home.path().join("offcut.toml"), "max_lenght_for_trunc = 1").unwrap();
    let ran = run_command(
        &mut gateway(home.path(), &["--", "sh", "-c", &script]),
        &format!("{LIST}\n{CALL}\n"),
    );
    assert_eq!(ran.out, format!("{}\n{}\n", listed("log"), result()));
    assert!(
        ran.err.contains("max_length_for_trunc") && ran.err.contains("without offcut"),
        "{}",
        ran.err
    );
    assert!(!home.path().join("store").exists());
}

#[test]
fn options_name_the_reader_the_session_and_the_store() {
    let home = tempdir().unwrap();
    let script = saying(home.path(), &[listed("fetch"), result()]);
    let store = home.path().join("elsewhere");
    let options = [
        "--reader",
        "fetch",
        "--session",
        "mine",
        "--backend",
        text(&store),
        "--",
        "sh",
        "-c",
        &script,
    ];
    let call = CALL.replace("\"log\"", "\"other\"");
    let ran = run_command(
        &mut gateway(home.path(), &options),
        &format!("{LIST}\n{call}\n"),
    );
    // The server has a `fetch` of its own.
    assert!(
        ran.out.contains(r#""name":"read_stored_result""#),
        "{}",
        ran.out
    );
    assert!(ran.err.contains("has a tool \"fetch\""), "{}", ran.err);
    assert!(store.join("mine/trunc/2").is_file());
}

#[cfg(feature = "serve")]
mod http {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// The next request of a connection: its head in lower case and its body. `None` if there is none.
    fn request(stream: &mut BufReader<TcpStream>) -> Option<(String, String)> {
        let (mut head, mut line) = (String::new(), String::new());
        while line != "\r\n" {
            line.clear();
            if stream.read_line(&mut line).unwrap_or(0) == 0 {
                return None;
            }
            head += &line.to_lowercase();
        }
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        stream.read_exact(&mut body).unwrap();
        Some((head, String::from_utf8(body).unwrap()))
    }

    /// A server that answers calls with a log. Returns its URL, and what it sees.
    fn server() -> (String, std::sync::mpsc::Receiver<(String, String)>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let (sender, seen) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, sender) = (BufReader::new(stream.unwrap()), sender.clone());
                std::thread::spawn(move || {
                    while let Some((head, body)) = request(&mut stream) {
                        let body_of = if body.contains("tools/call") {
                            result().to_string()
                        } else if body.contains("tools/list") {
                            let asked: Value = serde_json::from_str(&body).unwrap();
                            let id = format!(":{},", asked["id"]);
                            listed("log").to_string().replace(":1,", &id)
                        } else {
                            r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}"#
                                .to_owned()
                        };
                        let answer = format!(
                            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: s\r\nContent-Length: {}\r\n\r\n{body_of}",
                            body_of.len()
                        );
                        _ = sender.send((head, body));
                        stream.get_mut().write_all(answer.as_bytes()).unwrap();
                    }
                });
            }
        });
        (url, seen)
    }

    const OPENING: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#;

    #[test]
    fn a_server_over_http_gets_headers_from_the_environment_and_its_results_are_stored() {
        let (home, (url, seen)) = (tempdir().unwrap(), server());
        let options = [
            "--url",
            &url,
            "--header",
            "X-Key: a ${KEY} b",
            "--bearer-token-env-var",
            "TOKEN",
        ];
        let mut command = gateway(home.path(), &options);
        command.env("KEY", "k-1").env("TOKEN", "t-1");
        let ran = run_command(&mut command, &format!("{OPENING}\n{CALL}\n"));
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        assert!(
            ran.out.contains("[offcut/1 truncated 108894B/20000L "),
            "{}",
            ran.out
        );
        let seen: Vec<_> = seen.try_iter().collect();
        for (head, _) in &seen {
            assert!(head.contains("x-key: a k-1 b\r\n"), "{head}");
            assert!(head.contains("authorization: bearer t-1\r\n"), "{head}");
        }
        assert!(seen.last().unwrap().0.starts_with("delete /mcp "));
    }

    #[test]
    fn a_signal_ends_the_session() {
        let (home, (url, seen)) = (tempdir().unwrap(), server());
        let (mut child, mut lines) = start(gateway(home.path(), &["--url", &url]));
        let mut stdin = child.stdin.take().unwrap();
        writeln!(stdin, "{OPENING}").unwrap();
        next(&mut lines);
        let term = Command::new("kill").arg(child.id().to_string()).status();
        assert!(term.unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(143));
        assert!(
            seen.try_iter()
                .last()
                .unwrap()
                .0
                .starts_with("delete /mcp ")
        );
    }

    #[test]
    fn with_wrong_settings_a_server_over_http_is_passed_as_it_is() {
        let (home, (url, _seen)) = (tempdir().unwrap(), server());
        fs::write(home.path().join("offcut.toml"), "max_lenght_for_trunc = 1").unwrap();
        let ran = run_command(
            &mut gateway(home.path(), &["--url", &url]),
            &format!("{CALL}\n"),
        );
        assert_eq!(ran.out, format!("{}\n", result()));
        assert!(ran.err.contains("without offcut"), "{}", ran.err);
    }

    #[test]
    fn wrong_headers_and_urls_are_refused_without_their_values() {
        let home = tempdir().unwrap();
        for (options, words) in [
            (&["--url", "http://u:hidden@a/"][..], "user name"),
            (&["--url", "ftp://a/"], "http://"),
            (
                &["--url", "http://a/", "--header", "no colon hidden"],
                "no colon",
            ),
            (
                &["--url", "http://a/", "--header", "a b: hidden"],
                "invalid",
            ),
            (
                &[
                    "--url",
                    "http://a/",
                    "--header",
                    "a: ${OFFCUT_NO_SUCH}hidden",
                ],
                "OFFCUT_NO_SUCH",
            ),
        ] {
            let ran = run_command(&mut gateway(home.path(), options), "");
            assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
            assert!(
                ran.err.contains(words) && !ran.err.contains("hidden"),
                "{}",
                ran.err
            );
        }
    }
}
