//! Settings, their defaults, and how a tool's policy overrides them.

mod advice;
mod cost_aware;
mod distinct;
mod error;
mod file;
mod policy;
mod preset;
mod size;
mod tool_policy;
mod values;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::backend::StoreUrl;
use crate::hint::{Language, Sentence};
use crate::preview::Preview;

pub use cost_aware::{CostAware, ExpectedCalls, Prices};
pub use error::BuildError;
pub use file::SettingsError;
pub(crate) use policy::Policy;
pub(crate) use tool_policy::Hooks;
pub use tool_policy::ToolPolicy;
use values::Preset;
pub use values::{OnStoreFailure, PreviewLength, SizeLimit, StoredNames, TokenCounter};

/// Everything that can be set and is data. Callbacks and backends are set on the
/// [`Builder`](crate::Builder).
///
/// ```
/// # use offcut::{SizeLimit, Settings};
/// let mut settings = Settings::recommended();
/// settings.max_length_for_trunc = SizeLimit::tokens(2_000);
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
    /// The preset that a file names. Settings that have been read have none: its values are theirs.
    #[serde(skip_serializing)]
    preset: Option<Preset>,
    /// Where content is stored, as a URL; `backend` in files.
    /// [`Builder::settings`](crate::Builder::settings) opens it. `Debug` and errors show it without
    /// secrets; `Serialize` writes all of it.
    #[serde(rename = "backend")]
    pub backend_url: Option<StoreUrl>,
    /// Prefix of everything that is stored, under the backend's own root: `<root_dir>/trunc/<id>`.
    /// Up to 8 safe segments, see [`Key`](crate::backend::Key).
    pub root_dir: String,
    /// What stored content is named by: the `<id>` of these paths.
    pub names: StoredNames,
    /// Results are never truncated.
    pub skip_truncation: bool,
    /// The clear pass does nothing.
    pub skip_clear: bool,
    /// The reader that hints name. `None` names no tool; in files that is `false`.
    #[serde(with = "values::name_or_false")]
    pub read_file_tool_name: Option<String>,
    /// A result is truncated when the bytes of its texts, all together, are strictly more. Who sets
    /// it for a tool, on the builder, or in a file over a preset, and not `preview_above` beside
    /// it, has results up to this limit left whole.
    pub max_length_for_trunc: SizeLimit,
    /// A result within the limit is replaced by its preview too where one of its texts has strictly
    /// more bytes and that is shorter; `None` leaves all within the limit whole.
    #[serde(deserialize_with = "size::optional")]
    pub preview_above: Option<usize>,
    /// What a call reads from a file is not previewed within the limit: it is often edited next,
    /// and an edit has to quote it. Told by the names of usual tools, `Read` or `read_file`, and of
    /// usual commands in a shell, `cat` or `sed -n`.
    pub keep_file_reads: bool,
    /// How a text is previewed.
    pub preview: Preview,
    /// The bytes that the preview of a truncated result may take, marks included: a number, or a
    /// curve over the bytes of its text.
    pub preview_length: PreviewLength,
    /// The same for a cleared result.
    pub stub_length: PreviewLength,
    /// Tools whose results are never truncated.
    pub trunc_exclude_tools: Vec<String>,
    /// Tools whose results are never cleared.
    pub clear_exclude_tools: Vec<String>,
    /// What counts tokens.
    pub token_counter: TokenCounter,
    /// The clear pass acts when the tokens of all messages and tool schemas are strictly more.
    pub max_tokens_for_clear: u64,
    /// How many of the newest rounds stay. Results that the model has not answered stay in any
    /// case, so in a loop that runs the pass before each call, where the newest round is not
    /// answered yet, 0 and 1 keep the same.
    pub clear_retention_suffix_limit: usize,
    /// A pass that would free fewer tokens clears nothing. What it repeats, and what becomes a
    /// preview by `cost_aware`, does not count.
    pub clear_at_least_tokens: u64,
    /// The pass clears oldest first until so many tokens, or fewer, are left; `None` clears every
    /// candidate.
    pub clear_target_tokens: Option<u64>,
    /// The arguments of old calls are stored and replaced too.
    pub clear_tool_inputs: bool,
    /// Arguments of up to so many bytes stay all the same: a path or a command costs little, and
    /// says what was done.
    #[serde(deserialize_with = "size::bytes")]
    pub clear_tool_inputs_above: usize,
    /// Whole results of earlier rounds become previews as soon as that is expected to pay, whether
    /// or not the pass is triggered; `None` leaves them until it is. Not together with
    /// `clear_target_tokens`.
    pub cost_aware: Option<CostAware>,
    /// Results that are marked as errors are not cleared, up to `preview_length` bytes each, at its
    /// most.
    pub keep_errors: bool,
    /// What to do when the store fails.
    pub on_offload_error: OnStoreFailure,
    /// The language of the sentences in hints.
    pub language: Language,
    /// What hints say in place of their own sentences, by language. The header and the preview of a
    /// hint are not part of them.
    #[serde(deserialize_with = "distinct::map_of_maps")]
    pub templates: BTreeMap<Language, BTreeMap<Sentence, String>>,
    /// What is different for single tools, by name.
    #[serde(deserialize_with = "distinct::map")]
    pub tool_config: BTreeMap<String, ToolPolicy>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            preset: None,
            backend_url: None,
            root_dir: String::new(),
            names: StoredNames::CallId,
            skip_truncation: false,
            skip_clear: false,
            read_file_tool_name: Some("read_file".into()),
            max_length_for_trunc: SizeLimit::Bytes(50_000),
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
            clear_target_tokens: None,
            clear_tool_inputs: false,
            clear_tool_inputs_above: 0,
            cost_aware: None,
            keep_errors: true,
            on_offload_error: OnStoreFailure::KeepOriginal,
            language: Language::English,
            templates: BTreeMap::new(),
            tool_config: BTreeMap::new(),
        }
    }
}

