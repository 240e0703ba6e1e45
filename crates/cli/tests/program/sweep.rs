//! `offcut sweep` and `offcut store`, over a directory in which agents have stored.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::support::{command, fail, run, run_command, succeed, text};
use serde_json::Value;
use tempfile::{TempDir, tempdir};

const DAY: Duration = Duration::from_secs(86_400);

/// A store with a result of each of two conversations, idle for three days, and the transcript of the
/// first.
struct Home {
    home: TempDir,
}

impl Home {
    fn new() -> Self {
        let home = Self {
            home: tempdir().unwrap(),
        };
        let long = "a line of it\n".repeat(9_000);
        fs::create_dir(home.path("transcripts")).unwrap();
        for session in ["s1", "s2"] {
            let store = home.path("store");
            let args = [
                "truncate",
                "--config",
                "eino",
                "--backend",
                &store,
                "--session",
                session,
                "--tool",
                "cat",
                "--call-id",
                "call_1",
            ];
            let shown = succeed(&args, &long);
            if session == "s1" {
                let line = serde_json::json!({"role": "tool", "content": shown}).to_string();
                fs::write(home.path("transcripts/chat.jsonl"), line).unwrap();
            }
        }
        home.age(Path::new(&home.path("store")));
        home
    }

    fn path(&self, path: &str) -> String {
        text(&self.home.path().canonicalize().unwrap().join(path)).to_owned()
    }

    /// Ages everything in `folder` by three days.
    fn age(&self, folder: &Path) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                self.age(&path);
            } else {
                let file = File::options().write(true).open(&path).unwrap();
                let before = file
                    .metadata()
                    .unwrap()
                    .modified()
                    .unwrap()
                    .min(SystemTime::now());
                file.set_modified(before - 3 * DAY).unwrap();
            }
        }
    }

    fn sweep(&self, more: &[&str]) -> Value {
        let (store, live) = (self.path("store"), self.path("transcripts"));
        let args = [
            &["sweep", &store, "--live", &live, "--idle", "48h", "--json"],
            more,
        ]
        .concat();
        serde_json::from_str(&succeed(&args, "")).unwrap()
    }

    fn stores(&self, path: &str) -> bool {
        Path::new(&self.path("store")).join(path).is_file()
    }
}

#[test]
fn idle_conversations_go_that_no_transcript_names() {
    let home = Home::new();
    let would = home.sweep(&[]);
    assert_eq!(would["dry_run"], true);
    for what in ["live", "removed"] {
        let one = serde_json::json!({"conversations": 1, "count": 1, "bytes": 117_000});
        assert_eq!(would[what], one, "{what}");
    }
    assert!(home.stores("s2/trunc/call_1"), "a dry run changes nothing");
    let kept = home.sweep(&["--apply", "--keep-session", "s2"]);
    assert_eq!(kept["live"]["conversations"], 2);
    let (store, live) = (home.path("store"), home.path("transcripts"));
    let week = [
        "sweep", &store, "--live", &live, "--idle", "7d", "--apply", "--json",
    ];
    let kept: Value = serde_json::from_str(&succeed(&week, "")).unwrap();
    assert_eq!(kept["kept"]["count"], 1);
    assert_eq!(home.sweep(&["--apply"])["removed"]["count"], 1);
    assert!(home.stores("s1/trunc/call_1") && !home.stores("s2"));
}

#[test]
fn w2_reading_keeps_a_conversation() {
    let home = Home::new();
    let (store, location) = (home.path("store"), home.path("store/s2/trunc/call_1"));
    let from = ["--config", "eino", "--backend", &store, "--session", "s2"];
    assert!(succeed(&[&["read", &location], &from[..]].concat(), "").contains("a line of it"));
    let report = home.sweep(&["--apply"]);
    let kept = serde_json::json!({"conversations": 1, "count": 2, "bytes": 117_000});
    assert_eq!(report["kept"], kept);
    home.age(Path::new(&store));
    assert_eq!(home.sweep(&["--apply"])["removed"]["count"], 2);
}

