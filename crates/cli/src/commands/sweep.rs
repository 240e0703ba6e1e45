//! `offcut sweep`.

use std::process::ExitCode;
use std::time::SystemTime;

use offcut::backend::StoreUrl;
use offcut::sweep::{Live, SweepError, SweepPolicy, SweepReport, Tally};
use offcut::{TokenCounter, ToolPolicy, ToolReduction};

use crate::failure::{Failure, PARTLY, chain};
use crate::{args, output, settings, stores, units};

pub(crate) fn run(args: &args::Sweep, json: bool) -> Result<ExitCode, Failure> {
    if args.live.is_empty() && !args.nothing_is_live {
        return Err(Failure::usage(
            "nothing says which conversations are live, so anything could be removed",
            "pass every folder of transcripts with --live, or --nothing-is-live if there is none",
        ));
    }
    let runtime = settings::runtime()?;
    let _inside = runtime.enter();
    // The stores are opened without the agents' settings, which play no part in a sweep.
    let mut builder = ToolReduction::builder().root_dir(&*args.root);
    for (number, url) in args.stores.iter().enumerate() {
        if !args.is_a_store {
            refuse_other_directories(url)?;
        }
        let store = stores::existing(url)?;
        builder = match number {
            0 => builder.backend(store),
            // Numbered, because two URLs may differ only in what is hidden.
            _ => builder.tool(
                format!("store {} ({url})", number + 1).replace('*', "…"),
                ToolPolicy::new().backend(store),
            ),
        };
    }
    let reduction = builder
        .skip_truncation(true)
        .token_counter(TokenCounter::Estimate)
        .build()
        .map_err(|error| {
            Failure::usage(
                format!("--root: {}", chain(&error)),
                "pass the `root_dir` of the agents' settings",
            )
        })?;

    let reduction = match &args.session {
        Some(id) => reduction.session(id),
        None => reduction,
    };

    // Before anything live is looked at.
    let now = SystemTime::now();
    let live = args
        .keep_session
        .iter()
        .fold(Live::new(), |live, id| live.session(id));
    let live = args
        .live
        .iter()
        .try_fold(live, Live::folder)
        .map_err(|error| {
            let hint = "nothing was swept: pass only folders of transcripts in text files";
            Failure::usage(chain(&error), hint)
        })?;
    let swept = runtime.block_on(offcut::sweep::sweep(&reduction, &live, &policy(args), now));
    let report = swept.map_err(|error| match error {
        SweepError::Grace { .. } => {
            Failure::usage(chain(&error), "omit --grace for the default, 24h")
        }
        _ => Failure::new(chain(&error))
            .hint("nothing was swept: fix the cause, or wait, and sweep again"),
    })?;

    for failure in &report.failed {
        output::warn(&format!(
            "{}: {}",
            output::visible(failure.location.as_str()),
            failure.error
        ));
    }
    if json {
        output::write_json(&report)?;
    } else {
        output::write(&table(&report))?;
    }
    if tallies(&report).iter().all(|tally| tally.count == 0) {
        output::note(&match part(args) {
            Some(part) => {
                format!("nothing is stored below {part}: use the names that the agents use")
            }
            None => "nothing is stored there: use the stores of the agents' settings".to_owned(),
        });
    }
    for note in about_space(&report) {
        output::note(&note);
    }
    if report.dry_run {
        output::note("nothing was changed: this was a dry run; pass --apply to sweep");
    }
    if report.stopped {
        output::warn("the sweep stopped after half of its grace: sweep again to continue");
    }
    Ok(if report.failed.is_empty() && !report.stopped {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(PARTLY)
    })
}

/// Fails if `url` names a directory that is not a store. The directory is not searched for content:
/// that could take long, and fail, in other people's files.
fn refuse_other_directories(url: &StoreUrl) -> Result<(), Failure> {
    stores::expect(url)?;
    if stores::may_be_store(url) || stores::is_empty(url) {
        return Ok(());
    }
    let advice = "pass the directory that is the `backend` of the agents' settings, or --is-a-store if this is it";
    let hint = stores::inside(url)
        .map(|store| format!("{} inside it is a store; {advice}", store.display()));
    Err(Failure::usage(
        format!(
            "{url} is not a store: it lacks the `.staging` folder that every store with content has"
        ),
        hint.unwrap_or_else(|| advice.to_owned()),
    ))
}

/// Notes that moving frees no space, and when space will be free.
fn about_space(report: &SweepReport) -> Vec<String> {
    let note = |tally: Tally, what: &str, at: Option<SystemTime>| {
        at.filter(|_| tally.count > 0).map(|at| {
            let (size, time) = (units::size(tally.bytes), units::until(at));
            format!("{size} {what}; it takes up space until a sweep removes it, in {time} at the earliest")
        })
    };
    let moved = if report.dry_run {
        "would be moved aside"
    } else {
        "was moved aside"
    };
    let notes = [
        note(report.moved, moved, report.moved_free_at),
        note(report.waiting, "waits aside", report.waiting_free_at),
    ];
    notes.into_iter().flatten().collect()
}

/// Describes the part of the store that is swept, unless it is all of it.
fn part(args: &args::Sweep) -> Option<String> {
    let root = (!args.root.is_empty()).then(|| format!("--root {}", args.root));
    let session = args.session.as_ref().map(|id| format!("--session {id}"));
    let parts: Vec<_> = root.into_iter().chain(session).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

fn policy(args: &args::Sweep) -> SweepPolicy {
    let mut policy = SweepPolicy::new().grace(args.grace);
    policy.max_age = args.max_age;
    policy.quota_bytes = args.quota;
    policy.unreferenced = args.unreferenced;
    policy.dry_run = !args.apply;
    policy
}

fn tallies(report: &SweepReport) -> [Tally; 7] {
    let SweepReport {
        live,
        young,
        kept,
        moved,
        brought_back,
        waiting,
        removed,
        ..
    } = *report;
    [live, young, kept, moved, brought_back, waiting, removed]
}

fn table(report: &SweepReport) -> String {
    let done = |done: &'static str, would: &'static str| if report.dry_run { would } else { done };
    let names = [
        "live",
        "young",
        "kept",
        done("moved aside", "to be moved aside"),
        done("brought back", "to be brought back"),
        "waiting aside",
        done("removed", "to be removed"),
    ];
    let lines = names.into_iter().zip(tallies(report));
    let line = |(what, Tally { count, bytes })| {
        format!("{what:<20}{count:>9}  {:>10}\n", units::size(bytes))
    };
    let mut table: String = lines.map(line).collect();
    if report.tidied > 0 {
        table += &format!("{:<20}{:>9}\n", "leftovers removed", report.tidied);
    }
    table
}
