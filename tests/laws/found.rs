//! Bugs found by the generated conversations, or by reading the code against the laws, each in its
//! smallest form.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use offcut::backend::{
    Backend, BackendError, Entry, Key, Location, Memory, PutOutcome, ReadRange, Writer,
};
use offcut::format::{Anthropic, Message, Messages, OpenAiChat, Plain};
use offcut::handler::Action;
use offcut::hint::{Hint, Kind};
use offcut::{
    Builder, Language, OnOffloadError, Part, PreviewLength, TokenCounter, ToolCall, ToolOutput,
    ToolPolicy, ToolReduction, Turn,
};
use offcut_testkit::Faulty;
use serde_json::{Value, json};

use super::block_on;

fn builder(store: impl Backend) -> Builder {
    ToolReduction::builder()
        .backend(store)
        .token_counter(TokenCounter::Estimate)
        .max_length_for_trunc(1_000)
        .preview_length(200)
        .max_tokens_for_clear(1)
        .clear_retention_suffix_limit(0)
}

fn lines(bytes: usize) -> String {
    super::text::Text::new(super::text::Kind::Lines, bytes, 0).render()
}

fn call(id: &str, tool: &str) -> ToolCall {
    ToolCall::new(id, tool, "")
}

/// Makes one round for each result, then a last word.
fn conversation(results: Vec<(ToolCall, Vec<Part>, bool)>) -> Vec<Message> {
    let round = |(call, parts, is_error): (ToolCall, Vec<Part>, bool)| {
        [
            Message::calls(vec![call.clone()]),
            Message::tool(&call, parts, is_error),
        ]
    };
    results
        .into_iter()
        .flat_map(round)
        .chain([Message::assistant("done")])
        .collect()
}

/// Makes a text that looks like a hint of ours, at an empty location.
fn forged(location: &str, shown: usize) -> String {
    let mut hint = Hint::new(Kind::Truncated, 1_000);
    hint.location = Some(Location::new(location));
    hint.preview = lines(shown);
    hint.render()
}

#[test]
fn l4_hints_of_json_are_not_truncated_again() {
    block_on(async {
        let reduction = builder(Memory::new()).build().unwrap();
        let document = |n: usize| Part::Json(json!({"n": n, "text": lines(3_000)}));
        let shown = reduction
            .truncate(
                &call("a", "grep"),
                ToolOutput::parts((0..5).map(document).collect()),
            )
            .await
            .unwrap();
        let again = reduction
            .truncate(&call("a", "grep"), ToolOutput::parts(shown.parts.clone()))
            .await
            .unwrap();
        assert_eq!(again.parts, shown.parts);
    });
}

#[test]
fn l4_nothing_is_stored_next_to_an_unverified_hint() {
    block_on(async {
        let store = Faulty::new(Memory::named("m").unwrap());
        let reduction = builder(store.clone()).build().unwrap();
        // Too long to compare.
        let key = Key::new("trunc/real").unwrap();
        let long = vec![b'x'; (64 << 20) + 1];
        store.inner().put(&key, long.into()).await.unwrap();
        let hint = forged("memory://m/trunc/real", 1);
        let parts = vec![lines(400).into(), hint.into()];
        let mut messages = conversation(vec![(call("a", "grep"), parts, false)]);
        let before = (messages.clone(), store.writes());
        reduction.clear(Plain, &mut messages).await.unwrap();
        assert_eq!((messages, store.writes()), before);
    });
}

#[test]
fn l2_a_forged_hint_at_an_empty_place_does_not_fail_the_pass() {
    block_on(async {
        let reduction = builder(Memory::named("m").unwrap())
            .on_offload_error(OnOffloadError::Fail)
            .build()
            .unwrap();
        let mut messages = conversation(vec![
            (
                call("a", "grep"),
                vec![forged("memory://m/trunc/nothing", 300).into()],
                false,
            ),
            (call("b", "grep"), vec![lines(900).into()], false),
        ]);
        let report = reduction
            .clear(Plain, &mut messages)
            .await
            .expect("no store failed");
        assert_eq!(report.cleared_tool_uses(), 2, "it is a text like any other");
        assert!(
            report
                .decisions
                .iter()
                .all(|decision| decision.error.is_none()),
            "{report:?}"
        );
    });
}

