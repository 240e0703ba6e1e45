//! The sentences of hints, put together from what is so.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{Hint, Kind, Language, Notes, Position, Sentence};
use crate::backend::Location;
use crate::template::Template;

/// Every sentence of one language, as it is or as somebody wants it.
#[derive(Clone, Debug)]
pub(crate) struct Prose {
    language: Language,
    /// In the order of [`Sentence::ALL`].
    sentences: Vec<Template>,
}

/// What is wrong with the template of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WrongTemplate {
    pub(crate) language: Language,
    pub(crate) sentence: Sentence,
    pub(crate) problem: String,
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

/// Longer names of tools and of media types, in bytes, are cut in hints: a model or a tool wrote
/// them.
pub(crate) const MAX_NAME: usize = 64;

/// What is filled in.
type Values<'v> = [(&'v str, &'v str)];

impl Prose {
    /// The sentences as they are.
    pub(crate) fn of(language: Language) -> Self {
        let sentences = Sentence::ALL
            .map(|sentence| Template::parse(language.sentence(sentence)).unwrap_or_default());
        Self {
            language,
            sentences: sentences.into(),
        }
    }

    /// The sentences with some of them replaced.
    pub(crate) fn with(
        language: Language,
        templates: &BTreeMap<Sentence, String>,
    ) -> Result<Self, WrongTemplate> {
        let mut prose = Self::of(language);
        for (sentence, text) in templates {
            let checked = check(*sentence, text);
            prose.sentences[*sentence as usize] = checked.map_err(|problem| WrongTemplate {
                language,
                sentence: *sentence,
                problem,
            })?;
        }
        Ok(prose)
    }

    /// Whether `say` says `text` in these sentences, or in any as they are: a hint stays one when
    /// templates change to others.
    pub(crate) fn is_said(&self, text: &str, say: impl Fn(&Self) -> String) -> bool {
        say(self) == text
            || Language::ALL
                .into_iter()
                .any(|language| say(&Self::of(language)) == text)
    }

    /// The sentences for a hint that truncation or clearing wrote.
    pub(crate) fn of_hint(&self, hint: &Hint, facts: Facts<'_>) -> String {
        let (tool, mime) = (head(facts.tool), facts.mime.map(head).unwrap_or_default());
        let (tool, mime) = (tool.as_str(), mime.as_str());
        let (parts, bytes) = (facts.parts.to_string(), hint.bytes.to_string());
        let values = [
            (
                "tool",
                if tool.is_empty() {
                    self.language.unnamed_tool()
                } else {
                    tool
                },
            ),
            (
                "mime",
                if mime.is_empty() {
                    self.language.unnamed_media()
                } else {
                    mime
                },
            ),
            ("reader", facts.reader.unwrap_or_default()),
            ("parts", &parts),
            ("bytes", &bytes),
            (
                "location",
                hint.location
                    .as_ref()
                    .map_or("-", |location| location.as_str()),
            ),
        ];
        let is_stored = hint.location.is_some();
        let mut said = vec![match hint.kind {
            Kind::Link => Sentence::ClearedLink,
            Kind::Cleared if !is_stored => Sentence::Gone,
            Kind::Cleared if facts.is_arguments => Sentence::ClearedArguments,
            Kind::Cleared if facts.mime.is_some() => Sentence::ClearedMedia,
            Kind::Cleared => Sentence::Cleared,
            _ if !is_stored => Sentence::Unsaved,
            _ => Sentence::Truncated,
        }];
        let notes = [
            (Sentence::Local, hint.notes.local),
            (Sentence::Joined, hint.notes.joined),
            (Sentence::Interrupted, hint.notes.interrupted),
            (Sentence::NotUtf8, hint.notes.not_utf8),
            (
                Sentence::Reader,
                is_stored && hint.kind != Kind::Link && facts.reader.is_some(),
            ),
        ];
        said.extend(
            notes
                .into_iter()
                .filter_map(|(sentence, is_so)| is_so.then_some(sentence)),
        );
        let text = self.join(&said, &values);
        if self.language == Language::Chinese
            && (tool.is_empty() || facts.mime.is_some() && mime.is_empty())
        {
            // Sentences put spaces around names, which are Latin; Chinese words have none around
            // them.
            let words = [self.language.unnamed_tool(), self.language.unnamed_media()];
            return words.iter().fold(text, |text, word| {
                text.replace(&format!("{word} "), word)
                    .replace(&format!(" {word}"), word)
            });
        }
        text
    }

