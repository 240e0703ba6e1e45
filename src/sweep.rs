//! Takes away what is stored and no conversation names any more, and never anything that a live one
//! names.
//!
//! ```
//! use offcut::ToolReduction;
//! use offcut::backend::Memory;
//! use offcut::sweep::{Live, SweepPolicy};
//! use std::time::{Duration, SystemTime};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let transcripts = tempfile::tempdir()?;
//! # std::fs::write(transcripts.path().join("chat-1.jsonl"), "{}")?;
//! let reduction = ToolReduction::recommended(Memory::new()).build()?;
//! let now = SystemTime::now(); // before anything live is looked at
//! let live = Live::new().folder(transcripts.path())?;
//! let policy = SweepPolicy::new().max_age(Duration::from_secs(30 * 86_400)).quota_bytes(10 << 30);
//! let report = reduction.sweep(&live, &policy, now).await?; // a dry run
//! println!("{} bytes would go", report.moved.bytes);
//! reduction.sweep(&live, &policy.apply(), now).await?;
//! # Ok(()) }
//! ```
//!
//! [`ToolReduction::sweep`](crate::ToolReduction::sweep) is called by one program, now and then,
//! such as once a day; `offcut sweep` does it from a shell. Agents go on meanwhile. They never
//! remove anything.
//!
//! # Guarantees
//!
//! - **Nothing that is named goes.** Not what [`Live`] names, nor what live arguments, rounds and
//!   other cleared content name in turn; nor anything that was stored within the grace.
//! - **In two steps.** Content is moved below `swept/`, from where reading brings it back. It is
//!   removed by a later sweep, when the grace is over and nobody has named it since: an agent may
//!   just have stored the same again.
//! - **Nothing is overwritten, or read as something else.** While swept content is there, its name
//!   is taken for other content.
//! - **A crash harms nothing,** at whatever step, and neither does dropping the future. The next
//!   sweep goes on; until the grace is over it says that another one may be under way.
//! - **One at a time.** A second sweep of a store is refused. One that has run for half the grace
//!   ends itself. One that can't write its lease, such as on a full disk, only removes what has
//!   waited for the grace.
//!
//! `docs/sweeping.md` in the repository says what is not promised.

mod act;
mod folder;
mod index;
mod lease;
mod live;
mod names;
mod plan;
mod policy;
mod report;
mod spelling;

use std::sync::Arc;
use std::time::SystemTime;

use futures_util::StreamExt;

use self::act::{Deadline, act, pretend};
use self::index::{Index, names_it};
use self::lease::Lease;
use self::names::Scanner;
use self::plan::{Holdings, Judge};
use self::policy::LEAST_GRACE;
use crate::backend::{Backend, BackendError, ErrorKind, Key, Location};
use crate::session::Session;
use crate::store::layout::swept_key;
use crate::store::{BLOCK, longest_key};

pub use live::{Live, LiveError};
pub use policy::SweepPolicy;
pub use report::{SweepError, SweepFailure, SweepReport, Tally};

/// One store of the configuration, and what it holds.
struct Swept {
    store: Arc<dyn Backend>,
    right: Right,
    holdings: Holdings,
}

/// Sweeps what lies below the prefix of `session` in all of its stores, as far as they can be
/// swept.
pub(crate) async fn sweep(
    session: &Session,
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
    let stores = session.stores();
    let sweepable: Vec<_> = stores.iter().filter(|store| store.can_be_swept()).collect();
    if sweepable.is_empty() {
        return Err(SweepError::NoStore);
    }
    let probe = longest_key(session.roots(), false);
    for store in sweepable {
        if !names_it(store.locate(&probe).as_str(), &probe) {
            return Err(SweepError::Locations {
                store: store.locate(&probe),
            });
        }
    }
    let sweep = Sweep {
        session,
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
    session: &'s Session,
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
                prefix: self.session.roots().prefix(),
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
                    let location = root_of(&**store, &longest_key(self.session.roots(), false));
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
                let place = swept_key(key).filter(|_| is_swept);
                name_in_turn(&**store, place.as_ref().unwrap_or(key), &mut index).await?;
            }
        }
        Ok(index)
    }
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

/// The example of docs/sweeping.md compiles.
#[cfg(all(doctest, feature = "fs"))]
#[doc = include_str!("../docs/sweeping.md")]
struct Page;
