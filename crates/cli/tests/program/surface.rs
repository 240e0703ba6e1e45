//! The behaviour that all commands share: help, completions, colours, how much is said, and the store if none is named.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Ran, command, run, run_command, succeed, text, words};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

const PROGRAM: &str = env!("CARGO_BIN_EXE_offcut");

fn bash(script: &str) -> Ran {
    let mut bash = Command::new("bash");
    bash.args(["-c", script]).env("OFFCUT", PROGRAM);
    bash.stdin(Stdio::piped()).stdout(Stdio::piped());
    run_command(bash.stderr(Stdio::piped()), "")
}

/// The text that a terminal is shown; `None` if this machine lacks `script`, which makes one.
fn in_terminal(args: &[&str]) -> Option<String> {
    let words: Vec<String> = args.iter().map(|arg| format!("'{arg}'")).collect();
    let line = format!("'{PROGRAM}' {}", words.join(" "));
    let mut script = Command::new("script");
    script
        .args(["-qec", &line, "/dev/null"])
        .env("TERM", "xterm");
    script.env_remove("NO_COLOR").stdin(Stdio::null());
    let shown = script.output().ok()?.stdout;
    Some(String::from_utf8(shown).unwrap().replace("\r\n", "\n"))
}

fn transcript() -> (TempDir, String) {
    let folder = tempdir().unwrap();
    let call = json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let chat = json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": words("some")},
        {"role": "assistant", "content": "done"},
    ]);
    let file = folder.path().join("chat.json");
    fs::write(&file, chat.to_string()).unwrap();
    let file = text(&file).to_owned();
    (folder, file)
}

#[test]
fn the_help_has_groups_and_each_command_ends_with_examples_and_its_page() {
    let help = succeed(&["--help"], "");
    for part in [
        "Coding agents:\n  install ",
        "Stores:\n  store ",
        "Global options:",
        "/docs/README.md",
    ] {
        assert!(help.contains(part), "{part}: {help}");
    }
    let rows = help.lines().filter(|line| line.starts_with("  "));
    let mut rows = rows.take_while(|line| !line.starts_with("      --"));
    assert!(rows.all(|line| line.chars().count() <= 80), "{help}");
    for path in [
        &["replay"][..],
        &["store", "ls"],
        &["config", "check"],
        &["mcp"],
    ] {
        let help = succeed(&[path, &["--help"]].concat(), "");
        let (_, end) = help.split_once("\nExamples:\n  offcut ").unwrap();
        assert!(
            end.trim_end()
                .lines()
                .last()
                .unwrap()
                .starts_with("More: https://"),
            "{help}"
        );
    }
}