    /// No sentence of a hint is longer, in bytes, whatever it says and in whatever language; and
    /// how often, at most, it says where its original is: the length of that comes on top so many
    /// times.
    pub(crate) fn longest(&self, reader: Option<&str>) -> (usize, usize) {
        let (nowhere, somewhere) = (self.longest_at("", reader), self.longest_at("x", reader));
        (nowhere, somewhere - nowhere)
    }

    fn longest_at(&self, location: &str, reader: Option<&str>) -> usize {
        let name = "x".repeat(MAX_NAME);
        let reader = reader
            .filter(|reader| reader.len() > MAX_NAME)
            .unwrap_or(&name);
        let facts = Facts {
            tool: &name,
            reader: Some(reader),
            parts: usize::MAX,
            ..Facts::default()
        };
        let notes = Notes {
            local: true,
            interrupted: true,
            not_utf8: true,
            joined: true,
        };
        let far = Position {
            line: u64::MAX,
            byte: u64::MAX,
        };
        let all = Language::ALL.map(Self::of);
        let lengths = all.iter().chain([self]).flat_map(|prose| {
            let hints = [Kind::Truncated, Kind::Cleared, Kind::Link]
                .into_iter()
                .flat_map(|kind| {
                    [Some(Location::new(location)), None].map(|location| Hint {
                        location,
                        notes,
                        ..Hint::new(kind, u64::MAX)
                    })
                });
            let all_facts = [
                facts,
                Facts {
                    mime: Some(&name),
                    ..facts
                },
                Facts {
                    is_arguments: true,
                    ..facts
                },
            ];
            let said = hints
                .flat_map(move |hint| all_facts.map(|facts| prose.of_hint(&hint, facts).len()));
            let pages = [(u64::MAX - 1, false), (u64::MAX, false), (u64::MAX, true)]
                .map(|(last, is_empty)| prose.of_page(far, last, Some(far), is_empty).len());
            said.chain(pages)
                .chain([prose.of_matches(u64::MAX, Some(far)).len()])
                .collect::<Vec<_>>()
        });
        lengths.max().unwrap_or_default()
    }

    /// The sentences for a page from `from` to the place before `next`. `last` is the last line
    /// that it shows some of.
    pub(crate) fn of_page(
        &self,
        from: Position,
        last: u64,
        next: Option<Position>,
        is_empty: bool,
    ) -> String {
        let first = from.line.to_string();
        let last_line = last.to_string();
        let next_offset = next.map(|next| next.to_string());
        let values = [
            ("first", first.as_str()),
            ("last", &last_line),
            ("next", next_offset.as_deref().unwrap_or_default()),
        ];
        let is_inside_a_line =
            last == from.line && (from.byte > 0 || next.is_some_and(|next| next.line == last));
        let mut said = vec![match () {
            () if is_empty => Sentence::PageOfNothing,
            () if is_inside_a_line => Sentence::PageInLine,
            () if last == from.line => Sentence::PageOfOne,
            () => Sentence::Page,
        }];
        said.extend(next.map(|_| Sentence::Next));
        self.join(&said, &values)
    }

    /// The sentences for `count` matching lines; `next` is where to look for more.
    pub(crate) fn of_matches(&self, count: u64, next: Option<Position>) -> String {
        let count = count.to_string();
        let next_offset = next.map(|next| next.to_string());
        let sentence = if next.is_some() {
            Sentence::MoreMatches
        } else {
            Sentence::Matches
        };
        self.join(
            &[sentence],
            &[
                ("count", &count),
                ("next", next_offset.as_deref().unwrap_or_default()),
            ],
        )
    }

