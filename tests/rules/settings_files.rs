//! Settings from files: TOML and JSON mean the same, and errors name the place.
#![cfg(feature = "fs")]

#[cfg(feature = "toml")]
mod pages;

use offcut::backend::Memory;
use offcut::hint::Hint;
use offcut::{BuildError, Builder, Settings, ToolCall, ToolPolicy, ToolReduction, backend};
use serde_json::json;

const TOML: &str = r#"
backend = "memory:all"
root_dir = "agent-1"
read_file_tool_name = false
max_length_for_trunc = 9_000
token_counter = "estimate"
on_offload_error = "preview_only"
language = "zh"

[tool_config.grep]
backend = "memory:grep"
max_length_for_trunc = 20_000
skip_clear = true
"#;

#[test]
fn toml_and_json_say_the_same() {
    let from_toml = Settings::from_toml(TOML).unwrap();
    let json = serde_json::to_string_pretty(&from_toml).unwrap();
    assert_eq!(Settings::from_json(&json).unwrap(), from_toml);
    assert_eq!(from_toml.read_file_tool_name, None);
    assert_eq!(from_toml.max_length_for_trunc, 9_000);
    assert_eq!(
        from_toml.tool_config["grep"].max_length_for_trunc,
        Some(20_000)
    );
    assert_eq!(
        from_toml.tool_config["grep"].backend_url,
        Some("memory:grep".into())
    );
    assert_eq!(Settings::from_toml("").unwrap(), Settings::default());
    assert_eq!(Settings::from_json("{}").unwrap(), Settings::default());
    assert_eq!(
        Settings::from_json(r#"{"read_file_tool_name": null}"#)
            .unwrap()
            .read_file_tool_name,
        None
    );
}

#[test]
fn o1_a_file_changes_the_preset_that_it_begins_with() {
    let recommended = Settings::recommended();
    assert_eq!(
        Settings::from_toml("preset = \"recommended\"").unwrap(),
        recommended
    );
    let cases = [
        // Sets one option; the preset gives the others.
        (
            "max_tokens_for_clear",
            json!(70_000),
            "max_tokens_for_clear",
            70_000,
        ),
        ("preview_above", json!(900), "preview_above", 900),
    ];
    for (option, value, changed, expected) in cases {
        let toml = format!("preset = \"recommended\"\n{option} = {value}\n");
        let settings = Settings::from_toml(&toml).unwrap();
        let json = json!({"preset": "recommended", option: value}).to_string();
        assert_eq!(Settings::from_json(&json).unwrap(), settings);
        let mut wanted = serde_json::to_value(&recommended).unwrap();
        wanted[changed] = json!(expected);
        assert_eq!(serde_json::to_value(&settings).unwrap(), wanted);
    }
    // A limit is final unless `preview_above` is set too.
    let limit = "preset = \"recommended\"\nmax_length_for_trunc = 20_000\n";
    let settings = Settings::from_toml(limit).unwrap();
    assert_eq!(settings.max_length_for_trunc, 20_000);
    assert_eq!(settings.preview_above, None);
    let both = Settings::from_toml(&format!("{limit}preview_above = 3_000")).unwrap();
    assert_eq!(both.preview_above, Some(3_000));
    // The file sets both, so its settings need no preset when written as JSON.
    let text = serde_json::to_string(&both).unwrap();
    assert!(!text.contains("preset"));
    assert_eq!(Settings::from_json(&text).unwrap(), both);

    let error = Settings::from_toml("preset = \"recomended\"").unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 1, `preset`: unknown value `recomended`: use one of recommended, eino, anthropic"
    );
}

