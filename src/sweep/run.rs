use std::sync::Arc;
use std::time::SystemTime;

use crate::ToolReduction;
use crate::backend::{Backend, BackendError, ErrorKind, Key, Location};
use futures_util::StreamExt;

use super::act::{BLOCK, Deadline, act, pretend};
use super::holdings::Holdings;
use super::index::{Index, names_it};
use super::lease::{self, Lease};
use super::live::Live;
use super::names::NameScanner;
use super::plan::SweepPlanner;
use super::policy::{LEAST_GRACE, SweepPolicy};
use super::report::{SweepError, SweepFailure, SweepReport};
use super::rows::{Row, Rows, prefix_of};

/// One store of the configuration, and its content.
struct Swept {
    store: Arc<dyn Backend>,
    access: StoreAccess,
    holdings: Holdings,
    rows: Rows,
}

/// Removes stored content that is neither live nor new, as `policy` says: from all stores of
/// `reduction`'s configuration, below its prefix, including all sessions made from it. It is a dry
/// run unless the policy [applies](SweepPolicy::apply).
///
/// `now` is the moment at which you began to gather `live`: all ages are measured from it, and what
/// was stored later stays. The crate's docs have an example and the guarantees.
///
/// # Errors
///
/// Fails, with nothing swept, if the grace is too short, no store can be swept, another sweep is
/// running, or a store can't list what it holds. Later failures are in the report and leave
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
    let mut granted = Vec::new();
    let mut refused = None;
    for store in stores {
        let access = match store.can_be_swept() {
            false => StoreAccess::ReadOnly,
            true if policy.dry_run => StoreAccess::DryRun,
            true => match sweep.lease(&*store).await {
                Ok(Ok(lease)) => {
                    leases.push((store.clone(), lease));
                    StoreAccess::Full { until }
                }
                // No grace is shorter, so nothing that is stored from now on is old by then.
                Ok(Err(error)) => StoreAccess::RemoveOnly {
                    error,
                    until: Deadline::within(LEAST_GRACE),
                },
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            },
        };
        granted.push((store, access));
    }
    let swept = match refused {
        None => sweep.run(granted).await,
        Some(error) => Err(error),
    };
    for (store, lease) in leases {
        lease.give_back(&*store).await;
    }
    swept
}

/// Access of a sweep to a store.
enum StoreAccess {
    /// The store is never swept.
    ReadOnly,
    /// A dry run.
    DryRun,
    /// We hold its lease.
    Full { until: Deadline },
    /// Its lease could not be written: only remove what is safe while others sweep.
    RemoveOnly {
        error: BackendError,
        until: Deadline,
    },
}

struct Sweep<'s> {
    /// Prefix of everything that may go.
    prefix: &'s str,
    /// A key below `prefix`.
    probe: Key,
    live: &'s Live,
    policy: &'s SweepPolicy,
    now: SystemTime,
}

