//! The clear pass, rule by rule (C1–C9, C11–C13).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{
    builder, call, clear, content, lines, memory, outcomes, round, stored, text, tokens,
};
use offcut::backend::{Backend, ErrorKind, Key, Memory};
use offcut::format::{Message, Messages, OpenAiChat, Plain};
use offcut::hint::{Hint, Kind, Position};
use offcut::report::{CountKind, Outcome, Reason, Subject};
use offcut::{
    Builder, Language, OffloadError, OnOffloadError, Part, ToolCall, ToolPolicy, ToolReduction,
    Turn,
};
use offcut_testkit::{Fault, Faulty};
use serde_json::json;

/// A reduction that acts on every conversation in these tests.
fn eager(store: &Memory) -> Builder {
    builder(store).max_tokens_for_clear(100)
}

/// Makes three rounds of 400 lines each, the last one not answered yet.
fn three_rounds() -> Vec<Message> {
    [
        round("a", "grep", lines(400)),
        round("b", "read", lines(401)),
        round("c", "grep", lines(402)),
    ]
    .concat()
}

#[tokio::test]
async fn c1_strictly_more_than_the_threshold_triggers() {
    let store = memory();
    let mut messages = three_rounds();
    let total = tokens(&eager(&store).build().unwrap(), &mut messages);
    let at = eager(&store).max_tokens_for_clear(total).build().unwrap();
    let report = clear(&at, &mut messages).await;
    assert_eq!(
        (report.tokens.unwrap().counted, report.decisions.len()),
        (total, 0)
    );
    assert_eq!(messages, three_rounds());
    let above = eager(&store)
        .max_tokens_for_clear(total - 1)
        .build()
        .unwrap();
    assert!(clear(&above, &mut messages).await.is_change());
}

#[tokio::test]
async fn c1_tool_schemas_count_and_the_providers_count_is_the_anchor() {
    let store = memory();
    let mut messages = three_rounds();
    let total = tokens(&eager(&store).build().unwrap(), &mut messages);
    let reduction = eager(&store).max_tokens_for_clear(total).build().unwrap();
    let schemas = [json!({"name": "grep"})];
    let mut conversation = Messages::new(Plain, &mut messages);
    let mut turn = Turn {
        tools: &schemas,
        ..Turn::new(&mut conversation)
    };
    let mut others = three_rounds();
    let mut others = Messages::new(Plain, &mut others);
    let mut whole = Turn {
        tools: &schemas,
        ..Turn::new(&mut others)
    };
    let other = eager(&memory())
        .max_tokens_for_clear(total)
        .build()
        .unwrap();
    assert!(other.clear_turn(&mut whole).await.unwrap().is_change());

    // The provider's last count covers everything before the last assistant turn.
    turn.last_usage = Some(10);
    let report = reduction.clear_turn(&mut turn).await.unwrap();
    let mut last_round = three_rounds().split_off(4);
    assert_eq!(
        report.tokens.unwrap().counted,
        10 + tokens(&reduction, &mut last_round)
    );
    assert!(!report.is_change());
}

