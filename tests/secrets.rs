//! The user, password and options in a store's URL are in no error, log, report, hint or `Debug`
//! text (O4). And a URL means the place that it names, or is refused.

#![allow(clippy::unwrap_used)]
#![cfg(all(feature = "fs", feature = "toml"))]

#[path = "common/leak.rs"]
mod leak;

use std::sync::OnceLock;

use offcut::backend::{self, Memory, StoreUrl};
use offcut::{BuildError, Settings, SettingsError, ToolCall, ToolPolicy, ToolReduction};
use serde_json::{Value, json};

use self::leak::{Log, holds_no_secret, said};

/// URLs, some of them misspelt, with the secret in every possible place.
const URLS: [&str; 16] = [
    "s3://bucket/p?secret_access_key=pLanTeD",
    "s3://bucket/p?region=eu&session_token=a%2Fb+pLanTeD==",
    "s3://bucket/p?pLanTeD",
    "s3://AKIA:pLanTeD@bucket/p",
    "s3://pLanTeD@bucket/p",
    "s3://AKIA:with/slash?and#more@pLanTeD@bucket/p",
    "s3://AKIA:pLanTeD/p",
    "s3:/bucket/p?secret_access_key=pLanTeD",
    "s3:AKIA:pLanTeD@bucket",
    "s3//bucket/p?secret_access_key=pLanTeD",
    "gs://bucket?bearer_token=pLanTeD#pLanTeD",
    "az://container?sas_token=sig%3DpLanTeD",
    "https://user:pLanTeD@host/p?token=pLanTeD",
    "file:///nowhere/p?token=pLanTeD",
    "file://user:pLanTeD@host/nowhere",
    "memory:grep?token=pLanTeD",
];

fn log() -> Log {
    static LOG: OnceLock<Log> = OnceLock::new();
    LOG.get_or_init(Log::install).clone()
}

/// Writes a map as TOML. JSON strings are valid in TOML.
fn toml(json: &Value) -> String {
    fn inline(json: &Value) -> String {
        match json {
            Value::Object(fields) => {
                let fields: Vec<_> = fields
                    .iter()
                    .map(|(name, value)| format!("{} = {}", json!(name), inline(value)))
                    .collect();
                format!("{{ {} }}", fields.join(", "))
            }
            Value::Array(items) => format!(
                "[{}]",
                items.iter().map(inline).collect::<Vec<_>>().join(", ")
            ),
            scalar => scalar.to_string(),
        }
    }
    let fields = json.as_object().unwrap();
    fields
        .iter()
        .map(|(name, value)| format!("{} = {}\n", json!(name), inline(value)))
        .collect()
}

/// Settings that name `url` for all tools, for one tool, and for both.
fn settings(url: &str) -> Vec<Settings> {
    [
        json!({"backend": url}),
        json!({"backend": "memory:all", "tool_config": {"grep": {"backend": url}}}),
        json!({"backend": url, "tool_config": {"grep": {"backend": url}}}),
    ]
    .into_iter()
    .flat_map(|json| {
        [
            Settings::from_json(&json.to_string()).unwrap(),
            Settings::from_toml(&toml(&json)).unwrap(),
        ]
    })
    .collect()
}

#[test]
fn o4_no_secret_of_a_stores_url_is_shown() {
    let log = log();
    for url in URLS {
        let shown = StoreUrl::from(url);
        holds_no_secret(url, &format!("{shown} {shown:?} {shown:#?}"));
        holds_no_secret(url, &said(&backend::open(url).map(|_| ()).unwrap_err()));
        for settings in settings(url) {
            holds_no_secret(url, &format!("{settings:?}{settings:#?}"));
            let again = Settings::from_json(&serde_json::to_string(&settings).unwrap()).unwrap();
            assert_eq!(again, settings, "what is written to a file is all of it");
            // A caller's own opener may refuse the stores in its own words.
            let refuse = |_: &str| Err::<Memory, _>("not today");
            for builder in [
                ToolReduction::builder().settings(settings.clone(), backend::open),
                ToolReduction::builder().settings(settings.clone(), refuse),
            ] {
                holds_no_secret(url, &format!("{builder:?}"));
                holds_no_secret(url, &said(&builder.build().unwrap_err()));
            }
            let reduction = ToolReduction::builder()
                .settings(settings, |_: &str| Ok::<_, BuildError>(Memory::new()));
            holds_no_secret(
                url,
                &format!("{:?}", reduction.skip_truncation(true).build()),
            );
        }
        let mut policy = ToolPolicy::new();
        policy.backend_url = Some(url.into());
        holds_no_secret(url, &format!("{policy:?}"));
        let unopened = ToolReduction::builder()
            .backend(Memory::new())
            .tool("grep", policy);
        holds_no_secret(url, &said(&unopened.build().unwrap_err()));
    }
    tracing::trace!("the log is kept");
    holds_no_secret("log", &log.0.lock().unwrap());
}

