//! Commands in a pipeline never swallow their input, and none claims success if its output went
//! nowhere.
#![cfg(unix)]
// Helpers are part of the tests.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::mount::in_a_mount;
use crate::support::{Ran, command, fail, run, succeed, text};
use serde_json::{Value, json};
use tempfile::tempdir;

fn lines(count: usize) -> String {
    (1..=count).map(|n| format!("line {n}\n")).collect()
}

/// A conversation whose first result is old and long.
fn conversation() -> String {
    let round = |id: &str, result: &str| {
        let call =
            json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
        [
            json!({"role": "assistant", "content": null, "tool_calls": [call]}),
            json!({"role": "tool", "tool_call_id": id, "content": result}),
        ]
    };
    let rounds = [
        round("a", &lines(30_000)),
        round("b", "short"),
        round("c", "short"),
    ];
    Value::Array(rounds.into_iter().flatten().collect()).to_string()
}

/// Runs `script` in a shell that has the program in `$OFFCUT`, with `stdin` as its input.
fn shell(script: &str, variables: &[(&str, &str)], stdin: &str) -> Ran {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script])
        .env("OFFCUT", env!("CARGO_BIN_EXE_offcut"))
        .env("NO_COLOR", "1");
    shell
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    crate::support::run_command(&mut shell, stdin)
}

#[test]
fn l1_input_passes_whatever_is_wrong_with_the_settings() {
    let folder = tempdir().unwrap();
    let wrong = folder.path().join("wrong.toml");
    std::fs::write(&wrong, "preview_lenght = 5\n").unwrap();
    let below_a_file = wrong.join("store");
    let (long, chat) = (lines(20_000), conversation());
    for settings in [
        &["--config", text(&wrong)][..],
        &["--config", "recomended"],
        &["--config", "eino", "--backend", text(&below_a_file)],
        &["--config", "eino", "--backend", "~/store"],
        &["--conifg", "eino"],
    ] {
        for (command, input) in [
            (&["truncate", "--tool", "f"][..], &long),
            (&["clear"], &chat),
            (&["reduce"], &chat),
        ] {
            let ran = run(&[command, settings].concat(), input);
            assert_eq!(
                (ran.code, ran.out == *input),
                (2, true),
                "{command:?} {settings:?}: {}",
                ran.err
            );
            assert!(ran.err.contains("error: "), "{}", ran.err);
        }
    }
    let ran = run(&["--color", "never", "truncate", "--tool"], &long);
    assert_eq!(
        (ran.code, ran.out == long),
        (2, true),
        "an argument is missing: {}",
        ran.err
    );
}

#[test]
fn l1_any_input_passes() {
    let store = tempdir().unwrap();
    let from = ["--config", "eino", "--backend", text(store.path())];
    for (command, input) in [
        (&["clear"][..], "{\"messages\": "),
        (&["clear"], "{\"no\": 1}"),
        (&["truncate", "--tool", "f", "--arguments", "{"], "text"),
    ] {
        let ran = run(&[command, &from].concat(), input);
        assert_eq!(
            (ran.code, ran.out == *input),
            (2, true),
            "{command:?}: {}",
            ran.err
        );
    }
    let mut child = command(&[&["clear"], &from[..]].concat()).spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"[\"\xff\"]")
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), &*output.stdout),
        (Some(2), &b"[\"\xff\"]"[..])
    );
}

