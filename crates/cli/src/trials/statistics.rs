//! The statistics of a trial: an exact test, and intervals.

use std::f64::consts::SQRT_2;

use serde::Serialize;
use special::{Error as _, Gamma};

/// The probability of finding a difference where there is none, and of an interval without the true value.
pub(crate) const ALPHA: f64 = 0.05;

/// Logarithm of the number of ways to choose `k` of `n`.
fn ln_binomial(n: u64, k: u64) -> f64 {
    let ln_factorial = |n: u64| Gamma::ln_gamma(n as f64 + 1.0).0;
    ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
}

/// The two-sided p-value of the exact conditional test, stratified by task.
///
/// Under the hypothesis that in each task both arms solve equally often, the number that the first solves follows a
/// hypergeometric distribution, given how many both have solved; the sum over all tasks follows their convolution.
/// The p-value is the probability of all sums that are at most as likely as the one that was seen. With one
/// task it is Fisher's test, with one repetition McNemar's, and in R `mantelhaen.test(exact = TRUE)`. The
/// probability of an error is never above alpha, whatever the numbers.
///
/// Each of `tasks` has the runs that solved it, and all runs, of the first arm and of the second.
pub(crate) fn exact_p(tasks: impl IntoIterator<Item = [(u64, u64); 2]>) -> f64 {
    let mut sums = vec![1.0];
    let mut seen = 0;
    for [(solved, runs), (other_solved, other_runs)] in tasks {
        let both = solved + other_solved;
        let least = both.saturating_sub(other_runs);
        let most = runs.min(both);
        let all = ln_binomial(runs + other_runs, both);
        let of_task: Vec<f64> = (least..=most)
            .map(|k| (ln_binomial(runs, k) + ln_binomial(other_runs, both - k) - all).exp())
            .collect();
        seen += (solved - least) as usize;
        sums = convolved(&sums, &of_task);
    }
    // As in R: sums are equally likely if they differ by rounding alone.
    let limit = sums[seen] * (1.0 + 1e-7);
    sums.iter().filter(|p| **p <= limit).sum::<f64>().min(1.0)
}

fn convolved(one: &[f64], other: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0; one.len() + other.len() - 1];
    // Most sums are less likely than 1e-30, and can't change a p-value that anybody reads.
    for (at, p) in one.iter().enumerate().filter(|(_, p)| **p > 1e-30) {
        for (offset, q) in other.iter().enumerate() {
            sums[at + offset] += p * q;
        }
    }
    sums
}

/// A value between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Interval {
    /// The estimate.
    pub(crate) value: f64,
    /// Lower bound.
    pub(crate) low: f64,
    /// Upper bound.
    pub(crate) high: f64,
}

