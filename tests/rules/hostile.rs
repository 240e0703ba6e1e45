//! Hostile input ends in a clear error or an untouched result, never in a panic or a loss.
#![cfg(feature = "fs")]

use std::path::Path;

use crate::common::{builder, call, clear, content, lines, memory, round, stored, text};
#[cfg(unix)]
use crate::mount::in_a_mount;
use offcut::agent::Tool;
use offcut::backend::{Fs, Memory};
use offcut::format::{LoopFormat, Message, OpenAiChat};
use offcut::hint::{Hint, Kind};
use offcut::report::{Outcome, Reason};
use offcut::{Builder, Part, ToolCall, ToolReduction};
use serde_json::{Value, json};

/// A reduction that acts on every conversation in these tests.
fn eager(store: &Memory) -> Builder {
    builder(store)
        .max_length_for_trunc(1_000)
        .preview_length(200)
        .max_tokens_for_clear(1)
}

/// Reads back the content of the hint `shown`, or returns `shown` itself if it leads nowhere.
async fn original(reduction: &ToolReduction, shown: &str) -> Vec<u8> {
    let hint = Hint::parse(shown);
    match hint.and_then(|hint| hint.location) {
        Some(location) => match reduction.read_original(&location).await {
            Some(content) => content
                .expect("what a hint of ours names is there")
                .to_vec(),
            None => shown.as_bytes().to_vec(),
        },
        None => shown.as_bytes().to_vec(),
    }
}

fn hostile_ids() -> Vec<String> {
    let mut ids: Vec<String> = [
        "../",
        "../../x",
        "..",
        ".",
        "",
        "a\0b",
        "\0",
        "调用一",
        "Call_A",
        "call_a",
        "CALL_A",
    ]
    .into_iter()
    .chain([
        "/etc/passwd",
        "a/b",
        "a\\b",
        "C:",
        "con",
        "NUL.txt",
        "a\nb",
        " ",
        "a b",
        "%2e%2e%2f",
        "-rf",
        "~",
        "$(id)",
    ])
    .map(str::to_owned)
    .collect();
    ids.push("x".repeat(2_048));
    ids.push("呼".repeat(700));
    ids
}

#[tokio::test]
async fn l6_hostile_ids_lose_nothing_and_leave_the_root_alone() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().canonicalize().unwrap().join("store");
    let store = Fs::open(&root).unwrap();
    let reduction = ToolReduction::builder()
        .backend(store.clone())
        .max_length_for_trunc(1_500)
        .preview_length(200);
    let reduction = reduction
        .count_tokens_with(|text: &str| text.len() as u64 / 4)
        .max_tokens_for_clear(1);
    let reduction = reduction
        .clear_tool_inputs(true)
        .clear_retention_suffix_limit(0)
        .build()
        .unwrap();
    let (mut messages, mut originals) = (Vec::new(), Vec::new());
    for (n, id) in hostile_ids().iter().enumerate() {
        // The first result is truncated on arrival, the second cleared later.
        for result in [lines(400 + n), format!("{n} short\n").repeat(60)] {
            let call = ToolCall::new(
                id,
                "f",
                json!({"n": n, "text": "argument ".repeat(60)}).to_string(),
            );
            let shown = reduction.truncate(&call, result.clone()).await.unwrap();
            messages.push(Message::calls(vec![call.clone()]));
            messages.push(Message::tool(&call, shown.parts, false));
            originals.push((result, call.arguments));
        }
    }
    messages.push(Message::assistant("done"));
    let report = clear(&reduction, &mut messages).await;
    assert_eq!(report.cleared_tool_uses(), originals.len());
    for (round, (result, arguments)) in messages.chunks(2).zip(&originals) {
        assert_eq!(
            original(&reduction, text(content(&round[1]))).await,
            result.as_bytes()
        );
        let Message::Assistant { calls, .. } = &round[0] else {
            panic!("{round:?}")
        };
        let cleared: Value = serde_json::from_str(&calls[0].arguments).unwrap();
        assert_eq!(
            original(&reduction, cleared["_cleared"].as_str().unwrap()).await,
            arguments.as_bytes()
        );
    }
    for (location, _) in stored(&store).await {
        let path = Path::new(&location).strip_prefix(&root).unwrap();
        assert!(
            path.starts_with("trunc") || path.starts_with("clear"),
            "{location}"
        );
    }
    let beside: Vec<_> = home
        .path()
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(beside, ["store"], "nothing was written outside of the root");
}

