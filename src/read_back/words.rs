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
}

impl Description {
    pub(super) fn of(language: Language) -> &'static Self {
        &DESCRIPTIONS[language as usize]
    }
}

/// In the order of [`Language::ALL`].
const DESCRIPTIONS: [Description; Language::ALL.len()] = [ENGLISH, CHINESE];

const ENGLISH: Description = Description {
    tool: "Read a stored tool result. `path` is the location in a hint such as [offcut/1 truncated … \"path\"]. \
           Shows one page starting at line `offset`, or the lines that match `pattern`.",
    path: "The location, exactly as the hint shows it.",
    offset: "The first line, counted from 1; negative numbers count from the end. \
             \"12+4000\" starts at byte 4000 of line 12. Default: 1.",
    limit: "The maximum number of lines. Default: as many as fit.",
    pattern: "A regular expression; only matching lines are shown.",
};

const CHINESE: Description = Description {
    tool: "读取已存储的工具结果。`path` 为 [offcut/1 truncated … \"path\"] 这类提示中的位置。\
           从第 `offset` 行起显示一页，或显示匹配 `pattern` 的行。",
    path: "提示中的位置，须原样填写。",
    offset: "起始行号，从 1 起；负数从末尾数。\"12+4000\" 指第 12 行偏移 4000 字节处。默认 1。",
    limit: "最多显示的行数。默认尽可能多。",
    pattern: "正则表达式：只显示匹配的行。",
};

/// Reason for refusing a call of the reader.
#[derive(Debug)]
pub(super) enum Refusal {
    InvalidArguments(serde_json::Error),
    /// An argument of another name, and the one that was meant.
    Misnamed {
        given: String,
        meant: &'static str,
    },
    NoPath,
    InvalidOffset,
    InvalidLimit,
    /// The path is not a location of this session.
    UnknownPath,
    Store(BackendError),
    /// The stored media is too large.
    TooLarge,
    InvalidPattern(regex::Error),
    /// A pattern with an offset from the end.
    NegativeOffset,
    SlowPattern,
}

impl Refusal {
    /// The error for the model.
    pub(super) fn into_error(self, language: Language) -> ToolError {
        // In the order of `Language::ALL`.
        let words: [fn(&Self) -> String; Language::ALL.len()] = [Self::english, Self::chinese];
        let error = ToolError::new(words[language as usize](&self));
        match self {
            Self::Store(source) => error.with_source(source),
            _ => error,
        }
    }

    fn english(&self) -> String {
        match self {
            Self::InvalidArguments(error) => {
                return format!(
                    "the arguments are invalid JSON ({error}): pass {{\"path\": \"…\"}}"
                );
            }
            Self::Misnamed { given, meant } => {
                return format!(
                    "there is no argument {given:?}: did you mean `{meant}`? There are `path`, `offset` (the first \
                     line), `limit` (the most lines) and `pattern`"
                );
            }
            Self::InvalidPattern(error) => {
                return format!("`pattern` is not a supported regular expression: {error}");
            }
            Self::NoPath => "`path` is missing: pass the location that a hint shows",
            Self::InvalidOffset => {
                "`offset` must be a line number, such as 12 or -5, or \"LINE+BYTE\" as a page shows it"
            }
            Self::InvalidLimit => "`limit` must be a number of lines, 1 or more",
            Self::UnknownPath => {
                "`path` is not a stored result of this conversation: copy it exactly from a hint"
            }
            Self::Store(error) if error.kind() == ErrorKind::NotFound => {
                "the result at `path` is no longer stored: call the tool again if you need it"
            }
            Self::Store(_) => {
                "the store failed: try again, or call the tool again if you need its result"
            }
            Self::TooLarge => "the file at `path` is too large: do not retry",
            Self::NegativeOffset => {
                "`offset` can't be negative with `pattern`: pass 1 or more"
            }
            Self::SlowPattern => {
                "`pattern` takes too long to search: simplify it, avoid counts such as `{100}`, or omit it"
            }
        }
        .to_owned()
    }

    fn chinese(&self) -> String {
        match self {
            Self::InvalidArguments(error) => {
                return format!("参数不是有效的 JSON（{error}）：请传入 {{\"path\": \"…\"}}");
            }
            Self::Misnamed { given, meant } => {
                return format!(
                    "没有参数 {given:?}，是否指 `{meant}`？可用参数：`path`、`offset`（首行）、\
                     `limit`（最多行数）和 `pattern`"
                );
            }
            Self::InvalidPattern(error) => {
                return format!("`pattern` 不是受支持的正则表达式：{error}");
            }
            Self::NoPath => "缺少 `path`：请填写提示中的位置",
            Self::InvalidOffset => "`offset` 须为行号，如 12 或 -5，或页面所示的 \"LINE+BYTE\"",
            Self::InvalidLimit => "`limit` 须为行数，至少为 1",
            Self::UnknownPath => "`path` 不是本次对话中存储的结果：请原样复制提示中的位置",
            Self::Store(error) if error.kind() == ErrorKind::NotFound => {
                "`path` 处的结果已不再保存：如有需要请重新调用该工具"
            }
            Self::Store(_) => "读取存储失败：请重试，或重新调用该工具以获取结果",
            Self::TooLarge => "`path` 处的文件过大：请勿重试",
            Self::NegativeOffset => "使用 `pattern` 时 `offset` 不能为负：请填 1 或更大",
            Self::SlowPattern => "`pattern` 搜索耗时过长：请简化，避免 `{100}` 这类次数，或省略它",
        }
        .to_owned()
    }
}
