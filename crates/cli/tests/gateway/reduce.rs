//! Long results leave the requests of any client, and can be read back by their own tenant.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::{Provider, Server, memory, ok, reply};
use offcut::backend::{Backend, ErrorKind, Fs, Memory};
use offcut::format::WireFormat;
use offcut::hint::Hint;
use offcut_cli::gateway::{Gateway, OnFailure, ServeSettings};
use offcut_testkit::{Fault, Faulty};
use serde_json::{Value, json};

const LONG: usize = 2_000;

fn long(word: &str) -> String {
    (0..LONG).map(|n| format!("line {n} of {word}\n")).collect()
}

/// A request with one call and its long result, and the path for it.
fn request(format: WireFormat, task: &str, result: &str, tools: &Value) -> (String, String) {
    let (path, body) = match format {
        WireFormat::OpenAiChat => (
            "/openai/v1/chat/completions",
            json!({"model": "m", "messages": [
                {"role": "user", "content": task},
                {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "run", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "call_1", "content": result},
            ], "tools": tools}),
        ),
        WireFormat::Responses => (
            "/openai/v1/responses",
            json!({"model": "m", "input": [
                {"role": "user", "content": task},
                {"type": "function_call", "call_id": "call_1", "name": "run", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "call_1", "output": result},
            ], "tools": tools}),
        ),
        WireFormat::Anthropic => (
            "/anthropic/v1/messages",
            json!({"model": "m", "max_tokens": 9, "messages": [
                {"role": "user", "content": task},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "run", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": result}]},
            ], "tools": tools}),
        ),
        _ => (
            "/gemini/v1beta/models/m:generateContent",
            json!({"contents": [
                {"role": "user", "parts": [{"text": task}]},
                {"role": "model", "parts": [{"functionCall": {"id": "call_1", "name": "run", "args": {}}}]},
                {"role": "user", "parts": [{"functionResponse": {"id": "call_1", "name": "run", "response": {"output": result}}}]},
            ], "tools": tools}),
        ),
    };
    (path.to_owned(), body.to_string())
}

/// Tools of an agent on this machine.
fn shell() -> Value {
    json!([{"type": "function", "name": "Bash", "function": {"name": "Bash"}, "functionDeclarations": [{"name": "Bash"}]}])
}

/// Returns the hint in a body, and what it stands for by its path.
fn hint_in(body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap();
    let mut found = Vec::new();
    texts(&body, &mut |text| {
        if let Some(hint) = Hint::parse(text) {
            found.push(hint.location.unwrap().to_string());
        }
    });
    assert_eq!(found.len(), 1, "{body}");
    found.remove(0)
}

fn texts(value: &Value, see: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => see(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, see)),
        Value::Object(fields) => fields.values().for_each(|field| texts(field, see)),
        _ => {}
    }
}

#[tokio::test]
async fn long_results_of_every_protocol_become_hints_and_all_else_stays() {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Backend> = Arc::new(Fs::open(folder.path()).unwrap());
    let provider = Provider::start(|_| ok("{}")).await;
    let mut settings = crate::support::reduction();
    settings.backend_url = Some(folder.path().to_str().unwrap().to_owned().into());
    let server = Server::with(crate::support::settings(&provider.url), &settings, &store).await;
    for format in WireFormat::ALL {
        let result = long(format.name());
        let (path, body) = request(format, "a task", &result, &shell());
        let answer = server.post(&path, &[("x-api-key", "k")], &body).await;
        assert_eq!(answer.header("x-offcut"), Some("reduced"), "{format}");
        let sent = provider.last();
        let location = hint_in(sent.text());
        assert_eq!(
            std::fs::read_to_string(&location).unwrap(),
            result,
            "{format}"
        );
        // With the original in its place again, it is the client's own body.
        let mut shown: Value = serde_json::from_str(sent.text()).unwrap();
        put_back(&mut shown, &result);
        assert_eq!(
            shown,
            serde_json::from_str::<Value>(&body).unwrap(),
            "{format}"
        );
        // The same request once more gives the same bytes.
        server.post(&path, &[("x-api-key", "k")], &body).await;
        assert_eq!(provider.last().body, sent.body, "{format}");
    }
    // Another process over the same store too.
    let other = Server::with(crate::support::settings(&provider.url), &settings, &store).await;
    let seen = provider.seen();
    for (nth, format) in WireFormat::ALL.into_iter().enumerate() {
        let (path, body) = request(format, "a task", &long(format.name()), &shell());
        other.post(&path, &[], &body).await;
        assert_eq!(provider.last().body, seen[2 * nth].body, "{format}");
    }
    let metrics = server.get("/metrics").await;
    assert!(
        metrics
            .text()
            .contains("offcut_bytes_total{when=\"after\"}"),
        "{}",
        metrics.text()
    );
}