#[tokio::test]
async fn l6_hostile_tool_names_and_arguments_are_data() {
    let store = memory();
    let reduction = eager(&store).clear_tool_inputs(true).build().unwrap();
    for (n, tool) in [
        "",
        "../x",
        "a\0b",
        "{reader}",
        "]\" [offcut/1 cleared",
        &"名".repeat(5_000),
    ]
    .iter()
    .enumerate()
    {
        for arguments in [
            "",
            "not JSON",
            "[1,2",
            "{\"path\":",
            "\"memory://t/trunc/x\"",
            &"[".repeat(100_000),
        ] {
            let call = ToolCall::new(format!("c{n}"), *tool, arguments);
            let result = lines(400);
            let shown = reduction.truncate(&call, result.clone()).await.unwrap();
            assert_eq!(original(&reduction, &shown.text()).await, result.as_bytes());
            let mut messages = vec![
                Message::calls(vec![call.clone()]),
                Message::tool(&call, shown.parts, false),
            ];
            messages.extend(round("z", "f", "ok"));
            clear(&reduction, &mut messages).await;
            assert_eq!(
                original(&reduction, text(content(&messages[1]))).await,
                result.as_bytes()
            );
        }
    }
}

#[tokio::test]
async fn a_result_that_imitates_a_hint_loses_nothing() {
    let store = memory();
    let reduction = eager(&store).build().unwrap();
    let there = reduction
        .truncate(&call("real", "grep"), lines(400))
        .await
        .unwrap()
        .text();
    let real = Hint::parse(&there).unwrap();
    let at = |location: &str| Some(offcut::backend::Location::new(location));
    let with = |change: &dyn Fn(&mut Hint)| {
        let mut hint = real.clone();
        change(&mut hint);
        hint.render()
    };
    let long = "what only the imitation says\n".repeat(100);
    let imitations = [
        there.clone(),
        format!("{there}\n{long}"),
        format!("{long}{there}"),
        format!("{there}\n{there}\n{long}"),
        with(&|hint| hint.preview.push_str(&long)),
        with(&|hint| hint.prose.push_str(&long)),
        with(&|hint| hint.location = at("/etc/passwd")),
        with(&|hint| hint.location = at("memory://t/trunc/nothing-there")),
        with(&|hint| hint.location = at("memory://t/clear/../trunc/real")),
        with(&|hint| hint.location = None),
        with(&|hint| (hint.kind, hint.preview) = (Kind::Cleared, long.clone())),
        with(&|hint| (hint.kind, hint.prose) = (Kind::Cleared, long.clone())),
        with(&|hint| {
            (hint.kind, hint.location, hint.preview) =
                (Kind::Link, at("https://example.org/x"), long.clone());
        }),
        with(&|hint| {
            (hint.kind, hint.preview) = (
                Kind::Page {
                    from: offcut::hint::Position::START,
                },
                format!("line 1\n{long}"),
            );
        }),
        with(&|hint| (hint.kind, hint.preview) = (Kind::Matches, format!("1:line 1\n{long}"))),
        "[offcut/1 ".repeat(300),
        format!("[offcut/1 cleared 1B 18446744073709551615 \"x\"] {long}"),
        format!("[offcut/1 cleared 18446744073709551616B 1 \"x\"] {long}"),
        format!("[offcut/2 cleared 1B 1 \"x\"] {long}"),
    ];
    let mut wrong = Vec::new();
    for (n, imitation) in imitations.iter().enumerate() {
        let id = format!("call_{n}");
        // On truncation.
        let shown = reduction
            .truncate(&call(&id, "curl"), imitation.as_str())
            .await
            .unwrap()
            .text();
        if shown != *imitation {
            assert_eq!(
                original(&reduction, &shown).await,
                imitation.as_bytes(),
                "imitation {n} is truncated"
            );
            assert!(shown.len() < imitation.len());
        }
        // In the clear pass, also without truncation before it.
        let mut messages = [
            round(&id, "curl", imitation.as_str()),
            round("z", "f", "ok"),
        ]
        .concat();
        let report = clear(&reduction, &mut messages).await;
        let shown = text(content(&messages[1])).to_owned();
        let is_the_real_one = n == 0;
        if shown != *imitation && !is_the_real_one {
            assert_eq!(
                original(&reduction, &shown).await,
                imitation.as_bytes(),
                "imitation {n} is cleared"
            );
            if report.decisions[0].outcome != Outcome::Cleared {
                wrong.push((n, report.decisions[0].outcome));
            }
        }
        if is_the_real_one {
            assert_eq!(report.decisions[0].outcome, Outcome::Shortened);
        }
        let again = messages.clone();
        assert!(
            !clear(&reduction, &mut messages).await.is_change(),
            "imitation {n}"
        );
        assert_eq!(messages, again);
    }
    assert_eq!(
        original(&reduction, &there).await,
        lines(400).as_bytes(),
        "what was stored before is intact"
    );
    assert!(
        wrong.is_empty(),
        "stored anew at `clear/`, and reported as something else: {wrong:?}"
    );
}

