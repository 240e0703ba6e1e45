//! Settings, their defaults, and how a tool's policy overrides them.

mod error;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::backend::Backend;
use crate::hint::Language;
use crate::preview::Preview;

pub use error::BuildError;

/// Everything that can be set and is data. Callbacks and backends are set on the [`Builder`](crate::Builder).
///
/// # Default
///
/// - `root_dir`: empty
/// - `skip_truncation`, `skip_clear`: false
/// - `read_file_tool_name`: `read_file`
/// - `max_length_for_trunc`: 50 000 bytes
/// - `preview`: head and tail
/// - `preview_length`: 8 000 bytes
/// - `stub_length`: 0 bytes
/// - `trunc_exclude_tools`, `clear_exclude_tools`: empty
/// - `token_counter`: o200k_base with the feature `tiktoken`, else the estimate
/// - `max_tokens_for_clear`: 30 000 tokens
/// - `clear_retention_suffix_limit`: 1 round
/// - `clear_at_least_tokens`: 0 tokens
/// - `clear_target_tokens`: none
/// - `clear_tool_inputs`: false
/// - `keep_errors`: true
/// - `on_offload_error`: keep the original
/// - `language`: English
/// - `tool_config`: empty
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Settings {
    /// Prefix of everything that is stored, under the backend's own root: `<root_dir>/trunc/<id>`. Up to 8 safe segments, see
    /// [`Key`](crate::backend::Key).
    pub root_dir: String,
    /// Results are never truncated.
    pub skip_truncation: bool,
    /// The clear pass does nothing.
    pub skip_clear: bool,
    /// The reader that hints name. `None` names no tool.
    pub read_file_tool_name: Option<String>,
    /// A result is truncated when the bytes of its texts, all together, are strictly more.
    pub max_length_for_trunc: Limit,
    /// How a text is previewed.
    pub preview: Preview,
    /// The bytes that the preview of a truncated result may take, marks included.
    pub preview_length: usize,
    /// The bytes that the preview of a cleared result may take, marks included.
    pub stub_length: usize,
    /// Tools whose results are never truncated.
    pub trunc_exclude_tools: Vec<String>,
    /// Tools whose results are never cleared.
    pub clear_exclude_tools: Vec<String>,
    /// What counts tokens.
    pub token_counter: TokenCounter,
    /// The clear pass acts when the tokens of all messages and tool schemas are strictly more.
    pub max_tokens_for_clear: u64,
    /// How many of the newest rounds stay. Results that the model has not answered stay in any case, so in a loop that runs the
    /// pass before each call, where the newest round is not answered yet, 0 and 1 keep the same.
    pub clear_retention_suffix_limit: usize,
    /// A pass that would free fewer tokens does nothing.
    pub clear_at_least_tokens: u64,
    /// The pass clears oldest first until so many tokens, or fewer, are left; `None` clears every candidate.
    pub clear_target_tokens: Option<u64>,
    /// The arguments of old calls are stored and replaced too.
    pub clear_tool_inputs: bool,
    /// Results that are marked as errors are not cleared, up to `preview_length` bytes each.
    pub keep_errors: bool,
    /// What to do when the store fails.
    pub on_offload_error: OnOffloadError,
    /// The language of the sentences in hints.
    pub language: Language,
    /// What is different for single tools, by name.
    pub tool_config: BTreeMap<String, ToolPolicy>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            root_dir: String::new(),
            skip_truncation: false,
            skip_clear: false,
            read_file_tool_name: Some("read_file".into()),
            max_length_for_trunc: Limit::Bytes(50_000),
            preview: Preview::HeadTail,
            preview_length: 8_000,
            stub_length: 0,
            trunc_exclude_tools: Vec::new(),
            clear_exclude_tools: Vec::new(),
            token_counter: TokenCounter::default(),
            max_tokens_for_clear: 30_000,
            clear_retention_suffix_limit: 1,
            clear_at_least_tokens: 0,
            clear_target_tokens: None,
            clear_tool_inputs: false,
            keep_errors: true,
            on_offload_error: OnOffloadError::KeepOriginal,
            language: Language::English,
            tool_config: BTreeMap::new(),
        }
    }
}

