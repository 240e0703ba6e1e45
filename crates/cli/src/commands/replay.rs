//! `offcut replay`.

use std::collections::HashSet;
use std::fs::File;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::agents::layout::Home;
use crate::args;
use crate::failure::{Failure, OrFail as _, code_of};
use crate::output;
use crate::policies::READY;
use crate::replay::{self, Figures, NONE, Policy, Prices, Replayed, RequestSource, Skipped};
use crate::{report, settings, transcript};

pub(crate) fn run(args: &args::Replay, json: bool) -> Result<ExitCode, Failure> {
    #[cfg(feature = "serve")]
    if args.cache {
        return super::cache::run(&args.traces, json);
    }
    let prices = Prices::open(&args.prices)?;
    let policies = policies(args)?;
    let sources = transcript::sources(&args.traces)?;
    let unwritable = |file: &Path| format!("the report can't be written to {}", file.display());
    const FOLDER: &str = "name a file in an existing folder";
    if let Some(file) = &args.html {
        // First, because a replay may take long.
        let opened = File::options().append(true).create(true).open(file);
        opened.or_advise(unwritable(file), FOLDER)?;
    }
    let (replayed, skipped) = replay::all(&sources, &policies)?;
    for Skipped { name, why } in &skipped {
        let [name, why] = [name, why].map(|text| output::visible(text));
        output::warn(&format!("skipped {name}: {why}"));
    }
    if replayed.is_empty() {
        let problem = "none of the transcripts could be replayed";
        return Err(Failure::usage(problem, transcript::READ));
    }
    if !skipped.is_empty() {
        output::note(transcript::READ);
    }

    let totals = replay::totals(&replayed, policies.len());
    let names: Vec<&str> = std::iter::once(NONE)
        .chain(policies.iter().map(|policy| policy.name.as_str()))
        .collect();
    if json {
        output::write_json(&summaries(&names, &totals, &replayed, &skipped, &prices))?;
    } else {
        let count = replayed.len();
        let overview = replay::overview(&names, &totals, count, &prices, args.all);
        let verdict = replay::verdict(&names, &totals, count, &prices);
        let best = replay::cheapest(&totals, &prices).checked_sub(1);
        let advice = best.map_or_else(String::new, |best| advice(&policies[best]));
        output::write(&format!("{overview}\n{verdict}{advice}\n"))?;
    }
    if let Some(file) = &args.html {
        let page = report::html(&names, &totals, &replayed, &prices);
        std::fs::write(file, page).or_advise(unwritable(file), FOLDER)?;
    }
    Ok(code_of(skipped.is_empty()))
}

/// Says how to use a policy; nothing if another program's requests are judged.
fn advice(policy: &Policy) -> String {
    let RequestSource::Settings(_, file) = &policy.by else {
        return String::new();
    };
    let mine = Home::from_env().map(|home| home.settings());
    let mine = mine.as_deref().unwrap_or(Path::new("offcut.toml"));
    let (name, mine) = (
        output::quoted(file),
        output::quoted(&mine.to_string_lossy()),
    );
    match READY.iter().any(|(ready, _)| ready == file) {
        true => format!(
            " To use it, pass `--config {name}`, or write what `offcut config default {name}` prints into {mine}."
        ),
        false => format!(" To use it, pass `--config {name}`, or copy it to {mine}."),
    }
}

/// Loads the policies given as `NAME=FILE` and `NAME=FOLDER`, or the built-in ones if none are given.
/// Stores that they name are ignored.
fn policies(args: &args::Replay) -> Result<Vec<Policy>, Failure> {
    let ready = READY.map(|(name, _)| (name.to_owned(), name.to_owned()));
    let named = match args.policies.is_empty() && args.requests.is_empty() {
        true => &ready[..],
        false => &args.policies,
    };
    let mut policies: Vec<Policy> = Vec::new();
    for (name, file) in named {
        let mut settings = settings::load(file)?;
        output::detail(&format!("policy {name} from {file}"));
        settings::forget_stores(&mut settings);
        // Settings that don't build fail before anything is replayed.
        settings::build(&settings, file)?;
        policies.push(Policy {
            name: name.clone(),
            by: RequestSource::Settings(Box::new(settings), file.clone()),
        });
    }
    for (name, folder) in &args.requests {
        if !Path::new(folder).is_dir() {
            return Err(Failure::usage(
                format!("--requests {name}={folder} does not name a folder"),
                "write NAME=FOLDER, with a folder of requests; docs/peers.md has the format",
            ));
        }
        policies.push(Policy {
            name: name.clone(),
            by: RequestSource::Requests(folder.into()),
        });
    }
    let mut names = HashSet::from([NONE]);
    let mut all = policies.iter().map(|policy| policy.name.as_str());
    match all.find(|name| !names.insert(name)) {
        None => Ok(policies),
        Some(name) => Err(Failure::usage(
            format!("there are two policies called {name}"),
            "give each its own name",
        )),
    }
}

/// The output of `--json`.
fn summaries(
    names: &[&str],
    totals: &[Figures],
    replayed: &[Replayed],
    skipped: &[Skipped],
    prices: &Prices,
) -> Value {
    let of_policy = |(index, name): (usize, &&str)| {
        let traces = replayed.iter().map(|one| {
            let figures = one.replays[index].figures;
            figures.summary(&one.name, prices)
        });
        let mut row = totals[index].summary(name, prices);
        row["traces"] = traces.collect();
        row
    };
    json!({
        "prices": prices,
        "policies": names.iter().enumerate().map(of_policy).collect::<Vec<_>>(),
        "skipped": skipped,
    })
}
