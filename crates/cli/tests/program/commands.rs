//! The commands as another program uses them: input in, output out, and errors on stderr with
//! advice.
// Helpers are part of the tests.

use std::collections::BTreeSet;
use std::io::{Read, Write};

use crate::support::{command, fail, run, succeed, text};
use serde_json::{Value, json};
use tempfile::tempdir;

fn lines(count: usize) -> String {
    (1..=count).map(|n| format!("line {n}\n")).collect()
}

#[test]
fn a_short_result_is_shown_byte_for_byte() {
    let folder = tempdir().unwrap();
    let store = text(folder.path());
    for short in ["", "no line feed", "ünïcode\r\n", "{\"json\": 1.10}"] {
        let args = [
            "truncate",
            "--config",
            "eino",
            "--backend",
            store,
            "--tool",
            "cat",
        ];
        assert_eq!(succeed(&args, short), short);
    }
}

#[test]
fn a_long_result_is_stored_and_read_back() {
    let folder = tempdir().unwrap();
    let store = text(folder.path());
    let long = lines(20_000);
    let from = ["--config", "eino", "--backend", store];
    let shown = succeed(
        &[
            &["truncate", "--tool", "build", "--call-id", "call_1"],
            &from[..],
        ]
        .concat(),
        &long,
    );
    let location = format!("{store}/trunc/call_1");
    assert!(
        shown.starts_with("[offcut/1 truncated ") && shown.contains(&location),
        "{shown:.200}"
    );
    assert!(
        shown.len() < 8_500 && shown.contains("line 20000\n[… "),
        "{}",
        shown.len()
    );
    assert_eq!(std::fs::read_to_string(&location).unwrap(), long);

    let read = |more: &[&str]| succeed(&[&["read", &location], &from[..], more].concat(), "");
    assert!(read(&["--offset", "-2"]).contains("line 19999\nline 20000\n"));
    assert!(read(&["--offset", "7", "--limit", "1"]).contains("line 7\n"));
    assert!(read(&["--pattern", "line 1999[89]"]).contains("19998"));
    let around = read(&["--pattern", "line 19998", "--context", "1"]);
    assert!(
        around.contains("19997-line 19997\n19998:line 19998\n"),
        "{around}"
    );
    assert!(read(&["--pattern", "7$", "--count"]).contains("Matching lines: 2000."));
    assert_eq!(
        read(&["--query", "map(select(endswith(\"777\"))) | length"]),
        "20\n"
    );
    let asked = json!({"path": location, "query": ".[-1]"}).to_string();
    let of_model = |asked: &str| {
        [&["read", "--arguments", asked], &from[..]]
            .concat()
            .join("\0")
    };
    let arguments = of_model(&asked);
    assert_eq!(
        succeed(&arguments.split('\0').collect::<Vec<_>>(), ""),
        "line 20000\n"
    );
    let arguments = of_model("{");
    let said = fail(&arguments.split('\0').collect::<Vec<_>>(), "", 2);
    assert!(said.contains("--arguments is not JSON"), "{said}");
    let json: Value = serde_json::from_str(&read(&["--limit", "1", "--json"])).unwrap();
    assert!(
        json["text"].as_str().unwrap().ends_with("line 1\n"),
        "{json}"
    );
    // With one more byte, a page would be a text like any other, and be stored again.
    assert_eq!(json["text"], read(&["--limit", "1"]));
}

#[test]
fn a_session_has_its_own_prefix() {
    let folder = tempdir().unwrap();
    let store = text(folder.path());
    let from = [
        "--config",
        "eino",
        "--backend",
        store,
        "--session",
        "chat-42",
    ];
    let shown = succeed(
        &[
            &["truncate", "--tool", "build", "--call-id", "a"],
            &from[..],
        ]
        .concat(),
        &lines(9_000),
    );
    let location = format!("{store}/chat-42/trunc/a");
    assert!(shown.contains(&location), "{shown:.200}");
    succeed(&[&["read", &location], &from[..]].concat(), "");
    // Without a session, the location tells whose it is, as for what a server has stored for others.
    let named = |path: &str| {
        let asked = json!({"path": path}).to_string();
        [&["read", "--arguments", &asked], &from[..4]]
            .concat()
            .join("\0")
    };
    for path in [&location, "chat-42/trunc/a"] {
        succeed(&[&["read", path], &from[..4]].concat(), "");
        // A model may not name it.
        let of_model = named(path);
        let error = fail(&of_model.split('\0').collect::<Vec<_>>(), "", 2);
        assert!(error.contains("--session"), "{error}");
    }
    let other = [&["read", &location], &from[..5], &["other"]].concat();
    let error = fail(&other, "", 2);
    assert!(error.contains("--session"), "{error}");
}

