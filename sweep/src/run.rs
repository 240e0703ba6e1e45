use std::sync::Arc;
use std::time::SystemTime;

use futures_util::StreamExt;
use offcut::ToolReduction;
use offcut::backend::{Backend, BackendError, ErrorKind, Key, Location};

use super::act::{BLOCK, Deadline, act, pretend};
use super::holdings::Holdings;
use super::index::{Index, names_it};
use super::lease::{self, Lease};
use super::live::Live;
use super::names::Scanner;
use super::plan::Judge;
use super::policy::{LEAST_GRACE, SweepPolicy};
use super::report::{SweepError, SweepFailure, SweepReport};

/// One store of the configuration, and what it holds.
struct Swept {
    store: Arc<dyn Backend>,
    right: Right,
    holdings: Holdings,
}

/// Takes away what is stored and neither live nor new, as `policy` says: from all stores of the
/// configuration of `reduction`, below its prefix, all sessions made from it included. A dry run
/// unless the policy [applies](SweepPolicy::apply).
///
/// `now` is the moment at which you began to gather `live`: all ages are reckoned from it. What was
/// stored after it stays. The crate's doc has an example, and what is promised.
///
/// # Errors
///
/// Nothing was swept: a grace that is too short, no store that can be swept, another sweep under
/// way, or a store that can't say what it holds. What fails later is in the report, and leaves
/// everything readable.
pub async fn sweep(
    reduction: &ToolReduction,
    live: &Live,
    policy: &SweepPolicy,
    now: SystemTime,
) -> Result<SweepReport, SweepError> {
    if policy.grace < LEAST_GRACE {
        return Err(SweepError::Grace {
            grace: policy.grace,
            at_least: LEAST_GRACE,
        });
    }
    let stores = reduction.stores();
    let sweepable: Vec<_> = stores.iter().filter(|store| store.can_be_swept()).collect();
    if sweepable.is_empty() {
        return Err(SweepError::NoStore);
    }
    let probe = probe(reduction.prefix())?;
    for store in sweepable {
        if !names_it(store.locate(&probe).as_str(), &probe) {
            return Err(SweepError::Locations {
                store: store.locate(&probe),
            });
        }
    }
    let sweep = Sweep {
        prefix: reduction.prefix(),
        probe,
        live,
        policy,
        now,
    };
    let until = Deadline::within(policy.grace);
    let mut leases = Vec::new();
    let mut rights = Vec::new();
    let mut refused = None;
    for store in stores {
        let right = match store.can_be_swept() {
            false => Right::Read,
            true if policy.dry_run => Right::Pretend,
            true => match sweep.lease(&*store).await {
                Ok(Ok(lease)) => {
                    leases.push((store.clone(), lease));
                    Right::All { until }
                }
                // A grace is never shorter, so by then nothing is old that is stored from now on.
                Ok(Err(error)) => Right::Remove {
                    error,
                    until: Deadline::within(LEAST_GRACE),
                },
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            },
        };
        rights.push((store, right));
    }
    let swept = match refused {
        None => sweep.run(rights).await,
        Some(error) => Err(error),
    };
    for (store, lease) in leases {
        lease.give_back(&*store).await;
    }
    swept
}

/// What a sweep may do in a store.
enum Right {
    /// The store is never swept.
    Read,
    /// A dry run.
    Pretend,
    /// Its lease is ours.
    All { until: Deadline },
    /// Its lease could not be written: remove what harms nobody where others sweep at the same
    /// time.
    Remove {
        error: BackendError,
        until: Deadline,
    },
}

struct Sweep<'s> {
    /// Of all that may go.
    prefix: &'s str,
    /// A key below it.
    probe: Key,
    live: &'s Live,
    policy: &'s SweepPolicy,
    now: SystemTime,
}

