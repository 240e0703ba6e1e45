//! Differences of means: money, calls, tokens and time.

use serde::Serialize;
use special::Beta as _;

use super::Interval;

/// The second arm's mean less the first's, per run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MeanDifference {
    /// The difference with its interval.
    #[serde(flatten)]
    pub interval: Interval,
    /// Degrees of freedom.
    pub freedom: f64,
    /// Two-sided p-value of the t test.
    pub p: f64,
}

/// The difference of two arms' means, each task weighing the same, with a t interval.
///
/// If each task has at least two runs of each arm, it is Welch's, stratified by task. Otherwise it is that of pairs,
/// over the tasks' means. `None` if there is only one pair, so that nothing tells how much is chance.
#[must_use]
pub fn mean_difference(tasks: &[(Vec<f64>, Vec<f64>)], confidence: f64) -> Option<MeanDifference> {
    let pairs: Vec<f64> = tasks
        .iter()
        .map(|(first, second)| Some(mean(second)? - mean(first)?))
        .collect::<Option<_>>()?;
    let value = mean(&pairs)?;
    let count = pairs.len() as f64;
    let has_two = tasks
        .iter()
        .all(|(first, second)| first.len() >= 2 && second.len() >= 2);
    let (square, freedom) = if has_two {
        let parts = tasks
            .iter()
            .flat_map(|(first, second)| [first, second])
            .map(|values| {
                let part = variance(values) / values.len() as f64 / (count * count);
                (part, part * part / (values.len() - 1) as f64)
            });
        let (square, weights) =
            parts.fold((0.0, 0.0), |sums, part| (sums.0 + part.0, sums.1 + part.1));
        (square, square * square / weights)
    } else if pairs.len() >= 2 {
        (variance(&pairs) / count, count - 1.0)
    } else {
        return None;
    };
    if square == 0.0 {
        // Every run was the same: nothing is left to chance.
        let p = if value == 0.0 { 1.0 } else { 0.0 };
        let interval = Interval {
            value,
            low: value,
            high: value,
        };
        return Some(MeanDifference {
            interval,
            freedom: count,
            p,
        });
    }
    let error = square.sqrt();
    let half = t_bound(freedom, confidence) * error;
    Some(MeanDifference {
        interval: Interval {
            value,
            low: value - half,
            high: value + half,
        },
        freedom,
        p: t_p(freedom, value / error),
    })
}

/// The two-sided p-value of `t` at these degrees of freedom.
fn t_p(freedom: f64, t: f64) -> f64 {
    let (p, q) = (freedom / 2.0, 0.5);
    (freedom / (freedom + t * t)).inc_beta(p, q, p.ln_beta(q))
}

/// The bound that the absolute value of t stays below with the probability `confidence`.
fn t_bound(freedom: f64, confidence: f64) -> f64 {
    let (p, q) = (freedom / 2.0, 0.5);
    let x = (1.0 - confidence).inv_inc_beta(p, q, p.ln_beta(q));
    (freedom * (1.0 - x) / x).sqrt()
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn variance(values: &[f64]) -> f64 {
    let mean = mean(values).unwrap_or(0.0);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    squares / (values.len() - 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Student's sleep data, as in R's `?sleep`.
    const ONE: [f64; 10] = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
    const TWO: [f64; 10] = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];

    #[track_caller]
    fn is_near(value: f64, published: f64, error: f64) {
        assert!(
            (value - published).abs() < error,
            "{value} is not {published}"
        );
    }

    #[test]
    fn one_task_is_welchs_test() {
        let found = mean_difference(&[(ONE.to_vec(), TWO.to_vec())], 0.95).unwrap();
        is_near(found.freedom, 17.776, 5e-4);
        is_near(found.p, 0.079_39, 5e-6);
        is_near(found.interval.low, -0.205_483_2, 5e-7);
        is_near(found.interval.high, 3.365_483_2, 5e-7);
    }

    #[test]
    fn one_repetition_of_each_task_is_the_test_of_pairs() {
        let tasks: Vec<_> = ONE
            .iter()
            .zip(TWO)
            .map(|(one, two)| (vec![*one], vec![two]))
            .collect();
        let found = mean_difference(&tasks, 0.95).unwrap();
        is_near(found.freedom, 9.0, 1e-9);
        is_near(found.p, 0.002_833, 5e-7);
        is_near(found.interval.low, 0.700_114_2, 5e-7);
        is_near(found.interval.high, 2.459_885_8, 5e-7);
    }

    #[test]
    fn tasks_of_unequal_cost_do_not_hide_a_difference() {
        // Tasks cost 1 and 1 000; the second arm costs 0.5 less in each.
        let task = |base: f64| {
            (
                vec![base, base + 0.1, base - 0.1],
                vec![base - 0.5, base - 0.4, base - 0.6],
            )
        };
        let found = mean_difference(&[task(1.0), task(1_000.0)], 0.95).unwrap();
        is_near(found.interval.value, -0.5, 1e-9);
        assert!(found.interval.high < -0.3 && found.p < 0.01, "{found:?}");
    }

    #[test]
    fn too_little_is_nothing() {
        assert_eq!(mean_difference(&[], 0.95), None);
        assert_eq!(mean_difference(&[(vec![1.0], vec![2.0])], 0.95), None);
        assert_eq!(mean_difference(&[(vec![1.0], vec![])], 0.95), None);
        let same = mean_difference(&[(vec![1.0, 1.0], vec![1.0, 1.0])], 0.95).unwrap();
        is_near(same.p, 1.0, 1e-12);
    }
}
