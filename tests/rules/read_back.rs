//! Reading stored content back, rule by rule (R1–R5).
#![cfg(feature = "fs")]

mod other_readers;
mod queries;

use std::collections::HashSet;

use crate::common::{builder, call, clear, content, lines, memory, text};
use offcut::agent::Tool;
use offcut::backend::{Backend, ErrorKind, Fs, Key, Memory};
use offcut::format::Message;
use offcut::hint::{Hint, Kind};
use offcut::{
    BuildError, Builder, Language, Middleware, Next, Part, ToolCall, ToolError, ToolOutput,
    ToolPolicy, ToolReduction,
};
use offcut_testkit::{Fault, Faulty};
use serde_json::{Value, json};

fn small(store: &Memory) -> Builder {
    builder(store)
        .max_length_for_trunc(1_000)
        .preview_length(200)
}

/// Stores `content` as the result of call `id` and returns its location.
async fn store_result(
    reduction: &ToolReduction,
    id: &str,
    content: impl Into<ToolOutput>,
) -> String {
    let shown = reduction
        .truncate(&call(id, "grep"), content)
        .await
        .unwrap();
    shown.report.decisions[0].locations[0].to_string()
}

/// The text that the reader answers.
async fn answer(reduction: &ToolReduction, arguments: &Value) -> Result<String, String> {
    let reader = reduction.read_file_tool();
    let call = ToolCall::new("r", reader.definition().name, arguments.to_string());
    let (parts, interrupted) = reader
        .call(&call)
        .await
        .map_err(|error| error.to_string())?
        .into_parts()
        .await;
    assert!(interrupted.is_none());
    Ok(text(&parts).to_owned())
}

async fn read(reduction: &ToolReduction, arguments: Value) -> Result<Hint, String> {
    let answer = answer(reduction, &arguments).await?;
    Ok(Hint::parse(&answer).expect("a page is a hint"))
}

/// Returns the offset of the next page, as the page names it.
fn next_offset(hint: &Hint) -> Option<String> {
    let (_, next) = hint.prose.split_once("offset ")?;
    Some(next.trim_end_matches(['.', '。']).to_owned())
}

/// Reads page by page as a model would. Returns the content and the number of pages.
async fn read_through(reduction: &ToolReduction, arguments: &Value) -> (String, usize) {
    let (mut all, mut arguments, mut seen) = (String::new(), arguments.clone(), HashSet::new());
    loop {
        let page = read(reduction, arguments.clone()).await.unwrap();
        all.push_str(&page.preview);
        let Some(next) = next_offset(&page) else {
            return (all, seen.len() + 1);
        };
        assert!(seen.insert(next.clone()), "offset {next} leads to itself");
        arguments["offset"] = json!(next);
    }
}

/// Shows the result of `call` as the loop would if the tool returned `output`.
async fn wrapped(reduction: &ToolReduction, call: &ToolCall, output: &str) -> Vec<Part> {
    let tool = |_: ToolCall| async { Ok(ToolOutput::from(output)) };
    Middleware::wrap_tool_call(reduction, call, Next::new(&[], &tool))
        .await
        .unwrap()
        .into_parts()
        .await
        .0
}

/// Shows the result of our own reader through the middleware.
async fn wrapped_reader(reduction: &ToolReduction, arguments: &Value) -> Vec<Part> {
    let reader = reduction.read_file_tool();
    let tool = |call: ToolCall| {
        let reader = reader.clone();
        async move { reader.call(&call).await }
    };
    let call = ToolCall::new("r", reader.definition().name, arguments.to_string());
    Middleware::wrap_tool_call(reduction, &call, Next::new(&[], &tool))
        .await
        .unwrap()
        .into_parts()
        .await
        .0
}

#[tokio::test]
async fn r1_only_content_of_this_reduction_is_read() {
    let store = memory();
    let whole = small(&store).root_dir("agent").build().unwrap();
    let (reduction, other) = (whole.session("one"), whole.session("two"));
    let location = store_result(&reduction, "a", lines(400)).await;
    let foreign = store_result(&other, "b", lines(400)).await;
    let above = store_result(&whole, "c", lines(400)).await;
    let beside = store_result(&small(&store).build().unwrap(), "d", lines(400)).await;
    // Keys below the root that are not ours.
    for key in [
        "agent/one/notes",
        "agent/one/trunc/deep/er",
        "agent/one-trunc/a",
        "agent/onetrunc/a",
    ] {
        store
            .put(&Key::new(key).unwrap(), "secret".into())
            .await
            .unwrap();
    }
    assert_eq!(location, "memory://t/agent/one/trunc/a");
    assert!(read(&reduction, json!({"path": location})).await.is_ok());

    let refused = [
        foreign.as_str(),
        &above,
        &beside,
        "",
        " ",
        "/etc/passwd",
        "trunc/a",
        "agent/one/trunc/a",
        "../../etc/passwd",
        "memory://t/agent/one/trunc/../../two/trunc/b",
        "memory://t/agent/one/trunc/../trunc/a",
        "memory://t/agent/one/trunc//a",
        "memory://t/agent/one/trunc/",
        "memory://t/agent/one/trunc",
        "memory://t/agent/one/trunc/deep/er",
        "memory://t/agent/one/notes",
        "memory://t/agent/one-trunc/a",
        "memory://t/agent/onetrunc/a",
        "memory://t/agent/one/truncated/a",
        "memory://t/agent/one/trunc/a\0",
        "memory://t/agent/one/trunc/a\n",
        "memory://t/agent/one/trunc/a/",
        "memory://t2/agent/one/trunc/a",
        "memory:/agent/one/trunc/a",
        "MEMORY://t/agent/one/trunc/a",
        "file:///etc/passwd",
    ];
    let mut errors = HashSet::new();
    for path in refused {
        let error = read(&reduction, json!({"path": path}))
            .await
            .expect_err(path);
        assert!(
            path.len() < 3 || !error.contains(path),
            "a hostile path is not repeated: {error}"
        );
        errors.insert(error);
    }
    assert_eq!(errors.len(), 1);
    insta::assert_snapshot!(errors.into_iter().next().unwrap(), @"`path` is not a stored result of this conversation: copy it exactly from a hint");
}