#[test]
fn truncation_as_json_has_the_report() {
    let folder = tempdir().unwrap();
    let args = [
        "truncate",
        "--config",
        "eino",
        "--backend",
        text(folder.path()),
        "--tool",
        "cat",
        "--json",
    ];
    let json: Value = serde_json::from_str(&succeed(&args, &lines(9_000))).unwrap();
    assert_eq!(json["parts"][0]["value"], json["text"]);
    assert_eq!(json["report"]["phase"], "truncate");
    let decision = &json["report"]["decisions"][0];
    assert_eq!(
        (&decision["outcome"], &decision["tool"]),
        (&json!("truncated"), &json!("cat"))
    );
    assert_eq!(decision["bytes"]["before"], lines(9_000).len());
}

/// The keys of `value`, with those of its objects and of the items of its lists; sorted.
fn keys(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let path = format!("{path}.{key}");
                keys(value, &path, found);
                found.insert(path);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, path, found)),
        _ => {}
    }
}

#[test]
fn a_cleared_body_as_json_has_the_report_that_the_documentation_describes() {
    let folder = tempdir().unwrap();
    let args = [
        "clear",
        "--config",
        "eino",
        "--backend",
        text(folder.path()),
    ];
    let [(format, body), ..] = conversations();
    assert_eq!(format, "openai-chat", "the example is one");
    let plain: Value = serde_json::from_str(&succeed(&args, &body.to_string())).unwrap();
    let json = succeed(&[&args[..], &["--json"]].concat(), &body.to_string());
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["body"], plain);

    let page = include_str!("../../../../docs/reports.md");
    let example = page.split("```json").nth(1).unwrap();
    let example: Value = serde_json::from_str(example.split("```").next().unwrap()).unwrap();
    let (mut described, mut written) = (BTreeSet::new(), BTreeSet::new());
    keys(&example["report"], "", &mut described);
    keys(&json["report"], "", &mut written);
    assert_eq!(described, written);
    for decision in json["report"]["decisions"].as_array().unwrap() {
        for word in [&decision["outcome"], &decision["reason"]] {
            let word = word.as_str().unwrap_or("kept");
            assert!(page.contains(&format!("`{word}`")), "{word}");
        }
    }
}

/// The same conversation in each format: three rounds, the first two of them old.
fn conversations() -> [(&'static str, Value); 4] {
    let long = |n: u32| format!("result {n}\n").repeat(6_000);
    let chat = |n: u32| {
        [
            json!({"content": null, "role": "assistant", "tool_calls": [{"type": "function", "id": format!("c{n}"), "function": {"name": "f", "arguments": "{}"}}]}),
            json!({"tool_call_id": format!("c{n}"), "role": "tool", "content": long(n), "x-own": n}),
        ]
    };
    let responses = |n: u32| {
        [
            json!({"type": "function_call", "name": "f", "call_id": format!("c{n}"), "arguments": "{}"}),
            json!({"type": "function_call_output", "output": long(n), "call_id": format!("c{n}")}),
        ]
    };
    let anthropic = |n: u32| {
        [
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": format!("c{n}"), "name": "f", "input": {}}]}),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": format!("c{n}"), "content": long(n)}]}),
        ]
    };
    let gemini = |n: u32| {
        [
            json!({"role": "model", "parts": [{"functionCall": {"name": "f", "id": format!("c{n}"), "args": {}}}]}),
            json!({"role": "user", "parts": [{"functionResponse": {"name": "f", "id": format!("c{n}"), "response": {"output": long(n)}}}]}),
        ]
    };
    let say = |text: &str| json!({"role": "user", "content": text});
    let join = |first: Value, rounds: [[Value; 2]; 3]| {
        Value::Array(
            std::iter::once(first)
                .chain(rounds.into_iter().flatten())
                .collect(),
        )
    };
    [
        (
            "openai-chat",
            json!({"model": "m", "messages": join(say("go"), [1, 2, 3].map(chat)), "temperature": 0.5}),
        ),
        (
            "openai-responses",
            json!({"input": join(say("go"), [1, 2, 3].map(responses))}),
        ),
        (
            "anthropic",
            json!({"system": "s", "messages": join(say("go"), [1, 2, 3].map(anthropic))}),
        ),
        (
            "gemini",
            json!({"contents": join(json!({"role": "user", "parts": [{"text": "go"}]}), [1, 2, 3].map(gemini))}),
        ),
    ]
}