/// No error of a settings file quotes a URL that stands in a wrong place.
#[test]
fn o4_no_error_of_a_settings_file_quotes_a_url() {
    let places = |url: &str| {
        vec![
            json!({"skip_clear": url}),
            json!({"max_length_for_trunc": url}),
            json!({"preview_length": {"scale": url}}),
            json!({"preview": url}),
            json!({"names": url}),
            json!({"token_counter": url}),
            json!({"on_offload_error": url}),
            json!({"language": url}),
            json!({"trunc_exclude_tools": url}),
            json!({"tool_config": url}),
            json!({"tool_config": {"grep": url}}),
            json!({"tool_config": {"grep": {"skip_clear": url}}}),
            json!({"tool_config": {url: {"skip_clear": "x"}}}),
            json!({"tool_config": {"grep": {url: 1}}}),
            json!({"templates": {url: {}}}),
            json!({"templates": {"english": {url: "x"}}}),
            json!({"templates": {"english": url}}),
            json!({"backend": {"url": url}}),
            json!({"backend": [url]}),
            json!({url: "memory:"}),
            json!({"read_file_tool_name": {"name": url}}),
        ]
    };
    for url in URLS {
        for json in places(url) {
            let errors: [SettingsError; 2] = [
                Settings::from_json(&json.to_string()).unwrap_err(),
                Settings::from_toml(&toml(&json)).unwrap_err(),
            ];
            for error in errors {
                holds_no_secret(&json.to_string(), &said(&error));
            }
        }
        for broken in [
            format!("{{\"backend\": \"{url}\" x}}"),
            format!("{{\"backend\": \"{url}"),
            format!("\"{url}\""),
        ] {
            holds_no_secret(&broken, &said(&Settings::from_json(&broken).unwrap_err()));
        }
        for broken in [
            format!("backend = {url}"),
            format!("backend = \"{url}\" x"),
            format!("{url} = 1"),
            url.to_owned(),
        ] {
            holds_no_secret(&broken, &said(&Settings::from_toml(&broken).unwrap_err()));
        }
    }
    let typo = Settings::from_json(r#"{"preview": "line"}"#)
        .unwrap_err()
        .to_string();
    assert!(
        typo.contains("unknown value `line`"),
        "a word is still repeated: {typo}"
    );
}

/// Reading back, reports and hints name locations, and never the URL that opened a store.
#[tokio::test]
async fn o4_locations_and_reports_hold_no_option() {
    let opened = |_: &str| Ok::<_, BuildError>(Memory::new());
    let settings = settings(URLS[0]).remove(0);
    let reduction = ToolReduction::builder()
        .settings(settings, opened)
        .build()
        .unwrap();
    let call = ToolCall::new("call_1", "grep", "{}");
    let shown = reduction
        .truncate(&call, "a line\n".repeat(20_000))
        .await
        .unwrap();
    holds_no_secret("hint", &shown.text());
    holds_no_secret("report", &serde_json::to_string(&shown.report).unwrap());
}

/// A `file:` URL opens the directory whose path it has, as it is written; other URLs with such paths are refused.
#[test]
fn o4_a_url_opens_the_place_that_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap().to_owned();
    let key = backend::Key::new("trunc/a").unwrap();
    for path in [
        "/../x",
        "/./x",
        "//x",
        "/a//b",
        "/a/..",
        "/%2e%2e/x",
        "/a/%2E./x",
        "/a%2fb",
        "/a\\b",
        "/..\\x",
        "/a\tb",
        "/a\n",
        "/a/",
    ] {
        for url in [
            format!("memory:/m{path}"),
            format!("s3://bucket{path}"),
            format!("file://host{path}"),
        ] {
            let error = backend::open(&url).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(": "), "it says what to do: {error}");
        }
        let locate = |url: &str| backend::open(url).map(|store| store.locate(&key)).ok();
        if let Some(by_url) = locate(&format!("file://{root}{path}")) {
            assert_eq!(Some(by_url), locate(&format!("{root}{path}")), "{path:?}");
        }
    }
    assert_eq!(
        std::fs::read_dir(&root).unwrap().count(),
        0,
        "nothing was made"
    );
}

/// A scheme without slashes, or a path with options, would name a directory after the secrets.
#[test]
fn o4_a_misspelt_url_is_not_taken_as_a_directory() {
    for url in [
        "s3:/bucket?token=abc",
        "s3//bucket?token=abc",
        "data//store?token=abc",
        "s3:bucket",
        "agents?token=abc",
        "file:/var/x",
        "file:///var/x",
        "file:///var/x?token=abc",
        "file:///var/my%20dir",
        "",
    ] {
        let error = backend::open(url).map(|_| ()).unwrap_err().to_string();
        let says = "neither a store's URL nor a path";
        assert!(
            error.contains(says) && !error.contains("abc"),
            "{url}: {error}"
        );
        assert_eq!(StoreUrl::from(url).directory(), None, "{url}");
    }
    assert!(!std::path::Path::new("s3:").exists());
}
