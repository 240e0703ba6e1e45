//! Types of values in settings.

use std::sync::Arc;

use bytesize::ByteSize;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::BuildError;
use crate::backend::BackendError;
use crate::error::OffloadError;
use crate::report::{Decision, ErrorSource};
#[cfg(feature = "tiktoken")]
use crate::tokens::Encoding;
use crate::tokens::{CountTokens, Estimate};

/// Maximum length of a preview, depending on its text.
///
/// In files a number is bytes, and `{ scale = 8.4, exponent = 0.65, at_most = 7000 }` is a curve.
///
/// ```
/// use offcut::PreviewLength;
/// let curve = PreviewLength::curve(10.0, 0.6, 5_000);
/// assert_eq!([1_000, 10_000, 100_000_000].map(|bytes| curve.bytes_for(bytes)), [630, 2_511, 5_000]);
/// assert_eq!(PreviewLength::from(2_000).bytes_for(10_000), 2_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "write a whole number of bytes, a size such as \"8KB\", or the table { scale = N, exponent = N, at_most = N }"
)]
pub enum PreviewLength {
    /// A fixed number of bytes.
    #[serde(deserialize_with = "size")]
    Bytes(usize),
    /// A curve that grows more slowly than the text: `scale · bytes^exponent`.
    Curve {
        /// More than 0.
        scale: f64,
        /// More than 0, and at most 1.
        exponent: f64,
        /// Maximum length in bytes.
        #[serde(deserialize_with = "size")]
        at_most: usize,
    },
}

impl From<usize> for PreviewLength {
    fn from(bytes: usize) -> Self {
        Self::Bytes(bytes)
    }
}

impl PreviewLength {
    /// A length that grows more slowly than its text.
    #[must_use]
    pub fn curve(scale: f64, exponent: f64, at_most: usize) -> Self {
        Self::Curve {
            scale,
            exponent,
            at_most,
        }
    }

    /// Returns the length in bytes for a text of `text_bytes` bytes.
    #[must_use]
    pub fn bytes_for(self, text_bytes: u64) -> usize {
        match self {
            Self::Bytes(bytes) => bytes,
            // The cast turns NaN into 0.
            Self::Curve {
                scale,
                exponent,
                at_most,
            } => ((scale * (text_bytes as f64).powf(exponent)) as usize).min(at_most),
        }
    }

    /// Returns the length in bytes for the longest text.
    #[must_use]
    pub fn at_most(self) -> usize {
        match self {
            Self::Bytes(at_most) | Self::Curve { at_most, .. } => at_most,
        }
    }

    /// Caps the length at `most` bytes.
    pub(crate) fn capped(mut self, most: usize) -> Self {
        let (Self::Bytes(at_most) | Self::Curve { at_most, .. }) = &mut self;
        *at_most = most.min(*at_most);
        self
    }

    /// Returns true for any number of bytes, and for a curve with a scale above 0 and an exponent
    /// above 0 and at most 1.
    pub(crate) fn is_valid(self) -> bool {
        match self {
            Self::Bytes(_) => true,
            Self::Curve {
                scale, exponent, ..
            } => scale.is_finite() && scale > 0.0 && exponent > 0.0 && exponent <= 1.0,
        }
    }
}

/// Reads a name, or `false` for none, since TOML has no null.
pub(super) fn name_or_false<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "write a tool's name, or false for none")]
    enum Name {
        Given(String),
        Is(bool),
        None,
    }
    match Name::deserialize(from)? {
        Name::Given(name) => Ok(Some(name)),
        Name::Is(false) | Name::None => Ok(None),
        Name::Is(true) => Err(Error::custom("write a tool's name, or false for none")),
    }
}

/// Writes none as `false`. A format without null would leave it out, and the default would be read back.
pub(super) fn or_false<S: Serializer>(name: &Option<String>, to: S) -> Result<S::Ok, S::Error> {
    match name {
        Some(name) => name.serialize(to),
        None => false.serialize(to),
    }
}

/// Reads a size: a number of bytes, or one with a unit, `"8KB"` for 8 000 and `"8KiB"` for 8 192.
pub(super) fn size<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    // The error doesn't repeat the text, which may be a misplaced store URL.
    let size = ByteSize::deserialize(from).map_err(|_| {
        Error::custom("not a size: write a whole number of bytes, or one with a unit, such as \"8KB\" (8000) or \"8KiB\" (8192)")
    })?;
    Ok(usize::try_from(size.as_u64()).unwrap_or(usize::MAX))
}

