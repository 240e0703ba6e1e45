//! Rewritten lines of shells: the same exit code, effects and text as the lines themselves.
#![cfg(unix)]
// Helpers are part of the tests.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    unreachable_pub
)]

#[path = "shells/lines.rs"]
mod lines;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use offcut_agents::shell::{Shell, Sink, rewrite};
use tempfile::{TempDir, tempdir};

const SHELLS: [(&str, Shell); 3] = [
    ("bash", Shell::Bash),
    ("zsh", Shell::Zsh),
    ("dash", Shell::Dash),
];

/// Appended as agents do: the directory, the status and variables after the line.
const APPENDED: &str = "\n__status=$?; printf '[%s] %s %s %s\\n' \"$__status\" \"${V-unset}\" \"$(umask)\" \"$-\"; pwd -P; exit \"$__status\"";

/// The shells that this machine has.
fn shells() -> impl Iterator<Item = (&'static str, Shell)> {
    SHELLS.into_iter().filter(|(name, _)| {
        let mut version = Command::new(name);
        let is_there = version.args(["-c", ":"]).status().is_ok();
        if !is_there {
            println!("skipped: there is no {name}");
        }
        is_there
    })
}

/// The outcome of a line.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    code: Option<i32>,
    signal: Option<i32>,
    out: String,
    err: String,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

#[derive(Debug, Clone, Copy)]
enum Streams {
    /// Stdout and stderr are one pipe.
    One,
    Two,
}

/// A place to run lines in, always under the same path.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempdir().unwrap();
        Self { folder }
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Rewrites a line for a sink of its own.
    fn rewritten(&self, line: &str, shell: Shell, program: &str) -> Option<String> {
        let directory = self.folder.path().join("sink");
        let sink = Sink {
            program,
            directory: directory.to_str().unwrap(),
            options: &[],
        };
        rewrite(line, shell, &sink)
    }

    fn command(&self, name: &str, line: &str) -> Command {
        let work = self.folder.path().join("work");
        _ = fs::remove_dir_all(&work);
        fs::create_dir(&work).unwrap();
        let mut command = Command::new(name);
        command
            .args(["-c", line])
            .current_dir(&work)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", &work)
            .env("LC_ALL", "C")
            .env("OFFCUT_HOME", self.home())
            .stdin(Stdio::null());
        command
    }

    fn run(&self, name: &str, line: &str, streams: Streams) -> Outcome {
        let mut command = self.command(name, line);
        let (mut out, to) = std::io::pipe().unwrap();
        command.stdout(to.try_clone().unwrap());
        let mut err = None;
        match streams {
            Streams::One => _ = command.stderr(to),
            Streams::Two => {
                drop(to);
                let (from, to) = std::io::pipe().unwrap();
                command.stderr(to);
                err = Some(from);
            }
        }
        let mut child = command.spawn().unwrap();
        drop(command);
        let err = std::thread::spawn(move || err.map(text).unwrap_or_default());
        let out = text(&mut out);
        let status = child.wait().unwrap();
        Outcome {
            code: status.code(),
            signal: status.signal(),
            out,
            err: err.join().unwrap(),
            files: files(&self.folder.path().join("work")),
        }
    }

    /// The stored texts, which are removed.
    fn stored(&self) -> Vec<String> {
        let stored = files(&self.home().join("store/trunc"));
        _ = fs::remove_dir_all(self.home());
        let texts = stored.into_values().map(String::from_utf8);
        texts.map(Result::unwrap).collect()
    }
}

fn text(mut pipe: impl Read) -> String {
    let mut bytes = Vec::new();
    pipe.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let files = entries.flat_map(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let mut inside = files(&path);
            inside.insert(path, Vec::new());
            inside
        } else {
            let content = fs::read(&path).unwrap();
            BTreeMap::from([(path, content)])
        }
    });
    files.collect()
}

fn program() -> &'static str {
    env!("CARGO_BIN_EXE_offcut")
}

