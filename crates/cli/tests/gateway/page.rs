//! The live page: figures without content, for whoever has the token of the start.

use std::io::Write;
use std::sync::{Arc, Mutex};

use crate::support::{Provider, Seen, Server, memory, ok, reduction, reply, settings};
use offcut_cli::gateway::Gateway;
use serde_json::{Value, json};

/// A server that cuts, and the token of its page.
async fn started(url: &str) -> (Server, String) {
    let mut serve = settings(url);
    serve.cut_without_reader = true;
    let store = memory();
    let open = move |_: &str| Ok::<_, std::io::Error>(store.clone());
    let gateway = Gateway::reducing(serve, &reduction(), open).unwrap();
    let page = gateway.page().unwrap();
    let token = page.strip_prefix("/page#").unwrap().to_owned();
    assert_eq!(token.len(), 32);
    (Server::run(gateway).await, token)
}

async fn get(server: &Server, path: &str, headers: &str) -> Seen {
    let request = format!("GET {path} HTTP/1.1\r\n{headers}\r\n");
    server.raw(request.as_bytes()).await.unwrap()
}

async fn figures(server: &Server, token: &str, path: &str) -> Value {
    let headers = format!("Host: 127.0.0.1:9\r\nAuthorization: Bearer {token}\r\n");
    let answer = get(server, path, &headers).await;
    assert_eq!(answer.line, "HTTP/1.1 200 OK", "{answer:?}");
    serde_json::from_str(answer.text()).unwrap()
}

/// The request of call `n` of a conversation, with results of planted text.
fn request(task: &str, n: usize) -> String {
    let mut messages = vec![json!({"role": "user", "content": task})];
    for at in 0..n {
        let id = format!("call_{task}_{at}");
        let call = json!({"id": id, "type": "function", "function": {"name": "run<b>", "arguments": "{}"}});
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        let result = format!("planted line of {task} at {at}\n").repeat(1_000);
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": result}));
    }
    let tools = json!([{"type": "function", "function": {"name": "run<b>"}}]);
    json!({"model": "m", "messages": messages, "tools": tools}).to_string()
}

