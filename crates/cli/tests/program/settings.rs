//! Settings and the stores that they name: built-in policies, files, and errors for wrong ones.
// Helpers are part of the tests.

use std::path::Path;

use crate::support::{command, fail, run, run_command, succeed, text};
use serde_json::Value;
use tempfile::tempdir;

const READY: [&str; 6] = [
    "recommended",
    "eino",
    "anthropic",
    "aggressive",
    "gentle",
    "cache-friendly",
];

#[test]
fn the_built_in_policies_and_the_defaults_are_valid() {
    for ready in READY {
        succeed(&["config", "check", ready], "");
        let file = format!("{}/policies/{ready}.toml", env!("CARGO_MANIFEST_DIR"));
        let json: Value =
            serde_json::from_str(&succeed(&["config", "check", &file, "--json"], "")).unwrap();
        assert_eq!(json["ok"], true);
        assert!(
            std::fs::read_to_string(file)
                .unwrap()
                .contains("When to use it: ")
        );
    }
    let folder = tempdir().unwrap();
    let file = folder.path().join("offcut.toml");
    std::fs::write(&file, succeed(&["config", "default"], "")).unwrap();
    succeed(&["config", "check", text(&file)], "");
    let defaults: Value =
        serde_json::from_str(&succeed(&["config", "default", "--json"], "")).unwrap();
    assert_eq!(defaults["max_length_for_trunc"], 8_000);
}

#[test]
fn an_unknown_policy_is_answered_with_the_built_in_names() {
    let said =
        "there is no built-in policy and no file called recomended (built in: recommended, eino, ";
    let store = tempdir().unwrap();
    for args in [
        &["config", "check", "recomended"][..],
        &["clear", "--config", "recomended"],
        &["replay", text(store.path()), "--policy", "recomended"],
        &["replay", text(store.path()), "--policy", "mine=recomended"],
    ] {
        let error = fail(args, "[]", 2);
        assert!(error.contains(said), "{args:?}: {error}");
    }
}

