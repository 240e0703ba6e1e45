//! `offcut run`: a command's output as a model is to see it, and everything else as without it.
#![cfg(unix)]
// Helpers are part of the tests.

use std::fs;
#[cfg(target_os = "linux")]
use std::os::unix::process::CommandExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::support::{command, run, run_command, succeed, text};
use offcut::hint::Hint;
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

/// The only entry of `folder` whose name begins with `begin`.
fn only(folder: &Path, begin: &str) -> PathBuf {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut found =
        entries.filter(|path| text(path.strip_prefix(folder).unwrap()).starts_with(begin));
    let entry = found.next().unwrap();
    assert_eq!(found.next(), None);
    entry
}

/// The only content stored below `home`: in the conversation of a day.
fn stored(home: &TempDir) -> Vec<u8> {
    let day = only(&home.path().join("store"), "run-");
    fs::read(only(&day.join("trunc"), "")).unwrap()
}

/// The hint at the end of what was shown.
fn hint_in(shown: &str) -> Hint {
    let hint = &shown[shown.find("[offcut/1 ").unwrap()..];
    assert!(hint.ends_with('\n'), "{hint}");
    // A preview may end with a line feed itself.
    let hint = Hint::parse(hint).or_else(|| Hint::parse(&hint[..hint.len() - 1]));
    hint.unwrap()
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
        shown.starts_with("1\n2\n3\n") && shown.contains("\n[offcut/1 truncated 588895B/100000L "),
        "{shown}"
    );
    assert!(shown.len() < 8_000);
    assert_eq!(String::from_utf8(stored(&home)).unwrap(), seq(100_000));
    assert!(shown.contains("Read it with offcut read."), "{shown}");
    let hint = hint_in(&shown);
    // Without options, any conversation in the user's store can be read.
    let location = hint.location.unwrap();
    let key = location.as_str().strip_prefix(text(home.path())).unwrap();
    let key = key.strip_prefix("/store/").unwrap();
    for named in [location.as_str(), key] {
        let mut read = command(&["read", named, "--offset", "99999"]);
        let page = run_command(read.env("OFFCUT_HOME", home.path()), "");
        assert_eq!(page.code, 0, "{named}: {}", page.err);
        assert!(page.out.contains("\n99999\n100000"), "{}", page.out);
    }
    let mut read = command(&["read", location.as_str(), "--session", "s1"]);
    let refused = run_command(read.env("OFFCUT_HOME", home.path()), "");
    assert_eq!(refused.code, 2, "{}", refused.out);
    assert!(refused.err.contains("--session"), "{}", refused.err);
}

#[test]
fn the_users_settings_count() {
    let home = tempdir().unwrap();
    let store = home.path().join("elsewhere");
    let settings = format!(
        "backend = \"{}\"\nmax_length_for_trunc = 1_000\npreview_length = 0\n",
        text(&store)
    );
    fs::write(home.path().join("offcut.toml"), settings).unwrap();
    let shown = String::from_utf8(output_of(&home, &["seq", "1", "400"]).stdout).unwrap();
    let location = hint_in(&shown).location.unwrap();
    assert!(location.as_str().starts_with(text(&store)), "{shown}");
    let mut read = command(&["read", location.as_str()]);
    let page = run_command(read.env("OFFCUT_HOME", home.path()), "");
    assert!(page.out.contains("\n199\n200\n"), "{page:?}");
    // Options go before them.
    let ran = output_of(&home, &["--config", "recommended", "seq", "1", "400"]);
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), seq(400));
    // Also what is stored elsewhere is read without them.
    let other = text(&home.path().join("other")).to_owned();
    let ran = output_of(
        &home,
        &[
            "--config",
            "gentle",
            "--backend",
            &other,
            "seq",
            "1",
            "9000",
        ],
    );
    let shown = String::from_utf8(ran.stdout).unwrap();
    assert!(shown.contains("Read it with offcut read."), "{shown}");
    let location = hint_in(&shown).location.unwrap();
    assert!(location.as_str().starts_with(&other), "{shown}");
    let page = run(&["read", location.as_str(), "--pattern", "^8999$"], "");
    assert!(page.out.contains("8999:8999"), "{page:?}");
    let asked = serde_json::json!({"path": location.as_str()}).to_string();
    let ran = run(&["read", "--arguments", &asked], "");
    assert_ne!(
        ran.code, 0,
        "a model reads its own store alone: {}",
        ran.out
    );
}