#[test]
fn l4_a_stub_is_as_long_as_it_was_planned_to_be() {
    block_on(async {
        let store = Faulty::new(Memory::new());
        let reduction = builder(store.clone())
            .preview_length(0)
            .stub_length(200)
            .build()
            .unwrap();
        let parts = vec![lines(400).into(), lines(900).into()];
        let shown = reduction
            .truncate(&call("a", "grep"), ToolOutput::parts(parts))
            .await
            .unwrap();
        let mut messages = conversation(vec![(call("a", "grep"), shown.parts, false)]);
        reduction.clear(Plain, &mut messages).await.unwrap();
        let writes = store.writes();
        reduction.clear(Plain, &mut messages).await.unwrap();
        assert_eq!(store.writes(), writes, "{messages:?}");
    });
}

/// Two results with the same id and text, of which only the second may go. Passing in the originals
/// again must not lose the first.
async fn twins(builder: Builder, first: ToolCall, is_error: bool) {
    let reduction = builder.build().unwrap();
    let originals = conversation(vec![
        (first, vec![lines(150).into()], is_error),
        (call("call_0", "grep"), vec![lines(150).into()], false),
    ]);
    let mut sent = originals.clone();
    reduction.clear(Plain, &mut sent).await.unwrap();
    assert_eq!(
        (sent[1] == originals[1], sent[3] == originals[3]),
        (true, false),
        "the first stays, the second goes"
    );
    let mut again = originals.clone();
    reduction.clear(Plain, &mut again).await.unwrap();
    assert_eq!(again, sent);
}

#[test]
fn c13_a_kept_error_stays_although_an_equal_result_was_replaced() {
    // The limit is one that clearing the second keeps.
    let limit = (40..200).rev().find(|limit| {
        let reduction = builder(Memory::new())
            .max_tokens_for_clear(*limit)
            .build()
            .unwrap();
        let mut messages = conversation(vec![
            (call("call_0", "grep"), vec![lines(150).into()], true),
            (call("call_0", "grep"), vec![lines(150).into()], false),
        ]);
        let report = block_on(reduction.clear(Plain, &mut messages)).unwrap();
        report.is_change()
    });
    let builder = builder(Memory::new()).max_tokens_for_clear(limit.unwrap());
    block_on(twins(builder, call("call_0", "grep"), true));
}

#[test]
fn c13_a_result_of_an_excluded_tool_stays_although_an_equal_one_was_replaced() {
    let builder = builder(Memory::new()).clear_exclude_tools(["cat"]);
    block_on(twins(builder, call("call_0", "cat"), false));
}

#[test]
fn l4_a_pass_that_is_run_again_with_the_same_usage_clears_no_more() {
    block_on(async {
        let limits = builder(Memory::new()).max_tokens_for_clear(1_000);
        let reduction = limits.build().unwrap();
        let results = (0..5)
            .map(|n| {
                (
                    call(&format!("call_{n}"), "grep"),
                    vec![lines(900).into()],
                    false,
                )
            })
            .collect();
        let mut messages = conversation(results);
        let mut sent = Vec::new();
        for _ in 0..2 {
            let mut conversation = Messages::new(Plain, &mut messages);
            let mut turn = Turn::new(&mut conversation);
            turn.last_usage = Some(1_100);
            reduction.clear_turn(&mut turn).await.unwrap();
            sent.push(messages.clone());
        }
        assert_eq!(sent[0], sent[1]);
    });
}

#[test]
fn l1_two_stores_of_one_name_are_not_mixed_up() {
    block_on(async {
        let fetch = ToolPolicy::new().backend(Memory::new());
        // Refusing to build is fine too.
        let Ok(reduction) = builder(Memory::new()).tool("fetch", fetch).build() else {
            return;
        };
        for (tool, text) in [("grep", lines(2_000)), ("fetch", lines(3_000))] {
            let shown = reduction
                .truncate(&call("call_0", tool), text.clone())
                .await
                .unwrap();
            let location = &shown.report.decisions[0].locations[0];
            let read = reduction.read_original(location).await.unwrap().unwrap();
            assert_eq!(read.len(), text.len(), "{tool} at {location}");
        }
    });
}

