//! `offcut trial`.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;
use serde_json::json;

use crate::args;
use crate::child::is_ignored;
use crate::failure::{Failure, OrFail as _, code_of};
use crate::output::{self, Progress};
use crate::replay::Prices;
use crate::trials::{Analysis, Arm, Plan, Results, TEST, Trial, markdown, plan_text, tasks};

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
    let plan = Plan {
        test: TEST.to_owned(),
        repetitions: args.repetitions,
        seed: args.seed,
        seconds: args.time_limit.as_secs(),
        arms,
        tasks,
    }
    .checked()?;
    let Some(results) = &args.results else {
        if json {
            output::write_json(&json!({"plan": plan, "runs_of_each_arm": plan.runs_of_arm()}))?;
        } else {
            output::write(&plan_text(&plan))?;
        }
        output::note("nothing was run: --results FILE runs it");
        return Ok(ExitCode::SUCCESS);
    };
    let mut trial = Trial {
        results: Results::open(results, &plan)?,
        plan,
        keep: args.keep.clone(),
    };
    let all = trial.plan.runs_of_arm() as usize * 2;
    let stop = stop_at_signals()?;
    let progress = Progress::new("made");
    let ran = trial.run(&stop, |made| {
        progress.show(made, all, made as f64 / all as f64);
    });
    let analysis = Analysis::new(&trial.plan, &trial.results.records, prices.as_ref());
    // Also if the trial could not go on: the runs that were made are shown.
    if json {
        output::write_json(&json!({"plan": trial.plan, "analysis": analysis, "prices": prices}))?;
    } else {
        output::write(&markdown(&trial.plan, &analysis, prices.as_ref()))?;
    }
    ran?;
    let is_stopped = stop.load(Ordering::Relaxed);
    if is_stopped {
        output::note("stopped; the same command goes on from here");
    }
    Ok(code_of(!is_stopped))
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
