//! Decides what to do with the content of a store, without I/O.

use std::time::{Duration, SystemTime};

use crate::backend::Key;

use super::holdings::{Holdings, Seen};
use super::policy::SweepPolicy;
use super::report::SweepReport;

/// Something to do with one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SweepAction {
    /// Copies live content back that exists only where it was swept to.
    BringBack,
    /// Leaves only one of two copies of live content, once both are older than the grace.
    Settle,
    /// Removes swept content that nothing has named since.
    Remove,
    /// Copies content to its place among swept content, then removes the original.
    Move,
}

/// One thing to do, and the number of bytes that it affects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) action: SweepAction,
    pub(super) key: Key,
    pub(super) bytes: u64,
}

impl Step {
    /// Counts the content of a step that is not carried out.
    pub(super) fn leave(&self, report: &mut SweepReport) {
        match self.action {
            SweepAction::Move => report.kept.add(self.bytes),
            SweepAction::Remove | SweepAction::Settle => report.waiting.add(self.bytes),
            // Counted as live already, wherever it is.
            SweepAction::BringBack => {}
        }
    }
}

/// Plans by the policy and by the moment at which gathering the live names began.
#[derive(Clone, Copy)]
pub(super) struct SweepPlanner<'j> {
    pub(super) policy: &'j SweepPolicy,
    pub(super) now: SystemTime,
    /// Only keys below this prefix are touched or counted.
    pub(super) prefix: &'j str,
}

impl SweepPlanner<'_> {
    /// Plans the steps for `holdings`, first those that protect live content. Content that needs no
    /// step is counted in `report`.
    pub(super) fn plan(
        &self,
        holdings: &Holdings,
        is_live: impl Fn(&Key) -> bool,
        report: &mut SweepReport,
    ) -> Vec<Step> {
        let (mut steps, mut old, mut not_live) = (Vec::new(), Vec::new(), 0_u128);
        for (key, holding) in holdings
            .0
            .iter()
            .filter(|(key, _)| key.as_str().starts_with(self.prefix))
        {
            let mut step = |action, bytes| {
                steps.push(Step {
                    action,
                    key: key.clone(),
                    bytes,
                });
            };
            let is_live = is_live(key);
            if is_live {
                report.live.add(holding.bytes());
            } else {
                not_live += holding.there.map_or(0, |seen| u128::from(seen.bytes));
            }
            match (holding.there, holding.swept) {
                (None, None) => {}
                (Some(_), None) if is_live => {}
                (Some(seen), None) if !self.is_old(seen) => report.young.add(seen.bytes),
                (Some(seen), None) => old.push((seen, key)),
                (None, Some(swept)) if is_live => step(SweepAction::BringBack, swept.bytes),
                (Some(seen), Some(swept)) if is_live => {
                    // A write of an earlier sweep may still be on its way, and a process that
                    // stored here may need a while.
                    if self.is_old(seen) && self.is_old(swept) {
                        step(SweepAction::Settle, swept.bytes);
                    } else {
                        report.waiting.add(swept.bytes);
                    }
                }
                (there, Some(swept)) => {
                    // Stored or brought back in the meantime. If nothing names it by then, a later
                    // sweep moves it again.
                    there
                        .into_iter()
                        .for_each(|seen| report.waiting.add(seen.bytes));
                    if self.is_old(swept) {
                        step(SweepAction::Remove, swept.bytes);
                    } else {
                        report.waiting.add(swept.bytes);
                        let free_at = swept.stored_at.checked_add(self.policy.grace);
                        report.waiting_free_at =
                            report.waiting_free_at.into_iter().chain(free_at).min();
                    }
                }
            }
        }
        old.sort_by_key(|(seen, _)| seen.stored_at);
        for (seen, key) in old {
            if self.goes(seen, not_live) {
                not_live -= u128::from(seen.bytes);
                steps.push(Step {
                    action: SweepAction::Move,
                    key: key.clone(),
                    bytes: seen.bytes,
                });
            } else {
                report.kept.add(seen.bytes);
            }
        }
        steps.sort_by_key(|step| step.action);
        steps
    }

    /// Filters `steps` for those that are safe while another sweep may be running: removing swept
    /// content that is not also under its key. Content could be moved there once more only after it
    /// was stored under the key again and was not live for a whole grace. The other steps are
    /// counted as left.
    pub(super) fn removals(
        steps: Vec<Step>,
        holdings: &Holdings,
        report: &mut SweepReport,
    ) -> Vec<Step> {
        let is_alone = |step: &Step| {
            holdings
                .0
                .get(&step.key)
                .is_some_and(|holding| holding.there.is_none())
        };
        let may_do = |step: &Step| step.action == SweepAction::Remove && is_alone(step);
        let (removals, others): (Vec<_>, Vec<_>) = steps.into_iter().partition(may_do);
        others.iter().for_each(|step| step.leave(report));
        removals
    }

    /// Returns true if old content that nothing names should go, given the number of bytes that are
    /// not live.
    fn goes(&self, seen: Seen, not_live: u128) -> bool {
        let SweepPolicy {
            max_age,
            quota_bytes,
            unreferenced,
            grace: _,
            dry_run: _,
        } = self.policy;
        *unreferenced
            || max_age.is_some_and(|age| self.is_stored_before(seen, age))
            || quota_bytes.is_some_and(|quota| not_live > u128::from(quota))
    }

    /// Returns true if its grace is over.
    fn is_old(&self, seen: Seen) -> bool {
        self.is_stored_before(seen, self.policy.grace)
    }

    fn is_stored_before(&self, seen: Seen, age: Duration) -> bool {
        self.now
            .duration_since(seen.stored_at)
            .is_ok_and(|is| is >= age)
    }
}

