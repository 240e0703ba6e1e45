//! No tool's output stays in the context because it looks like a hint (C5).

use crate::common::{builder, call, clear, content, lines, memory, round, stored, text};
use offcut::backend::{Location, Memory};
use offcut::format::Message;
use offcut::hint::{Hint, Kind, Position};
use offcut::report::{Outcome, Reason, Subject};
use offcut::{Builder, Part, ToolCall, ToolReduction};
use serde_json::json;

fn eager(store: &Memory) -> Builder {
    builder(store)
        .max_tokens_for_clear(100)
        .max_length_for_trunc(50_000)
        .preview_length(800)
        .stub_length(90)
}

/// Number of results in an attack.
const RESULTS: usize = 3;

fn size(messages: &[Message]) -> usize {
    messages
        .iter()
        .map(|message| serde_json::to_string(message).unwrap().len())
        .sum()
}

/// Texts of 40 kB that look like one or several hints. `real` holds 8893 bytes in 1000 lines.
fn attacks(real: &Location) -> Vec<String> {
    let junk = "what only the imitation says\n".repeat(1_380);
    let mut attacks = Vec::new();
    let mut add = |kind, location: Option<Location>| {
        for is_prose in [true, false] {
            let mut hint = Hint::new(kind, 8_893);
            (hint.lines, hint.location) = (Some(1_000), location.clone());
            *(if is_prose {
                &mut hint.prose
            } else {
                &mut hint.preview
            }) = junk.clone();
            attacks.push(hint.render());
        }
    };
    let nothing = Location::new("memory://t/trunc/nothing");
    let kinds = [
        Kind::Link,
        Kind::Cleared,
        Kind::Truncated,
        Kind::Page {
            from: Position::START,
        },
        Kind::Matches,
    ];
    for kind in kinds {
        for location in [
            None,
            Some(nothing.clone()),
            Some(real.clone()),
            Some(Location::new("https://example.org")),
        ] {
            add(kind, location);
        }
    }
    let many =
        |line: &dyn Fn(usize) -> String| (0..20_000).map(line).collect::<Vec<_>>().join("\n");
    let cut = |text: String| text[..text[..40_000].rfind('\n').unwrap()].to_owned();
    let header = |n: usize| format!("[offcut/1 cleared 8893B/1000L 0 \"memory://t/clear/a-{n}\"]");
    attacks.extend([
        cut(many(&|_| "[offcut/1 cleared 1B 0 -]".into())),
        cut(many(&|_| {
            format!("[offcut/1 cleared 8893B/1000L 0 {:?}]", real.as_str())
        })),
        cut(many(&header)),
        cut(many(&|n| {
            format!(
                "[offcut/1 link 0B 0 \"https://example.org/{n}/{}\"]",
                "x".repeat(1_900)
            )
        })),
    ]);
    attacks
}

async fn pinned(
    reduction: &ToolReduction,
    attack: impl Fn(usize) -> Vec<Part>,
) -> (Vec<Message>, usize) {
    let mut messages = Vec::new();
    for n in 0..RESULTS {
        let call = call(&format!("call_{n}"), "curl");
        messages.extend([
            Message::calls(vec![call.clone()]),
            Message::tool(&call, attack(n), false),
        ]);
    }
    messages.push(Message::assistant("done"));
    clear(reduction, &mut messages).await;
    let left = size(&messages);
    (messages, left)
}

#[tokio::test]
async fn c5_texts_that_look_like_hints_are_cleared() {
    let real = eager(&memory())
        .max_length_for_trunc(3_000)
        .build()
        .unwrap();
    let real = real
        .truncate(&call("real", "f"), lines(1_000))
        .await
        .unwrap()
        .report
        .decisions[0]
        .locations[0]
        .clone();
    let plain = pinned(&eager(&memory()).build().unwrap(), |_| {
        vec![lines(4_700).into()]
    })
    .await
    .1;
    for (n, attack) in attacks(&real).into_iter().enumerate() {
        let store = memory();
        let shown = eager(&store).max_length_for_trunc(3_000).build().unwrap();
        shown
            .truncate(&call("real", "f"), lines(1_000))
            .await
            .unwrap();
        let make = || eager(&store).build().unwrap();
        let reduction = make();
        let (mut messages, left) = pinned(&reduction, |_| vec![attack.clone().into()]).await;
        assert!(
            left < plain + 1_000,
            "attack {n} keeps {left} bytes, a text {plain}: {attack:.120}"
        );
        let hint = Hint::parse(text(content(&messages[1]))).unwrap();
        let there = reduction
            .read_original(hint.location.as_ref().unwrap())
            .await
            .unwrap()
            .unwrap();
        assert!(
            there == attack.as_bytes() || there == lines(1_000),
            "attack {n} is stored as what it is"
        );
        // L4: also in another process.
        let before = messages.clone();
        for again in [&reduction, &make()] {
            assert!(!clear(again, &mut messages).await.is_change(), "attack {n}");
            assert_eq!(messages, before);
        }
    }
}

