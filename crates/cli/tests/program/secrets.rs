//! No secret in a store's URL is ever shown, wherever it is given: on the command line, in a
//! settings file or in the environment (O4).
// Helpers are part of the tests.

use std::path::Path;
use std::process::Output;

use crate::support::{command, text};
use tempfile::tempdir;

/// Output that holds this is a leak.
const SECRET: &str = "pLanTeD";

/// URLs with the secret in every place that may hold one, including malformed URLs. Nothing listens
/// at the endpoint.
const URLS: [&str; 9] = [
    "s3://bucket/p?endpoint=http://127.0.0.1:1&retries=0&backoff=1ms&timeout=1s&access_key_id=x&secret_access_key=pLanTeD",
    "s3://bucket/p?secret_acces_key=pLanTeD",
    "s3://AKIA:pLanTeD@bucket/p",
    "s3://AKIA:with/slash?and#more@pLanTeD@bucket/p",
    "s3:/bucket/p?secret_access_key=pLanTeD",
    "s3//bucket/p?secret_access_key=pLanTeD",
    "gs://bucket?bearer_token=pLanTeD",
    "file:///nowhere/p?token=pLanTeD",
    "memory:grep?token=pLanTeD",
];

/// Runs the program in `folder` with a long result on stdin, and checks everything that it leaves.
#[track_caller]
fn run(folder: &Path, args: &[&str], env: &[(&str, &str)]) -> Output {
    let input = folder.join("input");
    let long = "a line\n".repeat(20_000);
    if std::fs::read_to_string(&input).unwrap_or_default() != long {
        std::fs::write(&input, long).unwrap();
    }
    let mut command = command(args);
    command
        .current_dir(folder)
        .stdin(std::fs::File::open(&input).unwrap())
        .env("XDG_STATE_HOME", folder.join("state"));
    let output = command.envs(env.iter().copied()).output().unwrap();
    for (stream, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        let said = String::from_utf8_lossy(bytes);
        assert!(!said.contains(SECRET), "{args:?}: {stream}: {said}");
    }
    output
}

/// Checks that no file name holds a secret, and no content except of the files that a test wrote.
fn look_through(folder: &Path, written: &[&Path]) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        assert!(
            !path.to_string_lossy().contains(SECRET),
            "{}",
            path.display()
        );
        if path.is_dir() {
            look_through(&path, written);
        } else if !written.contains(&&*path) {
            let content = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            assert!(
                !content.contains(SECRET),
                "{}: {content:.300}",
                path.display()
            );
        }
    }
}

#[test]
fn o4_no_argument_with_a_secret_is_shown() {
    let folder = tempdir().unwrap();
    let store = folder.path().join("store");
    std::fs::create_dir_all(store.join(".staging")).unwrap();
    let store = text(&store);
    for url in URLS {
        let with_equals = format!("--backend={url}");
        let as_policy = format!("mine={url}");
        let misspelt = format!("--backnd={url}");
        let commands: [&[&str]; 29] = [
            &[
                "truncate",
                "--config",
                "eino",
                "--tool",
                "f",
                "--backend",
                url,
            ],
            &[
                "truncate",
                "--config",
                "eino",
                "--tool",
                "f",
                "--json",
                &with_equals,
            ],
            &["truncate", "--config", "eino", "--tool", "f", &misspelt],
            &[
                "truncate",
                "--config",
                url,
                "--tool",
                "f",
                "--backend",
                store,
            ],
            &[
                "truncate",
                "--config",
                "eino",
                "--tool",
                "f",
                "--backend",
                store,
                url,
            ],
            &["clear", "--config", "eino", "--backend", url],
            &["clear", "--config", "eino", "--backend", store, url],
            &["read", "--config", "eino", "--backend", url, "trunc/a"],
            &["read", "--config", "eino", "--backend", store, url],
            &[
                "read",
                "--config",
                "eino",
                "--backend",
                store,
                "x",
                "--offset",
                url,
            ],
            &[
                "read",
                "--config",
                "eino",
                "--backend",
                store,
                "x",
                "--limit",
                url,
            ],
            &["sweep", url, "--nothing-is-live"],
            &["sweep", store, url, "--nothing-is-live", "--is-a-store"],
            &["sweep", store, "--live", url],
            &["sweep", store, "--nothing-is-live", "--root", url],
            &["sweep", store, "--nothing-is-live", "--session", url],
            &["sweep", store, "--nothing-is-live", "--idle", url],
            &["sweep", store, "--nothing-is-live", "--quota", url],
            &["store", "ls", url],
            &["store", "ls", "--json", url],
            &["config", "check", url],
            &["replay", url],
            &["replay", "input", "--policy", url],
            &["replay", "input", "--policy", &as_policy],
            &["replay", "input", "--prices", url],
            &["state", "apply", "--schema", url, url],
            &[
                "state", "apply", "--schema", "input", "--state", url, "input",
            ],
            &[url],
            &["store", url],
        ];
        for args in commands {
            run(folder.path(), args, &[]);
        }
    }
    look_through(folder.path(), &[]);
}