#[test]
fn the_table_is_readable() {
    let home = Home::new();
    let (store, live) = (home.path("store"), home.path("transcripts"));
    let ran = run(&["sweep", &store, "--live", &live, "--quota", "100kB"], "");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let lines: Vec<Vec<&str>> = ran
        .out
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        lines.concat().join(" "),
        "conversations items size live 1 1 117.0 kB kept 0 0 0 B to be removed 1 1 117.0 kB"
    );
    assert!(ran.err.contains("pass --apply to sweep"), "{}", ran.err);
}

#[test]
fn a_root_is_swept_by_itself() {
    let home = Home::new();
    assert_eq!(home.sweep(&["--root", "s3"])["live"]["count"], 0);
    let report = home.sweep(&["--root", "s2"]);
    assert_eq!(
        (&report["removed"]["count"], &report["live"]["count"]),
        (&1.into(), &0.into())
    );
}

#[test]
fn a_session_is_swept_by_its_id() {
    let home = Home::new();
    assert_eq!(home.sweep(&["--session", "s2"])["removed"]["count"], 1);
    // This is not a safe name: its prefix is a digest.
    let (store, id) = (home.path("store"), "chat 42/ä");
    let args = [
        "truncate",
        "--config",
        "eino",
        "--backend",
        &store,
        "--session",
        id,
        "--tool",
        "cat",
    ];
    succeed(&args, &"a line of it\n".repeat(9_000));
    let swept = home.sweep(&["--session", id]);
    assert_eq!(
        (&swept["kept"]["count"], &swept["live"]["count"]),
        (&1.into(), &0.into())
    );
}

#[test]
fn a_prefix_with_no_content_is_reported() {
    let home = Home::new();
    let (store, live) = (home.path("store"), home.path("transcripts"));
    let note = "note: nothing is stored there: ";
    for part in [
        &["--root", "s3"][..],
        &["--session", "s3"],
        &["--root", "s1", "--session", "s1"],
    ] {
        let ran = run(&[&["sweep", &store, "--live", &live], part].concat(), "");
        assert!(ran.code == 0 && ran.err.contains(note), "{}", ran.err);
    }
    for part in [&["--root", "s1"][..], &["--session", "s1"], &[]] {
        let ran = run(&[&["sweep", &store, "--live", &live], part].concat(), "");
        assert!(ran.code == 0 && !ran.err.contains(note), "{}", ran.err);
    }
}

#[test]
fn w6_a_directory_that_is_not_a_store_is_not_swept() {
    let home = Home::new();
    fs::create_dir_all(home.path("project/src/clear")).unwrap();
    fs::write(home.path("project/src/clear/screen.rs"), "fn clear() {}").unwrap();
    home.age(Path::new(&home.path("project")));
    let (project, live) = (home.path("project"), home.path("transcripts"));
    let sweep = [
        "sweep", &project, "--live", &live, "--idle", "48h", "--apply",
    ];
    let error = fail(&sweep, "", 2);
    assert!(
        error.contains("is not a store: it lacks the `.staging` folder")
            && error.contains("--is-a-store"),
        "{error}"
    );
    assert!(Path::new(&home.path("project/src/clear/screen.rs")).is_file());
    let ran = run(&["store", "ls", &project], "");
    assert!(
        ran.code == 0 && ran.err.contains("may not be a store"),
        "{}",
        ran.err
    );
    assert!(
        succeed(&[&sweep[..], &["--is-a-store"]].concat(), "").contains("removed              1")
    );
}

#[test]
fn w6_foreign_directories_are_refused_unread() {
    let home = Home::new();
    let live = home.path("transcripts");
    // Refused even without any content: zeros would look as if the sweep had worked.
    fs::create_dir_all(home.path("home/notes")).unwrap();
    fs::write(home.path("home/notes/today"), "nothing").unwrap();
    let others = home.path("home");
    for directory in [&*others, "/", &live] {
        for more in [&[][..], &["--idle", "48h", "--apply"]] {
            let error = fail(
                &[&["sweep", directory, "--live", &live], more].concat(),
                "",
                2,
            );
            assert!(
                error.contains(&format!("{directory} is not a store"))
                    && error.contains("`backend`"),
                "{error}"
            );
        }
    }
    // A store without content.
    fs::create_dir(home.path("new")).unwrap();
    let ran = run(&["sweep", &home.path("new"), "--live", &live], "");
    assert!(
        ran.code == 0 && ran.err.contains("nothing is stored there"),
        "{}",
        ran.err
    );
}