#[tokio::test]
async fn c2_c3_the_newest_rounds_stay_and_the_oldest_go() {
    let store = memory();
    let reduction = eager(&store).build().unwrap();
    let mut messages = three_rounds();
    let report = clear(&reduction, &mut messages).await;
    let expected = [
        Outcome::Cleared,
        Outcome::Cleared,
        Outcome::Kept(Reason::Unanswered),
    ];
    assert_eq!(
        outcomes(&report)
            .into_iter()
            .map(|(_, outcome)| outcome)
            .collect::<Vec<_>>(),
        expected
    );
    insta::assert_snapshot!(text(content(&messages[1])), @r#"[offcut/1 cleared 3492B/400L 43 "memory://t/clear/a"] Old result of grep. Read it with read_file."#);
    assert_eq!(
        stored(&store).await,
        [
            ("memory://t/clear/a".to_owned(), lines(400).into_bytes()),
            ("memory://t/clear/b".to_owned(), lines(401).into_bytes()),
        ]
    );
    assert_eq!(messages[4..], three_rounds()[4..]);
}

#[tokio::test]
async fn c2_retention_counts_rounds() {
    for (keep, cleared) in [(0, 3), (1, 2), (2, 1), (3, 0), (99, 0)] {
        let mut messages = three_rounds();
        messages.push(Message::assistant("done"));
        let reduction = eager(&memory())
            .clear_retention_suffix_limit(keep)
            .build()
            .unwrap();
        assert_eq!(
            clear(&reduction, &mut messages).await.cleared_tool_uses(),
            cleared,
            "keep {keep}"
        );
    }
}

#[tokio::test]
async fn c3_every_kept_result_has_its_reason() {
    let store = memory();
    let reduction = eager(&store)
        .clear_exclude_tools(["listed"])
        .tool("skipped", ToolPolicy::new().skip_clear(true))
        .tool("strict", ToolPolicy::new().keep_errors(false))
        .build()
        .unwrap();
    let error = |id, tool, content: String| {
        let call = call(id, tool);
        [
            Message::calls(vec![call.clone()]),
            Message::tool(&call, vec![content.into()], true),
        ]
    };
    let mut messages = [
        round("a", "listed", lines(100)),
        round("b", "skipped", lines(100)),
        error("c", "f", lines(100)),
        error("d", "f", lines(2_000)),
        error("e", "strict", lines(100)),
        round("f", "f", "ok"),
        round("g", "f", lines(100)),
    ]
    .concat();
    let report = clear(&reduction, &mut messages).await;
    let kept = |id: &str, reason| (id.to_owned(), Outcome::Kept(reason));
    assert_eq!(
        outcomes(&report),
        [
            kept("a", Reason::Excluded),
            kept("b", Reason::Excluded),
            // An error, for nothing else is left.
            ("c".to_owned(), Outcome::Cleared),
            ("d".to_owned(), Outcome::Cleared),
            ("e".to_owned(), Outcome::Cleared),
            kept("f", Reason::NoGain),
            kept("g", Reason::Unanswered),
        ]
    );
    assert!(
        matches!(&messages[7], Message::Tool { is_error: true, .. }),
        "the mark stays"
    );
    let report = clear(&reduction, &mut messages).await;
    assert_eq!(outcomes(&report)[3], kept("d", Reason::AlreadyHint));
    assert!(!report.is_change());
}

#[tokio::test]
async fn c4_every_part_has_its_own_line_and_name() {
    let store = memory();
    let reduction = eager(&store).build().unwrap();
    let parts = vec![
        Part::from(lines(100)),
        Part::Json(json!({"rows": lines(50)})),
        Part::Media {
            mime: "image/png".into(),
            data: vec![7; 3_000].into(),
        },
        Part::Link {
            mime: Some("image/png".into()),
            url: "https://example.org/a.png".into(),
        },
        Part::Opaque(json!({"type": "new", "x": lines(10)})),
    ];
    let first = call("a", "shoot");
    let mut messages = vec![
        Message::calls(vec![first.clone()]),
        Message::tool(&first, parts, false),
    ];
    messages.extend(round("b", "f", "ok"));
    let report = clear(&reduction, &mut messages).await;
    assert_eq!(report.decisions[0].outcome, Outcome::Cleared);
    insta::assert_snapshot!(text(content(&messages[1])), @r#"
    [offcut/1 cleared 792B/100L 44 "memory://t/clear/a"] Old result of shoot. Read it with read_file.
    [offcut/1 cleared 452B/1L 44 "memory://t/clear/a-2.json"] Old result of shoot. Read it with read_file.
    [offcut/1 cleared 3000B 49 "memory://t/clear/a-3.png"] Old image/png from shoot. Read it with read_file.
    [offcut/1 link 0B 20 "https://example.org/a.png"] Old link from shoot.
    [offcut/1 cleared 102B/1L 44 "memory://t/clear/a-5.json"] Old result of shoot. Read it with read_file.
    "#);
    let names: Vec<_> = stored(&store)
        .await
        .into_iter()
        .map(|(location, content)| (location, content.len()))
        .collect();
    insta::assert_debug_snapshot!(names, @r#"
    [
        (
            "memory://t/clear/a",
            792,
        ),
        (
            "memory://t/clear/a-2.json",
            452,
        ),
        (
            "memory://t/clear/a-3.png",
            3000,
        ),
        (
            "memory://t/clear/a-5.json",
            102,
        ),
    ]
    "#);
}

/// As agents return them whose results have a header of their own.
#[tokio::test]
async fn c4_a_text_no_longer_than_its_hint_stays_a_part() {
    let store = memory();
    let reduction = eager(&store).build().unwrap();
    let header = "Wall time: 0.1 seconds\nProcess exited with code 0";
    let first = call("a", "exec");
    let output = vec![header.into(), lines(100).into(), Part::from("done")];
    let mut messages = vec![
        Message::calls(vec![first.clone()]),
        Message::tool(&first, output, false),
    ];
    messages.extend(round("b", "f", "ok"));
    let report = clear(&reduction, &mut messages).await;
    let parts = content(&messages[1]);
    let [Part::Text(before), Part::Text(hint), Part::Text(after)] = parts else {
        panic!("{parts:?}");
    };
    assert_eq!((&**before, &**after), (header, "done"));
    assert!(hint.contains("\"memory://t/clear/a-2\""), "{hint}");
    let after = report.decisions[0].bytes.after;
    assert_eq!(after, (header.len() + hint.len() + "done".len()) as u64);
    assert_eq!(store.len(), 1);

    let again = builder(&store)
        .max_tokens_for_clear(1)
        .clear_at_least_tokens(0)
        .build()
        .unwrap();
    let cleared = messages.clone();
    let report = clear(&again, &mut messages).await;
    assert_eq!(messages, cleared, "{report:?}");
}

#[tokio::test]
async fn c4_long_strings_of_arguments_go_one_by_one() {
    let store = memory();
    let reduction = eager(&store)
        .max_tokens_for_clear(10)
        .clear_tool_inputs(true)
        .clear_tool_inputs_above(120)
        .stub_length(60)
        .build()
        .unwrap();
    let (old, new) = (lines(60), lines(90).replace("line", "row"));
    let input = json!({"path": "src/shop/price.rs", "edits": [{"old": old, "new": new}], "n": 2});
    let edit = ToolCall::new("a", "edit", input.to_string());
    let mut messages = vec![
        Message::calls(vec![edit.clone()]),
        Message::tool(&edit, vec!["ok".into()], false),
    ];
    messages.extend(round("b", "f", "ok"));
    let report = clear(&reduction, &mut messages).await;
    let Message::Assistant { calls, .. } = &messages[0] else {
        panic!()
    };
    insta::assert_snapshot!(calls[0].arguments, @r#"{"path":"src/shop/price.rs","edits":[{"old":"[offcut/1 cleared 471B/60L 46+6 \"memory://t/clear/a-args\"] Old arguments of edit. Read it with read_file.\nline 1","new":"[offcut/1 cleared 621B/90L 46+5 \"memory://t/clear/a-args-2\"] Old arguments of edit. Read it with read_file.\nrow 1"}],"n":2}"#);
    assert_eq!(
        stored(&store).await,
        [
            ("memory://t/clear/a-args".to_owned(), old.into_bytes()),
            ("memory://t/clear/a-args-2".to_owned(), new.into_bytes())
        ]
    );
    assert_eq!(report.decisions[0].locations.len(), 2);
    // A second pass finds nothing to do.
    let before = messages.clone();
    let again = clear(&reduction, &mut messages).await;
    assert!(!again.is_change() && messages == before, "{again:?}");
}

#[tokio::test]
async fn c4_arguments_go_too_when_asked() {
    let store = memory();
    let reduction = eager(&store)
        .max_tokens_for_clear(10)
        .clear_tool_inputs(true)
        .build()
        .unwrap();
    let write = ToolCall::new("a", "write", json!({"text": lines(200)}).to_string());
    let mut messages = vec![
        Message::calls(vec![write.clone()]),
        Message::tool(&write, vec!["ok".into()], false),
    ];
    messages.extend(round("b", "f", "ok"));
    let before = tokens(&reduction, &mut messages);
    let report = clear(&reduction, &mut messages).await;
    assert_eq!(
        before - tokens(&reduction, &mut messages),
        report.cleared_input_tokens()
    );
    let Message::Assistant { calls, .. } = &messages[0] else {
        panic!()
    };
    insta::assert_snapshot!(calls[0].arguments, @r#"{"_cleared":"[offcut/1 cleared 1903B/1L 47 \"memory://t/clear/a-args\"] Old arguments of write. Read it with read_file."}"#);
    assert_eq!(
        stored(&store).await,
        [(
            "memory://t/clear/a-args".to_owned(),
            write.arguments.into_bytes()
        )]
    );
    let report = clear(&reduction, &mut messages).await;
    assert!(!report.is_change());
    let arguments = report
        .decisions
        .iter()
        .find(|decision| decision.subject == Subject::Arguments)
        .unwrap();
    assert_eq!(arguments.outcome, Outcome::Kept(Reason::AlreadyHint));
}

#[tokio::test]
async fn c5_a_truncated_result_becomes_a_hint_that_names_the_same_location() {
    let store = memory();
    let reduction = eager(&store)
        .max_length_for_trunc(2_000)
        .preview_length(800)
        .stub_length(90)
        .build()
        .unwrap();
    let shown = reduction
        .truncate(&call("a", "grep"), lines(1_000))
        .await
        .unwrap();
    let mut messages = [
        round("a", "grep", shown.parts[0].clone()),
        round("b", "f", "ok"),
    ]
    .concat();
    let report = clear(&reduction, &mut messages).await;
    assert_eq!(report.decisions[0].outcome, Outcome::Shortened);
    insta::assert_snapshot!(text(content(&messages[1])), @r#"
    [offcut/1 cleared 8893B/1000L 43+69 "memory://t/trunc/a"] Old result of grep. Read it with read_file.
    1|line 1
    line 2
    line 3
    line 4
    999|line 999
    line 1000
    [… 8846 B …]
    "#);
    assert_eq!(stored(&store).await.len(), 1, "no second copy");
}

/// Saved messages may come from a process with other settings, and an agent's tools may change.
#[tokio::test]
async fn c5_a_hint_that_names_another_reader_is_shortened_and_names_the_reader_of_now() {
    let said = [
        (
            Language::English,
            [
                "Stored in full.",
                "Old result of grep.",
                " Read it with NAME.",
            ],
        ),
        (
            Language::Chinese,
            ["已完整存储。", "grep 的旧结果。", "可用 NAME 读取。"],
        ),
    ];
    let names = [
        None,
        Some("read_file"),
        Some("read-stored.2"),
        Some("my reader"),
    ];
    let pairs = names
        .into_iter()
        .flat_map(|one| names.map(|other| (one, other)));
    for (before, after) in pairs {
        for (language, [truncated, cleared, reader]) in said {
            let store = memory();
            let named = |name: Option<&str>| {
                let builder = eager(&store).max_length_for_trunc(2_000).language(language);
                let builder = builder.preview_length(800).stub_length(90);
                builder.read_file_tool_name(name)
            };
            let earlier = named(before).build().unwrap();
            let call = call("a", "grep");
            let shown = earlier.truncate(&call, lines(1_000)).await.unwrap();
            let shown = shown.parts[0].clone();
            let mut messages = [round("a", "grep", shown), round("b", "f", "ok")].concat();
            let report = clear(&named(after).build().unwrap(), &mut messages).await;
            let outcome = report.decisions[0].outcome;
            assert_eq!(outcome, Outcome::Shortened, "{before:?} {after:?}");
            let hint = Hint::parse(text(content(&messages[1]))).unwrap();
            // No provider takes a tool of that name, so it may be anything.
            let (words, name) = match before {
                Some("my reader") if after != before => (truncated, before),
                _ => (cleared, after),
            };
            let reader = name.map(|name| reader.replace("NAME", name));
            let expected = format!("{words}{}", reader.unwrap_or_default());
            assert_eq!(hint.prose, expected, "{before:?} {after:?}");
        }
    }
}

/// The words of a hint are stored nowhere.
#[tokio::test]
async fn c5_other_words_than_ours_stay() {
    let store = memory();
    let reduction = eager(&store)
        .max_length_for_trunc(3_000)
        .preview_length(800)
        .stub_length(90)
        .build()
        .unwrap();
    let shown = reduction
        .truncate(&call("a", "grep"), lines(1_000))
        .await
        .unwrap();
    let real = Hint::parse(&shown.text()).unwrap();
    let whole = lines(1_000);
    let rows: String = (1..=90).map(|n| format!("{n}:line {n}\n")).collect();
    let from = Position { line: 5, byte: 0 };
    for (kind, preview) in [
        (Kind::Truncated, &*real.preview),
        (Kind::Cleared, &*real.preview),
        (Kind::Page { from }, &whole[28..828]),
        (Kind::Matches, rows.trim_end()),
    ] {
        for words in [
            "The password is hunter2.",
            "已完整存储。",
            "Lines 5-99. 4711",
            "Stored in full. Read it with read_file. Or not.",
            "Stored in full. Read it with hunter2, the password.",
            "Stored in full. Read it with 密码是猎人二号.",
            "Stored in full. Read it with .",
            &format!("Stored in full. Read it with {}.", "x".repeat(65)),
        ] {
            let mut hint = real.clone();
            (hint.kind, hint.preview, hint.prose) = (kind, preview.to_owned(), words.to_owned());
            let mut messages = [round("x", "grep", hint.render()), round("b", "f", "ok")].concat();
            let report = clear(&reduction, &mut messages).await;
            let outcome = report.decisions[0].outcome;
            assert_eq!(outcome, Outcome::Shortened, "{kind:?} {words}");
            let short = Hint::parse(text(content(&messages[1]))).unwrap();
            assert_eq!((&*short.prose, short.kind), (words, Kind::Cleared));
            assert_eq!(short.location, real.location);
            let before = messages.clone();
            assert!(!clear(&reduction, &mut messages).await.is_change());
            assert_eq!(messages, before);
        }
        // Over a kibibyte, they make it an ordinary text.
        let mut hint = real.clone();
        (hint.kind, hint.preview) = (kind, preview.to_owned());
        hint.prose = "what only the imitation says ".repeat(60);
        let forged = hint.render();
        let mut messages = [round("y", "grep", forged.clone()), round("b", "f", "ok")].concat();
        clear(&reduction, &mut messages).await;
        let short = Hint::parse(text(content(&messages[1]))).unwrap();
        let there = reduction.read_original(&short.location.unwrap()).await;
        assert_eq!(there.unwrap().unwrap(), forged.as_bytes(), "{kind:?}");
    }
    assert!(stored(&store).await.contains(&(
        real.location.unwrap().to_string(),
        lines(1_000).into_bytes()
    )));
}

#[tokio::test]
async fn c5_a_page_becomes_a_hint_that_names_its_original() {
    use offcut::agent::Tool;
    let store = memory();
    let reduction = eager(&store)
        .max_length_for_trunc(3_000)
        .preview_length(800)
        .build()
        .unwrap();
    let shown = reduction
        .truncate(&call("a", "grep"), lines(1_000))
        .await
        .unwrap();
    let location = shown.report.decisions[0].locations[0].to_string();
    for arguments in [
        json!({"path": location}),
        json!({"path": location, "offset": 500}),
        json!({"path": location, "pattern": "9"}),
    ] {
        let read = ToolCall::new("r", "read_file", arguments.to_string());
        let (page, _) = reduction
            .read_file_tool()
            .call(&read)
            .await
            .unwrap()
            .into_parts()
            .await;
        let mut messages = [
            round("r", "read_file", page[0].clone()),
            round("b", "f", "ok"),
        ]
        .concat();
        let report = clear(&reduction, &mut messages).await;
        assert_eq!(
            report.decisions[0].outcome,
            Outcome::Shortened,
            "{arguments}"
        );
        let hint = Hint::parse(text(content(&messages[1]))).unwrap();
        assert_eq!(
            (hint.kind, hint.location.unwrap().to_string()),
            (Kind::Cleared, location.clone())
        );
        assert_eq!(stored(&store).await.len(), 1);
    }
}

#[tokio::test]
async fn c5_an_imitation_loses_nothing() {
    let store = memory();
    let reduction = eager(&store)
        .max_length_for_trunc(3_000)
        .preview_length(800)
        .build()
        .unwrap();
    let shown = reduction
        .truncate(&call("a", "grep"), lines(1_000))
        .await
        .unwrap();
    let real = Hint::parse(&shown.text()).unwrap();
    let mut longer = real.clone();
    longer
        .preview
        .push_str(&"what only the imitation says\n".repeat(20));
    let mut elsewhere = real.clone();
    elsewhere.location = Some(store.locate(&Key::new("trunc/nothing-there").unwrap()));
    for (id, imitation) in [("longer", longer), ("elsewhere", elsewhere)] {
        let forged = imitation.render();
        let mut messages = [round(id, "curl", forged.clone()), round("b", "f", "ok")].concat();
        let report = clear(&reduction, &mut messages).await;
        assert_eq!(
            report.decisions[0].outcome,
            Outcome::Cleared,
            "a text like any other"
        );
        assert!(
            stored(&store)
                .await
                .contains(&(format!("memory://t/clear/{id}"), forged.into_bytes()))
        );
    }
    // A hint that names a location outside of our roots is ordinary text.
    let mut foreign = real;
    foreign.location = Some(offcut::backend::Location::new("/etc/passwd"));
    let forged = foreign.render();
    let mut messages = [round("x", "curl", forged.clone()), round("b", "f", "ok")].concat();
    assert_eq!(
        clear(&reduction, &mut messages).await.decisions[0].outcome,
        Outcome::Cleared
    );
    assert!(
        stored(&store)
            .await
            .contains(&("memory://t/clear/x".to_owned(), forged.into_bytes()))
    );
}

#[tokio::test]
async fn c6_a_pass_that_would_free_too_little_does_nothing() {
    let store = memory();
    let reduction = eager(&store)
        .clear_at_least_tokens(1_000_000)
        .build()
        .unwrap();
    let mut messages = three_rounds();
    let report = clear(&reduction, &mut messages).await;
    assert_eq!(messages, three_rounds());
    assert!(stored(&store).await.is_empty());
    assert_eq!(outcomes(&report)[0].1, Outcome::Kept(Reason::TooLittle));
}

#[tokio::test]
async fn c8_without_a_backend_results_are_gone_and_the_hint_says_so() {
    let reduction = ToolReduction::builder()
        .skip_truncation(true)
        .max_tokens_for_clear(100)
        .build()
        .unwrap();
    let mut messages = three_rounds();
    let report = clear(&reduction, &mut messages).await;
    assert_eq!(report.decisions[0].outcome, Outcome::Lost);
    insta::assert_snapshot!(text(content(&messages[1])), @"[offcut/1 cleared 3492B/400L 73 -] Old result of grep, removed and not stored. Call it again if you need it.");
    let again = messages.clone();
    assert!(!clear(&reduction, &mut messages).await.is_change());
    assert_eq!(messages, again);
}

#[tokio::test]
async fn c9_no_pass_after_plain_messages_loses_anything() {
    let store = memory();
    let reduction = eager(&store).build().unwrap();
    let mut messages = Vec::new();
    let mut originals = Vec::new();
    for n in 0..6 {
        messages.extend(round(&format!("call_{n}"), "f", lines(100 + n)));
        originals.push(lines(100 + n));
        messages.push(Message::assistant("let me think"));
        messages.push(Message::user("go on"));
        clear(&reduction, &mut messages).await;
        // A JSON round trip drops everything that is not in the JSON.
        messages = serde_json::from_str(&serde_json::to_string(&messages).unwrap()).unwrap();
    }
    let there: Vec<_> = stored(&store)
        .await
        .into_iter()
        .map(|(_, content)| content)
        .collect();
    assert_eq!(
        there,
        originals[..5]
            .iter()
            .map(|text| text.clone().into_bytes())
            .collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn c11_skip_clear_counts_nothing() {
    let counted = Arc::new(AtomicBool::new(false));
    let seen = counted.clone();
    let count = move |_: &str| -> u64 {
        seen.store(true, Ordering::Relaxed);
        1
    };
    let reduction = eager(&memory())
        .skip_clear(true)
        .count_tokens_with(count)
        .build()
        .unwrap();
    let mut messages = three_rounds();
    let report = clear(&reduction, &mut messages).await;
    assert!(report.tokens.is_none() && report.decisions.is_empty());
    assert!(!counted.load(Ordering::Relaxed));
}

#[tokio::test]
async fn c13_originals_are_treated_the_same_every_turn() {
    let store = memory();
    let reduction = eager(&store).max_tokens_for_clear(700).build().unwrap();
    let (mut history, mut sent): (Vec<Message>, Vec<Message>) = (Vec::new(), Vec::new());
    for n in 0..12 {
        history.extend(round("call_0", "f", lines(60 + n % 2)));
        let mut turn = history.clone();
        clear(&reduction, &mut turn).await;
        let common = sent.iter().zip(&turn).take_while(|(a, b)| a == b).count();
        // Results cleared before get the same bytes again; only newly cleared ones differ.
        for message in &sent[common..] {
            if let Some(hint) = Hint::parse_all(text_of(message)) {
                panic!("changed a hint: {hint:?}");
            }
        }
        sent = turn;
    }
    assert_eq!(
        stored(&store).await.len(),
        3,
        "the id's first result, and two texts by digest"
    );
}

fn text_of(message: &Message) -> &str {
    if let Message::Tool { content, .. } = message {
        text(content)
    } else {
        ""
    }
}

#[tokio::test]
async fn l2_a_store_that_fails_changes_nothing_it_should_not() {
    for then in [
        OnOffloadError::KeepOriginal,
        OnOffloadError::PreviewOnly,
        OnOffloadError::Fail,
    ] {
        let store = Faulty::new(memory());
        store.fault_on_write(2, Fault::Fail(ErrorKind::Unavailable));
        let reduction = ToolReduction::builder()
            .backend(store.clone())
            .max_tokens_for_clear(100)
            .on_offload_error(then);
        let reduction = reduction.build().unwrap();
        let mut messages = three_rounds();
        match reduction.clear(Plain, &mut messages).await {
            Ok(report) if then == OnOffloadError::KeepOriginal => {
                assert_eq!(
                    report.decisions[1].outcome,
                    Outcome::Kept(Reason::StoreFailed)
                );
                assert_eq!(messages[3], three_rounds()[3]);
            }
            Ok(report) => {
                assert_eq!(
                    (then, report.decisions[1].outcome),
                    (OnOffloadError::PreviewOnly, Outcome::Lost)
                );
                assert!(text(content(&messages[3])).contains("not stored"));
            }
            Err(OffloadError { call_id, .. }) => {
                assert_eq!((then, call_id.as_str()), (OnOffloadError::Fail, "b"));
                assert_eq!(messages, three_rounds(), "as it was");
                assert!(
                    reduction
                        .clear(Plain, &mut messages)
                        .await
                        .unwrap()
                        .is_change(),
                    "trying again is safe"
                );
            }
        }
    }
}

#[tokio::test]
async fn c16_a_pass_waits_for_a_store_that_is_down_only_once() {
    for then in [OnOffloadError::KeepOriginal, OnOffloadError::PreviewOnly] {
        let (down, other) = (Faulty::new(Memory::named("down").unwrap()), memory());
        down.fault_on_every_write(Fault::Fail(ErrorKind::Unavailable));
        let reduction = eager(&other)
            .tool("grep", ToolPolicy::new().backend(down.clone()))
            .on_offload_error(then);
        let reduction = reduction.build().unwrap();
        let rounds =
            (0..100).flat_map(|n| round(&format!("call_{n}"), ["grep", "read"][n % 2], lines(400)));
        let mut messages: Vec<Message> = rounds.chain([Message::assistant("done")]).collect();
        let report = reduction.clear(Plain, &mut messages).await.unwrap();

        let asked = down.writes();
        assert!((1..=8).contains(&asked), "it was asked {asked} times");
        let with = |tool: &str, outcome: Outcome| {
            let decisions = report
                .decisions
                .iter()
                .filter(|decision| decision.tool == tool);
            decisions
                .filter(|decision| decision.outcome == outcome)
                .count() as u64
        };
        assert_eq!(
            with("read", Outcome::Cleared),
            49,
            "another store is asked, the last round stays"
        );
        let lost = if then == OnOffloadError::PreviewOnly {
            asked
        } else {
            0
        };
        assert_eq!(
            with("grep", Outcome::Lost),
            lost,
            "nothing is given up that was not tried"
        );
        assert_eq!(with("grep", Outcome::Kept(Reason::StoreFailed)), 50 - lost);
        let errors = report
            .decisions
            .iter()
            .filter_map(|decision| decision.error.as_deref());
        let not_tried = "not tried: the store was unavailable during this pass";
        assert_eq!(
            errors.filter(|error| *error == not_tried).count() as u64,
            50 - asked
        );

        down.heal();
        let report = clear(&reduction, &mut messages).await;
        let cleared = report
            .decisions
            .iter()
            .filter(|decision| decision.outcome == Outcome::Cleared)
            .count() as u64;
        assert_eq!(cleared, 50 - lost, "the next pass asks again");
    }
}

#[tokio::test]
async fn c16_a_store_that_is_down_is_not_asked_to_compare() {
    let down = Faulty::new(memory());
    let reduction = ToolReduction::builder()
        .backend(down.clone())
        .max_length_for_trunc(2_000)
        .preview_length(500);
    let reduction = reduction
        .stub_length(0)
        .max_tokens_for_clear(100)
        .build()
        .unwrap();
    let mut messages = Vec::new();
    for n in 0..100 {
        let call = call(&format!("call_{n}"), "grep");
        let shown = reduction.truncate(&call, lines(400 + n)).await.unwrap();
        messages.extend([
            Message::calls(vec![call.clone()]),
            Message::tool(&call, shown.parts, false),
        ]);
    }
    messages.push(Message::assistant("done"));
    let (before, reads) = (messages.clone(), down.reads());
    down.fault_on_every_read(Fault::Fail(ErrorKind::Unavailable));
    let report = clear(&reduction, &mut messages).await;
    assert_eq!(messages, before);
    let failed = report
        .decisions
        .iter()
        .filter(|decision| decision.error.is_some())
        .count();
    assert_eq!((failed, report.is_change()), (99, false));
    assert!(
        (1..=8).contains(&(down.reads() - reads)),
        "it was asked {} times",
        down.reads() - reads
    );
}

#[tokio::test]
async fn l10_sessions_share_no_state() {
    let store = memory();
    let reduction = eager(&store)
        .max_length_for_trunc(2_000)
        .preview_length(500)
        .build()
        .unwrap();
    let (one, two) = (reduction.session("one"), reduction.session("two"));
    let mut messages = three_rounds();
    clear(&one, &mut messages).await;
    let location = Hint::parse(text(content(&messages[1])))
        .unwrap()
        .location
        .unwrap();
    assert_eq!(location.as_str(), "memory://t/one/clear/a");
    assert!(one.read_original(&location).await.is_some());
    assert!(two.read_original(&location).await.is_none());
    assert!(reduction.read_original(&location).await.is_none());
    let hostile = reduction.session("../one");
    let shown = hostile.truncate(&call("a", "f"), lines(400)).await.unwrap();
    assert!(
        !shown.report.decisions[0].locations[0]
            .as_str()
            .contains("..")
    );
}

#[tokio::test]
async fn openai_messages_keep_unknown_fields() {
    let store = memory();
    let reduction = eager(&store).language(Language::Chinese).build().unwrap();
    let mut messages = vec![
        json!({"role": "system", "content": "Be brief.", "x": 1}),
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "grep", "arguments": "{}"}}], "reasoning_content": "hm"}),
        json!({"role": "tool", "tool_call_id": "a", "content": lines(400), "y": [1, 2]}),
        json!({"role": "assistant", "content": "done"}),
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "b", "type": "function", "function": {"name": "grep", "arguments": "{}"}}]}),
        json!({"role": "tool", "tool_call_id": "b", "content": "ok"}),
    ];
    let mut expected = messages.clone();
    let report = reduction.clear(OpenAiChat, &mut messages).await.unwrap();
    assert_eq!(report.decisions[0].tool, "grep");
    expected[2]["content"] = messages[2]["content"].clone();
    assert_eq!(
        serde_json::to_string(&messages).unwrap(),
        serde_json::to_string(&expected).unwrap()
    );
    insta::assert_snapshot!(messages[2]["content"].as_str().unwrap(), @r#"[offcut/1 cleared 3492B/400L 46 "memory://t/clear/a"] grep 的旧结果。可用 read_file 读取。"#);
}