impl Settings {
    /// Eino's documented defaults: the same as [`Settings::default`], but for its token estimate.
    #[must_use]
    pub fn eino() -> Self {
        Self {
            token_counter: TokenCounter::Estimate,
            ..Self::default()
        }
    }

    /// Anthropic's documented defaults for clearing tool uses, as near as rounds allow: above 100
    /// 000 tokens all results go but those of the newest three rounds. Nothing is truncated.
    ///
    /// Anthropic keeps the newest three *results* and stores nothing: with a backend, these are
    /// stored.
    #[must_use]
    pub fn anthropic() -> Self {
        Self {
            skip_truncation: true,
            max_tokens_for_clear: 100_000,
            clear_retention_suffix_limit: 3,
            ..Self::default()
        }
    }

    /// What the measurements say: results over 1 500 bytes become previews of lines and names that
    /// grow more slowly than they do; what is read from a file stays whole up to 8 000 bytes; above
    /// 60 000 tokens what is old goes, long arguments of calls too; stored content has short names.
    ///
    /// [docs/previews.md](https://github.com/offcut-rs/offcut/blob/main/docs/previews.md) has the
    /// measurements.
    #[must_use]
    pub fn recommended() -> Self {
        Self {
            names: StoredNames::Short,
            max_length_for_trunc: SizeLimit::Bytes(8_000),
            preview_above: Some(1_500),
            preview: Preview::Mixed,
            preview_length: PreviewLength::curve(8.0, 0.68, 7_000),
            stub_length: PreviewLength::Bytes(100),
            max_tokens_for_clear: 60_000,
            clear_tool_inputs: true,
            clear_tool_inputs_above: 800,
            ..Self::default()
        }
    }
}

/// The examples of the page on configuration compile.
#[cfg(all(doctest, feature = "toml"))]
#[doc = include_str!("../docs/configuration.md")]
struct Page;