#[test]
fn w1_each_day_is_a_conversation_that_goes_by_its_age() {
    let home = tempdir().unwrap();
    shell(&home, "seq 1 9000");
    let store = home.path().join("store");
    let (today, old) = (only(&store, "run-"), store.join("run-20000/trunc"));
    fs::create_dir_all(&old).unwrap();
    let file = old.join("run-1-1");
    fs::write(&file, "old").unwrap();
    let time = std::time::SystemTime::now() - Duration::from_secs(31 * 24 * 60 * 60);
    let opened = fs::File::options().write(true).open(&file).unwrap();
    opened.set_modified(time).unwrap();
    let sweep = ["sweep", text(&store), "--nothing-is-live", "--apply"];
    succeed(&sweep, "");
    assert!(today.exists() && !file.exists());
    // A session of one's own stays one conversation.
    output_of(&home, &["--session", "mine", "seq", "1", "9000"]);
    assert!(store.join("mine/trunc").exists());
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
            shown.contains(&format!("\n[offcut/1 truncated {bytes} ")),
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
    let numbered = "\n2001|test pay::refund ... FAILED\n";
    assert!(shown.contains(numbered), "{shown}");
    assert!(shown.len() < 8_000, "{}", shown.len());
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

/// Starts `line`, waits until it has written the file `ready` in the store's home, sends a signal to
/// `offcut` alone, and returns its output.
fn signalled(home: &TempDir, signal: &str, line: &str) -> Output {
    let ready = home.path().join("ready");
    let line = line.replace("READY", &format!("echo > '{}'", ready.display()));
    let child = offcut_run(home.path(), &["--", "sh", "-c", &line])
        .spawn()
        .unwrap();
    wait_until(|| ready.exists());
    kill(signal, &child.id().to_string());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), None);
    output
}

#[test]
fn signals_of_a_users_own_reach_the_command() {
    for signal in ["USR1", "USR2", "QUIT"] {
        let home = tempdir().unwrap();
        let line =
            format!("trap 'echo told; exit 3' {signal}; READY; while :; do sleep 0.05; done");
        let ran = signalled(&home, &format!("-{signal}"), &line);
        assert_eq!(
            (ran.stdout.as_slice(), ran.status.code()),
            (&b"told\n"[..], Some(3)),
            "{signal}"
        );
    }
}

#[test]
fn output_before_a_time_out_is_shown_and_stored() {
    let home = tempdir().unwrap();
    // A shell that waits for a child in the foreground would see the signal only afterwards.
    let ran = signalled(&home, "-TERM", "seq 1 50000; READY; exec sleep 100");
    assert_eq!(ran.status.code(), Some(143));
    let shown = String::from_utf8(ran.stdout).unwrap();
    assert!(
        shown.contains("\n[offcut/1 truncated 288894B/50000L "),
        "{shown}"
    );
    assert_eq!(String::from_utf8(stored(&home)).unwrap(), seq(50_000));
}

#[test]
fn a_command_that_ignores_the_signal_is_not_waited_for() {
    let home = tempdir().unwrap();
    let ran = signalled(
        &home,
        "-TERM",
        "trap '' TERM; echo begun; READY; exec sleep 100",
    );
    assert_eq!(
        (ran.stdout.as_slice(), ran.status.code()),
        (&b"begun\n"[..], Some(143))
    );
}

