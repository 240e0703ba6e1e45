//! Truncation of whole results, rule by rule (T1–T9, T14).

use crate::common::{builder, call, lines, memory, stored, text};
use futures_util::stream;
use offcut::backend::{Backend, ErrorKind, Fs, Memory};
use offcut::hint::{Hint, Kind};
use offcut::preview::Preview;
use offcut::report::{Outcome, Reason};
use offcut::{
    Chunk, Language, Middleware, Next, OffloadError, OnOffloadError, Part, ToolCall, ToolError,
    ToolOutput, ToolPolicy, ToolReduction,
};
use offcut_testkit::{Fault, Faulty};

fn small(store: &Memory) -> offcut::Builder {
    builder(store)
        .max_length_for_trunc(1_000)
        .preview_length(200)
}

#[tokio::test]
async fn t1_strictly_more_than_the_limit_is_truncated() {
    let store = memory();
    let reduction = small(&store).build().unwrap();
    let exact = "é".repeat(500);
    let shown = reduction
        .truncate(&call("a", "f"), exact.clone())
        .await
        .unwrap();
    assert_eq!(text(&shown.parts), exact);
    assert_eq!(
        shown.report.decisions[0].outcome,
        Outcome::Kept(Reason::WithinLimit)
    );
    assert!(stored(&store).await.is_empty());
    let shown = reduction
        .truncate(&call("a", "f"), format!("{exact}x"))
        .await
        .unwrap();
    assert_eq!(shown.report.decisions[0].outcome, Outcome::Truncated);
}

#[tokio::test]
async fn t2_the_chunks_of_a_result_do_not_matter() {
    let content = lines(400);
    let whole = small(&memory())
        .build()
        .unwrap()
        .truncate(&call("a", "f"), content.clone())
        .await
        .unwrap();
    for size in [1, 7, 999, 5_000] {
        let store = memory();
        let chunks: Vec<_> = content
            .as_bytes()
            .chunks(size)
            .map(|b| Ok(Chunk::Bytes(b.to_vec().into())))
            .collect();
        let reduction = small(&store).build().unwrap();
        let streamed = reduction
            .truncate(&call("a", "f"), ToolOutput::stream(stream::iter(chunks)))
            .await
            .unwrap();
        assert_eq!(streamed.parts, whole.parts);
        assert_eq!(
            stored(&store).await,
            [("memory://t/trunc/a".into(), content.clone().into_bytes())]
        );
    }
}

