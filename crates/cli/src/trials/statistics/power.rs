//! The number of runs that a difference takes.

use super::normal;

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
    use super::super::{exact_p, ln_binomial};
    use super::*;

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
