//! Carries out a sweep: lists, searches what is live, and removes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::SystemTime;

use crate::ToolReduction;
use crate::backend::content::{Stored, place_of};
use crate::backend::{Backend, BackendError, ErrorKind, Key};
use futures_util::StreamExt;

use super::conversations::{Conversation, Conversations, StoredPart, choose, may_name};
use super::index::Index;
use super::live::Live;
use super::names::NameScanner;
use super::policy::SweepPolicy;
use super::report::{SweepError, SweepFailure, SweepReport, Tally};

/// Removes stored conversations that are neither live nor in use, as `policy` says: from all stores
/// of `reduction`'s configuration, below its prefix, including all sessions made from it. It is a dry
/// run unless the policy [applies](SweepPolicy::apply).
///
/// `now` is the moment at which you began to gather `live`: all ages are measured from it. The
/// module's docs have an example and the guarantees.
///
/// # Errors
///
/// Fails, with nothing swept, if the idle time is too short, no store can be swept, or a store can't
/// list or read what it holds. Later failures are in the report.
pub async fn sweep(
    reduction: &ToolReduction,
    live: &Live,
    policy: &SweepPolicy,
    now: SystemTime,
) -> Result<SweepReport, SweepError> {
    let (idle, at_least) = (policy.idle, SweepPolicy::LEAST_IDLE);
    if idle < at_least {
        return Err(SweepError::Idle { idle, at_least });
    }
    let prefix = reduction.prefix();
    let probe = probe(prefix)?;
    let mut stores = Vec::new();
    for store in reduction.stores() {
        let (can_remove, location) = (can_remove(&*store, &probe).await?, store.locate(&probe));
        let mut index = Index::new([("", &probe)]);
        Live::new()
            .location(&location)
            .name(&mut index, std::iter::empty());
        if can_remove && !index.is_live("") {
            return Err(SweepError::Locations { store: location });
        }
        stores.push((store, can_remove));
    }
    if !stores.iter().any(|(_, can_remove)| *can_remove) {
        return Err(SweepError::NoStore);
    }

    let mut all = Conversations::default();
    for (number, (store, _)) in stores.iter().enumerate() {
        let mut entries = store.list();
        while let Some(entry) = entries.next().await {
            all.take(number, entry?);
        }
    }
    // Before any store is touched: what is live in one may be named in another.
    let index = live_in(&all, live, &stores).await?;

    let mut report = SweepReport {
        dry_run: policy.dry_run,
        ..SweepReport::default()
    };
    let all = all
        .0
        .iter()
        .map(|(one, conversation)| (one.as_str(), conversation));
    let (live, unnamed): (Vec<_>, Vec<_>) = all
        .filter(|(one, _)| one.starts_with(prefix))
        .partition(|(one, _)| index.is_live(one));
    live.iter()
        .for_each(|(_, conversation)| report.live.merge(conversation.tally()));
    let gone: BTreeSet<_> = choose(unnamed.clone(), policy, now).into_iter().collect();
    let before = now.checked_sub(at_least).unwrap_or(SystemTime::UNIX_EPOCH);
    for (prefix, conversation) in unnamed {
        let removed = match gone.contains(prefix) {
            true => remove(conversation, &stores, policy, before, &mut report).await,
            false => Tally::default(),
        };
        let all = conversation.tally();
        report.removed.merge(removed);
        if removed.count < all.count {
            report.kept.merge(Tally {
                count: all.count - removed.count,
                bytes: all.bytes.saturating_sub(removed.bytes),
                ..all
            });
        }
    }
    if !policy.dry_run {
        for (store, _) in stores.iter().filter(|(_, can_remove)| *can_remove) {
            match store.tidy(before).await {
                Ok(count) => report.tidied = report.tidied.saturating_add(count),
                Err(error) => report
                    .failed
                    .push(SweepFailure::new(place_of(&**store, &probe), &error)),
            }
        }
    }
    tracing::info!(?report, "sweep");
    Ok(report)
}

/// Removes the parts of a conversation that were stored before `before`, which are all of them. Stops
/// at the first that fails.
async fn remove(
    conversation: &Conversation,
    stores: &[(Arc<dyn Backend>, bool)],
    policy: &SweepPolicy,
    before: SystemTime,
    report: &mut SweepReport,
) -> Tally {
    let mut removed = Tally::default();
    for part in conversation.newest_first() {
        let (store, can_remove) = &stores[part.store];
        if !can_remove {
            continue;
        }
        if !policy.dry_run {
            let location = store.locate(&part.entry.key);
            if let Err(error) = store.remove(&part.entry.key, before).await {
                tracing::warn!(%location, %error, "a sweep could not remove content");
                report.failed.push(SweepFailure::new(location, &error));
                break;
            }
            tracing::info!(%location, bytes = part.entry.bytes, "a sweep has removed content");
        }
        removed.conversations = 1;
        removed.add(part.entry.bytes);
    }
    removed
}

/// Finds the live conversations, and those that their content names in turn, below any prefix:
/// arguments, rounds and what `ReduceNode` condensed hold hints just as their messages did.
async fn live_in<'c>(
    all: &'c Conversations,
    live: &Live,
    stores: &[(Arc<dyn Backend>, bool)],
) -> Result<Index<'c>, BackendError> {
    let keys = all.0.iter().flat_map(|(prefix, conversation)| {
        let parts = conversation.parts.iter();
        parts.map(move |part| (prefix.as_str(), &part.entry.key))
    });
    let mut index = Index::new(keys);
    live.name(&mut index, all.0.keys().map(String::as_str));
    while let Some(prefix) = index.take_new() {
        let parts = all.0.get(prefix).into_iter().flat_map(|one| &one.parts);
        for StoredPart { store, entry } in parts.filter(|part| may_name(&part.entry.key)) {
            let (store, key) = (&stores[*store].0, &entry.key);
            let content = Stored::new(store.clone(), key.clone());
            let mut scanner = NameScanner::default();
            let scanned = content.scan(|bytes, _| {
                scanner.push(bytes, &mut |name| index.name(name));
                true
            });
            match scanned.await {
                // Another sweep has removed it, so it names nothing any more.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                scanned => {
                    scanned?;
                    scanner.finish(&mut |name| index.name(name));
                }
            }
        }
    }
    Ok(index)
}

/// Returns a key of stored content below `prefix` that nothing has, to learn what a store can do.
fn probe(prefix: &str) -> Result<Key, BackendError> {
    Key::new(format!("{prefix}{}/{}", Key::FOLDERS[0], "x".repeat(64))).map_err(|error| {
        BackendError::new(
            ErrorKind::Other,
            "the prefix leaves no room for a key: shorten it",
        )
        .with_source(error)
    })
}

/// Returns true if `store` can remove content. Removes nothing.
async fn can_remove(store: &dyn Backend, probe: &Key) -> Result<bool, BackendError> {
    match store.remove(probe, SystemTime::UNIX_EPOCH).await {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(false),
        Err(error) => Err(error),
    }
}
