//! `offcut status` over servers that run, and `offcut gain` over what they have noted.

#![cfg(all(feature = "serve", unix))]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv6Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::serving::{KEY, Serving, User, answering};
use crate::support::{command, run_command, text};
use serde_json::{Value, json};

/// Notes a server with this page, which runs as long as the file is held.
fn running(user: &User, page: &str) -> File {
    fs::create_dir_all(user.path("servers")).unwrap();
    let mut file = File::create(user.path("servers/1-1")).unwrap();
    file.write_all(page.as_bytes()).unwrap();
    file.lock_shared().unwrap();
    file
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_running_server_is_found_and_its_journal_outlives_it() {
    let user = User::new();
    let none = user.run(&["gain"]);
    assert!(none.out.contains("has no rows yet"), "{none:?}");

    let provider = answering("200 OK", "{}".to_owned());
    let card = user.path("card.toml");
    let prices = "cached = 0.3\nfresh = 3.0\ncurrency = \"U\\u001b[31mSD\"\nsource = \"a list\"\ndate = \"2026-01-31\"\n";
    fs::write(&card, prices).unwrap();
    let table = "cut_without_reader = true";
    let args = ["--listen", "127.0.0.1:0", "--prices", text(&card)];
    let server = user.serve(&provider, table, &args);
    assert_eq!(
        server.page,
        format!("{}/page#{}", server.url, server.token())
    );
    (0..=3).for_each(|n| server.call(n));

    let shown = user.run(&["status"]);
    assert_eq!((shown.code, &*shown.err), (0, ""));
    for part in [
        &*server.page,
        "4 calls of 1 conversation sent ",
        "By estimate, the input costs U\\u{1b}[31mSD 0.0",
        "(a list, 2026-01-31)",
        "3 results cut, 0 cleared, 0 read back.",
        "last call",
    ] {
        assert!(shown.out.contains(part), "{part}: {}", shown.out);
    }
    let row = shown.out.lines().find(|line| line.contains(" openai "));
    let row: Vec<_> = row.unwrap().split_whitespace().collect();
    assert_eq!(row[..3], ["1", "openai", "3"], "{row:?}");

    let all = user.json(&["status", "--json"]);
    let one = &all["servers"][0];
    assert_eq!(one["page"], server.page.as_str());
    assert_eq!(
        (&one["figures"]["calls"], &one["figures"]["cut"]),
        (&json!(4), &json!(3))
    );
    assert!(one["figures"]["after"].as_u64() < one["figures"]["before"].as_u64());
    let files = user.files();
    assert_eq!(files.len(), 1);
    assert_eq!(
        (mode(&user.path("servers")), mode(&files[0])),
        (0o700, 0o600)
    );
    let token = server.token().to_owned();
    server.stop();
    assert_eq!(user.files(), Vec::<PathBuf>::new());
    let stopped = user.run(&["status"]);
    assert_eq!((stopped.code, &*stopped.out), (1, ""));
    assert!(
        stopped.err.contains("no server of this user runs") && stopped.err.contains("hint: "),
        "{stopped:?}"
    );

    let journal = user.path("journal.jsonl");
    assert_eq!(mode(&journal), 0o600);
    let journal = fs::read_to_string(journal).unwrap();
    assert_eq!(journal.lines().count(), 4, "{journal}");
    for secret in [KEY, &token, "planted"] {
        assert!(!journal.contains(secret), "{journal}");
    }
    let gain = user.json(&["gain", "--json"]);
    let figures = &one["figures"];
    for (name, same) in [
        ("count", "calls"),
        ("replaced", "cut"),
        ("bytes_before", "before"),
        ("bytes_after", "after"),
        ("sessions", "known"),
    ] {
        assert_eq!(gain[name], figures[same], "{name}");
    }
    assert_eq!(gain["shortened"], 3);
    let gain = user.run(&["gain"]).out;
    assert!(
        gain.contains("In 1 session, 3 of 4 results and requests became shorter"),
        "{gain}"
    );
    assert!(gain.contains("openai"), "{gain}");
}

#[test]
fn requests_that_passed_open_are_counted_with_their_reasons() {
    let user = User::new();
    let provider = answering("200 OK", "{}".to_owned());
    // Nothing tells that the model could read back.
    let server = user.serve(&provider, "", &["--listen", "127.0.0.1:0"]);
    (1..=2).for_each(|n| server.call(n));
    let shown = user.run(&["status"]);
    let reason =
        "2 requests passed open (no-reader): the model has no tool to read stored content with.";
    assert!(shown.out.contains(reason), "{shown:?}");
}

#[test]
fn a_killed_server_leaves_nothing_that_is_asked() {
    let user = User::new();
    let provider = answering("200 OK", "{}".to_owned());
    let page = Serving::on_loopback(&provider, &user).kill();
    assert_eq!(user.files().len(), 1);
    // Whoever listens there now is not asked.
    let port = page.split('/').nth(2).unwrap();
    let listener = TcpListener::bind(port).unwrap();
    listener.set_nonblocking(true).unwrap();
    let live = Serving::on_loopback(&provider, &user);
    let shown = user.json(&["status", "--json"]);
    assert_eq!(shown["servers"].as_array().unwrap().len(), 1);
    assert_eq!(shown["servers"][0]["page"], live.page.as_str());
    assert_eq!(user.files().len(), 1);
    assert!(listener.accept().is_err(), "somebody was asked");
    let also = Serving::on_loopback(&provider, &user);
    let shown = user.run(&["status"]);
    assert!(
        shown.out.contains(&live.page) && shown.out.contains(&also.page),
        "{shown:?}"
    );
}

#[test]
fn a_server_that_is_none_of_ours_is_an_error_without_the_token() {
    let user = User::new();
    let provider = answering("200 OK", "{}".to_owned());
    let server = Serving::on_loopback(&provider, &user);
    let wrong = format!("{}/page#planted-token", server.url);
    let other = format!(
        "http://{}/page#planted-token",
        answering("404 Not Found", "{}".to_owned())
    );
    let list = answering("200 OK", "[]".to_owned());
    let list = format!("http://{list}/page#planted-token");
    for (page, words) in [
        (&*wrong, "the token is not this server's"),
        (&*other, "status 404"),
        (&*list, "not a server of Offcut"),
        ("http://127.0.0.1:1/page#planted-token", "refused"),
        (
            "http://127.0.0.1:1/#planted-token",
            "must be the one that the server printed",
        ),
        ("\u{1b}[31m", "must be the one that the server printed"),
    ] {
        let user = User::new();
        let _running = running(&user, page);
        let ran = user.run(&["status"]);
        assert_eq!((ran.code, &*ran.out), (1, ""), "{page}");
        assert!(ran.err.contains(words), "{page}: {ran:?}");
        assert!(
            !ran.err.contains("planted") && !ran.err.contains('\u{1b}'),
            "{ran:?}"
        );
        let ran = user.run(&["status", "--json"]);
        assert_eq!(ran.code, 1);
        let shown: Value = serde_json::from_str(&ran.out).unwrap();
        assert!(
            shown["servers"][0]["error"]
                .as_str()
                .unwrap()
                .contains(words),
            "{shown}"
        );
    }
}

#[test]
fn whatever_a_server_answers_is_shown_as_text() {
    let hostile = "\u{1b}[2Jevil\u{202e}\n";
    let one = json!({"number": 1, "upstream": hostile, "calls": "x", "before": -1, "after": 1e300});
    let figures = json!({
        "card": {"currency": hostile, "source": hostile, "cached": 0.1, "fresh": 1.0},
        "before": 4_000, "after": u64::MAX, "conversations": [one, 7, null],
        "passed": [{"reason": hostile, "meaning": hostile, "count": 1}, []],
    });
    let page = format!("http://{}/page#0", answering("200 OK", figures.to_string()));
    let user = User::new();
    let _running = running(&user, &page);
    let ran = user.run(&["status"]);
    assert_eq!((ran.code, &*ran.err), (0, ""));
    let is_shown = |c: char| c == '\n' || !c.is_control() && c != '\u{202e}';
    assert!(ran.out.chars().all(is_shown), "{:?}", ran.out);
}

#[test]
fn a_server_on_any_address_is_reached_by_loopback() {
    let provider = answering("200 OK", "{}".to_owned());
    let table = "cut_without_reader = true\ntenant_key = \"a secret of sixteen\"";
    let mut all = vec![("0.0.0.0:0", "http://127.0.0.1:")];
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
        all.extend([("[::]:0", "http://[::1]:"), ("[::1]:0", "http://[::1]:")]);
    }
    for (listen, expected) in all {
        let user = User::new();
        let server = user.serve(&provider, table, &["--expose", "--listen", listen]);
        assert!(server.page.starts_with(expected), "{}", server.page);
        let shown = user.run(&["status"]);
        assert_eq!((shown.code, &*shown.err), (0, ""), "{listen}");
        assert!(shown.out.contains("No request yet."), "{shown:?}");
    }
}

