//! The cost rule: finds the message from which a rewrite is expected to pay. A pure function of
//! prices and tokens.
//!
//! A rewrite begins at some message and goes to the end: everything sent after the first changed
//! message is read again, so every candidate from there on becomes a preview with it. The
//! candidates that a second pass still finds are before that message and did not pay, so it changes
//! nothing (L4).

use crate::config::CostAware;
use crate::report::CostEstimate;

/// A message of the last request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) tokens: u64,
    /// Number of its tokens that previews would save.
    pub(super) gain: u64,
}

/// Finds the rewrite with the highest net gain, as an index into `sent`, the last messages of the
/// last request; `None` if no rewrite saves enough. `expected_calls` is the number of model calls
/// expected after the coming one.
pub(super) fn best_rewrite(
    sent: &[Sent],
    rule: CostAware,
    expected_calls: f64,
    cache_is_cold: bool,
) -> Option<(usize, CostEstimate)> {
    let (fresh, cached) = (rule.prices.fresh, rule.prices.cached);
    let would_cost = if cache_is_cold { fresh } else { cached };
    let (mut tokens_saved, mut extra_cost, mut best) = (0_u64, 0.0, None::<(usize, CostEstimate)>);
    for (from, message) in sent.iter().enumerate().rev() {
        tokens_saved = message.gain.saturating_add(tokens_saved);
        extra_cost += fresh * message.tokens.saturating_sub(message.gain) as f64
            - would_cost * message.tokens as f64;
        if message.gain == 0 || tokens_saved < rule.at_least_tokens {
            continue;
        }
        let net_gain = expected_calls * cached * tokens_saved as f64 - extra_cost;
        if best.is_none_or(|(_, best)| net_gain > best.net_gain) {
            let estimate = CostEstimate {
                expected_calls,
                tokens_saved,
                extra_cost,
                net_gain,
            };
            best = Some((from, estimate));
        }
    }
    best
}