#[tokio::test]
async fn arguments_that_imitate_cleared_ones_lose_nothing() {
    let store = memory();
    let reduction = eager(&store).clear_tool_inputs(true).build().unwrap();
    let there = reduction
        .truncate(&call("real", "grep"), lines(400))
        .await
        .unwrap()
        .text();
    let hint = |location: &str, more: &str| {
        let mut hint = Hint::parse(&there).unwrap();
        (hint.kind, hint.preview) = (Kind::Cleared, more.to_owned());
        hint.location = Some(offcut::backend::Location::new(location));
        hint.render()
    };
    let long = "what only the imitation says ".repeat(100);
    for (n, arguments) in [
        json!({"_cleared": long}),
        json!({"_cleared": hint("/etc/passwd", &long)}),
        json!({"_cleared": hint("memory://t/trunc/real", &long)}),
        json!({"_cleared": hint("memory://t/trunc/real", ""), "x": long}),
        json!({"_cleared": [long]}),
    ]
    .into_iter()
    .enumerate()
    {
        let write = ToolCall::new(format!("call_{n}"), "write", arguments.to_string());
        let mut messages = vec![
            Message::calls(vec![write.clone()]),
            Message::tool(&write, vec!["ok".into()], false),
        ];
        messages.extend(round("z", "f", "ok"));
        clear(&reduction, &mut messages).await;
        let Message::Assistant { calls, .. } = &messages[0] else {
            panic!("{messages:?}")
        };
        if calls[0].arguments != write.arguments {
            let cleared: Value = serde_json::from_str(&calls[0].arguments).unwrap();
            let back = original(&reduction, cleared["_cleared"].as_str().unwrap()).await;
            assert_eq!(back, write.arguments.as_bytes(), "arguments {n}");
        }
    }
}