#[test]
fn the_server_of_a_wrapped_agent_is_found_while_it_runs() {
    let user = User::new();
    let claude = user.path("claude");
    fs::write(&claude, "#!/bin/sh\nexec \"$OFFCUT\" status --json\n").unwrap();
    fs::set_permissions(&claude, fs::Permissions::from_mode(0o755)).unwrap();
    // Beside a server with the same settings, whose addresses are taken.
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap();
    let settings = format!("[serve]\nlisten = \"{taken}\"\nmetrics_listen = \"{taken}\"\n");
    fs::write(user.path("offcut.toml"), settings).unwrap();
    let mut wrap = command(&["wrap", "--prices", "anthropic", "claude-code"]);
    let path = std::env::var("PATH").unwrap();
    wrap.env("OFFCUT_HOME", user.0.path())
        .env("PATH", format!("{}:{path}", user.0.path().display()))
        .env("OFFCUT", env!("CARGO_BIN_EXE_offcut"));
    let ran = run_command(&mut wrap, "");
    assert_eq!(ran.code, 0, "{ran:?}");
    let shown: Value = serde_json::from_str(&ran.out).unwrap();
    let figures = &shown["servers"][0]["figures"];
    assert_eq!(
        (&figures["calls"], &figures["card"]["fresh"]),
        (&json!(0), &json!(1.25))
    );
    assert_eq!(user.files(), Vec::<PathBuf>::new());
}

