//! Intervals of shares.

use serde::Serialize;

use super::normal;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is_near(interval: Interval, low: f64, high: f64) {
        assert!(
            (interval.low - low).abs() < 0.000_05 && (interval.high - high).abs() < 0.000_05,
            "{interval:?}"
        );
    }

    #[test]
    fn shares_are_those_that_newcombe_published() {
        // Newcombe 1998, "Two-sided confidence intervals for the single proportion", method 3.
        is_near(share(263, 81, 0.95).unwrap(), 0.255_3, 0.366_2);
        is_near(share(148, 15, 0.95).unwrap(), 0.062_4, 0.160_5);
        is_near(share(20, 0, 0.95).unwrap(), 0.0, 0.161_1);
        is_near(share(29, 1, 0.95).unwrap(), 0.006_1, 0.171_8);
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
        is_near(of((56, 70), (48, 80)), 0.052_4, 0.333_9);
        is_near(of((9, 10), (3, 10)), 0.170_5, 0.809_0);
        is_near(of((10, 10), (0, 20)), 0.679_1, 1.0);
    }
}