#[test]
fn short_lines_are_the_same() {
    assert!(lines::LINES.len() >= 200);
    let mut different = Vec::new();
    for (name, shell) in shells() {
        let (place, mut count) = (Place::new(), 0);
        for line in lines::LINES {
            let Some(rewritten) = place.rewritten(line, shell, program()) else {
                continue;
            };
            count += 1;
            for streams in [Streams::One, Streams::Two] {
                let before = place.run(name, &format!("{line}{APPENDED}"), streams);
                let after = place.run(name, &format!("{rewritten}{APPENDED}"), streams);
                if before != after {
                    different.push(format!(
                        "{name}, {streams:?}: {line}\n{before:?}\n{after:?}"
                    ));
                }
                let sink = place.folder.path().join("sink");
                assert!(!sink.exists(), "{name}: {line}");
            }
        }
        println!(
            "{name}: {count} of {} lines are rewritten",
            lines::LINES.len()
        );
        assert!(count > 160, "{name}: {count}");
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn l1_long_lines_are_stored_whole() {
    for (name, shell) in shells() {
        let place = Place::new();
        for line in lines::LONG {
            let rewritten = place.rewritten(line, shell, program()).expect(line);
            for streams in [Streams::One, Streams::Two] {
                let before = place.run(name, line, streams);
                let after = place.run(name, &rewritten, streams);
                assert_eq!(
                    (before.code, before.signal, &before.files),
                    (after.code, after.signal, &after.files),
                    "{name}, {streams:?}: {line}"
                );
                let mut expected = vec![before.out, before.err];
                expected.retain(|text| text.len() > 8_000);
                expected.sort();
                let mut stored = place.stored();
                stored.sort();
                assert!(stored == expected, "{name}, {streams:?}: {line}");
                let shown = after.out + &after.err;
                assert!(
                    shown.contains("[offcut/1 truncated "),
                    "{name}: {line}: {shown}"
                );
            }
        }
    }
}

#[test]
fn l2_lines_run_unchanged_without_the_program_or_its_store() {
    for (name, shell) in shells() {
        let place = Place::new();
        for line in [
            "echo a; cd /; (exit 3)",
            "exit 4",
            "seq 1 9000; V=x",
            "set -e; false",
        ] {
            let line = format!("{line}{APPENDED}");
            let before = place.run(name, &line, Streams::One);
            let gone = place
                .rewritten(&line, shell, "/nonexistent/offcut")
                .unwrap();
            assert_eq!(
                before,
                place.run(name, &gone, Streams::One),
                "{name}: {line}"
            );
            // The directory of the sink is taken.
            let taken = place.folder.path().join("sink");
            fs::create_dir(&taken).unwrap();
            let rewritten = place.rewritten(&line, shell, program()).unwrap();
            let after = place.run(name, &rewritten, Streams::One);
            assert_eq!(before, after, "{name}: {line}");
            fs::remove_dir(taken).unwrap();
            _ = fs::remove_dir_all(place.home());
            // Nothing can be created below a file.
            fs::write(place.home(), "").unwrap();
            let after = place.run(name, &rewritten, Streams::Two);
            assert_eq!(
                (before.code, &before.out),
                (after.code, &after.out),
                "{name}: {line}"
            );
            fs::remove_file(place.home()).unwrap();
        }
    }
}

#[test]
fn output_before_a_time_out_is_shown_and_stored() {
    for (name, shell) in shells() {
        let place = Place::new();
        let line = "seq 1 50000; touch ready; sleep 100; echo no";
        let rewritten = place.rewritten(line, shell, program()).unwrap();
        let mut command = place.command(name, &rewritten);
        let mut child = command
            .process_group(0)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        while !place.folder.path().join("work/ready").exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let group = format!("-{}", child.id());
        let killed = Command::new("kill").args(["-KILL", "--", &group]).status();
        assert!(killed.unwrap().success());
        let shown = text(child.stdout.take().unwrap());
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        assert!(
            shown.starts_with("[offcut/1 truncated 288894B/50000L "),
            "{name}: {shown}"
        );
        let expected: String = (1..=50_000).map(|n| format!("{n}\n")).collect();
        assert!(place.stored() == [expected], "{name}");
    }
}

#[test]
fn processes_in_the_background_are_not_waited_for_and_keep_their_output() {
    for (name, shell) in shells() {
        let place = Place::new();
        let line = "(sleep 1.5; echo late) & echo early";
        let rewritten = place.rewritten(line, shell, program()).unwrap();
        let after = place.run(name, &format!("{rewritten}; echo next"), Streams::One);
        assert_eq!(after.out, "early\nnext\nlate\n", "{name}");
    }
}