/// Reads an optional size.
pub(super) fn optional_size<'de, D: Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
    #[derive(Deserialize)]
    struct Size(#[serde(deserialize_with = "size")] usize);
    Ok(Option::<Size>::deserialize(from)?.map(|Size(bytes)| bytes))
}

/// A built-in token counter. Set your own with
/// [`Builder::count_tokens_with`](crate::Builder::count_tokens_with).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TokenCounter {
    /// Encoding of GPT-4o and later models. Needs the feature `tiktoken`.
    #[cfg_attr(feature = "tiktoken", default)]
    O200kBase,
    /// Encoding of GPT-4. Needs the feature `tiktoken`.
    Cl100kBase,
    /// A quarter of the bytes, rounded up: needs no tables and almost no time, but is off by −27 %
    /// on JSON and −26 % on Chinese.
    #[cfg_attr(not(feature = "tiktoken"), default)]
    Estimate,
}

impl TokenCounter {
    /// Builds this counter, for example to count your own texts.
    ///
    /// Names of special tokens in a text count as ordinary text. Loading an encoding's tables takes
    /// about 0.1 s and 45 MB, once for each process. This happens on first use.
    ///
    /// ```
    /// use offcut::TokenCounter;
    /// assert_eq!(TokenCounter::Estimate.build()?.count("a quarter"), 3);
    /// # Ok::<(), offcut::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Support for the counter was not compiled in.
    pub fn build(self) -> Result<Arc<dyn CountTokens>, BuildError> {
        match self {
            Self::Estimate => Ok(Arc::new(Estimate)),
            #[cfg(feature = "tiktoken")]
            Self::O200kBase => Ok(Arc::new(Encoding(tiktoken_rs::o200k_base_singleton))),
            #[cfg(feature = "tiktoken")]
            Self::Cl100kBase => Ok(Arc::new(Encoding(tiktoken_rs::cl100k_base_singleton))),
            #[cfg(not(feature = "tiktoken"))]
            Self::O200kBase | Self::Cl100kBase => Err(BuildError::CounterNotCompiledIn),
        }
    }
}

/// Names of stored content, after `<root_dir>/trunc/` and `<root_dir>/clear/`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StoredNames {
    /// The call's id, as given by the provider.
    #[default]
    CallId,
    /// Six digits computed from the call's id, for ids of over 12 bytes. Most providers' ids are
    /// random and cost about 16 tokens each time; six digits cost 2. If two ids get the same
    /// digits, the second name also gets a digest of its content, as for a repeated id. This is
    /// rare within a conversation, so give each conversation its own
    /// [`session`](crate::ToolReduction::session).
    Short,
}

/// Action when the store fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnOffloadError {
    /// The result stays unchanged; the report and the log say so. Of a stream, up to 16 MiB are kept, or
    /// read back from the writer, and shown. If a write of a longer one fails, or naming it
    /// twice, it is lost except for its preview, and the hint says so.
    #[default]
    KeepOriginal,
    /// A preview that says it was not saved replaces the result. The rest is lost. Texts of users stay.
    PreviewOnly,
    /// The truncation or the pass fails, and nothing is changed.
    Fail,
}

impl OnOffloadError {
    /// The one rule for a store that has failed on a result, which `decision` records: the error that ends the
    /// truncation or pass; otherwise `true` if the original is kept, and `false` if what is not shown is lost.
    pub(crate) fn decide(
        self,
        decision: &mut Decision,
        error: BackendError,
    ) -> Result<bool, OffloadError> {
        decision.fail(ErrorSource::Store, error.to_string());
        self.keeps(&decision.tool, &decision.call_id, error)
    }

    /// Like [`decide`](Self::decide), without a decision.
    pub(crate) fn keeps(
        self,
        tool: &str,
        call_id: &str,
        error: BackendError,
    ) -> Result<bool, OffloadError> {
        match self {
            Self::KeepOriginal => Ok(true),
            Self::PreviewOnly => Ok(false),
            Self::Fail => Err(OffloadError::new(tool, call_id, error)),
        }
    }
}
