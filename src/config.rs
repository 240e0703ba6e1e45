//! Settings, their defaults, and each tool's policy that overrides them.

mod advice;
mod distinct;
mod error;
mod file;
mod policy;
mod preset;
mod size;
mod tool_policy;
mod values;

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::backend::StoreUrl;
use crate::backend::key::digest;
use crate::hint::{Language, Sentence};
use crate::preview::Preview;

pub use error::BuildError;
#[cfg(feature = "toml")]
pub use file::read_toml;
pub use file::{SettingsError, read_file, read_json};
pub use tool_policy::ToolPolicy;
pub(crate) use tool_policy::{Hooks, Policy};
use values::Preset;
pub use values::{OnStoreFailure, PreviewLength, StoredNames, TokenCounter};

/// All options that are data. Callbacks and backends are set on the [`Builder`](crate::Builder).
///
/// ```
/// # use offcut::Settings;
/// let mut settings = Settings::recommended();
/// settings.max_length_for_trunc = 16_000;
/// settings.tool_config.entry("read".into()).or_default().skip_clear = Some(true);
/// assert_eq!(Settings::from_json(&serde_json::to_string(&settings)?)?, settings);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Default
///
#[doc = include_str!("../docs/options.md")]
///
/// Without the feature `tiktoken`, `token_counter` is the estimate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Settings {
    /// Preset named by a settings file. `None` after reading, since its values are merged in.
    #[serde(skip_serializing)]
    preset: Option<Preset>,
    /// The table `[serve]` of a settings file. It is the server's, and not looked at here.
    #[serde(skip_serializing)]
    serve: IgnoredAny,
    /// URL of the store; `backend` in files. [`Builder::settings`](crate::Builder::settings) opens
    /// it. `Debug` and errors hide its secrets; `Serialize` writes all of it.
    #[serde(rename = "backend")]
    pub backend_url: Option<StoreUrl>,
    /// Prefix of all stored content under the backend's own root: `<root_dir>/trunc/<id>`. At most
    /// 8 safe segments; see [`Key`](crate::backend::Key).
    pub root_dir: String,
    /// Source of the `<id>` in those paths.
    pub names: StoredNames,
    /// If true, results are never truncated.
    pub skip_truncation: bool,
    /// If true, the clear pass does nothing.
    pub skip_clear: bool,
    /// Name of the reading tool that hints mention. `None`, or `false` in files, mentions no tool.
    #[serde(with = "values::name_or_false")]
    pub read_file_tool_name: Option<String>,
    /// A result is truncated if its texts together have strictly more bytes than this. If you set it for
    /// a tool, on the builder, or in a file over a preset, but leave `preview_above` unset there,
    /// results up to this limit stay whole.
    #[serde(deserialize_with = "size::bytes")]
    pub max_length_for_trunc: usize,
    /// A result within the limit also becomes a preview if one of its texts has strictly more bytes
    /// than this and the preview saves a quarter. `None` leaves all results within the limit whole.
    #[serde(deserialize_with = "size::optional")]
    pub preview_above: Option<usize>,
    /// If true, file contents read by a call get no preview while they are within the limit: the
    /// model often edits the file next, and must quote it exactly. Such calls are recognized by
    /// common tool names, `Read` or `read_file`, and by common shell commands, `cat` or `sed -n`.
    pub keep_file_reads: bool,
    /// Method of previewing texts.
    pub preview: Preview,
    /// Maximum size in bytes of a truncated result's preview, marks included: a number, or a curve
    /// over the bytes of the text.
    pub preview_length: PreviewLength,
    /// Maximum size in bytes of a cleared result's preview.
    pub stub_length: PreviewLength,
    /// Tools whose results are never truncated.
    pub trunc_exclude_tools: Vec<String>,
    /// Tools whose results are never cleared.
    pub clear_exclude_tools: Vec<String>,
    /// Method of counting tokens.
    pub token_counter: TokenCounter,
    /// The clear pass acts if all messages and tool schemas together have strictly more tokens.
    pub max_tokens_for_clear: u64,
    /// Number of newest rounds that stay. Results that the model has not answered always stay. So 0
    /// and 1 are equivalent in a loop that runs the pass before each call, where the newest round
    /// is still unanswered.
    pub clear_retention_suffix_limit: usize,
    /// The pass clears nothing if it would free fewer tokens. Repeated decisions do not count. A `max_tokens_for_clear` that is set below a preset's lowers
    /// this in proportion, unless this is set too.
    pub clear_at_least_tokens: u64,
    /// If true, arguments of old calls are stored and replaced too.
    pub clear_tool_inputs: bool,
    /// Arguments of at most this many bytes stay even then: a path or a command costs little and
    /// shows what was done. In longer ones, the longest strings are replaced until this many bytes
    /// are left besides hints.
    #[serde(deserialize_with = "size::bytes")]
    pub clear_tool_inputs_above: usize,
    /// A user's text of strictly more bytes, such as a pasted log, is stored and replaced like an old
    /// result once as many newer turns of the model as `clear_retention_suffix_limit` says follow it, and at
    /// least one. It leaves a preview of `preview_length`. `None` keeps texts of users, unless the provider has
    /// refused the conversation as too long.
    #[serde(deserialize_with = "size::optional")]
    pub clear_user_texts_above: Option<usize>,
    /// If true, results marked as errors, each up to the maximum of `preview_length`, are cleared only if all else
    /// leaves the conversation over the threshold.
    pub keep_errors: bool,
    /// Action when the store fails.
    pub on_offload_error: OnStoreFailure,
    /// The language of the sentences in hints.
    pub language: Language,
    /// Sentences that replace the built-in ones in hints, by language. They don't affect a hint's
    /// header or preview.
    #[serde(deserialize_with = "distinct::map_of_maps")]
    pub templates: BTreeMap<Language, BTreeMap<Sentence, String>>,
    /// Overrides for single tools, by name.
    #[serde(deserialize_with = "distinct::map")]
    pub tool_config: BTreeMap<String, ToolPolicy>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            preset: None,
            serve: IgnoredAny,
            backend_url: None,
            root_dir: String::new(),
            names: StoredNames::CallId,
            skip_truncation: false,
            skip_clear: false,
            read_file_tool_name: Some("read_file".into()),
            max_length_for_trunc: 50_000,
            preview_above: None,
            keep_file_reads: true,
            preview: Preview::HeadTail,
            preview_length: PreviewLength::Bytes(8_000),
            stub_length: PreviewLength::Bytes(0),
            trunc_exclude_tools: Vec::new(),
            clear_exclude_tools: Vec::new(),
            token_counter: TokenCounter::default(),
            max_tokens_for_clear: 30_000,
            clear_retention_suffix_limit: 1,
            clear_at_least_tokens: 0,
            clear_tool_inputs: false,
            clear_tool_inputs_above: 0,
            clear_user_texts_above: None,
            keep_errors: true,
            on_offload_error: OnStoreFailure::KeepOriginal,
            language: Language::English,
            templates: BTreeMap::new(),
            tool_config: BTreeMap::new(),
        }
    }
}