#[test]
fn a_store_is_swept_by_itself_and_also_without_its_staging_folder() {
    let home = Home::new();
    assert_eq!(run(&["store", "ls", &home.path("store")], "").err, "");
    fs::create_dir(home.path("all")).unwrap();
    fs::rename(home.path("store"), home.path("all/store")).unwrap();
    let (all, store, live) = (
        home.path("all"),
        home.path("all/store"),
        home.path("transcripts"),
    );
    let error = fail(
        &[
            "sweep",
            &all,
            "--live",
            &live,
            "--idle",
            "48h",
            "--is-a-store",
        ],
        "",
        1,
    );
    assert!(
        error.contains("all/store/ failed: this directory is a store itself"),
        "{error}"
    );
    let sweep = ["sweep", &store, "--live", &live, "--idle", "48h"];
    assert!(succeed(&sweep, "").contains("to be removed              1"));
    fs::remove_dir(home.path("all/store/.staging")).unwrap();
    fail(&sweep, "", 2);
    assert!(
        succeed(&[&sweep[..], &["--is-a-store"]].concat(), "")
            .contains("to be removed              1")
    );
}

#[cfg(unix)]
#[test]
fn l1_content_named_through_a_link_in_the_store_stays() {
    let home = Home::new();
    fs::rename(home.path("store/s1"), home.path("store/renamed")).unwrap();
    std::os::unix::fs::symlink("renamed", home.path("store/s1")).unwrap();
    let (store, live) = (home.path("store"), home.path("transcripts"));
    let error = fail(
        &["sweep", &store, "--live", &live, "--idle", "48h", "--apply"],
        "",
        1,
    );
    assert!(
        error.contains("`s1` is a symbolic link to another directory of the store"),
        "{error}"
    );
    assert!(home.stores("s1/trunc/call_1"));
}