#[test]
fn a_wrapped_agent_ends_with_its_wrapper() {
    let user = User::new();
    let claude = user.path("claude");
    let script = "#!/bin/sh\ntrap 'exit 7' TERM\nkill -TERM $PPID\nsleep 60 >&- 2>&- & wait\n";
    fs::write(&claude, script).unwrap();
    fs::set_permissions(&claude, fs::Permissions::from_mode(0o755)).unwrap();
    let mut wrap = command(&["wrap", "claude"]);
    let path = std::env::var("PATH").unwrap();
    wrap.env("OFFCUT_HOME", user.0.path())
        .env("PATH", format!("{}:{path}", user.0.path().display()));
    let ran = run_command(&mut wrap, "");
    assert_eq!(ran.code, 7, "{ran:?}");
}

#[test]
fn a_log_that_nobody_reads_stops_no_request() {
    let user = User::new();
    let provider = answering("200 OK", "{}".to_owned());
    let mut server = Serving::on_loopback(&provider, &user);
    // Each is a line of the log, and a pipe holds 64 KiB.
    for n in 0..1_000 {
        assert!(server.post("not json").contains("200 OK"), "{n}");
    }
    server.close_log();
    for n in 0..20 {
        assert!(server.post("not json").contains("200 OK"), "{n}, closed");
    }
    assert!(server.ends_by("HUP"));
    assert!(user.files().is_empty(), "no server is noted that has ended");
}

