//! `offcut line` as Claude Code starts it: a line's shell is the agent's own, and only long output of a line that
//! fails changes.

#![cfg(unix)]

use std::fs::{self, File, OpenOptions};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use crate::support::command;

/// A user with a file for the output of a line.
struct User {
    home: tempfile::TempDir,
}

impl User {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        Self { home }
    }

    fn output(&self) -> PathBuf {
        self.home.path().join("task.output")
    }

    fn file(&self) -> File {
        let mut options = OpenOptions::new();
        options
            .append(true)
            .create(true)
            .open(self.output())
            .unwrap()
    }

    /// Runs `command` over a new file for its output. Returns its end and the file's text.
    fn run(&self, mut command: Command) -> (ExitStatus, String) {
        _ = fs::remove_file(self.output());
        let file = self.file();
        command
            .env("OFFCUT_HOME", self.home.path().join("offcut"))
            .env("HOME", self.home.path())
            .env("SHELL", "/bin/bash")
            .env("CLAUDE_CODE_SESSION_ID", "s1")
            .current_dir(self.home.path())
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file);
        let status = command.status().unwrap();
        (status, fs::read_to_string(self.output()).unwrap())
    }

    fn line(&self, line: &str) -> (Option<i32>, String) {
        let (status, text) = self.run(command(&["line", "claude-code", line]));
        (status.code(), text)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.home.path().join("offcut/hook.log")).unwrap_or_default()
    }
}