/// Runs `line` where no file gets longer than a few blocks.
fn with_full_store(home: &TempDir, line: &str) -> Command {
    let limited = "ulimit -f 20; exec \"$0\" run -- sh -c \"$1\"";
    let mut sh = Command::new("sh");
    sh.args(["-c", limited, env!("CARGO_BIN_EXE_offcut"), line])
        .env("OFFCUT_HOME", home.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    sh
}

/// Waits until `is_so`, which happens soon or never.
fn wait_until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns true if the process whose id `file` holds is alive.
fn is_alive(file: &Path) -> bool {
    let pid = fs::read_to_string(file).unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

fn kill(signal: &str, pid: &str) {
    let sent = Command::new("kill").args([signal, "--", pid]).status();
    assert!(sent.unwrap().success());
}

/// A line that starts processes in the background; each tells its id and, at last, that it could write.
#[cfg(target_os = "linux")]
const LEFT: [&str; 5] = [
    // Quiet until later.
    "sh -c 'echo $$ > PID; sleep 0.8; echo late; echo > DONE; exec sleep 9' &",
    // More often than a pipe is waited for.
    "sh -c 'echo $$ > PID; i=0; while [ $i -lt 40 ]; do echo tick; sleep 0.05; i=$((i+1)); done; echo > DONE; exec sleep 9' &",
    // More than a pipe holds, without a pause.
    "sh -c 'echo $$ > PID; seq 1 900000 >&2; echo > DONE; exec sleep 9' &",
    "setsid sh -c 'echo $$ > PID; sleep 0.8; echo late >&2; echo > DONE; exec sleep 9' &",
    "nohup sh -c 'echo $$ > PID; sleep 0.8; echo late; echo > DONE; exec sleep 9' & sleep 9 & sleep 9 >&2 &",
];

#[cfg(target_os = "linux")]
#[test]
fn what_is_left_in_the_background_lives_and_is_not_waited_for() {
    for left in LEFT {
        let home = tempdir().unwrap();
        let (pid, done) = (home.path().join("pid"), home.path().join("done"));
        let line = left.replace("PID", text(&pid)).replace("DONE", text(&done));
        let line = format!(
            "{line} while ! [ -s '{}' ]; do sleep 0.01; done; echo started; exit 3",
            text(&pid)
        );
        let ran = shell(&home, &line);
        assert_eq!(ran.status.code(), Some(3), "{left}");
        assert!(
            String::from_utf8_lossy(&ran.stdout).contains("started\n"),
            "{left}"
        );
        wait_until(|| done.exists());
        assert!(is_alive(&pid), "{left}");
        kill("-KILL", fs::read_to_string(&pid).unwrap().trim());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_ends_the_wait_for_the_background() {
    for signal in ["-TERM", "-HUP", "-INT"] {
        let home = tempdir().unwrap();
        let ready = home.path().join("ready");
        let line = format!(
            "sleep 9 & echo started; echo > '{}'; kill {signal} $PPID; exit 3",
            ready.display()
        );
        let ran = shell(&home, &line);
        assert_eq!(ran.stdout, b"started\n", "{signal}");
        assert_eq!(ran.status.signal(), None, "{signal}");
    }
}

#[test]
fn signals_are_heard_until_the_last_byte_is_out() {
    let home = tempdir().unwrap();
    // Too little can be stored, so everything is shown, which is more than the pipe takes that nobody reads.
    let done = home.path().join("done");
    let line = format!("seq 1 20000; : > '{}'", done.display());
    let mut child = with_full_store(&home, &line).spawn().unwrap();
    wait_until(|| done.exists());
    kill("-TERM", &child.id().to_string());
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), None);
}

#[test]
fn output_is_shown_as_it_comes() {
    let home = tempdir().unwrap();
    let long = seq(200);
    for (line, first) in [
        ("echo ready on 3000; cat", "ready on 3000\n"),
        ("printf 'Continue? [y/N] '; cat", "Continue? [y/N] "),
        ("printf '\\033[1mred\\r'; cat", "\u{1b}[1mred\r"),
        ("seq 1 200; cat", &long),
        ("seq 1 200 >&2; echo more >&2; echo also; cat", "also\n"),
    ] {
        let mut run = offcut_run(home.path(), &["--", "sh", "-c", line]);
        let mut child = run.stdin(Stdio::piped()).spawn().unwrap();
        let mut shown = vec![0; first.len()];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut shown).unwrap();
        assert_eq!(String::from_utf8(shown).unwrap(), first, "{line}");
        // Only now does the command end.
        drop(child.stdin.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (output.status.code(), output.stdout),
            (Some(0), Vec::new()),
            "{line}"
        );
    }
}

#[test]
fn what_is_shown_is_within_the_limit_whatever_its_length() {
    let home = tempdir().unwrap();
    let lines = |count: usize| -> String {
        let line = |n| format!("2026-07-01 GET /items/{n} took {}ms\n", n * 7 % 113);
        (1..=count).map(line).collect()
    };
    let one_line = |length: usize| "{\"name\": \"Ünal\"}, ".repeat(length / 20);
    for count in [50, 90, 100, 150, 200, 220, 300, 2_000] {
        for (what, text) in [
            ("lines", lines(count)),
            ("one line", one_line(count * 40)),
            ("plain", "word word\n".repeat(count * 4)),
        ] {
            let file = home.path().join("text");
            fs::write(&file, &text).unwrap();
            let id = format!("{count}-{}", what.len());
            let ran = output_of(
                &home,
                &[
                    "--call-id",
                    &id,
                    "sh",
                    "-c",
                    "cat < \"$0\"",
                    self::text(&file),
                ],
            );
            let shown = String::from_utf8(ran.stdout).unwrap();
            assert!(
                shown.len() <= 8_000 && shown.len() <= text.len(),
                "{id}: {}",
                shown.len()
            );
            if shown != text {
                let (begins, _) = shown.split_at(shown.find("[offcut/1 ").unwrap());
                let hint = hint_in(&shown);
                let stored = fs::read_to_string(hint.location.unwrap().as_str()).unwrap();
                assert!(stored == text, "{id}");
                assert!(
                    text.starts_with(begins.trim_end_matches('\n')),
                    "{id}: {shown}"
                );
                assert!((500..=1_001).contains(&begins.len()), "{id}: {shown}");
            }
        }
    }
}

#[test]
fn a_command_whose_output_nobody_reads_is_told() {
    let home = tempdir().unwrap();
    for (line, kept) in [
        // Each would go on for ever.
        ("\"$OFFCUT\" run -- yes | head -n1", "y\n"),
        (
            "\"$OFFCUT\" run -- sh -c 'yes >&2' 2>&1 >/dev/null | head -n1",
            "y\n",
        ),
        (
            "\"$OFFCUT\" run -- sh -c 'seq 9000; sleep 0.1; yes' | head -n1",
            "1\n",
        ),
        (
            "\"$OFFCUT\" run -- sh -c 'while :; do echo pod ready; sleep 0.02; done' | grep -m1 ready",
            "pod ready\n",
        ),
        // A plain command ends like this too, and in silence.
        (
            "\"$OFFCUT\" run -- yes | head -n1; echo ${PIPESTATUS[0]}",
            "y\n141\n",
        ),
    ] {
        let mut bash = Command::new("bash");
        bash.args(["-c", line]).env("OFFCUT_HOME", home.path());
        let ran = bash
            .env("OFFCUT", env!("CARGO_BIN_EXE_offcut"))
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(ran.stdout).unwrap(), kept, "{line}");
        assert!(
            ran.stderr.is_empty(),
            "{line}: {}",
            String::from_utf8_lossy(&ran.stderr)
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_quiet_command_is_told_that_nobody_reads_any_more() {
    let home = tempdir().unwrap();
    let log = home.path().join("log");
    fs::write(&log, seq(5)).unwrap();
    let mut run = offcut_run(home.path(), &["tail", "-f", text(&log)]);
    let mut child = run.spawn().unwrap();
    let mut shown = [0; 10];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut shown).unwrap();
    drop(child.stdout.take());
    // `tail` looks after its own output, and nothing is ever written to it again.
    child.wait().unwrap();
}

#[test]
fn scripts_without_a_first_line_run() {
    let home = tempdir().unwrap();
    let script = home.path().join("script");
    fs::write(&script, "echo \"$1\"; exit 4\n").unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&script, executable).unwrap();
    for name in [text(&script), "script"] {
        let mut run = offcut_run(home.path(), &[name, "a b"]);
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", home.path().display());
        let ran = run.env("PATH", path).output().unwrap();
        assert_eq!(
            (ran.stdout, ran.status.code()),
            (b"a b\n".to_vec(), Some(4)),
            "{name}"
        );
    }
    // So does a server.
    let mut server = command(&["mcp", "--", text(&script)]);
    server.env("OFFCUT_HOME", home.path()).stdin(Stdio::null());
    assert_eq!(server.status().unwrap().code(), Some(4));
    // Also if it runs without offcut.
    let ran = output_of(&home, &["--config", "nonexistent.toml", text(&script), "b"]);
    assert_eq!((ran.stdout, ran.status.code()), (b"b\n".to_vec(), Some(4)));
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
        let line = format!("seq 1 {count}");
        for mut run in [
            offcut_run(home.path(), &["--backend", text(&file), "sh", "-c", &line]),
            with_full_store(&home, &line),
        ] {
            let ran = run.output().unwrap();
            assert_eq!(ran.status.code(), Some(0));
            assert!(ran.stdout == seq(count).as_bytes(), "{count}");
            assert!(!ran.stderr.is_empty(), "a warning");
        }
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

// Elsewhere they can't be asked for without unsafe code.
#[cfg(target_os = "linux")]
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
        wait_until(|| there("ready").exists());
        kill(&format!("-{name}"), &format!("-{}", child.id()));
        fs::write(there("go"), "").unwrap();
        let ran = child.wait_with_output().unwrap();
        assert_eq!(ran.status.code(), Some(0), "{name}");
        assert_eq!(ran.stdout, b"begun\ndone\n", "{name}");
    }
}
