//! `offcut install`, `doctor` and `uninstall`, one after the other.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Ran, command, run_command};
use serde_json::Value;

fn offcut(home: &Path, args: &[&str]) -> Ran {
    let mut command = command(args);
    run_command(of(&mut command, home), "")
}

/// The command of a user whose home directory is `home`.
fn of<'a>(command: &'a mut Command, home: &Path) -> &'a mut Command {
    command
        .env("HOME", home)
        .env_remove("OFFCUT_HOME")
        .env_remove("XDG_DATA_HOME")
        .env_remove("CLAUDE_CONFIG_DIR")
        .env_remove("GEMINI_CLI_HOME")
}

#[test]
fn rules_against_reading_are_named() {
    for (rule, is_about_reading) in [("Read(~/.local/**)", true), ("Bash(rm *)", false)] {
        let home = tempfile::tempdir().unwrap();
        let settings = home.path().join(".claude/settings.json");
        std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
        let denied = serde_json::json!({"permissions": {"deny": [rule]}});
        std::fs::write(&settings, denied.to_string()).unwrap();
        assert_eq!(offcut(home.path(), &["install", "claude-code"]).code, 0);
        let ran = offcut(home.path(), &["doctor", "claude-code"]);
        let says = ran.out.contains("rules for `Read` in `permissions.deny`");
        assert_eq!((says, ran.code), (is_about_reading, 0), "{}", ran.out);
    }
}

