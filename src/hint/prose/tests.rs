//! The texts of hints in each language.

use super::*;
use crate::hint::Flags;

const ALL_FLAGS: Flags = Flags {
    interrupted: true,
    not_utf8: true,
    joined: true,
};

/// Everything that a hint can say, in one language.
fn all_that_is_said(language: Language) -> String {
    let prose = Prose::of(language);
    let at = |line, byte| Position { line, byte };
    let stored = Some("/x/trunc/a");
    let draft = |kind, tool| Draft {
        parts: 12,
        ..Draft::new(kind, 5, tool, String::new())
    };
    let say = |draft: Draft, location: Option<&str>, reader: Option<&str>| {
        let hint = prose.complete(draft, location.map(Location::new), reader);
        hint.prose
    };
    let (cleared, reader) = (draft(Kind::Cleared, "grep"), Some("read_file"));
    let mut flagged = draft(Kind::Truncated, "grep");
    flagged.hint.flags = ALL_FLAGS;
    let media = |mime: &str| Draft {
        mime: Some(mime.to_owned()),
        ..cleared.clone()
    };
    let arguments = Draft {
        subject: Subject::Arguments,
        ..cleared.clone()
    };
    [
        say(draft(Kind::Truncated, "grep"), stored, reader),
        say(draft(Kind::Truncated, "grep"), stored, None),
        say(flagged, stored, reader),
        say(draft(Kind::Truncated, "grep"), None, reader),
        say(cleared.clone(), stored, reader),
        say(draft(Kind::Cleared, ""), stored, None),
        say(draft(Kind::Cleared, ""), None, reader),
        say(draft(Kind::Link, ""), stored, reader),
        say(media("image/png"), stored, reader),
        say(media(""), stored, reader),
        say(arguments, stored, reader),
        say(cleared, None, reader),
        say(draft(Kind::Link, "grep"), stored, reader),
        prose.of_page(at(1, 0), 40, Some(at(41, 0)), false),
        prose.of_page(at(41, 0), 60, None, false),
        prose.of_page(at(1, 4000), 1, Some(at(1, 8000)), false),
        prose.of_page(at(99, 0), 99, None, true),
        prose.of_matches(7, 0, None),
        prose.of_matches(7, 9, None),
        prose.of_matches(7, 0, Some(at(812, 0))),
    ]
    .join("\n")
}