#[test]
fn completions_know_policies_agents_formats_and_levels() {
    let complete = |line: &str| {
        let script = format!(
            "source <(\"$OFFCUT\" completions bash); COMP_WORDS=({line} ''); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _offcut offcut '' \"${{COMP_WORDS[COMP_CWORD-1]}}\"; echo \"${{COMPREPLY[@]}}\""
        );
        bash(&script).out
    };
    for (line, word) in [
        ("offcut run --config", "gentle"),
        ("offcut replay --policy", "cache-friendly"),
        ("offcut config check", "eino"),
        ("offcut install", "claude-code"),
        ("offcut wrap", "opencode"),
        ("offcut read --definition", "gemini"),
        ("offcut serve --log", "debug"),
        ("offcut status --color", "never"),
    ] {
        let found = complete(line);
        assert!(
            found.split_whitespace().any(|found| found == word),
            "{line}: {found}"
        );
    }
    let zsh = succeed(&["completions", "zsh"], "");
    assert!(
        zsh.contains(r#"{_alternative "policies\:policy\:(recommended "#)
            && zsh.contains("_files -/")
    );
    let fish = succeed(&["completions", "fish"], "");
    assert!(fish.contains(r#"-l config -d"#) && fish.contains("-r -F -a \"recommended\\t''"));
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = succeed(&["completions", shell], "");
        assert!(
            script.contains("sweep") && !script.contains("tidy"),
            "{shell}"
        );
    }
}

#[test]
fn whoever_reads_only_the_beginning_hears_nothing_more() {
    let (_folder, chat) = transcript();
    for line in [
        "config default",
        "--help",
        "completions bash",
        &format!("replay '{chat}' --all"),
    ] {
        // The reader is gone before anything is written.
        let ran = bash(&format!(
            "set -o pipefail; (sleep 0.2; exec \"$OFFCUT\" {line}) | true"
        ));
        assert_eq!((ran.code, &*ran.err), (0, ""), "{line}");
    }
}

#[test]
fn colour_is_for_terminals_unless_somebody_says_otherwise() {
    let (_folder, chat) = transcript();
    let lines: [&[&str]; 3] = [&["--help"], &["replay", &chat], &["read", "--nonsense"]];
    for line in lines {
        for (option, variables, expected) in [
            (&["--color", "always"][..], &[("NO_COLOR", "1")][..], true),
            (&["--color=never"], &[("CLICOLOR_FORCE", "1")], false),
            (&[], &[("CLICOLOR_FORCE", "1")], true),
            (&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
            (&[], &[], false),
        ] {
            let mut command = command(&[option, line].concat());
            command
                .env_remove("NO_COLOR")
                .envs(variables.iter().copied());
            let ran = run_command(&mut command, "");
            let is_coloured = (ran.out + &ran.err).contains('\u{1b}');
            assert_eq!(is_coloured, expected, "{line:?} {option:?} {variables:?}");
        }
    }
}

#[test]
fn a_terminal_sees_progress_colours_and_the_end_of_a_line() {
    let (folder, chat) = transcript();
    let Some(shown) = in_terminal(&["replay", &chat]) else {
        return;
    };
    assert!(
        shown.contains("replayed 1/1") && shown.contains("\u{1b}[1mpolicy"),
        "{shown}"
    );
    let shown = in_terminal(&["replay", &chat, "--quiet", "--color", "never"]).unwrap();
    assert!(
        !shown.contains("replayed") && !shown.contains('\u{1b}'),
        "{shown}"
    );
    let store = text(folder.path()).to_owned() + "/store";
    let truncate = [
        "truncate",
        "--tool",
        "f",
        "--call-id",
        "a",
        "--backend",
        &store,
    ];
    succeed(&truncate, &words("some"));
    for end in ["1", "2"] {
        let read = [
            "read",
            "trunc/a",
            "--backend",
            &store,
            "--query",
            ".[0]",
            "--limit",
            end,
        ];
        let shown = in_terminal(&read).unwrap();
        assert!(
            shown.ends_with('\n') && !shown.ends_with("\n\n"),
            "{shown:?}"
        );
    }
    let shown = in_terminal(&["sweep", &store, "--live", &chat]).unwrap();
    assert!(shown.contains("folders of transcripts 1/1"), "{shown}");
}

#[test]
fn quiet_leaves_results_and_errors_and_verbose_says_what_is_read() {
    let (folder, chat) = transcript();
    let store = text(folder.path()).to_owned() + "/store";
    let sweep = ["sweep", &store, "--live", &chat];
    fs::create_dir(&store).unwrap();
    assert!(run(&sweep, "").err.contains("note: nothing was changed"));
    let quiet = run(&[&sweep[..], &["-q"]].concat(), "");
    assert_eq!(
        (quiet.code, &*quiet.err, quiet.out.is_empty()),
        (0, "", false)
    );
    assert!(
        run(&["sweep", "-q", "nowhere", "--live", &chat], "")
            .err
            .starts_with("error: ")
    );
    let said = |args: &[&str]| run(args, "short").err;
    assert_eq!(
        said(&["truncate", "--tool", "f", "-v", "--backend", &store]),
        format!("read: settings recommended, store {store}\n")
    );
    let replay = said(&["replay", "-v", &chat, "--policy", "eino"]);
    assert!(
        replay.contains("read: policy eino from eino\n")
            && replay.contains("read: 1 transcript in "),
        "{replay}"
    );
    assert!(said(&["sweep", "-v", &store, "--live", &chat]).contains("read: transcripts in "));
    assert!(said(&["replay", "-v", "-q", &chat]).contains("cannot be used with"));
    let listed = run_command(
        command(&["store", "ls", "-v"]).env("OFFCUT_HOME", folder.path()),
        "",
    );
    assert_eq!(listed.err.lines().count(), 1, "{listed:?}");
    // After a wrapped command's name, they are its own.
    let run = command(&["run", "--backend", &store, "echo", "-v", "-q"])
        .output()
        .unwrap();
    assert_eq!(run.stdout, b"-v -q\n");
}

/// Runs the program as a user with this folder.
fn of_user(home: &Path, args: &[&str], stdin: &str) -> Ran {
    run_command(command(args).env("OFFCUT_HOME", home), stdin)
}

#[test]
fn every_command_has_the_users_settings_and_store() {
    let home = tempdir().unwrap();
    let home = home.path();
    let store = home.join("store");
    let long = words("some");
    let shown = of_user(home, &["truncate", "--tool", "f", "--call-id", "a"], &long);
    assert!(shown.out.contains(text(&store)), "{shown:?}");
    let page = of_user(home, &["read", "trunc/a", "--limit", "1"], "");
    assert!(page.out.contains(long.lines().next().unwrap()), "{page:?}");
    let listed = of_user(home, &["store", "ls"], "");
    assert!(listed.out.contains("trunc/a"), "{listed:?}");
    let live = home.join("live.json");
    fs::write(&live, "{}").unwrap();
    let unknown = of_user(home, &["sweep", "--apply"], "");
    assert_eq!(unknown.code, 2, "no transcript is known: {unknown:?}");
    let swept = of_user(home, &["sweep", "--live", text(&live)], "");
    assert_eq!(swept.code, 0, "{swept:?}");
    assert!(
        swept
            .err
            .contains(&format!("note: the store is {}", text(&store))),
        "{swept:?}"
    );
    // The user's settings count for each of them, and options over them.
    let settings = "max_length_for_trunc = 700\npreview_length = 0\nmax_tokens_for_clear = 100\n";
    fs::write(home.join("offcut.toml"), settings).unwrap();
    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let chat = json!([
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "a line\n".repeat(300)},
    ]);
    let reduced = of_user(home, &["reduce", "--session", "s"], &chat.to_string());
    let reduced: Value = serde_json::from_str(&reduced.out).unwrap();
    let shown = reduced[1]["content"].as_str().unwrap();
    assert!(shown.contains(&format!("{}/s/", text(&store))), "{shown}");
    let ran = of_user(
        home,
        &["truncate", "--tool", "f", "--config", "recommended"],
        &"a line\n".repeat(200),
    );
    assert!(!ran.out.contains("offcut/1"), "{ran:?}");
}

#[test]
fn a_command_that_is_printed_can_be_copied() {
    let folder = tempdir().unwrap();
    let (_chat_folder, chat) = transcript();
    let file = folder.path().join("my policy.toml");
    fs::write(
        &file,
        "max_length_for_trunc = 1_000\npreview_length = 100\n",
    )
    .unwrap();
    let policy = format!("mine={}", text(&file));
    let out = succeed(&["replay", &chat, "--policy", &policy], "").replace('\n', " ");
    assert!(
        out.contains(&format!("--config '{}'", text(&file))),
        "{out}"
    );
}