#[test]
fn an_installation_works_and_is_taken_back() {
    let home = tempfile::tempdir().unwrap();
    let settings = home.path().join(".claude/settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::fs::write(&settings, "{\n  \"model\": \"opus\"\n}\n").unwrap();

    let ran = offcut(home.path(), &["doctor", "claude-code"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.out.contains("Offcut is not installed in"),
        "{}",
        ran.out
    );

    let ran = offcut(home.path(), &["install", "claude-code"]);
    assert_eq!((ran.code, &*ran.err), (0, ""));
    assert!(ran.out.contains("  + hooks.PostToolUse: '"), "{}", ran.out);
    assert!(
        ran.out.contains("  + permissions.allow: Read(//"),
        "{}",
        ran.out
    );

    let ran = offcut(home.path(), &["doctor", "claude-code"]);
    assert!(ran.out.contains("works    a probe of"), "{}", ran.out);
    assert!(ran.out.contains("all of it was in"), "{}", ran.out);
    let store = home.path().join(".local/share/offcut/store");
    let left: Vec<_> = std::fs::read_dir(&store)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name != ".staging")
        .collect();
    assert!(left.is_empty(), "the probe left {left:?}");
    let gain = offcut(home.path(), &["gain"]).out;
    assert!(gain.contains("has no rows yet"), "the probe counts: {gain}");

    let ran = offcut(home.path(), &["uninstall", "claude-code"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.out.contains("is as it was without Offcut"),
        "{}",
        ran.out
    );
    let text = std::fs::read_to_string(&settings).unwrap();
    assert_eq!(text, "{\n  \"model\": \"opus\"\n}\n");
}

#[test]
fn installing_and_taking_out_at_once_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let settings = home.join(".claude/settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::fs::write(&settings, "{\"a\": 1}").unwrap();
    for _ in 0..4 {
        std::thread::scope(|scope| {
            for verb in ["install", "uninstall", "install", "uninstall"] {
                scope.spawn(move || {
                    let ran = offcut(home, &[verb, "claude-code"]);
                    assert_eq!((ran.code, &*ran.err), (0, ""));
                });
            }
        });
        let ran = offcut(home, &["uninstall", "claude-code"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert_eq!(std::fs::read_to_string(&settings).unwrap(), "{\"a\": 1}");
    }
}

#[test]
fn a_program_waits_for_another_one() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".local/share/offcut/installed");
    std::fs::create_dir_all(&folder).unwrap();
    let lock = std::fs::File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let mut install = command(&["install", "claude-code"]);
    let mut waiting = of(&mut install, home.path()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert!(waiting.try_wait().unwrap().is_none());
    drop(lock);
    assert!(waiting.wait_with_output().unwrap().status.success());
}

#[test]
fn the_doctor_asks_the_program_that_a_plug_in_names() {
    for (agent, file) in [
        ("opencode", ".config/opencode/plugins/offcut.js"),
        ("pi", ".pi/agent/extensions/offcut.js"),
    ] {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(file);
        offcut(home.path(), &["install", agent]);
        let text = std::fs::read_to_string(&file).unwrap();
        let program = env!("CARGO_BIN_EXE_offcut");
        for (text, expected) in [
            (
                text.replace(program, "/no/such/offcut"),
                "the hook's command does not run",
            ),
            (
                "export const Mine = async () => ({})".to_owned(),
                "Offcut is not installed in",
            ),
            (String::new(), "Offcut is not installed in"),
        ] {
            std::fs::write(&file, text).unwrap();
            let ran = offcut(home.path(), &["doctor", agent]);
            assert!(ran.code == 1 && ran.out.contains(expected), "{}", ran.out);
        }
    }
}

#[test]
fn the_doctor_knows_the_switches_of_gemini_cli() {
    for (settings, expected) in [
        (
            r#"{"hooksConfig": {"enabled": false}}"#,
            "switches all hooks off",
        ),
        (
            r#"{"hooksConfig": {"disabled": ["offcut"]}}"#,
            "switches Offcut's hook off",
        ),
        (
            r#"{"disableAllHooks": true, /* not its own */ "hooksConfig": {"disabled": ["x"]}}"#,
            "",
        ),
    ] {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(".gemini/settings.json");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, settings).unwrap();
        assert_eq!(offcut(home.path(), &["install", "gemini-cli"]).code, 0);
        let ran = offcut(home.path(), &["doctor", "gemini-cli"]);
        assert_eq!(ran.code, i32::from(!expected.is_empty()), "{}", ran.out);
        assert!(ran.out.contains(expected), "{}", ran.out);
    }
}

/// Runs commands as the shell `sh` does, with `offcut` as `$O`.
fn shell(home: &Path, script: &str) -> Ran {
    let mut command = Command::new("sh");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
        .args(["-c", script])
        .env("O", env!("CARGO_BIN_EXE_offcut"));
    run_command(of(&mut command, home), "")
}

#[test]
fn the_agent_may_read_the_store_of_the_settings() {
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("elsewhere");
    let folder = home.path().join(".local/share/offcut");
    std::fs::create_dir_all(&folder).unwrap();
    let settings = format!("preset = \"recommended\"\nbackend = {store:?}\n");
    std::fs::write(folder.join("offcut.toml"), settings).unwrap();
    assert_eq!(offcut(home.path(), &["install", "claude-code"]).code, 0);
    let ran = offcut(home.path(), &["doctor", "claude-code"]);
    assert!(
        ran.out
            .contains(&format!("all of it was in {}", store.display())),
        "{}",
        ran.out
    );
    std::fs::create_dir_all(store.join("s1")).unwrap();
    let ran = offcut(home.path(), &["uninstall", "claude-code"]);
    let stay = format!("Stored results stay in {};", store.display());
    assert!(ran.out.contains(&stay), "{}", ran.out);
}

#[test]
fn results_of_gemini_cli_stay_in_its_own_folder() {
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join(".gemini/tmp/PROJECT/offcut/store");
    offcut(home.path(), &["install", "gemini-cli"]);
    let ran = offcut(home.path(), &["uninstall", "gemini-cli"]);
    let stay = format!("Stored results stay in {};", store.display());
    assert!(ran.out.contains(&stay), "{}", ran.out);
}

#[test]
fn gemini_cli_may_have_a_home_of_its_own() {
    let home = tempfile::tempdir().unwrap();
    let mut install = command(&["install", "gemini-cli"]);
    of(&mut install, home.path()).env("GEMINI_CLI_HOME", home.path().join("own"));
    assert_eq!(run_command(&mut install, "").code, 0);
    let settings = home.path().join("own/.gemini/settings.json");
    assert!(
        std::fs::read_to_string(settings)
            .unwrap()
            .contains("offcut")
    );
}

#[test]
fn a_tool_that_the_settings_leave_alone_is_no_problem() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".local/share/offcut");
    std::fs::create_dir_all(&folder).unwrap();
    let settings = "preset = \"recommended\"\n[tool_config.Bash]\nskip_truncation = true\n";
    std::fs::write(folder.join("offcut.toml"), settings).unwrap();
    offcut(home.path(), &["install", "claude-code"]);
    let ran = offcut(home.path(), &["doctor", "claude-code"]);
    assert!(ran.out.contains("note     by the settings"), "{}", ran.out);
    assert_eq!(ran.code, 0);
}

#[cfg(unix)]
#[test]
fn a_version_on_stderr_is_found() {
    let home = tempfile::tempdir().unwrap();
    let pi = "printf '#!/bin/sh\necho 0.73.1 >&2\n' > $HOME/pi; chmod +x $HOME/pi; PATH=$HOME:$PATH $O doctor pi";
    let ran = shell(home.path(), pi);
    assert!(ran.out.contains("pi 0.73.1 lets hooks"), "{}", ran.out);
}

