//! Questions to the reader, in jq's language (R5).
#![cfg(feature = "query")]

use offcut::ToolReduction;
use offcut::backend::Memory;
use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
use serde_json::{Value, json};

use super::{answer, small, store_result};

const FLIGHTS: &str = r#"{"flights": [
    {"id": 18446744073709551615, "from": "TXL", "price": 80.50, "seats": [1, 2]},
    {"id": 2, "from": "FRA", "price": 120, "seats": []},
    {"id": 3, "from": "TXL", "price": 60, "seats": [7]}
]}"#;

async fn asked(reduction: &ToolReduction, arguments: Value) -> String {
    let answer = answer(reduction, &arguments).await;
    answer.unwrap_or_else(|error| format!("error: {error}"))
}

/// Stores `content` and asks `query` about it.
async fn ask(content: impl Into<String>, query: &str) -> String {
    let store = Memory::new();
    let reduction = small(&store).build().unwrap();
    let padded = content.into();
    // Below the limit nothing is stored.
    assert!(padded.len() > 1_000, "store more");
    let path = store_result(&reduction, "a", padded).await;
    asked(&reduction, json!({"path": path, "query": query})).await
}

/// Asks about `content`, however short it is.
async fn of(content: &str, query: &str) -> String {
    let padding = " ".repeat(1_001);
    ask(format!("{content}{padding}"), query).await
}

