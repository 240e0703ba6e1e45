//! Prices of input tokens.

use serde::Serialize;

/// Prices of input tokens, by which the page shows what a provider's bill comes to: weights, or the
/// prices of a million tokens.
///
/// # Default
///
/// Weights: a cached token costs a tenth of a fresh one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Card {
    /// The price of a token that the provider's cache holds.
    pub cached: f64,
    /// The price of one that it does not hold.
    pub fresh: f64,
    /// The prices' currency; `None` if they are weights.
    pub currency: Option<String>,
    /// The source of the prices and their date, to be shown beside them.
    pub source: Option<String>,
}

impl Default for Card {
    fn default() -> Self {
        Self::new(0.1, 1.0)
    }
}

impl Card {
    /// Weights.
    #[must_use]
    pub fn new(cached: f64, fresh: f64) -> Self {
        Self {
            cached,
            fresh,
            currency: None,
            source: None,
        }
    }

    /// The same as prices of a million tokens in a currency, from a source that names their date.
    #[must_use]
    pub fn in_currency(self, currency: impl Into<String>, source: impl Into<String>) -> Self {
        Self {
            currency: Some(currency.into()),
            source: Some(source.into()),
            ..self
        }
    }
}
