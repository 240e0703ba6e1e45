//! `offcut replay`.

use std::process::ExitCode;

use serde::Serialize;

use crate::args;
use crate::failure::{Failure, PARTLY};
use crate::output::{self, Progress};
use crate::replay::{self, Card, Figures, NONE, Policy, Replayed, Summary};
use crate::{report, settings, transcript};

/// What `--json` prints.
#[derive(Serialize)]
struct Output {
    policies: Vec<OfPolicy>,
}

#[derive(Serialize)]
struct OfPolicy {
    #[serde(flatten)]
    all: Summary,
    traces: Vec<Summary>,
}

pub(crate) fn run(args: &args::Replay, json: bool) -> Result<ExitCode, Failure> {
    let card = Card::open(&args.prices)?;
    let policies = policies(&args.policies)?;
    let sources = transcript::sources(&args.traces)?;
    let progress = Progress::new("replayed", sources.len());
    let (replayed, skipped) = replay::all(&sources, &policies, |done| progress.at(done))?;
    for one in &skipped {
        output::warn(&format!("skipped {}: {}", one.name, one.why));
    }
    if replayed.is_empty() {
        return Err(Failure::usage(
            "none of the transcripts could be read",
            "a transcript is a JSON list of messages, or an object with `messages`",
        ));
    }

    let totals = replay::totals(&replayed, policies.len());
    let names: Vec<&str> = std::iter::once(NONE).chain(policies.iter().map(|policy| policy.name.as_str())).collect();
    if let Some(file) = &args.html {
        let page = report::html(&names, &totals, &replayed, card)?;
        std::fs::write(file, page).map_err(|error| {
            Failure::new(format!("the report can't be written to {}: {error}", file.display()))
                .hint("name a file in a folder that is there")
        })?;
    }
    if json {
        output::write_json(&summaries(&names, &totals, &replayed, card))?;
    } else {
        output::write(&overview(&names, &totals, &replayed, card))?;
    }
    Ok(if skipped.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(PARTLY) })
}

/// The policies that `NAME=FILE` name; the ready ones where there are none.
fn policies(named: &[String]) -> Result<Vec<Policy>, Failure> {
    let ready: Vec<String> = settings::READY.iter().map(|(name, _)| (*name).to_owned()).collect();
    let mut policies: Vec<Policy> = Vec::new();
    for named in if named.is_empty() { &ready } else { named } {
        let (name, file) = named.split_once('=').unwrap_or((named, named));
        if name == NONE || policies.iter().any(|policy| policy.name == name) {
            return Err(Failure::usage(format!("there are two policies called {name}"), "give each a name of its own"));
        }
        let settings = settings::load(file)?;
        // What does not build is said before anything is replayed.
        settings::build(&settings, name, Some(replay::scratch()))?;
        policies.push(Policy { name: name.to_owned(), settings });
    }
    Ok(policies)
}

fn summaries(names: &[&str], totals: &[Figures], replayed: &[Replayed], card: Card) -> Output {
    let of_policy = |(index, name): (usize, &&str)| OfPolicy {
        all: totals[index].summary(name, card),
        traces: replayed.iter().map(|one| one.replays[index].figures.summary(&one.name, card)).collect(),
    };
    Output { policies: names.iter().enumerate().map(of_policy).collect() }
}

fn overview(names: &[&str], totals: &[Figures], replayed: &[Replayed], card: Card) -> String {
    let none = totals[0];
    let by_trace: Vec<Vec<Figures>> =
        replayed.iter().map(|one| one.replays.iter().map(|replay| replay.figures).collect()).collect();
    format!(
        "{} transcripts, {} model calls, {:.1} M tokens sent, {} strings and {} lines used from results\n\n{}\n{}",
        replayed.len(),
        none.model_calls,
        none.tokens as f64 / 1e6,
        none.uses,
        none.quotes,
        replay::table(names, totals, card),
        replay::table_by_trace(names, &by_trace, card)
    )
}
