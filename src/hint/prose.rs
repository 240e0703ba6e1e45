//! The sentences of hints, put together from what is so.

use super::{Hint, Kind, Position};

/// Every sentence of one language. `{names}` are filled in; each sentence says which it has.
#[derive(Debug)]
pub(crate) struct Prose {
    /// A result over the limit was stored.
    pub(super) truncated: &'static str,
    /// Several texts were stored as one. `{parts}`
    pub(super) joined: &'static str,
    /// A result over the limit was not stored, and only the preview is left.
    pub(super) unsaved: &'static str,
    /// The tool's stream ended with an error. `{bytes}`
    pub(super) interrupted: &'static str,
    /// The original has invalid bytes.
    pub(super) not_utf8: &'static str,
    /// The location is a local file, since the store failed.
    pub(super) local: &'static str,
    /// An old result was stored. `{tool}`
    pub(super) cleared: &'static str,
    /// Old media was stored. `{mime}` `{tool}`
    pub(super) cleared_media: &'static str,
    /// An old link was taken out; the location is the link. `{tool}`
    pub(super) cleared_link: &'static str,
    /// Old arguments were stored. `{tool}`
    pub(super) cleared_arguments: &'static str,
    /// An old result was removed without being stored. `{tool}`
    pub(super) gone: &'static str,
    /// How to read what is stored. `{reader}`
    pub(super) reader: &'static str,
    /// A page of whole lines. `{first}` `{last}`
    pub(super) page: &'static str,
    /// A page of one whole line. `{first}`
    pub(super) page_of_one: &'static str,
    /// A page inside one line. `{first}`
    pub(super) page_in_line: &'static str,
    /// A page behind the end. `{first}`
    pub(super) page_of_nothing: &'static str,
    /// How to get the next page. `{next}`
    pub(super) next: &'static str,
    /// All matching lines. `{count}`
    pub(super) matches: &'static str,
    /// The first matching lines. `{count}` `{next}`
    pub(super) more_matches: &'static str,
}

/// What sentences are made of, beside what the header says.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts<'a> {
    /// The tool whose result it was.
    pub(crate) tool: &'a str,
    /// The reader that can read it, if hints name one.
    pub(crate) reader: Option<&'a str>,
    /// The media type of what was cleared, if it was no text.
    pub(crate) mime: Option<&'a str>,
    /// How many texts were joined.
    pub(crate) parts: usize,
    /// Whether it is a call's arguments that were cleared.
    pub(crate) is_arguments: bool,
}

/// Longer tool names are cut in hints: a model wrote them.
const MAX_TOOL: usize = 64;

impl Prose {
    /// The sentences for a hint that truncation or clearing wrote.
    pub(crate) fn of_hint(&self, hint: &Hint, facts: Facts<'_>) -> String {
        let tool = facts.tool.get(..facts.tool.floor_char_boundary(MAX_TOOL)).unwrap_or_default();
        let (parts, bytes) = (facts.parts.to_string(), hint.bytes.to_string());
        let values = [
            ("tool", if tool.is_empty() { "?" } else { tool }),
            ("mime", facts.mime.unwrap_or_default()),
            ("reader", facts.reader.unwrap_or_default()),
            ("parts", &parts),
            ("bytes", &bytes),
        ];
        let is_stored = hint.location.is_some();
        let mut said = vec![match hint.kind {
            Kind::Link => self.cleared_link,
            Kind::Cleared if !is_stored => self.gone,
            Kind::Cleared if facts.is_arguments => self.cleared_arguments,
            Kind::Cleared if facts.mime.is_some() => self.cleared_media,
            Kind::Cleared => self.cleared,
            _ if !is_stored => self.unsaved,
            _ => self.truncated,
        }];
        let notes = [
            (self.local, hint.notes.local),
            (self.joined, hint.notes.joined),
            (self.interrupted, hint.notes.interrupted),
            (self.not_utf8, hint.notes.not_utf8),
            (self.reader, is_stored && hint.kind != Kind::Link && facts.reader.is_some()),
        ];
        said.extend(notes.into_iter().filter_map(|(sentence, is_so)| is_so.then_some(sentence)));
        self.join(&said, &values)
    }

    /// The sentences for a page from `from` to the place before `next`. `last` is the last line that it shows some of.
    pub(crate) fn of_page(&self, from: Position, last: u64, next: Option<Position>, is_empty: bool) -> String {
        let first = from.line.to_string();
        let last_line = last.to_string();
        let next_offset = next.map(|next| next.to_string());
        let values =
            [("first", first.as_str()), ("last", &last_line), ("next", next_offset.as_deref().unwrap_or_default())];
        let is_inside_a_line = last == from.line && (from.byte > 0 || next.is_some_and(|next| next.line == last));
        let mut said = vec![match () {
            () if is_empty => self.page_of_nothing,
            () if is_inside_a_line => self.page_in_line,
            () if last == from.line => self.page_of_one,
            () => self.page,
        }];
        said.extend(next.map(|_| self.next));
        self.join(&said, &values)
    }

    /// The sentences for `count` matching lines; `next` is where to look for more.
    pub(crate) fn of_matches(&self, count: u64, next: Option<Position>) -> String {
        let count = count.to_string();
        let next_offset = next.map(|next| next.to_string());
        let sentence = if next.is_some() { self.more_matches } else { self.matches };
        self.join(&[sentence], &[("count", &count), ("next", next_offset.as_deref().unwrap_or_default())])
    }