    /// Chinese sentences follow each other without a space.
    fn join(&self, sentences: &[Sentence], values: &Values<'_>) -> String {
        let space = match self.language {
            Language::English => " ",
            Language::Chinese => "",
        };
        let texts = sentences
            .iter()
            .map(|sentence| fill(&self.sentences[*sentence as usize], values));
        texts
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join(space)
    }
}

/// The template, if it holds what it must, and nothing that it can't say.
fn check(sentence: Sentence, text: &str) -> Result<Template, String> {
    let template = Template::parse(text)
        .map_err(|error| format!("has at byte {} {}", error.at, error.problem))?;
    let (required, optional) = (sentence.required(), sentence.optional());
    let keys: Vec<&str> = template.keys().collect();
    for (at, key) in keys.iter().enumerate() {
        if !required.contains(key) && !optional.contains(key) {
            let known: Vec<String> = required
                .iter()
                .chain(optional)
                .map(|known| format!("`{{{known}}}`"))
                .collect();
            let known = if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            };
            return Err(format!(
                "has the unknown placeholder `{{{key}}}`: it knows {known}; write `{{{{` for a brace"
            ));
        }
        if keys[..at].contains(key) {
            return Err(format!(
                "has the placeholder `{{{key}}}` twice: once is enough"
            ));
        }
    }
    match required.iter().find(|required| !keys.contains(required)) {
        Some(missing) => Err(format!(
            "lacks the placeholder `{{{missing}}}`: write it where its value is to stand"
        )),
        None => Ok(template),
    }
}

/// What a hint says of a name, which anybody may have written: its beginning, on one line.
fn head(name: &str) -> String {
    let name = name
        .get(..name.floor_char_boundary(MAX_NAME))
        .unwrap_or_default();
    name.chars()
        .map(|c| {
            if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
                '?'
            } else {
                c
            }
        })
        .collect()
}

