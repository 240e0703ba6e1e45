//! What the cost-aware pass reckons with: prices, and the calls that are expected to follow.

use serde::{Deserialize, Serialize};

use super::{BuildError, size};

/// When whole results of earlier rounds become previews: as soon as that is expected to pay.
///
/// Changing a message makes the provider read it, and all behind it, anew; from then on each call
/// is shorter. So a pass looks for the message from which on it pays most to put previews, and does
/// nothing where it pays nowhere.
///
/// With no calls expected a rewrite has to pay in the coming call alone. That never makes a
/// conversation dearer than it would have been without, however many calls follow, by the prices
/// given and the tokens counted. Any other expectation is a bet.
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
    /// A result may become a preview if its text has strictly more bytes.
    #[serde(deserialize_with = "size::bytes")]
    pub above: usize,
    /// A rewrite that would save fewer tokens a call is not made: few large ones rather than many
    /// small ones.
    pub at_least_tokens: u64,
    /// What tokens cost.
    pub prices: Prices,
    /// How many model calls are expected to follow the coming one.
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

/// Prices of input tokens, in any unit: only their ratio counts.
///
/// # Default
///
/// Those of Anthropic's price list, as multiples of its base price: 1.25 for writing to the cache,
/// 0.1 for reading from it. Of the usual lists that is where a rewrite costs most: OpenAI and
/// Google charge nothing for writing (`fresh = 1.0`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Prices {
    /// A token that did not stand in the previous request; with what writing it to the cache costs.
    pub fresh: f64,
    /// A token of the previous request that is read from the cache.
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

/// The model calls expected to follow: some in any case, and some for each that was made.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedCalls {
    /// So many in any case.
    #[serde(default)]
    pub at_least: f64,
    /// And so many for each assistant turn in the conversation: an agent that has worked for long
    /// is likely to go on for long.
    #[serde(default)]
    pub per_call: f64,
}

impl ExpectedCalls {
    /// None: what does not pay at once is left.
    pub const NONE: Self = Self {
        at_least: 0.0,
        per_call: 0.0,
    };

    /// How many are expected after so many.
    #[must_use]
    pub fn after(self, calls: usize) -> f64 {
        self.at_least + self.per_call * calls as f64
    }
}

impl CostAware {
    /// What is cached costs no more than what is not, and all are numbers.
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
            Some((field, _, instead)) => Err(BuildError::NoPrice { field, instead }),
            None => Ok(()),
        }
    }
}
