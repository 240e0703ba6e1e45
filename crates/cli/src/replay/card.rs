//! Price cards: the cost of a token.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::failure::{Failure, OrFail as _};

/// Prices of input tokens: weights, or prices for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Card {
    /// A token that was in the previous request too.
    pub(crate) cached: f64,
    /// A token that was not.
    pub(crate) fresh: f64,
}

/// A card, and the currency of its prices.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Prices {
    #[serde(flatten)]
    pub(crate) card: Card,
    /// A token that is written to the cache, in `trial`. By default as a fresh one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) written: Option<f64>,
    /// A token of output, in `trial`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<f64>,
    /// Without it, the card's prices are weights, and no money is shown.
    #[serde(flatten)]
    pub(crate) money: Option<Money>,
}

/// Currency and source of a card's prices.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Money {
    pub(crate) currency: String,
    /// Source of the prices.
    pub(crate) source: String,
    /// Date of the prices.
    pub(crate) date: String,
}

/// A card as written in a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    cached: f64,
    fresh: f64,
    written: Option<f64>,
    output: Option<f64>,
    currency: Option<String>,
    source: Option<String>,
    date: Option<String>,
}

const HINT: &str = "a card is a TOML or JSON file with the prices of a million tokens, such as `cached = 0.3`, `fresh = 3.75`, \
`currency = \"USD\"`, `source = \"https://…\"` and `date = \"2026-01-31\"`, or one of the weights `default` and `anthropic`";

impl Card {
    /// A cache that costs nothing to write.
    pub(crate) const DEFAULT: Self = Self {
        cached: 0.1,
        fresh: 1.0,
    };
    /// Anthropic's cache: writing to it costs a quarter more.
    pub(crate) const ANTHROPIC: Self = Self {
        cached: 0.1,
        fresh: 1.25,
    };
}

impl From<Card> for Prices {
    fn from(card: Card) -> Self {
        Self {
            card,
            written: None,
            output: None,
            money: None,
        }
    }
}

impl Prices {
    /// Opens the card with this name, or reads it from a file.
    pub(crate) fn open(name: &str) -> Result<Self, Failure> {
        match name {
            "default" => return Ok(Card::DEFAULT.into()),
            "anthropic" => return Ok(Card::ANTHROPIC.into()),
            _ => {}
        }
        let text = std::fs::read_to_string(name);
        let text = text.or_refuse(format_args!("the price card {name} can't be read"), HINT)?;
        let is_json = Path::new(name)
            .extension()
            .is_some_and(|ending| ending == "json");
        let written: Result<Written, String> = match is_json {
            true => serde_json::from_str(&text).map_err(|error| error.to_string()),
            false => toml::from_str(&text).map_err(|error| error.to_string()),
        };
        let written = written.or_refuse(format_args!("{name} is not a price card"), HINT)?;
        let card = Card {
            cached: written.cached,
            fresh: written.fresh,
        };
        let (cached, fresh) = (Some(card.cached), Some(card.fresh));
        let prices = [cached, fresh, written.written, written.output];
        let is_price = |price: f64| price.is_finite() && price >= 0.0;
        if !(prices.into_iter().flatten().all(is_price) && card.fresh > 0.0) {
            return Err(Failure::usage(
                format!("the prices in {name} are invalid"),
                "set `fresh` above 0 and all others to at least 0",
            ));
        }
        let money = match (written.currency, written.source, written.date) {
            (Some(currency), Some(source), Some(date)) => Some(Money {
                currency,
                source,
                date,
            }),
            (None, None, None) => None,
            _ => {
                return Err(Failure::usage(
                    format!("{name} sets only some of `currency`, `source` and `date`"),
                    "set all of them, to say whose prices these are and of which date, or none, for plain weights",
                ));
            }
        };
        Ok(Self {
            card,
            written: written.written,
            output: written.output,
            money,
        })
    }
}