#[test]
fn a_store_that_the_program_does_not_know_is_answered_with_those_it_knows() {
    for args in [
        &["truncate", "--tool", "f", "--backend", "gs://bucket/prefix"][..],
        &["store", "ls", "https://example.com/store"],
    ] {
        let error = fail(args, "", 2);
        assert!(
            error.contains("use a path") && error.contains("`memory:`"),
            "{args:?}: {error}"
        );
    }
    let folder = tempdir().unwrap();
    let file = folder.path().join("wrong.toml");
    std::fs::write(&file, "[serve]\nmax_bodies = 1\n").unwrap();
    let error = fail(&["config", "check", text(&file)], "", 2);
    assert!(
        error.contains("line 2, `serve.max_bodies`: unknown field"),
        "{error}"
    );
    // Fields that depend on others are checked too, as `serve` itself does.
    for (table, problem) in [
        (
            "listen = \"0.0.0.0:1\"",
            "`serve.listen`: 0.0.0.0 can be reached",
        ),
        (
            "tenant_header = \"x-team\"",
            "`serve.tenant_header`: it needs",
        ),
        (
            "default_upstream = \"lab\"",
            "`serve.default_upstream`: no upstream",
        ),
        (
            "compress_keys = { a = \"short\" }",
            "`serve.compress_keys.a`: it is too short",
        ),
    ] {
        std::fs::write(&file, format!("[serve]\n{table}\n")).unwrap();
        let error = fail(&["config", "check", text(&file)], "", 2);
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn listing_a_missing_store_does_not_create_it() {
    let folder = tempdir().unwrap();
    let typo = folder.path().join("typo");
    let error = fail(
        &[
            "read",
            "--config",
            "eino",
            "--backend",
            text(&typo),
            "trunc/a",
        ],
        "",
        2,
    );
    assert!(
        error.contains("there is no store at ") && !typo.exists(),
        "{error}"
    );
    let file = folder.path().join("grep.toml");
    let settings = format!(
        "backend = \"memory:\"\n[tool_config.grep]\nbackend = \"{}\"\n",
        text(&typo)
    );
    std::fs::write(&file, settings).unwrap();
    let error = fail(&["read", "--config", text(&file), "trunc/a"], "", 2);
    assert!(
        error.contains("there is no store at ") && !typo.exists(),
        "a tool's own: {error}"
    );
    // Without any store, it is the user's.
    let mut read = command(&["read", "--config", "anthropic", "trunc/a"]);
    let ran = run_command(read.env("OFFCUT_HOME", &typo), "");
    let said = format!("error: there is no store at {}", text(&typo.join("store")));
    assert!(ran.code == 2 && ran.err.starts_with(&said), "{}", ran.err);
    assert!(!typo.exists());
}

#[test]
fn every_command_names_the_settings_file_in_its_errors() {
    let folder = tempdir().unwrap();
    let (file, log) = (
        folder.path().join("mine.toml"),
        folder.path().join("log.json"),
    );
    let typo = folder.path().join("typo");
    std::fs::write(
        &file,
        format!("max_tokens_for_clear = 0\nbackend = \"{}\"\n", text(&typo)),
    )
    .unwrap();
    std::fs::write(&log, "[]").unwrap();
    let policy = format!("mine={}", text(&file));
    for args in [
        &["truncate", "--tool", "f", "--config", text(&file)][..],
        &["clear", "--config", text(&file)],
        &["read", "trunc/a", "--config", text(&file)],
        &["replay", text(&log), "--policy", &policy],
        &["config", "check", text(&file)],
    ] {
        let error = fail(args, "[]", 2);
        assert!(
            error.contains(&format!("error: {}: ", text(&file))),
            "{args:?}: {error}"
        );
    }
}

#[cfg(feature = "serve")]
#[test]
fn checking_says_what_a_server_would_say_at_its_start() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("offcut.toml");
    let check = |serve: &str| {
        let written = format!("preset = \"recommended\"\nbackend = \"memory:\"\n{serve}");
        std::fs::write(&file, written).unwrap();
        run(&["config", "check", text(&file)], "")
    };
    let unread = "agents can't open stored content as files here";
    let ran = check("[serve]\nholdout = 0.1\n");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.err.contains(unread) && ran.err.contains("10 % of conversations"),
        "{ran:?}"
    );
    assert!(
        !check("").err.contains("serve"),
        "nothing asks for a server"
    );
    for metrics in ["127.0.0.1:9000", "0.0.0.0:9000"] {
        let serve = format!(
            "expose = true\ntenant_key = \"0123456789abcdef\"\nmetrics_listen = \"{metrics}\""
        );
        let ran = check(&format!("[serve]\nlisten = \"127.0.0.1:9000\"\n{serve}\n"));
        assert_eq!(ran.code, 2, "{ran:?}");
        let problem = "`serve.metrics_listen`: `listen` has this port already";
        assert!(ran.err.contains(problem), "{ran:?}");
    }
}

#[test]
fn checking_names_missing_directories_and_creates_none() {
    let folder = tempdir().unwrap();
    let (file, store) = (
        folder.path().join("offcut.toml"),
        folder.path().join("deep/store"),
    );
    std::fs::write(
        &file,
        format!("preset = \"eino\"\nbackend = \"{}\"\n", text(&store)),
    )
    .unwrap();
    let ran = run(&["config", "check", text(&file)], "");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.err.contains(&format!(
            "note: the directory {} does not exist yet: it is made",
            text(&store)
        )),
        "{}",
        ran.err
    );
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        1,
        "only the settings are there"
    );

    std::fs::create_dir_all(&store).unwrap();
    assert_eq!(run(&["config", "check", text(&file)], "").err, "");
    std::fs::write(&file, format!("backend = \"{}/store\"\n", text(&file))).unwrap();
    let error = fail(&["config", "check", text(&file)], "", 2);
    assert!(error.contains("can't be opened"), "below a file: {error}");
}