#[tokio::test]
async fn r5_json_is_asked_in_jqs_language() {
    for (query, printed) in [
        (".flights | length", "3\n"),
        (
            ".flights[] | select(.from == \"TXL\") | .id",
            "18446744073709551615\n3\n",
        ),
        ("[.flights[].price] | add", "260.5\n"),
        (
            ".flights | map({from, price}) | sort_by(.price)[0]",
            "{\"from\":\"TXL\",\"price\":60}\n",
        ),
        (
            ".flights | group_by(.from) | map({(.[0].from): length}) | add",
            "{\"FRA\":1,\"TXL\":2}\n",
        ),
        (".flights | max_by(.price).from", "FRA\n"),
        ("[.flights[].seats[]] | unique | @csv", "1,2,7\n"),
        (
            ".flights[0] | to_entries | map(.key) | join(\" \")",
            "id from price seats\n",
        ),
        (
            "reduce .flights[] as $f ({}; .[$f.from] += $f.price)",
            "{\"TXL\":140.5,\"FRA\":120}\n",
        ),
        (
            ".flights[] | select(.from | test(\"^t\"; \"i\")) | .price",
            "80.5\n60\n",
        ),
        ("INDEX(.flights[]; .id)[\"3\"].from", "TXL\n"),
        (".flights[1:] | length, (.[-1].id)", "2\n3\n"),
        (
            "def cheap($most): map(select(.price < $most)); .flights | cheap(100) | length",
            "2\n",
        ),
        ("del(.flights[0]) | .flights[0].id", "2\n"),
        (
            ".flights[].from |= ascii_downcase | .flights[0].from",
            "txl\n",
        ),
        ("[paths(type == \"number\")] | length", "9\n"),
        (".nothing?, (.flights | .nothing?)", "null\n"),
        ("[.flights[] | .from] | index(\"FRA\")", "1\n"),
        (
            "[limit(2; .flights[].from)] | tojson",
            "[\"TXL\",\"FRA\"]\n",
        ),
        ("\"a-b_c\" | [splits(\"[-_]\")] | join(\"+\")", "a+b+c\n"),
        (
            "\"äöü 12\" | capture(\"(?<n>\\\\d+)\").n | tonumber + 1",
            "13\n",
        ),
        ("\"äöü 12\" | match(\"1\").offset", "4\n"),
        ("7 / 2, 8 / 2, 7 % 2, -7", "3.5\n4\n1\n-7\n"),
        (
            ".flights[0].id - 1, .flights[0].id % 10, 9223372036854775807 + 1",
            "18446744073709551614\n5\n9223372036854775808\n",
        ),
        (
            "[.flights[0].id, 18446744073709551614] | sort[0], index(18446744073709551614)",
            "18446744073709551614\n1\n",
        ),
        ("[nan] | sort | .[0] | isnan", "true\n"),
        (
            "[nan] == [nan], {\"a\": [1, 2]} == {\"a\": [1, 2.0]}",
            "false\ntrue\n",
        ),
        (
            "[9007199254740993, 9007199254740992.0, 9007199254740991, nan, -1.5, -1] | sort[1:] | tojson",
            "[-1.5,-1,9007199254740991,9007199254740992,9007199254740993]\n",
        ),
        (
            "reduce range(1100) as $i ({}; {a: .} * {a: 1}) | tojson",
            "{\"a\":1}\n",
        ),
        ("try error(\"x\") catch .", "x\n"),
        (
            "[\"foo\", \"bar\", \"baz\"] | del(.[1, 2]), delpaths([[0], [1], [1]]), del(.[1:], .[0], .[5], .[-9]) | tojson",
            "[\"foo\"]\n[\"baz\"]\n[]\n",
        ),
        (
            "[{\"a\": 1, \"b\": 2}, {\"a\": 3}] | del(.[].a, .[5].a, .[].c.d), del(.[0:1], .[1].a), del(.[1:][0].a) | tojson",
            "[{\"b\":2},{}]\n[{}]\n[{\"a\":1,\"b\":2},{}]\n",
        ),
        (
            "[1, 2, 3, 4] | del(.[2], .[-4]), del(.[-1], .[3]), del(.[0:2], .[1:3]), del(.[3], .[0:2]), del(.[]|select(. > 1)), del(empty) | tojson",
            "[2,4]\n[1,2,3]\n[4]\n[3]\n[1]\n[1,2,3,4]\n",
        ),
        (
            "{\"a\": 1, \"b\": {\"c\": 2}} | del(.a, .b.c, .b.x, .y.z), del(.) | tojson",
            "{\"b\":{}}\nnull\n",
        ),
        (
            "[[1, [2]], 3] | del(.[0], .[0][1], .[0][1][0]), del(.. | select(. == 1 or . == [2] or . == 2)) | tojson",
            "[3]\n[[],3]\n",
        ),
        (
            "[[[1], [2, 3]], 4] | del(.[0:9][0:9][0][0], .[0][1][0]), del(.[0:9][0:9][0], .[0][1]), del(.[0:2][0], .[0][1]) | tojson",
            "[[[3]],4]\n[4]\n[4]\n",
        ),
        (
            "[range(200000)] | del(.[] | select(. % 2 == 0)) | length",
            "100000\n",
        ),
        (
            "\"on 2026-11-27T10:00:00Z k=v\" | [scan(\"(\\\\w+)=(\\\\w+)\")][0][1], test(\"\\\\d{4}-\\\\d{2}-\\\\d{2}T\\\\d{2}:\\\\d{2}\"), (\"a\\nB\" | test(\"^b.?$\"; \"mi\"))",
            "v\ntrue\ntrue\n",
        ),
        (
            "[\"a\", 1, 2.5, true, null, false] | join(\" \")",
            "a 1 2.5 true  false\n",
        ),
        (
            "\"Müller Größe\" | [scan(\"\\\\w+\")], test(\"^\\\\p{L}+ \") | tojson",
            "[\"Müller\",\"Größe\"]\ntrue\n",
        ),
        (
            "\"a-b\" | ltrimstr(\"a-\"), ltrimstr(7), rtrimstr(\"-b\"), (7 | ltrimstr(\"7\"))",
            "b\na-b\na\n7\n",
        ),
        (
            "[1, \"a\\rb\", null, true] | @tsv, @csv",
            "1\ta\\rb\t\ttrue\n1,\"a\rb\",,true\n",
        ),
        ("\"2026-11-27T10:00:00Z\" | fromdate", "1795773600\n"),
    ] {
        assert_eq!(of(FLIGHTS, query).await, printed, "{query}");
    }
}

