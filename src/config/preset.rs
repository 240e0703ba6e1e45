//! Settings to start from, by name.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Settings;

/// The settings that a file starts from: `preset = "recommended"`. What else stands in the file
/// overrides them, option by option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Preset {
    Recommended,
    Eino,
    Anthropic,
}

impl Preset {
    fn settings(self) -> Settings {
        match self {
            Self::Recommended => Settings::recommended(),
            Self::Eino => Settings::eino(),
            Self::Anthropic => Settings::anthropic(),
        }
    }
}

impl Settings {
    /// What a file says, over the preset that it names. `options` are the names of the options that
    /// stand in it.
    pub(super) fn over_preset(
        mut self,
        options: impl IntoIterator<Item = String>,
    ) -> Result<Self, serde_json::Error> {
        let Some(preset) = self.preset.take() else {
            return Ok(self);
        };
        let mut options: BTreeSet<String> = options.into_iter().collect();
        // A limit would not do what it says where shorter results are previewed (O1).
        if options.contains("max_length_for_trunc") {
            options.insert("preview_above".into());
        }
        let mut own = serde_json::to_value(self)?;
        let mut settings = serde_json::to_value(preset.settings())?;
        for option in options {
            if let Some(value) = own.get_mut(&option) {
                settings[option] = value.take();
            }
        }
        serde_json::from_value(settings)
    }
}