/// Clears a chat-completions result. Returns its new content and all that was stored of it.
async fn cleared(content: Value) -> (Value, String) {
    let store = Memory::new();
    let reduction = builder(store.clone()).build().unwrap();
    let mut messages = vec![
        json!({"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}]}),
        json!({"role": "tool", "tool_call_id": "a", "content": content}),
        json!({"role": "assistant", "content": "done"}),
    ];
    let report = reduction.clear(OpenAiChat, &mut messages).await.unwrap();
    assert_eq!(report.cleared_tool_uses(), 1);
    let mut stored = String::new();
    let mut entries = store.list();
    while let Some(entry) = entries.next().await {
        let page = store.read(&entry.unwrap().key, 0..u64::MAX).await.unwrap();
        stored.push_str(&String::from_utf8_lossy(&page.bytes));
    }
    (messages[1]["content"].take(), stored)
}

#[test]
fn l5_the_cache_mark_of_an_image_stays() {
    block_on(async {
        let url = format!("data:image/png;base64,{}", "AAAA".repeat(200));
        let image = json!({"type": "image_url", "image_url": {"url": url}, "cache_control": {"type": "ephemeral"}});
        let (content, _) = cleared(json!([{"type": "text", "text": lines(300)}, image])).await;
        assert_eq!(
            content[0]["cache_control"],
            json!({"type": "ephemeral"}),
            "{content}"
        );
    });
}

#[test]
fn l1_unknown_fields_of_two_texts_are_not_lost() {
    block_on(async {
        let part = |source: &str| json!({"type": "text", "text": lines(300), "source": source});
        let (content, stored) = cleared(json!([part("first"), part("second")])).await;
        assert!(
            stored.contains("first") && stored.contains("second"),
            "{stored}"
        );
        assert_eq!(content[0].get("source"), None);
        // The fields of a single text stay in place.
        let (content, _) = cleared(json!([part("only")])).await;
        assert_eq!(content[0]["source"], "only");
    });
}

#[test]
fn l1_a_file_keeps_its_name() {
    block_on(async {
        let data = format!("data:application/pdf;base64,{}", "AAAA".repeat(20_000));
        let file =
            json!([{"type": "file", "file": {"filename": "report-7.pdf", "file_data": data}}]);
        let (_, stored) = cleared(file).await;
        assert!(
            stored.contains("report-7"),
            "the name is stored with the file"
        );
    });
}

#[test]
fn l1_a_call_with_two_kinds_of_input_loses_neither() {
    block_on(async {
        let reduction = builder(Memory::named("m").unwrap())
            .clear_tool_inputs(true)
            .build()
            .unwrap();
        let (arguments, input) = (lines(600), "only here ".repeat(40));
        let odd = json!({"id": "a", "function": {"name": "f", "arguments": arguments}, "custom": {"name": "f", "input": input}});
        let mut messages = vec![
            json!({"role": "assistant", "tool_calls": [odd]}),
            json!({"role": "tool", "tool_call_id": "a", "content": "."}),
            json!({"role": "assistant", "content": "done"}),
        ];
        reduction.clear(OpenAiChat, &mut messages).await.unwrap();
        assert_eq!(messages[0]["tool_calls"][0]["custom"]["input"], input);
    });
}

#[test]
fn l5_an_input_outside_of_a_custom_call_stays() {
    block_on(async {
        let reduction = builder(Memory::named("m").unwrap())
            .clear_tool_inputs(true)
            .build()
            .unwrap();
        let input = "only here ".repeat(600);
        for odd in [
            json!({"id": "a", "input": input}),
            json!({"id": "a", "function": {"name": "f", "input": input}}),
        ] {
            let mut messages = vec![
                json!({"role": "assistant", "tool_calls": [odd]}),
                json!({"role": "tool", "tool_call_id": "a", "content": "."}),
                json!({"role": "assistant", "content": "done"}),
            ];
            let before = messages.clone();
            reduction.clear(OpenAiChat, &mut messages).await.unwrap();
            assert_eq!(messages, before);
        }
    });
}

#[test]
fn l4_unverified_hints_free_nothing_in_any_process() {
    block_on(async {
        let store = Memory::named("m").unwrap();
        let build = || {
            builder(store.clone())
                .max_length_for_trunc(3_000)
                .clear_at_least_tokens(250)
                .build()
                .unwrap()
        };
        let reduction = build();
        reduction
            .truncate(&call("real", "grep"), lines(4_000))
            .await
            .unwrap();
        let mut messages = conversation(vec![(
            call("a", "grep"),
            vec![forged("memory://m/trunc/real", 1_200).into()],
            false,
        )]);
        reduction.clear(Plain, &mut messages).await.unwrap();
        messages.extend(conversation(vec![(
            call("b", "grep"),
            vec![lines(900).into()],
            false,
        )]));
        reduction.clear(Plain, &mut messages).await.unwrap();
        let mut elsewhere = messages.clone();
        build().clear(Plain, &mut elsewhere).await.unwrap();
        assert_eq!(elsewhere, messages);
    });
}

#[test]
fn l4_a_copy_of_what_a_pass_has_put_is_cleared_as_in_any_process() {
    block_on(async {
        let store = Memory::named("m").unwrap();
        let build = || {
            let grep = ToolPolicy::new().stub_length(60);
            let builder = builder(store.clone()).tool("grep", grep);
            let builder = builder.clear_handler(|_| Ok(Action::Default));
            builder.build().unwrap()
        };
        let round = |tool: &str, content: &str| {
            let function = json!({"name": tool, "arguments": ""});
            [
                json!({"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": function}]}),
                json!({"role": "tool", "tool_call_id": "a", "content": content}),
                json!({"role": "assistant", "content": "done"}),
            ]
        };
        let reduction = build();
        let mut messages = round("grep", &lines(900)).to_vec();
        reduction.clear(OpenAiChat, &mut messages).await.unwrap();
        let put = messages[1]["content"].as_str().unwrap().to_owned();
        messages.extend(round("cat", &put));
        reduction.clear(OpenAiChat, &mut messages).await.unwrap();
        assert_ne!(messages[4]["content"], put, "`cat` has shorter hints");
        let mut elsewhere = messages.clone();
        build().clear(OpenAiChat, &mut elsewhere).await.unwrap();
        assert_eq!(elsewhere, messages);
    });
}