    /// Chinese sentences follow each other without a space.
    fn join(&self, sentences: &[&str], values: &[(&str, &str)]) -> String {
        let space = if self.truncated.is_ascii() { " " } else { "" };
        sentences.iter().map(|sentence| fill(sentence, values)).collect::<Vec<_>>().join(space)
    }
}

/// `template` with each `{name}` filled in, in one pass: braces in the values are text.
fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(template.len() + 16);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let value = after.split_once('}').and_then(|(name, tail)| {
            let (_, value) = values.iter().find(|(known, _)| *known == name)?;
            Some((*value, tail))
        });
        match value {
            Some((value, tail)) => {
                out.push_str(value);
                rest = tail;
            }
            None => {
                out.push('{');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Location;
    use crate::hint::{Language, Notes};

    /// Everything that a hint can say, in one language.
    fn all_that_is_said(language: Language) -> String {
        let prose = language.prose();
        let stored = Some(Location::new("/x/trunc/a"));
        let facts = Facts { tool: "grep", reader: Some("read_file"), parts: 12, ..Facts::default() };
        let say = |kind, location: Option<Location>, notes, facts| {
            prose.of_hint(&Hint { location, notes, ..Hint::new(kind, 5) }, facts)
        };
        let none = Notes::default();
        let all = Notes { local: true, interrupted: true, not_utf8: true, joined: true };
        let at = |line, byte| Position { line, byte };
        [
            say(Kind::Truncated, stored.clone(), none, facts),
            say(Kind::Truncated, stored.clone(), none, Facts { reader: None, ..facts }),
            say(Kind::Truncated, stored.clone(), all, facts),
            say(Kind::Truncated, None, none, facts),
            say(Kind::Cleared, stored.clone(), none, facts),
            say(Kind::Cleared, stored.clone(), none, Facts { tool: "", reader: None, ..facts }),
            say(Kind::Cleared, stored.clone(), none, Facts { mime: Some("image/png"), ..facts }),
            say(Kind::Cleared, stored.clone(), none, Facts { is_arguments: true, ..facts }),
            say(Kind::Cleared, None, none, facts),
            say(Kind::Link, stored, none, facts),
            prose.of_page(at(1, 0), 40, Some(at(41, 0)), false),
            prose.of_page(at(41, 0), 60, None, false),
            prose.of_page(at(61, 0), 61, Some(at(62, 0)), false),
            prose.of_page(at(1, 4000), 1, Some(at(1, 8000)), false),
            prose.of_page(at(99, 0), 99, None, true),
            prose.of_matches(7, None),
            prose.of_matches(7, Some(at(812, 0))),
        ]
        .join("\n")
    }

    #[test]
    fn h2_what_is_said_in_english() {
        insta::assert_snapshot!(all_that_is_said(Language::English), @"
        Stored in full. Read it with read_file.
        Stored in full.
        Stored in full. The store failed, so this is a file on the agent's machine. It was 12 texts; the first stored line gives their lengths. The tool's output broke off after 5 bytes. It is not UTF-8; � stands for invalid bytes. Read it with read_file.
        It could not be stored; what is not shown is lost.
        Old result of grep. Read it with read_file.
        Old result of ?.
        Old image/png from grep. Read it with read_file.
        Old arguments of grep. Read it with read_file.
        Old result of grep, removed and not stored. Call grep again if you need it.
        Old link from grep.
        Lines 1-40. Go on with offset 41.
        Lines 41-60.
        Line 61. Go on with offset 62.
        Part of line 1. Go on with offset 1+8000.
        Nothing from line 99 on.
        Matching lines: 7.
        Matching lines so far: 7. Go on with offset 812.
        ");
    }

    #[test]
    fn h2_what_is_said_in_chinese() {
        insta::assert_snapshot!(all_that_is_said(Language::Chinese), @"
        已完整存储。可用 read_file 读取。
        已完整存储。
        已完整存储。存储失败，此为智能体所在机器上的文件。原为 12 段文本，存储内容的首行列出各段长度。工具输出在 5 字节后中断。内容不是 UTF-8，� 代表无效字节。可用 read_file 读取。
        内容未能保存，未显示的部分已丢失。
        grep 的旧结果。可用 read_file 读取。
        ? 的旧结果。
        grep 返回的旧 image/png。可用 read_file 读取。
        grep 的旧参数。可用 read_file 读取。
        grep 的旧结果已移除且未保存，如有需要请重新调用 grep。
        grep 返回的旧链接。
        第 1-40 行。续读请用 offset 41。
        第 41-60 行。
        第 61 行。续读请用 offset 62。
        第 1 行的一部分。续读请用 offset 1+8000。
        从第 99 行起没有内容。
        匹配行数：7。
        目前匹配行数：7。续读请用 offset 812。
        ");
    }

    #[test]
    fn h2_both_languages_fill_in_the_same() {
        let placeholders = |language| {
            let text = format!("{:?}", Language::prose(language));
            let names = text.split('{').skip(2).filter_map(|rest| rest.split_once('}'));
            let mut names: Vec<String> = names.map(|(name, _)| name.to_owned()).collect();
            names.sort();
            names
        };
        // Chinese says {tool} as often as English does, sentence by sentence.
        assert_eq!(placeholders(Language::English), placeholders(Language::Chinese));
    }

    #[test]
    fn what_is_filled_in_is_not_filled_in_again() {
        assert_eq!(fill("{a} {b} {c {a}", &[("a", "{b}"), ("b", "x")]), "{b} x {c {b}");
    }
}