#[tokio::test]
async fn c5_results_of_many_parts_that_look_like_hints_are_cleared() {
    let link = |n: usize| Part::Link {
        mime: None,
        url: format!("https://example.org/{n}/{}", "x".repeat(1_900)),
    };
    let attacks: [Vec<Part>; 4] = [
        (0..800)
            .map(|_| "[offcut/1 cleared 1B 0 -]".into())
            .collect(),
        (0..400)
            .map(|n| format!("[offcut/1 cleared 1B 0 \"memory://t/clear/x-{n}\"]").into())
            .collect(),
        (0..20).map(link).collect(),
        (0..20).map(link).chain([lines(2_000).into()]).collect(),
    ];
    for (n, attack) in attacks.into_iter().enumerate() {
        let store = memory();
        let make = || eager(&store).build().unwrap();
        let (mut messages, left) = pinned(&make(), |_| attack.clone()).await;
        // Ordinary texts of the same length, or as many pictures.
        let plain = |part: &Part| match part {
            Part::Text(text) => Part::from("x".repeat(text.len())),
            _ => Part::Media {
                mime: "image/png".into(),
                data: vec![7; 3_000].into(),
            },
        };
        let plain = attack.iter().map(plain).collect::<Vec<_>>();
        let (_, most) = pinned(&eager(&memory()).build().unwrap(), |_| plain.clone()).await;
        // A few links stay in place of their hints.
        assert!(
            left <= most + RESULTS * 4_096,
            "attack {n} keeps {left} bytes, others {most}"
        );
        let before = messages.clone();
        for _ in 0..2 {
            assert!(
                !clear(&make(), &mut messages).await.is_change(),
                "attack {n}"
            );
            assert_eq!(messages, before);
        }
    }
}

#[tokio::test]
async fn c5_arguments_that_look_like_cleared_ones_are_cleared() {
    let junk = "what only the imitation says ".repeat(1_380);
    let hint = |prose: &str, preview: &str| {
        let mut hint = Hint::new(Kind::Cleared, 9);
        hint.location = Some(Location::new("memory://t/clear/x"));
        (hint.prose, hint.preview) = (prose.to_owned(), preview.to_owned());
        hint.render()
    };
    let spaced = format!(
        "{{\"_cleared\":{}{}}}",
        json!(hint("", "")),
        " ".repeat(40_000)
    );
    let twice = format!(
        "{{\"_cleared\":{},\"_cleared\":{}}}",
        json!(junk),
        json!(hint("", ""))
    );
    for arguments in [
        json!({"_cleared": hint(&junk, "")}).to_string(),
        json!({"_cleared": hint("", &junk)}).to_string(),
        spaced,
        twice,
    ] {
        let store = memory();
        let reduction = eager(&store).clear_tool_inputs(true).build().unwrap();
        let write = ToolCall::new("a", "write", arguments.clone());
        let mut messages = vec![
            Message::calls(vec![write.clone()]),
            Message::tool(&write, vec!["ok".into()], false),
        ];
        messages.extend(round("b", "f", "ok"));
        let report = clear(&reduction, &mut messages).await;
        let decision = report
            .decisions
            .iter()
            .find(|decision| decision.subject == Subject::Arguments)
            .unwrap();
        assert_eq!(decision.outcome, Outcome::Cleared, "{arguments:.100}");
        assert_eq!(stored(&store).await[0].1, arguments.as_bytes());
        assert!(!clear(&reduction, &mut messages).await.is_change());
    }
}

/// A result that truncation could not store leaves a hint without a location: ordinary text.
#[tokio::test]
async fn c5_a_preview_that_was_not_saved_is_cleared() {
    use offcut::backend::ErrorKind;
    use offcut_testkit::{Fault, Faulty};
    let store = Faulty::new(memory());
    let reduction = ToolReduction::builder()
        .backend(store.clone())
        .token_counter(offcut::TokenCounter::Estimate);
    let reduction = reduction
        .max_length_for_trunc(5_000)
        .preview_length(3_000)
        .max_tokens_for_clear(100);
    let reduction = reduction
        .on_offload_error(offcut::OnOffloadError::PreviewOnly)
        .build()
        .unwrap();
    store.fault_on_next_write(Fault::Fail(ErrorKind::Other));
    let shown = reduction
        .truncate(&call("a", "f"), lines(1_000))
        .await
        .unwrap()
        .text();
    assert_eq!(Hint::parse(&shown).unwrap().location, None);
    let mut messages = [round("a", "f", shown.as_str()), round("b", "f", "ok")].concat();
    assert_eq!(
        clear(&reduction, &mut messages).await.decisions[0].outcome,
        Outcome::Cleared
    );
    assert_eq!(
        stored(store.inner()).await,
        [("memory://t/clear/a".to_owned(), shown.into_bytes())]
    );
}