#[test]
fn l4_what_is_no_gain_for_one_tool_may_be_for_another() {
    block_on(async {
        let store = Memory::named("one").unwrap();
        let build = || {
            builder(store.clone())
                .language(Language::Chinese)
                .build()
                .unwrap()
        };
        let reduction = build();
        let shown = reduction
            .truncate(&call("call_0", "cat"), lines(3_000))
            .await
            .unwrap();
        let [Part::Text(shown)] = &shown.parts[..] else {
            panic!("{:?}", shown.parts)
        };
        let mut hint = Hint::parse_all(shown).unwrap().remove(0);
        hint.preview.clear();
        let copied = hint.render();
        let call_of =
            |tool: &str| json!({"type": "tool_use", "id": "call_0", "name": tool, "input": {}});
        let result = json!({"type": "tool_result", "tool_use_id": "call_0", "content": copied});
        let mut messages = Vec::new();
        for tool in ["a_tool_with_a_long_name", "cat"] {
            messages.extend([
                json!({"role": "assistant", "content": [call_of(tool)]}),
                json!({"role": "user", "content": [result]}),
                json!({"role": "assistant", "content": "done"}),
            ]);
            reduction.clear(Anthropic, &mut messages).await.unwrap();
        }
        let before = messages.clone();
        build().clear(Anthropic, &mut messages).await.unwrap();
        assert_eq!(messages, before);
    });
}

#[test]
fn l8_a_forged_hint_is_not_compared_anew_at_every_pass() {
    block_on(async {
        let store = Faulty::new(Memory::named("m").unwrap());
        let reduction = builder(store.clone()).build().unwrap();
        reduction
            .truncate(&call("real", "grep"), lines(90_000))
            .await
            .unwrap();
        let mut messages = conversation(vec![(
            call("a", "grep"),
            vec![forged("memory://m/trunc/real", 300).into()],
            false,
        )]);
        reduction.clear(Plain, &mut messages).await.unwrap();
        let reads = store.reads();
        for _ in 0..5 {
            reduction.clear(Plain, &mut messages).await.unwrap();
        }
        assert_eq!(store.reads(), reads);
    });
}

#[test]
fn l1_numbers_that_another_tool_puts_before_stored_lines_are_not_lost() {
    block_on(async {
        let reduction = builder(Memory::new()).build().unwrap();
        let content: String = (0..300).map(|n| format!("word{n}\n")).collect();
        let shown = reduction
            .truncate(&call("a", "grep"), content.clone())
            .await
            .unwrap();
        let location = shown.report.decisions[0].locations[0].as_str();
        // Like the output of `uniq -c`: the numbers are counts, not line numbers.
        let counted: String = content
            .lines()
            .zip(1..)
            .map(|(line, n)| format!("{:>7}\t{line}\n", 1_000 + n * 7))
            .collect();
        let uniq = ToolCall::new("b", "uniq", json!({"file": location}).to_string());
        let shown = reduction.truncate(&uniq, counted.clone()).await.unwrap();
        let location = &shown.report.decisions[0].locations[0];
        let stored = reduction.read_original(location).await.unwrap().unwrap();
        let is_lost = !shown.text().contains("2050\t")
            && !String::from_utf8_lossy(&stored).contains("2050\t");
        assert!(!is_lost, "{}", shown.text());
    });
}

