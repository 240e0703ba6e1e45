//! The statistics of a trial: an exact test, intervals, and the number of runs that a difference takes.

mod exact;
mod interval;
mod power;

pub(crate) use exact::exact_p;
pub(crate) use interval::{Interval, difference, share};
pub(crate) use power::{difference_found_by, runs_for};

use std::f64::consts::SQRT_2;

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