/// Every placeholder was checked when the template was made.
fn fill(template: &Template, values: &Values<'_>) -> String {
    let value = |key: &str| {
        values
            .iter()
            .find(|(known, _)| *known == key)
            .map(|(_, value)| Cow::Borrowed(*value))
    };
    template.render(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that a hint can say, in one language.
    fn all_that_is_said(language: Language) -> String {
        let prose = Prose::of(language);
        let stored = Some(Location::new("/x/trunc/a"));
        let facts = Facts {
            tool: "grep",
            reader: Some("read_file"),
            parts: 12,
            ..Facts::default()
        };
        let say = |kind, location: Option<Location>, notes, facts| {
            prose.of_hint(
                &Hint {
                    location,
                    notes,
                    ..Hint::new(kind, 5)
                },
                facts,
            )
        };
        let none = Notes::default();
        let all = Notes {
            local: true,
            interrupted: true,
            not_utf8: true,
            joined: true,
        };
        let at = |line, byte| Position { line, byte };
        [
            say(Kind::Truncated, stored.clone(), none, facts),
            say(
                Kind::Truncated,
                stored.clone(),
                none,
                Facts {
                    reader: None,
                    ..facts
                },
            ),
            say(Kind::Truncated, stored.clone(), all, facts),
            say(Kind::Truncated, None, none, facts),
            say(Kind::Cleared, stored.clone(), none, facts),
            say(
                Kind::Cleared,
                stored.clone(),
                none,
                Facts {
                    tool: "",
                    reader: None,
                    ..facts
                },
            ),
            say(Kind::Cleared, None, none, Facts { tool: "", ..facts }),
            say(
                Kind::Link,
                stored.clone(),
                none,
                Facts { tool: "", ..facts },
            ),
            say(
                Kind::Cleared,
                stored.clone(),
                none,
                Facts {
                    mime: Some("image/png"),
                    ..facts
                },
            ),
            say(
                Kind::Cleared,
                stored.clone(),
                none,
                Facts {
                    mime: Some(""),
                    ..facts
                },
            ),
            say(
                Kind::Cleared,
                stored.clone(),
                none,
                Facts {
                    is_arguments: true,
                    ..facts
                },
            ),
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
        Old result of an unnamed tool.
        Old result of an unnamed tool, removed and not stored. Call it again if you need it.
        Old link from an unnamed tool.
        Old image/png from grep. Read it with read_file.
        Old media from grep. Read it with read_file.
        Old arguments of grep. Read it with read_file.
        Old result of grep, removed and not stored. Call it again if you need it.
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
        未命名工具的旧结果。
        未命名工具的旧结果已移除且未保存，如有需要请重新调用。
        未命名工具返回的旧链接。
        grep 返回的旧 image/png。可用 read_file 读取。
        grep 返回的旧媒体。可用 read_file 读取。
        grep 的旧参数。可用 read_file 读取。
        grep 的旧结果已移除且未保存，如有需要请重新调用。
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
    fn h2_every_sentence_is_a_template_that_would_be_accepted() {
        for language in Language::ALL {
            for (place, sentence) in Sentence::ALL.into_iter().enumerate() {
                assert_eq!(sentence as usize, place);
                check(sentence, language.sentence(sentence)).unwrap();
                assert_eq!(serde_json::to_value(sentence).unwrap(), sentence.name());
            }
        }
    }

    #[test]
    fn o2_what_is_no_template_of_a_sentence() {
        let cases = [
            (Sentence::Cleared, "Gone."),
            (Sentence::Cleared, "{tool} {tool}"),
            (Sentence::Cleared, "{tool} {name}"),
            (Sentence::Truncated, "{count}"),
            (Sentence::Page, "{first}-{last} {location}"),
            (Sentence::NotUtf8, "{"),
            (Sentence::Unsaved, "lost: {location}"),
            (Sentence::Next, "}"),
        ];
        let errors: Vec<String> = cases
            .into_iter()
            .map(|(sentence, text)| {
                format!(
                    "{}: {text} -- {}",
                    sentence.name(),
                    check(sentence, text).unwrap_err()
                )
            })
            .collect();
        insta::assert_snapshot!(errors.join("\n"), @"
        cleared: Gone. -- lacks the placeholder `{tool}`: write it where its value is to stand
        cleared: {tool} {tool} -- has the placeholder `{tool}` twice: once is enough
        cleared: {tool} {name} -- has the unknown placeholder `{name}`: it knows `{tool}`, `{bytes}`, `{location}`; write `{{` for a brace
        truncated: {count} -- has the unknown placeholder `{count}`: it knows `{tool}`, `{bytes}`, `{location}`; write `{{` for a brace
        page: {first}-{last} {location} -- has the unknown placeholder `{location}`: it knows `{first}`, `{last}`; write `{{` for a brace
        not_utf8: { -- has at byte 0 an opening brace that nothing closes: write `{{` for a brace
        unsaved: lost: {location} -- has the unknown placeholder `{location}`: it knows `{tool}`, `{bytes}`; write `{{` for a brace
        next: } -- has at byte 0 a closing brace without an opening one: write `}}` for a brace
        ");
        assert!(
            check(Sentence::Truncated, "").is_ok()
                && check(Sentence::Truncated, "{{x}} {location} {tool}").is_ok()
        );
    }

    #[test]
    fn h1_names_in_a_hint_are_short_whoever_wrote_them() {
        let long = "é".repeat(10_000);
        for language in Language::ALL {
            for facts in [
                Facts {
                    tool: &long,
                    ..Facts::default()
                },
                Facts {
                    mime: Some(&long),
                    ..Facts::default()
                },
            ] {
                let hint = Hint {
                    location: Some(Location::new("/x/clear/a")),
                    ..Hint::new(Kind::Cleared, 5)
                };
                assert!(
                    Prose::of(language).of_hint(&hint, facts).len() < 200,
                    "{language:?} {facts:.60?}"
                );
            }
        }
    }

    #[test]
    fn h1_what_is_filled_in_is_not_filled_in_again() {
        let templates = [(Sentence::Cleared, "{{{tool}}} in {location}".to_owned())].into();
        let prose = Prose::with(Language::English, &templates).unwrap();
        let mut hint = Hint::new(Kind::Cleared, 5);
        hint.location = Some(Location::new("{bytes}"));
        let facts = Facts {
            tool: "{mime} {{}} }",
            ..Facts::default()
        };
        assert_eq!(prose.of_hint(&hint, facts), "{{mime} {{}} }} in {bytes}");
    }
}