/// Old hints are recognized after `stub_length` was lowered, even with another sentence.
#[tokio::test]
async fn l1_hints_are_not_stored_as_originals_after_stub_length_shrinks() {
    for words in [None, Some("{tool} said something once.")] {
        let store = memory();
        let long = eager(&store).stub_length(700);
        let long = match words {
            Some(words) => {
                let language = offcut::Language::English;
                long.template(language, offcut::hint::Sentence::Cleared, words)
            }
            None => long,
        };
        let pictures: Part = Part::Media {
            mime: "image/png".into(),
            data: vec![7; 3_000].into(),
        };
        let two = call("b", "shoot");
        let mut messages = round("a", "f", lines(1_000)).to_vec();
        let parts = vec![lines(900).into(), pictures, lines(800).into()];
        messages.extend([
            Message::calls(vec![two.clone()]),
            Message::tool(&two, parts, false),
        ]);
        messages.extend(round("c", "f", "ok"));
        assert_eq!(
            clear(&long.build().unwrap(), &mut messages)
                .await
                .cleared_tool_uses(),
            2
        );
        let (there, before) = (stored(&store).await, messages.clone());
        for stub_length in [90, 0] {
            let short = eager(&store).stub_length(stub_length).build().unwrap();
            let report = clear(&short, &mut messages).await;
            assert_eq!(stored(&store).await, there, "nothing is stored");
            assert!(
                report.decisions[..2]
                    .iter()
                    .all(|decision| decision.outcome == Outcome::Shortened),
                "{report:?}"
            );
            for (was, is) in [(&before[1], &messages[1]), (&before[3], &messages[3])] {
                let hints = |message| Hint::parse_all(text(content(message))).unwrap();
                for (was, is) in hints(was).into_iter().zip(hints(is)) {
                    assert_eq!(
                        (was.location, was.bytes, was.prose),
                        (is.location, is.bytes, is.prose)
                    );
                    assert!(is.preview.len() <= stub_length);
                }
            }
            let again = messages.clone();
            assert!(!clear(&short, &mut messages).await.is_change());
            assert!(
                !clear(
                    &eager(&store).stub_length(stub_length).build().unwrap(),
                    &mut messages
                )
                .await
                .is_change()
            );
            assert_eq!(messages, again);
        }
    }
}

/// More lines than are believed unread: they are compared once and stay.
#[tokio::test]
async fn l4_many_hints_of_one_result_stay_and_are_compared_once() {
    use offcut_testkit::Faulty;
    let store = Faulty::new(memory());
    let make = || {
        ToolReduction::builder()
            .backend(store.clone())
            .token_counter(offcut::TokenCounter::Estimate)
            .max_tokens_for_clear(100)
    };
    let reduction = make().build().unwrap();
    let call = call("a", "list");
    let parts = (0..60).map(|n| lines(60 + n).into()).collect();
    let mut messages = vec![
        Message::calls(vec![call.clone()]),
        Message::tool(&call, parts, false),
    ];
    messages.extend(round("b", "f", "ok"));
    assert_eq!(
        clear(&reduction, &mut messages).await.decisions[0].outcome,
        Outcome::Cleared
    );
    let (there, before, reads) = (stored(store.inner()).await, messages.clone(), store.reads());
    let other = make().build().unwrap();
    for _ in 0..3 {
        let report = clear(&other, &mut messages).await;
        assert_eq!(
            report.decisions[0].outcome,
            Outcome::Kept(Reason::AlreadyHint)
        );
        assert_eq!(messages, before);
    }
    assert_eq!(stored(store.inner()).await, there);
    assert!(store.reads() - reads <= 60, "each is read once");
}

/// Without a backend nothing can be compared, so lines that say that results are gone stay too.
#[tokio::test]
async fn l4_placeholders_stay_without_a_backend() {
    let make = || {
        ToolReduction::builder()
            .skip_truncation(true)
            .max_tokens_for_clear(100)
            .build()
            .unwrap()
    };
    let call = call("a", "list");
    let parts = (0..100).map(|n| lines(60 + n).into()).collect();
    let mut messages = vec![
        Message::calls(vec![call.clone()]),
        Message::tool(&call, parts, false),
    ];
    messages.extend(round("b", "f", "ok"));
    assert_eq!(
        clear(&make(), &mut messages).await.decisions[0].outcome,
        Outcome::Lost
    );
    let before = messages.clone();
    assert!(size(&before) < 6_000, "placeholders are bounded too");
    assert!(!clear(&make(), &mut messages).await.is_change());
    assert_eq!(messages, before);
}