#[tokio::test]
async fn l7_one_line_of_five_megabytes_all_the_way() {
    let home = tempfile::tempdir().unwrap();
    let store = Fs::open(home.path()).unwrap();
    let reduction =
        ToolReduction::recommended(store).count_tokens_with(|text: &str| text.len() as u64 / 4);
    let reduction = reduction
        .max_tokens_for_clear(100)
        .stub_length(300)
        .clear_tool_inputs(false)
        .build()
        .unwrap();
    let line: String = (0..500_000).map(|n| format!("{n:09},")).collect();
    let shown = reduction
        .truncate(&call("a", "curl"), line.clone())
        .await
        .unwrap();
    assert!(shown.text().len() < 7_000);
    let mut messages = [
        round("a", "curl", shown.parts[0].clone()),
        round("b", "f", "ok"),
    ]
    .concat();
    // A second result, which was never truncated.
    messages.splice(0..0, round("big", "cat", line.clone()));
    let report = clear(&reduction, &mut messages).await;
    let outcomes: Vec<_> = report
        .decisions
        .iter()
        .map(|decision| decision.outcome)
        .collect();
    assert_eq!(
        outcomes,
        [
            Outcome::Cleared,
            Outcome::Shortened,
            Outcome::Kept(Reason::Unanswered)
        ]
    );
    for message in [1, 3] {
        let shown = text(content(&messages[message]));
        assert!(shown.len() < 600);
        assert_eq!(original(&reduction, shown).await, line.as_bytes());
        let path = Hint::parse(shown).unwrap().location.unwrap();
        let read = json!({"path": path, "offset": "1+4999990"});
        let page = reduction
            .read_file_tool()
            .call(&ToolCall::new("r", "read_file", read.to_string()))
            .await
            .unwrap();
        let (page, _) = page.into_parts().await;
        assert_eq!(Hint::parse(text(&page)).unwrap().preview, "000499999,");
    }
}

#[cfg(feature = "tiktoken")]
#[tokio::test]
async fn l7_megabytes_of_one_character_with_the_real_tokenizer() {
    let reduction = ToolReduction::recommended(memory())
        .max_tokens_for_clear(100)
        .build()
        .unwrap();
    let large = [(" ", 2_000_000), ("a", 1_000_000)];
    let odd = ["\n", "=", "字", "\u{200d}", "🦀"].map(|unit| (unit, 200_000));
    for (unit, bytes) in large.into_iter().chain(odd) {
        let result = unit.repeat(bytes / unit.len());
        let shown = reduction
            .truncate(&call("a", "f"), result.clone())
            .await
            .unwrap();
        assert_eq!(
            original(&reduction, &shown.text()).await,
            result.as_bytes(),
            "{unit:?}"
        );
        let mut messages = [round("b", "f", result.as_str()), round("z", "f", "ok")].concat();
        clear(&reduction, &mut messages).await;
        assert_eq!(
            original(&reduction, text(content(&messages[1]))).await,
            result.as_bytes(),
            "{unit:?}"
        );
    }
}

#[tokio::test]
async fn l7_a_megabyte_of_beginnings_of_hints_takes_linear_time() {
    let store = memory();
    let reduction = eager(&store).build().unwrap();
    for unit in [
        "[offcut/1 truncated 1B 1 \"",
        "[offcut/1 truncated 1B 1 \"x\"]",
        "[offcut/1 cleared 1B 0 -]",
        "[offcut/1 cleared 1B 0 -]\n",
        "[offcut/1 truncated 1B 0-0 \"\\",
        "\n[offcut/1 truncated 1B 1-1 \"x\"] x",
        "[offcut/1 page@1+1 1B 1 ",
        "[… 1 B, L1 …]\n",
        "[… ",
    ] {
        let result = unit.repeat(1_000_000 / unit.len());
        _ = (Hint::parse(&result), Hint::parse_all(&result));
        let shown = reduction
            .truncate(&call("a", "f"), result.clone())
            .await
            .unwrap();
        assert_eq!(original(&reduction, &shown.text()).await, result.as_bytes());
        let mut messages = [round("a", "f", result.as_str()), round("z", "f", "ok")].concat();
        clear(&reduction, &mut messages).await;
        let shown = text(content(&messages[1]));
        if shown != result {
            assert_eq!(original(&reduction, shown).await, result.as_bytes());
        }
    }
}