/// Replaces each hint in `value` by its original, and returns the locations.
fn put_back(value: &mut Value) -> Vec<String> {
    match value {
        Value::String(text) if text.starts_with("[offcut/1 cleared") => {
            let location = text.split('"').nth(1).unwrap().to_owned();
            *text = std::fs::read_to_string(&location).unwrap();
            vec![location]
        }
        Value::Array(values) => values.iter_mut().flat_map(put_back).collect(),
        Value::Object(fields) => fields.values_mut().flat_map(put_back).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn old_results_are_cleared_in_every_format_and_the_rest_stays() {
    for (format, body) in conversations() {
        let folder = tempdir().unwrap();
        let store = folder.path().join("store");
        let store = text(&store);
        let args = ["clear", "--config", "eino", "--backend", store];
        let both = succeed(&[&args[..], &["--json"]].concat(), &body.to_string());
        let both: Value = serde_json::from_str(&both).unwrap();
        let cleared = succeed(&args, &body.to_string());
        assert_eq!(both["body"].to_string(), cleared, "{format}");
        let named = [&args[..], &["--format", format]].concat();
        assert_eq!(succeed(&named, &body.to_string()), cleared, "{format}");

        // Putting back what was cleared gives the original body, byte for byte.
        let mut after: Value = serde_json::from_str(&cleared).unwrap();
        assert_eq!(
            put_back(&mut after),
            ["c1", "c2"].map(|id| format!("{store}/clear/{id}")),
            "{format}"
        );
        assert_eq!(after.to_string(), body.to_string(), "{format}");

        let outcomes: Vec<_> = both["report"]["decisions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|decision| &decision["outcome"])
            .collect();
        assert_eq!(
            outcomes[..2],
            [&json!("cleared"), &json!("cleared")],
            "{format}"
        );
        // A second pass, in another process, changes no byte.
        assert_eq!(succeed(&args, &cleared), cleared, "{format}");
    }
}

#[test]
fn a_whole_request_is_reduced_to_the_same_bytes_each_time() {
    for (format, body) in conversations() {
        let folder = tempdir().unwrap();
        let (store, body) = (text(folder.path()), body.to_string());
        let args = ["reduce", "--config", "eino", "--backend", store];
        let first = succeed(&args, &body);
        assert!(first.len() < body.len(), "{format}");
        for again in [&body, &first] {
            assert_eq!(succeed(&args, again), first, "{format}");
        }
    }
}

#[test]
fn messages_that_are_not_cleared_are_printed_byte_for_byte() {
    let folder = tempdir().unwrap();
    let args = [
        "clear",
        "--config",
        "eino",
        "--backend",
        text(folder.path()),
    ];
    let spelled = "[ {\"role\": \"user\",\n \"content\": \"h\\u0069\", \"n\": 1.10, \"big\": 123456789012345678901234567890} ]\n\n";
    assert_eq!(succeed(&args, spelled), spelled);
}

/// Documents that change if they are parsed and written again.
const SPELLINGS: &str = r#"{"big":1000000000000000000001, "price" : 1.00,"e":1E5,"zero":-0,"over":1e400,"u":"\u00e9\/"}"#;

#[test]
fn l5_messages_that_are_not_replaced_keep_their_bytes() {
    let folder = tempdir().unwrap();
    let args = [
        "clear",
        "--config",
        "eino",
        "--backend",
        text(folder.path()),
    ];
    let long = r"line \u00e9 \ud83d\ude00\n".repeat(4_000);
    let body = |results: [&str; 3]| {
        let round = |nth: usize, content: &str| {
            format!(
                "{{ \"role\":\"assistant\",\"content\":null,\"x\":{SPELLINGS},\"tool_calls\":[{{\"id\":\"c{nth}\",\
                 \"type\":\"function\",\"function\":{{\"name\":\"f\",\"arguments\":\"{{}}\"}}}}]}},\n\t\
                 {{\"role\" : \"tool\",\"tool_call_id\":\"c{nth}\",\"content\":\"{content}\" , \"x\":{SPELLINGS}}}"
            )
        };
        let [one, two, three] = results;
        let rounds = [round(1, one), round(2, two), round(3, three)].join(" , ");
        format!(
            "\n{{ \"seed\":[{SPELLINGS},{{\"dup\":1,\"dup\":2}}],\"messages\" :\r\n[ {{\"role\":\"user\",\"content\":\"go\"}},{rounds} ],\"tools\":[]}}\n"
        )
    };
    let before = body([&long, &long, &long]);
    let sent = succeed(&args, &before);
    let hint = |nth| {
        let location = format!("{}/clear/c{nth}", text(folder.path()));
        let stored = std::fs::read_to_string(&location).unwrap();
        assert_eq!(stored, "line é 😀\n".repeat(4_000));
        let from = sent
            .find(&format!("\"tool_call_id\":\"c{nth}\",\"content\":\""))
            .unwrap();
        let rest = sent[from..].split_once("\"content\":\"").unwrap().1;
        rest.split_once("\" , ").unwrap().0.to_owned()
    };
    let hints = [hint(1), hint(2)];
    assert!(
        hints
            .iter()
            .all(|hint| hint.starts_with("[offcut/1 cleared ")),
        "{hints:?}"
    );
    assert_eq!(sent, body([&hints[0], &hints[1], &long]));
    assert_eq!(succeed(&args, &sent), sent, "and again");
}

#[test]
fn l1_json_is_stored_as_it_is_spelled() {
    let folder = tempdir().unwrap();
    let settings = folder.path().join("s.toml");
    std::fs::write(&settings, "max_tokens_for_clear = 30_000\nclear_retention_suffix_limit = 1\ntoken_counter = \"estimate\"\nclear_tool_inputs = true\n").unwrap();
    let store = folder.path().join("store");
    let args = [
        "clear",
        "--config",
        text(&settings),
        "--backend",
        text(&store),
    ];
    let filler = format!("\"filler\" : \"{}\"", "x\\n".repeat(60_000));
    let document = format!("{{ \"rows\":[{SPELLINGS}], {filler} }}");
    let anthropic = |nth: usize| {
        format!(
            r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"c{nth}","name":"f","input":{document}}}]}},
               {{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c{nth}","content":[{{"type":"new","of":{document}}}]}}]}}"#
        )
    };
    let gemini = |nth: usize| {
        format!(
            r#"{{"role":"model","parts":[{{"functionCall":{{"id":"g{nth}","name":"f","args":{document}}}}}]}},
               {{"role":"user","parts":[{{"functionResponse":{{"id":"g{nth}","name":"f","response":{document}}}}}]}}"#
        )
    };
    let (ones, twos) = (1..4, 1..4);
    let bodies = [
        format!(
            "{{\"messages\":[{}]}}",
            ones.map(anthropic).collect::<Vec<_>>().join(",")
        ),
        format!(
            "{{\"contents\":[{}]}}",
            twos.map(gemini).collect::<Vec<_>>().join(",")
        ),
    ];
    for body in bodies {
        let sent = succeed(&args, &body);
        assert!(sent.len() < body.len() / 2, "{}", sent.len());
    }
    let stored = |name: &str| {
        let mut files = std::fs::read_dir(store.join("clear"))
            .unwrap()
            .map(|file| file.unwrap().path());
        let file = files
            .find(|file| file.file_stem().unwrap() == name)
            .unwrap_or_else(|| panic!("no {name}"));
        std::fs::read_to_string(file).unwrap()
    };
    for (name, expected) in [
        ("c1", format!("{{\"type\":\"new\",\"of\":{document}}}")),
        ("c1-args", document.clone()),
        ("g1", document.clone()),
        ("g1-args", document.clone()),
    ] {
        assert_eq!(stored(name), expected, "{name}");
    }
}