#[test]
fn a_second_signal_ends_a_server_before_its_requests() {
    let user = User::new();
    // It accepts connections, and never answers.
    let provider = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = provider.local_addr().unwrap().to_string();
    let mut server = Serving::on_loopback(&address, &user);
    let mut waiting = TcpStream::connect(server.url.strip_prefix("http://").unwrap()).unwrap();
    waiting
        .write_all(b"GET /openai/v1/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let _held = provider.accept().unwrap();
    let log = server.log();
    // Those within a second count once.
    assert!(!server.has_ended_after("INT"));
    while !server.has_ended_after("INT") {}
    let said = std::io::read_to_string(log).unwrap();
    assert!(said.contains("a second signal ended the server"), "{said}");
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let user = User::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap();
    let settings = user.path("settings.toml");
    fs::write(
        &settings,
        format!("[serve]\nmetrics_listen = \"{taken}\"\n"),
    )
    .unwrap();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--json"];
    let ran = user.run(&[&serve[..], &["--config", settings.to_str().unwrap()]].concat());
    assert_eq!((ran.code, &*ran.out), (1, ""), "{ran:?}");
    // Notes and the error are JSON as the rest of the log is.
    let lines = ran
        .err
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<Value> = lines.collect();
    let says = |line: &Value, field: &str, what: &str| line[field].as_str().unwrap().contains(what);
    let mut notes = lines.iter().filter(|line| line["message"].is_string());
    assert!(
        notes.any(|line| says(line, "message", "stay whole")),
        "{ran:?}"
    );
    let error = lines.last().unwrap();
    let problem = format!("{taken} can't be listened on");
    assert!(says(error, "error", &problem), "{error}");
    assert!(says(error, "hint", "`metrics_listen`"), "{error}");
    assert_eq!(error["code"], 1);
    if cfg!(target_os = "linux") {
        let ran = user.run(&[&serve[..], &["--require-store", "--backend", "/proc/x/y"]].concat());
        assert!(ran.err.contains("/proc/x/y"), "{ran:?}");
        assert!(
            ran.err.contains("its directory can't be made there"),
            "{ran:?}"
        );
    }
}

#[test]
fn with_json_a_server_says_everything_in_lines_of_json() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let provider = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        // A reply that breaks off.
        let (mut stream, _) = listener.accept().unwrap();
        _ = stream.read(&mut [0; 1024]);
        let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}";
        stream.write_all(reply).unwrap();
    });
    let user = User::new();
    let args = ["--listen", "127.0.0.1:0", "--json"];
    let mut server = user.serve(&provider, "cut_without_reader = true", &args);
    server.call(1);
    let log = server.log();
    assert!(server.ends_by("INT"));
    let said = std::io::read_to_string(log).unwrap();
    let lines = said.lines().map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<Value> = lines.collect();
    let line_of = |message: &str| {
        lines
            .iter()
            .find(|line| line["message"] == message)
            .unwrap()
    };
    let location = line_of("tool result reduced")["location"].as_str().unwrap();
    assert!(Path::new(location).exists(), "{location}");
    assert_eq!(
        line_of("the provider's reply broke off")["upstream"],
        "openai"
    );
}

#[test]
fn a_pipe_in_place_of_the_journal_stops_nothing() {
    let user = User::new();
    let provider = answering("200 OK", "{}".to_owned());
    let mut server = Serving::on_loopback(&provider, &user);
    let journal = user.path("journal.jsonl");
    let made = std::process::Command::new("mkfifo").arg(journal).status();
    assert!(made.unwrap().success());
    (1..=3).for_each(|n| server.call(n));
    let log = server.log();
    assert!(server.ends_by("INT"));
    let said = std::io::read_to_string(log).unwrap();
    let times = said.matches("the journal for `offcut gain` can't be written");
    assert_eq!(times.count(), 1, "{said}");
    assert!(said.contains("it is not a regular file"), "{said}");
    assert!(user.run(&["gain"]).err.contains("it is not a regular file"));
}

#[test]
fn a_pipe_among_the_files_of_servers_is_passed_over() {
    let user = User::new();
    fs::create_dir(user.path("servers")).unwrap();
    let pipe = user.path("servers/1-1");
    let made = std::process::Command::new("mkfifo").arg(pipe).status();
    assert!(made.unwrap().success());
    let shown = user.run(&["status"]);
    assert!(
        shown.err.contains("no server of this user runs"),
        "{shown:?}"
    );
}

#[test]
fn a_wrong_base_url_is_blamed_on_the_agents_settings() {
    let user = User::new();
    let settings = r#"{"env": {"ANTHROPIC_BASE_URL": null}}"#;
    fs::write(user.path("settings.json"), settings).unwrap();
    let mut wrap = command(&["wrap", "claude-code"]);
    wrap.env("OFFCUT_HOME", user.0.path())
        .env("CLAUDE_CONFIG_DIR", user.0.path());
    let ran = run_command(&mut wrap, "");
    assert_eq!(ran.code, 2, "{ran:?}");
    let problem = "the agent's own `ANTHROPIC_BASE_URL` for anthropic: this is not a URL";
    assert!(ran.err.contains(problem), "{ran:?}");
}