/// Agents other than Claude Code, each with its file and a folder that must exist for a probe.
#[test]
fn other_agents_work_too() {
    let agents = [
        ("gemini-cli", ".gemini/settings.json"),
        ("opencode", ".config/opencode/plugins/offcut.js"),
        ("pi", ".pi/agent/extensions/offcut.js"),
    ];
    for (agent, file) in agents {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(file);
        let ran = offcut(home.path(), &["doctor", agent]);
        assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
        let ran = offcut(home.path(), &["install", agent]);
        assert_eq!((ran.code, &*ran.err), (0, ""));
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(
            text.contains(env!("CARGO_BIN_EXE_offcut")) && !text.contains("__"),
            "{text}"
        );
        let ran = offcut(home.path(), &["doctor", agent]);
        assert_eq!(ran.code, 0, "{}", ran.out);
        assert!(ran.out.contains("works    all of it was in"), "{}", ran.out);
        let again = offcut(home.path(), &["install", agent]);
        assert!(again.out.contains("is unchanged"), "{}", again.out);
        let ran = offcut(home.path(), &["uninstall", agent]);
        assert!(ran.out.contains("is removed"), "{}", ran.out);
        assert!(!file.exists());
        let gemini = home.path().join(".gemini/tmp");
        assert!(!gemini.exists(), "the probe left something");
    }
}

#[test]
fn codex_has_to_be_told_of_the_store() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().join("no-break\u{a0}space");
    let mut install = command(&["install", "codex"]);
    let ran = run_command(of(&mut install, &home).env_remove("CODEX_HOME"), "");
    let store = home.join(".local/share/offcut/store");
    let store = store.to_str().unwrap();
    assert!(
        ran.out.contains(&format!("writable_roots = [\"{store}\"]")),
        "{}",
        ran.out
    );
}

#[test]
fn a_project_gets_settings_that_are_not_shared() {
    let home = tempfile::tempdir().unwrap();
    let project = home.path().to_str().unwrap();
    let args = ["install", "claude-code", "--project", project, "--json"];
    let ran = offcut(home.path(), &args);
    let done: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(done["outcome"], "created");
    let path = done["path"].as_str().unwrap();
    assert!(path.ends_with(".claude/settings.local.json"), "{path}");
    let ran = offcut(
        home.path(),
        &["doctor", "claude-code", "--project", project, "--json"],
    );
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    let works = found["findings"].as_array().unwrap();
    assert!(
        works.iter().filter(|one| one["level"] == "works").count() >= 3,
        "{found:#}"
    );
    let wrong = offcut(home.path(), &["doctor", "claude-code"]).out;
    assert!(wrong.contains("add --project"), "{wrong}");
    offcut(
        home.path(),
        &["uninstall", "claude-code", "--project", project],
    );
    assert!(!Path::new(path).exists());
}

#[test]
fn errors_say_what_to_do() {
    let home = tempfile::tempdir().unwrap();
    let cases: [(&[&str], &str, &str); 2] = [
        (&["install", "claud"], "tip:", "'claude-code'"),
        (
            &["install", "pi", "--project"],
            "--help",
            "a value is required",
        ),
    ];
    for (args, remedy, expected) in cases {
        let ran = offcut(home.path(), args);
        assert_eq!(ran.code, 2);
        assert!(
            ran.err.contains(expected) && ran.err.contains(remedy),
            "{}",
            ran.err
        );
    }
    assert!(!home.path().join(".claude").exists());
}

