//! The two promises of a design, over simulated trials of as many runs as it asks for.

use super::schedule::schedule;
use super::{Analysis, Arm, Design, Plan, Random, Record, Task, Verdict, plan_text};

/// Fewer in an unoptimized build, where all of them take a minute.
const TRIALS: u64 = if cfg!(debug_assertions) { 400 } else { 2_000 };
/// The design of `offcut trial` without options.
const DESIGN: Design = Design {
    difference: 0.05,
    expected: 0.5,
    alpha: 0.05,
    power: 0.8,
};

/// A trial's plan as the program makes it, without folders.
fn plan(design: Design, tasks: usize, seed: u64) -> Plan {
    let arm = |name: &str| Arm {
        name: name.to_owned(),
        command: "true".to_owned(),
    };
    let tasks: Vec<Task> = (0..tasks)
        .map(|task| Task {
            name: format!("task {task}"),
            folder: "/".into(),
            digest: String::new(),
        })
        .collect();
    Plan::new(design, [arm("without"), arm("with")], tasks, None, seed, 60).unwrap()
}

/// A number from 0 up to, but not including, 1.
fn unit(random: &mut Random) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// One trial in which the second arm solves each task more often by `difference`, around shares that are spread by
/// `spread` over the tasks.
fn verdict(plan: &Plan, difference: f64, spread: f64, random: &mut Random) -> Verdict {
    let last = (plan.tasks.len() - 1).max(1) as f64;
    let mut records: Vec<Record> = Vec::new();
    for run in schedule(plan) {
        let base = plan.design.expected + spread * (2.0 * run.task as f64 / last - 1.0);
        let share = base + difference * run.arm as f64;
        records.push(Record {
            task: run.task,
            arm: run.arm,
            repetition: run.repetition,
            solved: unit(random) < share,
            seconds: 1.0,
            exit: Some(0),
            over_time: false,
            usage: None,
        });
    }
    Analysis::new(plan, &records, None).verdict
}

/// Numbers of trials that found the second arm better, the first, and neither.
fn found(design: Design, tasks: usize, difference: f64, spread: f64) -> (u64, u64, u64) {
    let mut random = Random::new(28);
    let mut found = (0, 0, 0);
    for seed in 0..TRIALS {
        match verdict(&plan(design, tasks, seed), difference, spread, &mut random) {
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
    let plan = plan(DESIGN, 20, 1);
    let runs: Vec<Record> = schedule(&plan)
        .into_iter()
        .map(|run| Record {
            task: run.task,
            arm: run.arm,
            repetition: run.repetition,
            solved: run.arm == 1,
            seconds: 1.0,
            exit: Some(0),
            over_time: false,
            usage: None,
        })
        .collect();
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

#[test]
fn five_points_are_found_as_often_as_was_promised() {
    let design = DESIGN;
    let (second, first, none) = found(design, 20, 0.05, 0.0);
    let (low, high) = bounds(1.0 - design.power);
    println!(
        "5 points from 50 %, 20 tasks: {second} found, {first} the wrong way round, {none} missed"
    );
    assert!(
        (low..=high).contains(&(none + first)),
        "{none} missed, of {low} to {high}"
    );
    assert!(first <= 2, "{first} found the wrong way round");
}

#[test]
fn tasks_of_unequal_difficulty_lose_nothing() {
    let design = DESIGN;
    let (second, first, none) = found(design, 20, 0.05, 0.4);
    println!(
        "5 points from 10 to 90 %, 20 tasks: {second} found, {first} the wrong way round, {none} missed"
    );
    let (_, high) = bounds(1.0 - design.power);
    assert!(none + first <= high, "{none} missed");
}

#[test]
fn no_difference_is_found_where_there_is_none() {
    let design = DESIGN;
    for spread in [0.0, 0.4] {
        let (second, first, none) = found(design, 20, 0.0, spread);
        println!(
            "no difference, tasks spread by {spread}: {second} and {first} found, {none} none"
        );
        let (_, high) = bounds(design.alpha);
        assert!(second + first <= high, "{second} and {first} found");
        // An exact test finds less than alpha, but not by much with so many runs.
        let (low, _) = bounds(0.035);
        assert!(second + first >= low, "{second} and {first} found");
    }
}

#[test]
fn other_designs_keep_their_promises_too() {
    for (design, tasks) in [
        (
            Design {
                difference: 0.2,
                expected: 0.7,
                alpha: 0.05,
                power: 0.9,
            },
            12,
        ),
        (
            Design {
                difference: 0.1,
                expected: 0.3,
                alpha: 0.01,
                power: 0.8,
            },
            100,
        ),
        // Fewer runs than tasks would take: one repetition of each.
        (
            Design {
                difference: 0.25,
                expected: 0.5,
                alpha: 0.05,
                power: 0.8,
            },
            80,
        ),
    ] {
        let (second, first, none) = found(design, tasks, design.difference, 0.0);
        println!(
            "{design:?}, {tasks} tasks: {second} found, {first} the wrong way round, {none} missed"
        );
        assert!(
            none + first <= bounds(1.0 - design.power).1,
            "{none} missed"
        );
        let (second, first, none) = found(design, tasks, 0.0, 0.0);
        println!(
            "{design:?}, {tasks} tasks without a difference: {second} and {first} found, {none} none"
        );
        assert!(
            second + first <= bounds(design.alpha).1,
            "{second} and {first} found"
        );
    }
}

#[test]
fn the_page_shows_the_plan_and_the_runs_of_these_designs() {
    let page = include_str!("../../../../docs/trials.md");
    let design = Design {
        difference: 0.2,
        ..DESIGN
    };
    let printed = plan_text(&plan(design, 10, 1));
    let (_, printed) = printed.split_once("Question").unwrap();
    assert!(
        page.contains(&format!("```text\nQuestion{printed}```")),
        "{printed}"
    );

    let rows = page.lines().filter_map(|line| line.strip_prefix("| "));
    let rows = rows.filter_map(|row| row.split_once(" points | "));
    let mut count = 0;
    for (points, cells) in rows {
        let numbers = cells.trim_end_matches('|').split('|').map(|cell| {
            let digits: String = cell.chars().filter(char::is_ascii_digit).collect();
            digits.parse::<u64>().unwrap()
        });
        let difference = points.parse::<f64>().unwrap() / 100.0;
        for (expected, number) in [0.5, 0.8, 0.95].into_iter().zip(numbers) {
            let design = Design {
                difference,
                expected,
                ..DESIGN
            };
            assert_eq!(design.runs(), number, "{points} points from {expected}");
            count += 1;
        }
    }
    assert_eq!(count, 12);
}