#[tokio::test]
async fn l7_an_imitation_full_of_gap_marks_takes_linear_time() {
    let store = memory();
    let reduction = eager(&store).build().unwrap();
    let there = reduction
        .truncate(&call("real", "f"), "[… \n".repeat(25_000))
        .await
        .unwrap()
        .text();
    let mut imitation = Hint::parse(&there).unwrap();
    imitation.preview = "[… \n".repeat(8_000);
    let imitation = imitation.render();
    assert!(
        imitation.len() < 50_000,
        "a result of the default limit can be that"
    );
    let mut messages = [round("x", "f", imitation.as_str()), round("z", "f", "ok")].concat();
    let begun = std::time::Instant::now();
    clear(&reduction, &mut messages).await;
    // Generous, for unoptimized code on a busy machine. Comparing the whole text at each mark takes
    // a minute, and grows with the text.
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    assert_eq!(
        original(&reduction, text(content(&messages[1]))).await,
        imitation.as_bytes()
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_root_that_is_a_link_is_resolved_once() {
    use std::os::unix::fs::symlink;
    let home = tempfile::tempdir().unwrap();
    let (real, link) = (home.path().join("real"), home.path().join("link"));
    std::fs::create_dir(&real).unwrap();
    symlink(&real, &link).unwrap();
    let make = |path: &Path| {
        let store = Fs::open(path).unwrap();
        ToolReduction::builder()
            .backend(store)
            .max_length_for_trunc(1_500)
            .preview_length(200)
            .build()
            .unwrap()
    };
    let reduction = make(&link);
    let before = reduction
        .truncate(&call("a", "f"), lines(400))
        .await
        .unwrap()
        .text();
    std::fs::remove_file(&link).unwrap();
    symlink(home.path().join("nowhere"), &link).unwrap();
    let after = reduction
        .truncate(&call("b", "f"), lines(401))
        .await
        .unwrap()
        .text();
    for reduction in [reduction, make(&real)] {
        assert_eq!(original(&reduction, &before).await, lines(400).as_bytes());
        assert_eq!(original(&reduction, &after).await, lines(401).as_bytes());
    }
    assert!(
        Fs::open(&link).is_err(),
        "a link that leads nowhere is no root"
    );
}

#[test]
fn an_impossible_root_is_a_clear_error() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    std::fs::write(&file, "content").unwrap();
    for path in [file.clone(), file.join("below")] {
        let error = Fs::open(&path).unwrap_err();
        assert!(error.to_string().contains("not a directory"), "{error}");
        assert!(!error.is_retryable());
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"content");
    assert!(Fs::open("").is_err());
}

#[cfg(unix)]
#[test]
fn l1_a_full_disk_loses_nothing() {
    let Some(at) = in_a_mount(
        "hostile::l1_a_full_disk_loses_nothing",
        "mount -t tmpfs -o size=1m none $AT",
    ) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = Fs::open(at.join("store")).unwrap();
        let make = || {
            let reduction = ToolReduction::builder()
                .backend(store.clone())
                .max_length_for_trunc(20_000);
            let reduction = reduction
                .count_tokens_with(|text: &str| text.len() as u64 / 4)
                .preview_length(2_000);
            reduction
                .max_tokens_for_clear(1)
                .clear_retention_suffix_limit(0)
                .build()
                .unwrap()
        };
        let reduction = make();
        let (mut messages, mut originals) = (Vec::new(), Vec::new());
        for n in 0..30 {
            // Long results are truncated until the disk is full; short ones wait for the pass.
            let result = format!("result {n}\n").repeat(if n % 3 == 0 { 1_500 } else { 9_000 });
            let call = call(&format!("call_{n}"), "f");
            let shown = reduction.truncate(&call, result.clone()).await.unwrap();
            messages.push(Message::calls(vec![call.clone()]));
            messages.push(Message::tool(&call, shown.parts, false));
            originals.push(result);
        }
        messages.push(Message::assistant("done"));
        let whole = |messages: &[Message]| {
            let results = messages.chunks(2).filter_map(|round| round.get(1));
            results
                .zip(&originals)
                .filter(|(message, original)| text(content(message)) == **original)
                .count()
        };
        let kept = whole(&messages);
        assert!(
            (12..30).contains(&kept),
            "the disk was full at some time: {kept} are whole"
        );

        let report = clear(&reduction, &mut messages).await;
        assert!(
            report
                .decisions
                .iter()
                .any(|decision| decision.outcome == Outcome::Shortened)
        );
        assert!(
            report
                .decisions
                .iter()
                .any(|decision| decision.outcome == Outcome::Kept(Reason::StoreFailed))
        );
        let assert_nothing_lost = async |reduction: &ToolReduction, messages: &[Message]| {
            for (round, result) in messages.chunks(2).zip(&originals) {
                assert!(original(reduction, text(content(&round[1]))).await == result.as_bytes());
            }
        };
        assert_nothing_lost(&reduction, &messages).await;
        // No half-written file is left, and another pass loses nothing.
        assert_eq!(at.join("store/.staging").read_dir().unwrap().count(), 0);
        let again = messages.clone();
        clear(&make(), &mut messages).await;
        assert_nothing_lost(&reduction, &messages).await;
        assert!(whole(&messages) <= whole(&again));

        // A larger disk takes the rest.
        let remount = std::process::Command::new("mount")
            .args(["-o", "remount,size=64m"])
            .arg(&at)
            .status()
            .unwrap();
        assert!(remount.success());
        clear(&reduction, &mut messages).await;
        assert_eq!(whole(&messages), 0);
        assert_nothing_lost(&reduction, &messages).await;
    });
}

