//! The sentences in Chinese.

use super::prose::Prose;

pub(super) const CHINESE: Prose = Prose {
    truncated: "已完整存储。",
    joined: "原为 {parts} 段文本，存储内容的首行列出各段长度。",
    unsaved: "内容未能保存，未显示的部分已丢失。",
    interrupted: "工具输出在 {bytes} 字节后中断。",
    not_utf8: "内容不是 UTF-8，\u{fffd} 代表无效字节。",
    local: "存储失败，此为智能体所在机器上的文件。",
    cleared: "{tool} 的旧结果。",
    cleared_media: "{tool} 返回的旧 {mime}。",
    cleared_link: "{tool} 返回的旧链接。",
    cleared_arguments: "{tool} 的旧参数。",
    gone: "{tool} 的旧结果已移除且未保存，如有需要请重新调用 {tool}。",
    reader: "可用 {reader} 读取。",
    page: "第 {first}-{last} 行。",
    page_of_one: "第 {first} 行。",
    page_in_line: "第 {first} 行的一部分。",
    page_of_nothing: "从第 {first} 行起没有内容。",
    next: "续读请用 offset {next}。",
    matches: "匹配行数：{count}。",
    more_matches: "目前匹配行数：{count}。续读请用 offset {next}。",
};