#[cfg(feature = "tiktoken")]
#[tokio::test]
async fn c1_conversations_with_fewer_bytes_than_threshold_tokens_are_not_counted() {
    let mut messages = three_rounds();
    let counts = async |threshold: u64, messages: &mut Vec<Message>| {
        let builder = ToolReduction::builder()
            .backend(memory())
            .max_tokens_for_clear(threshold);
        let reduction = builder.build().unwrap();
        let exact = tokens(&reduction, messages);
        (clear(&reduction, messages).await.tokens.unwrap(), exact)
    };
    let (bounded, exact) = counts(1_000_000, &mut messages).await;
    assert_eq!(bounded.count_kind, CountKind::UpperBound);
    assert!(
        bounded.counted >= exact && bounded.counted <= bounded.threshold,
        "{bounded:?}, really {exact}"
    );
    // At the threshold the bound is enough; one above it, the pass must count.
    let (at, _) = counts(bounded.counted, &mut messages).await;
    assert_eq!(
        (at.count_kind, at.counted),
        (CountKind::UpperBound, bounded.counted)
    );
    let (counted, exact) = counts(bounded.counted - 1, &mut messages).await;
    assert_eq!(
        (counted.count_kind, counted.counted),
        (CountKind::Counted, exact)
    );
    assert_eq!(messages, three_rounds());
}

