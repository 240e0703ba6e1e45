//! Price cards: the cost of a token.

use serde::{Deserialize, Serialize};

use crate::failure::{Failure, OrFail as _};

/// Prices of tokens: weights, or prices for a million of them, with whose prices these are and of which date.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Prices {
    /// A token that was in the previous request too.
    pub(crate) cached: f64,
    /// A token that was not.
    pub(crate) fresh: f64,
    /// A token that is written to the cache, in `trial`. By default as a fresh one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) written: Option<f64>,
    /// A token of output, in `trial`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    currency: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<String>,
}

const HINT: &str = "a card is a TOML file with the prices of a million tokens, such as `cached = 0.3`, `fresh = 3.75`, \
`currency = \"USD\"`, `source = \"https://…\"` and `date = \"2026-01-31\"`, or one of the weights `default` and `anthropic`";

impl Prices {
    /// Weights of tokens, without a currency.
    pub(crate) fn weights(cached: f64, fresh: f64) -> Self {
        Self {
            cached,
            fresh,
            ..Self::default()
        }
    }

    /// Opens the card with this name, or reads it from a file.
    pub(crate) fn open(name: &str) -> Result<Self, Failure> {
        match name {
            "default" => return Ok(Self::weights(0.1, 1.0)),
            // Writing to its cache costs a quarter more.
            "anthropic" => return Ok(Self::weights(0.1, 1.25)),
            _ => {}
        }
        let text = std::fs::read_to_string(name);
        let text = text.or_refuse(format_args!("the price card {name} can't be read"), HINT)?;
        let card: Result<Self, _> = toml::from_str(&text);
        let card = card.or_refuse(format_args!("{name} is not a price card"), HINT)?;
        let prices = [
            Some(card.cached),
            Some(card.fresh),
            card.written,
            card.output,
        ];
        let is_price = |price: f64| price.is_finite() && price >= 0.0;
        if !(prices.into_iter().flatten().all(is_price) && card.fresh > 0.0) {
            return Err(Failure::usage(
                format!("the prices in {name} are invalid"),
                "set `fresh` above 0 and all others to at least 0",
            ));
        }
        let about = [&card.currency, &card.source, &card.date];
        if !matches!(about.into_iter().flatten().count(), 0 | 3) {
            return Err(Failure::usage(
                format!("{name} sets only some of `currency`, `source` and `date`"),
                "set all of them, to say whose prices these are and of which date, or none, for plain weights",
            ));
        }
        Ok(card)
    }

    /// Currency, source and date. Without them, the prices are weights, and no money is shown.
    pub(crate) fn money(&self) -> Option<[&str; 3]> {
        let money = [&self.currency, &self.source, &self.date];
        let [Some(currency), Some(source), Some(date)] = money else {
            return None;
        };
        Some([currency, source, date])
    }
}