#[tokio::test]
async fn a_miss_of_the_cache_is_named_everywhere() {
    let provider = Provider::start(|_| ok("{}")).await;
    let (server, token) = started(&provider.url).await;
    let path = "/v1/chat/completions";
    let first = server.post(path, &[], &request("one", 20)).await;
    assert_eq!(first.header("x-offcut-cache"), None);
    let fine = server.post(path, &[], &request("one", 21)).await;
    assert_eq!(fine.header("x-offcut-cache"), None);
    let renamed = request("one", 22).replace(r#""tools":[{"#, r#""tools":[{"strict":true,"#);
    let missed = server.post(path, &[], &renamed).await;
    let said = missed.header("x-offcut-cache").unwrap().to_owned();
    let bytes: usize = said.rsplit('=').next().unwrap().parse().unwrap();
    assert_eq!(
        said,
        format!("missed; reason=tools; part=\"tool 1\"; bytes={bytes}")
    );
    let before = provider.seen()[1].body.len();
    assert!(
        bytes < before && bytes > before - 500,
        "all of it but the tool: {bytes} of {before}"
    );
    let all = figures(&server, &token, "/page/figures?since=0").await;
    assert_eq!(all["misses"][0]["kind"], "tools");
    assert_eq!(all["misses"][0]["bytes"], bytes);
    let one = figures(&server, &token, "/page/conversations/1").await;
    assert_eq!(
        (&one["misses"][0]["call"], &one["misses"][0]["part"]),
        (&json!(3), &json!("tool 1"))
    );
    let metrics = server.get("/metrics").await;
    let counted =
        format!("offcut_cache_missed_bytes_total{{upstream=\"openai\",reason=\"tools\"}} {bytes}");
    assert!(metrics.text().contains(&counted), "{}", metrics.text());
}

#[tokio::test]
async fn senders_are_told_apart_everywhere() {
    let usage =
        json!({"usage": {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 40}}});
    let provider = Provider::start(move |_| ok(&usage.to_string())).await;
    let (server, token) = started(&provider.url).await;
    let path = "/v1/chat/completions";
    let agent = [("User-Agent", "codex_cli_rs/0.169.0 (Debian)")];
    server.post(path, &agent, &request("one", 20)).await;
    server.post(path, &agent, &request("two", 1)).await;
    let gemini = json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]});
    let path = "/gemini/v1beta/models/gemini-9:generateContent";
    server.post(path, &[], &gemini.to_string()).await;
    let all = figures(&server, &token, "/page/figures?since=0").await;
    let [unknown, codex] = &all["senders"].as_array().unwrap()[..] else {
        panic!("{all}");
    };
    assert_eq!(
        [
            &codex["tenant"],
            &codex["model"],
            &codex["client"],
            &codex["calls"]
        ],
        [
            &json!("serve"),
            &json!("m"),
            &json!("codex_cli_rs"),
            &json!(2)
        ]
    );
    assert_eq!(
        (&codex["fresh_tokens"], &codex["cached_tokens"]),
        (&json!(120), &json!(80))
    );
    assert!(codex["after"].as_u64() < codex["before"].as_u64());
    assert_eq!(
        (&unknown["model"], &unknown["client"]),
        (&json!("gemini-9"), &json!("unknown"))
    );
    let one = figures(&server, &token, "/page/conversations/1").await;
    assert_eq!(one["whose"]["client"], "codex_cli_rs");
    let metrics = server.get("/metrics").await;
    let labels = "tenant=\"serve\",model=\"m\",client=\"codex_cli_rs\"";
    for line in [
        format!("offcut_sender_tokens_total{{{labels},kind=\"cached\"}} 80"),
        format!(
            "offcut_sender_bytes_total{{{labels},when=\"before\"}} {}",
            codex["before"]
        ),
        format!(
            "offcut_sender_bytes_total{{{labels},when=\"after\"}} {}",
            codex["after"]
        ),
    ] {
        assert!(
            metrics.text().contains(&line),
            "{line} in {}",
            metrics.text()
        );
    }
}

#[tokio::test]
async fn the_figures_say_what_was_sent_and_replaced_and_hold_no_content() {
    let provider = Provider::start(|seen| {
        if seen.text().contains("refused") && seen.text().contains("[offcut/1 ") {
            return reply("400 Bad Request", "application/json", "{}");
        }
        ok("{}")
    })
    .await;
    let (server, token) = started(&provider.url).await;
    let (mut would, mut fresh) = (0, 0);
    for n in 1..=5 {
        for task in ["one", "two"] {
            let body = request(task, n);
            would += body.len();
            // A provider's cache holds the call before, and tools come first there.
            fresh += body.len();
            if n > 1 {
                fresh -= request(task, n - 1).len() + ",,".len();
            }
            server.post("/v1/chat/completions", &[], &body).await;
        }
    }
    let sent: usize = provider.seen().iter().map(|seen| seen.body.len()).sum();
    let all = figures(&server, &token, "/page/figures?since=0").await;
    let shown = |name: &str| all[name].as_u64().unwrap();
    assert_eq!(shown("before"), would as u64);
    assert_eq!(shown("after"), sent as u64);
    assert_eq!(shown("before_fresh"), fresh as u64);
    assert!(shown("after_fresh") < fresh as u64 / 2, "{all}");
    assert_eq!((shown("calls"), shown("cut"), shown("known")), (10, 10, 2));
    assert_eq!(all["passed"], json!([]));
    let one = &all["conversations"][0];
    assert_eq!((&one["calls"], &one["cut"]), (&json!(5), &json!(5)));
    let detail = figures(&server, &token, "/page/conversations/1").await;
    assert_eq!(detail["sizes"].as_array().unwrap().len(), 5);
    let change = &detail["changes"][4];
    assert_eq!(
        (
            &change["call"],
            &change["what"],
            &change["tool"],
            &change["why"]
        ),
        (
            &json!(5),
            &json!("cut"),
            &json!("run<b>"),
            &json!("over the limit")
        )
    );
    assert!(change["after"].as_u64().unwrap() < change["before"].as_u64().unwrap());
    assert_eq!(
        (&all["misses"], &detail["misses"]),
        (&json!([]), &json!([]))
    );
    // Only what has changed since is told again.
    let since = format!("/page/figures?since={}", all["changed"]);
    let quiet = figures(&server, &token, &since).await;
    assert_eq!(quiet["conversations"], json!([]));

    server
        .post("/v1/chat/completions", &[], &request("refused", 1))
        .await;
    let after = figures(&server, &token, &since).await;
    assert_eq!(after["conversations"].as_array().unwrap().len(), 1);
    assert_eq!(after["passed"][0]["reason"], "refused");
    let taken = sent + provider.last().body.len();
    assert_eq!(
        after["after"], taken as u64,
        "no provider bills what it refuses"
    );
    assert_eq!(after["cut"], 10, "what was taken is the original");
    let refused = figures(&server, &token, "/page/conversations/3").await;
    assert_eq!(refused["changes"], json!([]));
    for shown in [&all, &detail, &after] {
        assert!(!shown.to_string().contains("planted"), "{shown}");
    }
}

