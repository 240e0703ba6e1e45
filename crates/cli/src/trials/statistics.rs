//! The statistics of a trial: an exact test, intervals, and the number of runs that a difference takes.

use std::f64::consts::SQRT_2;

use serde::Serialize;
use special::{Error as _, Gamma};

/// Quantile of the normal distribution.
fn normal(probability: f64) -> f64 {
    SQRT_2 * (2.0 * probability - 1.0).inv_error()
}

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
pub(crate) fn share(runs: u64, solved: u64, confidence: f64) -> Option<Interval> {
    if runs == 0 {
        return None;
    }
    let z = normal(0.5 + confidence / 2.0);
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

/// Runs of each arm that it takes to find a `difference` from an `expected` share, in whichever direction takes more.
///
/// Fleiss, Tytun and Ury's number (1980) for two shares and a two-sided exact test: that of the normal approximation,
/// which R's `power.prop.test` gives, with a correction for continuity.
pub(crate) fn runs_for(expected: f64, difference: f64, alpha: f64, power: f64) -> u64 {
    let mut pairs = vec![
        (expected, expected - difference),
        (expected, expected + difference),
    ];
    pairs.retain(|(_, share)| (0.0..=1.0).contains(share));
    // A difference above a half may be impossible in both directions: then counted from 0.
    if pairs.is_empty() {
        pairs.push((0.0, difference));
    }
    let runs = pairs
        .into_iter()
        .map(|(one, two)| corrected(approximate(one, two, alpha, power), difference));
    runs.fold(0.0, f64::max).ceil() as u64
}

/// The smallest difference that `runs` of each arm find from an `expected` share, rounded up to a tenth of a point.
///
/// `None` if it would be above the largest that is possible.
pub(crate) fn difference_found_by(runs: u64, expected: f64, alpha: f64, power: f64) -> Option<f64> {
    let most = expected.max(1.0 - expected);
    (1..)
        .map(|thousandths| f64::from(thousandths) / 1_000.0)
        .take_while(|difference| *difference <= most)
        .find(|difference| runs_for(expected, *difference, alpha, power) <= runs)
}

fn approximate(one: f64, two: f64, alpha: f64, power: f64) -> f64 {
    let middle = f64::midpoint(one, two);
    let under_none = normal(1.0 - alpha / 2.0) * (2.0 * middle * (1.0 - middle)).sqrt();
    let under_some = normal(power) * (one * (1.0 - one) + two * (1.0 - two)).sqrt();
    ((under_none + under_some) / (two - one)).powi(2)
}

fn corrected(runs: f64, difference: f64) -> f64 {
    runs / 4.0 * (1.0 + (1.0 + 4.0 / (runs * difference)).sqrt()).powi(2)
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
        is_interval(share(263, 81, 0.95).unwrap(), 0.255_3, 0.366_2);
        is_interval(share(148, 15, 0.95).unwrap(), 0.062_4, 0.160_5);
        is_interval(share(20, 0, 0.95).unwrap(), 0.0, 0.161_1);
        is_interval(share(29, 1, 0.95).unwrap(), 0.006_1, 0.171_8);
        assert_eq!(share(0, 0, 0.95), None);
    }

    #[test]
    fn differences_are_those_that_newcombe_published() {
        // Newcombe 1998, "Interval estimation for the difference between independent proportions", method 10.
        let of = |one: (u64, u64), two: (u64, u64)| {
            difference(
                share(two.1, two.0, 0.95).unwrap(),
                share(one.1, one.0, 0.95).unwrap(),
            )
        };
        is_interval(of((56, 70), (48, 80)), 0.052_4, 0.333_9);
        is_interval(of((9, 10), (3, 10)), 0.170_5, 0.809_0);
        is_interval(of((10, 10), (0, 20)), 0.679_1, 1.0);
    }

    #[test]
    fn the_approximation_is_that_of_r() {
        // `?power.prop.test`: p1 = .50, p2 = .75, power = .90 takes 76.7.
        assert!((approximate(0.5, 0.75, 0.05, 0.9) - 76.7).abs() < 0.05);
    }

    #[test]
    fn the_harder_direction_counts() {
        let down = corrected(approximate(0.9, 0.85, 0.05, 0.8), 0.05);
        assert_eq!(runs_for(0.9, 0.05, 0.05, 0.8), down.ceil() as u64);
        assert_eq!(runs_for(0.1, 0.05, 0.05, 0.8), down.ceil() as u64);
        assert!(
            runs_for(0.95, 0.1, 0.05, 0.8) > 100,
            "only down is possible"
        );
        assert_eq!(runs_for(0.5, 0.05, 0.05, 0.8), 1_605);
    }

    #[test]
    fn the_pages_table_is_right() {
        let rows = [
            (0.05, [1_605, 1_134, 474]),
            (0.1, [408, 313, 160]),
            (0.2, [103, 91, 59]),
            (0.3, [45, 45, 34]),
        ];
        for (difference, runs) in rows {
            assert_eq!(
                [0.5, 0.8, 0.95].map(|expected| runs_for(expected, difference, 0.05, 0.8)),
                runs
            );
        }
    }

    #[test]
    fn the_difference_that_runs_find_takes_at_most_these_runs() {
        assert_eq!(difference_found_by(1_605, 0.5, 0.05, 0.8), Some(0.05));
        assert_eq!(difference_found_by(1_604, 0.5, 0.05, 0.8), Some(0.051));
        assert_eq!(difference_found_by(1, 0.5, 0.05, 0.8), None);
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
    fn small_trials_keep_both_promises_without_an_approximation() {
        for (expected, difference) in [(0.5, 0.4), (0.5, 0.3), (0.7, 0.25), (0.3, 0.5)] {
            let runs = runs_for(expected, difference, 0.05, 0.8);
            let sides: [f64; 2] = [expected - difference, expected + difference];
            let possible = sides
                .into_iter()
                .filter(|share| (0.001..0.999).contains(share));
            let found = possible.map(|other| rejected(runs, expected, other, 0.05));
            let least = found.fold(1.0, f64::min);
            // Not less than was promised, and not many runs more than that takes.
            assert!(
                (0.79..0.88).contains(&least),
                "{expected} with {runs}: {least}"
            );
            let wrongly = rejected(runs, expected, expected, 0.05);
            assert!(
                (0.005..=0.05).contains(&wrongly),
                "{expected} with {runs}: {wrongly}"
            );
        }
    }
}
