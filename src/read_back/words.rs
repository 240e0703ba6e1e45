//! The words of the reader in each language: its description and its errors. Models read them.

use crate::backend::{BackendError, ErrorKind};
use crate::content::ToolError;
use crate::hint::Language;

/// The description of the reader and of its parameters.
pub(super) struct Description {
    pub(super) tool: &'static str,
    pub(super) path: &'static str,
    pub(super) offset: &'static str,
    pub(super) limit: &'static str,
    pub(super) pattern: &'static str,
    pub(super) context: &'static str,
    pub(super) count: &'static str,
    pub(super) query: &'static str,
}

/// In the order of [`Language::ALL`].
pub(super) const DESCRIPTIONS: [Description; Language::ALL.len()] = [ENGLISH, CHINESE];

const ENGLISH: Description = Description {
    tool: "Read a stored tool result. `path` is the location in a hint such as [offcut/1 truncated … \"path\"]. \
           Shows a page from line `offset` on, the lines that match `pattern`, or what `query` prints.",
    path: "The location, exactly as the hint shows it.",
    offset: "The first line, from 1; negative numbers count from the end. \
             \"12+4000\" starts at byte 4000 of line 12. Default: 1.",
    limit: "The most lines. Default: as many as fit.",
    pattern: "A regular expression without look-around, e.g. (?i)error|failed, (?s)from.*?to.",
    context: "Lines to show around each match of `pattern`.",
    count: "Only count matching lines and matches.",
    query: "A jq filter, e.g. map(select(.price < 100)) | sort_by(.price). `.` is the JSON; an array of \
            records for JSON Lines, CSV and tables; an array of lines for other text.",
};

const CHINESE: Description = Description {
    tool: "读取已存储的工具结果。`path` 为 [offcut/1 truncated … \"path\"] 这类提示中的位置。\
           从第 `offset` 行起显示一页，或显示匹配 `pattern` 的行，或显示 `query` 的输出。",
    path: "提示中的位置，原样填写。",
    offset: "起始行号，从 1 起；负数从末尾数。\"12+4000\" 指第 12 行偏移 4000 字节处。默认 1。",
    limit: "最多行数。默认尽可能多。",
    pattern: "不含环视的正则表达式，如 (?i)error|failed、(?s)from.*?to。",
    context: "每处匹配前后显示的行数。",
    count: "只显示匹配行数与次数。",
    query: "jq 过滤器，如 map(select(.price < 100)) | sort_by(.price)。`.` 为 JSON；\
            JSON Lines、CSV 和表格为记录的数组；其他文本为行的数组。",
};

/// Reason for refusing a call of the reader, in English.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(
    not(feature = "query"),
    expect(dead_code, reason = "nothing runs queries then")
)]
pub(super) enum Refusal {
    #[error("the arguments are invalid JSON ({0}): pass {{\"path\": \"…\"}}")]
    InvalidArguments(serde_json::Error),
    #[error("`path` is missing: pass the location that a hint shows")]
    NoPath,
    /// The name of an argument that must be a text.
    #[error("`{0}` must be a text in quotes")]
    NotText(&'static str),
    #[error(
        "`offset` must be a line number, such as 12 or -5, or \"LINE+BYTE\" as a page shows it"
    )]
    InvalidOffset,
    /// The name of an argument that must be a number of lines, and the least of them.
    #[error("`{0}` must be a number of lines, {1} or more")]
    NotLines(&'static str, u64),
    /// The path is not a location of this session.
    #[error("`path` is not a stored result of this conversation: copy it exactly from a hint")]
    UnknownPath,
    #[error("nothing is stored at `path`: copy it from a hint, or call the tool again")]
    Gone(#[source] BackendError),
    #[error("the store failed: try again, or call the tool again if you need its result")]
    Store(#[source] BackendError),
    /// The stored media is too large.
    #[error("the file at `path` is too large: do not retry")]
    TooLarge,
    #[error("`pattern` is not a supported regular expression: {0}")]
    InvalidPattern(regex::Error),
    /// A pattern or a query with an offset from the end.
    #[error("`offset` can't be negative with `pattern` or `query`: pass 1 or more")]
    NegativeOffset,
    #[error(
        "`pattern` takes too long to search: simplify it, avoid counts such as `{{100}}`, or omit it"
    )]
    SlowPattern,
    #[error("pass either `pattern` or `query`")]
    PatternAndQuery,
    #[error("this program answers no `query`: pass `pattern` or `offset`")]
    NoQueries,
    #[error("`query` is too long: pass at most 4 KiB")]
    LongQuery,
    /// The text is not a query, or the query does not fit the result, as this says.
    #[error("`query` failed: {0}")]
    FailedQuery(String),
    /// Of time, memory or depth.
    #[error(
        "`query` takes too much time, memory or depth: select fewer records first, go through them with \
         .[] or reduce inputs as $record (…; …), or pass `pattern`"
    )]
    CostlyQuery,
    /// The result is one JSON value that is too long.
    #[error("this result is one JSON value too long for a query: pass `pattern`")]
    LongJson,
    /// The result is too long for `.`.
    #[error(
        "this result is too long for `.`: go through its records with `inputs`, e.g. \
         inputs | select(.level == \"error\"), or reduce inputs as $record (0; . + $record.size)"
    )]
    NeedsInputs,
}

