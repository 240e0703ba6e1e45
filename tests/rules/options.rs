//! Every row of the option table (O1): its effect if set for all tools, for one tool, and for both.
#![cfg(feature = "tiktoken")]

use crate::common::content;
use offcut::backend::{ErrorKind, Memory};
use offcut::format::{Message, NewPiece, Plain};
use offcut::handler::{Action, Replacement, ToolOutcome};
use offcut::hint::{Hint, Sentence};
use offcut::preview::Preview;
use offcut::{
    Builder, Language, OnOffloadError, Part, StoredNames, TokenCounter, ToolCall, ToolPolicy,
    ToolReduction,
};
use offcut_testkit::{Fault, Faulty};

const TOOL: &str = "grep";
/// As long as `TOOL`, so that all costs are the same.
const OTHER: &str = "find";

/// `n` lines with a name in each.
fn lines(n: usize) -> String {
    (1..=n).map(|n| format!("p{n}.rs\n")).collect()
}

/// A long result arrives, and a pass runs over long, short and failed results of one tool.
struct Scenario {
    store: Faulty<Memory>,
    tool: &'static str,
}

impl Scenario {
    fn new(tool: &'static str) -> Self {
        Self {
            store: Faulty::new(Memory::named("all").unwrap()),
            tool,
        }
    }

    fn builder(&self) -> Builder {
        ToolReduction::builder()
            .backend(self.store.clone())
            .token_counter(TokenCounter::Estimate)
            .max_length_for_trunc(2_000)
            .preview_length(300)
            .max_tokens_for_clear(1_000)
    }