#[test]
fn o4_no_url_of_a_settings_file_is_shown_with_its_secret() {
    let folder = tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let (toml, json) = (file("settings.toml"), file("settings.json"));
    for url in URLS {
        for (of_toml, of_json) in [
            (
                format!("backend = \"{url}\"\n"),
                format!("{{\"backend\": \"{url}\"}}"),
            ),
            (
                format!("backend = \"memory:all\"\n[tool_config.f]\nbackend = \"{url}\"\n"),
                format!(
                    "{{\"backend\": \"memory:all\", \"tool_config\": {{\"f\": {{\"backend\": \"{url}\"}}}}}}"
                ),
            ),
            (
                format!("skip_clear = \"{url}\"\n"),
                format!("{{\"skip_clear\": \"{url}\"}}"),
            ),
            (format!("\"{url}\" = 1\n"), format!("{{\"{url}\": 1}}")),
            (
                format!("backend = {url}\n"),
                format!("{{\"backend\": \"{url}\" oh}}"),
            ),
        ] {
            std::fs::write(&toml, of_toml).unwrap();
            std::fs::write(&json, of_json).unwrap();
            for settings in [text(&toml), text(&json)] {
                let policy = format!("mine={settings}");
                let commands: [&[&str]; 8] = [
                    &["config", "check", settings],
                    &["config", "check", settings, "--json"],
                    &["truncate", "--config", settings, "--tool", "f"],
                    &["truncate", "--config", settings, "--tool", "f", "--json"],
                    &["clear", "--config", settings, "--json"],
                    &["read", "--config", settings, "trunc/a"],
                    &[
                        "replay",
                        "input",
                        "--policy",
                        &policy,
                        "--html",
                        "page.html",
                    ],
                    &["replay", "input", "--policy", &policy, "--json"],
                ];
                for args in commands {
                    run(folder.path(), args, &[]);
                }
            }
            look_through(folder.path(), &[&toml, &json]);
        }
    }
}

#[test]
fn o4_no_credential_of_the_environment_is_shown() {
    let folder = tempdir().unwrap();
    let url = "s3://bucket/p?endpoint=http://127.0.0.1:1&retries=0&backoff=1ms&timeout=1s";
    let usual = [
        ("AWS_ACCESS_KEY_ID", "pLanTeD"),
        ("AWS_SECRET_ACCESS_KEY", "pLanTeD"),
        ("AWS_SESSION_TOKEN", "pLanTeD"),
    ];
    let wrong = [
        ("AWS_ACCESS_KEY_ID", "pLanTeD pLanTeD"),
        ("AWS_SECRET_ACCESS_KEY", "pLanTeD\t"),
        ("AWS_SESSION_TOKEN", "pLanTeD\u{e9}"),
        ("AWS_REGION", "pLanTeD pLanTeD"),
        ("AWS_ALLOW_HTTP", "pLanTeD"),
        ("AWS_ENDPOINT_URL_STS", "https://me:pLanTeD@host"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "pLanTeD"),
    ];
    for odd in [None].into_iter().chain(wrong.map(Some)) {
        let env: Vec<_> = usual.into_iter().chain(odd).collect();
        for args in [
            &[
                "truncate",
                "--config",
                "eino",
                "--tool",
                "f",
                "--json",
                "--backend",
                url,
            ][..],
            &["store", "ls", url],
            &["sweep", url, "--nothing-is-live", "--is-a-store"],
        ] {
            run(folder.path(), args, &env);
        }
    }
    look_through(folder.path(), &[]);
}

/// Everything else is shown, so that a person knows which store is meant.
#[test]
fn o4_parts_of_a_url_without_secrets_are_shown() {
    let folder = tempdir().unwrap();
    let said = |args: &[&str]| String::from_utf8(run(folder.path(), args, &[]).stderr).unwrap();
    let error = said(&["store", "ls", "gs://bucket/agents?bearer_token=pLanTeD"]);
    assert!(error.contains("gs://bucket/agents?…"), "{error}");
    let error = said(&["config", "check", "s3://me:pLanTeD@bucket/agents"]);
    assert!(error.contains("s3:…"), "{error}");
    let error = said(&[
        "truncate",
        "--config",
        "eino",
        "--tool",
        "f",
        "gs://bucket?token=pLanTeD",
    ]);
    assert!(
        error.contains("gs://bucket?…") && error.contains("Usage:"),
        "{error}"
    );
    let version = run(folder.path(), &["--version"], &[]);
    assert!(
        version.status.success() && version.stdout.starts_with(b"offcut "),
        "what clap prints is printed"
    );
}