impl Settings {
    /// Eino's documented defaults: the same as [`Settings::default`], but for its token estimate.
    #[must_use]
    pub fn eino() -> Self {
        Self { token_counter: TokenCounter::Estimate, ..Self::default() }
    }

    /// What the measurements say: results over 8 000 bytes are cut to 2 000, and what is old is cleared above 60 000 tokens.
    ///
    /// Replayed over 74 public agent transcripts with a prompt cache, that costs 47 % of doing nothing, and 61 % with the reads
    /// that it causes; the documented defaults of Eino cost 48 % and 66 %.
    #[must_use]
    pub fn recommended() -> Self {
        Self {
            max_length_for_trunc: Limit::Bytes(8_000),
            preview_length: 2_000,
            max_tokens_for_clear: 60_000,
            ..Self::default()
        }
    }
}

/// A length that must not be exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Limit {
    /// Bytes of UTF-8.
    Bytes(usize),
    /// Tokens, by the configured counter.
    Tokens {
        /// How many.
        tokens: u64,
    },
}

impl From<usize> for Limit {
    fn from(bytes: usize) -> Self {
        Self::Bytes(bytes)
    }
}

impl Limit {
    /// A limit in tokens.
    #[must_use]
    pub fn tokens(tokens: u64) -> Self {
        Self::Tokens { tokens }
    }

    /// So many bytes are never over the limit: a token is at least a byte.
    pub(crate) fn safe_bytes(self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Tokens { tokens } => usize::try_from(tokens).unwrap_or(usize::MAX),
        }
    }
}

/// What counts tokens, by name. A counter of your own is set with [`Builder::count_tokens_with`](crate::Builder::count_tokens_with).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TokenCounter {
    /// GPT-4o's encoding and later. Needs the feature `tiktoken`.
    #[cfg_attr(feature = "tiktoken", default)]
    O200kBase,
    /// GPT-4's encoding. Needs the feature `tiktoken`.
    Cl100kBase,
    /// A quarter of the bytes, rounded up.
    #[cfg_attr(not(feature = "tiktoken"), default)]
    Estimate,
}

/// What to do when the store fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnOffloadError {
    /// The result stays as it is; report and log say so. Of a stream that has left memory already, up to 16 MiB are read back from
    /// the writer and shown; a longer one is lost but for its preview, and the hint says so.
    #[default]
    KeepOriginal,
    /// The result is replaced by a preview that says it was not saved. What is not shown is lost.
    PreviewOnly,
    /// The truncation or the pass fails, and nothing is changed.
    Fail,
}

/// What is different for one tool. What is `None` is inherited from the [`Settings`], field by field.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolPolicy {
    /// Where this tool's results are stored.
    #[serde(skip)]
    pub backend: Option<Arc<dyn Backend>>,
    /// See [`Settings::skip_truncation`].
    pub skip_truncation: Option<bool>,
    /// See [`Settings::skip_clear`].
    pub skip_clear: Option<bool>,
    /// See [`Settings::max_length_for_trunc`].
    pub max_length_for_trunc: Option<Limit>,
    /// See [`Settings::preview`].
    pub preview: Option<Preview>,
    /// See [`Settings::preview_length`].
    pub preview_length: Option<usize>,
    /// See [`Settings::stub_length`].
    pub stub_length: Option<usize>,
    /// See [`Settings::keep_errors`].
    pub keep_errors: Option<bool>,
}