#[tokio::test]
async fn r5_records_are_read_in_the_shapes_that_tools_return() {
    let total = "map(.n) | add";
    for content in [
        "{\"n\": 1}\n{\"n\": 2}\n",
        "[{\"n\": 1}, {\"n\": 2}]",
        "\u{feff}[{\"n\": 1}, {\"n\": 2}]",
        "Chunk ID: 7\nOutput:\n[{\"n\": 1}, {\"n\": 2}]",
        "Here:\n{\"n\": 1}\n{\"n\": 2}\n",
        "a,n\nx,1\n\"y, z\",2\n",
        "a\tn\nx\t1\ny\t2\n",
        "a;n\nx;1\ny;2\n",
        "| a | n |\n|---|--:|\n| x | 1 |\n| y | 2 |\n",
    ] {
        let padded = format!("{content}{}", "\n".repeat(1_001));
        assert_eq!(ask(padded, total).await, "3\n", "{content}");
    }
    let lines = "one, two\nthree\nfour 4\n".to_owned() + &"\n".repeat(1_001);
    assert_eq!(
        ask(lines.clone(), "map(select(test(\"o\")))[1]").await,
        "four 4\n"
    );
    assert_eq!(
        ask(
            lines,
            "[.[] | capture(\"(?<word>\\\\w+) (?<n>\\\\d+)\")][0].n"
        )
        .await,
        "4\n"
    );
    let pods = "NAME   READY  AGE\na-1    1/1    3d\nb-234  0/1\nc      1/1    9d\n".to_owned()
        + &"\n".repeat(1_001);
    assert_eq!(
        ask(pods, "map(select(.READY == \"0/1\"))[0] | .NAME, .AGE").await,
        "b-234\n\n"
    );
    // These are lines: columns without a name of their own, rows of another length, cells across columns.
    for lines in [
        "a,a\n1,2\n3,4\n",
        "a,b\n1\n3,4\n",
        "| a | b |\n|---|---|\n| 1 |\n",
        "USER  PID\nroot  1\nlonger 2\nx     3\n",
    ] {
        let lines = lines.to_owned() + &"\n".repeat(1_001);
        let first = lines.lines().next().unwrap().to_owned() + "\n";
        assert_eq!(ask(lines, ".[0]").await, first);
    }
    let zeros = "id,n\n007,1\n1e3,2\n".to_owned() + &"\n".repeat(1_001);
    assert_eq!(ask(zeros, "map(.id) | tojson").await, "[\"007\",1000]\n");
}

#[tokio::test]
async fn r5_a_mistake_is_answered_with_its_cure() {
    for (query, says) in [
        (".flights[", "error: `query` failed: it ends where"),
        (".flights | foo(1)", "there is no filter `foo`"),
        (".flights | .x", "cannot index [{"),
        (".flights | .x", "`.` is an object with the keys flights"),
        ("$ENV", "there is no variable `$ENV`"),
        ("env", "there is no filter `env`"),
        ("halt", "there is no filter `halt`"),
        ("now", "there is no filter `now`"),
        ("import \"a\" as a; .", "can't be imported"),
        (
            "empty",
            "The query printed nothing. `.` is an object with the keys flights.",
        ),
        ("\"x\" | test(\"(?=a)\")", "look-around"),
        ("break $x", "label"),
        (
            "\"x\" * 200 | test((\"()\" * 10000) + \"x+\")",
            "size limit",
        ),
        ("{\"a\": 1} | @csv", "a row must be an array"),
        ("[[1]] | @tsv", "a cell of a row"),
        ("[[1]] | join(\"-\")", "cannot calculate"),
    ] {
        let said = of(FLIGHTS, query).await;
        assert!(said.contains(says), "{query}: {said}");
        assert!(said.len() <= 1_000, "{query}: {said}");
    }
    let store = Memory::new();
    let reduction = small(&store).build().unwrap();
    let path = store_result(&reduction, "a", FLIGHTS.repeat(9)).await;
    for (arguments, says) in [
        (
            json!({"path": path, "query": ".", "pattern": "a"}),
            "either `pattern` or `query`",
        ),
        (
            json!({"path": path, "query": ".", "offset": -3}),
            "can't be negative",
        ),
        (json!({"path": path, "jq": "|"}), "`query` failed"),
        (
            json!({"path": "/etc/passwd", "query": "."}),
            "not a stored result",
        ),
        (
            json!({"path": path, "query": ".".repeat(5_000)}),
            "too long",
        ),
    ] {
        let said = asked(&reduction, arguments).await;
        assert!(said.starts_with("error: ") && said.contains(says), "{said}");
    }
}

