//! Agents under `recommended` solve all that they solve without it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod served;

use std::rc::Rc;

use offcut::Settings;
use offcut_cli::READY;
use offcut_lab::scripted::{CONTEXT, Outcome, Peer, Policy, SIZES, TASKS, Task, run};
use served::ScriptedServer;

/// Tokens of the reader's definition.
const READER: u64 = 303;

/// Sums over tasks and sizes.
#[derive(Debug, Default)]
struct Sum {
    solved: u32,
    bill: f64,
}

impl Sum {
    fn add(&mut self, outcome: &Outcome) {
        self.solved += u32::from(outcome.solved);
        self.bill += outcome.bill.weighed();
    }
}

#[test]
fn recommended_solves_what_doing_nothing_solves_for_less() {
    let offcut = |settings: Settings| Policy::Offcut(Box::new(settings));
    let policies = [
        Policy::Nothing,
        offcut(Settings::recommended()),
        offcut(Settings::eino()),
    ];
    let (mut none, mut recommended) = (Sum::default(), Sum::default());
    let mut dearer = Vec::new();
    for task in TASKS {
        for (size_name, size) in SIZES.into_iter().zip(task.sizes) {
            let [nothing, ours, eino] = policies
                .each_ref()
                .map(|policy| run(&task, size, policy).unwrap());
            let place = format!("{} {size_name}", task.name);
            assert!(ours.solved, "{place}: {:?}", ours.why);
            assert!(eino.solved, "{place} under eino: {:?}", eino.why);
            assert_eq!(
                nothing.solved,
                size_name != "beyond",
                "{place}: {:?}",
                nothing.why
            );
            assert_eq!(nothing.reads, 0);
            if !nothing.solved {
                continue;
            }
            none.add(&nothing);
            recommended.add(&ours);
            if ours.bill.weighed() > nothing.bill.weighed() {
                // Nothing was shortened: the reader's definition in each request is all that it costs.
                let more = ours.bill.tokens - nothing.bill.tokens;
                assert_eq!(
                    (more, ours.reads),
                    (READER * nothing.bill.calls, 0),
                    "{place}"
                );
                dearer.push(place);
            }
        }
    }
    let is_small = |place: &String| place.ends_with("small") || place.ends_with("middling");
    assert!(
        dearer.iter().filter(|place| !is_small(place)).count() <= 3,
        "{dearer:?}"
    );
    println!("where nothing solves: {none:?}, recommended {recommended:?}; dearer: {dearer:?}");
    assert!(recommended.bill < none.bill, "{recommended:?} and {none:?}");
}

/// Clients never shorten what they send, and the window has half of what a task needs without Offcut, or is a real
/// one. Each task has this many of four sizes: two below "large", and those from it on. Returns the number of requests
/// that were refused and then taken.
fn overflowing(settings: &Settings, sizes: usize) -> usize {
    let mut recovered = 0;
    for task in TASKS {
        let [.., large, beyond] = task.sizes;
        let all = [
            ("half", large * 2 / 4),
            ("most", large * 3 / 4),
            ("large", large),
            ("beyond", beyond),
        ];
        for (size_name, size) in &all[..sizes] {
            let place = format!("{} {size_name}", task.name);
            let nothing = run(&task, *size, &Policy::Nothing).unwrap();
            let window = match nothing.solved {
                true => nothing.bill.peak / 2,
                false => CONTEXT,
            };
            // The newest result may be whole, and tools and prompt take some.
            assert!(window >= 4_000, "{place}: {window}");
            let through = |settings: Option<&Settings>| {
                let served = Rc::new(ScriptedServer::start(settings, window).unwrap());
                let policy = Policy::Edited(Rc::clone(&served) as _);
                let outcome = run(&task, *size, &policy).unwrap();
                (outcome, served.outcomes())
            };
            assert!(!through(None).0.solved, "{place}");
            let (ours, outcomes) = through(Some(settings));
            assert!(ours.solved, "{place} in {window}: {:?}", ours.why);
            let again = outcomes.iter().filter(|outcome| *outcome == "recovered");
            recovered += again.count();
        }
    }
    recovered
}

