//! Settings to start from, by name.

use std::collections::BTreeSet;

use super::Settings;
use super::values::Preset;

impl Settings {
    /// What a file says, over the preset that it names. `options` are the names of the options that
    /// stand in it.
    pub(super) fn over_preset(
        mut self,
        options: impl IntoIterator<Item = String>,
    ) -> Result<Self, serde_json::Error> {
        let preset = match self.preset.take() {
            None => return Ok(self),
            Some(Preset::Recommended) => Settings::recommended(),
            Some(Preset::Eino) => Settings::eino(),
            Some(Preset::Anthropic) => Settings::anthropic(),
        };
        let mut options: BTreeSet<String> = options.into_iter().collect();
        // A limit would not do what it says where shorter results are previewed (O1).
        if options.contains("max_length_for_trunc") {
            options.insert("preview_above".into());
        }
        let mut own = serde_json::to_value(self)?;
        let mut settings = serde_json::to_value(preset)?;
        for option in options {
            if let Some(value) = own.get_mut(&option) {
                settings[option] = value.take();
            }
        }
        serde_json::from_value(settings)
    }
}