impl From<BackendError> for Refusal {
    fn from(error: BackendError) -> Self {
        match error.kind() {
            ErrorKind::NotFound => Self::Gone(error),
            _ => Self::Store(error),
        }
    }
}

impl Refusal {
    /// The error for the model.
    pub(super) fn into_error(self, language: Language) -> ToolError {
        let words = match language {
            Language::English => self.to_string(),
            Language::Chinese => self.chinese(),
        };
        match self {
            Self::Gone(source) | Self::Store(source) => ToolError::new(words).with_source(source),
            _ => ToolError::new(words),
        }
    }

    fn chinese(&self) -> String {
        match self {
            Self::InvalidArguments(error) => {
                return format!("参数不是有效的 JSON（{error}）：请传入 {{\"path\": \"…\"}}");
            }
            Self::NotText(name) => return format!("`{name}` 须为带引号的文本"),
            Self::InvalidPattern(error) => {
                return format!("`pattern` 不是受支持的正则表达式：{error}");
            }
            Self::NotLines(name, least) => return format!("`{name}` 须为行数，至少为 {least}"),
            Self::FailedQuery(why) => return format!("`query` 执行失败：{why}"),
            Self::NoQueries => "本程序不支持 `query`：请改用 `pattern` 或 `offset`",
            Self::PatternAndQuery => "`pattern` 和 `query` 只能传其一",
            Self::NoPath => "缺少 `path`：请填写提示中的位置",
            Self::InvalidOffset => "`offset` 须为行号，如 12 或 -5，或页面所示的 \"LINE+BYTE\"",
            Self::UnknownPath => "`path` 不是本次对话中存储的结果：请原样复制提示中的位置",
            Self::Gone(_) => "`path` 处没有存储内容：请原样复制提示中的位置，或重新调用该工具",
            Self::Store(_) => "读取存储失败：请重试，或重新调用该工具以获取结果",
            Self::TooLarge => "`path` 处的文件过大：请勿重试",
            Self::NegativeOffset => "使用 `pattern` 或 `query` 时 `offset` 不能为负：请填 1 或更大",
            Self::SlowPattern => "`pattern` 搜索耗时过长：请简化，避免 `{100}` 这类次数，或省略它",
            Self::LongQuery => "`query` 过长：最多 4 KiB",
            Self::CostlyQuery => {
                "`query` 耗时、占用内存过多或层级过深：请先筛选记录，用 .[] 或 reduce inputs as $record (…; …) \
                 逐条处理，或改用 `pattern`"
            }
            Self::NeedsInputs => {
                "该结果过长，不能使用 `.`：请用 `inputs` 逐条处理，如 inputs | select(.level == \"error\")，\
                 或 reduce inputs as $record (0; . + $record.size)"
            }
            Self::LongJson => "该结果是一个过长的 JSON 值，无法查询：请改用 `pattern`",
        }
        .to_owned()
    }
}