/// The share of `runs` that solved their task, with Wilson's interval. `None` without a run.
pub(crate) fn share(runs: u64, solved: u64) -> Option<Interval> {
    if runs == 0 {
        return None;
    }
    // Quantile of the normal distribution.
    let z = SQRT_2 * (1.0 - ALPHA).inv_error();
    let (n, value) = (runs as f64, solved as f64 / runs as f64);
    let middle = (value + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (value * (1.0 - value) / n + z * z / (4.0 * n * n)).sqrt();
    Some(Interval {
        value,
        low: if solved == 0 { 0.0 } else { middle - half },
        high: if solved == runs { 1.0 } else { middle + half },
    })
}

/// The second share less the first, with Newcombe's hybrid score interval: method 10 of his eleven.
///
/// It takes runs for one sample. Where tasks differ in difficulty, it is wider than necessary.
pub(crate) fn difference(first: Interval, second: Interval) -> Interval {
    let value = second.value - first.value;
    let below = (second.value - second.low).hypot(first.high - first.value);
    let above = (second.high - second.value).hypot(first.value - first.low);
    Interval {
        value,
        low: value - below,
        high: value + above,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A task by its numbers of runs, with those that solved it.
    fn outcomes(first: (u64, u64), second: (u64, u64)) -> [(u64, u64); 2] {
        [first, second].map(|(runs, solved)| (solved, runs))
    }

    #[track_caller]
    fn is_near(value: f64, published: f64, digits: i32) {
        assert!(
            (value - published).abs() < 0.5 * 10_f64.powi(-digits),
            "{value} is not {published}"
        );
    }

    #[test]
    fn one_task_is_fishers_test() {
        // The lady tasting tea, and Fisher's twins, as in R's `?fisher.test`.
        is_near(exact_p([outcomes((4, 3), (4, 1))]), 0.485_7, 4);
        is_near(exact_p([outcomes((17, 2), (13, 10))]), 0.000_536_7, 7);
    }

    #[test]
    fn one_repetition_of_each_task_is_mcnemars_test() {
        // 1 against 9 of ten tasks on which the arms differ: 2 · 11 / 1024.
        let mut tasks = vec![outcomes((1, 1), (1, 0))];
        tasks.extend([outcomes((1, 0), (1, 1)); 9]);
        tasks.extend([outcomes((1, 1), (1, 1)); 30]);
        is_near(exact_p(tasks), 22.0 / 1024.0, 12);
    }

    #[test]
    fn several_tasks_are_rs_exact_test() {
        // Rabbits, from R's `?mantelhaen.test`: penicillin now and later, by dose. S = 16, p = 0.03994.
        let doses = [
            ((6, 0), (5, 0)),
            ((6, 3), (6, 0)),
            ((6, 6), (6, 2)),
            ((6, 5), (6, 6)),
            ((2, 2), (5, 5)),
        ];
        let tasks = doses.map(|(first, second)| outcomes(first, second));
        is_near(exact_p(tasks), 0.039_94, 5);
    }

    #[test]
    fn equal_arms_and_no_run_at_all_differ_in_nothing() {
        is_near(exact_p([outcomes((10, 5), (10, 5))]), 1.0, 12);
        is_near(exact_p([]), 1.0, 12);
        is_near(
            exact_p([outcomes((0, 0), (0, 0)), outcomes((3, 0), (0, 0))]),
            1.0,
            12,
        );
    }

    #[track_caller]
    fn is_interval(interval: Interval, low: f64, high: f64) {
        assert!(
            (interval.low - low).abs() < 0.000_05 && (interval.high - high).abs() < 0.000_05,
            "{interval:?}"
        );
    }

    #[test]
    fn shares_are_those_that_newcombe_published() {
        // Newcombe 1998, "Two-sided confidence intervals for the single proportion", method 3.
        is_interval(share(263, 81).unwrap(), 0.255_3, 0.366_2);
        is_interval(share(148, 15).unwrap(), 0.062_4, 0.160_5);
        is_interval(share(20, 0).unwrap(), 0.0, 0.161_1);
        is_interval(share(29, 1).unwrap(), 0.006_1, 0.171_8);
        assert_eq!(share(0, 0), None);
    }

    #[test]
    fn differences_are_those_that_newcombe_published() {
        // Newcombe 1998, "Interval estimation for the difference between independent proportions", method 10.
        let of = |one: (u64, u64), two: (u64, u64)| {
            difference(share(two.1, two.0).unwrap(), share(one.1, one.0).unwrap())
        };
        is_interval(of((56, 70), (48, 80)), 0.052_4, 0.333_9);
        is_interval(of((9, 10), (3, 10)), 0.170_5, 0.809_0);
        is_interval(of((10, 10), (0, 20)), 0.679_1, 1.0);
    }

    /// The exact probability that the test rejects, summed over all outcomes of one task.
    fn rejected(runs: u64, one: f64, two: f64, alpha: f64) -> f64 {
        let probability = |solved: u64, share: f64| {
            (ln_binomial(runs, solved)
                + solved as f64 * share.ln()
                + (runs - solved) as f64 * (1.0 - share).ln())
            .exp()
        };
        let all = (0..=runs).flat_map(|first| (0..=runs).map(move |second| (first, second)));
        all.filter(|(first, second)| exact_p([[(*first, runs), (*second, runs)]]) <= alpha)
            .map(|(first, second)| probability(first, one) * probability(second, two))
            .sum()
    }

    #[test]
    fn small_trials_keep_the_promise_without_an_approximation() {
        // The pages' table has 45 runs for 30 points from 50 %, and 34 from 95 %.
        for (runs, one, two) in [(45, 0.5, 0.8), (45, 0.5, 0.2), (34, 0.95, 0.65)] {
            let found = rejected(runs, one, two, ALPHA);
            // Not less than was promised, and not many runs more than that takes.
            assert!((0.79..0.88).contains(&found), "{one} with {runs}: {found}");
            let wrongly = rejected(runs, one, one, ALPHA);
            assert!(wrongly <= ALPHA, "{one} with {runs}: {wrongly}");
        }
    }
}
