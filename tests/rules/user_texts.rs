//! Long texts of users (C15).

use crate::common::{builder, call, clear, lines, memory, outcomes, round, stored, text};
use offcut::backend::{ErrorKind, Memory};
use offcut::format::{Format, JsonText, Message, Messages, Plain, Spelled, WireFormat};
use offcut::hint::Hint;
use offcut::report::{Outcome, Reason, Subject};
use offcut::{Builder, OnOffloadError, Part, Report, ToolReduction, Turn};
use offcut_testkit::{Fault, Faulty};
use serde_json::{Value, json};

fn pasting(store: &Memory) -> Builder {
    builder(store)
        .max_tokens_for_clear(100)
        .preview_length(300)
        .clear_user_texts_above(2_000)
}

/// A long text of a user, an answer to it, and a round that is not answered yet.
fn pasted() -> Vec<Message> {
    let mut messages = vec![
        Message::user(lines(400)),
        Message::assistant("I see."),
        Message::user("Look for it."),
    ];
    messages.extend(round("a", "grep", "found".to_owned()));
    messages
}

fn texts(report: &Report) -> Vec<Outcome> {
    let texts = report.decisions.iter();
    let texts = texts.filter(|decision| decision.subject == Subject::UserText);
    texts.map(|decision| decision.outcome).collect()
}