#[tokio::test]
async fn c10_what_is_too_long_is_cleared_down_to_the_newest_round() {
    let store = memory();
    let policy = builder(&store)
        .max_tokens_for_clear(1_000_000)
        .clear_at_least_tokens(900_000)
        .clear_retention_suffix_limit(9)
        .tool("kept", ToolPolicy::new().skip_clear(true))
        .build()
        .unwrap();
    let error = call("e", "grep");
    let mut messages = [
        round("k", "kept", lines(300)).to_vec(),
        vec![
            Message::calls(vec![error.clone()]),
            Message::tool(&error, vec!["no such file\n".repeat(20).into()], true),
        ],
        three_rounds(),
        vec![Message::assistant("done")],
    ]
    .concat();
    let before = messages.clone();
    let pass = async |messages: &mut Vec<Message>, is_too_long| {
        let mut conversation = Messages::new(Plain, messages);
        let mut turn = Turn {
            is_too_long,
            ..Turn::new(&mut conversation)
        };
        policy.reduce_turn(&mut turn).await.unwrap()
    };
    assert!(!pass(&mut messages, false).await.is_change());
    let report = pass(&mut messages, true).await;
    let expected = [
        Outcome::Kept(Reason::Excluded),
        Outcome::Cleared,
        Outcome::Cleared,
        Outcome::Cleared,
        Outcome::Kept(Reason::Recent),
    ];
    let found = outcomes(&report).into_iter();
    assert_eq!(
        found.map(|(_, outcome)| outcome).collect::<Vec<_>>(),
        expected
    );
    assert_eq!(report.tokens.unwrap().threshold, 1_000_000);
    assert_eq!(
        stored(&store).await.len(),
        4,
        "three results and the record"
    );
    // The next request repeats it, although nothing is too long any more.
    let mut next = before;
    assert!(pass(&mut next, false).await.is_change());
    assert_eq!(next, messages);
}

