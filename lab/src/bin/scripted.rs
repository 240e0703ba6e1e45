//! Runs every task at every size under every policy, and prints a table of all and one of sums.
//!
//! `NAME=COMMAND` adds a context editor that runs as a process; `scripts/peers --tasks` adds those of other
//! libraries. OFFCUT_TASK is the only task to run, by its name.

#![allow(clippy::print_stdout, reason = "a program")]

use std::process::Command;
use std::rc::Rc;

use offcut::Settings;
use offcut_cli::READY;
use offcut_lab::Result;
use offcut_lab::scripted::{Peer, Policy, SIZES, TASKS, run};

/// Sums over tasks and sizes.
#[derive(Debug, Default)]
struct TaskSum {
    /// By size: tasks that were solved.
    solved: [u32; SIZES.len()],
    /// Of the sizes that fit into a context window.
    bill: f64,
}

fn main() -> Result<()> {
    let mut policies = vec![("nothing".to_owned(), Policy::Nothing)];
    for (name, toml) in READY {
        let settings = Settings::from_toml(toml)?;
        policies.push((name.to_owned(), Policy::Offcut(Box::new(settings))));
    }
    for argument in std::env::args().skip(1) {
        let (name, command) = argument.split_once('=').ok_or("write NAME=COMMAND")?;
        let mut words = command.split_whitespace();
        let mut program = Command::new(words.next().ok_or("write NAME=COMMAND")?);
        program.args(words);
        policies.push((
            name.to_owned(),
            Policy::Edited(Rc::new(Peer::start(program)?)),
        ));
    }
    println!(
        "| task | size | policy | solved | calls | reads | tokens | bill |\n|---|---|---|---|---|---|---|---|"
    );
    let mut sums: Vec<TaskSum> = policies.iter().map(|_| TaskSum::default()).collect();
    let only = std::env::var("OFFCUT_TASK").ok();
    let is_wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    for task in TASKS.into_iter().filter(|task| is_wanted(task.name)) {
        for (index, (size_name, size)) in SIZES.into_iter().zip(task.sizes).enumerate() {
            for ((name, policy), sum) in policies.iter().zip(&mut sums) {
                let outcome = run(&task, size, policy)?;
                sum.solved[index] += u32::from(outcome.solved);
                if size_name != "beyond" {
                    sum.bill += outcome.bill.weighed();
                }
                println!(
                    "| {} | {size_name} {size} | {name} | {} | {} | {} | {} | {:.0} |",
                    task.name,
                    outcome.why.as_deref().unwrap_or("yes"),
                    outcome.bill.calls,
                    outcome.reads,
                    outcome.bill.tokens,
                    outcome.bill.weighed()
                );
            }
        }
    }
    println!(
        "\n| policy | small | middling | large | beyond | bill | % |\n|---|---|---|---|---|---|---|"
    );
    let none = sums[0].bill;
    for ((name, _), sum) in policies.iter().zip(&sums) {
        let solved = sum.solved.map(|solved| solved.to_string());
        println!(
            "| {name} | {} | {:.0} | {:.1} |",
            solved.join(" | "),
            sum.bill,
            100.0 * sum.bill / none
        );
    }
    Ok(())
}