#[test]
fn a_home_directory_is_for_shells() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("offcut.toml");
    std::fs::write(&file, "backend = \"~/.offcut\"\n").unwrap();
    for args in [
        &["config", "check", text(&file)][..],
        &[
            "read",
            "--config",
            "eino",
            "--backend",
            "~/.offcut",
            "trunc/a",
        ],
        &[
            "truncate",
            "--config",
            "eino",
            "--backend",
            "~/.offcut",
            "--tool",
            "f",
        ],
        &["store", "ls", "~/.offcut"],
        &["sweep", "~", "--nothing-is-live"],
    ] {
        let error = fail(args, "x", 2);
        assert!(
            error.contains("only shells expand a `~`"),
            "{args:?}: {error}"
        );
    }
    assert!(!Path::new("~").exists());
}

#[test]
fn l1_a_store_that_ends_with_the_command_is_refused() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("memory.toml");
    std::fs::write(
        &file,
        "preset = \"eino\"\n[tool_config.f]\nbackend = \"memory:f\"\n",
    )
    .unwrap();
    for store in [["--backend", "memory:"], ["--config", text(&file)]] {
        for command in [&["truncate", "--tool", "f"][..], &["clear"], &["reduce"]] {
            let ran = run(&[command, &store, &["-q"]].concat(), "short");
            assert_eq!((ran.code, &*ran.out), (2, "short"), "{command:?}");
            let says = ran.err.contains("memory ends") && ran.err.contains("--backend");
            assert!(says, "{}", ran.err);
        }
        let ran = run(&[&["run"], &store[..], &["echo", "shown"]].concat(), "");
        assert_eq!((ran.code, &*ran.out), (0, "shown\n"), "{}", ran.err);
        assert!(ran.err.contains("memory ends"), "{}", ran.err);
    }
    let ran = run(&["truncate", "--tool", "f"], "short");
    assert_eq!((ran.code, &*ran.err), (0, ""), "the user's store lasts");
}

#[test]
fn printed_locations_can_be_read_in_every_spelling() {
    let folder = tempdir().unwrap();
    let within = |args: &[&str], stdin: &str| {
        let ran = run_command(command(args).current_dir(folder.path()), stdin);
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
        ran.out
    };
    let result = "line\n".repeat(20_000);
    let store = ["--backend", ".offcut", "--config", "eino"];
    let truncate = [&["truncate", "--tool", "f", "--call-id", "a"][..], &store].concat();
    within(&truncate, &result);
    let listed = within(&["store", "ls", ".offcut", "--json"], "");
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let location = listed["entries"][0]["location"]
        .as_str()
        .unwrap()
        .to_owned();
    let read = |named: &str| within(&[&["read", named][..], &store].concat(), "");
    let page = read(&location);
    assert!(page.contains("line"));
    for named in [".offcut/trunc/a", "./.offcut/trunc/a", "trunc/a"] {
        assert_eq!(read(named), page, "{named}");
    }
}

#[test]
fn wrong_settings_lead_to_the_list_of_options() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("wrong.toml");
    std::fs::write(&file, "preset = \"gentle\"\n").unwrap();
    let error = fail(&["config", "check", text(&file)], "", 2);
    assert!(error.contains("cache-friendly"), "{error}");
    for wrong in ["preview_lenght = 5\n", "max_tokens_for_clear = 0\n"] {
        std::fs::write(&file, wrong).unwrap();
        let check = fail(&["config", "check", text(&file)], "", 2);
        let clear = ["clear", "--config", text(&file)];
        for error in [check, fail(&clear, "[]", 2)] {
            assert!(error.contains("`offcut config default`"), "{error}");
        }
    }
}

#[test]
fn with_json_errors_are_json_too() {
    for (arguments, code) in [
        (&["config", "check", "nothing.toml", "--json"][..], 2),
        (&["truncate", "--json"], 2),
        (&["store", "ls", "nowhere", "--json"], 2),
    ] {
        let ran = run(arguments, "");
        assert_eq!(ran.code, code, "{arguments:?}");
        let said = ran.err;
        let json: Value = serde_json::from_str(&said).expect(&said);
        assert_eq!(json["code"], code, "{said}");
        assert!(!json["error"].as_str().unwrap().is_empty(), "{said}");
        assert!(json["hint"].is_string(), "{said}");
    }
}
