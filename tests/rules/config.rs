//! Settings (O1–O3): the defaults, configurations that do not build, and a tool's policy.
#![cfg(feature = "fs")]

use crate::common::{builder, call, clear, content, lines, memory, outcomes, round, stored, text};
use offcut::backend::{Fs, Memory};
use offcut::format::{Message, Messages, Plain};
use offcut::hint::{Hint, Kind, Sentence};
use offcut::preview::Preview;
use offcut::report::{Outcome, Reason};
use offcut::{
    BuildError, Builder, Language, OnOffloadError, PreviewLength, Report, Settings, StoredNames,
    TokenCounter, ToolPolicy, ToolReduction, Turn,
};
use serde_json::json;

fn small(store: &Memory) -> Builder {
    builder(store)
        .max_length_for_trunc(1_000)
        .preview_length(200)
        .max_tokens_for_clear(100)
}

#[test]
fn o2_a_star_in_the_name_of_a_tool_does_not_build() {
    let star = || small(&memory());
    for (option, builder) in [
        ("tool_config", star().tool("mcp_*", ToolPolicy::new())),
        ("trunc_exclude_tools", star().trunc_exclude_tools(["mcp_*"])),
        ("clear_exclude_tools", star().clear_exclude_tools(["mcp_*"])),
    ] {
        let error = builder.build().unwrap_err().to_string();
        assert!(
            error.starts_with(&format!(
                "`{option}` names the tool `mcp_*`: names of tools are exact"
            )),
            "{error}"
        );
    }
    let settings = Settings::from_json(r#"{"backend": "memory:", "tool_config": {"*": {}}}"#);
    let built = ToolReduction::builder()
        .settings(settings.unwrap(), offcut::backend::open)
        .build();
    assert!(matches!(built, Err(BuildError::ToolPattern { .. })));
}

#[test]
fn o2_a_store_in_a_shells_home_does_not_open() {
    for path in ["~", "~/.offcut", "~me/.offcut"] {
        let errors = [
            Fs::open(path).unwrap_err(),
            offcut::backend::open(path).unwrap_err(),
        ];
        for error in errors {
            assert!(
                error.to_string().contains("write the whole path"),
                "{error}"
            );
        }
    }
    assert!(Fs::open("./~").is_ok());
}

#[tokio::test]
async fn o1_results_within_a_limit_that_was_set_stay_whole() {
    let (result, limit) = ("src/ship.rs:88: ship(order)\n".repeat(220), 20_000);
    let recommended = || ToolReduction::recommended(Memory::new());
    let own = ToolPolicy::new().max_length_for_trunc(limit);
    let with_previews = own.clone().preview_above(1_000);
    let kept = [
        recommended().tool("grep", own),
        recommended().max_length_for_trunc(limit),
    ];
    let previewed = [
        recommended(),
        recommended().tool("grep", with_previews),
        recommended()
            .preview_above(1_000)
            .max_length_for_trunc(limit),
        recommended()
            .max_length_for_trunc(limit)
            .preview_above(1_000),
    ];
    let shown = async |builder: Builder| {
        let reduction = builder.build().unwrap();
        let shown = reduction.truncate(&call("a", "grep"), result.clone()).await;
        shown.unwrap().text().clone()
    };
    for builder in kept {
        assert_eq!(shown(builder).await, result);
    }
    for builder in previewed {
        assert!(shown(builder).await.len() < result.len());
    }
}

#[cfg(feature = "tiktoken")]
#[test]
fn l11_the_defaults_are_the_documented_ones() {
    // As JSON, so that a new field fails here until it is listed.
    let expected = json!({
        "backend": null,
        "root_dir": "",
        "names": "call_id",
        "skip_truncation": false,
        "skip_clear": false,
        "read_file_tool_name": "read_file",
        "max_length_for_trunc": 50_000,
        "preview_above": null,
        "keep_file_reads": true,
        "preview": "head_tail",
        "preview_length": 8_000,
        "stub_length": 0,
        "trunc_exclude_tools": [],
        "clear_exclude_tools": [],
        "token_counter": "o200k_base",
        "max_tokens_for_clear": 30_000,
        "clear_retention_suffix_limit": 1,
        "clear_at_least_tokens": 0,
        "clear_tool_inputs": false,
        "clear_tool_inputs_above": 0,
        "clear_user_texts_above": null,
        "keep_errors": true,
        "on_offload_error": "keep_original",
        "language": "english",
        "templates": {},
        "tool_config": {},
    });
    assert_eq!(serde_json::to_value(Settings::default()).unwrap(), expected);
    assert_eq!(
        serde_json::from_str::<Settings>("{}").unwrap(),
        Settings::default()
    );

    let default = Settings::default();
    assert_eq!(
        (default.root_dir.as_str(), default.names),
        ("", StoredNames::CallId)
    );
    assert!(!default.skip_truncation && !default.skip_clear);
    assert_eq!(default.read_file_tool_name.as_deref(), Some("read_file"));
    assert_eq!(default.max_length_for_trunc, 50_000);
    assert_eq!(
        (
            default.preview,
            default.preview_above,
            default.keep_file_reads
        ),
        (Preview::HeadTail, None, true)
    );
    assert_eq!(
        (default.preview_length, default.stub_length),
        (PreviewLength::Bytes(8_000), PreviewLength::Bytes(0))
    );
    assert!(default.trunc_exclude_tools.is_empty() && default.clear_exclude_tools.is_empty());
    assert_eq!(default.token_counter, TokenCounter::O200kBase);
    assert_eq!(
        (
            default.max_tokens_for_clear,
            default.clear_retention_suffix_limit
        ),
        (30_000, 1)
    );
    assert_eq!(default.clear_at_least_tokens, 0);
    assert_eq!(
        (default.clear_tool_inputs, default.clear_tool_inputs_above),
        (false, 0)
    );
    assert!(default.keep_errors);
    assert_eq!(
        (default.on_offload_error, default.language),
        (OnOffloadError::KeepOriginal, Language::English)
    );
    assert!(default.tool_config.is_empty());
}

#[test]
fn o1_a_lower_threshold_lowers_the_floor_of_a_pass() {
    let floor = Settings::recommended().clear_at_least_tokens;
    let recommended = || ToolReduction::recommended(Memory::new());
    let of_file = |text: &str| {
        let settings = Settings::from_json(text).unwrap();
        ToolReduction::builder()
            .settings(settings, offcut::backend::open)
            .backend(Memory::new())
    };
    let file = |options: &str| of_file(&format!("{{\"preset\": \"recommended\", {options}}}"));
    for (builder, expected) in [
        (recommended(), floor),
        (recommended().max_tokens_for_clear(90_000), floor),
        (recommended().max_tokens_for_clear(6_150), floor / 10),
        (
            recommended()
                .max_tokens_for_clear(6_000)
                .max_tokens_for_clear(61_500),
            floor,
        ),
        (recommended().max_tokens_for_clear(1), 0),
        (
            recommended()
                .max_tokens_for_clear(6_000)
                .clear_at_least_tokens(9_000),
            9_000,
        ),
        (
            recommended()
                .clear_at_least_tokens(9_000)
                .max_tokens_for_clear(6_000),
            9_000,
        ),
        (file("\"max_tokens_for_clear\": 90000"), floor),
        (file("\"max_tokens_for_clear\": 6150"), floor / 10),
        (
            file("\"max_tokens_for_clear\": 6000, \"clear_at_least_tokens\": 9000"),
            9_000,
        ),
    ] {
        let reduction = builder.build().unwrap();
        assert_eq!(reduction.settings().clear_at_least_tokens, expected);
    }
}

#[test]
fn o3_presets_have_their_documented_values() {
    let mut expected = Settings::default();
    expected.token_counter = TokenCounter::Estimate;
    assert_eq!(Settings::eino(), expected);
    let mut expected = Settings::default();
    expected.skip_truncation = true;
    expected.max_tokens_for_clear = 100_000;
    expected.clear_retention_suffix_limit = 3;
    assert_eq!(Settings::anthropic(), expected);
    let mut expected = Settings::default();
    expected.names = StoredNames::Short;
    expected.max_length_for_trunc = 8_000;
    expected.preview_above = Some(3_000);
    expected.preview = Preview::Mixed;
    expected.preview_length = PreviewLength::curve(8.7, 0.68, 7_000);
    expected.stub_length = PreviewLength::Bytes(160);
    expected.max_tokens_for_clear = 61_500;
    expected.clear_at_least_tokens = 8_000;
    expected.clear_tool_inputs = true;
    expected.clear_tool_inputs_above = 800;
    assert_eq!(Settings::recommended(), expected);
    for settings in [
        Settings::default(),
        Settings::eino(),
        Settings::anthropic(),
        Settings::recommended(),
    ] {
        let reduction = ToolReduction::builder()
            .settings(settings.clone(), offcut::backend::open)
            .backend(memory())
            .build()
            .unwrap();
        assert_eq!(*reduction.settings(), settings);
    }
    assert_eq!(
        *ToolReduction::recommended(memory())
            .build()
            .unwrap()
            .settings(),
        Settings::recommended()
    );
}

#[test]
fn settings_survive_json() {
    let json = json!({
        "backend": "memory:",
        "root_dir": "agent-1",
        "names": "short",
        "skip_truncation": true,
        "skip_clear": true,
        "read_file_tool_name": false,
        "max_length_for_trunc": 9_000,
        "preview_above": 8_000,
        "keep_file_reads": false,
        "preview": "head_tail",
        "preview_length": {"scale": 8.5, "exponent": 0.5, "at_most": 100},
        "stub_length": 9,
        "trunc_exclude_tools": ["a"],
        "clear_exclude_tools": ["b", "c"],
        "token_counter": "cl100k_base",
        "max_tokens_for_clear": 5,
        "clear_retention_suffix_limit": 6,
        "clear_at_least_tokens": 7,
        "clear_tool_inputs": true,
        "clear_tool_inputs_above": 11,
        "clear_user_texts_above": 12,
        "keep_errors": false,
        "on_offload_error": "preview_only",
        "language": "chinese",
        "templates": {"english": {"gone": "{tool}: gone"}},
        "tool_config": {"grep": {
            "backend": "memory:grep",
            "skip_truncation": false,
            "skip_clear": false,
            "max_length_for_trunc": 8_000,
            "preview_above": 1_000,
            "preview": "mixed",
            "preview_length": 1,
            "stub_length": 2,
            "keep_errors": true,
        }},
    });
    let settings: Settings = serde_json::from_value(json.clone()).unwrap();
    assert_eq!(settings.max_length_for_trunc, 9_000);
    assert_eq!(
        settings.tool_config["grep"].max_length_for_trunc,
        Some(8_000)
    );
    assert_eq!(settings.read_file_tool_name, None);
    assert_eq!(serde_json::to_value(&settings).unwrap(), json);
    let again: Settings = serde_json::from_str(&serde_json::to_string(&settings).unwrap()).unwrap();
    assert_eq!(again, settings);
    for (word, language) in [("en", Language::English), ("zh", Language::Chinese)] {
        assert_eq!(
            serde_json::from_value::<Settings>(json!({"language": word}))
                .unwrap()
                .language,
            language
        );
    }
}

#[test]
fn o2_wrong_configurations_do_not_build() {
    let of = |policy: ToolPolicy| builder(&memory()).tool("grep", policy);
    let long = "segment/".repeat(9);
    let cases = [
        ToolReduction::builder(),
        ToolReduction::builder()
            .skip_truncation(true)
            .tool("grep", ToolPolicy::new().skip_truncation(false)),
        builder(&memory()).max_length_for_trunc(0),
        of(ToolPolicy::new().max_length_for_trunc(0)),
        builder(&memory()).max_tokens_for_clear(0),
        builder(&memory()).max_length_for_trunc(100),
        of(ToolPolicy::new().max_length_for_trunc(100)),
        builder(&memory()).root_dir("../up"),
        builder(&memory()).root_dir(long.trim_end_matches('/')),
        builder(&memory()).root_dir("x".repeat(401)),
        builder(&memory()).root_dir("x/"),
        builder(&memory()).read_file_tool_name(""),
        builder(&memory()).template(Language::English, Sentence::Cleared, "gone"),
        builder(&memory()).template(Language::Chinese, Sentence::Cleared, "{name}"),
        builder(&memory()).template(Language::English, Sentence::Truncated, "x".repeat(50_000)),
        builder(&memory()).template(
            Language::English,
            Sentence::Page,
            "{first}-{last}".to_owned() + &"x".repeat(50_000),
        ),
        of(ToolPolicy::new().backend(memory())),
        builder(&memory())
            .tool("a", ToolPolicy::new().backend(Memory::new()))
            .tool("b", ToolPolicy::new().backend(Memory::new())),
    ];
    let not_compiled = BuildError::CounterNotCompiledIn;
    let mut errors = format!("{not_compiled}\n");
    for case in cases {
        let error = case.build().unwrap_err();
        errors.push_str(&format!("{error}\n"));
        if let Some(source) = std::error::Error::source(&error) {
            errors.push_str(&format!("    {source}\n"));
        }
    }
    insta::assert_snapshot!(errors, @"
    this `token_counter` needs the feature `tiktoken`: enable it, or use the estimate
    no backend for all tools: set `backend`, or `skip_truncation`
    no backend for the tool `grep`: set `backend`, or `skip_truncation`
    `max_length_for_trunc` of all tools is 0, too small for a page of stored content: raise it to at least 677, or turn the phase off with `skip_truncation`
    `max_length_for_trunc` of the tool `grep` is 0, too small for a page of stored content: raise it to at least 677, or turn the phase off with `skip_truncation`
    `max_tokens_for_clear` is 0: set at least 1, or turn the phase off with `skip_clear`
    `max_length_for_trunc` of all tools is 100, too small for a page of stored content: raise it to at least 677, or turn the phase off with `skip_truncation`
    `max_length_for_trunc` of the tool `grep` is 100, too small for a page of stored content: raise it to at least 677, or turn the phase off with `skip_truncation`
    `root_dir` must be a safe path of at most 8 segments and 400 bytes without `trunc`, `clear` or `meta`: leave it empty, or use a name such as `agent-1`
        a path of 5 bytes is not a safe key: use 1 to 16 segments of ASCII letters, digits, '.', '_' and '-', none that begins or ends with '.', at most 900 bytes in all
    `root_dir` must be a safe path of at most 8 segments and 400 bytes without `trunc`, `clear` or `meta`: leave it empty, or use a name such as `agent-1`
    `root_dir` must be a safe path of at most 8 segments and 400 bytes without `trunc`, `clear` or `meta`: leave it empty, or use a name such as `agent-1`
        a path of 401 bytes is not a safe key: use 1 to 16 segments of ASCII letters, digits, '.', '_' and '-', none that begins or ends with '.', at most 900 bytes in all
    `root_dir` must be a safe path of at most 8 segments and 400 bytes without `trunc`, `clear` or `meta`: leave it empty, or use a name such as `agent-1`
        a path of 2 bytes is not a safe key: use 1 to 16 segments of ASCII letters, digits, '.', '_' and '-', none that begins or ends with '.', at most 900 bytes in all
    `read_file_tool_name` is empty: set the reader's name, or `None` (`false` in files) for hints that name no tool
    `templates.english.cleared` lacks the placeholder `{tool}`: add it where its value belongs
    `templates.chinese.cleared` has the unknown placeholder `{name}` (allowed: `{tool}`, `{bytes}`, `{location}`): write `{{` for a brace
    `max_length_for_trunc` of all tools is 50000, too small for a page of stored content: raise it to at least 50664, or turn the phase off with `skip_truncation`
    `max_length_for_trunc` of all tools is 50000, too small for a page of stored content: raise it to at least 50539, or turn the phase off with `skip_truncation`
    two backends give the same location to different content: use one of them for all tools, or give them names (`Memory::named`)
    two backends give the same location to different content: use one of them for all tools, or give them names (`Memory::named`)
    ");
}

#[test]
fn o2_valid_configurations_build() {
    let store = memory();
    let fine = [
        ToolReduction::builder().skip_truncation(true),
        ToolReduction::builder()
            .skip_truncation(true)
            .skip_clear(true)
            .max_tokens_for_clear(0),
        builder(&store).skip_clear(true).max_tokens_for_clear(0),
        builder(&store)
            .skip_truncation(true)
            .max_length_for_trunc(0)
            .preview_length(usize::MAX),
        builder(&store).tool(
            "grep",
            ToolPolicy::new()
                .skip_truncation(true)
                .max_length_for_trunc(0),
        ),
        builder(&store)
            .trunc_exclude_tools(["grep"])
            .tool("grep", ToolPolicy::new().max_length_for_trunc(0)),
        ToolReduction::builder().skip_truncation(true).tool(
            "grep",
            ToolPolicy::new()
                .skip_truncation(false)
                .backend(store.clone()),
        ),
        builder(&store).root_dir("a/b/c/d/e/f/g/h"),
        builder(&store).tool("grep", ToolPolicy::new().backend(store.clone())),
        builder(&store).tool(
            "grep",
            ToolPolicy::new().backend(Memory::named("grep").unwrap()),
        ),
    ];
    for (n, builder) in fine.into_iter().enumerate() {
        builder
            .build()
            .unwrap_or_else(|error| panic!("case {n}: {error}"));
    }
}

#[tokio::test]
async fn o2_two_directories_that_are_shown_alike_are_refused() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let open = |home: &tempfile::TempDir| Fs::open(home.path()).unwrap().shown_as(".offcut");
    let built = builder(&memory())
        .backend(open(&one))
        .tool("grep", ToolPolicy::new().backend(open(&two)))
        .build();
    let error = built.expect_err("a location of the one names other content in the other");
    assert!(matches!(error, BuildError::SameLocations), "{error}");
    // One directory opened twice is one store.
    assert!(
        builder(&memory())
            .backend(open(&one))
            .tool("grep", ToolPolicy::new().backend(open(&one)))
            .build()
            .is_ok()
    );
}

#[tokio::test]
async fn o2_the_smallest_limit_that_builds_truncates() {
    for language in [Language::English, Language::Chinese] {
        let make = |least: usize, preview| {
            builder(&memory())
                .count_tokens_with(|text: &str| text.len() as u64)
                .language(language)
                .max_length_for_trunc(least)
                .preview_length(preview)
                .build()
        };
        let Err(BuildError::LimitTooSmall { at_least, .. }) = make(1, 0) else {
            panic!()
        };
        assert!(matches!(
            make(at_least - 1, 0),
            Err(BuildError::LimitTooSmall { .. })
        ));
        let reduction = make(at_least, at_least).unwrap().session(&"s".repeat(64));
        let id = "i".repeat(64);
        for n in 0..2 {
            let content = lines(at_least + n);
            let shown = reduction
                .truncate(&call(&id, "f"), content.clone())
                .await
                .unwrap();
            let location = &shown.report.decisions[0].locations[0];
            assert_eq!(
                reduction.read_original(location).await.unwrap().unwrap(),
                content
            );
            assert!(shown.text().len() <= at_least);
        }
    }
}

/// The outcomes of a truncation and a pass for two tools, of which one has a policy.
struct Done {
    /// The hint left by truncation, for each tool.
    truncated: [Option<Hint>; 2],
    /// The outcome of the pass for an old result of each tool.
    cleared: [(Outcome, Option<Hint>); 2],
    /// The outcome of the pass for an old error of each tool.
    errors: [Outcome; 2],
}

const TOOLS: [&str; 2] = ["own", "other"];

async fn done(reduction: &ToolReduction, result: &str) -> Done {
    let mut truncated = [None, None];
    let (mut cleared, mut errors) = (Vec::new(), Vec::new());
    for (tool, truncated) in TOOLS.into_iter().zip(&mut truncated) {
        *truncated = Hint::parse(
            &reduction
                .truncate(&call(tool, tool), result)
                .await
                .unwrap()
                .text(),
        );
        let failed = call(&format!("{tool}-failed"), tool);
        let mut messages = round(&format!("{tool}-old"), tool, lines(150)).to_vec();
        messages.extend([
            Message::calls(vec![failed.clone()]),
            Message::tool(&failed, vec![lines(20).into()], true),
        ]);
        messages.extend(round("new", "f", "ok"));
        let report = clear(reduction, &mut messages).await;
        let hint = Hint::parse(text(content(&messages[1])));
        let outcome = |n: usize| {
            report
                .decisions
                .get(n)
                .map_or(Outcome::Kept(Reason::WithinLimit), |d| d.outcome)
        };
        cleared.push((outcome(0), hint));
        errors.push(outcome(1));
    }
    let [one, two] = <[_; 2]>::try_from(cleared).ok().unwrap();
    Done {
        truncated,
        cleared: [one, two],
        errors: [errors[0], errors[1]],
    }
}

fn location(hint: Option<&Hint>) -> String {
    hint.and_then(|hint| hint.location.as_ref())
        .map(ToString::to_string)
        .unwrap_or_default()
}

async fn with_policy(policy: ToolPolicy) -> Done {
    let reduction = small(&memory()).tool("own", policy).build().unwrap();
    let done = done(&reduction, &lines(200)).await;
    // The other tool is not affected by the policy.
    assert_eq!(
        location(done.truncated[1].as_ref()),
        "memory://t/trunc/other"
    );
    assert_eq!(
        done.truncated[1].as_ref().unwrap().preview,
        Preview::HeadTail.show(&lines(200), 200)
    );
    assert_eq!(done.cleared[1].0, Outcome::Cleared);
    assert_eq!(
        location(done.cleared[1].1.as_ref()),
        "memory://t/clear/other-old"
    );
    assert_eq!(done.cleared[1].1.as_ref().unwrap().preview, "");
    assert_eq!(done.errors[1], Outcome::Kept(Reason::ShortError));
    done
}

/// Checks that a policy inherits: everything not listed in `but` is as for the other tool.
fn assert_inherited(done: &Done, but: &[&str]) {
    let [own, other] = &done.truncated;
    let is = |what: &str| !but.contains(&what);
    if is("truncation") {
        assert_eq!(own.as_ref().map(|hint| hint.kind), Some(Kind::Truncated));
        if is("preview_length") {
            assert_eq!(
                own.as_ref().unwrap().preview,
                other.as_ref().unwrap().preview
            );
        }
        if is("backend") {
            assert_eq!(location(own.as_ref()), "memory://t/trunc/own");
        }
    }
    if is("clear") {
        assert_eq!(done.cleared[0].0, Outcome::Cleared);
        let hint = done.cleared[0].1.as_ref();
        if is("stub_length") {
            assert_eq!(hint.unwrap().preview, "");
        }
        if is("backend") {
            assert_eq!(location(hint), "memory://t/clear/own-old");
        }
        if is("keep_errors") {
            assert_eq!(done.errors[0], Outcome::Kept(Reason::ShortError));
        }
    }
}

#[tokio::test]
async fn o1_an_empty_policy_inherits_everything() {
    assert_inherited(&with_policy(ToolPolicy::new()).await, &[]);
}

#[tokio::test]
async fn o1_a_policy_may_set_only_a_backend() {
    let own = Memory::named("own").unwrap();
    let done = with_policy(ToolPolicy::new().backend(own.clone())).await;
    assert_inherited(&done, &["backend"]);
    assert_eq!(
        location(done.truncated[0].as_ref()),
        "memory://own/trunc/own"
    );
    assert_eq!(
        location(done.cleared[0].1.as_ref()),
        "memory://own/clear/own-old"
    );
    let names: Vec<_> = stored(&own)
        .await
        .into_iter()
        .map(|(location, _)| location)
        .collect();
    assert_eq!(
        names,
        ["memory://own/clear/own-old", "memory://own/trunc/own"]
    );
}

#[tokio::test]
async fn o1_a_policy_may_set_only_skip_truncation() {
    let done = with_policy(ToolPolicy::new().skip_truncation(true)).await;
    assert_inherited(&done, &["truncation"]);
    assert_eq!(done.truncated[0], None);
}

#[tokio::test]
async fn o1_a_policy_may_set_only_skip_clear() {
    let done = with_policy(ToolPolicy::new().skip_clear(true)).await;
    assert_inherited(&done, &["clear"]);
    assert_eq!(done.cleared[0], (Outcome::Kept(Reason::Excluded), None));
}

#[tokio::test]
async fn o1_a_policy_may_set_only_a_limit() {
    let done = with_policy(ToolPolicy::new().max_length_for_trunc(10_000)).await;
    assert_inherited(&done, &["truncation"]);
    assert_eq!(done.truncated[0], None, "within its own limit");
    // A limit below the global one acts where the global one does not.
    let reduction = small(&memory())
        .tool("own", ToolPolicy::new().max_length_for_trunc(800))
        .build()
        .unwrap();
    let done = self::done(&reduction, &"x".repeat(900)).await;
    assert_eq!(done.truncated.map(|hint| hint.is_some()), [true, false]);
}

#[tokio::test]
async fn o1_a_policy_may_set_only_a_preview() {
    assert_inherited(
        &with_policy(ToolPolicy::new().preview(Preview::HeadTail)).await,
        &[],
    );
}

#[tokio::test]
async fn o1_a_policy_may_set_only_a_preview_length() {
    let done = with_policy(ToolPolicy::new().preview_length(100)).await;
    // The preview length also bounds the errors that stay.
    assert_inherited(&done, &["preview_length", "keep_errors"]);
    assert_eq!(
        done.truncated[0].as_ref().unwrap().preview,
        Preview::HeadTail.show(&lines(200), 100)
    );
    assert!(lines(20).len() > 100);
    assert_eq!(done.errors[0], Outcome::Cleared);
}

#[tokio::test]
async fn o1_a_policy_may_set_only_a_stub_length() {
    let done = with_policy(ToolPolicy::new().stub_length(120)).await;
    assert_inherited(&done, &["stub_length"]);
    assert_eq!(
        done.cleared[0].1.as_ref().unwrap().preview,
        Preview::HeadTail.show(&lines(150), 120)
    );
}

#[tokio::test]
async fn o1_a_policy_may_set_only_keep_errors() {
    let done = with_policy(ToolPolicy::new().keep_errors(false)).await;
    assert_inherited(&done, &["keep_errors"]);
    assert_eq!(done.errors[0], Outcome::Cleared);
}

#[tokio::test]
async fn o1_a_policy_turns_on_an_option_that_is_off_for_all() {
    let policy = ToolPolicy::new().skip_truncation(false).skip_clear(false);
    let reduction = small(&memory())
        .skip_truncation(true)
        .skip_clear(true)
        .tool("own", policy)
        .build()
        .unwrap();
    let done = done(&reduction, &lines(200)).await;
    assert_eq!(done.truncated.map(|hint| hint.is_some()), [true, false]);
    assert_eq!(
        done.cleared.map(|(outcome, _)| outcome),
        [Outcome::Cleared, Outcome::Kept(Reason::Excluded)]
    );
}

#[tokio::test]
async fn o1_skips_and_lists_beat_everything_else() {
    let policy = ToolPolicy::new()
        .max_length_for_trunc(700)
        .preview_length(50)
        .stub_length(99)
        .keep_errors(false);
    let own = policy.backend(Memory::named("own").unwrap());
    let skipped = small(&memory())
        .tool("own", own.clone().skip_truncation(true).skip_clear(true))
        .build()
        .unwrap();
    let listed = small(&memory()).tool("own", own.clone().skip_truncation(false).skip_clear(false));
    let listed = listed
        .trunc_exclude_tools(["own"])
        .clear_exclude_tools(["own"])
        .build()
        .unwrap();
    for reduction in [skipped, listed] {
        let done = done(&reduction, &lines(200)).await;
        assert_eq!(done.truncated.map(|hint| hint.is_some()), [false, true]);
        assert_eq!(
            done.cleared.map(|(outcome, _)| outcome),
            [Outcome::Kept(Reason::Excluded), Outcome::Cleared]
        );
        assert_eq!(done.errors[0], Outcome::Kept(Reason::Excluded));
    }
}

#[tokio::test]
async fn o1_names_are_matched_exactly() {
    let reduction = small(&memory())
        .trunc_exclude_tools(["Grep", "grep ", "gre"])
        .tool("gr", ToolPolicy::new().skip_truncation(true));
    let shown = reduction
        .build()
        .unwrap()
        .truncate(&call("a", "grep"), lines(200))
        .await
        .unwrap();
    assert!(shown.report.is_change());
}

/// Each setter changes exactly the field that it is named after.
#[test]
fn every_setter_has_an_effect() {
    type Set = fn(Builder) -> Builder;
    let setters: [(&str, Set); 25] = [
        ("root_dir", |b| b.root_dir("agent")),
        ("names", |b| b.names(StoredNames::Short)),
        ("skip_truncation", |b| b.skip_truncation(true)),
        ("skip_clear", |b| b.skip_clear(true)),
        ("read_file_tool_name", |b| b.read_file_tool_name("fetch")),
        ("max_length_for_trunc", |b| b.max_length_for_trunc(60_000)),
        ("preview_above", |b| b.preview_above(9)),
        ("keep_file_reads", |b| b.keep_file_reads(false)),
        ("preview", |b| b.preview(Preview::Mixed)),
        ("preview_length", |b| b.preview_length(5)),
        ("stub_length", |b| b.stub_length(5)),
        ("trunc_exclude_tools", |b| b.trunc_exclude_tools(["a"])),
        ("clear_exclude_tools", |b| {
            b.clear_exclude_tools(vec!["b".to_owned()])
        }),
        ("token_counter", |b| b.token_counter(TokenCounter::Estimate)),
        ("max_tokens_for_clear", |b| b.max_tokens_for_clear(5)),
        ("clear_retention_suffix_limit", |b| {
            b.clear_retention_suffix_limit(5)
        }),
        ("clear_at_least_tokens", |b| b.clear_at_least_tokens(5)),
        ("clear_tool_inputs", |b| b.clear_tool_inputs(true)),
        ("clear_tool_inputs_above", |b| b.clear_tool_inputs_above(5)),
        ("clear_user_texts_above", |b| b.clear_user_texts_above(5)),
        ("keep_errors", |b| b.keep_errors(false)),
        ("on_offload_error", |b| {
            b.on_offload_error(OnOffloadError::Fail)
        }),
        ("language", |b| b.language(Language::Chinese)),
        ("templates", |b| {
            b.template(Language::Chinese, Sentence::Next, "{next}")
        }),
        ("tool_config", |b| {
            b.tool("a", ToolPolicy::new().stub_length(5))
        }),
    ];
    let default = serde_json::to_value(Settings::default()).unwrap();
    // A backend has its own setter; its URL is for files.
    let fields: Vec<_> = default
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .skip(1)
        .collect();
    assert_eq!(
        setters.map(|(name, _)| name).as_slice(),
        fields,
        "a setter for each field"
    );
    for (name, set) in setters {
        let reduction = set(ToolReduction::builder().backend(memory()))
            .build()
            .unwrap();
        let settings = serde_json::to_value(reduction.settings()).unwrap();
        let changed: Vec<_> = fields
            .iter()
            .filter(|field| settings[**field] != default[**field])
            .copied()
            .collect();
        let is_default = cfg!(not(feature = "tiktoken")) && name == "token_counter";
        assert_eq!(changed, if is_default { vec![] } else { vec![name] });
    }
}

#[test]
fn later_setters_override_earlier_ones() {
    let reduction = builder(&memory())
        .read_file_tool_name("fetch")
        .read_file_tool_name(None)
        .clear_user_texts_above(5)
        .clear_user_texts_above(None)
        .tool("a", ToolPolicy::new().stub_length(5))
        .tool("a", ToolPolicy::new().keep_errors(false))
        .trunc_exclude_tools(["a"])
        .trunc_exclude_tools(["b"])
        .build()
        .unwrap();
    let settings = reduction.settings();
    assert_eq!(
        (
            settings.read_file_tool_name.as_deref(),
            settings.clear_user_texts_above
        ),
        (None, None)
    );
    assert_eq!(settings.tool_config["a"].stub_length, None);
    assert_eq!(settings.trunc_exclude_tools, ["b"]);
    let all = builder(&memory())
        .stub_length(9)
        .settings(Settings::eino(), offcut::backend::open)
        .build()
        .unwrap();
    assert_eq!(*all.settings(), Settings::eino());
}

#[tokio::test]
async fn a_custom_counter_counts_until_another_is_set() {
    let count = |_: &str| 1_000_000;
    let mut messages = [round("a", "f", lines(200)), round("b", "f", "ok")].concat();
    let mut counted = async |builder: Builder| {
        clear(&builder.build().unwrap(), &mut messages)
            .await
            .tokens
            .map(|tokens| tokens.counted)
    };
    let eager = || builder(&memory()).max_tokens_for_clear(u64::MAX);
    assert!(counted(eager().count_tokens_with(count)).await > Some(1_000_000));
    assert!(
        counted(
            eager()
                .count_tokens_with(count)
                .token_counter(TokenCounter::Estimate)
        )
        .await
            < Some(10_000)
    );
}

#[tokio::test]
async fn reports_are_handed_to_the_observer() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = seen.clone();
    let observer = move |report: &Report| log.lock().unwrap().push(outcomes(report));
    let reduction = small(&memory()).on_report(observer).build().unwrap();
    reduction
        .truncate(&call("a", "f"), lines(200))
        .await
        .unwrap();
    clear(
        &reduction,
        &mut [round("b", "f", lines(200)), round("c", "f", "ok")].concat(),
    )
    .await;
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0], [("a".to_owned(), Outcome::Truncated)]);
    assert_eq!(seen[1][0], ("b".to_owned(), Outcome::Cleared));
}