fn put_back(value: &mut Value, original: &str) {
    match value {
        Value::String(text) if Hint::parse(text).is_some() => *text = original.to_owned(),
        Value::Array(items) => items.iter_mut().for_each(|item| put_back(item, original)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|field| put_back(field, original)),
        _ => {}
    }
}

#[tokio::test]
async fn nothing_is_cut_that_the_model_could_not_read_back() {
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::reducing(&provider.url, &memory(), |_| ()).await;
    let weather = json!([{"type": "function", "function": {"name": "weather"}}]);
    for tools in [weather, shell()] {
        let (path, body) = request(WireFormat::OpenAiChat, "a task", &long("x"), &tools);
        let answer = server.post(&path, &[], &body).await;
        assert_eq!(answer.header("x-offcut"), Some("passed; reason=no-reader"));
        assert_eq!(provider.last().text(), body);
    }
    let server = Server::reducing(&provider.url, &memory(), |settings| {
        settings.cut_without_reader = true;
    })
    .await;
    let (path, body) = request(WireFormat::OpenAiChat, "a task", &long("x"), &shell());
    let answer = server.post(&path, &[], &body).await;
    assert_eq!(answer.header("x-offcut"), Some("reduced"));
}

#[tokio::test]
async fn through_a_proxy_no_path_of_this_machine_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Backend> = Arc::new(Fs::open(folder.path()).unwrap());
    let mut reduction = crate::support::reduction();
    reduction.backend_url = Some(folder.path().to_str().unwrap().to_owned().into());
    let provider = Provider::start(|_| ok("{}")).await;
    let mut settings = crate::support::settings(&provider.url);
    for (expose, outcome) in [(false, "reduced"), (true, "passed; reason=no-reader")] {
        settings.expose = expose;
        settings.tenant_key = Some("a secret of sixteen".to_owned().into());
        let server = Server::with(settings.clone(), &reduction, &store).await;
        let (path, body) = request(WireFormat::OpenAiChat, "a task", &long("x"), &shell());
        let key = [("Authorization", "Bearer k")];
        let answer = server.post(&path, &key, &body).await;
        assert_eq!(answer.header("x-offcut"), Some(outcome));
    }
}

#[tokio::test]
async fn a_loop_with_the_reader_as_its_tool_reads_what_was_cut() {
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::reducing(&provider.url, &memory(), |_| ()).await;
    let definitions: Value = serde_json::from_str(server.get("/v1/read").await.text()).unwrap();
    let key = [("Authorization", "Bearer planted")];
    for format in WireFormat::ALL {
        let definition = &definitions[format.name()];
        let result = long(format.name());
        let (path, body) = request(format, "a task", &result, &json!([definition]));
        let answer = server.post(&path, &key, &body).await;
        assert_eq!(answer.header("x-offcut"), Some("reduced"), "{format}");
        let location = hint_in(provider.last().text());
        let call = json!({"path": location, "offset": 1500, "limit": 2});
        let answer = server.post("/v1/read", &key, &call.to_string()).await;
        let page: Value = serde_json::from_str(answer.text()).unwrap();
        assert_eq!(page["is_error"], false, "{page}");
        let line = format!("line 1499 of {}\n", format.name());
        assert!(page["text"].as_str().unwrap().contains(&line), "{page}");
    }
    for wrong in [r#"{"path":"memory://other/trunc/x"}"#, "{}", "no JSON"] {
        let answer = server.post("/v1/read", &key, wrong).await;
        let page: Value = serde_json::from_str(answer.text()).unwrap();
        assert_eq!(page["is_error"], true, "{wrong}: {page}");
    }
}