/// A line as the agent puts it together around the model's own.
fn wrapped(line: &str) -> String {
    let quoted = line.replace('\'', r#"'"'"'"#);
    format!("source /dev/null || true && eval '{quoted}' < /dev/null && pwd -P >| /dev/null")
}

/// The content that the hint in `text` leads to.
fn read_back(text: &str) -> String {
    assert!(text.starts_with("[offcut/1 "), "{text:.200}");
    fs::read_to_string(text.split('"').nth(1).unwrap()).unwrap()
}

#[test]
fn long_output_of_a_line_that_fails_is_stored_and_replaced() {
    let user = User::new();
    let (code, text) = user.line(&wrapped("seq 1 9000; echo to stderr >&2; exit 3"));
    assert_eq!(code, Some(3));
    let all: String = (1..=9_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(read_back(&text), all + "to stderr\n");
    assert!(
        text.contains("/store/s1/trunc/") && text.contains("Read it with Read."),
        "{text:.300}"
    );
    assert!(text.len() < 10_000);
    assert_eq!(user.log(), "");
}

#[test]
fn all_else_is_as_the_shell_left_it() {
    let user = User::new();
    let long: String = (1..=9_000).map(|n| format!("{n}\n")).collect();
    let cases = [
        ("seq 1 9000", 0, &*long),
        ("echo short; false", 1, "short\n"),
        ("false", 1, ""),
        ("cd /; echo $PWD; kill -9 $$", 137, "/\n"),
        ("trap 'echo trapped' EXIT; exit 7", 7, "trapped\n"),
        ("read x; echo \"it's $?\"", 0, "it's 1\n"),
    ];
    for (line, code, expected) in cases {
        assert_eq!(
            user.line(&wrapped(line)),
            (Some(code), expected.to_owned()),
            "{line}"
        );
    }
    assert!(!user.home.path().join("offcut/store/s1").exists());
}

#[test]
fn output_that_reads_the_store_is_never_stored_again() {
    let user = User::new();
    let (_, text) = user.line(&wrapped("seq 1 9000; exit 3"));
    let path = text.split('"').nth(1).unwrap();
    let (code, text) = user.line(&wrapped(&format!("cat {path}; exit 3")));
    assert_eq!(code, Some(3));
    assert!(
        text.starts_with("1\n2\n") && text.ends_with("9000\n"),
        "{text:.200}"
    );
}

#[test]
fn output_that_is_not_the_lines_own_file_stays() {
    let user = User::new();
    let line = wrapped("seq 1 9000; exit 3");
    // A pipe.
    let mut piped = command(&["line", "claude-code", &line]);
    let output = piped.env("SHELL", "/bin/bash").output().unwrap();
    assert_eq!(
        (output.status.code(), output.stdout.len()),
        (Some(3), 43_893)
    );
    // A file in which something stands already.
    let file = user.file();
    fs::write(user.output(), "before\n").unwrap();
    let mut command = command(&["line", "claude-code", &line]);
    command
        .env("SHELL", "/bin/bash")
        .stdout(file.try_clone().unwrap())
        .stderr(file);
    assert_eq!(command.status().unwrap().code(), Some(3));
    assert!(
        fs::read_to_string(user.output())
            .unwrap()
            .starts_with("before\n1\n")
    );
}

#[test]
fn a_failure_of_ours_leaves_the_output_and_is_logged() {
    let user = User::new();
    fs::create_dir_all(user.home.path().join("offcut")).unwrap();
    fs::write(user.home.path().join("offcut/offcut.toml"), "no such = 1").unwrap();
    let (code, text) = user.line(&wrapped("seq 1 9000; exit 3"));
    assert_eq!((code, text.lines().count()), (Some(3), 9_000));
    assert!(user.log().contains(" line claude-code: "), "{}", user.log());
}

#[test]
fn a_signal_ends_the_line_and_its_output_is_stored() {
    let user = User::new();
    let line = wrapped("seq 1 9000; kill -TERM $PPID; sleep 5");
    let (code, text) = user.line(&line);
    assert_eq!(code, Some(143));
    assert_eq!(read_back(&text).lines().count(), 9_000);
}

#[test]
fn a_signal_that_was_ignored_at_the_start_stays_ignored() {
    let user = User::new();
    for name in ["HUP", "INT", "QUIT", "TERM"] {
        let line = format!("kill -{name} $PPID; kill -{name} $$; seq 1 9000; exit 3");
        let mut ignoring = Command::new("sh");
        ignoring
            .args([
                "-c",
                &format!("trap '' {name}; exec \"$@\""),
                "sh",
                env!("CARGO_BIN_EXE_offcut"),
            ])
            .args(["line", "claude-code", &wrapped(&line)]);
        let (status, text) = user.run(ignoring);
        assert_eq!(status.code(), Some(3), "{name}");
        assert_eq!(read_back(&text).lines().count(), 9_000, "{name}");
    }
}

#[test]
fn the_script_runs_lines_with_and_without_the_program() {
    let user = User::new();
    let install = |program: &Path| {
        let mut install = command(&["install", "claude-code", "--shell-lines", "--program"]);
        install.arg(program).env("HOME", user.home.path());
        install.env("OFFCUT_HOME", user.home.path().join("offcut"));
        assert!(install.output().unwrap().status.success());
    };
    let program = user.home.path().join("it's offcut");
    fs::copy(env!("CARGO_BIN_EXE_offcut"), &program).unwrap();
    install(&program);
    let script = |line: &str| {
        let mut script = Command::new(user.home.path().join("offcut/claude-code-shell"));
        script.arg(line);
        user.run(script)
    };
    let (status, text) = script(&wrapped("seq 1 9000; exit 3"));
    assert_eq!(status.code(), Some(3));
    assert_eq!(read_back(&text).lines().count(), 9_000);
    // Hooks and servers run as they are.
    let (status, text) = script("seq 1 9000; exit 3");
    assert_eq!((status.code(), text.lines().count()), (Some(3), 9_000));
    fs::remove_file(&program).unwrap();
    let (status, text) = script(&wrapped("seq 1 9000; [[ a == a ]] && exit 3"));
    assert_eq!((status.code(), text.lines().count()), (Some(3), 9_000));
    let (status, _) = script("kill -TERM $$");
    assert_eq!(status.signal(), Some(15));
}