#[tokio::test]
async fn a_missing_token_and_a_forged_host_are_refused() {
    let (server, token) = started("http://127.0.0.1:1").await;
    for path in [
        "/page/figures?since=0",
        "/page/conversations/1",
        "/page/other",
    ] {
        for headers in [
            String::new(),
            "Authorization: Bearer\r\n".to_owned(),
            format!("Authorization: Bearer {token}0\r\n"),
            format!("Authorization: Basic {token}\r\n"),
            format!("X-Token: {token}\r\n"),
        ] {
            let refused = get(&server, path, &format!("Host: localhost\r\n{headers}")).await;
            assert_eq!(
                refused.line, "HTTP/1.1 401 Unauthorized",
                "{path} {headers}"
            );
        }
        let query = format!("{path}?token={token}");
        let refused = get(&server, &query, "Host: localhost\r\n").await;
        assert_eq!(refused.line, "HTTP/1.1 401 Unauthorized");
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:8787",
        ] {
            let headers = format!("Host: {host}\r\nAuthorization: Bearer {token}\r\n");
            let refused = get(&server, path, &headers).await;
            assert_eq!(refused.line, "HTTP/1.1 421 Misdirected Request", "{host}");
        }
    }
    for path in ["/page", "/page/page.css", "/page/page.js"] {
        let answer = get(&server, path, "Host: localhost\r\n").await;
        assert_eq!(answer.line, "HTTP/1.1 200 OK");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        assert!(!answer.text().contains(&token));
        assert!(
            !answer.text().contains("https://"),
            "another host in {path}"
        );
    }
}

#[tokio::test]
async fn where_others_may_connect_the_page_is_still_for_this_machine() {
    let mut serve = settings("http://127.0.0.1:1");
    serve.listen = ([0, 0, 0, 0], 2).into();
    serve.expose = true;
    serve.tenant_key = Some("a secret of sixteen".to_owned().into());
    let server = Server::with(serve, &reduction(), &memory()).await;
    let refused = get(&server, "/page", "Host: team.example\r\n").await;
    assert_eq!(refused.line, "HTTP/1.1 421 Misdirected Request");
}

#[tokio::test]
async fn an_address_that_is_listened_on_is_the_pages_own() {
    let mut serve = settings("http://127.0.0.1:1");
    serve.listen = ([10, 9, 8, 7], 1).into();
    serve.expose = true;
    serve.tenant_key = Some("a secret of sixteen".to_owned().into());
    let server = Server::with(serve, &reduction(), &memory()).await;
    for (host, line) in [
        ("10.9.8.7:1", "HTTP/1.1 200 OK"),
        ("10.9.8.8:1", "HTTP/1.1 421 Misdirected Request"),
        (
            "10.9.8.7.evil.example:1",
            "HTTP/1.1 421 Misdirected Request",
        ),
    ] {
        let answer = get(&server, "/page", &format!("Host: {host}\r\n")).await;
        assert_eq!(answer.line, line, "{host}");
    }
}

