//! Runs every task at every size under every policy, and prints a table.

#![allow(clippy::print_stdout, reason = "a program")]

use offcut::Settings;
use offcut_scripted::{Policy, all, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let policies = [
        ("nothing", Policy::Nothing),
        (
            "recommended",
            Policy::Offcut(Box::new(Settings::recommended())),
        ),
        ("eino", Policy::Offcut(Box::new(Settings::eino()))),
    ];
    println!(
        "| task | size | policy | solved | calls | reads | tokens | bill |\n|---|---|---|---|---|---|---|---|"
    );
    for task in all() {
        for size in task.sizes {
            for (name, policy) in &policies {
                let outcome = run(&task, size, policy)?;
                println!(
                    "| {} | {} {} | {name} | {} | {} | {} | {} | {:.0} |",
                    task.name,
                    size.name,
                    size.count,
                    outcome.why.as_deref().unwrap_or("yes"),
                    outcome.bill.calls,
                    outcome.reads,
                    outcome.bill.tokens,
                    outcome.bill.weighed()
                );
            }
        }
    }
    Ok(())
}
