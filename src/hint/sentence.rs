//! The sentences of hints: their placeholders, and their words in each language.

use serde::{Deserialize, Serialize};

/// Language of the sentences in hints. Set for each instance, never for the process.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Language {
    /// English.
    #[default]
    #[serde(alias = "en")]
    English,
    /// Simplified Chinese.
    #[serde(alias = "zh")]
    Chinese,
}

impl Language {
    /// All languages, in the order of their declaration.
    pub const ALL: [Self; 2] = [Self::English, Self::Chinese];

    /// Its name in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::English => "english",
            Self::Chinese => "chinese",
        }
    }

    /// Returns the built-in sentence in this language.
    #[must_use]
    pub fn sentence(self, sentence: Sentence) -> &'static str {
        sentence.row().words[self as usize]
    }
}

const ALL: &[&str] = &["tool", "bytes", "location"];
const STORED: &[&str] = &["bytes", "location"];

/// Declares the sentences, one a row: its name in settings, its required and optional placeholders,
/// and its words, in the order of [`Language::ALL`].
macro_rules! sentences {
    ($($(#[$doc:meta])* $sentence:ident = $name:literal, $required:expr, $optional:expr, $($words:literal),*;)*) => {
        /// A sentence in hints. `offcut::Settings::templates` replaces them.
        ///
        /// A template contains each [`required`](Self::required) placeholder of the sentence once, and
        /// each [`optional`](Self::optional) one at most once. It writes braces as `{{` and `}}`.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
        )]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum Sentence {
            $($(#[$doc])* $sentence,)*
        }

        impl Sentence {
            /// All sentences.
            pub const ALL: &[Self] = &[$(Self::$sentence),*];

            pub(super) fn row(self) -> &'static Row {
                &ROWS[self as usize]
            }
        }

        const ROWS: &[Row] = &[$(Row {
            name: $name,
            required: $required,
            optional: $optional,
            words: [$($words),*],
        }),*];
    };
}

/// The declaration of a row.
pub(super) struct Row {
    name: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
    /// In the order of [`Language::ALL`].
    pub(super) words: [&'static str; 2],
}

sentences! {
    /// A result over the limit was stored.
    Truncated = "truncated", &[], ALL,
        "Stored in full.", "已完整存储。";
    /// Several texts were stored as one.
    Joined = "joined", &["parts"], ALL,
        "It was {parts} texts; the last stored line gives their lengths.", "原为 {parts} 段文本，存储内容的末行列出各段长度。";
    /// A result over the limit was not stored, and only the preview is left.
    Unsaved = "unsaved", &[], &["tool", "bytes"],
        "It could not be stored; what is not shown is lost.", "内容未能保存，未显示的部分已丢失。";
    /// The tool's stream ended with an error.
    Interrupted = "interrupted", &["bytes"], &["tool", "location"],
        "The tool's output broke off after {bytes} bytes.", "工具输出在 {bytes} 字节后中断。";
    /// The original has invalid bytes.
    NotUtf8 = "not_utf8", &[], ALL,
        "It is not UTF-8; \u{fffd} stands for invalid bytes.", "内容不是 UTF-8，\u{fffd} 代表无效字节。";
    /// An old result was stored.
    Cleared = "cleared", &["tool"], STORED,
        "Old result of {tool}.", "{tool} 的旧结果。";
    /// Old media was stored.
    ClearedMedia = "cleared_media", &["mime", "tool"], STORED,
        "Old {mime} from {tool}.", "{tool} 返回的旧 {mime}。";
    /// An old link was removed; the location is the link.
    ClearedLink = "cleared_link", &["tool"], &["location"],
        "Old link from {tool}.", "{tool} 返回的旧链接。";
    /// Old arguments were stored.
    ClearedArguments = "cleared_arguments", &["tool"], STORED,
        "Old arguments of {tool}.", "{tool} 的旧参数。";
    /// A long text of a user was stored.
    ClearedUserText = "cleared_user_text", &[], STORED,
        "Old text of the user.", "用户的旧文本。";
    /// An old result was removed without being stored.
    Gone = "gone", &["tool"], &["bytes"],
        "Old result of {tool}, removed and not stored. Call it again if you need it.", "{tool} 的旧结果已移除且未保存，如有需要请重新调用。";
    /// The tool that reads the stored content.
    Reader = "reader", &["reader"], ALL,
        "Read it with {reader}.", "可用 {reader} 读取。";
    /// A page of lines, the first and the last maybe in part.
    Page = "page", &["first", "last"], &[],
        "Lines {first}-{last}.", "第 {first}-{last} 行。";
    /// A page past the end.
    PageOfNothing = "page_of_nothing", &["first"], &[],
        "No lines from {first} on.", "从第 {first} 行起没有内容。";
    /// The offset of the next page.
    Next = "next", &["next"], &[],
        "Continue with offset {next}.", "续读请用 offset {next}。";
    /// All matching lines.
    Matches = "matches", &["count"], &[],
        "Matching lines: {count}.", "匹配行数：{count}。";
    /// All matching lines, and the matches in them, which are more.
    SeveralMatches = "several_matches", &["count", "matches"], &[],
        "Matching lines: {count}, matches: {matches}.", "匹配行数：{count}，匹配数：{matches}。";
    /// The first matching lines, and the offset of more.
    MoreMatches = "more_matches", &["count", "next"], &[],
        "Matching lines so far: {count}. Continue with offset {next}.", "目前匹配行数：{count}。续读请用 offset {next}。";
}

impl Sentence {
    /// Placeholders that a template of the sentence must contain.
    #[must_use]
    pub fn required(self) -> &'static [&'static str] {
        self.row().required
    }

    /// Further placeholders that it may contain: `{tool}` is the tool's name, `{bytes}` the
    /// original's length, `{location}` the original's location.
    #[must_use]
    pub fn optional(self) -> &'static [&'static str] {
        self.row().optional
    }

    /// Its name in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }
}