/// Messages with wrong types everywhere.
fn malformed() -> Vec<Value> {
    let long = lines(60);
    let odd = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1e300),
        json!(""),
        json!([]),
        json!({}),
        json!([null, 1, "x", [], {}]),
        json!({"type": "text"}),
        json!([{"type": "text"}, {"type": "text", "text": 5}, {"type": 7}, {"text": "no type"}]),
        json!([{"type": "image_url", "image_url": null}, {"type": "image_url", "image_url": {"url": 3}}]),
        json!([{"type": "image_url", "image_url": {"url": "data:image/png;base64,***"}}]),
        json!([{"type": "image_url", "image_url": "data:,"}, {"type": "file", "file": []}]),
        json!([{"type": "input_audio", "input_audio": {"data": [], "format": 1}}]),
        json!({"deep": [[[[[[[[long]]]]]]]]}),
        json!([{"type": "text", "text": long, "cache_control": 7}]),
    ];
    let mut messages = odd.to_vec();
    for value in &odd {
        for role in [
            json!("assistant"),
            json!("tool"),
            json!("function"),
            json!("user"),
            json!("alien"),
            json!(3),
        ] {
            messages.push(json!({"role": role, "content": value}));
        }
        messages.push(json!({"role": "tool", "tool_call_id": value, "content": long}));
        messages.push(json!({"role": "tool", "tool_call_id": "x", "name": value, "content": long}));
        messages.push(json!({"role": "assistant", "tool_calls": value, "function_call": value, "reasoning": value}));
        messages.push(json!({"role": "assistant", "tool_calls": [value, value]}));
        messages
            .push(json!({"role": "assistant", "tool_calls": [{"id": value, "function": value}]}));
        messages.push(json!({"role": "assistant", "tool_calls": [
            {"id": "x", "function": {"name": value, "arguments": value}, "extra_content": value},
            {"id": "y", "type": "custom", "custom": {"name": value, "input": value}}]}));
        messages.push(json!({"role": "tool", "tool_call_id": "x", "content": "ok"}));
        messages.push(json!({"role": "tool", "tool_call_id": "y", "content": value}));
    }
    messages.push(json!({"role": "assistant", "content": "done"}));
    messages
}

