//! The promises of the page about trials, over simulated ones.

use serde_json::Value;

use super::analysis::Compared;
use super::schedule::schedule;
use super::statistics::Interval;
use super::{Analysis, Arm, Plan, Random, Record, Task, Verdict, markdown, plan_text};

/// Fewer in an unoptimized build, where all of them take a minute.
const TRIALS: u64 = if cfg!(debug_assertions) { 400 } else { 2_000 };
/// The probabilities that the page states.
const ALPHA: f64 = 0.05;
const POWER: f64 = 0.8;

/// A trial's plan as the program makes it, without folders.
fn plan(tasks: usize, repetitions: u64, seed: u64) -> Plan {
    let arm = |name: &str| Arm {
        name: name.to_owned(),
        command: "true".to_owned(),
    };
    let task = |task| Task {
        name: format!("task {task}"),
        folder: "/".into(),
        digest: String::new(),
    };
    let plan = Plan {
        test: super::TEST.to_owned(),
        repetitions,
        seed,
        seconds: 60,
        arms: [arm("without"), arm("with")],
        tasks: (0..tasks).map(task).collect(),
    };
    plan.checked().unwrap()
}

/// A number from 0 up to, but not including, 1.
fn unit(random: &mut Random) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// The shares of solved runs of simulated trials.
#[derive(Clone, Copy)]
struct Shares {
    expected: f64,
    /// By how much the second arm solves each task more often.
    difference: f64,
    /// The width over which the tasks' shares are spread around the expected one.
    spread: f64,
}

fn verdict(plan: &Plan, shares: Shares, random: &mut Random) -> Verdict {
    let last = (plan.tasks.len() - 1).max(1) as f64;
    let mut records: Vec<Record> = Vec::new();
    for run in schedule(plan) {
        let base = shares.expected + shares.spread * (2.0 * run.task as f64 / last - 1.0);
        let share = base + shares.difference * run.arm as f64;
        records.push(record(run, unit(random) < share));
    }
    Analysis::new(plan, &records, None).verdict
}

fn record(run: super::plan::Planned, solved: bool) -> Record {
    Record {
        run,
        solved,
        seconds: 1.0,
        exit: Some(0),
        over_time: false,
        usage: None,
    }
}

/// Numbers of trials that found the second arm better, the first, and neither.
fn found(tasks: usize, repetitions: u64, shares: Shares) -> (u64, u64, u64) {
    let mut random = Random::new(28);
    let mut found = (0, 0, 0);
    for seed in 0..TRIALS {
        match verdict(&plan(tasks, repetitions, seed), shares, &mut random) {
            Verdict::SecondSolvesMore => found.0 += 1,
            Verdict::FirstSolvesMore => found.1 += 1,
            Verdict::NoneFound => found.2 += 1,
            Verdict::Unfinished => panic!("all runs were made"),
        }
    }
    found
}

/// The bounds between which a count of all trials with this probability stays, all but once in a thousand.
fn bounds(probability: f64) -> (u64, u64) {
    bounds_of(TRIALS, probability)
}

fn bounds_of(trials: u64, probability: f64) -> (u64, u64) {
    let mut term = (trials as f64 * (1.0 - probability).ln()).exp();
    let (mut sum, mut low, mut high) = (0.0, None, trials);
    for count in 0..=trials {
        sum += term;
        if sum > 0.000_5 && low.is_none() {
            low = Some(count);
        }
        if sum > 0.999_5 {
            high = count;
            break;
        }
        term *= (trials - count) as f64 / (count + 1) as f64 * probability / (1.0 - probability);
    }
    (low.unwrap(), high)
}

#[test]
fn bounds_are_those_of_the_binomial() {
    // 100 of 2 000 at 5 %, with a standard deviation of 9.75; 1 600 at 80 %, with 17.9.
    let (low, high) = bounds_of(2_000, 0.05);
    assert!(
        (68..=71).contains(&low) && (133..=136).contains(&high),
        "{low} to {high}"
    );
    let (low, high) = bounds_of(2_000, 0.2);
    assert!(
        (341..=344).contains(&low) && (458..=462).contains(&high),
        "{low} to {high}"
    );
}