/// Two policies are equal when they say the same and name the same backend.
impl PartialEq for ToolPolicy {
    fn eq(&self, other: &Self) -> bool {
        // Exhaustive, so that a new field does not compile until somebody decides about it.
        let Self {
            backend,
            skip_truncation,
            skip_clear,
            max_length_for_trunc,
            preview,
            preview_length,
            stub_length,
            keep_errors,
        } = self;
        let same_backend = match (backend, &other.backend) {
            (Some(one), Some(two)) => Arc::ptr_eq(one, two),
            (None, None) => true,
            _ => false,
        };
        same_backend
            && *skip_truncation == other.skip_truncation
            && *skip_clear == other.skip_clear
            && *max_length_for_trunc == other.max_length_for_trunc
            && *preview == other.preview
            && *preview_length == other.preview_length
            && *stub_length == other.stub_length
            && *keep_errors == other.keep_errors
    }
}

impl ToolPolicy {
    /// A policy that inherits everything.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Where this tool's results are stored.
    #[must_use]
    pub fn backend(mut self, backend: impl Backend) -> Self {
        self.backend = Some(Arc::new(backend));
        self
    }

    /// See [`Settings::skip_truncation`].
    #[must_use]
    pub fn skip_truncation(mut self, skip: bool) -> Self {
        self.skip_truncation = Some(skip);
        self
    }

    /// See [`Settings::skip_clear`].
    #[must_use]
    pub fn skip_clear(mut self, skip: bool) -> Self {
        self.skip_clear = Some(skip);
        self
    }

    /// See [`Settings::max_length_for_trunc`].
    #[must_use]
    pub fn max_length_for_trunc(mut self, limit: impl Into<Limit>) -> Self {
        self.max_length_for_trunc = Some(limit.into());
        self
    }

    /// See [`Settings::preview`].
    #[must_use]
    pub fn preview(mut self, preview: Preview) -> Self {
        self.preview = Some(preview);
        self
    }

    /// See [`Settings::preview_length`].
    #[must_use]
    pub fn preview_length(mut self, bytes: usize) -> Self {
        self.preview_length = Some(bytes);
        self
    }

    /// See [`Settings::stub_length`].
    #[must_use]
    pub fn stub_length(mut self, bytes: usize) -> Self {
        self.stub_length = Some(bytes);
        self
    }

    /// See [`Settings::keep_errors`].
    #[must_use]
    pub fn keep_errors(mut self, keep: bool) -> Self {
        self.keep_errors = Some(keep);
        self
    }
}

/// What holds for one tool, with everything inherited.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    pub(crate) backend: Option<Arc<dyn Backend>>,
    pub(crate) truncates: bool,
    pub(crate) clears: bool,
    pub(crate) limit: Limit,
    pub(crate) preview: Preview,
    pub(crate) preview_length: usize,
    pub(crate) stub_length: usize,
    pub(crate) keep_errors: bool,
}

impl Policy {
    /// The policy for the tool `name`; `None` for a tool that nothing is said about.
    pub(crate) fn resolve(settings: &Settings, global: Option<&Arc<dyn Backend>>, name: Option<&str>) -> Self {
        let nothing = ToolPolicy::default();
        let own = name.and_then(|name| settings.tool_config.get(name)).unwrap_or(&nothing);
        let is_in = |list: &[String]| name.is_some_and(|name| list.iter().any(|listed| listed == name));
        Self {
            backend: own.backend.as_ref().or(global).cloned(),
            truncates: !own.skip_truncation.unwrap_or(settings.skip_truncation)
                && !is_in(&settings.trunc_exclude_tools),
            clears: !own.skip_clear.unwrap_or(settings.skip_clear) && !is_in(&settings.clear_exclude_tools),
            limit: own.max_length_for_trunc.unwrap_or(settings.max_length_for_trunc),
            preview: own.preview.unwrap_or(settings.preview),
            preview_length: own.preview_length.unwrap_or(settings.preview_length),
            stub_length: own.stub_length.unwrap_or(settings.stub_length),
            keep_errors: own.keep_errors.unwrap_or(settings.keep_errors),
        }
    }
}
