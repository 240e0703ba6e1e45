//! The sweep that hooks and servers start: conversations go that no transcript of an agent names and nobody has used
//! for a month.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::support::{command_of_user, run_command, shell_event};

const DAY: Duration = Duration::from_secs(86_400);

/// A user with agents' folders.
struct User {
    home: tempfile::TempDir,
}

impl User {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        Self { home }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.home.path().join(path)
    }

    fn run(&self, args: &[&str], stdin: &str) -> String {
        self.run_to(0, args, stdin)
    }

    /// Runs the program, which ends with this code.
    fn run_to(&self, code: i32, args: &[&str], stdin: &str) -> String {
        let mut command = command_of_user(args, self.home.path(), &self.path("offcut"));
        let ran = run_command(&mut command, stdin);
        assert_eq!((ran.code, &*ran.err), (code, ""));
        ran.out
    }

    /// Stores a result of a conversation named like its call, as a hook does, `days` ago. Returns its path.
    fn store(&self, call: &str, days: u32) -> PathBuf {
        let long: String = (0..3_000)
            .map(|n| format!("line {n} of {call}\n"))
            .collect();
        let event = shell_event(call, &long).replace("\"s1\"", &format!("{call:?}"));
        assert_ne!(self.run(&["hook", "claude-code"], &event), "");
        let path = self.path(&format!("offcut/store/{call}/trunc/{call}"));
        make_older(&path, days);
        path
    }

    /// Writes a transcript that names `path`.
    fn transcript(&self, name: &str, path: &Path) {
        let file = self.path(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("{{\"text\": \"[offcut/1 {path:?}]\"}}\n")).unwrap();
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("offcut/hook.log")).unwrap_or_default()
    }
}

fn make_older(path: &Path, days: u32) {
    let time = SystemTime::now() - DAY * days;
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(time).unwrap();
}

#[test]
fn only_old_results_that_no_transcript_names_go() {
    let user = User::new();
    let transcripts = [
        ".claude/projects/-src/s1.jsonl",
        ".codex/sessions/2026/11/23/rollout-s1.jsonl",
        ".codex/archived_sessions/rollout-s1.jsonl",
        ".gemini/tmp/src/chats/session-1.json",
        ".pi/agent/sessions/-src/s1.jsonl",
    ];
    let named: Vec<_> = transcripts
        .iter()
        .enumerate()
        .map(|(nth, name)| {
            let path = user.store(&format!("named_{nth}"), 90);
            user.transcript(name, &path);
            path
        })
        .collect();
    let (old, recent) = (user.store("old", 31), user.store("recent", 29));
    assert_eq!(user.run(&["tidy"], ""), "");
    assert_eq!(user.log(), "");
    assert!(!old.exists() && recent.exists());
    assert!(named.iter().all(|path| path.exists()), "{named:?}");
}

/// A disk that is not mounted, or is empty, looks as if its agent had never been used.
#[test]
fn w8_nothing_goes_if_a_folder_that_held_transcripts_is_gone() {
    let user = User::new();
    let (named, old) = (user.store("named", 90), user.store("old", 90));
    user.transcript(".codex/sessions/2026/11/23/rollout-s1.jsonl", &named);
    let away = |from: &str, to: &str| fs::rename(user.path(from), user.path(to)).unwrap();
    user.run(&["tidy"], "");
    assert!(named.exists() && !old.exists());
    let old = user.store("old", 90);
    away(".codex/sessions", "away");
    for is_empty in [false, true] {
        if is_empty {
            fs::create_dir(user.path(".codex/sessions")).unwrap();
        }
        user.run_to(1, &["tidy"], "");
        assert!(named.exists() && old.exists());
    }
    let log = user.log();
    assert_eq!(
        log.matches(".codex/sessions has held transcripts").count(),
        2,
        "{log}"
    );
    assert!(log.contains("remove its line from"), "{log}");
    fs::remove_dir(user.path(".codex/sessions")).unwrap();
    away("away", ".codex/sessions");
    user.run(&["tidy"], "");
    assert!(named.exists() && !old.exists());
}