#[test]
fn t8_input_passes_if_the_store_fails() {
    let Some(at) = in_a_mount(
        "pipes::t8_input_passes_if_the_store_fails",
        "mount -t tmpfs -o size=24m none $AT",
    ) else {
        return;
    };
    let store = at.join("store");
    let fails = at.join("fails.toml");
    let settings = format!(
        "backend = \"{}\"\non_offload_error = \"fail\"\n",
        text(&store)
    );
    std::fs::write(&fails, settings).unwrap();
    // One more than the library takes back and than there is room for, and one that it does take
    // back.
    let (longer, long) = ("a longer line than most\n".repeat(1_500_000), lines(20_000));
    let truncate =
        |from: &[&str], input: &str| run(&[&["truncate", "--tool", "f"], from].concat(), input);
    let keeps = ["--config", "eino", "--backend", text(&store)];

    let ran = truncate(&keeps, &longer);
    assert_eq!(
        (ran.code, ran.out == longer),
        (0, true),
        "full in its midst: {}",
        ran.err
    );
    assert!(
        ran.err.contains("warning: ") && ran.err.contains("no space is left"),
        "{}",
        ran.err
    );
    let ran = truncate(&["--config", text(&fails)], &longer);
    assert_eq!(
        (ran.code, ran.out == longer),
        (1, true),
        "told to fail: {}",
        ran.err
    );
    let ran = truncate(&[&keeps[..], &["--json"]].concat(), &longer);
    assert_eq!(
        (ran.code, ran.out == longer),
        (1, true),
        "not as JSON: {}",
        ran.err
    );

    File::create(at.join("filler"))
        .unwrap()
        .write_all(&vec![0; 30 << 20])
        .unwrap_err();
    for input in [&long, &longer] {
        let ran = truncate(&keeps, input);
        assert_eq!(
            (ran.code, ran.out == *input),
            (0, true),
            "full before: {}",
            ran.err
        );
        let ran = truncate(&["--config", text(&fails)], input);
        assert_eq!(
            (ran.code, ran.out == *input),
            (1, true),
            "full before, told to fail: {}",
            ran.err
        );
    }
    let chat = conversation();
    let ran = run(&[&["clear"], &keeps[..]].concat(), &chat);
    assert_eq!((ran.code, ran.out == chat), (0, true), "{}", ran.err);
    assert!(ran.err.contains("warning: "), "{}", ran.err);
    let ran = run(&["clear", "--config", text(&fails)], &chat);
    assert!(ran.out == chat, "{}", ran.err);
    let checked = fail(&["config", "check", text(&fails)], "", 1);
    assert!(checked.contains("no space is left"), "{checked}");

    std::fs::remove_file(at.join("filler")).unwrap();
    succeed(&["config", "check", text(&fails)], "");
    assert!(truncate(&keeps, &long).out.len() < 20_000);
}

/// Every command that writes to stdout, with its input.
fn all_commands(folder: &Path) -> Vec<(Vec<String>, String)> {
    let at = |name: &str| text(&folder.join(name)).to_owned();
    let (store, schema, chat) = (at("store"), at("s.yaml"), at("chat.json"));
    std::fs::write(
        &schema,
        "dialect: openarmature\nfields:\n  - {name: last}\n",
    )
    .unwrap();
    std::fs::write(&chat, conversation()).unwrap();
    succeed(
        &[
            "truncate",
            "--config",
            "eino",
            "--backend",
            &store,
            "--tool",
            "f",
            "--call-id",
            "a",
        ],
        &lines(20_000),
    );
    let location = format!("{store}/trunc/a");
    let from = ["--config", "eino", "--backend", &store];
    let commands: [(&[&str], String); 12] = [
        (
            &[&["truncate", "--tool", "f"], &from[..]].concat(),
            lines(20_000),
        ),
        (
            &[&["truncate", "--tool", "f", "--json"], &from[..]].concat(),
            "short".into(),
        ),
        (&[&["clear"], &from[..]].concat(), conversation()),
        (&[&["read", &location], &from[..]].concat(), String::new()),
        (
            &["state", "apply", "--schema", &schema, "-"],
            "{\"last\": 1}".into(),
        ),
        (&["store", "ls", &store], String::new()),
        (&["sweep", &store, "--nothing-is-live"], String::new()),
        (&["config", "default"], String::new()),
        (&["config", "check", "eino"], String::new()),
        (&["replay", &chat, "--policy", "eino"], String::new()),
        (&["--help"], String::new()),
        (&["--version"], String::new()),
    ];
    commands
        .into_iter()
        .map(|(args, stdin)| (args.iter().map(ToString::to_string).collect(), stdin))
        .collect()
}