/// Zeros and the largest numbers in every field fail the build or give a working reduction.
#[tokio::test]
async fn l7_no_number_panics() {
    let fields = [
        "max_length_for_trunc",
        "preview_above",
        "preview_length",
        "stub_length",
        "max_tokens_for_clear",
        "clear_retention_suffix_limit",
        "clear_at_least_tokens",
        "clear_user_texts_above",
    ];
    let numbers = [
        json!(0),
        json!(1),
        json!(2),
        json!(u64::MAX),
        json!(u64::MAX - 1),
        json!(u64::from(u32::MAX)),
    ];
    let mut works = 0;
    let long = lines(2_000);
    let mut try_out = async |json: serde_json::Value| {
        // Low limits, so that a text need not be very long to be over them.
        let mut options = json!({"max_length_for_trunc": 10_000, "preview_length": 2_000, "max_tokens_for_clear": 4_000});
        let own = json.as_object().unwrap().clone();
        options.as_object_mut().unwrap().extend(own);
        let settings: Settings = serde_json::from_value(options).unwrap();
        let builder = ToolReduction::builder()
            .settings(settings, offcut::backend::open)
            .backend(memory());
        let Ok(reduction) = builder
            .count_tokens_with(|text: &str| text.len() as u64 / 4)
            .build()
        else {
            return;
        };
        works += 1;
        for content in ["", "x", &long] {
            let shown = reduction.truncate(&call("a", "f"), content).await.unwrap();
            let mut messages = [
                round("a", "f", shown.text()),
                round("b", "f", content),
                round("c", "f", "ok"),
            ]
            .concat();
            clear(&reduction, &mut messages).await;
        }
    };
    for field in fields {
        for number in &numbers {
            try_out(json!({(field): number})).await;
            // A low threshold makes the pass act; the other settings stay out of the way.
            try_out(json!({"max_tokens_for_clear": 1, (field): number})).await;
            try_out(json!({"max_tokens_for_clear": 1, "max_length_for_trunc": u64::MAX, "stub_length": u64::MAX, (field): number})).await;
            try_out(json!({"tool_config": {"f": {"stub_length": 0}}, (field): number})).await;
        }
    }
    for limit in &numbers {
        try_out(json!({"max_length_for_trunc": limit})).await;
        try_out(json!({"preview_length": 0, "max_length_for_trunc": limit})).await;
        for preview in ["lines", "index", "mixed"] {
            let curve = json!({"scale": 1e300, "exponent": 1, "at_most": 400});
            try_out(json!({"preview_length": curve, "preview": preview, "stub_length": curve, "preview_above": 0, "max_length_for_trunc": limit})).await;
        }
        try_out(
            json!({"tool_config": {"f": {"max_length_for_trunc": limit, "preview_length": 0}}}),
        )
        .await;
        for number in &numbers {
            let policy = json!({"max_length_for_trunc": limit, "preview_length": number, "stub_length": number});
            try_out(json!({"tool_config": {"f": policy}})).await;
        }
    }
    assert!(works > 50, "{works}");
}

#[tokio::test]
async fn l7_no_reported_usage_panics() {
    let reduction = small(&memory()).build().unwrap();
    for usage in [0, 1, u64::MAX - 1, u64::MAX] {
        let mut messages = [round("a", "f", lines(200)), round("b", "f", "ok")].concat();
        let mut conversation = Messages::new(Plain, &mut messages);
        let mut turn = Turn::new(&mut conversation);
        turn.last_usage = Some(usage);
        let report = reduction.clear_turn(&mut turn).await.unwrap();
        assert_eq!(report.is_change(), usage > 1, "{usage}");
    }
}
