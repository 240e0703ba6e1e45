//! Hostile queries, and content that is too long to hold, under lower bounds than those outside of tests.

use std::sync::Arc;

use bytes::Bytes;

use super::*;
use crate::backend::{Backend, Key, Memory};
use crate::hint::{Language, Position, Prose};

/// The error of every query over a bound.
const TOO_MUCH: &str = "too much time, memory or depth";

/// Returns what `query` prints of `content`, or the error.
async fn ask(content: impl Into<Bytes>, query: &str) -> String {
    let (store, key) = (Memory::new(), Key::new("trunc/a").unwrap());
    store.put(&key, content.into()).await.unwrap();
    let stored = Stored::new(Arc::new(store), key);
    let cutter = PageCutter::new(Position::START, None, 900);
    match answer(&stored, query.to_owned(), cutter).await {
        Ok(page) => page.text(&Prose::of(Language::English)),
        Err(refusal) => refusal.into_error(Language::English).to_string(),
    }
}

/// Whatever a model writes is answered, within bounds, and the process goes on.
#[tokio::test]
async fn r5_no_query_runs_forever_or_takes_all_memory() {
    let many = (0..10).map(|_| "(.,.,.)").collect::<Vec<_>>().join("|");
    let nested = |open: &str, close: &str, times: usize| {
        format!("{}.{}", open.repeat(times), close.repeat(times))
    };
    let written = [
        ("last(repeat(1))", TOO_MUCH),
        ("[repeat(1)]", TOO_MUCH),
        ("reduce repeat(1) as $x (0; .)", TOO_MUCH),
        ("def f: f; f", TOO_MUCH),
        ("def f: 1 + f; f", TOO_MUCH),
        ("def f: [f]; f", TOO_MUCH),
        ("try (def f: 1 + f; f) catch 1", TOO_MUCH),
        ("reduce range(1e9) as $i (0; [.]) | tojson", TOO_MUCH),
        ("reduce range(1e6) as $i (0; {a: .})", TOO_MUCH),
        ("reduce range(200) as $i (0; [., .]) | tojson", TOO_MUCH),
        ("reduce range(200) as $i (0; [., .]) == 1", "false"),
        (
            "reduce range(200) as $i (0; [., .]) | flatten | length",
            TOO_MUCH,
        ),
        ("[range(1e9)]", TOO_MUCH),
        ("last(range(1e12))", TOO_MUCH),
        ("\"x\" * 1e9 | length", TOO_MUCH),
        ("\"x\" * 1e300 | length", TOO_MUCH),
        ("reduce range(99) as $i (\"x\"; . + .) | length", TOO_MUCH),
        (".[1e12] = 1", ""),
        ("null | .[1e12] = 1", TOO_MUCH),
        ("[limit(1e9; repeat(\"x\"))] | length", TOO_MUCH),
        ("(reduce range(1e6) as $x (.; .)) |= 1", ""),
        ("null | setpath([range(1e6) | 0]; 1)", TOO_MUCH),
        ("[recurse(. + 1; . < 1e9)] | length", ""),
        (
            "\"a\" * 1e6 | [match(\"(a?){50}(a?){50}b\"; \"g\")] | length",
            "",
        ),
        ("\"a\" * 9e5 | [match(\"\"; \"g\")] | length", ""),
        ("\"a\" * 3e7 | contains(\"a\")", "true"),
        ("[range(1e5)] | contains([range(5e4; 1e5)])", TOO_MUCH),
    ];
    let made = [
        (format!("{many}|{many}|empty"), TOO_MUCH),
        (nested("[", "]", 2_000), ""),
        (nested("(", ")", 2_000), ""),
        (nested("-", "", 4_000), ""),
        (nested("def f: ", ";.", 400), ""),
        (nested("{a:", "}", 1_000), ""),
        (nested("if . then ", " end", 250), ""),
        (format!("{}1", "1+".repeat(2_000)), "2001"),
        (format!("{}1", ".|".repeat(2_000)), "1"),
        (format!("\"{}\"", "\\(.)".repeat(900)), ""),
    ];
    let hostile = written
        .map(|(query, says)| (query.to_owned(), says))
        .into_iter()
        .chain(made);
    // Each takes its time, mostly.
    futures_util::future::join_all(hostile.map(async |(query, says)| {
        let said = ask("5", &query).await;
        assert!(said.contains(says), "{query:.60}: {said}");
        assert!(said.len() <= 1_000, "{query:.60}");
    }))
    .await;
}

/// Records that are too long to hold together are read one by one, if each can be held.
#[tokio::test]
async fn r5_long_content_is_read_record_by_record() {
    let rows = 2_000;
    let filler = "x".repeat(1_000);
    let lines = |line: &dyn Fn(usize) -> String| (0..rows).map(line).collect::<String>();
    let json_lines = lines(&|n| format!("{{\"n\": {n}, \"filler\": \"{filler}\"}}\n"));
    let csv = "n,filler\n".to_owned() + &lines(&|n| format!("{n},{filler}\n"));
    let sum = (rows * (rows - 1) / 2).to_string() + "\n";
    for records in [json_lines.clone(), csv] {
        assert_eq!(ask(records, "reduce inputs as $r (0; . + $r.n)").await, sum);
    }
    let said = ask(json_lines.clone(), "length").await;
    assert!(
        said.contains("go through its records with `inputs`"),
        "{said}"
    );
    let array = format!("[{}", json_lines.replace('\n', ","));
    let said = ask(array, "[inputs] | length").await;
    assert!(said.contains("too long for a query"), "{said}");
    let log = lines(&|n| format!("[{n}s] {filler}\n"));
    assert_eq!(ask(log, "[inputs] | length").await, "2000\n");
    let broken = format!("{json_lines}\n{{\"n\": 1e400}}\n{{\"n\"");
    let said = ask(broken, "last(inputs | select(.n > 1999) | .n)").await;
    assert!(said.contains("line 2003: "), "{said}");
    let last = ask(filler.repeat(rows) + "\nlast", "last(inputs)").await;
    assert_eq!(last, "last\n");
    let unclosed = ask(
        format!("a,b\n1,2\n3,4\n5,\"{}", "\n".repeat(5 << 20)),
        "[inputs] | length",
    )
    .await;
    assert!(unclosed.contains(TOO_MUCH), "{unclosed}");
}

/// All of JSON is read, also what is beyond floats and Unicode, but no depth or size without a bound.
#[tokio::test]
async fn r5_all_of_json_is_read() {
    let numbers = r#"[{"n": 1e400, "k": 18446744073709551615}, {"n": -1e999}]"#;
    let said = ask(numbers, ".[].n, .[0].k").await;
    let most = "1.7976931348623157e308";
    let most = most.replace("e308", "e+308");
    assert_eq!(said, format!("{most}\n-{most}\n18446744073709551615\n"));
    let half = ask(
        r#"{"half \ud83d": "a \ud83d b"}"#,
        "to_entries[0] | .key, .value",
    )
    .await;
    assert_eq!(half, "half \\ud83d\na \\ud83d b\n");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep = ask(deep, "length").await;
    assert!(deep.contains(TOO_MUCH), "{deep}");
    let dense = ask("5", r#""[" + "1," * 16e6 + "1]" | fromjson | length"#).await;
    assert!(dense.contains(TOO_MUCH), "{dense}");
}
