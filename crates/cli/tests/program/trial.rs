//! `offcut trial` with commands as agents.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use crate::support::{Ran, command, run_command};
use serde_json::{Value, json};

/// Solves by adding two numbers up, and leaves its provider's usage.
const ADDS: &str = "echo $(( $(cat a) + $(cat b) )) > sum; \
    echo '{\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":10,\"prompt_tokens_details\":{\"cached_tokens\":400}}}' >> \"$OFFCUT_TRIAL_USAGE\"";
/// Never solves, and takes twice the calls.
const GUESSES: &str = "echo 7 > sum; for call in 1 2; do \
    echo '{\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":10}}' >> \"$OFFCUT_TRIAL_USAGE\"; done";
const PRICES: &str = "fresh = 10.0\ncached = 1.0\noutput = 100.0\ncurrency = \"EUR\"\nsource = \"a test\"\ndate = \"2026-01-01\"\n";

/// Three tasks: add two numbers up.
fn tasks(folder: &Path) {
    for (name, a, b) in [("one", 2, 3), ("three", 20, 30), ("two", 1, 1)] {
        let task = folder.join("tasks").join(name);
        fs::create_dir_all(task.join("files")).unwrap();
        fs::write(
            task.join("prompt.md"),
            "Write the sum of a and b to the file sum.",
        )
        .unwrap();
        fs::write(task.join("files/a"), a.to_string()).unwrap();
        program(&task.join("setup"), &format!("#!/bin/sh\necho {b} > b\n"));
        program(
            &task.join("check"),
            &format!("#!/bin/sh\ntest \"$(cat sum)\" = {}\n", a + b),
        );
    }
    fs::write(folder.join("prices.toml"), PRICES).unwrap();
}

fn program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn trial(folder: &Path, first: &str, second: &str, more: &[&str]) -> Ran {
    let (first, second) = (format!("guesses={first}"), format!("adds={second}"));
    let mut args = vec!["trial", "tasks", "--arm", &first, "--arm", &second];
    args.extend(more);
    run_command(command(&args).current_dir(folder), "")
}