#[cfg(test)]
mod tests {
    use crate::backend::Entry;

    use super::*;

    const HOUR: u64 = 60 * 60;

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000 * 24 * HOUR)
    }

    /// An entry that was stored `hours` hours ago.
    fn entry(path: &str, bytes: u64, hours: u64) -> Entry {
        Entry {
            key: Key::new(path).unwrap(),
            bytes,
            stored_at: now() - Duration::from_secs(hours * HOUR),
        }
    }

    fn plan(
        policy: &SweepPolicy,
        live: &[&str],
        entries: &[Entry],
    ) -> (Vec<(SweepAction, String)>, SweepReport) {
        let mut holdings = Holdings::default();
        entries.iter().for_each(|entry| holdings.take(entry));
        let mut report = SweepReport::default();
        let planner = SweepPlanner {
            policy,
            now: now(),
            prefix: "",
        };
        let steps = planner.plan(&holdings, |key| live.contains(&key.as_str()), &mut report);
        (
            steps
                .into_iter()
                .map(|step| (step.action, step.key.to_string()))
                .collect(),
            report,
        )
    }

    fn steps(policy: &SweepPolicy, live: &[&str], entries: &[Entry]) -> Vec<(SweepAction, String)> {
        plan(policy, live, entries).0
    }

    #[test]
    fn live_and_young_content_stays() {
        let entries = [
            entry("trunc/live", 1, 9_000),
            entry("trunc/young", 2, 23),
            entry("trunc/old", 4, 24),
            entry("trunc/tomorrow", 8, 0),
            entry("notes/live", 16, 9_000),
            entry("swept/lease-1", 32, 9_000),
        ];
        let (steps, report) = plan(
            &SweepPolicy::new().unreferenced().quota_bytes(0),
            &["trunc/live"],
            &entries,
        );
        assert_eq!(steps, [(SweepAction::Move, "trunc/old".to_owned())]);
        assert_eq!(
            (report.live.bytes, report.young.bytes, report.kept.bytes),
            (1, 10, 0)
        );
        assert!(
            plan(&SweepPolicy::new(), &[], &entries).0.is_empty(),
            "a policy takes what it says"
        );
    }

    #[test]
    fn a_quota_sweeps_the_oldest_until_it_is_met() {
        let entries = [
            entry("trunc/a", 10, 30),
            entry("trunc/b", 10, 50),
            entry("trunc/c", 10, 40),
            entry("trunc/young", 10, 1),
            entry("trunc/live", 1_000, 60),
        ];
        let moved = |quota| {
            let steps = steps(
                &SweepPolicy::new().quota_bytes(quota),
                &["trunc/live"],
                &entries,
            );
            steps
                .into_iter()
                .map(|(_, key)| key.trim_start_matches("trunc/").to_owned())
                .collect::<Vec<_>>()
                .concat()
        };
        assert_eq!(
            [40, 39, 30, 29, 10, 0].map(moved),
            ["", "b", "b", "bc", "bca", "bca"]
        );
    }

    #[test]
    fn w5_sums_of_sizes_saturate() {
        let entries = [
            "trunc/a",
            "trunc/b",
            "trunc/c",
            "clear/live",
            "clear/live-2",
            "trunc/young",
        ];
        let entries =
            entries.map(|path| entry(path, u64::MAX, if path.ends_with("young") { 1 } else { 50 }));
        let live = ["clear/live", "clear/live-2"];
        let (steps, report) = plan(&SweepPolicy::new().quota_bytes(5), &live, &entries);
        let moved: Vec<_> = steps.into_iter().map(|(_, key)| key).collect();
        assert_eq!(
            moved,
            ["trunc/a", "trunc/b", "trunc/c"],
            "one of them is over the quota"
        );
        assert_eq!((report.live.count, report.live.bytes), (2, u64::MAX));
        let (steps, report) = plan(&SweepPolicy::new().quota_bytes(u64::MAX), &live, &entries);
        assert_eq!(steps.len(), 3, "what is young counts too, and stays");
        assert_eq!(report.young.bytes, u64::MAX);
    }

    #[test]
    fn an_age_limit_sweeps_older_content() {
        let entries = [entry("trunc/a", 1, 47), entry("trunc/b", 1, 48)];
        let policy = SweepPolicy::new().max_age(Duration::from_secs(48 * HOUR));
        assert_eq!(
            steps(&policy, &[], &entries),
            [(SweepAction::Move, "trunc/b".to_owned())]
        );
    }

    #[test]
    fn swept_content_is_decided_about_again() {
        let place = |hours| entry("swept/trunc/a", 5, hours);
        let there = |hours| entry("trunc/a", 7, hours);
        let of = |live: &[&str], entries: &[Entry]| {
            steps(&SweepPolicy::new(), live, entries)
                .into_iter()
                .map(|(action, _)| action)
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&[], &[place(23)]), []);
        assert_eq!(of(&[], &[place(24)]), [SweepAction::Remove]);
        assert_eq!(of(&[], &[place(24), there(900)]), [SweepAction::Remove]);
        let live = ["trunc/a"];
        assert_eq!(of(&live, &[place(0)]), [SweepAction::BringBack]);
        assert_eq!(of(&live, &[place(900)]), [SweepAction::BringBack]);
        assert_eq!(of(&live, &[place(900), there(23)]), []);
        assert_eq!(of(&live, &[place(23), there(900)]), []);
        assert_eq!(of(&live, &[place(24), there(24)]), [SweepAction::Settle]);
    }

    #[test]
    fn only_content_below_the_root_is_swept() {
        let mut holdings = Holdings::default();
        for path in [
            "agent/s1/trunc/a",
            "agent/s1/swept/trunc/b",
            "agent/swept/clear/c",
            "agents/trunc/d",
            "trunc/e",
        ] {
            holdings.take(&entry(path, 1, 900));
        }
        let (policy, mut report) = (SweepPolicy::new().unreferenced(), SweepReport::default());
        let steps = SweepPlanner {
            policy: &policy,
            now: now(),
            prefix: "agent/",
        }
        .plan(&holdings, |_| false, &mut report);
        let keys: Vec<_> = steps.iter().map(|step| step.key.as_str()).collect();
        assert_eq!(
            keys,
            ["agent/clear/c", "agent/s1/trunc/b", "agent/s1/trunc/a"]
        );
        assert_eq!(
            (holdings.0.len(), report),
            (5, SweepReport::default()),
            "what else there is may name it"
        );
    }
}