    /// Runs the scenario and returns its visible effects, line by line. Two tools with the same
    /// treatment give the same lines.
    async fn run(&self, builder: Builder) -> Vec<String> {
        let reduction = builder.build().unwrap();
        let mut seen = Vec::new();
        let call = ToolCall::new("new", self.tool, "{}");
        let mut see = |what: &str, parts: &[Part]| match parts {
            [Part::Text(text)] => {
                let head = text
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .replace(self.tool, "TOOL");
                let shown = Hint::parse(text).map_or_else(String::new, |hint| {
                    format!(", shows {} B", hint.preview.len())
                });
                seen.push(format!(
                    "{what}: {head} ({} lines{shown})",
                    text.lines().count()
                ));
            }
            other => seen.push(format!("{what}: {other:?}")),
        };
        match reduction.truncate(&call, lines(400)).await {
            Ok(shown) => see("comes", &shown.parts),
            Err(error) => see("comes", &[error.to_string().into()]),
        }
        let result = |id: &str, text: String, is_error| {
            let call = ToolCall::new(
                id,
                self.tool,
                format!(r#"{{"pattern":"{}"}}"#, "x".repeat(300)),
            );
            [
                Message::calls(vec![call.clone()]),
                Message::tool(&call, vec![text.into()], is_error),
            ]
        };
        let mut messages = [
            result("old", lines(300), false),
            result("error", lines(30), true),
            result("older", lines(299), false),
            result("last", lines(100), false),
        ]
        .concat();
        messages.push(Message::user("and?"));
        messages.extend(result("next", lines(101), false));
        messages.push(Message::assistant("so"));
        let report = reduction.clear(Plain, &mut messages).await;
        for (at, message) in messages.iter().enumerate() {
            match message {
                Message::Tool { call_id, .. } => see(call_id, content(&messages[at])),
                Message::Assistant { calls, .. } => {
                    let arguments = calls
                        .first()
                        .map_or("", |call| &call.arguments)
                        .replace("xxxxxxxxxx", "");
                    see(&format!("message {at}"), &[arguments.into()]);
                }
                _ => {}
            }
        }
        match report {
            Ok(report) => {
                seen.push(format!(
                    "pass: {:?}",
                    report
                        .tokens
                        .map(|tokens| (tokens.counted, tokens.threshold))
                ));
            }
            Err(error) => seen.push(format!("pass: {error}")),
        }
        seen
    }
}

fn diff(before: &[String], after: &[String]) -> String {
    assert_eq!(before.len(), after.len());
    let changed = before
        .iter()
        .zip(after)
        .filter(|(before, after)| before != after);
    changed.map(|(_, after)| format!("    {after}\n")).collect()
}

fn tiny(outcome: &ToolOutcome) -> Replacement {
    Replacement::storing(outcome.text(), |location| {
        format!("tiny: {}", location.unwrap())
    })
}

/// Sets a row for all tools.
type Global = fn(Builder) -> Builder;
/// Sets a row for one tool.
type Own = fn(ToolPolicy) -> ToolPolicy;

/// Rows that a tool can override, each with two values for all tools and one for a single tool.
const ROWS: [(&str, [Global; 2], Own); 13] = [
    (
        "backend",
        [
            |b| b.backend(Memory::named("one").unwrap()),
            |b| b.backend(Memory::named("two").unwrap()),
        ],
        |p| p.backend(Memory::named("two").unwrap()),
    ),
    (
        "skip_truncation",
        [|b| b.skip_truncation(true), |b| b.skip_truncation(false)],
        |p| p.skip_truncation(false),
    ),
    (
        "skip_truncation, the other way",
        [|b| b.skip_truncation(false), |b| b.skip_truncation(true)],
        |p| p.skip_truncation(true),
    ),
    (
        "skip_clear",
        [
            |b| b.skip_clear(false),
            |b| b.clear_exclude_tools([TOOL, OTHER]),
        ],
        |p| p.skip_clear(true),
    ),
    (
        "max_length_for_trunc",
        [
            |b| b.max_length_for_trunc(3_000),
            |b| b.max_length_for_trunc(5_000),
        ],
        |p| p.max_length_for_trunc(5_000),
    ),
    (
        "preview",
        [
            |b| b.preview(Preview::HeadTail),
            |b| b.preview(Preview::Lines),
        ],
        |p| p.preview(Preview::Lines),
    ),
    (
        "preview_above",
        [
            |b| b.max_length_for_trunc(5_000).preview_above(4_000),
            |b| b.max_length_for_trunc(5_000).preview_above(1_000),
        ],
        |p| p.max_length_for_trunc(5_000).preview_above(1_000),
    ),
    (
        "preview_with",
        [
            |b| b.preview_with(|_| "one".into()),
            |b| b.preview_with(|_| "another".into()),
        ],
        |p| p.preview_with(|_| "another".into()),
    ),
    (
        "preview_length",
        [|b| b.preview_length(400), |b| b.preview_length(100)],
        |p| p.preview_length(100),
    ),
    (
        "stub_length",
        [|b| b.stub_length(80), |b| b.stub_length(150)],
        |p| p.stub_length(150),
    ),
    (
        "keep_errors",
        [|b| b.keep_errors(true), |b| b.keep_errors(false)],
        |p| p.keep_errors(false),
    ),
    (
        "trunc_handler",
        [
            |b| b.trunc_handler(|_| async { Ok(Action::Keep) }),
            |b| b.trunc_handler(|outcome| async move { Ok(Action::Replace(tiny(&outcome))) }),
        ],
        |p| p.trunc_handler(|outcome| async move { Ok(Action::Replace(tiny(&outcome))) }),
    ),
    (
        "clear_handler",
        [
            |b| b.clear_handler(|_| Ok(Action::Keep)),
            |b| b.clear_handler(|outcome| Ok(Action::Replace(tiny(&outcome)))),
        ],
        |p| p.clear_handler(|outcome| Ok(Action::Replace(tiny(&outcome)))),
    ),
];

#[tokio::test]
async fn o1_every_option_can_be_set_for_all_tools_and_for_one() {
    let mut seen = String::new();
    for (row, [one, two], own) in ROWS {
        let run = async |tool, set: &dyn Fn(Builder) -> Builder| {
            let scenario = Scenario::new(tool);
            scenario.run(set(scenario.builder())).await
        };
        let default = run(OTHER, &|b| b).await;
        let (as_one, as_two) = (run(OTHER, &one).await, run(OTHER, &two).await);
        assert_ne!(as_one, as_two, "{row}: it changes something");
        assert_eq!(
            run(TOOL, &one).await,
            as_one,
            "{row}: for all, all are alike"
        );
        for (other, set) in [(&default, (|b| b) as Global), (&as_one, one)] {
            let with_own = |b| set(b).tool(TOOL, own(ToolPolicy::new()));
            assert_eq!(
                &run(OTHER, &with_own).await,
                other,
                "{row}: the policy of one tool is its own"
            );
            assert_eq!(
                run(TOOL, &with_own).await,
                as_two,
                "{row}: and comes before what is set for all"
            );
        }
        seen.push_str(&format!("{row}\n{}", diff(&as_one, &as_two)));
    }
    insta::assert_snapshot!(seen, @r#"
    backend
        comes: [offcut/1 truncated 3092B/400L 39+281 "memory://two/trunc/new"] Stored in full. Read it with read_file. (38 lines, shows 281 B)
        old: [offcut/1 cleared 2292B/300L 43 "memory://two/clear/old"] Old result of TOOL. Read it with read_file. (1 lines, shows 0 B)
        older: [offcut/1 cleared 2284B/299L 43 "memory://two/clear/older"] Old result of TOOL. Read it with read_file. (1 lines, shows 0 B)
        last: [offcut/1 cleared 692B/100L 43 "memory://two/clear/last"] Old result of TOOL. Read it with read_file. (1 lines, shows 0 B)
    skip_truncation
        comes: [offcut/1 truncated 3092B/400L 39+281 "memory://all/trunc/new"] Stored in full. Read it with read_file. (38 lines, shows 281 B)
    skip_truncation, the other way
        comes: p1.rs (400 lines)
    skip_clear
        old: p1.rs (300 lines)
        older: p1.rs (299 lines)
        last: p1.rs (100 lines)
    max_length_for_trunc
        comes: p1.rs (400 lines)
    preview
        comes: [offcut/1 truncated 3092B/400L 39+214 "memory://all/trunc/new"] Stored in full. Read it with read_file. (26 lines, shows 214 B)
    preview_above
        comes: [offcut/1 truncated 3092B/400L 39+281 "memory://all/trunc/new"] Stored in full. Read it with read_file. (38 lines, shows 281 B)
    preview_with
        comes: [offcut/1 truncated 3092B/400L 39+7 "memory://all/trunc/new"] Stored in full. Read it with read_file. (2 lines, shows 7 B)
    preview_length
        comes: [offcut/1 truncated 3092B/400L 39+82 "memory://all/trunc/new"] Stored in full. Read it with read_file. (11 lines, shows 82 B)
        error: [offcut/1 cleared 201B/30L 43 "memory://all/clear/error"] Old result of TOOL. Read it with read_file. (1 lines, shows 0 B)
    stub_length
        old: [offcut/1 cleared 2292B/300L 43+139 "memory://all/clear/old"] Old result of TOOL. Read it with read_file. (19 lines, shows 139 B)
        older: [offcut/1 cleared 2284B/299L 43+139 "memory://all/clear/older"] Old result of TOOL. Read it with read_file. (19 lines, shows 139 B)
        last: [offcut/1 cleared 692B/100L 43+138 "memory://all/clear/last"] Old result of TOOL. Read it with read_file. (20 lines, shows 138 B)
    keep_errors
        error: [offcut/1 cleared 201B/30L 43 "memory://all/clear/error"] Old result of TOOL. Read it with read_file. (1 lines, shows 0 B)
    trunc_handler
        comes: tiny: memory://all/trunc/new (1 lines)
    clear_handler
        old: tiny: memory://all/clear/old (1 lines)
        older: tiny: memory://all/clear/older (1 lines)
        last: tiny: memory://all/clear/last (1 lines)
    "#);
}

/// Checks the rows that apply to all tools.
#[tokio::test]
async fn each_row_that_is_for_all_tools_changes_what_it_says() {
    let rows: [(&str, Global); 23] = [
        ("root_dir", |b| b.root_dir("agent-1")),
        ("names, of ids that are short already", |b| {
            b.names(StoredNames::Short)
        }),
        ("skip_clear", |b| b.skip_clear(true)),
        ("read_file_tool_name", |b| b.read_file_tool_name("fetch")),
        ("read_file_tool_name = false", |b| {
            b.read_file_tool_name(None)
        }),
        ("trunc_exclude_tools", |b| b.trunc_exclude_tools([TOOL])),
        ("clear_exclude_tools", |b| b.clear_exclude_tools([TOOL])),
        ("token_counter", |b| {
            b.token_counter(TokenCounter::Cl100kBase)
        }),
        ("a counter of one's own", |b| {
            b.count_tokens_with(|text: &str| text.len() as u64)
        }),
        ("max_tokens_for_clear", |b| b.max_tokens_for_clear(5_000)),
        ("clear_retention_suffix_limit", |b| {
            b.clear_retention_suffix_limit(4)
        }),
        ("clear_at_least_tokens", |b| {
            b.clear_at_least_tokens(100_000)
        }),
        ("clear_tool_inputs", |b| b.clear_tool_inputs(true)),
        ("clear_tool_inputs_above, too long", |b| {
            b.clear_tool_inputs(true).clear_tool_inputs_above(314)
        }),
        ("clear_tool_inputs_above, a byte less", |b| {
            b.clear_tool_inputs(true).clear_tool_inputs_above(313)
        }),
        ("on_offload_error, store fine", |b| {
            b.on_offload_error(OnOffloadError::Fail)
        }),
        ("language", |b| b.language(Language::Chinese)),
        ("templates", |b| {
            b.template(
                Language::English,
                Sentence::Cleared,
                "{tool} said {bytes} bytes.",
            )
        }),
        ("templates of another language", |b| {
            b.template(Language::Chinese, Sentence::Cleared, "{tool}")
        }),
        ("trunc_id_with", |b| {
            b.trunc_id_with(|call| Ok(format!("of-{}", call.id)))
        }),
        ("clear_id_with", |b| {
            b.clear_id_with(|call| Ok(format!("of-{}", call.id)))
        }),
        ("clear_post_process", |b| {
            b.clear_post_process(|conversation, _| {
                conversation.replace(7, 0, NewPiece::Result(vec!["changed".into()]));
                Box::pin(async { Ok(()) })
            })
        }),
        ("on_report", |b| b.on_report(|_| {})),
    ];
    let scenario = Scenario::new(TOOL);
    let default = scenario.run(scenario.builder()).await;
    let mut seen = format!("nothing set\n    {}\n", default.join("\n    "));
    for (row, set) in rows {
        let scenario = Scenario::new(TOOL);
        seen.push_str(&format!(
            "{row}\n{}",
            diff(&default, &scenario.run(set(scenario.builder())).await)
        ));
    }
    insta::assert_snapshot!(seen, @r#"
    nothing set
        comes: [offcut/1 truncated 3092B/400L 39+281 "memory://all/trunc/new"] Stored in full. Read it with read_file. (38 lines, shows 281 B)
        message 0: {"pattern":""} (1 lines)
        old: [offcut/1 cleared 2292B/300L 43 "memory://all/clear/old"] Old result of TOOL. Read it with read_file. (1 lines, shows 0 B)
        message 2: {"pattern":""} (1 lines)
        error: p1.rs (30 lines)
        message 4: {"pattern":""} (1 lines)
        older: [offcut/1 cleared 2284B/299L 43 "memory://all/clear/older"] Old result of TOOL. Read it with read_file. (1 lines, shows 0 B)
        message 6: {"pattern":""} (1 lines)
        last: [offcut/1 cleared 692B/100L 43 "memory://all/clear/last"] Old result of TOOL. Read it with read_file. (1 lines, shows 0 B)
        message 9: {"pattern":""} (1 lines)
        next: p1.rs (101 lines)
        message 11:  (0 lines)
        pass: Some((1993, 1000))
    root_dir
        comes: [offcut/1 truncated 3092B/400L 39+281 "memory://all/agent-1/trunc/new"] Stored in full. Read it with read_file. (38 lines, shows 281 B)
        old: [offcut/1 cleared 2292B/300L 43 "memory://all/agent-1/clear/old"] Old result of TOOL. Read it with read_file. (1 lines, shows 0 B)
        older: [offcut/1 cleared 2284B/299L 43 "memory://all/agent-1/clear/older"] Old result of TOOL. Read it with read_file. (1 lines, shows 0 B)
        last: [offcut/1 cleared 692B/100L 43 "memory://all/agent-1/clear/last"] Old result of TOOL. Read it with read_file. (1 lines, shows 0 B)
    names, of ids that are short already
    skip_clear
        old: p1.rs (300 lines)
        older: p1.rs (299 lines)
        last: p1.rs (100 lines)
        pass: None
    read_file_tool_name
        comes: [offcut/1 truncated 3092B/400L 35+281 "memory://all/trunc/new"] Stored in full. Read it with fetch. (38 lines, shows 281 B)
        old: [offcut/1 cleared 2292B/300L 39 "memory://all/clear/old"] Old result of TOOL. Read it with fetch. (1 lines, shows 0 B)
        older: [offcut/1 cleared 2284B/299L 39 "memory://all/clear/older"] Old result of TOOL. Read it with fetch. (1 lines, shows 0 B)
        last: [offcut/1 cleared 692B/100L 39 "memory://all/clear/last"] Old result of TOOL. Read it with fetch. (1 lines, shows 0 B)
    read_file_tool_name = false
        comes: [offcut/1 truncated 3092B/400L 15+281 "memory://all/trunc/new"] Stored in full. (38 lines, shows 281 B)
        old: [offcut/1 cleared 2292B/300L 19 "memory://all/clear/old"] Old result of TOOL. (1 lines, shows 0 B)
        older: [offcut/1 cleared 2284B/299L 19 "memory://all/clear/older"] Old result of TOOL. (1 lines, shows 0 B)
        last: [offcut/1 cleared 692B/100L 19 "memory://all/clear/last"] Old result of TOOL. (1 lines, shows 0 B)
    trunc_exclude_tools
        comes: p1.rs (400 lines)
    clear_exclude_tools
        old: p1.rs (300 lines)
        older: p1.rs (299 lines)
        last: p1.rs (100 lines)
    token_counter
        pass: Some((3586, 1000))
    a counter of one's own
        error: [offcut/1 cleared 201B/30L 43 "memory://all/clear/error"] Old result of TOOL. Read it with read_file. (1 lines, shows 0 B)
        pass: Some((7813, 1000))
    max_tokens_for_clear
        old: p1.rs (300 lines)
        older: p1.rs (299 lines)
        last: p1.rs (100 lines)
        pass: Some((1993, 5000))
    clear_retention_suffix_limit
        older: p1.rs (299 lines)
        last: p1.rs (100 lines)
    clear_at_least_tokens
        old: p1.rs (300 lines)
        older: p1.rs (299 lines)
        last: p1.rs (100 lines)
    clear_tool_inputs
        message 0: {"_cleared":"[offcut/1 cleared 314B/1L 46 \"memory://all/clear/old-args\"] Old arguments of TOOL. Read it with read_file."} (1 lines)
        message 2: {"_cleared":"[offcut/1 cleared 314B/1L 46 \"memory://all/clear/error-args\"] Old arguments of TOOL. Read it with read_file."} (1 lines)
        message 4: {"_cleared":"[offcut/1 cleared 314B/1L 46 \"memory://all/clear/older-args\"] Old arguments of TOOL. Read it with read_file."} (1 lines)
        message 6: {"_cleared":"[offcut/1 cleared 314B/1L 46 \"memory://all/clear/last-args\"] Old arguments of TOOL. Read it with read_file."} (1 lines)
    clear_tool_inputs_above, too long
    clear_tool_inputs_above, a byte less
        message 0: {"pattern":"[offcut/1 cleared 300B/1L 46 \"memory://all/clear/old-args\"] Old arguments of TOOL. Read it with read_file."} (1 lines)
        message 2: {"pattern":"[offcut/1 cleared 300B/1L 46 \"memory://all/clear/error-args\"] Old arguments of TOOL. Read it with read_file."} (1 lines)
        message 4: {"pattern":"[offcut/1 cleared 300B/1L 46 \"memory://all/clear/older-args\"] Old arguments of TOOL. Read it with read_file."} (1 lines)
        message 6: {"pattern":"[offcut/1 cleared 300B/1L 46 \"memory://all/clear/last-args\"] Old arguments of TOOL. Read it with read_file."} (1 lines)
    on_offload_error, store fine
    language
        comes: [offcut/1 truncated 3092B/400L 44+281 "memory://all/trunc/new"] 已完整存储。可用 read_file 读取。 (38 lines, shows 281 B)
        old: [offcut/1 cleared 2292B/300L 46 "memory://all/clear/old"] TOOL 的旧结果。可用 read_file 读取。 (1 lines, shows 0 B)
        older: [offcut/1 cleared 2284B/299L 46 "memory://all/clear/older"] TOOL 的旧结果。可用 read_file 读取。 (1 lines, shows 0 B)
        last: [offcut/1 cleared 692B/100L 46 "memory://all/clear/last"] TOOL 的旧结果。可用 read_file 读取。 (1 lines, shows 0 B)
    templates
        old: [offcut/1 cleared 2292B/300L 45 "memory://all/clear/old"] TOOL said 2292 bytes. Read it with read_file. (1 lines, shows 0 B)
        older: [offcut/1 cleared 2284B/299L 45 "memory://all/clear/older"] TOOL said 2284 bytes. Read it with read_file. (1 lines, shows 0 B)
        last: [offcut/1 cleared 692B/100L 44 "memory://all/clear/last"] TOOL said 692 bytes. Read it with read_file. (1 lines, shows 0 B)
    templates of another language
    trunc_id_with
        comes: [offcut/1 truncated 3092B/400L 39+281 "memory://all/trunc/of-new"] Stored in full. Read it with read_file. (38 lines, shows 281 B)
    clear_id_with
        old: [offcut/1 cleared 2292B/300L 43 "memory://all/clear/of-old"] Old result of TOOL. Read it with read_file. (1 lines, shows 0 B)
        older: [offcut/1 cleared 2284B/299L 43 "memory://all/clear/of-older"] Old result of TOOL. Read it with read_file. (1 lines, shows 0 B)
        last: [offcut/1 cleared 692B/100L 43 "memory://all/clear/of-last"] Old result of TOOL. Read it with read_file. (1 lines, shows 0 B)
    clear_post_process
        last: changed (1 lines)
    on_report
    "#);
}

#[tokio::test]
async fn on_offload_error_decides_about_failing_stores() {
    let mut seen = String::new();
    for then in [
        OnOffloadError::KeepOriginal,
        OnOffloadError::PreviewOnly,
        OnOffloadError::Fail,
    ] {
        let scenario = Scenario::new(TOOL);
        scenario
            .store
            .fault_on_every_write(Fault::Fail(ErrorKind::Full));
        let lines = scenario
            .run(scenario.builder().on_offload_error(then))
            .await;
        seen.push_str(&format!("{then:?}\n    {}\n", lines.join("\n    ")));
    }
    insta::assert_snapshot!(seen, @r#"
    KeepOriginal
        comes: p1.rs (400 lines)
        message 0: {"pattern":""} (1 lines)
        old: p1.rs (300 lines)
        message 2: {"pattern":""} (1 lines)
        error: p1.rs (30 lines)
        message 4: {"pattern":""} (1 lines)
        older: p1.rs (299 lines)
        message 6: {"pattern":""} (1 lines)
        last: p1.rs (100 lines)
        message 9: {"pattern":""} (1 lines)
        next: p1.rs (101 lines)
        message 11:  (0 lines)
        pass: Some((1993, 1000))
    PreviewOnly
        comes: [offcut/1 truncated 3092B/400L 50+281 -] It could not be stored; what is not shown is lost. (38 lines, shows 281 B)
        message 0: {"pattern":""} (1 lines)
        old: [offcut/1 cleared 2292B/300L 73 -] Old result of TOOL, removed and not stored. Call it again if you need it. (1 lines, shows 0 B)
        message 2: {"pattern":""} (1 lines)
        error: p1.rs (30 lines)
        message 4: {"pattern":""} (1 lines)
        older: [offcut/1 cleared 2284B/299L 73 -] Old result of TOOL, removed and not stored. Call it again if you need it. (1 lines, shows 0 B)
        message 6: {"pattern":""} (1 lines)
        last: [offcut/1 cleared 692B/100L 73 -] Old result of TOOL, removed and not stored. Call it again if you need it. (1 lines, shows 0 B)
        message 9: {"pattern":""} (1 lines)
        next: p1.rs (101 lines)
        message 11:  (0 lines)
        pass: Some((1993, 1000))
    Fail
        comes: could not store the result of the call `new` of `TOOL`: try again, or set `on_offload_error` to keep it (1 lines)
        message 0: {"pattern":""} (1 lines)
        old: p1.rs (300 lines)
        message 2: {"pattern":""} (1 lines)
        error: p1.rs (30 lines)
        message 4: {"pattern":""} (1 lines)
        older: p1.rs (299 lines)
        message 6: {"pattern":""} (1 lines)
        last: p1.rs (100 lines)
        message 9: {"pattern":""} (1 lines)
        next: p1.rs (101 lines)
        message 11:  (0 lines)
        pass: could not store the result of the call `old` of `grep`: try again, or set `on_offload_error` to keep it
    "#);
}