#[test]
fn h2_all_sentences_in_english() {
    insta::assert_snapshot!(all_that_is_said(Language::English), @"
    Stored in full. Read it with read_file.
    Stored in full.
    Stored in full. It was 12 texts; the last stored line gives their lengths. The tool's output broke off after 5 bytes. It is not UTF-8; � stands for invalid bytes. Read it with read_file.
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
    Lines 1-40. Continue with offset 41.
    Lines 41-60.
    Lines 1-1. Continue with offset 1+8000.
    No lines from 99 on.
    Matching lines: 7.
    Matching lines: 7, matches: 9.
    Matching lines so far: 7. Continue with offset 812.
    ");
}

#[test]
fn h2_all_sentences_in_chinese() {
    insta::assert_snapshot!(all_that_is_said(Language::Chinese), @"
    已完整存储。可用 read_file 读取。
    已完整存储。
    已完整存储。原为 12 段文本，存储内容的末行列出各段长度。工具输出在 5 字节后中断。内容不是 UTF-8，� 代表无效字节。可用 read_file 读取。
    内容未能保存，未显示的部分已丢失。
    grep 的旧结果。可用 read_file 读取。
    未命名工具 的旧结果。
    未命名工具 的旧结果已移除且未保存，如有需要请重新调用。
    未命名工具 返回的旧链接。
    grep 返回的旧 image/png。可用 read_file 读取。
    grep 返回的旧 媒体。可用 read_file 读取。
    grep 的旧参数。可用 read_file 读取。
    grep 的旧结果已移除且未保存，如有需要请重新调用。
    grep 返回的旧链接。
    第 1-40 行。续读请用 offset 41。
    第 41-60 行。
    第 1-1 行。续读请用 offset 1+8000。
    从第 99 行起没有内容。
    匹配行数：7。
    匹配行数：7，匹配数：9。
    目前匹配行数：7。续读请用 offset 812。
    ");
}

#[test]
fn h2_every_sentence_is_a_template_that_would_be_accepted() {
    for language in Language::ALL {
        for (place, sentence) in Sentence::ALL.iter().copied().enumerate() {
            assert_eq!(sentence as usize, place);
            check(sentence, language.sentence(sentence)).unwrap();
            assert_eq!(serde_json::to_value(sentence).unwrap(), sentence.name());
        }
    }
}

#[test]
fn o2_wrong_templates_of_sentences_are_refused() {
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
    cleared: Gone. -- lacks the placeholder `{tool}`: add it where its value belongs
    cleared: {tool} {tool} -- has the placeholder `{tool}` twice: remove one
    cleared: {tool} {name} -- has the unknown placeholder `{name}` (allowed: `{tool}`, `{bytes}`, `{location}`): write `{{` for a brace
    truncated: {count} -- has the unknown placeholder `{count}` (allowed: `{tool}`, `{bytes}`, `{location}`): write `{{` for a brace
    page: {first}-{last} {location} -- has the unknown placeholder `{location}` (allowed: `{first}`, `{last}`): write `{{` for a brace
    not_utf8: { -- is invalid at byte 0: an opening brace that nothing closes: write `{{` for a brace
    unsaved: lost: {location} -- has the unknown placeholder `{location}` (allowed: `{tool}`, `{bytes}`): write `{{` for a brace
    next: } -- is invalid at byte 0: a closing brace without an opening one: write `}}` for a brace
    ");
    assert!(
        check(Sentence::Truncated, "").is_ok()
            && check(Sentence::Truncated, "{{x}} {location} {tool}").is_ok()
    );
}

#[test]
fn h1_long_names_are_cut_in_hints() {
    let long = "é".repeat(10_000);
    for language in Language::ALL {
        let draft = |tool| Draft::new(Kind::Cleared, 5, tool, String::new());
        let media = Draft {
            mime: Some(long.clone()),
            ..draft("")
        };
        for draft in [draft(&long), media] {
            let location = Some(Location::new("/x/clear/a"));
            let hint = Prose::of(language).complete(draft, location, None);
            assert!(hint.prose.len() < 200, "{language:?} {:.60}", hint.prose);
        }
    }
}

#[test]
fn h1_values_with_placeholders_are_not_filled_in_again() {
    let templates = [(Sentence::Cleared, "{{{tool}}} in {location}".to_owned())].into();
    let prose = Prose::with(Language::English, &templates).unwrap();
    let draft = Draft::new(Kind::Cleared, 5, "{mime} {{}} }", String::new());
    let hint = prose.complete(draft, Some(Location::new("{bytes}")), None);
    assert_eq!(hint.prose, "{{mime} {{}} }} in {bytes}");
}

#[test]
fn h1_no_sentence_is_longer_than_the_longest_whatever_the_readers_name() {
    let (tool, long, location) = ("x".repeat(MAX_NAME), "é".repeat(200), "/x/trunc/a");
    let all = "{tool} {bytes} {location}";
    let templates = [
        (Sentence::Truncated, all.to_owned()),
        (Sentence::Joined, format!("{{parts}} {all}")),
        (Sentence::Interrupted, all.to_owned()),
        (Sentence::NotUtf8, all.to_owned()),
        (Sentence::Reader, format!("{{reader}} {all}")),
    ];
    let custom = Prose::with(Language::English, &templates.into()).unwrap();
    for prose in Language::ALL.map(Prose::of).iter().chain([&custom]) {
        for reader in [None, Some("r"), Some(long.as_str())] {
            let mut draft = Draft::new(Kind::Truncated, u64::MAX, &tool, String::new());
            (draft.parts, draft.hint.flags) = (usize::MAX, ALL_FLAGS);
            let hint = prose.complete(draft, Some(Location::new(location)), reader);
            assert!(hint.prose.len() < prose.longest(reader, location));
        }
    }
}