#[test]
fn content_named_by_another_store_stays() {
    let home = Home::new();
    let (store, greps, live) = (
        home.path("store"),
        home.path("greps"),
        home.path("transcripts"),
    );
    // Arguments that name content in another tool's store, and were cleared since.
    fs::create_dir_all(home.path("store/s1/clear")).unwrap();
    fs::create_dir_all(home.path("greps/.staging")).unwrap();
    fs::create_dir_all(home.path("greps/s7/trunc")).unwrap();
    fs::write(
        home.path("store/s1/clear/call_9-args"),
        format!(r#"{{"path":"{greps}/s7/trunc/call_7"}}"#),
    )
    .unwrap();
    fs::write(home.path("greps/s7/trunc/call_7"), "hits").unwrap();
    fs::write(
        home.path("transcripts/more.md"),
        format!("{store}/s1/clear/call_9-args"),
    )
    .unwrap();
    home.age(Path::new(&greps));
    let policy = ["--live", &live, "--idle", "48h"];
    assert!(
        succeed(&[&["sweep", &greps][..], &policy].concat(), "")
            .contains("to be removed              1")
    );
    assert!(
        succeed(&[&["sweep", &store, &greps][..], &policy].concat(), "")
            .contains("to be removed              1")
    );
    assert!(
        succeed(
            &[&["sweep", &greps, &store][..], &policy, &["--apply"]].concat(),
            ""
        )
        .contains("live")
    );
    assert!(Path::new(&home.path("greps/s7/trunc/call_7")).is_file());
}

#[test]
fn a_sweep_without_live_names_is_refused() {
    let home = Home::new();
    let (store, live) = (home.path("store"), home.path("transcripts"));
    let error = fail(&["sweep", &store, "--idle", "48h", "--apply"], "", 2);
    assert!(error.contains("--nothing-is-live"), "{error}");
    fail(
        &[
            "sweep",
            &store,
            "--idle",
            "48h",
            "--apply",
            "--keep-session",
            "s1",
        ],
        "",
        2,
    );
    fail(
        &[
            "sweep",
            &store,
            "--live",
            &home.path("no-such"),
            "--idle",
            "48h",
            "--apply",
        ],
        "",
        2,
    );
    fs::create_dir(home.path("transcripts/old")).unwrap();
    fs::write(
        home.path("transcripts/old/chat.jsonl.gz"),
        b"\x1f\x8b\x08\x00\xff",
    )
    .unwrap();
    let error = fail(
        &["sweep", &store, "--live", &live, "--idle", "48h", "--apply"],
        "",
        2,
    );
    assert!(
        error.contains("chat.jsonl.gz can't be read") && error.contains("is not UTF-8 text"),
        "{error}"
    );
    assert!(home.stores("s1/trunc/call_1") && home.stores("s2/trunc/call_1"));
    let out = succeed(
        &[
            "sweep",
            &store,
            "--nothing-is-live",
            "--idle",
            "48h",
            "--apply",
            "--json",
        ],
        "",
    );
    assert_eq!(
        serde_json::from_str::<Value>(&out).unwrap()["removed"]["count"],
        2
    );
}

#[test]
fn errors_say_what_to_do() {
    let home = Home::new();
    let (store, live) = (home.path("store"), home.path("transcripts"));
    let error = fail(&["sweep", &home.path("nowhere"), "--live", &live], "", 2);
    assert!(
        error.contains("there is no store at") && !Path::new(&home.path("nowhere")).exists(),
        "{error}"
    );
    assert!(
        fail(&["sweep", &store, "--live", &live, "--idle", "47h"], "", 2)
            .contains("use at least 172800 s")
    );
    assert!(fail(&["sweep", &store, "--live", &live, "--root", "../x"], "", 2).contains("--root"));
    for wrong in [["--idle", "30"], ["--quota", "ten"], ["--idle", "-1h"]] {
        let ran = run(
            &[&["sweep", &store, "--live", &live], &wrong[..]].concat(),
            "",
        );
        assert_eq!(ran.code, 2, "{wrong:?}: {}", ran.err);
    }
}

#[test]
fn a_store_is_listed() {
    let home = Home::new();
    let store = home.path("store");
    let listed = succeed(&["store", "ls", &store], "");
    let lines: Vec<_> = listed
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        lines,
        [
            format!("117000 3d {store}/s1/trunc/call_1"),
            format!("117000 3d {store}/s2/trunc/call_1"),
            "2 in all, 234.0 kB".to_owned(),
        ]
    );
    let json: Value =
        serde_json::from_str(&succeed(&["store", "ls", &store, "--json"], "")).unwrap();
    assert_eq!(json["bytes"], 234_000);
    assert_eq!(json["entries"].as_array().unwrap().len(), 2);
    fail(&["store", "ls", &home.path("nowhere")], "", 2);
}

#[test]
fn without_a_store_that_of_the_users_settings_is_listed_and_never_swept() {
    let home = Home::new();
    let user = home.path("user");
    fs::create_dir(&user).unwrap();
    let backend = format!(
        "preset = \"recommended\"\nbackend = {:?}\n",
        home.path("store")
    );
    fs::write(home.path("user/offcut.toml"), backend).unwrap();
    let of_user = |args: &[&str]| run_command(command(args).env("OFFCUT_HOME", &user), "");
    let (listed, named) = (
        of_user(&["store", "ls"]),
        run(&["store", "ls", &home.path("store")], ""),
    );
    assert_eq!((listed.code, listed.out), (0, named.out));
    let swept = of_user(&["sweep", "--nothing-is-live", "--apply"]);
    assert_eq!(swept.code, 2, "{}", swept.out);
    assert!(
        swept.err.contains("name the stores to sweep"),
        "{}",
        swept.err
    );
    assert!(home.stores("s2/trunc/call_1"));
}