/// A store that is slow for contents of one length.
#[derive(Debug)]
struct Slow(Memory, usize);

#[async_trait]
impl Backend for Slow {
    fn locate(&self, key: &Key) -> Location {
        self.0.locate(key)
    }

    fn resolve(&self, location: &str) -> Option<Key> {
        self.0.resolve(location)
    }

    async fn put(&self, key: &Key, content: Bytes) -> Result<PutOutcome, BackendError> {
        for _ in 0..if content.len() == self.1 { 9 } else { 0 } {
            tokio::task::yield_now().await;
        }
        self.0.put(key, content).await
    }

    async fn writer(&self) -> Result<Box<dyn Writer>, BackendError> {
        self.0.writer().await
    }

    async fn read(&self, key: &Key, range: Range<u64>) -> Result<ReadRange, BackendError> {
        self.0.read(key, range).await
    }

    fn list(&self) -> BoxStream<'_, Result<Entry, BackendError>> {
        self.0.list()
    }
}

#[test]
fn l4_names_do_not_depend_on_which_write_is_faster() {
    block_on(async {
        let image = Part::Media {
            mime: "image/png".into(),
            data: Bytes::from(vec![7; 700]),
        };
        let originals = conversation(vec![
            (call("call", "draw"), vec![image], false),
            (call("call.png", "grep"), vec![lines(800).into()], false),
        ]);
        let mut sent = Vec::new();
        for slow in [700, 800] {
            let reduction = builder(Arc::new(Slow(Memory::new(), slow)))
                .build()
                .unwrap();
            let mut messages = originals.clone();
            reduction.clear(Plain, &mut messages).await.unwrap();
            sent.push(messages);
        }
        assert_eq!(sent[0], sent[1]);
    });
}

#[test]
fn l4_a_text_that_stayed_whole_beside_hints_is_not_previewed_later() {
    block_on(async {
        let reduction = builder(Memory::new())
            .max_length_for_trunc(1_250)
            .preview_length(PreviewLength::curve(3.0, 0.7, 450))
            .preview_above(400)
            .build()
            .unwrap();
        let first = reduction
            .truncate(&call("first", "grep"), lines(1_400))
            .await
            .unwrap();
        let [Part::Text(hint)] = &first.parts[..] else {
            panic!("{:?}", first.parts)
        };
        // Over the limit together. The two longest are cut again, to below `preview_above`.
        let parts = [lines(450), format!("{hint}{}", lines(65)), hint.clone()];
        let output = ToolOutput::parts(parts.into_iter().map(Part::Text).collect());
        let shown = reduction
            .truncate(&call("second", "shell"), output)
            .await
            .unwrap();
        assert_eq!(shown.parts[0], Part::Text(lines(450)));
        assert_ne!(shown.parts[2], Part::Text(hint.clone()));
        let again = reduction
            .truncate(
                &call("second", "shell"),
                ToolOutput::parts(shown.parts.clone()),
            )
            .await
            .unwrap();
        assert_eq!(again.parts, shown.parts);
    });
}

#[test]
fn l1_short_hints_that_a_tool_repeats_stay_unchanged() {
    block_on(async {
        let reduction = builder(Memory::new()).build().unwrap();
        let texts = vec![lines(400).into(), lines(500).into()];
        let mut messages = conversation(vec![(call("a", "grep"), texts, false)]);
        reduction.clear(Plain, &mut messages).await.unwrap();
        let Message::Tool { content, .. } = &messages[1] else {
            panic!("{messages:?}")
        };
        let [Part::Text(cleared)] = &content[..] else {
            panic!("{messages:?}")
        };
        let copied = cleared.clone();
        assert_eq!(Hint::parse_all(&copied).unwrap().len(), 2);
        let parts = vec![lines(600).into(), copied.clone().into()];
        let mut messages = conversation(vec![(call("b", "grep"), parts, false)]);
        reduction.clear(Plain, &mut messages).await.unwrap();
        let Message::Tool { content, .. } = &messages[1] else {
            panic!("{messages:?}")
        };
        let [Part::Text(cleared)] = &content[..] else {
            panic!("{messages:?}")
        };
        assert!(cleared.ends_with(&format!("\n{copied}")), "{cleared}");
    });
}