#[tokio::test]
async fn r5_what_a_query_prints_is_paged() {
    let records: String = (0..900).map(|n| format!("{{\"n\": {n}}}\n")).collect();
    let store = Memory::new();
    let reduction = small(&store).build().unwrap();
    let path = store_result(&reduction, "a", records).await;
    let (mut rows, mut offset, mut pages) = (Vec::new(), "1".to_owned(), 0);
    loop {
        let page = asked(
            &reduction,
            json!({"path": path, "query": "map(.n + 1)", "offset": offset}),
        )
        .await;
        assert!(page.len() <= 1_000, "{page}");
        let (said, shown) = page.split_once('\n').unwrap();
        assert!(said.starts_with("Lines "), "{said}");
        rows.extend(shown.lines().map(str::to_owned));
        pages += 1;
        match said.split_once("offset ") {
            Some((_, next)) => offset = next.trim_end_matches('.').to_owned(),
            None => break,
        }
    }
    assert!(pages > 3, "{pages}");
    let all: Vec<u64> = serde_json::from_str(&rows.concat()).unwrap();
    assert_eq!(all, (1..=900).collect::<Vec<u64>>());
    let limited = asked(
        &reduction,
        json!({"path": path, "query": ".[].n", "limit": 2}),
    )
    .await;
    assert_eq!(limited, "Lines 1-2. Continue with offset 3.\n0\n1\n");
}

/// Unit tests ask more, under lower bounds.
#[tokio::test]
async fn r5_a_query_beyond_a_bound_is_refused() {
    for query in [
        "last(repeat(1))",
        "\"x\" * 1e9 | length",
        "try (def f: 1 + f; f) catch 1",
    ] {
        let said = of("5", query).await;
        let says = "too much time, memory or depth: select fewer records first";
        assert!(said.contains(says), "{query}: {said}");
    }
    let line = "x".repeat(1_000) + "\n";
    let said = ask(line.repeat(34_000), "length").await;
    assert!(
        said.contains("go through its records with `inputs`"),
        "{said}"
    );
}

proptest! {
    /// A table that JSON and CSV both hold has the same records.
    #[test]
    fn r5_a_table_reads_back_into_the_same_records(
        rows in proptest::collection::vec(("[a-z \",;\n]{1,9}x", 0u32..), 2..9)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let records: Vec<Value> = rows.iter().map(|(name, n)| json!({"n": n, "name": name.trim()})).collect();
        let quoted = rows.iter().map(|(name, n)| format!("{n},\"{}\"\n", name.trim().replace('"', "\"\"")));
        let csv: String = std::iter::once("n,name\n".to_owned()).chain(quoted).collect();
        let said = runtime.block_on(ask(format!("{csv}{}", "\n".repeat(1_001)), "tojson"));
        prop_assert_eq!(serde_json::from_str::<Vec<Value>>(&said).unwrap(), records);
    }

    /// No text is a query that does harm.
    #[test]
    fn l7_any_query_is_answered(query in r#"([.|,\[\](){}"\\:;$?+*/%=<>-]|def |as |reduce |foreach |if |then |end|try |[a-z0-9 ]){0,40}"#) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let said = runtime.block_on(of(FLIGHTS, &query));
        prop_assert!(!said.is_empty() && said.len() <= 1_000, "{}", said);
    }
}