#[test]
fn l5_a_body_without_replaceable_texts_passes_unchanged() {
    let folder = tempdir().unwrap();
    let args = [
        "clear",
        "--config",
        "eino",
        "--backend",
        text(folder.path()),
    ];
    for body in [
        "{\"messages\":[]}",
        "[ ]\n",
        "{ \"model\":\"m\", \"input\" : [] }",
        "{\"contents\":[],\"x\":1.00}",
        "{\"input\":\"hello\"}",
        "{\"messages\":[],\"system\":\"s\"}",
    ] {
        assert_eq!(succeed(&args, body), body);
    }
    let twice = "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"messages\":[]}";
    let ran = run(&args, twice);
    assert_eq!((ran.code, &*ran.out), (0, twice));
    assert!(ran.err.contains("`messages` twice"), "{}", ran.err);
}

#[test]
fn a_format_that_the_messages_are_not_in_is_refused() {
    let folder = tempdir().unwrap();
    let clear = |format: &str, messages: &Value| {
        run(
            &[
                "clear",
                "--config",
                "eino",
                "--backend",
                text(folder.path()),
                "--format",
                format,
            ],
            &messages.to_string(),
        )
    };
    for (is, body) in conversations() {
        for (named, _) in conversations().iter().filter(|(named, _)| *named != is) {
            let ran = clear(named, &body);
            assert_eq!(
                (ran.code, ran.out),
                (2, body.to_string()),
                "{is} as {named}"
            );
            assert!(
                ran.err.contains(&format!("they look like {is}")),
                "{is} as {named}: {}",
                ran.err
            );
        }
    }
    // Before the first call, the formats can't be told apart.
    let hi = json!([{"role": "user", "content": "hi"}]);
    for format in ["openai-chat", "anthropic", "gemini"] {
        let ran = clear(format, &hi);
        assert_eq!((ran.code, ran.out), (0, hi.to_string()), "{}", ran.err);
    }
    assert_eq!(clear("gemini", &json!([])).code, 0);
}