#[tokio::test]
async fn on_loopback_reading_needs_the_key_that_storing_needed() {
    let provider = Provider::start(|seen| match seen.header("authorization") {
        Some("Bearer refused") => reply("401 Unauthorized", "application/json", "{}"),
        _ => ok("{}"),
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    // The store's own path looks like a conversation's.
    let folder = folder.path().join("c-00112233445566778899aabbccddeeff");
    let store: Arc<dyn Backend> = Arc::new(Fs::open(folder).unwrap());
    let open = |_: &str| Ok::<_, std::io::Error>(store.clone());
    let gateway = Gateway::reducing(
        crate::support::settings(&provider.url),
        &crate::support::reduction(),
        open,
    )
    .unwrap();
    let page = gateway.page().unwrap();
    let server = Server::run(gateway).await;
    let definitions: Value = serde_json::from_str(server.get("/v1/read").await.text()).unwrap();
    let tools = json!([definitions["openai-chat"]]);
    let conversation = |text: &str| request(WireFormat::OpenAiChat, text, &long(text), &tools);
    let bearer = |key: &str| format!("Bearer {key}");
    let send = async |text: &str, key: &str| {
        let (path, body) = conversation(text);
        let answer = server
            .post(&path, &[("Authorization", &bearer(key))], &body)
            .await;
        assert_eq!(answer.header("x-offcut"), Some("reduced"));
        hint_in(provider.last().text())
    };
    let read = async |headers: &[(&str, &str)], location: &str| {
        let call = json!({"path": location}).to_string();
        let answer = server.post("/v1/read", headers, &call).await;
        let status = answer.line.split(' ').nth(1).unwrap().to_owned();
        let has_advice = answer
            .text()
            .contains("Call once more in your next message");
        (status, answer.text().contains("line 1 of"), has_advice)
    };
    let (one, two) = (send("one", "a").await, send("two", "b").await);
    let without = {
        let (path, body) = conversation("three");
        server.post(&path, &[], &body).await;
        hint_in(provider.last().text())
    };
    // A key that the provider does not take reads nothing, not even what came with it.
    assert_eq!(send("one", "refused").await, one);
    let allowed = ("200".to_owned(), true, false);
    let denied = ("200".to_owned(), false, true);
    let other = one.replace("one", "two");
    for (key, location, expected) in [
        ("a", &one, &allowed),
        ("b", &two, &allowed),
        ("a", &two, &denied),
        ("b", &one, &denied),
        ("a", &without, &denied),
        ("refused", &one, &denied),
        ("unknown", &other, &denied),
    ] {
        let bearer = bearer(key);
        assert_eq!(
            &read(&[("Authorization", &bearer)], location).await,
            expected,
            "{key}"
        );
    }
    // The same key in another place is another one.
    assert_eq!(read(&[("x-api-key", "a")], &one).await, denied);
    // One conversation does not lead into another, however the path is put.
    let both = format!("{}/../../../{}", one, two.rsplit_once("serve/").unwrap().1);
    let (_, is_read, _) = read(&[("Authorization", "Bearer a")], &both).await;
    assert!(!is_read);
    let token = bearer(page.split_once('#').unwrap().1);
    for location in [&one, &two, &without] {
        assert_eq!(read(&[], location).await.0, "401");
        assert_eq!(read(&[("Authorization", &token)], location).await, allowed);
    }
}

#[tokio::test]
async fn l4_what_was_replaced_stays_so_if_the_tools_change() {
    let provider = Provider::start(|_| ok("{}")).await;
    let change = |settings: &mut ServeSettings| settings.cut_without_reader = true;
    let store: Arc<dyn Backend> = Arc::new(Memory::new());
    let read = json!([{"type": "function", "function": {"name": "Read"}}]);
    let mut sent = Vec::new();
    // The last ones through a process that has not seen the others.
    for lists in [
        [shell(), read.clone(), json!([])],
        [json!([]), read, shell()],
    ] {
        let server = Server::reducing(&provider.url, &store, change).await;
        for tools in lists {
            let (path, body) = request(WireFormat::OpenAiChat, "a task", &long("x"), &tools);
            let answer = server.post(&path, &[], &body).await;
            assert_eq!(answer.header("x-offcut"), Some("reduced"), "{tools}");
            let body: Value = serde_json::from_str(provider.last().text()).unwrap();
            sent.push(body["messages"].clone());
        }
    }
    sent.dedup();
    assert_eq!(sent.len(), 1, "{sent:?}");
}

#[tokio::test]
async fn nobody_computes_where_a_conversation_is_stored() {
    let provider = Provider::start(|_| ok("{}")).await;
    let (path, body) = request(WireFormat::OpenAiChat, "a task", &long("x"), &shell());
    let mut locations = Vec::new();
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    // The same store twice, through servers that follow each other, and another store.
    for folder in [&folders[0], &folders[0], &folders[1]] {
        let store: Arc<dyn Backend> = Arc::new(Fs::open(folder.path()).unwrap());
        let server = Server::reducing(&provider.url, &store, |settings| {
            settings.cut_without_reader = true;
        })
        .await;
        server.post(&path, &[], &body).await;
        let location = hint_in(provider.last().text());
        locations.push(location.split_once("/serve/").unwrap().1.to_owned());
    }
    assert_eq!(locations[0], locations[1]);
    assert_ne!(locations[0], locations[2]);
}

/// A server that other machines may reach, as far as its settings say.
fn exposed(settings: &mut ServeSettings) {
    settings.listen = ([0, 0, 0, 0], 1).into();
    settings.expose = true;
    settings.tenant_key = Some("a secret of sixteen".to_owned().into());
}

#[tokio::test]
async fn two_tenants_with_the_same_text_never_read_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Backend> = Arc::new(Fs::open(folder.path()).unwrap());
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::reducing(&provider.url, &store, exposed).await;
    let definitions: Value = serde_json::from_str(server.get("/v1/read").await.text()).unwrap();
    let tools = json!([definitions["openai-chat"]]);
    let (path, body) = request(WireFormat::OpenAiChat, "the same", &long("x"), &tools);
    let mut locations = Vec::new();
    for key in ["sk-planted-one", "sk-planted-two"] {
        let bearer = format!("Bearer {key}");
        let answer = server
            .post(&path, &[("Authorization", &bearer)], &body)
            .await;
        assert_eq!(answer.header("x-offcut"), Some("reduced"));
        locations.push(hint_in(provider.last().text()));
    }
    assert_ne!(locations[0], locations[1]);
    // A key leads to its folder.
    let asked =
        "GET /v1/tenant HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sk-planted-one\r\n\r\n";
    let asked = server.raw(asked.as_bytes()).await.unwrap();
    let asked: Value = serde_json::from_str(asked.text()).unwrap();
    let own = folder.path().join(asked["folder"].as_str().unwrap());
    assert!(locations[0].starts_with(own.to_str().unwrap()), "{own:?}");
    assert!(!locations[1].starts_with(own.to_str().unwrap()));
    assert_eq!(
        server.get("/v1/tenant").await.line,
        "HTTP/1.1 401 Unauthorized"
    );
    let read = async |key: &str, location: &str| {
        let bearer = format!("Bearer {key}");
        let call = json!({"path": location}).to_string();
        server
            .post("/v1/read", &[("Authorization", &bearer)], &call)
            .await
    };
    assert!(
        read("sk-planted-one", &locations[0])
            .await
            .text()
            .contains("line 1 of x")
    );
    for (key, location) in [
        ("sk-planted-one", &locations[1]),
        ("sk-planted-two", &locations[0]),
        ("other", &locations[0]),
    ] {
        let answer = read(key, location).await;
        assert!(
            answer.text().contains("\"is_error\":true") && !answer.text().contains("line 1 of x"),
            "{answer:?}"
        );
    }
    let without = server
        .post("/v1/read", &[], &json!({"path": locations[0]}).to_string())
        .await;
    assert_eq!(without.line, "HTTP/1.1 401 Unauthorized");
    let anonymous = server.post(&path, &[], &body).await;
    assert_eq!(
        anonymous.header("x-offcut"),
        Some("passed; reason=no-tenant")
    );

    let signed = [
        ("authorization", "Bearer sk-planted-one"),
        ("content-digest", "sha-256=:x:"),
    ];
    let signed = server.post(&path, &signed, &body).await;
    assert_eq!(signed.header("x-offcut"), Some("passed; reason=signed"));

    // The keys are in nothing that was stored, sent as text or counted.
    crate::support::assert_nothing_holds(folder.path(), "planted");
    for seen in provider.seen() {
        assert!(crate::support::find(&seen.body, b"planted").is_none());
    }
    assert!(!server.get("/metrics").await.text().contains("planted"));
}

#[tokio::test]
async fn a_400_to_a_changed_request_is_tried_once_with_the_original() {
    let provider = Provider::start(|seen| {
        if seen.text().contains("[offcut/1 ") {
            return reply(
                "400 Bad Request",
                "application/json",
                r#"{"error":{"message":"messages.2: not allowed"}}"#,
            );
        }
        ok("{\"taken\":true}")
    })
    .await;
    let server = Server::reducing(&provider.url, &memory(), |settings| {
        settings.cut_without_reader = true;
    })
    .await;
    let (path, body) = request(WireFormat::Anthropic, "a task", &long("x"), &shell());
    let answer = server.post(&path, &[], &body).await;
    assert_eq!(answer.text(), "{\"taken\":true}");
    assert_eq!(answer.header("x-offcut"), Some("passed; reason=refused"));
    assert_eq!(provider.seen().len(), 2);
    assert_eq!(provider.last().text(), body);
    // From now on, that conversation is left alone.
    let answer = server.post(&path, &[], &body).await;
    assert_eq!(answer.header("x-offcut"), Some("passed; reason=untouched"));
    assert_eq!(provider.seen().len(), 3);
    let metrics = server.get("/metrics").await;
    assert!(
        metrics
            .text()
            .contains("offcut_untouched_conversations_total 1"),
        "{}",
        metrics.text()
    );
}

#[tokio::test]
async fn a_prompt_that_is_too_long_is_the_clients_to_know() {
    let refusal = r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8 maximum"}}"#;
    let provider =
        Provider::start(move |_| reply("400 Bad Request", "application/json", refusal)).await;
    let server = Server::reducing(&provider.url, &memory(), |settings| {
        settings.cut_without_reader = true;
    })
    .await;
    let (path, body) = request(WireFormat::Anthropic, "a task", &long("x"), &shell());
    let answer = server.post(&path, &[], &body).await;
    assert_eq!(
        (answer.line.as_str(), answer.text()),
        ("HTTP/1.1 400 Bad Request", refusal)
    );
    assert_eq!(provider.seen().len(), 1);
}

#[tokio::test]
async fn a_count_repeats_what_was_decided_and_decides_nothing() {
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::reducing(&provider.url, &memory(), |settings| {
        settings.cut_without_reader = true;
    })
    .await;
    for format in [WireFormat::Anthropic, WireFormat::Gemini] {
        let (path, body) = request(format, format.name(), &long("x"), &shell());
        let count = match format {
            WireFormat::Anthropic => format!("{path}/count_tokens"),
            _ => path.replace(":generateContent", ":countTokens"),
        };
        let before = server.post(&count, &[], &body).await;
        assert_eq!(before.header("x-offcut"), Some("unchanged"));
        assert_eq!(provider.last().text(), body);
        server.post(&path, &[], &body).await;
        let reduced = provider.last();
        assert_ne!(reduced.text(), body);
        let after = server.post(&count, &[], &body).await;
        assert_eq!(after.header("x-offcut"), Some("reduced"));
        assert_eq!(provider.last().body, reduced.body);
    }
}

#[tokio::test]
async fn a_history_that_the_provider_keeps_is_no_failure() {
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::reducing(&provider.url, &memory(), |settings| {
        settings.on_failure = OnFailure::Refuse;
    })
    .await;
    let output = r#"{"type":"function_call_output","call_id":"c","output":"short"}"#;
    for (path, body) in [
        ("threads/t/messages", r#"{"role":"user","content":"x"}"#),
        ("responses", r#"{"previous_response_id":"r"}"#),
        ("responses", r#"{"prompt":{"id":"p"},"input":null}"#),
        ("responses", r#"{"conversation":"c","input":"x"}"#),
        (
            "responses",
            r#"{"conversation":"c","input":[{"type":"item_reference","id":"i"}]}"#,
        ),
        (
            "responses",
            &format!(r#"{{"previous_response_id":"r","input":[{output}]}}"#),
        ),
    ] {
        let answer = server.post(&format!("/openai/v1/{path}"), &[], body).await;
        assert_eq!(answer.line, "HTTP/1.1 200 OK", "{body}");
        assert_eq!(answer.header("x-offcut"), Some("unchanged"), "{body}");
        assert_eq!(provider.last().text(), body);
    }
    let passed = provider.seen().len();
    for body in [
        r#"{"input":{}}"#,
        r#"{"input":[1]"#,
        "1",
        r#"{"input":[],"input":[]}"#,
    ] {
        let answer = server.post("/openai/v1/responses", &[], body).await;
        assert_eq!(answer.line, "HTTP/1.1 503 Service Unavailable", "{body}");
    }
    assert_eq!(provider.seen().len(), passed);
}

#[tokio::test]
async fn a_request_without_tools_repeats_what_was_decided() {
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::reducing(&provider.url, &memory(), |settings| {
        settings.cut_without_reader = true;
    })
    .await;
    let (path, with) = request(WireFormat::Responses, "a task", &long("x"), &shell());
    let mut without: Value = serde_json::from_str(&with).unwrap();
    without.as_object_mut().unwrap().remove("tools");
    let without = without.to_string();
    server.post(&path, &[], &without).await;
    assert_eq!(provider.last().text(), without);
    server.post(&path, &[], &with).await;
    server.post(&path, &[], &without).await;
    hint_in(provider.last().text());
}

#[tokio::test]
async fn a_store_that_fails_lets_requests_pass_or_refuses_them() {
    let provider = Provider::start(|_| ok("{}")).await;
    let (path, body) = request(WireFormat::OpenAiChat, "a task", &long("x"), &shell());
    let broken = Faulty::new(Memory::new());
    broken.fault_on_every_write(Fault::Fail(ErrorKind::Unavailable));
    let broken: Arc<dyn Backend> = Arc::new(broken);
    let change = |settings: &mut ServeSettings| settings.cut_without_reader = true;
    let server = Server::reducing(&provider.url, &broken, change).await;
    let answer = server.post(&path, &[], &body).await;
    assert_eq!(answer.header("x-offcut"), Some("passed; reason=store"));
    assert_eq!(provider.last().text(), body);
    let server = Server::reducing(&provider.url, &broken, |settings| {
        change(settings);
        settings.on_failure = OnFailure::Refuse;
    })
    .await;
    let answer = server.post(&path, &[], &body).await;
    assert_eq!(answer.line, "HTTP/1.1 503 Service Unavailable");
    assert_eq!(answer.header("x-offcut"), Some("refused; reason=store"));
    assert_eq!(provider.seen().len(), 1);
    let metrics = server.get("/metrics").await;
    let counts: Vec<&str> = metrics
        .text()
        .lines()
        .filter(|line| line.starts_with("offcut_requests_total{"))
        .collect();
    assert_eq!(
        counts,
        ["offcut_requests_total{upstream=\"openai\",outcome=\"refused\"} 1"]
    );
}

/// They look, if nothing is stored meanwhile.
#[tokio::test]
async fn metrics_tell_whether_the_store_takes_content_now() {
    let provider = Provider::start(|_| ok("{}")).await;
    let faulty = Arc::new(Faulty::new(Memory::new()));
    let store: Arc<dyn Backend> = faulty.clone();
    let server = Server::reducing(&provider.url, &store, |_| ()).await;
    for (fault, expected) in [(None, "1"), (Some(ErrorKind::Denied), "0"), (None, "1")] {
        faulty.heal();
        fault.map(|kind| faulty.fault_on_every_write(Fault::Fail(kind)));
        // An answer counts as fresh for three seconds.
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(4)).await;
        tokio::time::resume();
        let metrics = server.get("/metrics").await;
        let lines = metrics.text().lines();
        let mut lines = lines.filter(|line| line.starts_with("offcut_store_available"));
        assert_eq!(lines.next().unwrap().rsplit(' ').next(), Some(expected));
    }
}

#[tokio::test]
async fn a_store_that_is_down_is_not_asked_for_each_request() {
    let provider = Provider::start(|_| ok("{}")).await;
    let faulty = Arc::new(Faulty::new(Memory::new()));
    let store: Arc<dyn Backend> = faulty.clone();
    let change = |settings: &mut ServeSettings| settings.cut_without_reader = true;
    let server = Server::reducing(&provider.url, &store, change).await;
    assert_eq!(server.get("/readyz").await.text(), "ok\n");
    faulty.fault_on_every_read(Fault::Fail(ErrorKind::Unavailable));
    faulty.fault_on_every_write(Fault::Fail(ErrorKind::Unavailable));
    let asked = faulty.reads() + faulty.writes();
    let (path, body) = request(WireFormat::OpenAiChat, "a task", &long("x"), &shell());
    for _ in 0..20 {
        let answer = server.post(&path, &[], &body).await;
        assert_eq!(answer.header("x-offcut"), Some("passed; reason=store"));
        assert_eq!(provider.last().text(), body);
    }
    assert!(faulty.reads() + faulty.writes() <= asked + 6, "{faulty:?}");
    let ready = server.get("/readyz").await;
    assert_eq!(ready.line, "HTTP/1.1 503 Service Unavailable");
    assert_eq!(server.get("/healthz").await.text(), "ok\n");
}

#[tokio::test]
async fn a_store_that_was_never_read_fails_no_request_with_nothing_to_replace() {
    let provider = Provider::start(|_| ok("{}")).await;
    let faulty = Arc::new(Faulty::new(Memory::new()));
    faulty.fault_on_every_read(Fault::Fail(ErrorKind::Unavailable));
    let store: Arc<dyn Backend> = faulty;
    let server = Server::reducing(&provider.url, &store, |settings| {
        settings.on_failure = OnFailure::Refuse;
    })
    .await;
    let (path, body) = request(WireFormat::OpenAiChat, "a task", &long("x"), &shell());
    let hello = json!({"messages": [{"role": "user", "content": "hi"}]}).to_string();
    for (body, outcome) in [(&hello, "unchanged"), (&body, "passed; reason=no-reader")] {
        let answer = server.post(&path, &[], body).await;
        assert_eq!(answer.header("x-offcut"), Some(outcome));
    }
}

/// The store fails after the first result, so that a longer history is reduced in part.
#[tokio::test]
async fn a_store_that_fails_for_a_part_counts_as_one_that_fails() {
    for on_failure in [OnFailure::Pass, OnFailure::Refuse] {
        let provider = Provider::start(|_| ok("{}")).await;
        let faulty = Arc::new(Faulty::new(Memory::new()));
        let store: Arc<dyn Backend> = faulty.clone();
        let server = Server::reducing(&provider.url, &store, |settings| {
            settings.cut_without_reader = true;
            settings.on_failure = on_failure;
        })
        .await;
        let (path, body) = request(WireFormat::OpenAiChat, "a task", &long("x"), &shell());
        let answer = server.post(&path, &[], &body).await;
        assert_eq!(answer.header("x-offcut"), Some("reduced"));
        let mut longer: Value = serde_json::from_str(&body).unwrap();
        let messages = longer["messages"].as_array_mut().unwrap();
        for (nth, field) in [(1, "/tool_calls/0/id"), (2, "/tool_call_id")] {
            let mut again = messages[nth].clone();
            *again.pointer_mut(field).unwrap() = json!("call_2");
            messages.push(again);
        }
        messages[4]["content"] = json!(long("y"));
        let longer = longer.to_string();
        faulty.fault_on_every_write(Fault::Fail(ErrorKind::Other));
        let answer = server.post(&path, &[], &longer).await;
        if on_failure == OnFailure::Refuse {
            assert_eq!(answer.line, "HTTP/1.1 503 Service Unavailable");
            assert_eq!(provider.seen().len(), 1);
        } else {
            assert_eq!(answer.header("x-offcut"), Some("reduced; reason=store"));
            let sent = provider.last();
            hint_in(sent.text());
            assert!(sent.text().contains("line 1999 of y"));
        }
        // Without tools, nothing is decided and nothing stored: what is known is repeated.
        faulty.fault_on_every_read(Fault::Fail(ErrorKind::Other));
        let mut without: Value = serde_json::from_str(&longer).unwrap();
        without.as_object_mut().unwrap().remove("tools");
        let answer = server.post(&path, &[], &without.to_string()).await;
        if on_failure == OnFailure::Refuse {
            assert_eq!(answer.line, "HTTP/1.1 503 Service Unavailable");
        } else {
            assert_eq!(answer.header("x-offcut"), Some("reduced; reason=store"));
        }
        faulty.heal();
        let metrics = server.get("/metrics").await;
        let counted = "offcut_unreduced_total{reason=\"store\"} 2";
        assert!(metrics.text().contains(counted), "{}", metrics.text());
        let answer = server.post(&path, &[], &longer).await;
        assert_eq!(answer.header("x-offcut"), Some("reduced"));
    }
}

#[tokio::test]
async fn a_thread_is_told_to_send_its_history() {
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::reducing(&provider.url, &memory(), |_| ()).await;
    let body =
        r#"{"thread":{"type":"continue","id":"t"},"messages":[{"role":"user","content":"x"}]}"#;
    let answer = server.post("/v1/messages", &[], body).await;
    assert_eq!(answer.line, "HTTP/1.1 400 Bad Request");
    let error: Value = serde_json::from_str(answer.text()).unwrap();
    assert_eq!(
        error["error"]["details"]["error_code"],
        "thread_unsupported_request"
    );
    assert_eq!(provider.seen(), []);
}

#[tokio::test]
async fn only_new_results_are_cut_after_an_earlier_response() {
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::reducing(&provider.url, &memory(), |settings| {
        settings.cut_without_reader = true;
    })
    .await;
    let body = json!({"model": "m", "previous_response_id": "resp_1", "tools": shell(), "input": [
        {"type": "function_call_output", "call_id": "call_1", "output": long("x")},
    ]});
    let answer = server.post("/v1/responses", &[], &body.to_string()).await;
    assert_eq!(answer.header("x-offcut"), Some("reduced"));
    hint_in(provider.last().text());
}

#[tokio::test]
async fn many_clients_at_once_get_their_own_replies() {
    let provider = Provider::start(|seen| {
        let body: Value = serde_json::from_str(seen.text()).unwrap();
        ok(&json!({"task": body["messages"][0]["content"]}).to_string())
    })
    .await;
    let server = Arc::new(
        Server::reducing(&provider.url, &memory(), |settings| {
            settings.cut_without_reader = true;
        })
        .await,
    );
    let done = Arc::new(AtomicUsize::new(0));
    let tasks = (0..50).map(|n| {
        let (server, done) = (server.clone(), done.clone());
        tokio::spawn(async move {
            let task = format!("task {n}");
            let (path, body) = request(WireFormat::OpenAiChat, &task, &long(&task), &shell());
            let answer = server.post(&path, &[], &body).await;
            assert_eq!(answer.header("x-offcut"), Some("reduced"));
            assert_eq!(answer.text(), json!({"task": task}).to_string());
            done.fetch_add(1, Ordering::Relaxed);
        })
    });
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(done.load(Ordering::Relaxed), 50);
    let by_task: BTreeMap<String, String> = provider
        .seen()
        .iter()
        .map(|seen| {
            let body: Value = serde_json::from_str(seen.text()).unwrap();
            (
                body["messages"][0]["content"].to_string(),
                hint_in(seen.text()),
            )
        })
        .collect();
    assert_eq!(by_task.len(), 50);
}
