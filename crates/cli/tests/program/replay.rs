//! `offcut replay` as people run it: files and formats in, figures or clear errors out.
// Helpers are part of the tests.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::support::{fail, run, succeed, text, words};
use serde_json::{Value, json};
use tempfile::tempdir;

const FIELDS: [&str; 13] = [
    "name",
    "model_calls",
    "tokens",
    "peak",
    "bill",
    "reads",
    "breaks",
    "named",
    "shown",
    "quoted",
    "reachable",
    "stored_objects",
    "stored_bytes",
];

/// A policy that cuts the middle out of every long result.
const CUT: &str = "max_length_for_trunc = 2_000\npreview_length = 500";

fn result(round: usize) -> String {
    format!(
        "{}entry_{round} = value of round {round}\n{}",
        words("some"),
        words("more")
    )
}

/// A session of eight rounds in which the first result is used at the end, as each program would
/// have recorded it.
fn sessions() -> [(&'static str, String); 6] {
    let rounds = 8;
    let (ask, end) = ("Find it.", "It was entry_0.");
    let mut chat = vec![json!({"role": "user", "content": ask})];
    let mut responses = vec![
        json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": ask}]}),
    ];
    let mut anthropic = vec![json!({"role": "user", "content": ask})];
    for round in 0..rounds {
        let (id, arguments) = (format!("call_{round}"), format!("{{\"round\":{round}}}"));
        let function = json!({"name": "look", "arguments": arguments});
        chat.push(json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": function}]}));
        chat.push(json!({"role": "tool", "tool_call_id": id, "content": result(round)}));
        responses.push(json!({"type": "reasoning", "id": "r", "summary": []}));
        responses.push(
            json!({"type": "function_call", "name": "look", "arguments": arguments, "call_id": id}),
        );
        responses
            .push(json!({"type": "function_call_output", "call_id": id, "output": result(round)}));
        anthropic.push(json!({"role": "assistant", "id": format!("m{round}"), "content": [{"type": "tool_use", "id": id, "name": "look", "input": {"round": round}}]}));
        anthropic.push(
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": result(round)}]}),
        );
    }
    chat.push(json!({"role": "assistant", "content": end}));
    responses.push(json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": end}]}));
    anthropic.push(json!({"role": "assistant", "content": [{"type": "text", "text": end}]}));

    let lines = |values: Vec<Value>| {
        values
            .iter()
            .map(|value| format!("{value}\n"))
            .collect::<String>()
    };
    let codex = responses
        .iter()
        .map(|item| json!({"timestamp": "t", "type": "response_item", "payload": item}))
        .collect();
    let claude_code = anthropic.iter().map(|message| {
        json!({"type": message["role"], "isSidechain": false, "sessionId": "s", "uuid": "u", "message": message})
    });
    [
        (
            "chat.json",
            json!({"messages": chat, "tools": []}).to_string(),
        ),
        (
            "chat-list.json",
            serde_json::to_string_pretty(&chat).unwrap(),
        ),
        (
            "responses.json",
            json!({"model": "m", "input": responses}).to_string(),
        ),
        ("anthropic.json", json!({"messages": anthropic}).to_string()),
        ("claude-code.jsonl", lines(claude_code.collect())),
        ("codex.jsonl", lines(codex)),
    ]
}

fn write(folder: &Path, name: &str, content: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    path
}

fn replay(args: &[&str], stdin: &str) -> Value {
    serde_json::from_str(&succeed(&[&["replay", "--json"], args].concat(), stdin)).unwrap()
}

#[test]
fn the_json_has_every_figure_in_total_and_per_transcript() {
    let folder = tempdir().unwrap();
    for (name, session) in sessions() {
        write(folder.path(), name, &session);
    }
    let cut = write(folder.path(), "cut.toml", CUT);
    let cut = format!("cut={}", text(&cut));
    let json = replay(
        &[text(folder.path()), "--policy", "eino", "--policy", &cut],
        "",
    );
    let policies = json["policies"].as_array().unwrap();
    let names: Vec<_> = policies
        .iter()
        .map(|policy| policy["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["none", "eino", "cut"]);
    for policy in policies {
        let traces = policy["traces"].as_array().unwrap();
        assert_eq!(traces.len(), 6);
        for row in traces.iter().chain([policy]) {
            for field in FIELDS {
                assert!(
                    row.get(field).is_some_and(|value| !value.is_null()),
                    "{field} is missing: {row}"
                );
            }
            for share in ["named", "shown", "quoted", "reachable"] {
                assert!(
                    (0.0..=1.0).contains(&row[share].as_f64().unwrap()),
                    "{share}: {row}"
                );
            }
        }
        for sum in [
            "model_calls",
            "tokens",
            "reads",
            "breaks",
            "stored_objects",
            "stored_bytes",
        ] {
            let of_traces: u64 = traces
                .iter()
                .map(|trace| trace[sum].as_u64().unwrap())
                .sum();
            assert_eq!(policy[sum].as_u64().unwrap(), of_traces, "{sum}");
        }
        let peak = traces
            .iter()
            .map(|trace| trace["peak"].as_u64().unwrap())
            .max();
        assert_eq!(policy["peak"].as_u64(), peak);
    }
    let [none, _, cut] = [&policies[0], &policies[1], &policies[2]];
    assert_eq!(
        (&none["named"], &none["reads"], &none["breaks"]),
        (&json!(1.0), &json!(0), &json!(0))
    );
    assert!(
        cut["tokens"].as_u64() < none["tokens"].as_u64()
            && cut["bill"].as_f64() < none["bill"].as_f64()
    );
    assert!(
        cut["named"].as_f64().unwrap() < 1.0,
        "the middle of each result is cut"
    );
    assert_eq!(cut["reachable"], 1.0);
}

#[test]
fn the_same_session_gives_the_same_figures_in_every_format() {
    let folder = tempdir().unwrap();
    let cut = format!("cut={}", text(&write(folder.path(), "cut.toml", CUT)));
    let mut seen: Vec<(&str, String)> = Vec::new();
    for (name, session) in sessions() {
        let file = write(folder.path(), name, &session);
        let of_file = replay(&[text(&file), "--policy", &cut], "");
        let of_stdin = replay(&["-", "--policy", &cut], &session);
        let figures = |json: &Value| {
            let rows = json["policies"].as_array().unwrap().iter();
            let figure = |row: &Value| {
                FIELDS[1..]
                    .iter()
                    .map(|field| row[*field].to_string())
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            rows.map(figure).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(
            figures(&of_file),
            figures(&of_stdin),
            "{name}: a file, and stdin"
        );
        seen.push((name, figures(&of_file)));
    }
    for (name, figures) in &seen {
        assert_eq!(*figures, seen[0].1, "{name} and {}", seen[0].0);
    }
}

#[test]
fn replaying_twice_gives_the_same_figures() {
    let folder = tempdir().unwrap();
    for (name, session) in sessions() {
        write(folder.path(), name, &session);
    }
    let args = [
        "replay",
        text(folder.path()),
        "--json",
        "--policy",
        "eino",
        "--policy",
        "gentle",
    ];
    assert_eq!(succeed(&args, ""), succeed(&args, ""));
}

#[test]
fn stores_of_policies_are_not_used() {
    let folder = tempdir().unwrap();
    let (name, session) = &sessions()[0];
    let trace = write(folder.path(), name, session);
    let store = folder.path().join("store");
    let policy = write(
        folder.path(),
        "p.toml",
        &format!("backend = \"{}\"\n{CUT}", text(&store)),
    );
    let policy = format!("mine={}", text(&policy));
    let unasked = ["replay", text(&trace), "--json", "--policy", &policy];
    let in_memory: Value = serde_json::from_str(&succeed(&unasked, "")).unwrap();
    assert_eq!(in_memory["policies"][1]["stored_objects"], 8);
    assert_eq!(
        in_memory["policies"][1]["stored_bytes"],
        (0..8).map(|round| result(round).len()).sum::<usize>()
    );
    assert!(!store.exists());
}

#[test]
fn a_transcript_that_cannot_be_read_is_named_and_skipped() {
    let folder = tempdir().unwrap();
    let (name, session) = &sessions()[0];
    write(folder.path(), name, session);
    write(folder.path(), "broken.json", "{\"messages\": [");
    write(folder.path(), "other.json", "{\"version\": 1}");
    write(folder.path(), "notes.txt", "no transcript");
    let ran = run(&["replay", text(folder.path()), "--policy", "eino"], "");
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(
        ran.err.contains("broken.json: it is not JSON") && ran.err.contains("other.json: "),
        "{}",
        ran.err
    );
    assert!(!ran.err.contains("notes.txt"), "{}", ran.err);
    assert!(
        ran.out.starts_with("1 transcript, 9 model calls, ")
            && ran.out.contains("\neino ")
            && ran
                .out
                .contains("\nNo policy would have cost noticeably less than doing nothing, reading back included: eino 1"),
        "{}",
        ran.out
    );

    let alone = text(&folder.path().join("broken.json")).to_owned();
    fail(&["replay", &alone], "", 2);
    fail(
        &[
            "replay", &alone, "--policy", "a=eino", "--policy", "a=gentle",
        ],
        "",
        2,
    );
    fail(&["replay", &alone, "--policy", "none=eino"], "", 2);
}

#[cfg(unix)]
#[test]
fn links_and_pipes_among_transcripts_stop_no_replay() {
    use std::os::unix::fs::symlink;
    let folder = tempdir().unwrap();
    let (name, session) = &sessions()[0];
    write(folder.path(), name, session);
    let at = |name: &str| folder.path().join(name);
    symlink("/nonexistent/log.jsonl", at("dangling.jsonl")).unwrap();
    symlink(folder.path(), at("again.jsonl")).unwrap();
    let pipe = std::process::Command::new("mkfifo")
        .arg(at("pipe.jsonl"))
        .status();
    assert!(pipe.unwrap().success());
    let ran = run(&["replay", text(folder.path()), "--policy", "eino"], "");
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(
        ran.err.contains("dangling.jsonl: No such file") && ran.err.contains("again.jsonl: "),
        "{}",
        ran.err
    );
    assert!(ran.out.starts_with("1 transcript, "), "{}", ran.out);
}

#[test]
fn the_built_in_policies_are_replayed_recommended_first() {
    let folder = tempdir().unwrap();
    let (name, session) = &sessions()[0];
    let json = replay(&[text(&write(folder.path(), name, session))], "");
    let names: Vec<_> = json["policies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|policy| &policy["name"])
        .collect();
    assert_eq!(
        names,
        [
            "none",
            "recommended",
            "eino",
            "anthropic",
            "aggressive",
            "gentle",
            "cache-friendly"
        ]
    );
}

#[test]
fn a_file_counts_once_whatever_it_is_called() {
    let folder = tempdir().unwrap();
    let (name, session) = &sessions()[0];
    let trace = text(&write(folder.path(), name, session)).to_owned();
    let again = format!("{}/./{name}", text(folder.path()));
    let json = replay(
        &[&trace, &again, text(folder.path()), "--policy", "eino"],
        "",
    );
    assert_eq!(json["policies"][0]["traces"].as_array().unwrap().len(), 1);
}

#[test]
fn a_policy_without_a_name_or_a_file_is_refused() {
    let folder = tempdir().unwrap();
    for (policy, why) in [
        ("x=", "write a name and a value"),
        ("=gentle", "write a name and a value"),
        ("", "no built-in policy"),
    ] {
        let ran = run(&["replay", text(folder.path()), "--policy", policy], "");
        assert!(ran.code == 2 && ran.err.contains(why), "{}", ran.err);
    }
}

#[test]
fn an_unwritable_report_fails_before_the_replay() {
    let folder = tempdir().unwrap();
    let (name, session) = &sessions()[0];
    let trace = text(&write(folder.path(), name, session)).to_owned();
    let (store, broken) = (
        folder.path().join("store"),
        write(folder.path(), "broken.json", "{"),
    );
    let policy = write(
        folder.path(),
        "p.toml",
        &format!("backend = \"{}\"\n{CUT}", text(&store)),
    );
    let policy = format!("mine={}", text(&policy));
    for report in ["no/such/report.html", ""] {
        let report = folder.path().join(report);
        let error = fail(
            &[
                "replay",
                &trace,
                "--policy",
                &policy,
                "--html",
                text(&report),
            ],
            "",
            1,
        );
        assert!(error.contains("the report can't be written to"), "{error}");
        assert!(!store.exists(), "nothing was replayed");
    }
    let report = folder.path().join("report.html");
    fail(&["replay", text(&broken), "--html", text(&report)], "", 2);
    assert!(std::fs::read(&report).unwrap().is_empty());
    std::fs::write(&report, "an earlier one").unwrap();
    fail(&["replay", text(&broken), "--html", text(&report)], "", 2);
    assert_eq!(std::fs::read_to_string(&report).unwrap(), "an earlier one");
    succeed(
        &[
            "replay",
            &trace,
            "--policy",
            "eino",
            "--html",
            text(&report),
        ],
        "",
    );
    assert!(
        std::fs::read_to_string(&report)
            .unwrap()
            .contains("</html>")
    );
}

#[test]
fn the_report_says_in_a_word_what_was_done() {
    let folder = tempdir().unwrap();
    let round = |id: &str| {
        let function = json!({"name": "read", "arguments": "{}"});
        let call = json!({"id": id, "type": "function", "function": function});
        [
            json!({"role": "assistant", "content": null, "tool_calls": [call]}),
            json!({"role": "tool", "tool_call_id": id, "content": "a line of it\n".repeat(9_000)}),
        ]
    };
    let chat = json!([round("a"), round("b"), round("c"), round("d")]);
    let chat: Vec<&Value> = chat
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|round| round.as_array().unwrap())
        .collect();
    let trace = write(folder.path(), "chat.json", &json!(chat).to_string());
    let report = folder.path().join("report.html");
    succeed(
        &[
            "replay",
            text(&trace),
            "--policy",
            "aggressive",
            "--html",
            text(&report),
        ],
        "",
    );
    let page = std::fs::read_to_string(&report).unwrap();
    let (_, data) = page.split_once("id=\"data\">").unwrap();
    let data: Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    let changes = data["traces"][0]["changes"][1].as_array().unwrap();
    let words: Vec<&str> = changes
        .iter()
        .map(|change| change["outcome"].as_str().unwrap())
        .collect();
    assert!(words.contains(&"truncated"), "{words:?}");
}

#[test]
fn prices_change_the_bill_and_nothing_else() {
    let folder = tempdir().unwrap();
    let (name, session) = &sessions()[0];
    let trace = text(&write(folder.path(), name, session)).to_owned();
    let card = write(folder.path(), "card.toml", "cached = 0.5\nfresh = 3");
    let none = |prices: &str| {
        replay(&[&trace, "--policy", "eino", "--prices", prices], "")["policies"][0].clone()
    };
    let (default, anthropic, own) = (none("default"), none("anthropic"), none(text(&card)));
    let (tokens, bill) = (default["tokens"].as_f64().unwrap(), |row: &Value| {
        row["bill"].as_f64().unwrap()
    });
    // Two cards give the number of fresh tokens, and the third must agree.
    let fresh = (bill(&default) - 0.1 * tokens) / 0.9;
    assert!((bill(&anthropic) - (0.1 * (tokens - fresh) + 1.25 * fresh)).abs() < 1.0);
    assert!((bill(&own) - (0.5 * (tokens - fresh) + 3.0 * fresh)).abs() < 1.0);
    assert_eq!(default["tokens"], own["tokens"]);
}

#[test]
fn the_overview_fits_a_terminal_and_ends_with_the_verdict() {
    let folder = tempdir().unwrap();
    for (name, session) in sessions() {
        write(folder.path(), name, &session);
    }
    let short = succeed(&["replay", text(folder.path())], "");
    assert!(
        !short.contains("reachable") && !short.contains("peak"),
        "{short}"
    );
    let out = succeed(&["replay", "--all", text(folder.path())], "");
    let json = replay(&[text(folder.path())], "");
    let bill = |row: &&Value| row["bill_pages"].as_f64().unwrap();
    let rows = json["policies"].as_array().unwrap().iter();
    let best = rows.min_by(|one, other| bill(one).total_cmp(&bill(other)));
    let best = best.unwrap()["name"].as_str().unwrap();
    for out in [&short, &out] {
        let (_, verdict) = out.trim_end().rsplit_once("\n\n").unwrap();
        let said = format!("Cheapest: under {best}, these 6 transcripts would have cost ");
        assert!(
            verdict.starts_with(&said)
                && verdict.contains(" % of what they did, reading back included; the model would")
                && verdict.contains(" of the strings that it used")
                && verdict.contains(&format!("pass `--config {best}`, or write what")),
            "{verdict}"
        );
    }
    for line in out.lines().filter(|line| !line.ends_with('.')) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    for column in ["with reads", "reads/100", "named", "quoted", "reachable"] {
        let meant = |line: &str| line.starts_with(column) || line.contains(&format!(" {column} "));
        let (_, legend) = out.split_once("\nbill  ").unwrap();
        assert!(legend.lines().any(meant), "{column} is explained: {out}");
    }
    assert!(!out.contains("USD"), "no card, no money");
}

#[test]
fn money_is_shown_only_with_its_source() {
    let folder = tempdir().unwrap();
    let (name, session) = &sessions()[0];
    let trace = text(&write(folder.path(), name, session)).to_owned();
    let whole = "cached = 30\nfresh = 300\ncurrency = \"USD\"\nsource = \"a \\u001b[31mlist\"\ndate = \"2026-01-31\"";
    let card = write(folder.path(), "card.toml", whole);
    let page = folder.path().join("page.html");
    let args = [
        "replay",
        &trace,
        "--policy",
        "aggressive",
        "--prices",
        text(&card),
    ];
    let out = succeed(&[&args[..], &["--html", text(&page)]].concat(), "");
    let json = replay(&args[1..], "");
    let amount = |policy: usize, field: &str| {
        let bill = json["policies"][policy][field].as_f64().unwrap();
        format!("{:.2}", bill / 1e6)
    };
    let said = format!(
        "(USD {} instead of {}, by a \\u{{1b}}[31mlist, 2026-01-31)",
        amount(1, "bill_pages"),
        amount(0, "bill")
    );
    assert!(out.replace('\n', " ").contains(&said), "{said}: {out}");
    assert!(!out.contains('\u{1b}'));
    assert!(std::fs::read_to_string(page).unwrap().contains("(USD "));
    assert_eq!(json["prices"]["date"], "2026-01-31");
    for left_out in ["currency", "source", "date"] {
        let partly: Vec<&str> = whole
            .lines()
            .filter(|line| !line.starts_with(left_out))
            .collect();
        write(folder.path(), "card.toml", &partly.join("\n"));
        let error = fail(&args, "", 2);
        assert!(
            error.contains("sets only some of `currency`, `source` and `date`"),
            "{error}"
        );
    }
}

/// Returns the transcripts in `OFFCUT_TRACES`, if they are the measured ones.
fn measured_traces(test: &str) -> Option<String> {
    let folder = std::env::var("OFFCUT_TRACES")
        .ok()
        .filter(|folder| Path::new(folder).is_dir());
    if folder.is_none() {
        let skipped = format!("SKIPPED {test}: OFFCUT_TRACES names no folder with transcripts");
        let _ = writeln!(std::io::stderr(), "{skipped}");
    }
    folder
}

/// Figures for the same policies and the same 74 transcripts from another program, which knows
/// nothing of this library: idealized hints of 45 tokens, limits and previews in characters. Where results are cut, *shown*
/// is our own: previews leave out most numbers of lines that have their own, which surround names.
#[test]
fn figures_agree_with_an_independent_program() {
    let Some(folder) = measured_traces("figures_agree_with_an_independent_program") else {
        return;
    };
    let expected = [
        (
            "clear_30k",
            "skip_truncation = true\nmax_tokens_for_clear = 30_000",
            [36.8, 48.0, 23.0, 16.6, 64.2, 64.2, 61.1],
        ),
        (
            "cut_8k",
            "skip_clear = true\nmax_length_for_trunc = 8_000\npreview_length = 2_000",
            [56.4, 56.3, 15.7, 0.0, 70.3, 64.2, 59.5],
        ),
        (
            "cut_8k_clear_60k",
            "max_length_for_trunc = 8_000\npreview_length = 2_000\nmax_tokens_for_clear = 60_000",
            [44.2, 47.1, 18.7, 1.4, 67.0, 61.1, 55.6],
        ),
        (
            "clear_30k_keep_3",
            "skip_truncation = true\nmax_tokens_for_clear = 30_000\nclear_retention_suffix_limit = 3",
            [38.8, 60.8, 19.6, 19.0, 70.1, 70.1, 67.2],
        ),
        (
            "clear_30k_gain_10k",
            "skip_truncation = true\nmax_tokens_for_clear = 30_000\nclear_at_least_tokens = 10_000",
            [38.5, 49.7, 20.6, 4.7, 67.8, 67.8, 64.1],
        ),
        (
            "clear_60k",
            "skip_truncation = true\nmax_tokens_for_clear = 60_000",
            [52.8, 61.5, 11.1, 2.7, 85.5, 85.5, 81.7],
        ),
    ];
    // An unoptimized build takes long enough with the one that does both.
    let expected = &expected[if cfg!(debug_assertions) { 2..3 } else { 0..6 }];
    let policies = tempdir().unwrap();
    let mut args = vec![folder];
    for (name, settings, _) in expected {
        let file = write(policies.path(), &format!("{name}.toml"), settings);
        args.extend(["--policy".to_owned(), format!("{name}={}", text(&file))]);
    }
    let json = replay(&args.iter().map(String::as_str).collect::<Vec<_>>(), "");
    let rows = json["policies"].as_array().unwrap();
    let none = &rows[0];
    if (none["model_calls"].as_u64(), none["quotes"].as_u64()) != (Some(4_489), Some(5_676)) {
        writeln!(
            std::io::stderr(),
            "SKIPPED figures_agree_with_an_independent_program: these are other transcripts"
        )
        .unwrap();
        return;
    }
    for ((name, _, expected), row) in expected.iter().zip(&rows[1..]) {
        let number = |row: &Value, field: &str| row[field].as_f64().unwrap();
        let ratio =
            |field: &str, of: &Value, whole: &str| 100.0 * number(row, field) / number(of, whole);
        let share = |field: &str| 100.0 * number(row, field);
        let found = [
            ratio("tokens", none, "tokens"),
            ratio("bill", none, "bill"),
            ratio("reads", row, "model_calls"),
            ratio("breaks", row, "model_calls"),
            share("named"),
            share("shown"),
            share("quoted"),
        ];
        for (found, expected) in found.iter().zip(expected) {
            assert!(
                (found - expected).abs() <= 2.0,
                "{name}: {found:.1} is not {expected}: {row}"
            );
        }
    }
}

#[test]
fn a_log_of_requests_says_why_the_cache_missed() {
    let folder = tempdir().unwrap();
    let log = folder.path().join("log.jsonl");
    let body = |rounds: usize, minute: u32| {
        let mut messages =
            vec![json!({"role": "system", "content": format!("Be good. It is 10:{minute}.")})];
        messages.push(json!({"role": "user", "content": "a task"}));
        for round in 0..rounds {
            let call = json!({"id": format!("c{round}"), "type": "function", "function": {"name": "run", "arguments": "{}"}});
            messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
            messages.push(json!({"role": "tool", "tool_call_id": format!("c{round}"), "content": "a line\n".repeat(1_000)}));
        }
        json!({"model": "m", "messages": messages})
    };
    let lines = [
        body(1, 31),
        json!({"request": {"body": body(2, 31).to_string()}, "response": {}}),
        json!({"body": body(3, 32)}),
    ];
    let [first, second, third] = lines.map(|line| line.to_string());
    std::fs::write(&log, format!("{first}\n\n{second}\n{third}\n")).unwrap();
    let said = succeed(&["replay", "--cache", text(&log)], "");
    assert_eq!(
        said.replace(text(&log), "LOG"),
        "LOG line 4: dated, from message 1 on, about 4 094 tokens\n\
         3 requests of 1 conversation, 1 missed the cache.\n\
         1 call billed about 4 094 tokens again (dated): a date, a time or a number in the instructions changed. \
         To mend it, move it to the end of the last message.\n"
    );
    let said = succeed(&["replay", "--cache", "--json", text(&log)], "");
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (&said["requests"], &said["conversations"]),
        (&json!(3), &json!(1))
    );
    assert_eq!(said["misses"][0]["kind"], "dated");
    assert_eq!(said["skipped"], json!([]));
    // A line that can't be read is named, and the rest is compared all the same.
    std::fs::write(&log, format!("{first}\n{second}\noops\n{third}\n{{\"mess")).unwrap();
    let out = run(&["replay", "--cache", "--json", text(&log)], "");
    assert_eq!(out.code, 3);
    let said: Value = serde_json::from_str(&out.out).unwrap();
    assert_eq!(said["misses"][0]["line"], 4);
    assert_eq!(
        said["skipped"][0]["why"],
        "2 lines not JSON, the first is line 3"
    );

    std::fs::write(&log, "{}\n{}").unwrap();
    let refused = fail(&["replay", "--cache", text(&log)], "", 2);
    assert!(
        refused.contains("there is no request in these logs"),
        "{refused}"
    );
}