#[test]
fn the_test_waits_for_the_last_run() {
    let plan = plan(20, 10, 1);
    let runs = schedule(&plan).into_iter();
    let runs: Vec<Record> = runs.map(|run| record(run, run.arm == 1)).collect();
    let of = |runs| {
        let analysis = Analysis::new(&plan, runs, None);
        (
            analysis.verdict,
            analysis.solved.and_then(|solved| solved.p).is_some(),
        )
    };
    assert_eq!(of(&runs[..runs.len() - 1]), (Verdict::Unfinished, false));
    assert_eq!(of(&runs[..0]), (Verdict::Unfinished, false));
    assert_eq!(of(&runs), (Verdict::SecondSolvesMore, true));
}

/// Rows of the page's table: points to find, the expected percentage, and the runs of each arm.
#[test]
fn differences_are_found_as_often_as_the_page_promises() {
    let page = include_str!("../../../../docs/trials.md");
    for (points, expected, runs, tasks, spread) in [
        (5, 50, 1_605, 20, 0.0),
        // Tasks of unequal difficulty lose nothing.
        (5, 50, 1_605, 20, 0.4),
        (10, 50, 408, 34, 0.0),
        (20, 50, 103, 10, 0.0),
        // One repetition of each.
        (30, 50, 45, 45, 0.0),
    ] {
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| {points} points |")));
        let stated: String = row
            .unwrap()
            .split('|')
            .nth(2)
            .unwrap()
            .chars()
            .filter(char::is_ascii_digit)
            .collect();
        assert_eq!(stated, runs.to_string());
        let shares = Shares {
            expected: f64::from(expected) / 100.0,
            difference: f64::from(points) / 100.0,
            spread,
        };
        let repetitions = u64::div_ceil(runs, tasks);
        let (second, first, none) = found(tasks as usize, repetitions, shares);
        println!(
            "{points} points from {expected} %, {tasks} tasks spread by {spread}: {second} found, {first} the wrong way round, {none} missed"
        );
        assert!(none + first <= bounds(1.0 - POWER).1, "{none} missed");
        assert!(first <= 2, "{first} found the wrong way round");
    }
}

#[test]
fn no_difference_is_found_where_there_is_none() {
    for spread in [0.0, 0.4] {
        let shares = Shares {
            expected: 0.5,
            difference: 0.0,
            spread,
        };
        let (second, first, none) = found(20, 81, shares);
        println!(
            "no difference, tasks spread by {spread}: {second} and {first} found, {none} none"
        );
        let (_, high) = bounds(ALPHA);
        assert!(second + first <= high, "{second} and {first} found");
        // An exact test finds less than alpha, but not by much with so many runs.
        let (low, _) = bounds(0.035);
        assert!(second + first >= low, "{second} and {first} found");
    }
}

#[test]
fn the_page_shows_the_plan() {
    let page = include_str!("../../../../docs/trials.md");
    let printed = plan_text(&plan(10, 11, 1));
    let (_, printed) = printed.split_once("Question").unwrap();
    assert!(
        page.contains(&format!("```text\nQuestion{printed}```")),
        "{printed}"
    );
}

#[test]
fn the_page_says_what_decides_where_test_and_interval_disagree() {
    let plan = plan(2, 5, 1);
    for (low, verdict, is_said) in [
        (-0.01, Verdict::SecondSolvesMore, true),
        (0.01, Verdict::NoneFound, true),
        (0.01, Verdict::SecondSolvesMore, false),
        (-0.01, Verdict::NoneFound, false),
    ] {
        let interval = Interval {
            value: 0.2,
            low,
            high: 0.4,
        };
        let analysis = Analysis {
            made: 20,
            planned: 20,
            verdict,
            arms: [Value::Null, Value::Null],
            solved: Some(Compared {
                interval,
                p: Some(0.05),
            }),
            tasks: Vec::new(),
        };
        let page = markdown(&plan, &analysis, None);
        assert_eq!(page.contains("The test decides"), is_said, "{page}");
    }
}
