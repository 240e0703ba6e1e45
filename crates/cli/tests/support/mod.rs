//! Runs the program as another program would.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Exit code and output of a run.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// The program with `args`, without environment variables that could affect it.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_offcut"));
    command
        .args(args)
        .env("NO_COLOR", "1")
        .env("OFFCUT_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/home"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

#[allow(dead_code, reason = "not every test has a user")]
/// The program with `args`, as a user with this home runs it: no variable leads to agents elsewhere,
/// or switches sweeps off.
pub fn command_of_user(args: &[&str], home: &Path, offcut_home: &Path) -> Command {
    let mut command = command(args);
    for variable in [
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "GEMINI_CLI_HOME",
        "XDG_DATA_HOME",
        "PI_CODING_AGENT_DIR",
        "OFFCUT_NO_SWEEP",
    ] {
        command.env_remove(variable);
    }
    command.env("HOME", home).env("OFFCUT_HOME", offcut_home);
    command
}

/// Runs the program over `stdin`.
pub fn run(args: &[&str], stdin: &str) -> Ran {
    run_command(&mut command(args), stdin)
}

/// Runs a command whose stdin, stdout and stderr are pipes.
pub fn run_command(command: &mut Command, stdin: &str) -> Ran {
    let mut child = command.spawn().expect("the program");
    let mut to = child.stdin.take().expect("piped");
    let input = stdin.to_owned();
    // On a separate thread: the program may write before it has read everything, or exit without
    // reading.
    let writer = std::thread::spawn(move || drop(to.write_all(input.as_bytes())));
    let output = child.wait_with_output().expect("an end");
    writer.join().expect("no panic");
    Ran {
        code: output.status.code().expect("an exit code"),
        out: String::from_utf8(output.stdout).expect("UTF-8"),
        err: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

#[allow(dead_code, reason = "not every test has something that succeeds")]
/// Runs the program, which must succeed.
#[track_caller]
pub fn succeed(args: &[&str], stdin: &str) -> String {
    let ran = run(args, stdin);
    assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
    ran.out
}

#[allow(dead_code, reason = "not every test has something that fails")]
/// Runs the program, which must fail with this exit code, an error on stderr with advice, and
/// nothing on stdout except, for commands in a pipeline, their input.
#[track_caller]
pub fn fail(args: &[&str], stdin: &str, code: i32) -> String {
    let ran = run(args, stdin);
    let passed = if matches!(args[0], "truncate" | "clear") {
        stdin
    } else {
        ""
    };
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (code, passed),
        "{args:?}: {}",
        ran.err
    );
    assert!(
        ran.err.contains("error: ") && ran.err.contains("\nhint: "),
        "{args:?}: {}",
        ran.err
    );
    ran.err
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

#[allow(dead_code, reason = "only tests of hooks have events")]
/// The result of Claude Code's shell as its hooks are shown it, of the call `call`.
pub fn shell_event(call: &str, stdout: &str) -> String {
    serde_json::json!({
        "hook_event_name": "PostToolUse", "session_id": "s1", "cwd": "/", "tool_use_id": call,
        "tool_name": "Bash", "tool_input": {"command": "make"},
        "tool_response": {"stdout": stdout, "stderr": "", "interrupted": false}
    })
    .to_string()
}

#[allow(dead_code, reason = "not every test cuts texts")]
/// Lines in which nothing is odd, so that a preview may leave out any of them.
pub fn words(kind: &str) -> String {
    let letters = |n: u8| char::from(b'a' + n).to_string().repeat(4);
    let line = |n: u8| format!("{kind} words {}{}\n", letters(n % 20), letters(n / 20));
    (0..250).map(line).collect()
}
