//! `offcut trial`.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;
use serde_json::json;

use crate::args;
use crate::child::is_ignored;
use crate::failure::{Failure, OrFail as _, code_of};
use crate::output;
use crate::replay::Prices;
use crate::trials::{Analysis, Arm, Design, Plan, Results, Trial, markdown, plan_text, tasks};

/// Says what a trial takes, or runs it.
pub(crate) fn run(args: &args::Trial, json: bool) -> Result<ExitCode, Failure> {
    let prices = args.prices.as_deref().map(prices).transpose()?;
    let tasks = tasks(&args.tasks)?;
    let arms = args.arms.iter().cloned();
    let arms: Vec<Arm> = arms.map(|(name, command)| Arm { name, command }).collect();
    let Ok(arms) = arms.try_into() else {
        return Err(Failure::usage(
            "a trial compares two arms",
            "give --arm twice: --arm without='…' --arm with='…'",
        ));
    };
    let design = Design {
        difference: args.difference / 100.0,
        expected: args.expected / 100.0,
        alpha: args.alpha / 100.0,
        power: args.power / 100.0,
    };
    let plan = Plan::new(
        design,
        arms,
        tasks,
        args.repetitions,
        args.seed,
        args.time_limit.as_secs(),
    )?;
    let Some(results) = &args.results else {
        return say(&plan, json);
    };
    let mut trial = Trial {
        results: Results::open(results, &plan)?,
        plan,
        keep: args.keep.clone(),
    };
    let all = trial.plan.runs_of_arm() as usize * 2;
    let stop = stop_at_signals()?;
    let ran = trial.run(&stop, |made| output::progress("made", made, all));
    let analysis = Analysis::new(&trial.plan, &trial.results.records, prices.as_ref());
    let page = markdown(&trial.plan, &analysis, prices.as_ref());
    if let Some(file) = &args.report {
        std::fs::write(file, &page).or_advise(
            format_args!("the report can't be written to {}", file.display()),
            "the runs are recorded: name a file in an existing folder, and run the command again",
        )?;
    }
    // Also if the trial could not go on: the runs that were made are shown.
    if json {
        output::write_json(&json!({"plan": trial.plan, "analysis": analysis, "prices": prices}))?;
    } else {
        output::write(&page)?;
    }
    ran?;
    let is_stopped = stop.load(Ordering::Relaxed);
    if is_stopped {
        output::note("stopped; the same command goes on from here");
    }
    Ok(code_of(!is_stopped))
}

/// Prints the plan and runs nothing.
fn say(plan: &Plan, json: bool) -> Result<ExitCode, Failure> {
    if json {
        let runs = plan.design.runs();
        output::write_json(
            &json!({"plan": plan, "needed_runs_of_each_arm": runs, "planned_runs_of_each_arm": plan.runs_of_arm()}),
        )?;
    } else {
        output::write(&plan_text(plan))?;
        output::note("nothing was run: --results FILE runs it");
    }
    Ok(ExitCode::SUCCESS)
}

/// A flag that SIGINT, SIGTERM and the like set, unless this program was started to ignore them.
fn stop_at_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        if is_ignored(signal) {
            continue;
        }
        signal_hook::flag::register(signal.as_raw(), Arc::clone(&stop))
            .or_fail("signals can't be caught")?;
    }
    Ok(stop)
}

/// The card with this name, which must have all prices that a trial takes.
fn prices(name: &str) -> Result<Prices, Failure> {
    let prices = Prices::open(name)?;
    if prices.output.is_none() || prices.money().is_none() {
        return Err(Failure::usage(
            format!("{name} lacks prices that a trial takes"),
            "a trial's card has the prices of a million tokens, `fresh`, `cached`, `output` and, if it is another, `written`, with `currency`, \
             `source` and `date`",
        ));
    }
    Ok(prices)
}
