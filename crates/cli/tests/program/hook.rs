//! `offcut hook` as an agent starts it: it never fails, and never prints half an answer.

use std::path::Path;

use crate::support::{command, run_command, shell_event, text};
use serde_json::Value;

/// Runs a hook for the user whose folder is `home`. Returns stdout; stderr must be empty.
fn hook(home: &Path, args: &[&str], event: &str) -> String {
    let mut command = command(&[&["hook"], args].concat());
    command.env("OFFCUT_HOME", home).env("HOME", home);
    let ran = run_command(&mut command, event);
    assert_eq!((ran.code, &*ran.err), (0, ""));
    ran.out
}

fn log(home: &Path) -> String {
    std::fs::read_to_string(home.join("hook.log")).unwrap_or_default()
}

fn long() -> String {
    (0..3_000).map(|n| format!("line {n}\n")).collect()
}

#[test]
fn a_long_result_is_stored_for_the_user_and_replaced() {
    let home = tempfile::tempdir().unwrap();
    let answer = hook(
        home.path(),
        &["claude-code"],
        &shell_event("toolu_1", &long()),
    );
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let shown = &answer["hookSpecificOutput"]["updatedToolOutput"]["stdout"];
    let path = home.path().join("store/s1/trunc/toolu_1");
    assert!(shown.as_str().unwrap().contains(text(&path)), "{shown}");
    assert_eq!(std::fs::read_to_string(path).unwrap(), long());
    assert_eq!(log(home.path()), "");
}

/// A sweep from another profile can't know where else transcripts are.
#[test]
fn the_transcripts_of_every_profile_are_noted() {
    for (agent, variable) in [("codex", "CODEX_HOME"), ("pi", "PI_CODING_AGENT_DIR")] {
        let home = tempfile::tempdir().unwrap();
        for profile in ["work", "own"] {
            let sessions = home.path().join(profile).join("sessions");
            std::fs::create_dir_all(&sessions).unwrap();
            std::fs::write(sessions.join("s1.jsonl"), "{}").unwrap();
            let mut command = command(&["hook", agent]);
            command
                .env("OFFCUT_HOME", home.path())
                .env("HOME", home.path());
            command.env(variable, home.path().join(profile));
            run_command(&mut command, "{}");
        }
        let noted = std::fs::read_to_string(home.path().join("transcripts.jsonl")).unwrap();
        assert!(
            noted.contains("work/sessions") && noted.contains("own/sessions"),
            "{noted}"
        );
    }
}

#[test]
fn the_users_settings_and_store_count() {
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("elsewhere");
    let settings =
        format!("preset = \"recommended\"\nbackend = {store:?}\nmax_length_for_trunc = 100_000\n");
    std::fs::write(home.path().join("offcut.toml"), settings).unwrap();
    assert_eq!(
        hook(
            home.path(),
            &["claude-code"],
            &shell_event("toolu_1", &long())
        ),
        ""
    );
    let answer = hook(
        home.path(),
        &["claude-code"],
        &shell_event("toolu_1", &long().repeat(9)),
    );
    assert!(answer.contains(text(&store)), "{answer:.300}");
    let other = [
        "claude-code",
        "--config",
        "recommended",
        "--backend",
        text(&store),
    ];
    assert!(hook(home.path(), &other, &shell_event("toolu_1", &long())).contains(text(&store)));
}

#[test]
fn anything_unexpected_passes_and_the_log_says_why() {
    let event = shell_event("toolu_1", &long());
    let secret = "sk-secret-0123456789";
    let no_json = format!("{{\"api_key\": \"{secret}\"");
    let cases: [(&[&str], &str, &str); 5] = [
        (&["claude-code"], &no_json, "the event is not the JSON"),
        (&["claude-code"], "", "the event is not the JSON"),
        (&["claud"], &event, "no agent is called `claud`"),
        (
            &["claude-code", "--config", "nothing.toml"],
            &event,
            "nothing.toml",
        ),
        (
            &["claude-code", "--backend", "/dev/null/store"],
            &event,
            "can't be opened",
        ),
    ];
    for (args, event, why) in cases {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(hook(home.path(), args, event), "", "{args:?}");
        let log = log(home.path());
        assert!(log.contains(why), "{args:?}: {log}");
        assert_eq!(log.lines().count(), 1);
        assert!(!log.contains(secret) && !log.contains("line 17"), "{log}");
    }
}

#[test]
fn wrong_settings_of_the_user_pass_too() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("offcut.toml"), "max_length = 5\n").unwrap();
    assert_eq!(
        hook(
            home.path(),
            &["claude-code"],
            &shell_event("toolu_1", &long())
        ),
        ""
    );
    assert!(
        log(home.path()).contains("max_length"),
        "{}",
        log(home.path())
    );
}

#[cfg(unix)]
#[test]
fn a_pipe_in_place_of_settings_is_refused_without_waiting() {
    let home = tempfile::tempdir().unwrap();
    let settings = home.path().join("offcut.toml");
    let made = std::process::Command::new("mkfifo").arg(&settings).status();
    assert!(made.unwrap().success());
    let event = shell_event("toolu_1", &long());
    assert_eq!(hook(home.path(), &["claude-code"], &event), "");
    let log = log(home.path());
    assert!(log.contains("it is not a regular file"), "{log}");
    let mut run = command(&["run", "--", "echo", "hello"]);
    let ran = run_command(run.env("OFFCUT_HOME", home.path()), "");
    assert_eq!((ran.code, &*ran.out), (0, "hello\n"), "{ran:?}");
    assert!(ran.err.contains("it is not a regular file"), "{ran:?}");
    let ran = run_command(&mut command(&["config", "check", text(&settings)]), "");
    assert_eq!(ran.code, 2, "{ran:?}");
}