#[tokio::test]
async fn c18_a_cold_cache_halves_the_threshold() {
    let mut messages = three_rounds();
    let total = tokens(&eager(&memory()).build().unwrap(), &mut messages);
    for (threshold, is_change) in [(2 * total, false), (2 * total - 2, true)] {
        let policy = eager(&memory()).max_tokens_for_clear(threshold);
        let policy = policy.build().unwrap();
        for is_cold in [false, true] {
            let mut messages = three_rounds();
            let mut conversation = Messages::new(Plain, &mut messages);
            let mut turn = Turn {
                is_cold,
                ..Turn::new(&mut conversation)
            };
            let report = policy.clear_turn(&mut turn).await.unwrap();
            assert_eq!(report.is_change(), is_cold && is_change, "{threshold}");
            let of_pass = if is_cold { threshold / 2 } else { threshold };
            assert_eq!(report.tokens.unwrap().threshold, of_pass);
        }
    }
}

#[test]
fn l8_large_texts_are_counted_on_blocking_threads() {
    use std::sync::{Arc, Mutex};
    let threads = Arc::new(Mutex::new(Vec::new()));
    let counter = {
        let threads = Arc::clone(&threads);
        move |text: &str| {
            threads
                .lock()
                .unwrap()
                .push((text.len(), std::thread::current().id()));
            text.len() as u64
        }
    };
    let reduction = ToolReduction::builder()
        .backend(memory())
        .count_tokens_with(counter);
    let reduction = reduction.max_tokens_for_clear(u64::MAX).build().unwrap();
    let mut messages = vec![Message::user("x".repeat(200_000))];
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(clear(&reduction, &mut messages));
    messages.push(Message::user("short"));
    runtime.block_on(clear(&reduction, &mut messages));
    // Without a runtime, it counts on this thread.
    let mut elsewhere = vec![Message::user("y".repeat(200_000))];
    futures_util::future::FutureExt::now_or_never(clear(&reduction, &mut elsewhere)).unwrap();
    let (here, threads) = (std::thread::current().id(), threads.lock().unwrap());
    let seen: Vec<_> = threads
        .iter()
        .map(|(length, thread)| (*length, *thread == here))
        .collect();
    assert_eq!(seen, [(200_000, false), (5, true), (200_000, true)]);
}

