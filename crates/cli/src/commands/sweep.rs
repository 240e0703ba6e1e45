//! `offcut sweep`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use offcut::backend::StoreUrl;
use offcut::sweep::{Live, SweepError, SweepPolicy, SweepReport};
use offcut::{TokenCounter, ToolPolicy, ToolReduction};

use crate::agents::layout::Home;
use crate::agents::transcripts;
use crate::failure::{Failure, OrFail as _, chain, code_of};
use crate::output::Progress;
use crate::{args, output, settings, stores, units};

pub(super) const NOT_SWEPT: &str = "nothing was swept";

pub(crate) fn run(args: &args::Sweep, json: bool) -> Result<ExitCode, Failure> {
    let (mut stores, mut live) = (args.stores.clone(), args.live.clone());
    if stores.is_empty() {
        let own = settings::user_store()?;
        let (named, _) = settings::named(&args::OfUser::default(), || Ok(own.clone()))?;
        // Nobody knows who else uses stores that settings name.
        if let Some(other) = stores::named_in(&named).find(|store| **store != own) {
            return Err(Failure::usage(
                format!("the user's settings name another store, {other}"),
                "name the stores to sweep, and every folder of transcripts of their users with --live",
            ));
        }
        output::note(&format!("the store is {own}"));
        stores = vec![own];
        if !args.nothing_is_live {
            live.extend(transcripts::folders(&Home::required()?).or_fail(NOT_SWEPT)?);
        }
    }
    if live.is_empty() && !args.nothing_is_live {
        return Err(Failure::usage(
            "nothing says which conversations are live, so anything could be removed",
            "pass every folder of transcripts with --live, or --nothing-is-live if there is none",
        ));
    }
    let report = sweep(args, &stores, &live)?;
    for failure in &report.failed {
        let location = output::visible(failure.location.as_str());
        output::warn(&format!("{location}: {}", failure.error));
    }
    if json {
        output::write_json(&report)?;
    } else {
        output::write(&table(&report))?;
    }
    if [report.live, report.kept, report.removed]
        .iter()
        .all(|tally| tally.count == 0)
    {
        output::note("nothing is stored there: use the stores, --root and --session of the agents");
    }
    if report.dry_run {
        output::note("nothing was changed: this was a dry run; pass --apply to sweep");
    }
    Ok(code_of(report.failed.is_empty()))
}

/// Sweeps `stores`. The transcripts in the folders `live` are live.
pub(super) fn sweep(
    args: &args::Sweep,
    stores: &[StoreUrl],
    live: &[PathBuf],
) -> Result<SweepReport, Failure> {
    let runtime = settings::runtime()?;
    let _inside = runtime.enter();
    // The stores are opened without the agents' settings, which play no part in a sweep.
    let mut builder = ToolReduction::builder().root_dir(&*args.root);
    for (number, url) in stores.iter().enumerate() {
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
        .or_refuse("--root", "pass the `root_dir` of the agents' settings")?;
    let reduction = settings::in_session(reduction, args.session.as_deref());

    // Before anything live is looked at.
    let now = SystemTime::now();
    let mut kept = args
        .keep_session
        .iter()
        .fold(Live::new(), |kept, id| kept.session(id));
    let progress = Progress::new("folders of transcripts");
    for (read, folder) in live.iter().enumerate() {
        output::detail(&format!("transcripts in {}", folder.display()));
        progress.show(read + 1, live.len(), read as f64 / live.len() as f64);
        kept = kept
            .folder(folder)
            .or_refuse(NOT_SWEPT, "pass only folders of transcripts in text files")?;
    }
    let mut policy = SweepPolicy::new().idle(args.idle);
    (policy.quota_bytes, policy.dry_run) = (args.quota, !args.apply);
    let swept = runtime.block_on(offcut::sweep::sweep(&reduction, &kept, &policy, now));
    swept.map_err(|error| match error {
        SweepError::Idle { .. } => {
            Failure::usage(chain(&error), "omit --idle for the default, 30d")
        }
        _ => Failure::new(chain(&error)).hint("nothing was swept: fix the cause, and sweep again"),
    })
}

/// Fails if `url` names a directory that is not a store. The directory is not searched for content:
/// that could take long, and fail, in other people's files.
fn refuse_other_directories(url: &StoreUrl) -> Result<(), Failure> {
    stores::expect(url)?;
    if stores::may_be_store(url) || stores::is_empty(url) {
        return Ok(());
    }
    Err(Failure::usage(
        format!(
            "{url} is not a store: it lacks the `.staging` folder that every store with content has"
        ),
        "pass the directory that is the `backend` of the agents' settings, or --is-a-store if this is it",
    ))
}

fn table(report: &SweepReport) -> String {
    let removed = match report.dry_run {
        true => "to be removed",
        false => "removed",
    };
    let rows = [
        ("live", report.live),
        ("kept", report.kept),
        (removed, report.removed),
    ];
    let rows = rows.into_iter().map(|(what, tally)| {
        [
            what.to_owned(),
            tally.conversations.to_string(),
            tally.count.to_string(),
            units::size(tally.bytes),
        ]
    });
    let mut table = output::table(1, "|conversations|items|size", rows);
    if report.tidied > 0 {
        table += &format!("leftovers removed  {}\n", report.tidied);
    }
    table
}
