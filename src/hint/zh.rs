//! The sentences in Chinese.

use crate::hint::sentence::{Sentence, Words};

pub(crate) const CHINESE: Words = Words {
    sentence: chinese,
    tool: "未命名工具",
    media: "媒体",
    space: "",
};

fn chinese(sentence: Sentence) -> &'static str {
    match sentence {
        Sentence::Truncated => "已完整存储。",
        Sentence::Joined => "原为 {parts} 段文本，存储内容的末行列出各段长度。",
        Sentence::Unsaved => "内容未能保存，未显示的部分已丢失。",
        Sentence::Interrupted => "工具输出在 {bytes} 字节后中断。",
        Sentence::NotUtf8 => "内容不是 UTF-8，\u{fffd} 代表无效字节。",
        Sentence::Cleared => "{tool} 的旧结果。",
        Sentence::ClearedMedia => "{tool} 返回的旧 {mime}。",
        Sentence::ClearedLink => "{tool} 返回的旧链接。",
        Sentence::ClearedArguments => "{tool} 的旧参数。",
        Sentence::ClearedUserText => "用户的旧文本。",
        Sentence::Gone => "{tool} 的旧结果已移除且未保存，如有需要请重新调用。",
        Sentence::Reader => "可用 {reader} 读取。",
        Sentence::Page => "第 {first}-{last} 行。",
        Sentence::PageOfOne => "第 {first} 行。",
        Sentence::PageInLine => "第 {first} 行的一部分。",
        Sentence::PageOfNothing => "从第 {first} 行起没有内容。",
        Sentence::Next => "续读请用 offset {next}。",
        Sentence::Matches => "匹配行数：{count}。",
        Sentence::MoreMatches => "目前匹配行数：{count}。续读请用 offset {next}。",
    }
}