impl Sweep<'_> {
    /// The lease of `store`, or why it can't be written. Fails where another sweep has it.
    async fn lease(&self, store: &dyn Backend) -> Result<Result<Lease, BackendError>, SweepError> {
        // That it can't remove, it should say before it has stored anything.
        store.remove(&Lease::of_nobody()?).await?;
        // `now` may be long past: what is live takes its time to gather.
        match Lease::take(store, self.now.max(SystemTime::now()), self.policy.grace).await {
            Err(SweepError::Store(error)) => Ok(Err(error)),
            taken => taken.map(Ok),
        }
    }

    async fn run(&self, stores: Vec<(Arc<dyn Backend>, Right)>) -> Result<SweepReport, SweepError> {
        let mut all = Vec::new();
        for (store, right) in stores {
            let holdings = self.list(&*store).await?;
            all.push(Swept {
                store,
                right,
                holdings,
            });
        }
        // Before anything is done to any store: what is live in one may be named in another.
        let index = self.live_in(&all).await?;

        let mut report = SweepReport {
            dry_run: self.policy.dry_run,
            ..SweepReport::default()
        };
        for Swept {
            store,
            right,
            holdings,
        } in all
            .iter()
            .filter(|swept| !matches!(swept.right, Right::Read))
        {
            let judge = Judge {
                policy: self.policy,
                now: self.now,
                prefix: self.prefix,
            };
            let mut steps = judge.plan(holdings, |key| index.is_live(key), &mut report);
            let until = match right {
                Right::Read | Right::Pretend => {
                    pretend(&steps, &mut report);
                    continue;
                }
                Right::All { until } => *until,
                Right::Remove { error, until } => {
                    steps = Judge::removals(steps, holdings, &mut report);
                    let failure = lease::not_written(&**store, error)?;
                    tracing::warn!(lease = %failure.location, %error, "a sweep removes without a lease, and moves nothing");
                    report.failed.push(failure);
                    report.without_lease = true;
                    *until
                }
            };
            act(&**store, steps, until, &mut report).await;
            let before = self
                .now
                .checked_sub(self.policy.grace)
                .unwrap_or(SystemTime::UNIX_EPOCH);
            match store.tidy(before).await {
                Ok(count) => report.tidied = report.tidied.saturating_add(count),
                Err(error) => {
                    let location = root_of(&**store, &self.probe);
                    report.failed.push(SweepFailure {
                        location,
                        error: error.to_string(),
                    });
                }
            }
        }
        if report.moved.count > 0 {
            report.moved_free_at = self.now.checked_add(self.policy.grace);
        }
        report.trace();
        Ok(report)
    }

    async fn list(&self, store: &dyn Backend) -> Result<Holdings, BackendError> {
        let mut holdings = Holdings::default();
        let mut entries = store.list();
        while let Some(entry) = entries.next().await {
            holdings.take(&entry?);
        }
        Ok(holdings)
    }

    /// What is live, and what is named in that in turn, below whatever prefix: arguments, rounds
    /// and what `ReduceNode` condensed hold hints as their messages did.
    async fn live_in<'a>(&self, all: &'a [Swept]) -> Result<Index<'a>, BackendError> {
        let keys = || {
            all.iter()
                .enumerate()
                .flat_map(|(number, Swept { holdings, .. })| {
                    holdings.0.keys().map(move |key| (number, key))
                })
        };
        let mut index = Index::new(keys());
        self.live.name(&mut index, keys().map(|(_, key)| key));
        while let Some((number, key)) = index.take_new() {
            if may_name(key) {
                let Swept {
                    store, holdings, ..
                } = &all[number];
                let is_swept = holdings
                    .0
                    .get(key)
                    .is_some_and(|holding| holding.swept.is_some());
                let place = key.swept().filter(|_| is_swept);
                name_in_turn(&**store, place.as_ref().unwrap_or(key), &mut index).await?;
            }
        }
        Ok(index)
    }
}

/// A key of stored content below `prefix`, to see what a store's locations look like.
fn probe(prefix: &str) -> Result<Key, BackendError> {
    Key::new(format!("{prefix}{}/{}", Key::FOLDERS[0], "x".repeat(64))).map_err(|error| {
        BackendError::new(ErrorKind::Other, "there is no room for a key").with_source(error)
    })
}

/// What the store's locations begin with; `key` is any.
fn root_of(store: &dyn Backend, key: &Key) -> Location {
    let location = store.locate(key);
    location
        .as_str()
        .strip_suffix(key.as_str())
        .map(Location::new)
        .unwrap_or(location)
}

/// Whether what is stored under `key` may hold hints: what was cleared, whatever its name says that
/// it is. What a tool has returned was truncated before it could have any of ours.
fn may_name(key: &Key) -> bool {
    key.as_str().rsplit('/').nth(1) == Some("clear")
}

/// Takes what is named in the content of `key` for live.
async fn name_in_turn(
    store: &dyn Backend,
    key: &Key,
    index: &mut Index<'_>,
) -> Result<(), BackendError> {
    let (mut at, mut scanner) = (0, Scanner::default());
    loop {
        let page = match store.read(key, at..at + BLOCK).await {
            // Somebody else has removed it: it names nothing any more.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            page => page?,
        };
        scanner.push(&page.bytes, &mut |piece| index.name(piece));
        at += page.bytes.len() as u64;
        if at >= page.total {
            scanner.finish(&mut |piece| index.name(piece));
            return Ok(());
        }
        if page.bytes.is_empty() {
            let message = format!(
                "`{key}` ended after {at} of {} bytes: the store is broken",
                page.total
            );
            return Err(BackendError::new(ErrorKind::Other, message));
        }
    }
}
