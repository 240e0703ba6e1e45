//! Named settings to start from.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;

use super::Settings;
use super::values::Preset;

/// Options present in a file, by name.
pub(super) type PresentOptions = BTreeMap<String, IgnoredAny>;

impl Settings {
    /// Puts the file's `options` over the preset that it names.
    pub(super) fn over_preset(
        mut self,
        options: impl FnOnce() -> PresentOptions,
    ) -> Result<Self, serde_json::Error> {
        let preset = match self.preset.take() {
            None => return Ok(self),
            Some(Preset::Recommended) => Settings::recommended(),
            Some(Preset::Eino) => Settings::eino(),
            Some(Preset::Anthropic) => Settings::anthropic(),
        };
        let mut options = options();
        let given_threshold = preset.max_tokens_for_clear;
        // The limit would not mean what it says if shorter results got previews (O1).
        if options.contains_key("max_length_for_trunc") {
            options.insert("preview_above".into(), IgnoredAny);
        }
        let has_own_at_least = options.contains_key("clear_at_least_tokens");
        let mut own = serde_json::to_value(self)?;
        let mut settings = serde_json::to_value(preset)?;
        for option in options.into_keys() {
            if let Some(value) = own.get_mut(&option) {
                settings[option] = value.take();
            }
        }
        let mut settings: Self = serde_json::from_value(settings)?;
        if !has_own_at_least {
            settings.lower_floor(given_threshold);
        }
        Ok(settings)
    }

    /// Lowers `clear_at_least_tokens` in proportion to a threshold lower than the one `given` (O1).
    pub(crate) fn lower_floor(&mut self, given: u64) {
        if self.max_tokens_for_clear < given {
            let share = self.max_tokens_for_clear as f64 / given as f64;
            self.clear_at_least_tokens = (self.clear_at_least_tokens as f64 * share) as u64;
        }
    }
}