#[test]
fn wrong_options_of_a_page_are_errors() {
    let folder = tempdir().unwrap();
    let from = ["--config", "eino", "--backend", text(folder.path())];
    let truncate = ["truncate", "--tool", "f", "--call-id", "a"];
    succeed(&[&truncate, &from[..]].concat(), &lines(9_000));
    let read = [&["read", "trunc/a"], &from[..]].concat();
    for (name, wrong) in [
        ("--offset", "abc"),
        ("--offset", "-0"),
        ("--offset", "1+"),
        ("--pattern", "["),
        ("--pattern", "(\\w{1000}){1000}"),
        ("--query", ".["),
    ] {
        let error = fail(&[&read[..], &[name, wrong]].concat(), "", 2);
        assert!(error.contains("hint: change the option"), "{error}");
    }
    for wrong in ["0", "-3"] {
        let ran = run(&[&read[..], &["--limit", wrong]].concat(), "");
        assert_eq!(ran.code, 2, "{}", ran.err);
    }
    // These are valid offsets: the error is that nothing is stored there.
    let read = [&["read", "trunc/b"], &from[..]].concat();
    for right in ["0", "-1", "7", "12+4000"] {
        let error = fail(&[&read[..], &["--offset", right]].concat(), "", 1);
        assert!(
            error.contains("nothing is stored at trunc/b\n") && error.contains("--backend"),
            "{error}"
        );
    }
}

#[test]
fn errors_name_the_problem_and_the_remedy() {
    let folder = tempdir().unwrap();
    let store = text(folder.path());
    let clear = ["clear", "--config", "eino", "--backend", store];
    let (wrong, file) = (
        folder.path().join("wrong.toml"),
        folder.path().join("a-file"),
    );
    std::fs::write(&wrong, "preview_lenght = 5\n").unwrap();
    std::fs::write(&file, "").unwrap();
    let (wrong, file) = (text(&wrong), text(&file));

    fail(&clear, "{\"messages\": ", 2);
    fail(&clear, "{\"no\": 1}", 2);
    fail(
        &[
            "truncate",
            "--config",
            "eino",
            "--backend",
            file,
            "--tool",
            "f",
        ],
        "x",
        2,
    );
    fail(
        &[
            "read",
            "--config",
            "eino",
            "--backend",
            store,
            "/etc/passwd",
        ],
        "",
        1,
    );
    fail(&["config", "check", "no-such-file.toml"], "", 2);
    fail(&["replay", store], "", 2);
    fail(&["replay", store, "--prices", wrong], "", 2);
    let said = fail(&["config", "check", wrong], "", 2);
    assert!(
        said.contains("line 1") && said.contains("did you mean `preview_length`?"),
        "{said}"
    );
    let unknown = run(&["clear", "--format", "morse"], "[]");
    assert!(
        unknown.code == 2 && unknown.err.contains("openai-responses"),
        "{unknown:?}"
    );
}

