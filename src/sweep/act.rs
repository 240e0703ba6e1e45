//! Carries out the planned steps one by one. A step that stops halfway leaves every key with the
//! content that it had.

use std::time::{Duration, Instant, SystemTime};

use crate::backend::{Backend, BackendError, ErrorKind, Key, PutOutcome};

use super::plan::{Step, SweepAction};
use super::report::{SweepFailure, SweepReport};

/// Number of bytes of stored content that are read at once.
pub(super) const BLOCK: u64 = 1 << 20;

/// Outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepOutcome {
    Moved,
    BroughtBack,
    Removed,
    /// Something was stored under the key just now. Nothing names it, and a later sweep removes it.
    Left,
}

/// Carries out `steps`, and stops before another sweep may begin.
pub(super) async fn act(
    store: &dyn Backend,
    steps: Vec<Step>,
    until: Deadline,
    report: &mut SweepReport,
) {
    for step in steps {
        if until.is_over() {
            // The rest is counted as left in place.
            report.stopped = true;
            step.leave(report);
            continue;
        }
        let location = store.locate(&step.key);
        match do_one(store, &step).await {
            Ok(done) => {
                let what = match done {
                    StepOutcome::Moved => {
                        report.moved.add(step.bytes);
                        "moved away"
                    }
                    StepOutcome::BroughtBack => {
                        report.brought_back.add(step.bytes);
                        "brought back"
                    }
                    StepOutcome::Removed => {
                        report.removed.add(step.bytes);
                        "removed"
                    }
                    StepOutcome::Left => {
                        step.leave(report);
                        "left unchanged"
                    }
                };
                if done == StepOutcome::BroughtBack {
                    // It is now in both places.
                    report.waiting.add(step.bytes);
                }
                tracing::info!(%location, bytes = step.bytes, "sweep: {what}");
            }
            Err(error) => {
                tracing::warn!(%location, %error, action = ?step.action, "a step of a sweep failed");
                report.failed.push(SweepFailure {
                    location,
                    error: error.to_string(),
                });
                step.leave(report);
            }
        }
    }
}

/// Counts what `steps` would do if none of them failed.
pub(super) fn pretend(steps: &[Step], report: &mut SweepReport) {
    for step in steps {
        match step.action {
            SweepAction::Move => report.moved.add(step.bytes),
            SweepAction::Remove => report.removed.add(step.bytes),
            SweepAction::BringBack => {
                report.brought_back.add(step.bytes);
                report.waiting.add(step.bytes);
            }
            // Nearly always: the content was swept and then read, so both copies are the same.
            SweepAction::Settle => report.removed.add(step.bytes),
        }
    }
}

async fn do_one(store: &dyn Backend, step: &Step) -> Result<StepOutcome, BackendError> {
    let key = &step.key;
    let Some(place) = key.swept() else {
        return Err(refused(key, "it is not a key of stored content"));
    };
    match step.action {
        SweepAction::Move => {
            // The content can't change between these calls: only sweeps remove.
            if store.copy(key, &place).await? == PutOutcome::Taken {
                return Err(refused(
                    key,
                    "other content is already at the place to move it to",
                ));
            }
            if store.read(&place, 0..0).await?.total != step.bytes {
                return Err(refused(
                    key,
                    "its copy has a different length: check the store, which may be broken or changed by another program",
                ));
            }
            store.remove(key).await?;
            Ok(StepOutcome::Moved)
        }
        SweepAction::BringBack => bring_back(store, &place, key).await,
        SweepAction::Settle => {
            if is_same(store, [key, &place]).await? {
                store.remove(&place).await?;
                return Ok(StepOutcome::Removed);
            }
            // Nothing names this one: the key stands for the swept content.
            store.remove(key).await?;
            bring_back(store, &place, key).await
        }
        SweepAction::Remove => {
            store.remove(&place).await?;
            Ok(StepOutcome::Removed)
        }
    }
}

/// Returns true if the same bytes are stored under both of `keys`.
async fn is_same(store: &dyn Backend, keys: [&Key; 2]) -> Result<bool, BackendError> {
    let mut at = 0;
    loop {
        let block = at..at + BLOCK;
        let one = store.read(keys[0], block.clone()).await?.bytes;
        let other = store.read(keys[1], block.clone()).await?.bytes;
        if one != other {
            return Ok(false);
        }
        at += one.len() as u64;
        if at < block.end {
            return Ok(true);
        }
    }
}

async fn bring_back(
    store: &dyn Backend,
    place: &Key,
    key: &Key,
) -> Result<StepOutcome, BackendError> {
    Ok(match store.copy(place, key).await? {
        PutOutcome::Stored | PutOutcome::AlreadyThere => StepOutcome::BroughtBack,
        PutOutcome::Taken => StepOutcome::Left,
    })
}

fn refused(key: &Key, why: &str) -> BackendError {
    BackendError::new(ErrorKind::Other, format!("`{key}` was left alone: {why}"))
}

/// Time at which a sweep ends itself, long before another one considers it dead.
///
/// It is measured by two clocks: one stands still while the machine sleeps, the other may be set
/// back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    begun: Instant,
    begun_at: SystemTime,
    after: Duration,
}

impl Deadline {
    pub(super) fn within(grace: Duration) -> Self {
        Self {
            begun: Instant::now(),
            begun_at: SystemTime::now(),
            after: grace / 2,
        }
    }

    fn is_over(self) -> bool {
        self.begun.elapsed() >= self.after
            || self
                .begun_at
                .elapsed()
                .is_ok_and(|elapsed| elapsed >= self.after)
    }
}

#[cfg(test)]
mod tests {
    use crate::backend::Memory;

    use super::*;

    #[tokio::test]
    async fn a_sweep_past_its_deadline_stops_and_counts_the_rest() {
        let store = Memory::new();
        let key = Key::new("trunc/a").unwrap();
        store.put(&key, "abc".into()).await.unwrap();
        let step = Step {
            action: SweepAction::Move,
            key: key.clone(),
            bytes: 3,
        };
        let mut report = SweepReport::default();
        act(
            &store,
            vec![step],
            Deadline::within(Duration::ZERO),
            &mut report,
        )
        .await;
        assert!(report.stopped && report.kept.bytes == 3 && report.moved.count == 0);
        assert!(store.read(&key, 0..1).await.is_ok());
    }

    #[test]
    fn a_sweep_does_not_continue_after_the_machine_slept() {
        let hour = Duration::from_secs(3_600);
        let slept = |hours: u32| Deadline {
            begun_at: SystemTime::now() - hour * hours,
            ..Deadline::within(24 * hour)
        };
        assert!(!slept(11).is_over() && slept(12).is_over());
        let set_back = Deadline {
            begun_at: SystemTime::now() + hour,
            ..Deadline::within(24 * hour)
        };
        assert!(!set_back.is_over());
    }
}
