//! `offcut sweep` and `offcut store`, over a directory in which agents have stored.
// Helpers are part of the tests.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::support::{fail, run, succeed, text};
use serde_json::Value;
use tempfile::{TempDir, tempdir};

const DAY: Duration = Duration::from_secs(86_400);

/// A store with two results of one session, and the transcript that names the first.
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
        for id in ["call_1", "call_2"] {
            let store = home.path("store");
            let args = [
                "truncate",
                "--config",
                "eino",
                "--backend",
                &store,
                "--session",
                "s1",
                "--tool",
                "cat",
            ];
            let shown = succeed(&[&args[..], &["--call-id", id]].concat(), &long);
            if id == "call_1" {
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

    /// Ages everything in `folder` by two days.
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
                file.set_modified(before - 2 * DAY).unwrap();
            }
        }
    }

    fn sweep(&self, more: &[&str]) -> Value {
        let (store, live) = (self.path("store"), self.path("transcripts"));
        let args = [
            &["sweep", &store, "--live", &live, "--unreferenced", "--json"],
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
fn unreferenced_content_is_swept_and_reading_brings_it_back() {
    let home = Home::new();
    let would = home.sweep(&[]);
    assert_eq!(
        (
            &would["dry_run"],
            &would["moved"]["count"],
            &would["live"]["count"]
        ),
        (&true.into(), &1.into(), &1.into())
    );
    assert!(home.stores("s1/trunc/call_2"), "a dry run changes nothing");
    assert_eq!(home.sweep(&["--apply"])["moved"]["count"], 1);
    assert!(
        home.stores("s1/trunc/call_1")
            && home.stores("s1/swept/trunc/call_2")
            && !home.stores("s1/trunc/call_2")
    );

    let (store, location) = (home.path("store"), home.path("store/s1/trunc/call_2"));
    let from = ["--config", "eino", "--backend", &store, "--session", "s1"];
    assert!(succeed(&[&["read", &location], &from[..]].concat(), "").contains("a line of it"));
    assert!(home.stores("s1/trunc/call_2"), "it is back");
    home.age(Path::new(&store));
    assert_eq!(
        home.sweep(&["--apply"])["removed"]["count"],
        1,
        "the place it was in"
    );
    assert_eq!(
        home.sweep(&["--apply"])["moved"]["count"],
        1,
        "nobody has named it since"
    );
    home.age(Path::new(&store));
    assert_eq!(home.sweep(&["--apply"])["removed"]["count"], 1);
    assert!(!home.stores("s1/trunc/call_2") && !home.stores("s1/swept/trunc/call_2"));
    assert_eq!(
        home.sweep(&["--apply", "--keep-session", "s1"])["live"]["count"],
        1
    );
}

#[test]
fn the_table_is_readable() {
    let home = Home::new();
    let (store, live) = (home.path("store"), home.path("transcripts"));
    let ran = run(
        &[
            "sweep",
            &store,
            "--live",
            &live,
            "--max-age",
            "1d",
            "--quota",
            "10GiB",
        ],
        "",
    );
    assert_eq!(ran.code, 0, "{}", ran.err);
    let line = |what: &str| {
        ran.out
            .lines()
            .find(|line| line.starts_with(what))
            .unwrap()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(line("live"), "live 1 117.0 kB");
    assert_eq!(line("to be moved"), "to be moved aside 1 117.0 kB");
    assert!(ran.err.contains("pass --apply to sweep"), "{}", ran.err);
}

#[test]
fn a_root_is_swept_by_itself() {
    let home = Home::new();
    assert_eq!(home.sweep(&["--root", "s2"])["live"]["count"], 0);
    assert_eq!(home.sweep(&["--root", "s1"])["moved"]["count"], 1);
}

#[test]
fn a_session_is_swept_by_its_id() {
    let home = Home::new();
    assert_eq!(home.sweep(&["--session", "s1"])["moved"]["count"], 1);
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
        (&swept["young"]["count"], &swept["live"]["count"]),
        (&1.into(), &0.into())
    );
}

#[test]
fn a_prefix_with_no_content_is_reported() {
    let home = Home::new();
    let (store, live) = (home.path("store"), home.path("transcripts"));
    let note = "note: nothing is stored below ";
    for (part, said) in [
        (&["--root", "s2"][..], "--root s2: "),
        (&["--session", "s2"], "--session s2: "),
        (
            &["--root", "s1", "--session", "s1"],
            "--root s1 --session s1: ",
        ),
    ] {
        let ran = run(&[&["sweep", &store, "--live", &live], part].concat(), "");
        assert!(
            ran.code == 0 && ran.err.contains(&format!("{note}{said}")),
            "{}",
            ran.err
        );
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
        "sweep",
        &project,
        "--live",
        &live,
        "--unreferenced",
        "--apply",
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
        succeed(&[&sweep[..], &["--is-a-store"]].concat(), "")
            .contains("moved aside                 1")
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
        for more in [&[][..], &["--unreferenced", "--apply"]] {
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
    let error = fail(&["sweep", &home.path(""), "--live", &live], "", 2);
    assert!(
        error.contains(&format!("{} inside it is a store", home.path("store"))),
        "{error}"
    );
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
fn w5_moving_is_not_called_freeing() {
    let home = Home::new();
    let (store, live) = (home.path("store"), home.path("transcripts"));
    let sweep = |more: &[&str]| {
        run(
            &[&["sweep", &store, "--live", &live, "--unreferenced"], more].concat(),
            "",
        )
        .err
    };
    let said = sweep(&[]);
    assert!(
        said.contains(
            "117.0 kB would be moved aside; it takes up space until a sweep removes it, in 24h at the earliest"
        ),
        "{said}"
    );
    let said = sweep(&["--apply"]);
    assert!(
        said.contains("117.0 kB was moved aside; it takes up space until a sweep removes it, in 24h at the earliest"),
        "{said}"
    );
    let said = sweep(&["--apply"]);
    assert!(
        said.contains(
            "117.0 kB waits aside; it takes up space until a sweep removes it, in 24h at the earliest"
        ),
        "{said}"
    );
}

#[test]
fn w4_waiting_content_is_removed_although_no_lease_can_be_written() {
    let home = Home::new();
    home.sweep(&["--apply"]);
    home.age(Path::new(&home.path("store")));
    // Prevents the lease from being written, as a full disk would.
    fs::create_dir_all(home.path("store/swept/lease-1/in-the-way")).unwrap();
    let (store, live) = (home.path("store"), home.path("transcripts"));
    let ran = run(
        &[
            "sweep",
            &store,
            "--live",
            &live,
            "--unreferenced",
            "--apply",
        ],
        "",
    );
    assert!(
        ran.code == 3
            && ran
                .err
                .contains("store/swept/lease-1: the lease of this sweep can't be written"),
        "{}",
        ran.err
    );
    assert!(!home.stores("s1/swept/trunc/call_2") && home.stores("s1/trunc/call_1"));
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
            "--unreferenced",
            "--is-a-store",
        ],
        "",
        1,
    );
    assert!(
        error.contains("all/store/ failed: this directory is a store itself"),
        "{error}"
    );
    let sweep = ["sweep", &store, "--live", &live, "--unreferenced"];
    assert!(succeed(&sweep, "").contains("to be moved aside           1"));
    fs::remove_dir(home.path("all/store/.staging")).unwrap();
    fail(&sweep, "", 2);
    assert!(
        succeed(&[&sweep[..], &["--is-a-store"]].concat(), "")
            .contains("to be moved aside           1")
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
        &[
            "sweep",
            &store,
            "--live",
            &live,
            "--unreferenced",
            "--apply",
        ],
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
    fs::create_dir_all(home.path("greps/s1/trunc")).unwrap();
    fs::write(
        home.path("store/s1/clear/call_9-args"),
        format!(r#"{{"path":"{greps}/s1/trunc/call_7"}}"#),
    )
    .unwrap();
    fs::write(home.path("greps/s1/trunc/call_7"), "hits").unwrap();
    fs::write(
        home.path("transcripts/more.md"),
        format!("{store}/s1/clear/call_9-args"),
    )
    .unwrap();
    home.age(Path::new(&greps));
    let policy = ["--live", &live, "--unreferenced"];
    assert!(
        succeed(&[&["sweep", &greps][..], &policy].concat(), "")
            .contains("to be moved aside           1")
    );
    assert!(
        succeed(&[&["sweep", &store, &greps][..], &policy].concat(), "")
            .contains("to be moved aside           1")
    );
    assert!(
        succeed(
            &[&["sweep", &greps, &store][..], &policy, &["--apply"]].concat(),
            ""
        )
        .contains("live")
    );
    assert!(Path::new(&home.path("greps/s1/trunc/call_7")).is_file());
}

#[test]
fn a_sweep_without_live_names_is_refused() {
    let home = Home::new();
    let (store, live) = (home.path("store"), home.path("transcripts"));
    let error = fail(&["sweep", &store, "--unreferenced", "--apply"], "", 2);
    assert!(error.contains("--nothing-is-live"), "{error}");
    fail(
        &[
            "sweep",
            &store,
            "--unreferenced",
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
            "--unreferenced",
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
        &[
            "sweep",
            &store,
            "--live",
            &live,
            "--unreferenced",
            "--apply",
        ],
        "",
        2,
    );
    assert!(error.contains("chat.jsonl.gz is not UTF-8 text"), "{error}");
    assert!(home.stores("s1/trunc/call_1") && home.stores("s1/trunc/call_2"));
    let out = succeed(
        &[
            "sweep",
            &store,
            "--nothing-is-live",
            "--unreferenced",
            "--apply",
            "--json",
        ],
        "",
    );
    assert_eq!(
        serde_json::from_str::<Value>(&out).unwrap()["moved"]["count"],
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
        fail(&["sweep", &store, "--live", &live, "--grace", "1m"], "", 2)
            .contains("at least 3600 s")
    );
    assert!(fail(&["sweep", &store, "--live", &live, "--root", "../x"], "", 2).contains("--root"));
    for wrong in [["--max-age", "30"], ["--quota", "ten"], ["--grace", "-1h"]] {
        let ran = run(
            &[&["sweep", &store, "--live", &live], &wrong[..]].concat(),
            "",
        );
        assert_eq!(ran.code, 2, "{wrong:?}: {}", ran.err);
    }
    fs::create_dir_all(home.path("store/swept")).unwrap();
    let lease = serde_json::json!({"by": "process 7", "since": SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()});
    fs::write(home.path("store/swept/lease-1"), lease.to_string()).unwrap();
    let error = fail(&["sweep", &store, "--live", &live, "--apply"], "", 1);
    assert!(
        error.contains("process 7") && error.contains("swept/lease-1"),
        "{error}"
    );
}

#[test]
fn a_store_is_listed() {
    let home = Home::new();
    let store = home.path("store");
    home.sweep(&["--apply"]);
    let listed = succeed(&["store", "ls", &store], "");
    let lines: Vec<_> = listed
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        lines,
        [
            format!("117000 0s {store}/s1/swept/trunc/call_2 swept")
                .replace("0s", lines[0].split(' ').nth(1).unwrap()),
            format!("117000 2d {store}/s1/trunc/call_1"),
            "2 in all, 234.0 kB; 117.0 kB of it swept".to_owned(),
        ]
    );
    let json: Value =
        serde_json::from_str(&succeed(&["store", "ls", &store, "--json"], "")).unwrap();
    assert_eq!(
        (&json["bytes"], &json["swept_bytes"]),
        (&234_000.into(), &117_000.into())
    );
    assert_eq!(json["entries"][0]["swept"], true);
    fail(&["store", "ls", &home.path("nowhere")], "", 2);
}

#[test]
fn stat_describes_one_location() {
    let home = Home::new();
    let store = home.path("store");
    home.sweep(&["--apply"]);
    let said = succeed(
        &["store", "stat", &store, &home.path("store/s1/trunc/call_1")],
        "",
    );
    assert!(
        said.contains("a result that was truncated\n117000 bytes, stored 2d ago\n")
            && !said.contains("swept"),
        "{said}"
    );
    for path in ["store/s1/trunc/call_2", "store/s1/swept/trunc/call_2"] {
        let said = succeed(&["store", "stat", &store, &home.path(path), "--json"], "");
        let stat: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(stat["location"], home.path("store/s1/trunc/call_2"));
        assert_eq!(stat["swept_to"], home.path("store/s1/swept/trunc/call_2"));
        assert_eq!(stat["brought_back"], false);
    }
    let location = home.path("store/s1/trunc/call_2");
    assert!(
        succeed(&["store", "stat", &store, &location], "").contains(": reading brings it back\n")
    );
    succeed(
        &[
            "read",
            "--config",
            "eino",
            "--backend",
            &store,
            "--session",
            "s1",
            &location,
        ],
        "",
    );
    let said = succeed(&["store", "stat", &store, &location], "");
    assert!(
        said.contains(", and brought back: a later sweep removes the copy there\n"),
        "{said}"
    );
    fail(
        &["store", "stat", &store, &home.path("store/s1/trunc/call_3")],
        "",
        1,
    );
    fail(&["store", "stat", &store, "/etc/passwd"], "", 2);
}
