//! Settings, their defaults, and each tool's policy that overrides them.

mod advice;
mod error;
mod file;
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
pub use values::{OnOffloadError, PreviewLength, StoredNames, TokenCounter};

/// The settings that a file starts from: `preset = "recommended"`. The file's own options override
/// them one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Preset {
    Recommended,
    Eino,
    Anthropic,
}

/// Calls `$declare` with the options that are data, one a row, in the order of docs/options.md: name, type and default,
/// then where the option can be set in code. `set` has the argument of the builder's setter, and the user's code that
/// it takes the place of; `tool` the same for the policy of a tool that may override it, and the type of its value there.
/// An option without `set` has a setter of its own. `elsewhere` has other names for the same: those of Anthropic's context
/// editing, LangChain's `ClearToolUsesEdit`, pydantic-ai-harness's `ToolOutputLimits` and `ClearToolResults`, and common first
/// guesses; tables in docs/comparison.md list them. A test names any option that is missing on its page.
macro_rules! options {
    ($declare:ident) => {
        $declare! {
            /// Prefix of all stored content under the backend's own root: `<root_dir>/trunc/<id>`. At most
            /// 8 safe segments; see [`Key`](crate::backend::Key).
            root_dir: String = String::new(), set(impl Into<String>),
                elsewhere("root");
            /// Source of the `<id>` in those paths.
            names: StoredNames = StoredNames::CallId, set(StoredNames);
            /// If true, results are never truncated.
            skip_truncation: bool = false, set(bool), tool(bool): bool;
            /// If true, the clear pass does nothing.
            skip_clear: bool = false, set(bool), tool(bool): bool;
            /// Name of the reading tool that hints mention. `None`, or `false` in files, mentions no tool.
            #[serde(deserialize_with = "values::name_or_false", serialize_with = "values::or_false")]
            read_file_tool_name: Option<String> = Some("read_file".into()),
                elsewhere("reader");
            /// A result is truncated if its texts together have strictly more bytes than this. If you set it for
            /// a tool, on the builder, or in a file over a preset, but leave `preview_above` unset there,
            /// results up to this limit stay whole.
            #[serde(deserialize_with = "values::size")]
            max_length_for_trunc: usize = 50_000, set(usize), tool(usize): usize, read by "values::optional_size",
                elsewhere("bands", "limit", "max_bytes", "max_chars", "max_length", "max_output", "over");
            /// A result within the limit also becomes a preview if one of its texts has strictly more bytes
            /// than this and the preview saves a quarter. `None` leaves all results within the limit whole.
            #[serde(deserialize_with = "values::optional_size")]
            preview_above: Option<usize> = None, set(impl Into<Option<usize>>),
                tool(usize): usize, read by "values::optional_size";
            /// If true, file contents read by a call get no preview while they are within the limit: the
            /// model often edits the file next, and must quote it exactly. Such calls are recognized by
            /// common tool names, `Read` or `read_file`, and by common shell commands, `cat` or `sed -n`.
            keep_file_reads: bool = true, set(bool);
            /// Method of previewing texts.
            preview: Preview = Preview::HeadTail, set(Preview) in place of hooks.preview,
                tool(Preview): Preview, in place of hooks.preview;
            /// Maximum size in bytes of a truncated result's preview, marks included: a number, or a curve
            /// over the bytes of the text.
            preview_length: PreviewLength = PreviewLength::Bytes(8_000), set(impl Into<PreviewLength>),
                tool(impl Into<PreviewLength>): PreviewLength,
                elsewhere("preview_chars");
            /// Maximum size in bytes of a cleared result's preview.
            stub_length: PreviewLength = PreviewLength::Bytes(0), set(impl Into<PreviewLength>),
                tool(impl Into<PreviewLength>): PreviewLength;
            /// Tools whose results are never truncated.
            trunc_exclude_tools: Vec<String> = Vec::new();
            /// Tools whose results are never cleared.
            clear_exclude_tools: Vec<String> = Vec::new(),
                elsewhere("exclude_tools");
            /// Method of counting tokens.
            token_counter: TokenCounter = TokenCounter::default(), set(TokenCounter) in place of counter,
                elsewhere("count_tokens", "encoding", "tokenizer");
            /// The clear pass acts if all messages and tool schemas together have strictly more tokens.
            max_tokens_for_clear: u64 = 30_000, set(u64),
                elsewhere("clear_threshold", "context_limit", "max_tokens", "threshold", "trigger", "trigger_tokens");
            /// Number of newest rounds that stay. Results that the model has not answered always stay. So 0
            /// and 1 are equivalent in a loop that runs the pass before each call, where the newest round
            /// is still unanswered.
            clear_retention_suffix_limit: usize = 1, set(usize),
                elsewhere("keep", "keep_last", "keep_pairs", "keep_recent", "keep_rounds");
            /// The pass clears nothing if it would free fewer tokens. Repeated decisions do not count. A `max_tokens_for_clear` that is set below a preset's lowers
            /// this in proportion, unless this is set too.
            clear_at_least_tokens: u64 = 0, set(u64),
                elsewhere("clear_at_least", "min_clear_tokens");
            /// If true, arguments of old calls are stored and replaced too.
            clear_tool_inputs: bool = false, set(bool);
            /// Arguments of at most this many bytes stay even then: a path or a command costs little and
            /// shows what was done. In longer ones, the longest strings are replaced until this many bytes
            /// are left besides hints.
            #[serde(deserialize_with = "values::size")]
            clear_tool_inputs_above: usize = 0, set(usize);
            /// A user's text of strictly more bytes, such as a pasted log, is stored and replaced like an old
            /// result once as many newer turns of the model as `clear_retention_suffix_limit` says follow it, and at
            /// least one. It leaves a preview of `preview_length`. `None` keeps texts of users, unless the provider has
            /// refused the conversation as too long.
            #[serde(deserialize_with = "values::optional_size")]
            clear_user_texts_above: Option<usize> = None, set(impl Into<Option<usize>>);
            /// If true, results marked as errors, each up to the maximum of `preview_length`, are cleared only if all else
            /// leaves the conversation over the threshold.
            keep_errors: bool = true, set(bool), tool(bool): bool;
            /// Action when the store fails.
            on_offload_error: OnOffloadError = OnOffloadError::KeepOriginal, set(OnOffloadError),
                elsewhere("on_error");
            /// The language of the sentences in hints.
            language: Language = Language::English, set(Language),
                elsewhere("lang");
            /// Sentences that replace the built-in ones in hints, by language. They don't affect a hint's
            /// header or preview.
            templates: BTreeMap<Language, BTreeMap<Sentence, String>> = BTreeMap::new(),
                elsewhere("placeholder");
            /// Overrides for single tools, by name.
            tool_config: BTreeMap<String, ToolPolicy> = BTreeMap::new(),
                elsewhere("per_tool", "tools");
        }
    };
}

