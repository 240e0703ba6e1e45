//! Clients of providers from PyPI and npm through `offcut serve`, against a scripted provider that checks each request.
//! No key and no network are needed. `scripts/clients` installs the clients.

#![cfg(all(unix, feature = "serve"))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    unreachable_pub,
    reason = "a test that can't be set up has failed, and figures are shown"
)]

mod bill;
mod front;
mod provider;
mod replies;
#[path = "../support/server.rs"]
mod server;

use std::path::{Path, PathBuf};
use std::process::Command;

use axum::Router;
use offcut::format::WireFormat;

use bill::Bill;
use front::Front;
use provider::{Fault, Log, Provider};
use server::Server;

/// Serves on a free port, and returns the URL.
async fn serve(app: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}

fn installed() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients");
    assert!(
        folder.join("version").is_file(),
        "run scripts/clients first"
    );
    folder.canonicalize().unwrap()
}

/// Settings of a server before `provider`. The threshold is low, so that a session has passes over old results.
fn settings(provider: &str) -> String {
    let upstreams = ["openai", "anthropic", "gemini"];
    let upstreams = upstreams.map(|name| format!("{name} = \"{provider}/{name}\"\n"));
    format!(
        "preset = \"recommended\"\nmax_tokens_for_clear = 12000\n[serve.upstreams]\n{}",
        upstreams.concat()
    )
}

/// Runs a session of `client` with the base URL `url`, and returns its answers.
fn answers(client: &str, url: &str) -> Vec<String> {
    let installed = installed();
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    let mut command = if client.starts_with("ai-sdk") {
        let mut command = Command::new("node");
        command.arg(scripts.join("ai.mjs")).arg(&installed);
        command
    } else {
        let is_framework = ["litellm", "langchain", "openai-agents"];
        let is_framework = is_framework.iter().any(|name| client.starts_with(name));
        let place = if is_framework { "frameworks" } else { "sdks" };
        let mut command = Command::new(installed.join(place).join("bin/python"));
        command.arg(scripts.join(format!("{place}.py")));
        command
    };
    command
        .args([client, url])
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{client}: {error}");
    let last = output.stdout.rsplit(|byte| *byte == b'\n').nth(1);
    serde_json::from_slice(last.unwrap()).unwrap()
}

/// The failures of the provider in a session, by the turn that each hits.
const FAULTS: [(usize, Fault); 5] = [
    (2, Fault::Status(429)),
    (4, Fault::Status(500)),
    (5, Fault::BreaksOff),
    (7, Fault::Status(529)),
    (11, Fault::BreaksOff),
];

fn is_clean(client: &str, log: &Log) {
    assert_eq!(log.problems, Vec::<String>::new(), "{client}");
    assert_eq!(log.failed, FAULTS.len(), "{client}");
}

/// Runs a session with and without the server, compares, and prints a row of the table.
fn compare(client: &str, format: WireFormat) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let (provider, url) = runtime.block_on(Provider::start(&FAULTS));
    let expected = answers(client, &url);
    assert_eq!(expected.len(), 2, "{client}");
    let without = std::mem::take(&mut *provider.log.lock().unwrap());
    is_clean(client, &without);

    let home = tempfile::tempdir().unwrap();
    let (provider, url) = runtime.block_on(Provider::start(&FAULTS));
    let server = Server::start(home.path(), &settings(&url));
    let (front, url) = runtime.block_on(Front::start(&format!("http://{}", server.address)));
    assert_eq!(answers(client, &url), expected, "{client}");
    let with = std::mem::take(&mut *provider.log.lock().unwrap());
    is_clean(client, &with);

    let asked = std::mem::take(&mut *front.bodies.lock().unwrap());
    let mut hints = 0;
    for (number, sent) in &with.bodies {
        hints += bill::differ_by_hints(&asked[number.expect("a number")], sent);
    }
    assert!(hints > 10, "{client}: {hints}");
    let log = std::fs::read_to_string(home.path().join("log")).unwrap();
    // The provider breaks off one reply on purpose.
    let warnings = log.lines().filter(|line| line.contains(" WARN "));
    let others = warnings.filter(|line| !line.contains("reply broke off"));
    assert_eq!(others.collect::<Vec<_>>(), [""; 0], "{client}: {log}");
    for outcome in front.outcomes.lock().unwrap().iter() {
        assert!(
            ["reduced", "unchanged"].contains(&outcome.as_str()),
            "{client}: {outcome}"
        );
    }
    let bill = |bodies: Vec<&str>| Bill::of(format, &bodies);
    let plain = bill(
        without
            .bodies
            .iter()
            .map(|(_, body)| body.as_str())
            .collect(),
    );
    let own = bill(
        with.bodies
            .iter()
            .map(|(number, _)| asked[number.unwrap()].as_str())
            .collect(),
    );
    let sent = bill(with.bodies.iter().map(|(_, body)| body.as_str()).collect());
    assert_eq!(
        sent.breaks - sent.passes,
        own.breaks,
        "{client}: {sent:?} {own:?}"
    );
    println!(
        "| {client} | {} | {} | {} | {:.0} | {:.1} % | {:.0} | {:.1} % | {} | {} |",
        without.bodies.len(),
        with.bodies.len(),
        with.reads,
        plain.bytes,
        100.0 * sent.bytes / plain.bytes,
        plain.weighted,
        100.0 * sent.weighted / plain.weighted,
        own.breaks,
        sent.passes,
    );
}

fn compare_all(clients: &[(&str, WireFormat)]) {
    println!(
        "| client | requests without | with | of them reads | bytes without | with | bill without | with | breaks of its own | passes |\n|---|---|---|---|---|---|---|---|---|---|"
    );
    for (client, format) in clients {
        compare(client, *format);
    }
}

#[test]
#[ignore = "needs scripts/clients"]
fn official_sdks_get_the_same_answers() {
    compare_all(&[
        ("openai-chat", WireFormat::OpenAiChat),
        ("openai-chat-stream", WireFormat::OpenAiChat),
        ("openai-responses", WireFormat::Responses),
        ("openai-responses-stream", WireFormat::Responses),
        ("anthropic", WireFormat::Anthropic),
        ("anthropic-stream", WireFormat::Anthropic),
        ("anthropic-tool-runner", WireFormat::Anthropic),
        ("google", WireFormat::Gemini),
        ("google-stream", WireFormat::Gemini),
    ]);
}

#[test]
#[ignore = "needs scripts/clients"]
fn frameworks_get_the_same_answers() {
    compare_all(&[
        ("litellm-openai", WireFormat::OpenAiChat),
        ("litellm-anthropic", WireFormat::Anthropic),
        ("langchain-openai", WireFormat::OpenAiChat),
        ("langchain-anthropic", WireFormat::Anthropic),
        ("openai-agents", WireFormat::Responses),
        ("openai-agents-chat", WireFormat::OpenAiChat),
    ]);
}

#[test]
#[ignore = "needs scripts/clients"]
fn the_ai_sdk_gets_the_same_answers() {
    compare_all(&[
        ("ai-sdk-openai", WireFormat::Responses),
        ("ai-sdk-openai-stream", WireFormat::Responses),
        ("ai-sdk-chat-stream", WireFormat::OpenAiChat),
        ("ai-sdk-anthropic", WireFormat::Anthropic),
        ("ai-sdk-anthropic-stream", WireFormat::Anthropic),
        ("ai-sdk-google", WireFormat::Gemini),
        ("ai-sdk-google-stream", WireFormat::Gemini),
    ]);
}