#[tokio::test]
async fn reads_are_counted_by_the_calls_that_name_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let provider = Provider::start(|_| ok("{}")).await;
    let mut reduction = reduction();
    reduction.backend_url = Some(folder.path().to_str().unwrap().to_owned().into());
    let store = memory();
    let open = move |_: &str| Ok::<_, std::io::Error>(store.clone());
    let gateway = Gateway::reducing(settings(&provider.url), &reduction, open).unwrap();
    let page = gateway.page().unwrap();
    let server = Server::run(gateway).await;
    let mut messages = vec![json!({"role": "user", "content": "a task"})];
    let mut add = |command: &str| {
        let id = format!("call_{}", messages.len());
        let arguments = json!({"command": command}).to_string();
        let call = json!({"id": id, "type": "function", "function": {"name": "Bash", "arguments": arguments}});
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": "short"}));
        let tools = json!([{"type": "function", "function": {"name": "Bash"}}]);
        json!({"model": "m", "messages": messages, "tools": tools}).to_string()
    };
    let store = folder.path().display();
    let page_read = format!("sed -n 1,9p {store}/c/trunc/call_1");
    let (mut would, mut before) = (0, 0);
    for (command, reads) in [
        ("make", 0),
        (&*page_read, 1),
        (&format!("ls {store}-2"), 1),
        (&format!("grep -n x '{store}/c/trunc/call_1'"), 2),
    ] {
        let body = add(command);
        // A client that tries again has read nothing more.
        for _ in 0..2 {
            server.post("/v1/chat/completions", &[], &body).await;
            let address = format!("http://{}{page}", server.address);
            let figures = offcut_cli::gateway::figures(&address).await.unwrap();
            assert_eq!(figures["reads"], reads, "{command}");
            assert_eq!(figures["conversations"][0]["reads"], reads, "{command}");
            let metrics = server.get("/metrics").await;
            let counted = format!("\noffcut_reads_total {reads}\n");
            assert!(metrics.text().contains(&counted), "{command}");
            // Nobody would have sent what only tells of reads.
            would += if reads > before { 0 } else { body.len() };
            assert_eq!(figures["before"], would, "{command}");
        }
        before = reads;
    }
}

#[tokio::test]
async fn calls_of_the_plug_have_a_row_for_each_tenant() {
    let key = "planted-key-of-team-one";
    let mut serve = settings("http://127.0.0.1:1");
    let tenant = "one".to_owned();
    serve.compress_keys.insert(tenant, key.to_owned().into());
    let store = memory();
    let open = move |_: &str| Ok::<_, std::io::Error>(store.clone());
    let gateway = Gateway::reducing(serve, &reduction(), open).unwrap();
    let page = gateway.page().unwrap();
    let server = Server::run(gateway).await;
    let bearer = format!("Bearer {key}");
    let headers = [("Authorization", &*bearer)];
    let result = "planted line of a result\n".repeat(1_000);
    let row = json!({"role": "tool", "tool_call_id": "a", "name": "run", "content": result});
    let body = json!({"messages": [row], "model": "m"}).to_string();
    let answer = server.post("/v1/compress", &headers, &body).await;
    server.post("/v1/compress", &headers, &body).await;
    let reply: Value = serde_json::from_str(answer.text()).unwrap();
    let hash = reply["ccr_hashes"][0].as_str().unwrap();
    let path = format!("/v1/retrieve/{hash}");
    let named = format!("Host: localhost\r\nAuthorization: {bearer}\r\n");
    let read = get(&server, &path, &named).await;
    assert_eq!(read.line, "HTTP/1.1 200 OK");

    let address = format!("http://{}{page}", server.address);
    let figures = offcut_cli::gateway::figures(&address).await.unwrap();
    let row = &figures["conversations"][0];
    for shown in [row, &figures] {
        for (name, number) in [("calls", 2), ("cut", 1), ("cleared", 0), ("reads", 1)] {
            assert_eq!(shown[name], number, "{name} {figures}");
        }
        // Nothing is known of the provider's cache.
        assert_eq!(
            (&shown["before_fresh"], &shown["after_fresh"]),
            (&json!(0), &json!(0))
        );
        assert!(shown["before"].as_u64() > Some(50_000), "{shown}");
        assert!(shown["after"].as_u64() < Some(20_000), "{shown}");
    }
    assert_eq!(row["upstream"], "plug one");
    for secret in [key, "planted", hash] {
        assert!(!figures.to_string().contains(secret), "{figures}");
    }
}

