//! Lines of shells in `offcut run`: the same exit code, effects and text as without this program.
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
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use tempfile::{TempDir, tempdir};

/// Appended as agents do: the directory, the status and variables after the line.
const APPENDED: &str = "\n__status=$?; printf '[%s] %s %s %s\\n' \"$__status\" \"${V-unset}\" \"$(umask)\" \"$-\"; pwd -P; exit \"$__status\"";

/// The shells that this machine has.
fn shells() -> impl Iterator<Item = PathBuf> {
    ["bash", "zsh", "dash"].into_iter().filter_map(|name| {
        let path = std::env::var_os("PATH").unwrap();
        let mut programs = std::env::split_paths(&path).map(|folder| folder.join(name));
        let found = programs.find(|program| program.is_file());
        if found.is_none() {
            println!("skipped: there is no {name}");
        }
        found
    })
}

/// A way to run a line.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// With one pipe for stdout and stderr.
    OnePipe,
    /// With a pipe for each.
    TwoPipes,
}

const WAYS: [Way; 2] = [Way::OnePipe, Way::TwoPipes];

/// The outcome of a line.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    code: Option<i32>,
    out: String,
    err: String,
    files: BTreeMap<PathBuf, Vec<u8>>,
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

    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Runs `line`, in our program or without it.
    fn run(&self, shell: &Path, line: &str, way: Way, is_ours: bool) -> Outcome {
        let mut words = vec![shell.to_str().unwrap(), "-c", line];
        if is_ours {
            words.splice(..0, [env!("CARGO_BIN_EXE_offcut"), "run", "--"]);
        }
        let work = self.work();
        _ = fs::remove_dir_all(&work);
        fs::create_dir(&work).unwrap();
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .current_dir(&work)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", &work)
            .env("LC_ALL", "C")
            .env("SHELL", shell)
            .env("OFFCUT_HOME", self.home())
            .stdin(Stdio::null());
        let (status, out, err) = into_pipes(command, matches!(way, Way::OnePipe));
        Outcome {
            code: status.code().or_else(|| Some(128 + status.signal()?)),
            out,
            err,
            files: files(&work),
        }
    }

    /// The stored texts, which are removed.
    fn stored(&self) -> Vec<String> {
        let stored = files(&self.home().join("store"));
        _ = fs::remove_dir_all(self.home());
        let stored = stored
            .into_iter()
            .filter(|(path, _)| path.is_file() || path.parent().unwrap().ends_with("trunc"));
        let texts = stored.map(|(_, bytes)| String::from_utf8(bytes));
        texts.map(Result::unwrap).collect()
    }
}

fn into_pipes(mut command: Command, is_one: bool) -> (ExitStatus, String, String) {
    let (out, to) = std::io::pipe().unwrap();
    command.stdout(to.try_clone().unwrap());
    let mut err = None;
    if is_one {
        command.stderr(to);
    } else {
        drop(to);
        let (from, to) = std::io::pipe().unwrap();
        command.stderr(to);
        err = Some(from);
    }
    let mut child = command.spawn().unwrap();
    drop(command);
    let err = std::thread::spawn(move || err.map(text).unwrap_or_default());
    let out = text(out);
    (child.wait().unwrap(), out, err.join().unwrap())
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

#[test]
fn short_lines_are_the_same() {
    assert!(lines::LINES.len() >= 200);
    let mut different = Vec::new();
    for shell in shells() {
        let place = Place::new();
        for line in lines::LINES {
            // Elsewhere a command in the background, which may or may not have written when the next one reads.
            if shell.ends_with("dash") && line.contains("&>") {
                continue;
            }
            let line = format!("{line}{APPENDED}");
            for way in WAYS {
                let [before, after] =
                    [false, true].map(|is_ours| place.run(&shell, &line, way, is_ours));
                if before != after {
                    let name = shell.display();
                    different.push(format!("{name}, {way:?}: {line}\n{before:?}\n{after:?}"));
                }
            }
        }
        println!("{}: {} lines", shell.display(), lines::LINES.len());
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn l1_long_lines_are_stored_whole() {
    for shell in shells() {
        let place = Place::new();
        for line in lines::LONG {
            for way in WAYS {
                let [before, after] =
                    [false, true].map(|is_ours| place.run(&shell, line, way, is_ours));
                let what = format!("{}, {way:?}: {line}", shell.display());
                assert_eq!(
                    (before.code, &before.files),
                    (after.code, &after.files),
                    "{what}"
                );
                let mut stored = place.stored();
                let mut expected = vec![before.out, before.err];
                expected.retain(|text| text.len() > 8_000);
                expected.sort();
                stored.sort();
                assert!(stored == expected, "{what}");
                let shown = after.out + &after.err;
                assert!(shown.contains("[offcut/1 truncated "), "{what}: {shown}");
            }
        }
    }
}

/// As on a disk, so without reading it back into memory.
#[test]
#[ignore = "writes 3 GB: scripts/full runs it"]
fn l1_a_gigabyte_is_stored_whole() {
    let line = "yes 'a line of a gigabyte' | head -c 1000000000; exit 3";
    for shell in shells() {
        let place = Place::new();
        let after = place.run(&shell, line, Way::OnePipe, true);
        assert_eq!(after.code, Some(3));
        let (beginning, _) = after
            .out
            .split_once("[offcut/1 truncated 1000000000B/")
            .unwrap();
        // It comes through as it is written.
        assert!(beginning.len() <= 1_000, "{beginning}");
        assert!(beginning.lines().all(|line| line == "a line of a gigabyte"));
        assert!(after.out.len() < 10_000);
        let sizes: Vec<u64> = sizes(&place.home().join("store"));
        assert!(sizes.contains(&1_000_000_000), "{sizes:?}");
        fs::remove_dir_all(place.home()).unwrap();
    }
}

/// The sizes of the files below `folder`.
fn sizes(folder: &Path) -> Vec<u64> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let sizes = entries.flat_map(|entry| {
        let metadata = entry.metadata().unwrap();
        if metadata.is_dir() {
            sizes(&entry.path())
        } else {
            vec![metadata.len()]
        }
    });
    sizes.collect()
}
