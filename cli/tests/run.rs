//! `offcut run`: a command's output as a model is to see it, and everything else as without it.
#![cfg(unix)]
// Helpers are part of the tests.
#![allow(clippy::unwrap_used, clippy::expect_used, unreachable_pub)]

mod support;

use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use support::{command, run_command, succeed, text};
use tempfile::{TempDir, tempdir};

/// `offcut run` with a store of its own. `args` are its options and the command.
fn offcut_run(home: &Path, args: &[&str]) -> Command {
    let mut run = command(&[&["run"], args].concat());
    run.env("OFFCUT_HOME", home).stdin(Stdio::null());
    run
}

fn output_of(home: &TempDir, args: &[&str]) -> Output {
    offcut_run(home.path(), args).output().unwrap()
}

fn shell(home: &TempDir, line: &str) -> Output {
    output_of(home, &["--", "sh", "-c", line])
}

/// The lines that `seq 1 count` prints.
fn seq(count: usize) -> String {
    (1..=count).map(|n| format!("{n}\n")).collect()
}

/// The only content stored below `home`.
fn stored(home: &TempDir) -> Vec<u8> {
    let folder = home.path().join("store/trunc");
    let mut files = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let file = files.next().unwrap();
    assert_eq!(files.next(), None);
    fs::read(file).unwrap()
}

#[test]
fn short_output_comes_through_byte_for_byte() {
    let home = tempdir().unwrap();
    let bytes = b"a\xff\0b \xe2\x82 no line feed";
    let file = home.path().join("bytes");
    fs::write(&file, bytes).unwrap();
    let ran = output_of(&home, &["cat", text(&file)]);
    assert_eq!(
        (ran.stdout.as_slice(), ran.status.code()),
        (&bytes[..], Some(0))
    );
    assert!(ran.stderr.is_empty());
    let ran = shell(&home, "printf out; printf err >&2");
    assert_eq!((ran.stdout, ran.stderr), (b"out".into(), b"err".into()));
    assert_eq!(output_of(&home, &["true"]).stdout, b"");
}

#[test]
fn l1_long_output_is_stored_whole_and_read_back() {
    let home = tempdir().unwrap();
    let ran = output_of(&home, &["seq", "1", "100000"]);
    let shown = String::from_utf8(ran.stdout).unwrap();
    assert!(
        shown.starts_with("[offcut/1 truncated 588895B/100000L "),
        "{shown}"
    );
    assert!(shown.len() < 8_000);
    assert_eq!(String::from_utf8(stored(&home)).unwrap(), seq(100_000));
    let location = shown.split('"').nth(1).unwrap();
    let store = home.path().join("store");
    let page = succeed(
        &[
            "read",
            location,
            "--backend",
            text(&store),
            "--offset",
            "99999",
        ],
        "",
    );
    assert!(page.contains("\n99999\n100000"), "{page}");
}

#[test]
fn lines_of_one_pipe_stay_in_order() {
    let home = tempdir().unwrap();
    let line = format!(
        "'{}' run -- sh -c 'for n in 1 2 3; do echo out $n; echo err $n >&2; done' 2>&1",
        env!("CARGO_BIN_EXE_offcut")
    );
    let ran = Command::new("sh")
        .args(["-c", &line])
        .env("OFFCUT_HOME", home.path())
        .output()
        .unwrap();
    let shown = String::from_utf8(ran.stdout).unwrap();
    assert_eq!(shown, "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n");
}

#[test]
fn long_streams_of_their_own_are_stored_apart() {
    let home = tempdir().unwrap();
    let ran = shell(&home, "seq 1 2000; seq 5001 9000 >&2");
    for (stream, bytes) in [(ran.stdout, "8893B/2000L"), (ran.stderr, "20000B/4000L")] {
        let shown = String::from_utf8(stream).unwrap();
        assert!(
            shown.starts_with(&format!("[offcut/1 truncated {bytes} ")),
            "{shown}"
        );
    }
}

#[test]
fn failing_lines_are_shown() {
    let home = tempdir().unwrap();
    let tests = "for n in $(seq 1 2000); do echo \"test parser::case_$n ... ok\"; done";
    let line = format!("{tests}; echo 'test pay::refund ... FAILED'; {tests}");
    let shown = String::from_utf8(shell(&home, &line).stdout).unwrap();
    assert!(shown.contains("test pay::refund ... FAILED"), "{shown}");
}

#[test]
fn exit_codes_are_those_of_a_shell() {
    let home = tempdir().unwrap();
    for (line, code) in [
        ("exit 7", 7),
        ("exit 0", 0),
        ("kill -9 $$", 137),
        ("kill -15 $$", 143),
    ] {
        assert_eq!(shell(&home, line).status.code(), Some(code), "{line}");
    }
    let ran = output_of(&home, &["/nonexistent/program"]);
    assert_eq!(ran.status.code(), Some(127));
    assert!(String::from_utf8(ran.stderr).unwrap().contains("hint: "));
    let plain = home.path().join("plain");
    fs::write(&plain, "no program").unwrap();
    assert_eq!(output_of(&home, &[text(&plain)]).status.code(), Some(126));
}

#[test]
fn stdin_belongs_to_the_command() {
    let home = tempdir().unwrap();
    let mut run = offcut_run(home.path(), &["--", "tr", "a-z", "A-Z"]);
    let ran = run_command(run.stdin(Stdio::piped()), "some text\n");
    assert_eq!((ran.out.as_str(), ran.code), ("SOME TEXT\n", 0));
}