#[test]
fn shells_get_completions_and_manual_pages() {
    let home = tempfile::tempdir().unwrap();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let ran = offcut(home.path(), &["completions", shell]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(
            ran.out.contains("uninstall") && ran.out.contains("json"),
            "{shell}"
        );
    }
    let folder = home.path().join("man");
    let ran = offcut(home.path(), &["man", folder.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let page = std::fs::read_to_string(folder.join("offcut-install.1")).unwrap();
    assert!(page.contains("coding agent"), "{page}");
    assert!(folder.join("offcut.1").exists());
    let ran = offcut(home.path(), &["man", "/dev/null/man"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("/dev/null/man"), "{}", ran.err);
}

#[test]
fn a_dry_run_says_what_would_change_and_changes_nothing() {
    for (agent, file) in [
        ("claude-code", ".claude/settings.json"),
        ("pi", ".pi/agent/extensions/offcut.js"),
    ] {
        let home = tempfile::tempdir().unwrap();
        let ran = offcut(home.path(), &["install", agent, "--dry-run"]);
        assert_eq!((ran.code, &*ran.err), (0, ""));
        for said in ["is new", &format!("hook {agent}"), "nothing was changed"] {
            assert!(ran.out.contains(said), "{}", ran.out);
        }
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
        offcut(home.path(), &["install", agent]);
        let file = home.path().join(file);
        if agent == "claude-code" {
            let text = std::fs::read_to_string(&file).unwrap();
            std::fs::write(
                &file,
                text.replace("\"command\": \"", "\"command\": \"KEY=sk-secret "),
            )
            .unwrap();
            let ran = offcut(home.path(), &["install", agent, "--dry-run"]);
            for said in [
                "is changed",
                "  - hooks.PostToolUse: KEY=…\n",
                "  + hooks.PostToolUse: '",
            ] {
                assert!(ran.out.contains(said), "{}", ran.out);
            }
            let ran = offcut(home.path(), &["doctor", agent]);
            assert!(!ran.out.contains("sk-secret"), "{}", ran.out);
            std::fs::write(&file, text).unwrap();
        }
        let installed = std::fs::read(&file).unwrap();
        let ran = offcut(home.path(), &["uninstall", agent, "--dry-run"]);
        assert!(ran.out.contains("is removed"), "{}", ran.out);
        let ran = offcut(home.path(), &["uninstall", agent, "--dry-run", "--json"]);
        let told: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(
            (&told["dry_run"], &told["outcome"]),
            (&true.into(), &"deleted".into())
        );
        assert_eq!(std::fs::read(&file).unwrap(), installed);
        offcut(home.path(), &["uninstall", agent]);
        assert!(!file.exists());
    }
}

#[test]
fn an_installation_says_at_once_what_keeps_it_from_working() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".local/share/offcut");
    std::fs::create_dir_all(home.path().join(".claude")).unwrap();
    std::fs::create_dir_all(&folder).unwrap();
    let commented = "{\n  // mine\n  \"disableAllHooks\": true\n}\n";
    std::fs::write(home.path().join(".claude/settings.json"), commented).unwrap();
    let settings = folder.join("offcut.toml");
    let named = settings.to_str().unwrap();
    for (text, is_bare, expected) in [
        ("max_length = 5\n", false, "problem  "),
        (
            "# no preset\nnames = \"short\"\n",
            true,
            "names no preset, so only results over 50",
        ),
        ("max_length_for_trunc = 9000\n", false, ""),
        ("preset = \"eino\"\n", false, ""),
        (include_str!("../../policies/eino.toml"), false, ""),
        (
            "preset = \"eino\"\nbackend = \".offcut\"\n",
            false,
            ".offcut is another directory wherever the agent runs",
        ),
    ] {
        std::fs::write(&settings, text).unwrap();
        for verb in ["install", "doctor"] {
            let ran = offcut(home.path(), &[verb, "claude-code"]);
            assert_eq!(ran.code, i32::from(verb == "doctor"), "{}", ran.err);
            for said in ["switches all hooks off", "is not strict JSON", expected] {
                assert!(ran.out.contains(said), "{text}: {}", ran.out);
            }
            assert_eq!(ran.out.contains("names no preset"), is_bare, "{}", ran.out);
            let is_named = text.starts_with("max_length =");
            assert_eq!(
                ran.out.contains("it is called `max_length_for_trunc`"),
                is_named,
                "{}",
                ran.out
            );
        }
        let checked = offcut(home.path(), &["config", "check", named]);
        assert_eq!(
            checked.err.contains("names no preset"),
            is_bare,
            "{}",
            checked.err
        );
    }
    std::fs::write(&settings, "names = \"short\"\n").unwrap();
    let ran = offcut(home.path(), &["install", "claude-code", "-q"]);
    let is_quiet = !ran.out.contains("note ") && ran.out.contains("problem ");
    assert!(is_quiet, "{}", ran.out);
    let ran = offcut(home.path(), &["install", "claude-code", "--json"]);
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(told["outcome"], "unchanged");
    assert!(told["findings"].as_array().unwrap().len() >= 2, "{told:#}");
}

#[test]
fn the_doctor_does_not_send_to_an_installation_that_refuses() {
    for (agent, file) in [
        ("opencode", ".config/opencode/plugins/offcut.js"),
        ("pi", ".pi/agent/extensions/offcut.js"),
    ] {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(file);
        offcut(home.path(), &["install", agent]);
        std::fs::write(&file, "export const Mine = async () => ({})").unwrap();
        let cure = "move it to another folder";
        let refused = offcut(home.path(), &["install", agent]);
        assert!(
            refused.code == 1 && refused.err.contains(cure),
            "{}",
            refused.err
        );
        let ran = offcut(home.path(), &["doctor", agent]);
        assert!(
            ran.out.contains(cure) && !ran.out.contains("→ run"),
            "{}",
            ran.out
        );
        std::fs::remove_file(&file).unwrap();
        assert_eq!(offcut(home.path(), &["install", agent]).code, 0);
        assert_eq!(offcut(home.path(), &["doctor", agent]).code, 0);
    }
}