#[tokio::test]
async fn c15_a_long_text_that_was_answered_is_stored_and_previewed() {
    let store = memory();
    let mut messages = pasted();
    let report = clear(&pasting(&store).build().unwrap(), &mut messages).await;
    assert_eq!(texts(&report), [Outcome::Cleared]);
    let Message::User { content } = &messages[0] else {
        panic!("{:?}", messages[0]);
    };
    let shown = text(content);
    insta::assert_snapshot!(shown.lines().next().unwrap(), @r#"[offcut/1 cleared 3492B/400L 45+283 "memory://t/clear/12da2b08bd961de9"] Old text of the user. Read it with read_file."#);
    let hint = Hint::parse(shown).unwrap();
    assert!((200..=300).contains(&hint.preview.len()), "{shown}");
    assert_eq!(
        stored(&store).await,
        [(
            hint.location.unwrap().as_str().to_owned(),
            lines(400).into_bytes()
        )]
    );
    assert_eq!(messages[1..], pasted()[1..]);
}

/// A user pastes what was shown of a result.
#[tokio::test]
async fn c15_a_pasted_hint_is_still_a_users_text() {
    let store = memory();
    let reduction = pasting(&store)
        .max_length_for_trunc(4_000)
        .preview_length(3_000);
    let reduction = reduction.build().unwrap();
    let shown = reduction.truncate(&call("a", "grep"), lines(900)).await;
    let mut messages = pasted();
    messages[0] = Message::user(shown.unwrap().text());
    let report = clear(&reduction, &mut messages).await;
    let [outcome] = texts(&report)[..] else {
        panic!("{report:?}");
    };
    assert!(outcome.is_change(), "{report:?}");
    let Message::User { content } = &messages[0] else {
        panic!("{:?}", messages[0]);
    };
    let words = Hint::parse(text(content)).unwrap().prose;
    assert_eq!(words, "Old text of the user. Read it with read_file.");
}

#[tokio::test]
async fn c15_texts_stay_unless_they_are_long_answered_and_old() {
    let long = lines(400);
    let bytes = long.len();
    let answered = || pasted();
    let unanswered = || {
        let mut messages = pasted();
        messages.push(Message::user(long.clone()));
        messages.remove(0);
        messages
    };
    let store = memory();
    type Set = Box<dyn Fn(Builder) -> Builder>;
    let cases: [(&str, Vec<Message>, Set, &[Outcome]); 6] = [
        (
            "off",
            answered(),
            Box::new(|b| b.clear_user_texts_above(None)),
            &[],
        ),
        (
            "as long",
            answered(),
            Box::new(move |b| b.clear_user_texts_above(bytes)),
            &[],
        ),
        (
            "a byte longer",
            answered(),
            Box::new(move |b| b.clear_user_texts_above(bytes - 1)),
            &[Outcome::Cleared],
        ),
        (
            "unanswered",
            unanswered(),
            Box::new(|b| b),
            &[Outcome::Kept(Reason::Unanswered)],
        ),
        (
            "of two turns",
            answered(),
            Box::new(|b| b.clear_retention_suffix_limit(2)),
            &[Outcome::Cleared],
        ),
        (
            "of three turns",
            answered(),
            Box::new(|b| b.clear_retention_suffix_limit(3)),
            &[Outcome::Kept(Reason::Recent)],
        ),
    ];
    for (name, mut messages, set, expected) in cases {
        let report = clear(&set(pasting(&store)).build().unwrap(), &mut messages).await;
        assert_eq!(texts(&report), expected, "{name}");
    }
}

#[tokio::test]
async fn c15_the_decision_is_repeated_over_the_original() {
    let store = memory();
    let reduction = pasting(&store).build().unwrap();
    let mut first = pasted();
    clear(&reduction, &mut first).await;
    let mut again = pasted();
    again.extend(round("b", "grep", lines(3)));
    let report = clear(&reduction, &mut again).await;
    assert_eq!(texts(&report), [Outcome::Repeated]);
    assert_eq!(again[0], first[0]);
    // Passed in as it was replaced, it stays.
    let before = first.clone();
    assert_eq!(texts(&clear(&reduction, &mut first).await), []);
    assert_eq!(first, before);
    // The same text again, not answered yet, is the newest.
    again.push(Message::user(lines(400)));
    clear(&reduction, &mut again).await;
    assert_eq!(again.last(), pasted().first());
}

#[tokio::test]
async fn c10_in_an_emergency_texts_over_the_limit_of_results_go_too() {
    let store = memory();
    let reduction = pasting(&store)
        .clear_user_texts_above(None)
        .max_length_for_trunc(3_000)
        .max_tokens_for_clear(1_000_000)
        .build()
        .unwrap();
    let session = reduction.session("s");
    let pass = async |is_too_long| {
        let mut messages = pasted();
        let mut conversation = Messages::new(Plain, &mut messages);
        let mut turn = Turn {
            is_too_long,
            ..Turn::new(&mut conversation)
        };
        let report = session.reduce_turn(&mut turn).await.unwrap();
        (texts(&report), messages)
    };
    assert_eq!(pass(false).await, (vec![], pasted()));
    let (outcomes, replaced) = pass(true).await;
    assert_eq!(outcomes, [Outcome::Cleared]);
    // One that is a small part of the conversation stays.
    let mut messages = pasted();
    messages[1] = Message::assistant(lines(9_000));
    let mut conversation = Messages::new(Plain, &mut messages);
    let mut turn = Turn {
        is_too_long: true,
        ..Turn::new(&mut conversation)
    };
    let report = reduction.clear_turn(&mut turn).await.unwrap();
    assert_eq!(texts(&report), []);
    // It stays so: otherwise the next request would be too long again.
    assert_eq!(pass(false).await, (vec![Outcome::Repeated], replaced));
}

/// A long text of a user between others, in each wire format, and what it is beside.
fn wire() -> [(WireFormat, Value, &'static str); 6] {
    let long = lines(400);
    [
        (
            WireFormat::OpenAiChat,
            json!({"role": "user", "content": long, "name": "ann"}),
            "/content",
        ),
        (
            WireFormat::OpenAiChat,
            json!({"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
                {"type": "text", "text": "Look:"}, {"type": "text", "text": long, "x": 1.50},
            ]}),
            "/content/2/text",
        ),
        (
            WireFormat::Responses,
            json!({"role": "user", "content": [{"type": "input_text", "text": long}, {"type": "input_text", "text": "So?"}]}),
            "/content/0/text",
        ),
        (
            WireFormat::Anthropic,
            json!({"role": "user", "content": [
                {"type": "text", "text": "Before."},
                {"type": "tool_result", "tool_use_id": "z", "content": [{"type": "text", "text": "one"}]},
                {"type": "text", "text": long, "cache_control": {"type": "ephemeral"}},
            ]}),
            "/content/2/text",
        ),
        (
            WireFormat::Gemini,
            json!({"role": "user", "parts": [
                {"functionResponse": {"name": "f", "response": {"output": "x"}}}, {"text": "So?"}, {"text": long},
            ]}),
            "/parts/2/text",
        ),
        (
            WireFormat::Gemini,
            json!({"parts": [{"inlineData": {"mimeType": "image/png", "data": "AA=="}}, {"text": long}]}),
            "/parts/1/text",
        ),
    ]
}

/// An assistant's answer in each format.
fn answer(format: WireFormat) -> Value {
    match format {
        WireFormat::Gemini => json!({"role": "model", "parts": [{"text": "Yes."}]}),
        _ => json!({"role": "assistant", "content": "Yes."}),
    }
}

async fn cleared<F: Format>(
    reduction: &ToolReduction,
    format: F,
    messages: &mut [F::Message],
) -> Report {
    let mut conversation = Messages::new(format, messages);
    let mut turn = Turn::new(&mut conversation);
    reduction.clear_turn(&mut turn).await.unwrap()
}

#[tokio::test]
async fn c15_only_the_text_changes_in_any_format() {
    for (format, message, place) in wire() {
        let store = memory();
        let reduction = pasting(&store).build().unwrap();
        let originals = [message.clone(), answer(format)];
        let mut values = originals.clone();
        let report = cleared(&reduction, format, &mut values).await;
        assert_eq!(texts(&report), [Outcome::Cleared], "{format} {place}");
        let new = values[0]
            .pointer(place)
            .unwrap()
            .as_str()
            .unwrap()
            .to_owned();
        let hint = Hint::parse(&new).unwrap();
        assert_eq!(
            stored(&store).await[0],
            (
                hint.location.unwrap().as_str().to_owned(),
                lines(400).into_bytes()
            )
        );
        let mut expected = message.clone();
        *expected.pointer_mut(place).unwrap() = new.clone().into();
        assert_eq!(values, [expected, answer(format)], "{format}");

        // The same over text, byte for byte.
        let spelled = |value: &Value| serde_json::to_string(value).unwrap().replace("{\"", "{ \"");
        let mut spelled_messages: Vec<JsonText> = originals
            .iter()
            .map(|message| JsonText::parse(spelled(message)).unwrap())
            .collect();
        cleared(&reduction, Spelled(format), &mut spelled_messages).await;
        let was = serde_json::to_string(&lines(400)).unwrap();
        let is = serde_json::to_string(&new).unwrap();
        assert_eq!(
            spelled_messages[0].as_str(),
            spelled(&message).replace(&was, &is)
        );
    }
}

#[tokio::test]
async fn c15_texts_of_odd_messages_and_of_others_stay() {
    let long = serde_json::to_string(&lines(400)).unwrap();
    let half = long.replacen('"', "\"\\ud800", 1);
    for (format, message) in [
        (
            WireFormat::OpenAiChat,
            format!(r#"{{"role":"user","content":"a","content":{long}}}"#),
        ),
        (
            WireFormat::OpenAiChat,
            format!(r#"{{"role":"user","content":{half}}}"#),
        ),
        (
            WireFormat::OpenAiChat,
            format!(r#"{{"role":"system","content":{long}}}"#),
        ),
        (
            WireFormat::OpenAiChat,
            format!(r#"{{"role":"developer","content":{long}}}"#),
        ),
        (
            WireFormat::OpenAiChat,
            format!(r#"{{"role":"assistant","content":{long}}}"#),
        ),
        (
            WireFormat::Responses,
            format!(r#"{{"role":"developer","content":{long}}}"#),
        ),
        (
            WireFormat::Responses,
            format!(r#"{{"type":"reasoning","role":"user","content":{long}}}"#),
        ),
        (
            WireFormat::Anthropic,
            format!(
                r#"{{"role":"user","content":[{{"type":"document","source":{{"type":"text","data":{long}}}}}]}}"#
            ),
        ),
        (
            WireFormat::Gemini,
            format!(r#"{{"role":"model","parts":[{{"text":{long}}}]}}"#),
        ),
    ] {
        let store = memory();
        let reduction = pasting(&store).build().unwrap();
        let mut messages = vec![
            JsonText::parse(message.clone()).unwrap(),
            JsonText::parse(answer(format).to_string()).unwrap(),
        ];
        cleared(&reduction, Spelled(format), &mut messages).await;
        assert_eq!(messages[0].as_str(), message);
        assert_eq!(stored(&store).await, []);
    }
}

#[tokio::test]
async fn c15_without_a_store_texts_stay() {
    let reduction = ToolReduction::builder()
        .skip_truncation(true)
        .max_tokens_for_clear(100)
        .clear_user_texts_above(2_000)
        .build()
        .unwrap();
    let mut messages = pasted();
    let report = clear(&reduction, &mut messages).await;
    assert_eq!((outcomes(&report).len(), messages), (1, pasted()));
}

#[tokio::test]
async fn c15_a_text_that_can_not_be_stored_stays() {
    for rule in [OnOffloadError::KeepOriginal, OnOffloadError::PreviewOnly] {
        let store = Faulty::new(memory());
        let reduction = pasting(&memory())
            .backend(store.clone())
            .on_offload_error(rule);
        let reduction = reduction.build().unwrap();
        store.fault_on_write(1, Fault::Fail(ErrorKind::Other));
        let mut messages = pasted();
        let report = clear(&reduction, &mut messages).await;
        assert_eq!(texts(&report), [Outcome::Kept(Reason::StoreFailed)]);
        assert_eq!(messages, pasted());
        let report = clear(&reduction, &mut messages).await;
        assert_eq!(texts(&report), [Outcome::Cleared]);
    }
}

#[tokio::test]
async fn c15_beside_images_in_our_own_messages() {
    let store = memory();
    let image = Part::Media {
        mime: "image/png".into(),
        data: vec![0, 1].into(),
    };
    let mut messages = vec![
        Message::User {
            content: vec![
                image.clone(),
                "Look:".into(),
                lines(400).into(),
                image.clone(),
            ],
        },
        Message::assistant("I see."),
    ];
    clear(&pasting(&store).build().unwrap(), &mut messages).await;
    let Message::User { content } = &messages[0] else {
        panic!();
    };
    assert_eq!(
        (&content[..2], &content[3]),
        (&[image.clone(), "Look:".into()][..], &image)
    );
    assert!(matches!(&content[2], Part::Text(text) if Hint::parse(text).is_some()));
}