#[tokio::test]
async fn l7_malformed_messages_are_left_alone() {
    let store = memory();
    let reduction = eager(&store)
        .clear_tool_inputs(true)
        .clear_retention_suffix_limit(0)
        .keep_errors(false)
        .build()
        .unwrap();
    let mut messages = malformed();
    reduction.clear(OpenAiChat, &mut messages).await.unwrap();
    assert_eq!(messages.len(), malformed().len());
    for (now, before) in messages.iter().zip(malformed()) {
        // Compared as text, because the order of keys counts.
        let as_text = |message: &Value| message.to_string();
        if as_text(now) == as_text(&before) {
            continue;
        }
        // Only results and calls were replaced, and they read back.
        let role = before["role"].as_str().unwrap_or_default();
        match role {
            "tool" | "function" => {
                let mut restored = now.clone();
                restored["content"] = before["content"].clone();
                assert_eq!(restored.to_string(), before.to_string());
                let shown = match &now["content"] {
                    Value::String(shown) => shown,
                    Value::Array(parts) => parts[0]["text"].as_str().unwrap(),
                    other => panic!("{other}"),
                };
                for hint in Hint::parse_all(shown).unwrap() {
                    let there = reduction
                        .read_original(&hint.location.unwrap())
                        .await
                        .unwrap()
                        .unwrap();
                    assert_eq!(there.len() as u64, hint.bytes);
                }
            }
            "assistant" => {
                for (call, old) in OpenAiChat
                    .tool_calls(now)
                    .iter()
                    .zip(OpenAiChat.tool_calls(&before))
                {
                    assert_eq!((&call.id, &call.name), (&old.id, &old.name));
                    if call.arguments != old.arguments {
                        let cleared: Value = serde_json::from_str(&call.arguments).unwrap();
                        let back =
                            original(&reduction, cleared["_cleared"].as_str().unwrap()).await;
                        assert_eq!(back, old.arguments.as_bytes());
                    }
                }
            }
            other => panic!("`{other}` was changed: {before}"),
        }
    }
    let again = messages.clone();
    let there = store.len();
    let report = reduction.clear(OpenAiChat, &mut messages).await.unwrap();
    assert!(
        !report.is_change() && messages == again && store.len() == there,
        "a second pass changes nothing"
    );
}

#[tokio::test]
async fn l7_each_malformed_message_alone() {
    for message in malformed() {
        let reduction = eager(&memory())
            .clear_retention_suffix_limit(0)
            .clear_tool_inputs(true)
            .build()
            .unwrap();
        for mut messages in [
            vec![message.clone()],
            vec![message.clone(), json!({"role": "assistant"})],
        ] {
            reduction.clear(OpenAiChat, &mut messages).await.unwrap();
            let calls = OpenAiChat.tool_calls(&message);
            for call in calls {
                _ = reduction.truncate(&call, "x").await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn l7_zeros_and_empty_parts_do_not_panic() {
    let store = memory();
    let reduction = eager(&store)
        .preview_length(0)
        .stub_length(0)
        .clear_retention_suffix_limit(0)
        .build()
        .unwrap();
    let nothing = [
        vec![],
        vec![Part::from("")],
        vec![Part::from(""), Part::from("")],
        vec![Part::Json(Value::Null)],
        vec![Part::Media {
            mime: String::new(),
            data: Vec::new().into(),
        }],
        vec![Part::Media {
            mime: "image/png".into(),
            data: Vec::new().into(),
        }],
        vec![Part::Link {
            mime: None,
            url: String::new(),
        }],
        vec![Part::Opaque(Value::Null)],
    ];
    for parts in nothing {
        let call = call("a", "f");
        let shown = reduction
            .truncate(&call, offcut::ToolOutput::parts(parts.clone()))
            .await
            .unwrap();
        assert_eq!(shown.parts, parts);
        let mut messages = vec![
            Message::calls(vec![call.clone()]),
            Message::tool(&call, parts, false),
        ];
        messages.push(Message::assistant("done"));
        messages.push(Message::user("x".repeat(100)));
        clear(&reduction, &mut messages).await;
    }
    let mut none: Vec<Message> = Vec::new();
    assert!(!clear(&reduction, &mut none).await.is_change());
}