/// Declares the settings for all tools.
macro_rules! settings {
    ($(
        $(#[$meta:meta])*
        $option:ident: $type:ty = $default:expr
            $(, set($argument:ty) $(in place of $($code:ident).+)?)?
            $(, tool($own_argument:ty): $own:ty $(, in place of $($own_code:ident).+)? $(, read by $read:literal)?)?
            $(, elsewhere($($name:literal),*))?;
    )*) => {
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
            $($(#[$meta])* pub $option: $type,)*
        }

        impl Default for Settings {
            fn default() -> Self {
                Self {
                    preset: None,
                    serve: IgnoredAny,
                    backend_url: None,
                    $($option: $default,)*
                }
            }
        }

        impl Settings {
            /// The options by their names in files, and the names that others give to the same.
            const NAMES: &[(&str, &[&str])] = &[
                ("preset", &[]),
                ("backend", &["path", "storage", "store", "url"]),
                $((stringify!($option), &[$($($name),*)?]),)*
            ];

            /// Puts the options that a file has, by its own names, over `preset`.
            fn over(self, mut preset: Self, has: impl Fn(&str) -> bool) -> Self {
                if has("backend") {
                    preset.backend_url = self.backend_url;
                }
                $(if has(stringify!($option)) {
                    preset.$option = self.$option;
                })*
                preset
            }

            /// The policy of a tool that has its `own` values, or else these, and all its `hooks`.
            fn policy(&self, own: &ToolPolicy, hooks: Hooks) -> Policy {
                Policy {
                    hooks,
                    $($($option: own.$option.map_or(self.$option, |value: $own| value.into()),)?)*
                }
            }
        }
    };
}

options!(settings);
pub(crate) use options;

/// Names the place of an option's doc.
macro_rules! see {
    ($option:ident) => {
        concat!(
            "See [`Settings::",
            stringify!($option),
            "`](crate::Settings::",
            stringify!($option),
            ")."
        )
    };
}
pub(crate) use see;

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

    /// Puts the options that a file `has` over the preset that it names.
    fn over_preset(mut self, has: impl Fn(&str) -> bool) -> Self {
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

    /// The policy of the tool `name` over `global` hooks; `None` means a tool without its own policy.
    pub(crate) fn policy_of(&self, name: Option<&str>, global: &Hooks) -> Policy {
        let nothing = ToolPolicy::default();
        let own = name
            .and_then(|name| self.tool_config.get(name))
            .unwrap_or(&nothing);
        let mut hooks = own.hooks.clone().or(global.clone());
        // A preview chosen by name also overrides the global one.
        if own.preview.is_some() && own.hooks.preview.is_none() {
            hooks.preview = None;
        }
        let mut policy = self.policy(own, hooks);
        // A tool's own limit means what it says: results within it stay whole (O1).
        if own.max_length_for_trunc.is_some() && own.preview_above.is_none() {
            policy.preview_above = None;
        }
        let is_in =
            |list: &[String]| name.is_some_and(|name| list.iter().any(|listed| listed == name));
        policy.skip_truncation |= is_in(&self.trunc_exclude_tools);
        policy.skip_clear |= is_in(&self.clear_exclude_tools);
        policy
    }

    /// A digest that is the same in every build. The URLs of stores are left out: they may hold secrets, and
    /// another way to the same store changes nothing. So is the reader's name: what was decided stands where the model's
    /// tools change.
    pub(crate) fn digest(&self) -> String {
        let mut data = self.clone();
        data.read_file_tool_name = None;
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
                r#"{"backend": "s3://key:secret@a", "tool_config": {"grep": {"preview_above": 2, "backend": "x"}}, "max_length_for_trunc": 1, "read_file_tool_name": "Read"}"#
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