fn lines(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("results.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_trial_says_first_what_it_takes_and_runs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    tasks(folder.path());
    let said = trial(folder.path(), "touch ../ran", "touch ../ran", &[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.out
            .contains("Planned   10 of each task: 30 runs of each arm, 60 in all")
            && said.out.contains("exact conditional test"),
        "{}",
        said.out
    );
    let entries = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(entries, 2, "tasks and prices alone");
}

#[test]
fn a_trial_runs_checks_counts_and_tests() {
    let folder = tempfile::tempdir().unwrap();
    tasks(folder.path());
    let more = [
        "--repetitions",
        "4",
        "--results",
        "results.jsonl",
        "--prices",
        "prices.toml",
        "--json",
    ];
    let ran = trial(folder.path(), GUESSES, ADDS, &more);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let out: Value = serde_json::from_str(&ran.out).unwrap();
    let analysis = &out["analysis"];
    assert_eq!(analysis["verdict"], "second_solves_more");
    assert_eq!(
        (&analysis["made"], &analysis["planned"]),
        (&json!(24), &json!(24))
    );
    let [guesses, adds] = [&analysis["arms"][0], &analysis["arms"][1]];
    assert_eq!(
        (&guesses["solved"], &adds["solved"]),
        (&json!(0), &json!(12))
    );
    // 600 at 10, 400 at 1 and 10 at 100 for a million; the other sends 2 000 at 10 and gets 20 back.
    assert!((adds["per_solved"].as_f64().unwrap() - 0.0074).abs() < 1e-12);
    assert_eq!(guesses["per_solved"], Value::Null);
    assert!((guesses["money"].as_f64().unwrap() - 12.0 * 0.022).abs() < 1e-12);
    assert_eq!(
        (&guesses["calls"], &adds["calls"]),
        (&json!(2.0), &json!(1.0))
    );
    // Exact, and as by hand: three tasks, each 0 of 4 against 4 of 4.
    let p = analysis["solved"]["p"].as_f64().unwrap();
    assert!((p - 2.0 / 70_f64.powi(3)).abs() < 1e-12, "{p}");

    let page = trial(folder.path(), GUESSES, ADDS, &more[..more.len() - 1]).out;
    assert!(
        page.contains("**adds solves more.**") && page.contains("**EUR for each solved task**"),
        "{page}"
    );
    assert!(page.contains("| three | 0 of 4 | 4 of 4 |"), "{page}");

    // Arms run in turn: each task's two runs are neighbours, and neither arm is always first.
    let runs: Vec<Value> = lines(folder.path()).split_off(1);
    let first: Vec<&Value> = runs
        .iter()
        .step_by(2)
        .map(|run| &run["run"]["arm"])
        .collect();
    for pair in runs.chunks(2) {
        assert_eq!(pair[0]["run"]["task"], pair[1]["run"]["task"]);
        assert_ne!(pair[0]["run"]["arm"], pair[1]["run"]["arm"]);
    }
    assert!(first.iter().any(|arm| **arm == 0) && first.iter().any(|arm| **arm == 1));

    // A second time, nothing is left to run.
    let again = trial(folder.path(), GUESSES, ADDS, &more);
    assert_eq!(again.out, ran.out);
    assert_eq!(lines(folder.path()).len(), 25);
}

#[test]
fn a_trial_that_is_killed_at_any_moment_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    tasks(folder.path());
    let (guesses, adds) = (
        format!("guesses={GUESSES}"),
        format!("adds=sleep 0.02; {ADDS}"),
    );
    let args = [
        "trial",
        "tasks",
        "--arm",
        &guesses,
        "--arm",
        &adds,
        "--repetitions",
        "5",
        "--results",
        "results.jsonl",
        "--json",
    ];
    let mut kills = 0;
    loop {
        let mut child = command(&args).current_dir(folder.path()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(60 + 37 * kills));
        if child.try_wait().unwrap().is_some() {
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        // As if the line had been cut in the middle of its write.
        let path = folder.path().join("results.jsonl");
        if kills % 2 == 0 && path.exists() {
            let mut text = fs::read(&path).unwrap();
            text.extend_from_slice(b"{\"run\":{\"task\":0,\"ar");
            fs::write(&path, text).unwrap();
        }
    }
    assert!(kills > 1, "killed {kills} times");
    let killed = run_command(command(&args).current_dir(folder.path()), "");
    let whole = tempfile::tempdir().unwrap();
    tasks(whole.path());
    run_command(command(&args).current_dir(whole.path()), "");
    // The same runs in the same order, with the same outcomes.
    let outcomes = |folder: &Path| -> Vec<Value> {
        let mut lines = lines(folder);
        for line in lines.iter_mut().skip(1) {
            line["run"]["seconds"] = Value::Null;
        }
        lines
    };
    assert_eq!(outcomes(folder.path()), outcomes(whole.path()));
    let out: Value = serde_json::from_str(&killed.out).unwrap();
    assert_eq!(out["analysis"]["verdict"], "second_solves_more");
}

#[test]
fn a_trial_of_another_plan_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    tasks(folder.path());
    let results = ["--repetitions", "1", "--results", "results.jsonl"];
    assert_eq!(trial(folder.path(), GUESSES, ADDS, &results).code, 0);
    let before = fs::read(folder.path().join("results.jsonl")).unwrap();
    let other = trial(folder.path(), GUESSES, "true", &results);
    assert!(
        other.code == 2 && other.err.contains("`arms` differs"),
        "{other:?}"
    );
    let other = trial(
        folder.path(),
        GUESSES,
        ADDS,
        &["--repetitions", "2", "--results", "results.jsonl"],
    );
    assert!(
        other.code == 2 && other.err.contains("`repetitions` differs"),
        "{other:?}"
    );
    program(
        &folder.path().join("tasks/one/check"),
        "#!/bin/sh\nexit 0\n",
    );
    let other = trial(folder.path(), GUESSES, ADDS, &results);
    assert!(
        other.code == 2 && other.err.contains("`tasks` differs"),
        "{other:?}"
    );
    assert_eq!(
        fs::read(folder.path().join("results.jsonl")).unwrap(),
        before
    );
}

#[test]
fn what_does_not_work_is_not_counted_against_an_arm() {
    let folder = tempfile::tempdir().unwrap();
    tasks(folder.path());
    let results = ["--repetitions", "1", "--results", "results.jsonl"];
    let missing = trial(
        folder.path(),
        "no-such-agent-here",
        "no-such-agent-here",
        &results,
    );
    assert!(
        missing.code == 1 && missing.err.contains("the agent does not start"),
        "{missing:?}"
    );
    assert_eq!(lines(folder.path()).len(), 1, "the plan alone");
    program(
        &folder.path().join("tasks/one/check"),
        "#!/bin/sh\nkill -9 $$\n",
    );
    fs::remove_file(folder.path().join("results.jsonl")).unwrap();
    let broken = trial(folder.path(), "true", "true", &results);
    assert!(
        broken.code == 1 && broken.err.contains("its check ended with"),
        "{broken:?}"
    );
}

#[test]
fn programs_that_cant_be_started_are_found_before_any_run() {
    for (name, text, mode, expected) in [
        (
            "check",
            "#!/bin/sh\n",
            0o644,
            "three/check is not executable",
        ),
        (
            "setup",
            "#!/bin/sh\n",
            0o644,
            "three/setup is not executable",
        ),
        (
            "check",
            "#!/no/such/shell -e\n",
            0o755,
            "three/check asks for \"/no/such/shell\"",
        ),
        (
            "check",
            "#!/bin/sh\r\n",
            0o755,
            "three/check asks for \"/bin/sh\\r\"",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        tasks(folder.path());
        let path = folder.path().join("tasks/three").join(name);
        program(&path, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let refused = trial(
            folder.path(),
            "touch ../../ran",
            "true",
            &["--results", "results.jsonl"],
        );
        assert!(
            refused.code == 2 && refused.err.contains(expected),
            "{refused:?}"
        );
        assert!(!folder.path().join("results.jsonl").exists());
    }
}

#[test]
fn a_setup_that_fails_is_shown_with_its_words() {
    let folder = tempfile::tempdir().unwrap();
    tasks(folder.path());
    let setup = "#!/bin/sh\necho 'no docker here' >&2\nexit 4\n";
    program(&folder.path().join("tasks/one/setup"), setup);
    let more = ["--repetitions", "1", "--results", "results.jsonl"];
    let failed = trial(folder.path(), GUESSES, ADDS, &more);
    assert!(
        failed.code == 1 && failed.err.contains("exit status: 4: no docker here"),
        "{failed:?}"
    );
}

#[test]
fn an_agent_over_its_time_is_ended_with_all_that_it_started() {
    let folder = tempfile::tempdir().unwrap();
    tasks(folder.path());
    let kept = folder.path().join("kept");
    let hangs = "trap 'echo asked > asked; exit' TERM; sleep 3141 & echo $! > child; wait";
    let more = [
        "--repetitions",
        "1",
        "--results",
        "results.jsonl",
        "--time-limit",
        "1s",
        "--keep",
        "kept",
    ];
    let ran = trial(folder.path(), hangs, ADDS, &more);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let over: Vec<Value> = lines(folder.path())
        .into_iter()
        .filter(|line| line["run"]["over_time"] == true)
        .collect();
    assert_eq!(over.len(), 3);
    for task in ["one", "two", "three"] {
        let work = kept.join(task).join("guesses-0/work");
        assert!(work.join("asked").exists(), "it can end by itself");
        let child = fs::read_to_string(work.join("child")).unwrap();
        let status =
            fs::read_to_string(format!("/proc/{}/cmdline", child.trim())).unwrap_or_default();
        assert!(!status.contains("3141"), "still running");
    }
}