/// Settings with which nothing but a refusal has old results cleared.
fn late() -> Settings {
    let mut settings = Settings::recommended();
    settings.max_tokens_for_clear = 10_000_000;
    settings
}

#[test]
fn what_overflows_is_solved_through_a_server() {
    assert!(overflowing(&late(), 2) >= 10);
}

#[test]
#[ignore = "takes two minutes"]
fn what_overflows_is_solved_through_a_server_at_every_size() {
    assert!(overflowing(&late(), 4) >= 13);
    assert!(overflowing(&Settings::recommended(), 4) >= 10);
}

#[test]
fn every_ready_policy_solves_what_fits() {
    for (name, toml) in READY {
        let settings = Settings::from_toml(toml).unwrap();
        let policy = Policy::Offcut(Box::new(settings));
        for task in TASKS {
            for (size_name, size) in SIZES.iter().zip(&task.sizes[..3]) {
                let outcome = run(&task, *size, &policy).unwrap();
                let place = format!("{} {size_name} under {name}", task.name);
                assert!(outcome.solved, "{place}: {:?}", outcome.why);
            }
        }
    }
}

/// A context editor that is a script of `sed`.
#[cfg(target_os = "linux")]
fn editor(script: &str) -> Policy {
    let mut editor = std::process::Command::new("sed");
    editor.args(["-u", script]);
    Policy::Edited(Rc::new(Peer::start(editor).unwrap()))
}

#[cfg(target_os = "linux")]
fn needle() -> Task {
    let mut tasks = TASKS.into_iter();
    tasks.find(|task| task.name == "needle").unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn an_editor_that_changes_nothing_costs_what_doing_nothing_costs() {
    let script = r#"s/^{"new":true}$/{"tools":[]}/; s/^{"add":\(.*\)}$/{"keep":9999,"messages":\1}/; s/^{"call":.*$/{"result":null}/"#;
    let editor = editor(script);
    for task in TASKS {
        for size in &task.sizes[..2] {
            let edited = run(&task, *size, &editor).unwrap();
            assert_eq!(edited, run(&task, *size, &Policy::Nothing).unwrap());
            assert!(edited.solved, "{:?}", edited.why);
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_cleared_result_is_fetched_again() {
    let task = needle();
    // The first page has the word. When the question comes, only the editor's text is left of it.
    let script = r#"s/^{"new":true}$/{"tools":[]}/; s/^{"call":.*$/{"result":null}/
/^{"add":/{s/^{"add":\(.*\)}$/{"keep":9999,"messages":\1}/;s/"call_1","content":"[^"]*"/"call_1","content":"[cleared]"/}"#;
    let editor = editor(script);
    let size = task.sizes[0];
    let cleared = run(&task, size, &editor).unwrap();
    let nothing = run(&task, size, &Policy::Nothing).unwrap();
    assert!(cleared.solved, "{:?}", cleared.why);
    assert_eq!(cleared.bill.calls, nothing.bill.calls + 1);
}

#[cfg(target_os = "linux")]
#[test]
fn an_editor_may_change_commands() {
    let task = needle();
    let script = r#"s/^{"new":true}$/{"tools":[]}/; s/^{"add":\(.*\)}$/{"keep":9999,"messages":\1}/; s/^{"call":.*"name":"bash".*$/{"arguments":{"command":"echo the word at the gate would be w1"}}/"#;
    let editor = editor(script);
    let outcome = run(&task, task.sizes[0], &editor).unwrap();
    // It has seen what the editor's command prints instead of the file.
    let why = outcome.why.unwrap_or_default();
    assert!(why.starts_with("answered \"w1\""), "{why}");
    assert_eq!(outcome.reads, 0);
}
