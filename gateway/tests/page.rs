//! The live page: figures without content, for whoever has the token of the start.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't be set up has failed"
)]

mod support;

use offcut_gateway::Gateway;
use serde_json::{Value, json};
use support::{Provider, Seen, Server, memory, ok, reduction, reply, settings};

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
async fn the_figures_say_what_was_sent_and_replaced_and_hold_no_content() {
    let provider = Provider::start(|seen| {
        if seen.text().contains("refused") && seen.text().contains("[offcut/1 ") {
            return reply("400 Bad Request", "application/json", "{}");
        }
        ok("{}")
    })
    .await;
    let (server, token) = started(&provider.url).await;
    let mut would = 0;
    for n in 1..=5 {
        for task in ["one", "two"] {
            let body = request(task, n);
            would += body.len();
            server.post("/v1/chat/completions", &[], &body).await;
        }
    }
    let sent: usize = provider.seen().iter().map(|seen| seen.body.len()).sum();
    let all = figures(&server, &token, "/page/figures?since=0").await;
    let shown = |name: &str| all[name].as_u64().unwrap();
    assert_eq!(shown("would"), would as u64);
    assert_eq!(shown("sent"), sent as u64);
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
    let sent: usize = provider.seen().iter().map(|seen| seen.body.len()).sum();
    assert_eq!(after["sent"], sent as u64, "both requests went out");
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
    serve.listen = ([0, 0, 0, 0], 1).into();
    serve.expose = true;
    serve.tenant_key = Some("a secret of sixteen".to_owned().into());
    let server = Server::run(Gateway::new(serve).unwrap()).await;
    let refused = get(&server, "/page", "Host: team.example\r\n").await;
    assert_eq!(refused.line, "HTTP/1.1 421 Misdirected Request");
}