/// Claude Code keeps long outputs of tools among its transcripts.
#[test]
fn outputs_of_any_bytes_among_transcripts_are_searched() {
    let user = User::new();
    let (named, old) = (user.store("named", 90), user.store("old", 90));
    let mut output = b"\xff\xfe caf\xe9 \0".to_vec();
    output.extend_from_slice(named.to_str().unwrap().as_bytes());
    let file = user.path(".claude/projects/-src/s1/tool-results/a.txt");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, output).unwrap();
    user.run(&["tidy"], "");
    assert_eq!(user.log(), "");
    assert!(named.exists() && !old.exists());
}

#[test]
fn nothing_goes_if_a_transcript_cant_be_read() {
    let user = User::new();
    let old = user.store("old", 90);
    let database = user.path(".claude/projects/-src/s1.db");
    fs::create_dir_all(database.parent().unwrap()).unwrap();
    fs::write(&database, b"\xff\xfe").unwrap();
    user.run_to(1, &["tidy"], "");
    assert!(old.exists());
    assert!(
        user.log().contains(" sweep: ") && user.log().contains("not UTF-8 text"),
        "{}",
        user.log()
    );
}

#[test]
fn a_hook_starts_a_sweep_at_most_once_a_day() {
    let user = User::new();
    let old = user.store("old", 90);
    let stamp = user.path("offcut/swept");
    let is_recent = || {
        stamp
            .metadata()
            .unwrap()
            .modified()
            .unwrap()
            .elapsed()
            .unwrap()
            < DAY / 2
    };
    // The first hook of a user has nothing to sweep.
    assert!(stamp.exists() && old.exists());
    user.store("second", 0);
    assert!(old.exists());
    make_older(&stamp, 2);
    user.store("third", 0);
    assert!(is_recent());
    // The hook does not wait for it.
    while old.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(user.log(), "");
}

#[test]
fn old_rows_leave_the_journal() {
    let user = User::new();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.unwrap().as_secs();
    let row = |days: u64| {
        let time = now - days * DAY.as_secs();
        format!(
            "{{\"time\":{time},\"by\":\"lab\",\"what\":\"m\",\"session\":\"a\",\"before\":9,\"after\":4}}\n"
        )
    };
    fs::create_dir_all(user.path("offcut")).unwrap();
    let journal = user.path("offcut/journal.jsonl");
    let tidied = |rows: &[u64]| {
        let rows: String = rows.iter().map(|days| row(*days)).collect();
        fs::write(&journal, rows + "{\"time\":").unwrap();
        user.run(&["tidy"], "");
        assert_eq!(user.log(), "");
        let gain: serde_json::Value =
            serde_json::from_str(&user.run(&["gain", "--json"], "")).unwrap();
        (journal.exists(), gain["count"].as_u64().unwrap())
    };
    assert_eq!(tidied(&[30, 1]), (true, 2));
    assert_eq!(tidied(&[60, 29, 29]), (false, 3));
    // Those that are older yet are gone.
    assert_eq!(tidied(&[32]), (false, 1));
}

/// All files below `folder`.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| {
            if path.is_dir() {
                files(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

#[cfg(all(feature = "serve", unix))]
#[test]
fn a_server_starts_sweeps_of_what_it_has_stored() {
    let user = crate::serving::User::new();
    let provider = crate::serving::answering("200 OK", "{}".to_owned());
    let server = crate::serving::Serving::on_loopback(&provider, &user);
    let stored = || files(&user.path("store/serve"));
    (1..=3).for_each(|n| server.call_of("recent", n));
    let recent = stored();
    (1..=3).for_each(|n| server.call_of("old", n));
    let mut old = stored();
    old.retain(|path| !recent.contains(path));
    // Three results and the records of three decisions.
    assert_eq!((recent.len(), old.len()), (6, 6), "{recent:?} {old:?}");
    server.stop();
    old.iter().for_each(|path| make_older(path, 90));
    // It began less than a day ago, so nothing was due.
    make_older(&user.path("swept"), 2);

    let server = crate::serving::Serving::on_loopback(&provider, &user);
    while old.iter().any(|path| path.exists()) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let secret = user.path("store/meta/naming-secret");
    assert!(secret.exists(), "the secret for names stays");
    assert!(recent.iter().all(|path| path.exists()), "{recent:?}");
    server.call_of("recent", 3);
    assert_eq!(
        stored().iter().filter(|path| recent.contains(path)).count(),
        6
    );
    assert!(!user.path("hook.log").exists());
    server.stop();
}