impl Sweep<'_> {
    /// Takes the lease of `store`; the inner error says that it can't be written. Fails if another
    /// sweep holds it.
    async fn lease(&self, store: &dyn Backend) -> Result<Result<Lease, BackendError>, SweepError> {
        // A store that can't remove should say so before anything is stored.
        store.remove(&Lease::of_nobody()?).await?;
        // `now` may be long past, because gathering what is live takes time.
        match Lease::take(store, self.now.max(SystemTime::now()), self.policy.grace).await {
            Err(SweepError::Store(error)) => Ok(Err(error)),
            taken => taken.map(Ok),
        }
    }

    async fn run(
        &self,
        stores: Vec<(Arc<dyn Backend>, StoreAccess)>,
    ) -> Result<SweepReport, SweepError> {
        let mut all = Vec::new();
        for (store, access) in stores {
            let (holdings, rows) = self.list(&*store).await?;
            all.push(Swept {
                store,
                access,
                holdings,
                rows,
            });
        }
        // Before any store is touched: what is live in one may be named in another.
        let index = self.live_in(&all).await?;

        let mut report = SweepReport {
            dry_run: self.policy.dry_run,
            ..SweepReport::default()
        };
        for Swept {
            store,
            access,
            holdings,
            rows,
        } in all
            .iter()
            .filter(|swept| !matches!(swept.access, StoreAccess::ReadOnly))
        {
            let planner = SweepPlanner {
                policy: self.policy,
                now: self.now,
                prefix: self.prefix,
            };
            let mut steps = planner.plan(holdings, |key| index.is_live(key), &mut report);
            let until = match access {
                StoreAccess::ReadOnly | StoreAccess::DryRun => {
                    for (_, row) in rows.iter().filter(|(stem, row)| !self.stays(stem, row)) {
                        let records = row.last_first();
                        records.for_each(|record| report.removed.add(record.bytes));
                    }
                    pretend(&steps, &mut report);
                    continue;
                }
                StoreAccess::Full { until } => *until,
                StoreAccess::RemoveOnly { error, until } => {
                    steps = SweepPlanner::removals(steps, holdings, &mut report);
                    let failure = lease::not_written(&**store, error)?;
                    tracing::warn!(lease = %failure.location, %error, "sweeping without a lease: removing only, moving nothing");
                    report.failed.push(failure);
                    report.without_lease = true;
                    *until
                }
            };
            // Before what they name goes.
            self.remove_rows(&**store, rows, &mut report).await;
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

    async fn list(&self, store: &dyn Backend) -> Result<(Holdings, Rows), BackendError> {
        let (mut holdings, mut rows) = (Holdings::default(), Rows::default());
        let mut entries = store.list();
        while let Some(entry) = entries.next().await {
            let entry = entry?;
            holdings.take(&entry);
            rows.take(&entry);
        }
        Ok((holdings, rows))
    }

    /// Returns true if a row of records stays, and with it everything that it names.
    fn stays(&self, stem: &str, row: &Row) -> bool {
        !stem.starts_with(self.prefix)
            || row.stays(self.policy, self.now)
            || self.live.keeps(prefix_of(stem))
    }

    /// Removes the records of conversations that no longer go on. Nothing leads to a record, so it
    /// need not be moved aside first.
    async fn remove_rows(&self, store: &dyn Backend, rows: &Rows, report: &mut SweepReport) {
        for (_, row) in rows.iter().filter(|(stem, row)| !self.stays(stem, row)) {
            for record in row.last_first() {
                if let Err(error) = store.remove(&record.key).await {
                    // A row without its beginning would not be read.
                    report.failed.push(SweepFailure {
                        location: store.locate(&record.key),
                        error: error.to_string(),
                    });
                    break;
                }
                report.removed.add(record.bytes);
            }
        }
    }

    /// Finds what is live, and what that names in turn, below any prefix: arguments, rounds and
    /// what `ReduceNode` condensed hold hints just as their messages did.
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
        for Swept { store, rows, .. } in all {
            for (_, row) in rows.iter().filter(|(stem, row)| self.stays(stem, row)) {
                for record in row.last_first() {
                    name_in_turn(&**store, &record.key, &mut index).await?;
                }
            }
        }
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

/// Returns a key of stored content below `prefix`, to learn the form of a store's locations.
fn probe(prefix: &str) -> Result<Key, BackendError> {
    Key::new(format!("{prefix}{}/{}", Key::FOLDERS[0], "x".repeat(64))).map_err(|error| {
        BackendError::new(
            ErrorKind::Other,
            "the prefix leaves no room for a key: shorten it",
        )
        .with_source(error)
    })
}

/// Returns the common beginning of the store's locations; `key` may be any key.
fn root_of(store: &dyn Backend, key: &Key) -> Location {
    let location = store.locate(key);
    location
        .as_str()
        .strip_suffix(key.as_str())
        .map(Location::new)
        .unwrap_or(location)
}

/// Returns true if the content of `key` may hold hints: it was cleared, whatever its name says. A
/// tool's result was truncated before it could hold hints of ours.
fn may_name(key: &Key) -> bool {
    key.as_str().rsplit('/').nth(1) == Some("clear")
}

/// Marks what the content of `key` names as live.
async fn name_in_turn(
    store: &dyn Backend,
    key: &Key,
    index: &mut Index<'_>,
) -> Result<(), BackendError> {
    let (mut at, mut scanner) = (0, NameScanner::default());
    loop {
        let page = match store.read(key, at..at + BLOCK).await {
            // Another process has removed it, so it names nothing any more.
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
                "`{key}` ends after {at} of {} bytes: check the store",
                page.total
            );
            return Err(BackendError::new(ErrorKind::Other, message));
        }
    }
}
