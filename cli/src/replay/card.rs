//! What a token costs: a price card.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// Prices of input tokens, in units of a fresh token of the default card, or in whatever unit a
/// card of one's own uses.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Card {
    /// A token that stood in the previous request already.
    pub(crate) cached: f64,
    /// A token that did not.
    pub(crate) fresh: f64,
}

impl Card {
    /// A cache that costs nothing to write.
    pub(crate) const DEFAULT: Self = Self {
        cached: 0.1,
        fresh: 1.0,
    };
    /// Anthropic's: what is written to the cache costs a quarter more.
    pub(crate) const ANTHROPIC: Self = Self {
        cached: 0.1,
        fresh: 1.25,
    };

    /// The card of this name, or from a file.
    pub(crate) fn open(name: &str) -> Result<Self, Failure> {
        match name {
            "default" => return Ok(Self::DEFAULT),
            "anthropic" => return Ok(Self::ANTHROPIC),
            _ => {}
        }
        let hint = "a card is `default`, `anthropic`, or a TOML or JSON file such as `cached = 0.1` and `fresh = 1.25`";
        let text = std::fs::read_to_string(name).map_err(|error| {
            Failure::usage(
                format!("the price card {name} can't be read: {error}"),
                hint,
            )
        })?;
        let is_json = Path::new(name)
            .extension()
            .is_some_and(|ending| ending == "json");
        let card: Result<Self, String> = if is_json {
            serde_json::from_str(&text).map_err(|error| error.to_string())
        } else {
            toml::from_str(&text).map_err(|error| error.to_string())
        };
        let card = card
            .map_err(|error| Failure::usage(format!("{name} is no price card: {error}"), hint))?;
        let is_price = |price: f64| price.is_finite() && price >= 0.0;
        if is_price(card.cached) && is_price(card.fresh) && card.fresh > 0.0 {
            Ok(card)
        } else {
            Err(Failure::usage(
                format!("the prices of {name} are no prices"),
                "set `fresh` above 0 and `cached` to at least 0",
            ))
        }
    }
}