#[tokio::test]
async fn t3_a_long_text_is_stored_as_it_is_and_replaced_by_hint_and_preview() {
    let store = memory();
    let reduction = small(&store).build().unwrap();
    let content = lines(400);
    let shown = reduction
        .truncate(&call("call_1", "grep"), content.clone())
        .await
        .unwrap();
    insta::assert_snapshot!(text(&shown.parts), @r#"
    [offcut/1 truncated 3492B/400L 39+190 "memory://t/trunc/call_1"] Stored in full. Read it with read_file.
    1|line 1
    line 2
    line 3
    line 4
    line 5
    line 6
    line 7
    line 8
    line 9
    line 10
    line 11
    line 12
    392|line 392
    line 393
    line 394
    line 395
    line 396
    line 397
    line 398
    line 399
    line 400
    [… 3324 B …]
    "#);
    let decision = &shown.report.decisions[0];
    assert_eq!(decision.bytes.before, content.len() as u64);
    assert_eq!(decision.bytes.after, text(&shown.parts).len() as u64);
    assert_eq!(
        reduction
            .read_original(&decision.locations[0])
            .await
            .unwrap()
            .unwrap(),
        content
    );
}

#[tokio::test]
async fn t3_in_chinese_the_envelope_is_the_same() {
    let reduction = small(&memory())
        .language(Language::Chinese)
        .build()
        .unwrap();
    let shown = reduction
        .truncate(&call("call_1", "grep"), lines(400))
        .await
        .unwrap();
    insta::assert_snapshot!(text(&shown.parts), @r#"
    [offcut/1 truncated 3492B/400L 44+190 "memory://t/trunc/call_1"] 已完整存储。可用 read_file 读取。
    1|line 1
    line 2
    line 3
    line 4
    line 5
    line 6
    line 7
    line 8
    line 9
    line 10
    line 11
    line 12
    392|line 392
    line 393
    line 394
    line 395
    line 396
    line 397
    line 398
    line 399
    line 400
    [… 3324 B …]
    "#);
}

#[tokio::test]
async fn t3_one_line_of_five_megabytes() {
    let store = memory();
    let reduction = small(&store).build().unwrap();
    let content = "0123456789".repeat(500_000);
    let shown = reduction
        .truncate(&call("a", "f"), content.clone())
        .await
        .unwrap();
    assert!(text(&shown.parts).len() < 500);
    assert_eq!(stored(&store).await[0].1, content.as_bytes());
}

#[tokio::test]
async fn t4_the_longest_of_several_texts_are_truncated() {
    let store = memory();
    let reduction = small(&store).build().unwrap();
    let parts = vec![
        Part::from("short"),
        Part::from(lines(80)),
        Part::from("also short"),
        Part::from(lines(200)),
    ];
    let shown = reduction
        .truncate(&call("a", "f"), ToolOutput::parts(parts.clone()))
        .await
        .unwrap();
    assert_eq!(shown.parts[..3], parts[..3], "one was enough");
    assert!(Hint::parse(text(&shown.parts[3..])).is_some());

    let parts = vec![
        Part::from(lines(60)),
        Part::from("short"),
        Part::from(lines(91)),
        Part::from(lines(92)),
    ];
    let shown = reduction
        .truncate(&call("b", "f"), ToolOutput::parts(parts))
        .await
        .unwrap();
    let locations: Vec<_> = shown.report.decisions[0]
        .locations
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(locations, ["memory://t/trunc/b", "memory://t/trunc/b-2"]);
    let length: usize = shown
        .parts
        .iter()
        .map(|part| {
            if let Part::Text(text) = part {
                text.len()
            } else {
                0
            }
        })
        .sum();
    assert!(length <= 1_000, "{length}");
}

#[tokio::test]
async fn t4_many_small_texts_are_stored_as_one() {
    let store = memory();
    let reduction = small(&store).build().unwrap();
    let image = Part::Media {
        mime: "image/png".into(),
        data: vec![1, 2, 3].into(),
    };
    let mut parts: Vec<Part> = (0..100)
        .map(|n| Part::from(format!("part {n}")))
        .chain([Part::from("x".repeat(500))])
        .collect();
    parts.insert(50, image.clone());
    let shown = reduction
        .truncate(&call("a", "f"), ToolOutput::parts(parts.clone()))
        .await
        .unwrap();
    assert_eq!(shown.parts.len(), 2);
    assert_eq!(shown.parts[1], image);
    let Part::Text(hint) = &shown.parts[0] else {
        panic!()
    };
    assert!(Hint::parse(hint).unwrap().flags.joined);

    // The stored content holds every text.
    let content = String::from_utf8(stored(&store).await.remove(0).1).unwrap();
    parts.remove(50);
    assert_eq!(
        texts_in(&content)
            .into_iter()
            .map(Part::from)
            .collect::<Vec<_>>(),
        parts
    );
}

/// Splits texts that were stored as one.
fn texts_in(content: &str) -> Vec<&str> {
    let feed = content.strip_suffix('\n').unwrap().rfind('\n').unwrap();
    let (mut rest, manifest) = content.split_at(feed + 1);
    let manifest: serde_json::Value = serde_json::from_str(manifest).unwrap();
    let mut texts = Vec::new();
    for length in manifest["offcut_parts"].as_array().unwrap() {
        let (text, tail) = rest.split_at(length.as_u64().unwrap() as usize);
        texts.push(text);
        rest = tail.strip_prefix('\n').unwrap();
    }
    assert_eq!(rest, "");
    texts
}

/// Whatever stands before a line in the stored content, its number is that of the preview.
#[tokio::test]
async fn t4_lines_of_joined_texts_have_the_numbers_of_the_stored_content() {
    for preview in [Preview::HeadTail, Preview::Mixed] {
        let store = memory();
        let reduction = small(&store).preview(preview).build().unwrap();
        let texts = (0..100).map(|n| Part::from(format!("see src/part_{n}.rs\nand more of it")));
        let shown = reduction
            .truncate(&call("a", "f"), ToolOutput::parts(texts.collect()))
            .await
            .unwrap();
        let hint = Hint::parse(text(&shown.parts)).unwrap();
        assert!(hint.flags.joined);
        let content = String::from_utf8(stored(&store).await.remove(0).1).unwrap();
        let stored: Vec<&str> = content.lines().collect();
        let mut numbered = 0;
        for line in hint.preview.lines() {
            let is_at = |number: &str, text: &str| {
                assert_eq!(stored[number.parse::<usize>().unwrap() - 1], text, "{line}");
            };
            if let Some((number, text)) = line.split_once('|') {
                is_at(number, text);
            } else {
                continue;
            }
            numbered += 1;
        }
        assert!(numbered > 0, "{}", hint.preview);
    }
}

#[tokio::test]
async fn t4_hundreds_of_texts_are_stored_as_one() {
    let store = memory();
    let reduction = small(&store).build().unwrap();
    let texts: Vec<String> = (0..400).map(|n| format!("part {n}")).collect();
    let parts: Vec<Part> = texts.iter().map(|text| Part::from(text.as_str())).collect();
    let shown = reduction
        .truncate(&call("a", "f"), ToolOutput::parts(parts.clone()))
        .await
        .unwrap();
    assert_eq!(shown.parts.len(), 1);
    let content = String::from_utf8(stored(&store).await.remove(0).1).unwrap();
    let back = texts_in(&content);
    assert_eq!(back, texts);

    // Within the limit nothing changes.
    let parts: Vec<Part> = (0..400).map(|_| Part::from("a")).collect();
    let whole = reduction
        .truncate(&call("b", "f"), ToolOutput::parts(parts.clone()))
        .await
        .unwrap();
    assert_eq!(whole.parts, parts);
}

#[tokio::test]
async fn t5_other_parts_pass_through_and_json_counts_for_itself() {
    let store = memory();
    let reduction = small(&store).build().unwrap();
    let big = serde_json::json!({"rows": (0..400).collect::<Vec<_>>()});
    let parts = vec![
        Part::Json(serde_json::json!({"small": 1})),
        Part::Media {
            mime: "image/png".into(),
            data: vec![0; 100_000].into(),
        },
        Part::Json(big.clone()),
        Part::Opaque(serde_json::json!({"x": "y".repeat(5_000)})),
        Part::from("x".repeat(300)),
    ];
    let shown = reduction
        .truncate(&call("a", "f"), ToolOutput::parts(parts.clone()))
        .await
        .unwrap();
    assert_eq!(shown.parts[..2], parts[..2]);
    assert_eq!(shown.parts[3..], parts[3..]);
    assert!(Hint::parse(text(&shown.parts[2..3])).is_some());
    assert_eq!(
        stored(&store).await,
        [("memory://t/trunc/a".into(), big.to_string().into_bytes())]
    );
}

#[tokio::test]
async fn t5_json_that_is_joined_with_texts_reads_back_as_it_was() {
    let store = memory();
    let reduction = small(&store).build().unwrap();
    let document = |n: usize| serde_json::json!({"n": n, "rows": (0..400).collect::<Vec<_>>()});
    let (image, link) = (
        Part::Media {
            mime: "image/png".into(),
            data: vec![1, 2, 3].into(),
        },
        Part::Opaque(serde_json::json!({"x": 1})),
    );
    let mut parts: Vec<Part> = (0..33).map(|n| Part::Json(document(n))).collect();
    parts.insert(0, image.clone());
    parts.extend(["the end\n".into(), link.clone()]);
    let shown = reduction
        .truncate(&call("a", "f"), ToolOutput::parts(parts))
        .await
        .unwrap();
    assert_eq!(shown.parts.len(), 3);
    assert_eq!((&shown.parts[0], &shown.parts[2]), (&image, &link));
    let hint = Hint::parse(text(&shown.parts[1..2])).unwrap();
    assert!(hint.flags.joined);
    let content = reduction.read_original(&hint.location.unwrap()).await;
    let content = String::from_utf8(content.unwrap().unwrap().to_vec()).unwrap();
    let documents = (0..33).map(|n| document(n).to_string());
    let expected: Vec<String> = documents.chain(["the end\n".to_owned()]).collect();
    assert_eq!(texts_in(&content), expected);
}

#[tokio::test]
async fn t6_texts_that_would_hardly_get_shorter_stay() {
    // The preview and its hint would take more than three quarters.
    for (limit, previewed, length, outcome) in [
        (1_000, 500, 700, Outcome::Kept(Reason::WithinLimit)),
        (1_000, 500, 1_000, Outcome::Truncated),
        (8_000, 8_000, 8_005, Outcome::Kept(Reason::NoGain)),
    ] {
        let reduction = builder(&memory())
            .max_length_for_trunc(limit)
            .preview_length(previewed)
            .preview_above(0);
        let numbers: String = (0..length / 5).map(|n| format!("{n:04}\n")).collect();
        let reduction = reduction.build().unwrap();
        let shown = reduction.truncate(&call("a", "f"), numbers).await.unwrap();
        assert_eq!(shown.report.decisions[0].outcome, outcome, "{length}");
    }
}

#[tokio::test]
async fn t7_a_failed_call_stays_one_and_its_text_is_truncated() {
    let store = memory();
    let reduction = small(&store).build().unwrap();
    let fails = |_: ToolCall| async { Err::<ToolOutput, _>(ToolError::new("e".repeat(5_000))) };
    let error = Middleware::wrap_tool_call(&reduction, &call("a", "f"), Next::new(&[], &fails))
        .await
        .unwrap_err();
    let hint = Hint::parse(&error.to_string()).unwrap();
    assert_eq!((hint.bytes, stored(&store).await.len()), (5_000, 1));

    let shown = reduction
        .truncate(
            &call("b", "f"),
            Err::<ToolOutput, _>(ToolError::new("e".repeat(5_000))),
        )
        .await
        .unwrap();
    assert!(shown.is_error && shown.report.is_change());
}

#[tokio::test]
async fn t8_a_failing_store_leaves_results_unchanged_by_default() {
    let content = lines(400);
    for fault in [Fault::Fail(ErrorKind::Full), Fault::ApplyThenFail] {
        let store = Faulty::new(memory());
        store.fault_on_every_write(fault);
        let make = |then| {
            let builder = ToolReduction::builder()
                .backend(store.clone())
                .max_length_for_trunc(1_000)
                .preview_length(200);
            builder.on_offload_error(then).build().unwrap()
        };
        let kept = make(OnOffloadError::KeepOriginal)
            .truncate(&call("a", "f"), content.clone())
            .await
            .unwrap();
        assert_eq!(text(&kept.parts), content);
        assert_eq!(
            kept.report.decisions[0].outcome,
            Outcome::Kept(Reason::StoreFailed)
        );
        assert!(kept.report.decisions[0].error.is_some());
        let json = serde_json::to_value(&kept.report.decisions[0]).unwrap();
        assert_eq!(json["error_source"], "store");

        let lost = make(OnOffloadError::PreviewOnly)
            .truncate(&call("a", "f"), content.clone())
            .await
            .unwrap();
        assert_eq!(lost.report.decisions[0].outcome, Outcome::Lost);
        let hint = Hint::parse(text(&lost.parts)).unwrap();
        assert_eq!(
            (hint.location, hint.prose.as_str()),
            (None, "It could not be stored; what is not shown is lost.")
        );

        let failed = make(OnOffloadError::Fail)
            .truncate(&call("a", "f"), content.clone())
            .await
            .unwrap_err();
        let OffloadError { tool, call_id, .. } = failed;
        assert_eq!((tool.as_str(), call_id.as_str()), ("f", "a"));
    }
}

#[tokio::test]
async fn t11_a_stream_that_breaks_off() {
    let store = memory();
    let reduction = small(&store).build().unwrap();
    let broken = |content: String| {
        let chunks = [
            Ok(Chunk::Bytes(content.into())),
            Err(ToolError::new("connection lost")),
        ];
        ToolOutput::stream(stream::iter(chunks))
    };
    let shown = reduction
        .truncate(&call("a", "f"), broken("short".into()))
        .await
        .unwrap();
    assert!(stored(&store).await.is_empty());
    assert_eq!(
        Vec::<Part>::from(shown),
        [Part::from("short"), Part::from("connection lost")]
    );

    let shown = reduction
        .truncate(&call("a", "f"), broken(lines(400)))
        .await
        .unwrap();
    let hint = Hint::parse(text(&shown.parts)).unwrap();
    assert!(hint.flags.interrupted && hint.prose.contains("broke off"));
    assert_eq!(stored(&store).await[0].1, lines(400).as_bytes());
    let (parts, error) = ToolOutput::from(shown).into_parts().await;
    assert_eq!(
        (parts.len(), error.unwrap().to_string().as_str()),
        (1, "connection lost")
    );
}

#[tokio::test]
async fn t14_bytes_that_are_not_utf_8_are_stored_unchanged() {
    let store = memory();
    let reduction = small(&store).build().unwrap();
    let short = b"caf\xe9 au lait".to_vec();
    let shown = reduction
        .truncate(&call("a", "f"), ToolOutput::bytes(short.clone()))
        .await
        .unwrap();
    insta::assert_snapshot!(text(&shown.parts), @r#"
    [offcut/1 truncated,not-utf8 12B/1L 86+14 "memory://t/trunc/a"] Stored in full. It is not UTF-8; � stands for invalid bytes. Read it with read_file.
    caf� au lait
    "#);
    assert_eq!(stored(&store).await[0].1, short);

    let long = [b"\xff\xff".to_vec(), lines(400).into_bytes()].concat();
    let shown = reduction
        .truncate(&call("b", "f"), ToolOutput::bytes(long.clone()))
        .await
        .unwrap();
    let hint = Hint::parse(text(&shown.parts)).unwrap();
    assert!(hint.flags.not_utf8 && hint.preview.starts_with("1|\u{fffd}\u{fffd}line 1"));
    assert_eq!(stored(&store).await[1].1, long);

    let binary = [vec![0xff; 50_000], lines(400).into_bytes()].concat();
    let shown = reduction
        .truncate(&call("c", "f"), ToolOutput::bytes(binary.clone()))
        .await
        .unwrap();
    let hint = Hint::parse(text(&shown.parts)).unwrap();
    let hidden = hint.preview.rsplit_once("[… ").unwrap().1;
    let hidden: usize = hidden.strip_suffix(" B …]").unwrap().parse().unwrap();
    assert!(hidden < binary.len() && binary.len() - hidden <= hint.preview.len());
    assert!(offcut::preview::holds_only(
        &hint.preview,
        &String::from_utf8_lossy(&binary)
    ));
}

/// Finds two ids with the same short name.
fn ids_of_one_short_name() -> [String; 2] {
    use sha2::Digest;
    let mut known = std::collections::HashMap::new();
    let ids = (0..).map(|n| format!("call_of_a_provider_{n}"));
    ids.into_iter()
        .find_map(|id| {
            let digest = sha2::Sha256::digest(id.as_bytes());
            let number = u64::from_be_bytes(digest[..8].try_into().unwrap()) % 1_000_000;
            known.insert(number, id.clone()).map(|before| [before, id])
        })
        .unwrap()
}

#[tokio::test]
async fn l1_equal_short_names_never_overwrite() {
    let store = memory();
    let reduction = small(&store)
        .names(offcut::StoredNames::Short)
        .max_tokens_for_clear(10)
        .build()
        .unwrap();
    let (ids, contents) = (ids_of_one_short_name(), [lines(500), lines(600)]);
    let mut messages = Vec::new();
    for (id, content) in ids.iter().zip(&contents) {
        let shown = reduction
            .truncate(&call(id, "f"), content.clone())
            .await
            .unwrap();
        messages.push(shown.report.decisions[0].locations[0].clone());
        let streamed = ToolOutput::stream(stream::iter([Ok(Chunk::Bytes(content.clone().into()))]));
        let again = reduction.truncate(&call(id, "f"), streamed).await.unwrap();
        assert_eq!(
            again.report.decisions[0].locations[0],
            messages[messages.len() - 1],
            "and the same is there once"
        );
    }
    let mut history = ids
        .iter()
        .zip(&contents)
        .flat_map(|(id, content)| crate::common::round(id, "f", content.clone()));
    let mut history: Vec<_> = history
        .by_ref()
        .chain(crate::common::round("last", "f", "ok"))
        .collect();
    let report = crate::common::clear(&reduction, &mut history).await;
    let cleared = report.decisions[..2]
        .iter()
        .map(|decision| decision.locations[0].clone());
    let all: Vec<_> = messages.into_iter().chain(cleared).collect();
    for (location, content) in all.iter().zip(contents.iter().cycle()) {
        assert_eq!(
            reduction.read_original(location).await.unwrap().unwrap(),
            content.as_bytes()
        );
    }
    let names: Vec<usize> = all
        .iter()
        .map(|location| location.as_str().rsplit('/').next().unwrap().len())
        .collect();
    assert_eq!(names, [6, 6 + 17, 6, 6 + 17]);
}

#[tokio::test]
async fn ids_that_repeat_never_overwrite() {
    let store = memory();
    let reduction = small(&store).build().unwrap();
    let (one, two) = (lines(400), lines(401));
    for content in [&one, &two, &one, &two] {
        let shown = reduction
            .truncate(&call("call_0", "f"), content.clone())
            .await
            .unwrap();
        let location = &shown.report.decisions[0].locations[0];
        assert_eq!(
            reduction.read_original(location).await.unwrap().unwrap(),
            *content
        );
    }
    assert_eq!(stored(&store).await.len(), 2);
}

#[tokio::test]
async fn l6_hostile_ids_are_names_of_digests() {
    let outside = tempfile::tempdir().unwrap();
    let root = outside.path().canonicalize().unwrap().join("store");
    let store = Fs::open(&root).unwrap();
    let reduction = ToolReduction::builder()
        .backend(store)
        .max_length_for_trunc(1_000)
        .preview_length(200)
        .build()
        .unwrap();
    let long = "x".repeat(2_000);
    for (n, id) in [
        "../../x",
        "a\0b",
        &long,
        "调用",
        ".",
        "..",
        "",
        "Call",
        "call",
        "/etc/passwd",
        "con",
        "a/b",
    ]
    .iter()
    .enumerate()
    {
        let content = lines(400 + n);
        let shown = reduction
            .truncate(&call(id, "f"), content.clone())
            .await
            .unwrap();
        let location = &shown.report.decisions[0].locations[0];
        assert!(
            location.as_str().starts_with(root.to_str().unwrap()),
            "{location}"
        );
        assert_eq!(
            std::fs::read(location.as_str()).unwrap(),
            content.as_bytes()
        );
    }
    let beside: Vec<_> = std::fs::read_dir(outside.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(beside, ["store"], "nothing was written outside of the root");
}

#[tokio::test]
async fn o1_a_policy_overrides_field_by_field() {
    let (global, own) = (memory(), Memory::named("grep").unwrap());
    let reduction = small(&global)
        .tool("grep", ToolPolicy::new().backend(own.clone()))
        .tool("read", ToolPolicy::new().max_length_for_trunc(2_000))
        .tool("raw", ToolPolicy::new().skip_truncation(true))
        .trunc_exclude_tools(["listed"])
        .build()
        .unwrap();
    let kind = |shown: &offcut::Truncated| {
        Hint::parse(&shown.text()).map(|hint| (hint.kind, hint.location.unwrap().to_string()))
    };
    let content = "word ".repeat(300);
    let grep = reduction
        .truncate(&call("a", "grep"), content.clone())
        .await
        .unwrap();
    assert_eq!(
        kind(&grep),
        Some((Kind::Truncated, "memory://grep/trunc/a".into()))
    );
    for tool in ["read", "raw", "listed"] {
        let shown = reduction
            .truncate(&call("a", tool), content.clone())
            .await
            .unwrap();
        assert_eq!(kind(&shown), None, "{tool}");
    }
    let other = reduction
        .truncate(&call("a", "other"), content)
        .await
        .unwrap();
    assert_eq!(
        kind(&other),
        Some((Kind::Truncated, "memory://t/trunc/a".into()))
    );
    assert_eq!((own.list_len().await, global.list_len().await), (1, 1));
}

trait ListLen {
    async fn list_len(&self) -> usize;
}

impl<B: Backend> ListLen for B {
    async fn list_len(&self) -> usize {
        stored(self).await.len()
    }
}