/// Starts `line`, waits until it has written the file `ready` in the store's home, sends SIGTERM to
/// `offcut` alone, and returns its output.
fn terminated(home: &TempDir, line: &str) -> Output {
    let ready = home.path().join("ready");
    let line = line.replace("READY", &format!("echo > '{}'", ready.display()));
    let child = offcut_run(home.path(), &["--", "sh", "-c", &line])
        .spawn()
        .unwrap();
    while !ready.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), None);
    output
}

#[test]
fn output_before_a_time_out_is_shown_and_stored() {
    let home = tempdir().unwrap();
    // A shell that waits for a child in the foreground would see the signal only afterwards.
    let ran = terminated(&home, "seq 1 50000; READY; exec sleep 100");
    assert_eq!(ran.status.code(), Some(143));
    let shown = String::from_utf8(ran.stdout).unwrap();
    assert!(
        shown.starts_with("[offcut/1 truncated 288894B/50000L "),
        "{shown}"
    );
    assert_eq!(String::from_utf8(stored(&home)).unwrap(), seq(50_000));
}

#[test]
fn a_command_that_ignores_the_signal_is_not_waited_for() {
    let home = tempdir().unwrap();
    let ran = terminated(&home, "trap '' TERM; echo begun; READY; exec sleep 100");
    assert_eq!(
        (ran.stdout.as_slice(), ran.status.code()),
        (&b"begun\n"[..], Some(143))
    );
}

#[test]
fn a_process_in_the_background_is_not_waited_for() {
    let home = tempdir().unwrap();
    let ran = shell(&home, "sleep 100 & echo started; exit 3");
    assert_eq!(
        (ran.stdout.as_slice(), ran.status.code()),
        (&b"started\n"[..], Some(3))
    );
    let ran = shell(
        &home,
        "(yes & echo $! > \"$OFFCUT_HOME/pid\"); sleep 0.1; exit 4",
    );
    assert_eq!(ran.status.code(), Some(4));
    let pid = fs::read_to_string(home.path().join("pid")).unwrap();
    // It has ended already if its pipe was closed while it wrote.
    _ = Command::new("kill")
        .arg(pid.trim())
        .stderr(Stdio::null())
        .status();
}

#[test]
fn l2_a_command_runs_unchanged_if_offcut_fails() {
    let home = tempdir().unwrap();
    let ran = output_of(
        &home,
        &[
            "--config",
            "nonexistent.toml",
            "--",
            "sh",
            "-c",
            "seq 1 9000; exit 5",
            "sh",
            "--json",
        ],
    );
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), seq(9_000));
    assert_eq!(ran.status.code(), Some(5));
    let err = String::from_utf8(ran.stderr).unwrap();
    assert!(
        err.starts_with("error: "),
        "`--json` is the command's: {err}"
    );
    assert!(err.contains("running the command without offcut"), "{err}");
    let mut homeless = offcut_run(home.path(), &["seq", "1", "9000"]);
    let ran = homeless
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), seq(9_000));
}

#[test]
fn l1_output_that_can_not_be_stored_is_shown_whole() {
    let home = tempdir().unwrap();
    // Nothing can be created below a file. Three million lines are more than is held in memory.
    let file = home.path().join("file");
    fs::write(&file, "").unwrap();
    for count in [9_000, 3_000_000] {
        let ran = output_of(
            &home,
            &["--backend", text(&file), "seq", "1", &count.to_string()],
        );
        assert_eq!(ran.status.code(), Some(0));
        assert!(ran.stdout == seq(count).as_bytes(), "{count}");
        assert!(!ran.stderr.is_empty(), "a warning");
    }
}

#[test]
fn a_command_without_an_output_still_runs() {
    let home = tempdir().unwrap();
    let file = home.path().join("done");
    let line = format!(
        "'{}' run touch '{}' >&-",
        env!("CARGO_BIN_EXE_offcut"),
        file.display()
    );
    let ran = Command::new("sh")
        .args(["-c", &line])
        .env("OFFCUT_HOME", home.path())
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    assert!(file.exists());
}

#[test]
fn signals_that_were_ignored_at_the_start_stay_ignored() {
    for name in ["HUP", "INT", "QUIT", "TERM"] {
        let home = tempdir().unwrap();
        let there = |file: &str| home.path().join(file);
        let command = format!(
            "echo begun; : > '{}'; while ! [ -e '{}' ]; do sleep 0.01; done; echo done",
            there("ready").display(),
            there("go").display()
        );
        let line = format!(
            "trap '' {name}; exec '{}' run -- sh -c \"$1\"",
            env!("CARGO_BIN_EXE_offcut")
        );
        // The signal goes to both processes, as that of a terminal that hangs up.
        let child = Command::new("sh")
            .args(["-c", &line, "sh", &command])
            .env("OFFCUT_HOME", home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        while !there("ready").exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let group = format!("-{}", child.id());
        let sent = Command::new("kill")
            .args([&format!("-{name}"), "--", &group])
            .status()
            .unwrap();
        assert!(sent.success());
        fs::write(there("go"), "").unwrap();
        let ran = child.wait_with_output().unwrap();
        assert_eq!(ran.status.code(), Some(0), "{name}");
        assert_eq!(ran.stdout, b"begun\ndone\n", "{name}");
    }
}