#[test]
fn sizes_may_have_units() {
    let toml = r#"
max_length_for_trunc = "8KiB"
preview_above = "1.5 kB"
preview_length = { scale = 8.0, exponent = 0.68, at_most = "7KB" }
stub_length = "100B"
clear_tool_inputs_above = "1KB"
tool_config.grep = { max_length_for_trunc = "1MB", preview_above = "4KB" }
"#;
    let settings = Settings::from_toml(toml).unwrap();
    assert_eq!(settings.max_length_for_trunc, 8_192);
    assert_eq!(settings.preview_above, Some(1_500));
    assert_eq!(settings.preview_length.at_most(), 7_000);
    assert_eq!(settings.stub_length.at_most(), 100);
    assert_eq!(settings.clear_tool_inputs_above, 1_000);
    let grep = &settings.tool_config["grep"];
    assert_eq!(grep.max_length_for_trunc, Some(1_000_000));
    assert_eq!(grep.preview_above, Some(4_000));
    for size in ["8k", "8K", "8kb", "8kB", "8KB", "8 KB", "8000 B"] {
        let toml = format!("max_length_for_trunc = \"{size}\"");
        let settings = Settings::from_toml(&toml).unwrap();
        assert_eq!(settings.max_length_for_trunc, 8_000, "{size}");
    }
    for size in ["8 apples", "", "-1KB", "s3://user:SECRET@bucket"] {
        let toml = format!("max_length_for_trunc = \"{size}\"");
        let error = Settings::from_toml(&toml).unwrap_err().to_string();
        assert_eq!(
            error,
            "line 1, `max_length_for_trunc`: not a size: write a whole number of bytes, or one with a \
             unit, such as \"8KB\" (8000) or \"8KiB\" (8192)"
        );
    }
}

#[test]
fn option_names_of_other_libraries_are_answered_with_ours() {
    for (theirs, ours) in [
        ("clear_threshold = 7", "max_tokens_for_clear"),
        ("trigger = 7", "max_tokens_for_clear"),
        ("keep = 3", "clear_retention_suffix_limit"),
        ("exclude_tools = []", "clear_exclude_tools"),
        ("placeholder = \"x\"", "templates"),
        ("per_tool = {}", "tool_config"),
    ] {
        let error = Settings::from_toml(theirs).unwrap_err();
        let theirs = theirs.split(' ').next().unwrap();
        assert_eq!(
            error.to_string(),
            format!("line 1, `{theirs}`: unknown field; it is called `{ours}` here")
        );
    }
}