#[tokio::test]
async fn a_compressed_request_is_as_long_as_its_text() {
    let provider = Provider::start(|_| ok("{}")).await;
    let (server, token) = started(&provider.url).await;
    let body = request("one", 1);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(body.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        gzip.len()
    );
    let answer = server
        .raw(&[head.as_bytes(), &gzip].concat())
        .await
        .unwrap();
    assert_eq!(answer.header("x-offcut"), Some("reduced"));
    let all = figures(&server, &token, "/page/figures?since=0").await;
    let sent = provider.last().body.len();
    assert_eq!(
        (&all["before"], &all["after"]),
        (&json!(body.len()), &json!(sent))
    );
}

#[tokio::test]
async fn a_listener_is_told_of_every_request_and_the_page_has_the_card() {
    let provider = Provider::start(|_| ok("{}")).await;
    let mut serve = settings(&provider.url);
    serve.cut_without_reader = true;
    let store = memory();
    let open = move |_: &str| Ok::<_, std::io::Error>(store.clone());
    let gateway = Gateway::reducing(serve, &reduction(), open).unwrap();
    let told = Arc::<Mutex<Vec<_>>>::default();
    let records = told.clone();
    let card =
        json!({"cached": 0.3, "fresh": 3.0, "currency": "USD", "source": "a list, 2026-01-31"});
    let gateway = gateway
        .on_request(move |record| records.lock().unwrap().push(record.clone()))
        .with_card(card.clone());
    let page = gateway.page().unwrap();
    let server = Server::run(gateway).await;
    // Before the first call of a tool, conversations can't be told apart.
    for n in [0, 1, 1] {
        server
            .post("/v1/chat/completions", &[], &request("one", n))
            .await;
    }
    server.post("/v1/chat/completions", &[], "no JSON").await;
    let told = told.lock().unwrap().clone();
    let names = told.iter().map(|record| record.conversation.is_some());
    assert_eq!(names.collect::<Vec<_>>(), [false, true, true, false]);
    assert_eq!((told[1].cut, told[2].cut), (1, 0));
    assert_eq!(told[2].before.fresh, 0, "nothing is new in the second try");
    assert_eq!(told[2].before.bytes(), request("one", 1).len() as u64);

    let address = |page: &str| format!("http://{}{page}", server.address);
    let figures = offcut_cli::gateway::figures(&address(&page)).await.unwrap();
    assert_eq!(
        (&figures["calls"], &figures["known"]),
        (&json!(4), &json!(1))
    );
    assert_eq!(figures["card"], card);

    let error = async |address: &str| {
        let figures = offcut_cli::gateway::figures(address).await;
        figures.unwrap_err().to_string()
    };
    let other = format!("{}/page#00", provider.url);
    for (address, problem) in [
        (&*address("/page#00"), "the token is not this server's"),
        ("http://127.0.0.1:1/page#00", "refused"),
        (&*other, "is not a server of Offcut"),
    ] {
        let error = error(address).await;
        assert!(error.contains(problem), "{address}: {error}");
    }
    for wrong in [
        &*address(""),
        "127.0.0.1:1/page#00",
        "https://127.0.0.1:1/page#00",
        "http://127.0.0.1:1/other#00",
        "http:///page#00",
        "http://127.0.0.1:1/page#a\r\nX-Forged: 1",
    ] {
        let error = error(wrong).await;
        assert!(error.contains("the one that the server printed"), "{wrong}");
    }
}