impl Settings {
    /// Eino's documented defaults: [`Settings::default`] with its token estimate.
    #[must_use]
    pub fn eino() -> Self {
        Self {
            token_counter: TokenCounter::Estimate,
            ..Self::default()
        }
    }

    /// Anthropic's documented defaults for clearing tool uses, as near as rounds allow: above 100
    /// 000 tokens, all results are cleared except those of the newest three rounds. Nothing is
    /// truncated.
    ///
    /// Anthropic keeps the newest three *results* and stores nothing. Here, a backend stores what
    /// is cleared.
    #[must_use]
    pub fn anthropic() -> Self {
        Self {
            skip_truncation: true,
            max_tokens_for_clear: 100_000,
            clear_retention_suffix_limit: 3,
            ..Self::default()
        }
    }

    /// The settings that measured best. Results over 3 000 bytes become previews of lines and
    /// names, which grow more slowly than the results. File contents stay whole up to 8 000 bytes.
    /// Above 61 500 tokens, old results and long arguments are cleared if that frees 8 000. Stored
    /// content has short names.
    ///
    /// [docs/previews.md](https://github.com/offcut-rs/offcut/blob/main/docs/previews.md) has the
    /// measurements.
    #[must_use]
    pub fn recommended() -> Self {
        Self {
            names: StoredNames::Short,
            max_length_for_trunc: 8_000,
            preview_above: Some(3_000),
            preview: Preview::Mixed,
            preview_length: PreviewLength::curve(8.7, 0.68, 7_000),
            stub_length: PreviewLength::Bytes(160),
            max_tokens_for_clear: 61_500,
            clear_at_least_tokens: 8_000,
            clear_tool_inputs: true,
            clear_tool_inputs_above: 800,
            ..Self::default()
        }
    }

    /// A digest that is the same in every build. The URLs of stores are left out: they may hold secrets, and
    /// another way to the same store changes nothing.
    pub(crate) fn digest(&self) -> String {
        let mut data = self.clone();
        data.backend_url = None;
        let tools = data.tool_config.values_mut();
        tools.for_each(|policy| policy.backend_url = None);
        // Settings are data, and so can be written.
        digest(&serde_json::to_vec(&data).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_decides_counts() {
        let digest = |json: &str| Settings::from_json(json).unwrap().digest();
        let same = r#"{"max_length_for_trunc": 1, "tool_config": {"grep": {"preview_above": 2}}}"#;
        assert_eq!(
            digest(
                r#"{"backend": "s3://key:secret@a", "tool_config": {"grep": {"preview_above": 2, "backend": "x"}}, "max_length_for_trunc": 1}"#
            ),
            digest(same)
        );
        for (old, new) in [("1", "12"), ("grep", "sed"), ("2", "3")] {
            assert_ne!(digest(&same.replace(old, new)), digest(same));
        }
    }
}

/// Compiles the examples of the page on configuration.
#[cfg(all(doctest, feature = "toml"))]
#[doc = include_str!("../docs/configuration.md")]
struct Page;
