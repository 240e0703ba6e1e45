//! The cost rule: from which message on a rewrite is expected to pay. A pure function of prices and
//! tokens.
//!
//! A rewrite begins somewhere and goes to the end: whatever is sent after the first message that
//! changed is read anew, so every candidate from there on becomes a preview with it. What a second
//! pass over the same conversation still finds is in front of that, and was found not to be worth
//! it; so it changes nothing (L4).

use crate::config::CostAware;
use crate::report::Outlook;

/// A message of the last request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) tokens: u64,
    /// The tokens of it that previews would save.
    pub(super) gain: u64,
}

/// Finds the rewrite that pays most, as an index into `sent`, the last messages of the last
/// request; `None` if nowhere enough is saved. `calls` are the model calls that are expected to
/// follow.
pub(super) fn best_rewrite(
    sent: &[Sent],
    rule: CostAware,
    calls: f64,
    cache_is_cold: bool,
) -> Option<(usize, Outlook)> {
    let (fresh, cached) = (rule.prices.fresh, rule.prices.cached);
    let would_cost = if cache_is_cold { fresh } else { cached };
    let (mut saves, mut costs, mut best) = (0_u64, 0.0, None::<(usize, Outlook)>);
    for (from, message) in sent.iter().enumerate().rev() {
        saves = message.gain.saturating_add(saves);
        costs += fresh * message.tokens.saturating_sub(message.gain) as f64
            - would_cost * message.tokens as f64;
        if message.gain == 0 || saves < rule.at_least_tokens {
            continue;
        }
        let pays = calls * cached * saves as f64 - costs;
        if best.is_none_or(|(_, best)| pays > best.pays) {
            let outlook = Outlook {
                calls,
                saves,
                costs,
                pays,
            };
            best = Some((from, outlook));
        }
    }
    best
}