#[test]
fn a_general_option_in_a_table_is_answered_with_its_place() {
    for (line, advice) in [
        ("token_counter = \"estimate\"", "is for all tools"),
        ("preset = \"eino\"", "is for all tools"),
        (
            "max_token_for_clear = 5",
            "unknown field; did you mean `max_tokens_for_clear`? It is for all tools",
        ),
        (
            "threshold = 5",
            "unknown field; it is called `max_tokens_for_clear` here; it is for all tools",
        ),
    ] {
        let toml = format!("[tool_config.grep]\nskip_clear = true\n{line}\n");
        let error = Settings::from_toml(&toml).unwrap_err();
        let name = line.split(' ').next().unwrap();
        assert_eq!(
            error.to_string(),
            format!(
                "line 3, `tool_config.grep.{name}`: {advice}: write it above the first `[table]` of \
                 the file"
            )
        );
    }
    let error = Settings::from_json(r#"{"tool_config": {"grep": {"language": "zh"}}}"#);
    assert_eq!(
        error.unwrap_err().problem,
        "is for all tools: write it beside `tool_config`, not in it"
    );
    // An option that single tools have too is not sent away.
    let error = Settings::from_toml("[tool_config.grep]\nmax_lenght_for_trunc = 5").unwrap_err();
    assert!(
        error
            .problem
            .ends_with("did you mean `max_length_for_trunc`?"),
        "{error}"
    );
}

#[test]
fn each_mistake_is_reported_with_its_line() {
    let mut lines = [
        "root_dirr = \"a\"",
        "clear_exclude_tools = 5",
        "[tool_config.grep]",
        "skip_cleer = true",
        "preview = 5",
        "[templates]",
        "abov = 5",
        "[tool_config.ask]",
        "preview = 5",
    ];
    let mut wrong = Vec::from([1, 2, 4, 5, 7, 9]);
    while !wrong.is_empty() {
        let error = Settings::from_toml(&lines.join("\n")).unwrap_err();
        let line = error.line.unwrap();
        let known = wrong.iter().position(|wrong| *wrong == line);
        wrong.remove(known.unwrap_or_else(|| panic!("{error}")));
        lines[line - 1] = "";
    }
    assert!(Settings::from_toml(&lines.join("\n")).is_ok());
}

#[test]
fn errors_about_names_in_maps_list_what_is_known() {
    for (toml, name) in [
        ("[templates.english]\nreadr = \"x\"", "readr"),
        ("[templates.french]\nreader = \"x\"", "french"),
    ] {
        let error = Settings::from_toml(toml).unwrap_err();
        assert_eq!(error.field, "templates", "{error}");
        let unknown = format!("unknown value `{name}`: use one of");
        assert!(error.problem.starts_with(&unknown), "{error}");
    }
}

#[test]
fn errors_of_a_file_name_their_place() {
    let toml = [
        "max_length = 5",
        "\n[tool_config.grep]\nmax_lenght_for_trunc = 5",
        "max_length_for_trunc = { bytes = 5 }",
        "max_length_for_trunc = {}",
        "max_length_for_trunc = -5",
        "preview_length = 1.5",
        "preview_length = { scale = \"memory:secret\", exponent = 0.6, at_most = 500 }",
        "preview_length = { scale = 9, exponent = 0.6, at_most = true }",
        "preview_length = { scale = 9, exponent = 0.6 }",
        "preview_length = { scale = 9, exponnent = 0.6, at_most = 500 }",
        "[tool_config.grep.stub_length]\nscale = 9\nexponent = 0.6\nat_most = 1.5",
        "token_counter = \"gpt2\"",
        "language = \"french\"",
        "on_offload_error = true",
        "read_file_tool_name = true",
        "trunc_exclude_tools = \"grep\"",
        "tool_config = 5",
        "root_dir = \"a\"\nroot_dir = \"b\"",
        "root_dir = ",
        "[tool_config.grep]\ntrunc_handler = \"x\"",
        "[tool_config]\ngrep = 20_000",
    ];
    let json = [
        "{\n  \"max_lenght_for_trunc\": 5\n}",
        "[]",
        "{",
        "{} {}",
        "{\"tool_config\": {\"grep\": {\"preview\": 5}}}",
    ];
    let of = |text: &str, error: offcut::SettingsError| format!("{text:?}\n    {error}\n");
    let errors: String = toml
        .iter()
        .map(|text| of(text, Settings::from_toml(text).expect_err(text)))
        .chain(
            json.iter()
                .map(|text| of(text, Settings::from_json(text).expect_err(text))),
        )
        .collect();
    insta::assert_snapshot!(errors, @r#"
    "max_length = 5"
        line 1, `max_length`: unknown field; it is called `max_length_for_trunc` here
    "\n[tool_config.grep]\nmax_lenght_for_trunc = 5"
        line 3, `tool_config.grep.max_lenght_for_trunc`: unknown field; did you mean `max_length_for_trunc`?
    "max_length_for_trunc = { bytes = 5 }"
        line 1, `max_length_for_trunc`: not a size: write a whole number of bytes, or one with a unit, such as "8KB" (8000) or "8KiB" (8192)
    "max_length_for_trunc = {}"
        line 1, `max_length_for_trunc`: not a size: write a whole number of bytes, or one with a unit, such as "8KB" (8000) or "8KiB" (8192)
    "max_length_for_trunc = -5"
        line 1, `max_length_for_trunc`: not a size: write a whole number of bytes, or one with a unit, such as "8KB" (8000) or "8KiB" (8192)
    "preview_length = 1.5"
        line 1, `preview_length`: write a whole number of bytes, a size such as "8KB", or the table { scale = N, exponent = N, at_most = N }
    "preview_length = { scale = \"memory:secret\", exponent = 0.6, at_most = 500 }"
        line 1, `preview_length`: write a whole number of bytes, a size such as "8KB", or the table { scale = N, exponent = N, at_most = N }
    "preview_length = { scale = 9, exponent = 0.6, at_most = true }"
        line 1, `preview_length`: write a whole number of bytes, a size such as "8KB", or the table { scale = N, exponent = N, at_most = N }
    "preview_length = { scale = 9, exponent = 0.6 }"
        line 1, `preview_length`: write a whole number of bytes, a size such as "8KB", or the table { scale = N, exponent = N, at_most = N }
    "preview_length = { scale = 9, exponnent = 0.6, at_most = 500 }"
        line 1, `preview_length`: write a whole number of bytes, a size such as "8KB", or the table { scale = N, exponent = N, at_most = N }
    "[tool_config.grep.stub_length]\nscale = 9\nexponent = 0.6\nat_most = 1.5"
        line 1, `tool_config.grep.stub_length`: write a whole number of bytes, a size such as "8KB", or the table { scale = N, exponent = N, at_most = N }
    "token_counter = \"gpt2\""
        line 1, `token_counter`: unknown value `gpt2`: use one of o200k_base, cl100k_base, estimate
    "language = \"french\""
        line 1, `language`: unknown value `french`: use one of en, english, chinese, zh
    "on_offload_error = true"
        line 1, `on_offload_error`: wanted string or table
    "read_file_tool_name = true"
        line 1, `read_file_tool_name`: write a tool's name, or false for none
    "trunc_exclude_tools = \"grep\""
        line 1, `trunc_exclude_tools`: invalid type: a string, expected a list
    "tool_config = 5"
        line 1, `tool_config`: invalid type: integer `5`, expected a map
    "root_dir = \"a\"\nroot_dir = \"b\""
        line 2: duplicate key
    "root_dir = "
        line 1: string values must be quoted, expected literal string
    "[tool_config.grep]\ntrunc_handler = \"x\""
        line 2, `tool_config.grep.trunc_handler`: unknown field
    "[tool_config]\ngrep = 20_000"
        line 2, `tool_config.grep`: invalid type: integer `20000`, expected a table, such as [tool_config.grep]
    "{\n  \"max_lenght_for_trunc\": 5\n}"
        line 2, `max_lenght_for_trunc`: unknown field; did you mean `max_length_for_trunc`?
    "[]"
        line 1: settings must be a JSON object: begin with `{`
    "{"
        line 1: EOF while parsing an object
    "{} {}"
        line 1: trailing characters
    "{\"tool_config\": {\"grep\": {\"preview\": 5}}}"
        line 1, `tool_config.grep.preview`: expected value
    "#);
}

#[test]
fn a_file_that_cant_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let errors: String = [
        Settings::load(write("a.toml", "root_dir = \"a\"\nlangauge = \"zh\"")),
        Settings::load(write("a.json", "{\n\"langauge\": \"zh\"}")),
        Settings::load(write("a.yaml", "")),
        Settings::load(folder.path().join("missing.toml")),
    ]
    .into_iter()
    .map(|result| {
        result
            .unwrap_err()
            .to_string()
            .replace(folder.path().to_str().unwrap(), "DIR")
            + "\n"
    })
    .collect();
    insta::assert_snapshot!(errors, @"
    DIR/a.toml, line 2, `langauge`: unknown field; did you mean `language`?
    DIR/a.json, line 2, `langauge`: unknown field; did you mean `language`?
    DIR/a.yaml: unknown file type: settings files must end in `.toml` or `.json`
    DIR/missing.toml: can't be read: No such file or directory (os error 2)
    ");
    assert_eq!(
        Settings::load(write("b.toml", TOML)).unwrap(),
        Settings::from_toml(TOML).unwrap()
    );
}

#[test]
fn a_file_that_is_not_regular_or_too_long_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.toml");
    let refused = |problem: &str| {
        let error = Settings::load(&path).unwrap_err().to_string();
        assert!(error.ends_with(problem), "{error}");
    };
    let file = std::fs::File::create(&path).unwrap();
    file.set_len(16 * 1024 * 1024 + 1).unwrap();
    refused("a.toml: can't be read: it is longer than 16 MiB");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    refused("a.toml: can't be read: it is not a regular file");
}

#[tokio::test]
async fn o1_backends_that_settings_name_are_opened_once_and_used() {
    let text = r#"
        backend = "memory:all"
        max_length_for_trunc = 2_000
        preview_length = 100
        [tool_config.grep]
        backend = "memory:grep"
        [tool_config.find]
        backend = "memory:grep"
    "#;
    let mut opened = Vec::new();
    let open = |url: &str| {
        opened.push(url.to_owned());
        backend::open(url)
    };
    let reduction = ToolReduction::builder()
        .settings(Settings::from_toml(text).unwrap(), open)
        .build()
        .unwrap();
    opened.sort();
    assert_eq!(opened, ["memory:all", "memory:grep"]);
    for (tool, location) in [
        ("ls", "memory://all/trunc/c"),
        ("grep", "memory://grep/trunc/c"),
        ("find", "memory://grep/trunc/c-find"),
    ] {
        let id = location.rsplit('/').next().unwrap();
        let shown = reduction
            .truncate(&ToolCall::new(id, tool, "{}"), "x\n".repeat(2_000))
            .await
            .unwrap();
        assert_eq!(
            Hint::parse(&shown.text())
                .unwrap()
                .location
                .unwrap()
                .as_str(),
            location
        );
    }
}

#[test]
fn o2_backends_that_cant_be_opened_do_not_build() {
    let of = |settings: serde_json::Value| {
        let settings = Settings::from_json(&settings.to_string()).unwrap();
        ToolReduction::builder().settings(settings, backend::open)
    };
    let mut unopened = ToolPolicy::new();
    unopened.backend_url = Some("memory:grep".into());
    let cases = [
        of(json!({"backend": "s3://bucket/prefix"})),
        of(json!({"backend": "memory:all", "tool_config": {"grep": {"backend": "gs://bucket"}}})),
        of(json!({"backend": "memory:../x"})),
        of(json!({"backend": "file://relative"})),
        of(json!({"backend": ""})),
        of(json!({"backend": "memory:", "tool_config": {"grep": {"backend": "memory:"}}})),
        ToolReduction::builder()
            .backend(Memory::new())
            .tool("grep", unopened),
        // Two stores with the same name, opened separately.
        of(json!({"backend": "memory:a"})).tool(
            "grep",
            ToolPolicy::new().backend(Memory::named("a").unwrap()),
        ),
    ];
    let mut errors = String::new();
    for case in cases {
        match case.build() {
            Ok(_) => errors.push_str("builds\n"),
            Err(error) => errors.push_str(&format!("{error}\n")),
        }
    }
    insta::assert_snapshot!(errors, @"
    the `backend` of all tools, `s3://bucket/prefix`, can't be opened: `s3:` stores are not part of this crate: open `s3://bucket/prefix` with the crate offcut-object-store, or use `memory:` or a path
    the `backend` of the tool `grep`, `gs://bucket`, can't be opened: `gs:` stores are not part of this crate: open `gs://bucket` with the crate offcut-object-store, or use `memory:` or a path
    the `backend` of all tools, `memory:../x`, can't be opened: `memory:../x` needs a safe name after `memory:`: use one such as `memory:grep`: a path of 4 bytes is not a safe key: use 1 to 16 segments of ASCII letters, digits, '.', '_' and '-', none that begins or ends with '.', at most 900 bytes in all
    the `backend` of all tools, `file://relative`, can't be opened: `file://relative` is neither a store's URL nor a path: write `memory:`, `s3://bucket/prefix` with its two slashes, or a path without `?`, which begins with `./` if it looks like a URL
    the `backend` of all tools, ``, can't be opened: `` is neither a store's URL nor a path: write `memory:`, `s3://bucket/prefix` with its two slashes, or a path without `?`, which begins with `./` if it looks like a URL
    builds
    the `backend` of the tool `grep`, `memory:grep`, was not opened: make the policy part of the settings that `Builder::settings` takes, or set it with `ToolPolicy::backend`
    two backends give the same location to different content: use one of them for all tools, or give them names (`Memory::named`)
    ");
    // A backend set later replaces one that can't be opened.
    assert!(
        of(json!({"backend": "s3://bucket"}))
            .backend(Memory::new())
            .build()
            .is_ok()
    );
    // It replaces none of another tool.
    let failed = |builder: Builder| match builder.build() {
        Err(BuildError::Open { tool, .. }) => tool,
        other => panic!("{other:?}"),
    };
    let grep = json!({"grep": {"backend": "s3://bucket"}});
    for settings in [
        json!({"tool_config": grep}),
        json!({"backend": "s3://bucket", "tool_config": grep}),
        json!({"backend": "gs://bucket", "tool_config": grep}),
    ] {
        let builder = of(settings).backend(Memory::new());
        assert_eq!(failed(builder.clone()).as_deref(), Some("grep"));
        assert!(builder.tool("grep", ToolPolicy::new()).build().is_ok());
    }
    let none = of(json!({"backend": "s3://bucket", "tool_config": grep}));
    assert_eq!(failed(none.tool("grep", ToolPolicy::new())), None);
}