#[tokio::test]
async fn r1_a_store_of_another_configuration_is_not_read() {
    let (ours, theirs) = (memory(), Memory::named("theirs").unwrap());
    let location = store_result(&small(&theirs).build().unwrap(), "a", lines(400)).await;
    assert!(
        read(&small(&ours).build().unwrap(), json!({"path": location}))
            .await
            .is_err()
    );
    // A policy that names the store makes it one of ours.
    let both = small(&ours)
        .tool("grep", ToolPolicy::new().backend(theirs))
        .build()
        .unwrap();
    assert!(read(&both, json!({"path": location})).await.is_ok());
}

#[tokio::test]
async fn r1_other_files_of_a_directory_cannot_be_read() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().canonicalize().unwrap().join("store");
    std::fs::write(home.path().join("secret"), "secret").unwrap();
    let reduction = ToolReduction::builder()
        .backend(Fs::open(&root).unwrap())
        .max_length_for_trunc(1_500);
    let reduction = reduction.preview_length(200).build().unwrap();
    let location = store_result(&reduction, "a", lines(400)).await;
    let root = root.to_str().unwrap();
    std::fs::write(format!("{root}/trunc/.hidden"), "secret").unwrap();
    std::fs::write(format!("{root}/notes"), "secret").unwrap();
    assert!(read(&reduction, json!({"path": location})).await.is_ok());
    for path in [
        format!("{root}/trunc/../../secret"),
        format!("{root}/trunc/.hidden"),
        format!("{root}/notes"),
        format!("{root}-2/trunc/a"),
        format!("{root}/TRUNC/a"),
        format!("/{location}"),
        format!("{root}//trunc/a"),
        format!("{root}/./trunc/a"),
        "trunc/a".to_owned(),
        "~/store/trunc/a".to_owned(),
        "/etc/passwd".to_owned(),
        "/proc/self/environ".to_owned(),
    ] {
        let error = read(&reduction, json!({"path": path}))
            .await
            .expect_err(&path);
        assert!(
            error.starts_with("`path` is not a stored result of this conversation"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn r1_errors_about_arguments_say_what_to_pass() {
    let reduction = small(&memory()).build().unwrap();
    let location = store_result(&reduction, "a", lines(400)).await;
    let reader = reduction.read_file_tool();
    let mut errors = String::new();
    for arguments in [
        "",
        "{",
        "[]",
        "null",
        "{}",
        r#"{"path":7}"#,
        &json!({"path": location, "offset": "five"}).to_string(),
        &json!({"path": location, "offset": 1.5}).to_string(),
        &json!({"path": location, "offset": [1]}).to_string(),
        &json!({"path": location, "offset": "-99999999999999999999"}).to_string(),
        &json!({"path": location, "limit": 0}).to_string(),
        &json!({"path": location, "limit": -1}).to_string(),
        &json!({"path": location, "limit": "many"}).to_string(),
    ] {
        let error = reader
            .call(&ToolCall::new("r", "read_file", arguments))
            .await
            .expect_err(arguments);
        errors.push_str(&format!("{arguments}\n    {error}\n"));
    }
    insta::assert_snapshot!(errors, @r#"

        the arguments are invalid JSON (EOF while parsing a value at line 1 column 0): pass {"path": "…"}
    {
        the arguments are invalid JSON (EOF while parsing an object at line 1 column 1): pass {"path": "…"}
    []
        `path` is missing: pass the location that a hint shows
    null
        `path` is missing: pass the location that a hint shows
    {}
        `path` is missing: pass the location that a hint shows
    {"path":7}
        `path` is missing: pass the location that a hint shows
    {"path":"memory://t/trunc/a","offset":"five"}
        `offset` must be a line number, such as 12 or -5, or "LINE+BYTE" as a page shows it
    {"path":"memory://t/trunc/a","offset":1.5}
        `offset` must be a line number, such as 12 or -5, or "LINE+BYTE" as a page shows it
    {"path":"memory://t/trunc/a","offset":[1]}
        `offset` must be a line number, such as 12 or -5, or "LINE+BYTE" as a page shows it
    {"path":"memory://t/trunc/a","offset":"-99999999999999999999"}
        `offset` must be a line number, such as 12 or -5, or "LINE+BYTE" as a page shows it
    {"path":"memory://t/trunc/a","limit":0}
        `limit` must be a number of lines, 1 or more
    {"path":"memory://t/trunc/a","limit":-1}
        `limit` must be a number of lines, 1 or more
    {"path":"memory://t/trunc/a","limit":"many"}
        `limit` must be a number of lines, 1 or more
    "#);
}

#[tokio::test]
async fn r2_pages_by_lines_give_the_content_back() {
    let reduction = small(&memory()).build().unwrap();
    let poem = "床前明月光，疑是地上霜。\n举头望明月，低头思故乡。\n\n".repeat(100);
    let contents = [
        lines(1_000),
        lines(1_000).trim_end().to_owned(),
        poem,
        "\n".repeat(3_000),
        "a\r\n".repeat(1_000),
    ];
    for (n, text) in contents.into_iter().enumerate() {
        let location = store_result(&reduction, &format!("a{n}"), text.clone()).await;
        let (all, pages) = read_through(&reduction, &json!({"path": location})).await;
        assert!(all == text, "content {n} in {pages} pages");
        assert!(pages > 2);
        let (all, pages) = read_through(&reduction, &json!({"path": location, "limit": 10})).await;
        assert!(
            all == text && pages >= 30,
            "content {n} by ten lines in {pages} pages"
        );
    }
}

#[tokio::test]
async fn r2_a_page_names_its_lines_and_the_total() {
    let reduction = small(&memory()).build().unwrap();
    let location = store_result(&reduction, "a", lines(400)).await;
    let mut shown = String::new();
    for arguments in [
        json!({"path": location, "limit": 2}),
        json!({"path": location, "offset": 3, "limit": "2"}),
        json!({"path": location, "offset": -2}),
        json!({"path": location, "offset": "-1"}),
        json!({"path": location, "offset": 400}),
        json!({"path": location, "offset": 401}),
        json!({"path": location, "offset": 99999}),
        json!({"path": location, "offset": u64::MAX}),
        json!({"path": location, "offset": "399+5"}),
        json!({"path": location, "offset": "399+500"}),
        json!({"path": location, "offset": 0, "limit": 1}),
        json!({"path": location, "offset": i64::MIN, "limit": 1}),
        json!({"path": location, "limit": 1, "pattern": ""}),
    ] {
        let hint = read(&reduction, arguments.clone()).await.unwrap();
        shown.push_str(&format!("{arguments}\n{}\n", hint.render()));
    }
    insta::assert_snapshot!(shown, @r#"
    {"path":"memory://t/trunc/a","limit":2}
    [offcut/1 page@1 3492B/400L 34+14 "memory://t/trunc/a"] Lines 1-2. Continue with offset 3.
    line 1
    line 2

    {"path":"memory://t/trunc/a","offset":3,"limit":"2"}
    [offcut/1 page@3 3492B/400L 34+14 "memory://t/trunc/a"] Lines 3-4. Continue with offset 5.
    line 3
    line 4

    {"path":"memory://t/trunc/a","offset":-2}
    [offcut/1 page@399 3492B/400L 14+18 "memory://t/trunc/a"] Lines 399-400.
    line 399
    line 400

    {"path":"memory://t/trunc/a","offset":"-1"}
    [offcut/1 page@400 3492B/400L 14+9 "memory://t/trunc/a"] Lines 400-400.
    line 400

    {"path":"memory://t/trunc/a","offset":400}
    [offcut/1 page@400 3492B/400L 14+9 "memory://t/trunc/a"] Lines 400-400.
    line 400

    {"path":"memory://t/trunc/a","offset":401}
    [offcut/1 page@401 3492B/400L 21 "memory://t/trunc/a"] No lines from 401 on.
    {"path":"memory://t/trunc/a","offset":99999}
    [offcut/1 page@99999 3492B/400L 23 "memory://t/trunc/a"] No lines from 99999 on.
    {"path":"memory://t/trunc/a","offset":18446744073709551615}
    [offcut/1 page@18446744073709551615 3492B/400L 38 "memory://t/trunc/a"] No lines from 18446744073709551615 on.
    {"path":"memory://t/trunc/a","offset":"399+5"}
    [offcut/1 page@399+5 3492B/400L 14+13 "memory://t/trunc/a"] Lines 399-400.
    399
    line 400

    {"path":"memory://t/trunc/a","offset":"399+500"}
    [offcut/1 page@400 3492B/400L 14+9 "memory://t/trunc/a"] Lines 400-400.
    line 400

    {"path":"memory://t/trunc/a","offset":0,"limit":1}
    [offcut/1 page@1 3492B/400L 34+7 "memory://t/trunc/a"] Lines 1-1. Continue with offset 2.
    line 1

    {"path":"memory://t/trunc/a","offset":-9223372036854775808,"limit":1}
    [offcut/1 page@1 3492B/400L 34+7 "memory://t/trunc/a"] Lines 1-1. Continue with offset 2.
    line 1

    {"path":"memory://t/trunc/a","limit":1,"pattern":""}
    [offcut/1 page@1 3492B/400L 34+7 "memory://t/trunc/a"] Lines 1-1. Continue with offset 2.
    line 1
    "#);
}

#[tokio::test]
async fn r2_pages_and_errors_are_in_chinese() {
    let reduction = small(&memory())
        .language(Language::Chinese)
        .build()
        .unwrap();
    let location = store_result(&reduction, "a", "明月几时有，把酒问青天。\n".repeat(100)).await;
    let mut shown = String::new();
    for arguments in [
        json!({"path": location, "limit": 2}),
        json!({"path": location, "offset": "1+3", "limit": 1}),
        json!({"path": location, "offset": 101}),
        json!({"path": location, "pattern": "青天", "limit": 2}),
        json!({"path": location, "pattern": "没有"}),
    ] {
        shown.push_str(&format!(
            "{}\n",
            read(&reduction, arguments).await.unwrap().render()
        ));
    }
    insta::assert_snapshot!(shown, @r#"
    [offcut/1 page@1 3700B/100L 38+74 "memory://t/trunc/a"] 第 1-2 行。续读请用 offset 3。
    明月几时有，把酒问青天。
    明月几时有，把酒问青天。

    [offcut/1 page@1+3 3700B/100L 38+34 "memory://t/trunc/a"] 第 1-1 行。续读请用 offset 2。
    月几时有，把酒问青天。

    [offcut/1 page@101 3700B/100L 32 "memory://t/trunc/a"] 从第 101 行起没有内容。
    [offcut/1 matches 3700B 49+77 "memory://t/trunc/a"] 目前匹配行数：2。续读请用 offset 3。
    1:明月几时有，把酒问青天。
    2:明月几时有，把酒问青天。
    [offcut/1 matches 3700B 19 "memory://t/trunc/a"] 匹配行数：0。
    "#);
}

#[tokio::test]
async fn h2_the_reader_speaks_the_language_of_the_hints() {
    let reduction = small(&memory())
        .language(Language::Chinese)
        .build()
        .unwrap();
    let location = store_result(&reduction, "a", lines(400)).await;
    let reader = reduction.read_file_tool();
    let definition = reader.definition();
    let mut shown = format!("{}\n", definition.description);
    let properties = &definition.parameters["properties"];
    for name in ["path", "offset", "limit", "pattern", "context", "count"] {
        let description = properties[name]["description"].as_str().unwrap();
        shown.push_str(&format!("{name}: {description}\n"));
    }
    for arguments in [
        json!([]),
        json!({"path": "memory://t/trunc/none"}),
        json!({"path": "/etc/passwd"}),
        json!({"path": location, "offset": "five"}),
        json!({"path": location, "limit": 0}),
        json!({"path": location, "pattern": "a{99999999}"}),
        json!({"path": location, "pattern": "x", "offset": -5}),
    ] {
        let error = read(&reduction, arguments).await.unwrap_err();
        shown.push_str(&format!("{error}\n"));
    }
    let broken = ToolCall::new("r", "read_file", "{");
    let error = reader.call(&broken).await.unwrap_err();
    shown.push_str(&error.to_string());
    insta::assert_snapshot!(shown, @r#"
    读取已存储的工具结果。`path` 为 [offcut/1 truncated … "path"] 这类提示中的位置。从第 `offset` 行起显示一页，或显示匹配 `pattern` 的行，或显示 `query` 的输出。
    path: 提示中的位置，原样填写。
    offset: 起始行号，从 1 起；负数从末尾数。"12+4000" 指第 12 行偏移 4000 字节处。默认 1。
    limit: 最多行数。默认尽可能多。
    pattern: 不含环视的正则表达式，如 (?i)error|failed、(?s)from.*?to。
    context: 每处匹配前后显示的行数。
    count: 只显示匹配行数与次数。
    缺少 `path`：请填写提示中的位置
    `path` 处没有存储内容：请原样复制提示中的位置，或重新调用该工具
    `path` 不是本次对话中存储的结果：请原样复制提示中的位置
    `offset` 须为行号，如 12 或 -5，或页面所示的 "LINE+BYTE"
    `limit` 须为行数，至少为 1
    `pattern` 不是受支持的正则表达式：Compiled regex exceeds size limit of 262144 bytes.
    使用 `pattern` 或 `query` 时 `offset` 不能为负：请填 1 或更大
    参数不是有效的 JSON（EOF while parsing an object at line 1 column 1）：请传入 {"path": "…"}
    "#);
}

#[tokio::test]
async fn r2_a_line_of_three_megabytes_can_be_paged() {
    let store = memory();
    let reduction = builder(&store).build().unwrap();
    let line: String = (0..300_000).map(|n| format!("{n:07}é,")).collect();
    assert_eq!(line.len(), 3_000_000);
    let location = store_result(&reduction, "a", line.clone()).await;
    let (all, pages) = read_through(&reduction, &json!({"path": location})).await;
    assert!(all == line, "in {pages} pages");
    let last = read(&reduction, json!({"path": location, "offset": "1+2999990"}))
        .await
        .unwrap();
    assert_eq!(
        (last.preview.as_str(), next_offset(&last)),
        ("0299999é,", None)
    );
    assert_eq!(store.len(), 1);
}

#[tokio::test]
async fn r2_content_that_is_not_utf_8_can_be_paged() {
    let reduction = small(&memory()).build().unwrap();
    let bytes: Vec<u8> = (0..6_000_u32).map(|n| (n % 256) as u8).collect();
    let location = store_result(&reduction, "a", ToolOutput::bytes(bytes.clone())).await;
    let (all, pages) = read_through(&reduction, &json!({"path": location})).await;
    assert!(pages > 10);
    // Pages end only after characters and lines, so replacement characters are as in the whole.
    let all_ascii = |text: &str| text.chars().filter(char::is_ascii).collect::<String>();
    assert_eq!(all_ascii(&all), all_ascii(&String::from_utf8_lossy(&bytes)));
    let matches = read(
        &reduction,
        json!({"path": location, "pattern": "(?-u)\\xff"}),
    )
    .await
    .unwrap();
    assert!(
        matches.prose.starts_with("Matching lines"),
        "{}",
        matches.prose
    );
}

#[tokio::test]
async fn r3_pages_are_under_the_limit_and_never_truncated_or_stored() {
    // The error tells the smallest limit.
    let smallest = small(&memory())
        .preview_length(0)
        .max_length_for_trunc(1)
        .build();
    let Err(BuildError::LimitTooSmall { at_least, .. }) = smallest else {
        panic!("{smallest:?}")
    };
    let limits = [at_least, 1_000, 50_000, 1 << 30];
    for limit in limits {
        for own in [false, true] {
            let store = memory();
            let mut settings = builder(&store)
                .count_tokens_with(|text: &str| text.len() as u64)
                .preview_length(0);
            settings = if own {
                let policy = ToolPolicy::new().max_length_for_trunc(limit);
                settings
                    .max_length_for_trunc(100_000)
                    .tool("read_file", policy)
            } else {
                settings.max_length_for_trunc(limit)
            };
            let reduction = settings
                .tool("store", ToolPolicy::new().max_length_for_trunc(1_000))
                .build()
                .unwrap();
            let most = limit;
            let invalid = [&b"\xff\xfe"[..], &[0xff; 60_000], lines(4_000).as_bytes()].concat();
            let long = format!("{}\n{}", "x".repeat(50_000), "yé字\n".repeat(9_000));
            for (id, output) in [
                ("a", ToolOutput::bytes(invalid)),
                ("b", long.into()),
                ("c", lines(9_000).into()),
            ] {
                let shown = reduction
                    .truncate(&call(id, "store"), output)
                    .await
                    .unwrap();
                let location = shown.report.decisions[0].locations[0].to_string();
                let there = store.len();
                for extra in [
                    json!({}),
                    json!({"offset": "1+40000"}),
                    json!({"offset": 3, "limit": 2}),
                    json!({"offset": -1}),
                    json!({"offset": u64::MAX}),
                    json!({"pattern": "."}),
                    json!({"pattern": "absent"}),
                    json!({"pattern": "line", "offset": 7, "limit": 1}),
                ] {
                    let mut arguments = json!({"path": location});
                    arguments
                        .as_object_mut()
                        .unwrap()
                        .extend(extra.as_object().unwrap().clone());
                    let parts = wrapped_reader(&reduction, &arguments).await;
                    let page = text(&parts);
                    assert!(
                        page.len() <= most,
                        "{} bytes of {limit:?} for {arguments}",
                        page.len()
                    );
                    let hint = Hint::parse(page).unwrap();
                    assert!(
                        matches!(hint.kind, Kind::Page { .. } | Kind::Matches),
                        "{arguments}: {page:.200}"
                    );
                    assert_eq!(store.len(), there);
                }
                // The error about a long pattern stays within the limit and gives the reason.
                let arguments =
                    json!({"path": location, "pattern": format!("({}", "x".repeat(50_000))});
                let asked = ToolCall::new("r", "read_file", arguments.to_string());
                let error = reduction
                    .read_file_tool()
                    .call(&asked)
                    .await
                    .unwrap_err()
                    .to_string();
                assert!(error.len() <= most, "{} bytes of {limit:?}", error.len());
                assert!(error.contains("unclosed group") || most < 500, "{error}");
            }
        }
    }
}

#[tokio::test]
async fn r3_images_come_back_as_images() {
    let store = memory();
    let reduction = small(&store).max_tokens_for_clear(10).build().unwrap();
    let image = Part::Media {
        mime: "image/png".into(),
        data: [137, 80, 78, 71, 0, 255].repeat(500).into(),
    };
    let shoot = call("a", "shoot");
    let mut messages = vec![
        Message::calls(vec![shoot.clone()]),
        Message::tool(&shoot, vec![image.clone(), "seen".into()], false),
    ];
    messages.extend(crate::common::round("b", "f", "ok"));
    clear(&reduction, &mut messages).await;
    let hints = Hint::parse_all(text(&content(&messages[1])[..1])).unwrap();
    let path = hints[0].location.as_ref().unwrap().to_string();
    assert!(
        path.ends_with("trunc/a.png") || path.ends_with("clear/a.png"),
        "{path}"
    );
    let there = store.len();
    assert_eq!(
        wrapped_reader(&reduction, &json!({"path": path})).await,
        [image]
    );
    assert_eq!(store.len(), there);
}

#[tokio::test]
async fn r4_matching_lines_continue_where_the_last_page_ended() {
    let reduction = small(&memory()).build().unwrap();
    let text_of: String = (1..=900)
        .map(|n| format!("{n} {}\n", if n % 3 == 0 { "fizz" } else { "plain" }))
        .collect();
    let location = store_result(&reduction, "a", text_of.clone()).await;
    for limit in [json!(null), json!(7), json!(1)] {
        let arguments = json!({"path": location, "pattern": "fizz$", "limit": limit});
        let (mut rows, mut arguments, mut pages) = (Vec::new(), arguments, 0);
        loop {
            let page = read(&reduction, arguments.clone()).await.unwrap();
            rows.extend(page.preview.lines().map(str::to_owned));
            pages += 1;
            assert!(pages <= 301, "limit {limit} goes in circles");
            let Some(next) = next_offset(&page) else {
                break;
            };
            arguments["offset"] = json!(next);
        }
        let expected: Vec<_> = (1..=300).map(|n| format!("{0}:{0} fizz", n * 3)).collect();
        assert_eq!(rows, expected, "limit {limit}");
    }
}

/// Every request has it.
#[cfg(feature = "tiktoken")]
#[test]
fn r1_the_reader_is_described_in_few_tokens() {
    let counter = offcut::TokenCounter::O200kBase.build().unwrap();
    for language in Language::ALL {
        let reduction = small(&memory()).language(language).build().unwrap();
        let definition = reduction.read_file_tool().definition();
        let properties = definition.parameters["properties"].as_object().unwrap();
        let said = properties
            .values()
            .map(|property| property["description"].as_str().unwrap());
        let said: Vec<&str> = said.chain([&*definition.description]).collect();
        let tokens = counter.count(&said.join("\n"));
        assert!(tokens <= 200, "{language:?}: {tokens}");
    }
}

#[tokio::test]
async fn r4_matches_come_with_the_lines_around_them() {
    let mut log: Vec<String> = (1..=400).map(|n| format!("step {n}")).collect();
    for at in [1, 3, 100, 399] {
        log[at - 1] = format!("error in step {at}");
    }
    let reduction = small(&memory()).build().unwrap();
    let location = store_result(&reduction, "a", log.join("\n")).await;
    let found = |more: Value| {
        let mut arguments = json!({"path": location, "pattern": "error"});
        arguments
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        read(&reduction, arguments)
    };
    let page = found(json!({"context": 1})).await.unwrap();
    assert_eq!(page.prose, "Matching lines: 4.");
    insta::assert_snapshot!(page.preview, @"
    1:error in step 1
    2-step 2
    3:error in step 3
    4-step 4
    99-step 99
    100:error in step 100
    101-step 101
    398-step 398
    399:error in step 399
    400-step 400
    ");
    // A page that goes on says so, and counts only lines that match.
    let page = found(json!({"context": 2, "limit": 2})).await.unwrap();
    assert_eq!(
        page.prose,
        "Matching lines so far: 2. Continue with offset 100."
    );
    let page = found(json!({"context": "2", "offset": 100, "limit": 1}))
        .await
        .unwrap();
    assert!(
        page.preview
            .starts_with("98-step 98\n99-step 99\n100:error"),
        "{}",
        page.preview
    );
    let page = found(json!({"context": 5_000})).await.unwrap();
    assert!(
        page.render().len() <= 1_000 && page.preview.contains("3:error"),
        "{}",
        page.preview
    );
    let page = found(json!({"count": true})).await.unwrap();
    assert_eq!(
        (page.prose.as_str(), page.preview.as_str()),
        ("Matching lines: 4.", "")
    );
    let across = found(json!({"pattern": "error.*1\\d*\\nstep"}))
        .await
        .unwrap();
    assert_eq!(across.prose, "Matching lines: 4.");
    insta::assert_snapshot!(across.preview, @"
    1:error in step 1
    2:step 2
    100:error in step 100
    101:step 101
    ");
    assert_eq!(
        found(json!({"context": -1})).await.unwrap_err(),
        "`context` must be a number of lines, 0 or more"
    );
    let limited = found(json!({"count": 2})).await.unwrap();
    assert_eq!(limited, found(json!({"limit": 2})).await.unwrap());
    // Long lines around a match are cut.
    let reduction = small(&memory())
        .max_length_for_trunc(2_000)
        .build()
        .unwrap();
    let long = format!("{}\nneedle\n{}", "a".repeat(200_000), "b".repeat(200_000));
    let location = store_result(&reduction, "b", long).await;
    let page = read(
        &reduction,
        json!({"path": location, "pattern": "needle", "context": 1}),
    )
    .await
    .unwrap();
    let rows: Vec<&str> = page.preview.lines().collect();
    assert!(
        rows[0].starts_with("1-aaa") && rows[0].ends_with("a…"),
        "{rows:?}"
    );
    assert_eq!(rows[1], "2:needle");
    assert!(
        rows[2].starts_with("3-bbb") && rows[2].ends_with("b…"),
        "{rows:?}"
    );
}

#[tokio::test]
async fn r4_patterns_that_can_not_be_used_say_why() {
    let reduction = small(&memory()).build().unwrap();
    let location = store_result(&reduction, "a", lines(400)).await;
    let mut errors = String::new();
    for (pattern, offset) in [
        ("(unclosed", json!(1)),
        ("a{99999999}", json!(1)),
        ("(?=look)", json!(1)),
        ("x", json!(-5)),
    ] {
        let arguments = json!({"path": location, "pattern": pattern, "offset": offset});
        errors.push_str(&format!(
            "{pattern}\n{}\n\n",
            read(&reduction, arguments).await.unwrap_err()
        ));
    }
    insta::assert_snapshot!(errors, @"
    (unclosed
    `pattern` is not a supported regular expression: regex parse error:
        (unclosed
        ^
    error: unclosed group

    a{99999999}
    `pattern` is not a supported regular expression: Compiled regex exceeds size limit of 262144 bytes.

    (?=look)
    `pattern` is not a supported regular expression: regex parse error:
        (?=look)
        ^^^
    error: look-around, including look-ahead and look-behind, is not supported

    x
    `offset` can't be negative with `pattern` or `query`: pass 1 or more
    ");
}

#[tokio::test]
async fn r4_patterns_understand_unicode() {
    let reduction = small(&memory()).build().unwrap();
    let location = store_result(
        &reduction,
        "a",
        "Ärger mit 狐狸 und Größe\nplain\n".repeat(100),
    )
    .await;
    for pattern in [
        "(?i)ärger",
        "狐.",
        r"\bGröße\b",
        r"\w+ mit",
        "^plain$",
        r"[一-龥]+",
    ] {
        let found = read(
            &reduction,
            json!({"path": location, "pattern": pattern, "limit": 3}),
        )
        .await
        .unwrap();
        assert_eq!(
            found.preview.lines().count(),
            3,
            "{pattern}: {}",
            found.prose
        );
    }
}

#[tokio::test]
async fn r4_a_pattern_takes_linear_time() {
    let reduction = builder(&memory()).build().unwrap();
    let location = store_result(&reduction, "a", format!("{}!\n", "a".repeat(1_000_000))).await;
    for pattern in ["(a+)+$", "(a*)*b", "(a|aa)+$", "(.*)*=(.*)*"] {
        let found = read(&reduction, json!({"path": location, "pattern": pattern}))
            .await
            .unwrap();
        assert!(
            found.prose.starts_with("Matching lines: "),
            "{pattern}: {}",
            found.prose
        );
    }
}

#[tokio::test]
async fn r4_long_matching_lines_under_the_smallest_limit_can_be_read_on() {
    let error = builder(&memory())
        .preview_length(0)
        .max_length_for_trunc(1)
        .build()
        .unwrap_err();
    let BuildError::LimitTooSmall { at_least, .. } = error else {
        panic!("{error}")
    };
    let reduction = builder(&memory())
        .preview_length(0)
        .max_length_for_trunc(at_least)
        .build()
        .unwrap();
    // The longest locations leave the least room.
    let reduction = reduction.session(&"s".repeat(64));
    let id = "i".repeat(64);
    store_result(&reduction, &id, lines(400)).await;
    let location = store_result(
        &reduction,
        &id,
        format!("needle {}\n", "x".repeat(900)).repeat(5),
    )
    .await;
    let (found, _) =
        read_through(&reduction, &json!({"path": location, "pattern": "needle"})).await;
    assert_eq!(found.matches("needle").count(), 5);
}

#[tokio::test]
async fn reading_removed_content_says_that_it_is_gone() {
    let home = tempfile::tempdir().unwrap();
    let store = Fs::open(home.path()).unwrap();
    let reduction = ToolReduction::builder()
        .backend(store)
        .max_length_for_trunc(1_500)
        .preview_length(200)
        .build()
        .unwrap();
    let location = store_result(&reduction, "a", lines(400)).await;
    std::fs::remove_file(&location).unwrap();
    for arguments in [
        json!({"path": location}),
        json!({"path": location, "offset": -3}),
        json!({"path": location, "pattern": "x"}),
        json!({"path": location.replace("trunc/a", "clear/never.png")}),
    ] {
        let error = read(&reduction, arguments).await.unwrap_err();
        assert_eq!(
            error,
            "nothing is stored at `path`: copy it from a hint, or call the tool again"
        );
    }
    // The reading fails, and the loop continues.
    let reader = reduction.read_file_tool();
    let call = ToolCall::new("r", "read_file", json!({"path": location}).to_string());
    let shown = reduction
        .truncate(&call, reader.call(&call).await)
        .await
        .unwrap();
    assert!(shown.is_error);
}

#[tokio::test]
async fn a_store_that_fails_to_read_is_reported() {
    let store = Faulty::new(memory());
    let reduction = ToolReduction::builder()
        .backend(store.clone())
        .max_length_for_trunc(1_000)
        .preview_length(200);
    let reduction = reduction.build().unwrap();
    let location = store_result(&reduction, "a", lines(400)).await;
    for fault in [
        Fault::Fail(ErrorKind::Unavailable),
        Fault::Fail(ErrorKind::Denied),
        Fault::ApplyThenFail,
    ] {
        for arguments in [
            json!({"path": location}),
            json!({"path": location, "offset": -3}),
            json!({"path": location, "pattern": "x"}),
        ] {
            store.fault_on_next_read(fault);
            let error = read(&reduction, arguments.clone()).await.unwrap_err();
            assert_eq!(
                error,
                "the store failed: try again, or call the tool again if you need its result"
            );
            assert!(
                read(&reduction, arguments).await.is_ok(),
                "the next one works"
            );
        }
    }
    // Another reader's result is truncated instead, and not lost.
    store.fault_on_next_read(Fault::Fail(ErrorKind::Unavailable));
    let cat = ToolCall::new("b", "cat", json!({"file": location}).to_string());
    let parts = wrapped(&reduction, &cat, &lines(400)).await;
    assert_eq!(Hint::parse(text(&parts)).unwrap().kind, Kind::Truncated);
    // So it is if nothing can be read: storing does not read.
    store.fault_on_every_read(Fault::Fail(ErrorKind::Unavailable));
    let parts = wrapped(&reduction, &cat, &lines(400)).await;
    assert_eq!(Hint::parse(text(&parts)).unwrap().kind, Kind::Truncated);
}

#[tokio::test]
async fn a_reader_can_have_another_name_or_be_absent() {
    let reduction = small(&memory())
        .read_file_tool_name("fetch_output")
        .build()
        .unwrap();
    assert_eq!(reduction.read_file_tool().definition().name, "fetch_output");
    let shown = reduction
        .truncate(&call("a", "grep"), lines(400))
        .await
        .unwrap();
    assert!(shown.text().contains("Read it with fetch_output."));
    let location = shown.report.decisions[0].locations[0].to_string();
    assert!(read(&reduction, json!({"path": location})).await.is_ok());

    let nameless = small(&memory()).read_file_tool_name(None).build().unwrap();
    let shown = nameless
        .truncate(&call("a", "grep"), lines(400))
        .await
        .unwrap();
    assert!(!shown.text().contains("Read it with"));
    assert!(nameless.required_tools().is_empty());
    assert_eq!(nameless.read_file_tool().definition().name, "read_file");
}

#[tokio::test]
async fn an_error_of_the_reader_is_shown_unchanged() {
    let reduction = small(&memory()).build().unwrap();
    let reader = reduction.read_file_tool();
    let call = ToolCall::new("r", "read_file", json!({"path": "/etc/passwd"}).to_string());
    let error: ToolError = reader.call(&call).await.unwrap_err();
    let shown = reduction
        .truncate(&call, Err::<ToolOutput, _>(error))
        .await
        .unwrap();
    assert!(shown.is_error && !shown.report.is_change());
}

#[tokio::test]
async fn r1_a_tool_of_the_readers_name_gets_the_calls_that_name_nothing_stored() {
    let reduction = small(&memory()).build().unwrap();
    let location = store_result(&reduction, "a", lines(400)).await;
    for (ours, arguments) in [
        (true, json!({"path": location})),
        (true, json!({"path": location, "limit": "x"})),
        (true, json!({"file_path": location})),
        (true, json!({"path": format!("{location}2")})),
        (
            true,
            json!({"path": "other/session/trunc/a".replace("other", "memory://t")}),
        ),
        (
            true,
            json!({"path": location.strip_prefix("memory://").unwrap()}),
        ),
        (false, json!({"path": "src/main.rs"})),
        (false, json!({"path": "src/clear/mod.rs"})),
        (false, json!({"path": "/etc/passwd", "pattern": "root"})),
        (false, json!({})),
        (false, json!("a")),
    ] {
        let call = ToolCall::new("b", "read_file", arguments.to_string());
        let answer = reduction.answer(&call).await.unwrap();
        assert_eq!(answer.is_some(), ours, "{arguments}");
    }
    let call = ToolCall::new("b", "grep", json!({"path": location}).to_string());
    assert!(reduction.answer(&call).await.unwrap().is_none());
}