#[test]
fn l12_a_command_whose_output_was_lost_does_not_succeed() {
    let folder = tempdir().unwrap();
    for (args, stdin) in all_commands(folder.path()) {
        let quoted: String = args.iter().map(|arg| format!(" '{arg}'")).collect();
        for nowhere in [">/dev/full", "1</dev/null"] {
            let ran = shell(&format!("exec \"$OFFCUT\"{quoted} {nowhere}"), &[], &stdin);
            assert_eq!(ran.code, 1, "{args:?} {nowhere}: {}", ran.err);
            let (error, hint) = if args.iter().any(|arg| arg == "--json") {
                ("\"error\":\"stdout ", "\"hint\":\"")
            } else {
                ("error: stdout ", "\nhint: ")
            };
            assert!(
                ran.err.contains(error) && ran.err.contains(hint),
                "{args:?} {nowhere}: {}",
                ran.err
            );
        }
        // Many programs start others with a null device that is open for reading too, and a closed stdout
        // is replaced by one before this program begins.
        for nowhere in [">/dev/null", "1<>/dev/null", ">&-"] {
            let ran = shell(&format!("exec \"$OFFCUT\"{quoted} {nowhere}"), &[], &stdin);
            assert_eq!(ran.code, 0, "{args:?} {nowhere}: {}", ran.err);
        }
    }
}

#[test]
fn l12_a_limit_on_file_sizes_is_reported() {
    let folder = tempdir().unwrap();
    let store = folder.path().join("store");
    let at = |name: &str| folder.path().join(name);
    let (chat, html, out) = (at("chat.json"), at("report.html"), at("out"));
    std::fs::write(&chat, conversation()).unwrap();
    let variables = [
        ("STORE", text(&store)),
        ("CHAT", text(&chat)),
        ("HTML", text(&html)),
        ("OUT", text(&out)),
    ];
    // Blocks of 512 bytes, or 1024 in some shells.
    let limited = |script: &str, stdin: &str| {
        shell(
            &format!("ulimit -f 1; exec \"$OFFCUT\" {script}"),
            &variables,
            stdin,
        )
    };

    let ran = limited("config default > \"$OUT\"", "");
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(
        ran.err.contains("error: stdout can't be written to"),
        "{}",
        ran.err
    );
    let ran = limited("replay \"$CHAT\" --policy eino --html \"$HTML\"", "");
    assert!(
        ran.code == 1 && ran.err.contains("error: the report can't be written"),
        "{}",
        ran.err
    );
    // The store meets the limit, stdout does not.
    let long = lines(20_000);
    let ran = limited(
        "truncate --config eino --backend \"$STORE\" --tool f",
        &long,
    );
    assert_eq!((ran.code, ran.out == long), (0, true), "{}", ran.err);
    assert!(
        ran.err.contains("warning: ") && ran.err.contains("raise the limit"),
        "{}",
        ran.err
    );
}

#[test]
fn s4_wrong_declarations_have_their_code() {
    let folder = tempdir().unwrap();
    let schema = folder.path().join("s.yaml");
    for (fields, code) in [
        (
            "[{name: a, type: list, reducer: {bounded_append: {max_len: 0}}}]",
            "reducer_configuration_invalid",
        ),
        (
            "[{name: a, type: list, reducer: merge_by_key}]",
            "reducer_configuration_invalid",
        ),
        (
            "[{name: a, type: list, reducer: [append, merge]}]",
            "conflicting_reducers",
        ),
        ("[{name: a}, {name: a}]", "state_declaration_invalid"),
    ] {
        std::fs::write(
            &schema,
            format!("dialect: openarmature\nfields: {fields}\n"),
        )
        .unwrap();
        let said = fail(&["state", "apply", "--schema", text(&schema), "-"], "{}", 2);
        assert!(
            said.contains(&format!("s.yaml: {code}: ")),
            "{fields}: {said}"
        );
    }
    std::fs::write(&schema, "dialect: openarmature\nfields: [{name: a}]\n").unwrap();
    let state = folder.path().join("state.json");
    std::fs::write(&state, "{\"b\": 1}").unwrap();
    let said = fail(
        &[
            "state",
            "apply",
            "--schema",
            text(&schema),
            "--state",
            text(&state),
            "-",
        ],
        "{}",
        2,
    );
    assert!(said.contains("state.json: undeclared_field: "), "{said}");
}