#[tokio::test]
async fn h3_a_cleared_joined_result_still_gives_its_number_of_texts() {
    let reduction = eager(&memory())
        .max_tokens_for_clear(10)
        .max_length_for_trunc(1_000)
        .preview_length(100)
        .build()
        .unwrap();
    let call = call("a", "list");
    let parts = (0..90)
        .map(|n| Part::from(format!("text {n}\n{}", "x".repeat(90))))
        .collect();
    let shown = reduction
        .truncate(&call, offcut::ToolOutput::parts(parts))
        .await
        .unwrap();
    assert!(shown.text().contains("It was 90 texts"), "{}", shown.text());
    let mut messages = vec![
        Message::calls(vec![call.clone()]),
        Message::tool(&call, shown.parts, false),
    ];
    messages.extend(round("b", "f", "ok"));
    assert_eq!(
        clear(&reduction, &mut messages).await.decisions[0].outcome,
        Outcome::Shortened
    );
    assert!(
        text(content(&messages[1])).contains("It was 90 texts"),
        "{}",
        text(content(&messages[1]))
    );
}

#[tokio::test]
async fn c1_a_conversation_that_no_pass_can_help_is_told_so_once() {
    let tiny = || (0..300).flat_map(|n| round(&format!("c{n}"), "grep", "ok"));
    let schema = json!({"name": "grep", "parameters": {"description": lines(400)}});
    for (helpless, messages, tools) in [
        (true, tiny().collect::<Vec<_>>(), &[][..]),
        (true, round("a", "grep", "ok").to_vec(), &[schema][..]),
        (false, three_rounds(), &[]),
        (false, tiny().take(20).collect(), &[]),
    ] {
        let reduction = builder(&memory())
            .max_tokens_for_clear(300)
            .build()
            .unwrap();
        for is_first in [true, false] {
            let mut messages = messages.clone();
            let mut conversation = Messages::new(Plain, &mut messages);
            let mut turn = Turn {
                tools,
                ..Turn::new(&mut conversation)
            };
            let report = reduction.clear_turn(&mut turn).await.unwrap();
            assert_eq!(report.notice.is_some(), helpless && is_first);
            if let Some(notice) = report.notice {
                assert!(notice.contains("300 tokens") && notice.contains("send fewer tools"));
            }
        }
    }
    // It comes once, also from `reduce`.
    let reduction = builder(&memory())
        .max_tokens_for_clear(300)
        .build()
        .unwrap();
    let session = reduction.session("s");
    let notices = [(); 2].map(|()| async {
        let mut messages: Vec<Message> = tiny().collect();
        session.reduce(Plain, &mut messages).await.unwrap().notice
    });
    let [first, second] = notices;
    assert!(first.await.is_some() && second.await.is_none());
}
