//! Prices of tokens.

use serde::{Deserialize, Serialize};

use crate::trials::{Error, Usage};

/// A provider's prices of a million tokens, with their source and date. There are no built-in prices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Input that is neither read from the cache nor written to it.
    pub input: f64,
    /// Input that is read from the cache.
    pub cached: f64,
    /// Input that is written to the cache; by default as `input`.
    pub written: Option<f64>,
    /// Output.
    pub output: f64,
    /// The currency.
    pub currency: String,
    /// Source of the prices.
    pub source: String,
    /// Date of the prices.
    pub date: String,
}

impl Prices {
    /// Checks that these can be prices.
    ///
    /// # Errors
    ///
    /// A price is negative or not a number.
    pub fn checked(self) -> Result<Self, Error> {
        let all = [
            Some(self.input),
            Some(self.cached),
            self.written,
            Some(self.output),
        ];
        if all
            .into_iter()
            .flatten()
            .all(|price| price.is_finite() && price >= 0.0)
        {
            Ok(self)
        } else {
            Err(Error::Prices("prices must be at least 0".to_owned()))
        }
    }

    /// The money for these tokens.
    #[must_use]
    pub fn money(&self, usage: &Usage) -> f64 {
        let parts = [
            (usage.input, self.input),
            (usage.cached, self.cached),
            (usage.written, self.written.unwrap_or(self.input)),
            (usage.output, self.output),
        ];
        parts
            .iter()
            .map(|(tokens, price)| *tokens as f64 * price)
            .sum::<f64>()
            / 1e6
    }
}
