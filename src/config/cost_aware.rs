//! Inputs of the cost-aware pass: prices, and the number of calls expected to follow.

use serde::{Deserialize, Serialize};

use super::{BuildError, size};

/// Rule for turning whole results of earlier rounds into previews as soon as that should pay.
///
/// Changing a message makes the provider read it and everything after it again, but makes each
/// later call shorter. So the pass finds the message from which previews save most, and does
/// nothing if they save nothing.
///
/// With no calls expected, a rewrite must pay for itself in the coming call. Then a conversation
/// never costs more than without this pass, however many calls follow, by the given prices and
/// token counts. Any other expectation is a bet.
///
/// ```
/// use offcut::{CostAware, ExpectedCalls, Prices};
/// let certain = CostAware { expected_calls: ExpectedCalls::NONE, ..CostAware::default() };
/// assert_eq!(CostAware::default().prices, Prices { fresh: 1.25, cached: 0.1 });
/// assert_eq!(CostAware::default().expected_calls.after(20), 20.0);
/// assert_eq!(certain.expected_calls.after(20), 0.0);
/// ```
///
/// # Default
///
/// - `above`: 1 500 bytes
/// - `at_least_tokens`: 2 000
/// - `prices`: `fresh` 1.25, `cached` 0.1
/// - `expected_calls`: `at_least` 10, `per_call` 0.5
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CostAware {
    /// A result may become a preview if its text has strictly more bytes than this.
    #[serde(deserialize_with = "size::bytes")]
    pub above: usize,
    /// A rewrite must save at least this many tokens per call. Few large rewrites are better than
    /// many small ones.
    pub at_least_tokens: u64,
    /// Prices of tokens.
    pub prices: Prices,
    /// Number of model calls expected after the coming one.
    pub expected_calls: ExpectedCalls,
}

impl Default for CostAware {
    fn default() -> Self {
        Self {
            above: 1_500,
            at_least_tokens: 2_000,
            prices: Prices::default(),
            expected_calls: ExpectedCalls {
                at_least: 10.0,
                per_call: 0.5,
            },
        }
    }
}

/// Prices of input tokens, in any unit, since only their ratio matters.
///
/// # Default
///
/// Anthropic's list prices as multiples of its base price: 1.25 for a cache write, 0.1 for a cache
/// read. Of the usual price lists, these make a rewrite most expensive; OpenAI and Google charge
/// nothing for cache writes (`fresh = 1.0`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Prices {
    /// Price of a token that was not in the previous request, including its cache write.
    pub fresh: f64,
    /// Price of a token of the previous request, read from the cache.
    pub cached: f64,
}

impl Default for Prices {
    fn default() -> Self {
        Self {
            fresh: 1.25,
            cached: 0.1,
        }
    }
}

/// Number of model calls expected to follow: a constant, plus a share of the calls already made.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedCalls {
    /// Minimum number of calls expected.
    #[serde(default)]
    pub at_least: f64,
    /// Further calls for each assistant turn in the conversation: an agent that has worked for a
    /// long time is likely to continue.
    #[serde(default)]
    pub per_call: f64,
}

impl ExpectedCalls {
    /// No further calls: only a rewrite that pays at once is made.
    pub const NONE: Self = Self {
        at_least: 0.0,
        per_call: 0.0,
    };

    /// Number of calls expected after `calls` calls.
    #[must_use]
    pub fn after(self, calls: usize) -> f64 {
        self.at_least + self.per_call * calls as f64
    }
}

impl CostAware {
    /// Checks that all are valid numbers and that cached tokens cost no more than fresh ones.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        let is_amount = |number: f64| number.is_finite() && number >= 0.0;
        let Prices { fresh, cached } = self.prices;
        let ExpectedCalls { at_least, per_call } = self.expected_calls;
        let wrong = [
            (
                "prices.fresh",
                is_amount(fresh) && fresh > 0.0,
                "set a price above 0",
            ),
            (
                "prices.cached",
                is_amount(cached) && cached <= fresh,
                "set a price of at least 0 and at most `fresh`",
            ),
            (
                "expected_calls.at_least",
                is_amount(at_least),
                "set at least 0",
            ),
            (
                "expected_calls.per_call",
                is_amount(per_call),
                "set at least 0",
            ),
        ];
        match wrong.into_iter().find(|(_, is_right, _)| !is_right) {
            Some((field, _, instead)) => Err(BuildError::InvalidPrice { field, instead }),
            None => Ok(()),
        }
    }
}
