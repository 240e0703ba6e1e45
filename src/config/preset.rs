//! Options that depend on whether others were set (O1): in a file over a preset, or on the builder over its settings.

use super::Settings;
use super::values::Preset;

impl Settings {
    /// Puts the options that a file `has` over the preset that it names.
    pub(super) fn over_preset(mut self, has: impl Fn(&str) -> bool) -> Self {
        let preset = match self.preset.take() {
            None => return self,
            Some(Preset::Recommended) => Self::recommended(),
            Some(Preset::Eino) => Self::eino(),
            Some(Preset::Anthropic) => Self::anthropic(),
        };
        let given_threshold = preset.max_tokens_for_clear;
        let mut settings = self.over(preset, &has);
        settings.settle(given_threshold, has);
        settings
    }

    /// Settles what depends on whether other options were set, as `is_set` says, over settings with the
    /// threshold `given`.
    pub(crate) fn settle(&mut self, given: u64, is_set: impl Fn(&str) -> bool) {
        // The limit would not mean what it says if shorter results got previews.
        if is_set("max_length_for_trunc") && !is_set("preview_above") {
            self.preview_above = None;
        }
        // A threshold that is lowered alone lowers this in proportion.
        if !is_set("clear_at_least_tokens") && self.max_tokens_for_clear < given {
            let share = self.max_tokens_for_clear as f64 / given as f64;
            self.clear_at_least_tokens = (self.clear_at_least_tokens as f64 * share) as u64;
        }
    }
}