#[cfg(feature = "serve")]
#[test]
fn a_server_whose_address_nobody_takes_says_so() {
    let home = tempdir().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut serve = command(&["serve", "--listen", "127.0.0.1:0"]);
    serve.env("OFFCUT_HOME", home.path()).stdout(writer);
    let ran = serve.output().unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(1), "{said}");
    assert!(said.contains("error: stdout can't be written to"), "{said}");
    let mut left = std::fs::read_dir(home.path().join("servers")).unwrap();
    assert!(left.next().is_none());
}

#[test]
fn a_broken_pipe_loses_nothing() {
    let folder = tempdir().unwrap();
    let long = lines(20_000);
    let args = [
        "truncate",
        "--config",
        "eino",
        "--backend",
        text(folder.path()),
        "--tool",
        "f",
        "--call-id",
        "a",
    ];
    let mut child = command(&args).spawn().unwrap();
    drop(child.stdout.take());
    child
        .stdin
        .take()
        .unwrap()
        .write_all(long.as_bytes())
        .unwrap();
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{said}");
    assert_eq!(said, "");
    assert_eq!(
        std::fs::read_to_string(folder.path().join("trunc/a")).unwrap(),
        long
    );
}

#[test]
fn updates_are_merged_into_a_state() {
    let folder = tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        text(&path).to_owned()
    };
    let schema = file(
        "s.yaml",
        "dialect: openarmature\nfields:\n  - {name: seen, type: list, reducer: append}\n  - {name: last}\n",
    );
    let state = file("state.json", r#"{"seen": [1], "last": "a"}"#);
    let (one, two) = (
        file("1.json", r#"{"seen": [2], "last": "b"}"#),
        file("2.json", r#"{"seen": [3]}"#),
    );
    let args = [
        "state", "apply", "--schema", &schema, "--state", &state, &one, &two,
    ];
    let after: Value = serde_json::from_str(&succeed(&args, "")).unwrap();
    assert_eq!(after, json!({"seen": [1, 2, 3], "last": "b"}));
    let after: Value = serde_json::from_str(&succeed(
        &["state", "apply", "--schema", &schema, "-"],
        r#"{"last": 7}"#,
    ))
    .unwrap();
    assert_eq!(after, json!({"last": 7}));

    let bad = file("bad.json", r#"{"sean": [4]}"#);
    let said = fail(
        &[
            "state", "apply", "--schema", &schema, "--state", &state, &one, &bad,
        ],
        "",
        2,
    );
    assert!(
        said.contains("`sean`") && said.contains("bad.json"),
        "{said}"
    );
    let broken = file("broken.yaml", "fields:\n  - {name: seen, reducer: glue}\n");
    fail(&["state", "apply", "--schema", &broken, &one], "", 2);
    let custom = file(
        "custom.yaml",
        "dialect: sherma\nfields:\n  - {name: seen, reducer: glue}\n",
    );
    let said = fail(&["state", "apply", "--schema", &custom, &one], "", 2);
    assert!(
        said.contains("fields[0].reducer: unknown variant `glue`")
            && said.contains("reducers of your own work in programs of your own"),
        "{said}"
    );
}

#[test]
fn stdin_is_named_in_errors_and_read_once() {
    let folder = tempdir().unwrap();
    let schema = folder.path().join("s.yaml");
    std::fs::write(
        &schema,
        "dialect: openarmature\nfields:\n  - {name: last}\n",
    )
    .unwrap();
    let schema = text(&schema);
    for wrong in [
        "{",
        "{\"lost\": 1}",
        "{\"last\": 1, \"last\": 2}",
        "{\"last\": 123456789012345678901}",
    ] {
        let said = fail(&["state", "apply", "--schema", schema, "-"], wrong, 2);
        assert!(said.starts_with("error: stdin"), "{said}");
    }
    assert!(
        fail(&["state", "apply", "--schema", "-", schema], "fields: 1", 2)
            .starts_with("error: stdin: ")
    );
    for twice in [
        &["--schema", schema, "-", "-"][..],
        &["--schema", schema, "--state", "-", "-"],
        &["--schema", "-", "-"],
    ] {
        let said = fail(&[&["state", "apply"], twice].concat(), "{}", 2);
        assert!(said.contains("- is given more than once"), "{said}");
    }
}

#[test]
fn missing_input_exits_with_2() {
    let folder = tempdir().unwrap();
    let schema = folder.path().join("s.yaml");
    std::fs::write(
        &schema,
        "dialect: openarmature\nfields:\n  - {name: last}\n",
    )
    .unwrap();
    let (schema, nothing) = (text(&schema), folder.path().join("nothing"));
    let nothing = text(&nothing);
    for args in [
        &["state", "apply", "--schema", nothing, "-"][..],
        &["state", "apply", "--schema", schema, nothing],
        &[
            "state", "apply", "--schema", schema, "--state", nothing, "-",
        ],
        &["replay", nothing],
        &["replay", schema, "--prices", nothing],
        &["config", "check", nothing],
        &["clear", "--config", nothing],
        &["store", "ls", nothing],
        &["sweep", nothing, "--nothing-is-live"],
        &["sweep", text(folder.path()), "--live", nothing],
    ] {
        fail(args, "{}", 2);
    }
}

#[test]
fn texts_pass_in_whatever_list() {
    let texts = json!([{"type": "text", "text": "go"}]);
    for body in [
        json!({"messages": [{"role": "user", "content": texts}]}),
        json!([{"role": "system", "content": texts}, {"role": "user", "content": texts}]),
    ] {
        for command in ["clear", "reduce"] {
            let store = tempdir().unwrap();
            let ran = run(
                &[command, "--backend", text(store.path())],
                &body.to_string(),
            );
            assert_eq!((ran.code, &*ran.err), (0, ""), "{command}");
            assert_eq!(ran.out.trim(), body.to_string());
        }
    }
}

/// Messages of a framework are not those of a provider: passed on in silence, they would look as if
/// all were well.
#[test]
fn messages_that_no_format_reads_are_refused_by_name() {
    let long = lines(9_000);
    let cases = [
        (
            json!([{"role": "tool", "content": [{"type": "tool-result", "toolCallId": "a", "toolName": "f", "output": {"type": "text", "value": long}}]}]),
            "Vercel AI SDK ModelMessages",
        ),
        (
            json!([{"id": "1", "role": "assistant", "parts": [{"type": "tool-f", "toolCallId": "a", "state": "output-available", "output": long}]}]),
            "Vercel AI SDK UIMessages",
        ),
        (
            json!([{"kind": "request", "parts": [{"part_kind": "tool-return", "tool_name": "f", "content": long}]}]),
            "pydantic-ai messages",
        ),
        (
            json!([{"type": "tool", "tool_call_id": "a", "content": long}]),
            "LangChain messages",
        ),
        (
            json!([{"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": [{"text": long}]}}]}]),
            "Bedrock Converse messages",
        ),
        (
            json!([{"role": "user", "content": "go"}, {"role": "toolResult", "toolCallId": "a", "content": [{"type": "text", "text": long}]}]),
            "pi messages",
        ),
        (
            json!([{"role": "assistant", "content": "", "toolInvocations": [{"state": "result", "toolCallId": "a", "result": long}]}]),
            "Vercel AI SDK 4 messages",
        ),
        (
            json!([{"info": {"role": "assistant"}, "parts": [{"type": "tool", "tool": "bash", "state": {"output": long}}]}]),
            "OpenCode messages",
        ),
        (
            json!([{"role": "user", "content": "go"}, {"role": "observation", "content": long}]),
            "`observation`",
        ),
        (
            json!([{"role": "user", "content": "go"}, {"role": "ipython", "content": long}]),
            "`ipython`",
        ),
    ];
    for (messages, name) in cases {
        for body in [messages.clone(), json!({"messages": messages})] {
            for command in ["clear", "reduce"] {
                let store = tempdir().unwrap();
                let args = [command, "--backend", text(store.path())];
                let ran = run(&args, &body.to_string());
                assert_eq!(ran.code, 2, "{command} {name}: {}", ran.err);
                assert!(ran.err.contains(name), "{command} {name}: {}", ran.err);
            }
        }
    }
}
