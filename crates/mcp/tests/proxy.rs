//! Clients over HTTP on loopback, with an endpoint in front of a server over HTTP.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
mod http_client;
mod http_server;

use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::http::Response;
use common::{hint_in, log, logged, reduction};
use http_client::{Client, SESSION, listen};
use http_server::{Answer, Seen, Server, events, json_answer, result, status};
use offcut_mcp::{McpEndpoint, McpGateway};
use serde_json::{Value, json};

fn request(id: u32, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn call(id: u32, tool: &str) -> Value {
    request(id, "tools/call", &json!({"name": tool, "arguments": {}}))
}

fn read(id: u32, path: &str) -> Value {
    let arguments = json!({"path": path, "offset": 500});
    request(
        id,
        "tools/call",
        &json!({"name": "read_file", "arguments": arguments}),
    )
}

/// A server that gives a session, and long results in JSON.
fn usual(seen: &Seen) -> Answer {
    match &*seen.name() {
        "initialize" => {
            let mut answer = json_answer(&result(seen, &json!({"protocolVersion": "2025-11-25"})));
            let id = format!("s-{}", seen.header("authorization").unwrap_or("none").len());
            answer.headers_mut().insert(SESSION, id.parse().unwrap());
            answer
        }
        "tools/list" => {
            let tools = json!([{"name": "log", "inputSchema": {"type": "object"}}]);
            json_answer(&result(seen, &json!({"tools": tools})))
        }
        "tools/call" => json_answer(&result(
            seen,
            &json!({"content": [{"type": "text", "text": log()}]}),
        )),
        _ => status(202),
    }
}

async fn before(server: &Server) -> Client {
    let gateway = Arc::new(McpGateway::new(reduction()));
    listen(McpEndpoint::before(gateway, server.remote())).await
}

/// The place of the stored result that an answer leads to.
async fn stored(mut answer: http_client::Answer) -> String {
    let shown = answer.message().await.unwrap();
    hint_in(&shown)
        .unwrap()
        .location
        .unwrap()
        .as_str()
        .to_owned()
}

#[tokio::test]
async fn requests_pass_with_their_headers_and_long_results_are_shortened() {
    let server = Server::start(usual).await;
    let mut client = before(&server).await;
    client.set("x-of-client", "kept");
    client.set("accept-encoding", "gzip");
    client.set("cookie", "a=b");
    let mut answer = client.post(&request(0, "initialize", &json!({}))).await;
    let id = answer.header(SESSION).unwrap().to_owned();
    assert_eq!(answer.message().await.unwrap()["id"], 0);
    client.set(SESSION, &id);
    // The gateway asks for the tools first.
    let path = stored(client.post(&call(1, "log")).await).await;
    assert_eq!(server.names(), ["initialize", "tools/list", "tools/call"]);
    let page = client.post(&read(2, &path)).await.body().await;
    assert!(
        page.contains("00499") && page.contains("\"id\":2"),
        "{page}"
    );
    let listed = client
        .post(&request(3, "tools/list", &json!({})))
        .await
        .body()
        .await;
    assert!(listed.contains("read_file"), "{listed}");
    assert_eq!(
        client
            .post(&json!({"method": "notifications/x"}))
            .await
            .status,
        202
    );
    assert_eq!(client.delete().await.status, 202);
    let seen = server.seen();
    assert_eq!(seen.len(), 6, "the server does not see the reader");
    for one in [&seen[0], &seen[2], &seen[5]] {
        assert_eq!(one.header("x-of-client"), Some("kept"));
        assert_eq!(one.header("cookie"), Some("a=b"));
        assert_eq!(one.header("accept-encoding"), None);
        assert_eq!(one.header("host"), server.url.split('/').nth(2));
    }
    for one in &seen[1..] {
        assert_eq!(one.header(SESSION), Some(&*id));
    }
    assert_eq!(seen[5].method, "DELETE");
}

#[tokio::test]
async fn a_stream_passes_byte_for_byte_but_for_a_long_result() {
    let said = |id: &Value| {
        let long = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#,
            json!({"content": [{"type": "text", "text": log()}]})
        );
        format!(
            ": hello\n\nid: 1\nretry: 20\ndata:\n\nevent: ping\r\ndata: {{\"id\":{id}}}\r\n\r\nid: 2\ndata: {{\"method\" : \"x\",\ndata:\"n\":1.00}}\n\nid: 3\nevent: message\ndata: {long}\n\ndata: cut"
        )
    };
    let server = Server::start(move |seen| match &*seen.name() {
        "tools/call" => events(&said(&seen.message()["id"]), false),
        "GET" => events(&said(&json!(7)), false),
        _ => usual(seen),
    })
    .await;
    let mut client = before(&server).await;
    client.post(&request(0, "initialize", &json!({}))).await;
    client.set(SESSION, "s-4");
    let bare = said(&json!(1));
    let passed = client.post(&call(1, "log")).await.body().await;
    // An event that the end has cut off is none.
    let (start, end) = (bare.find("data: {\"jsonrpc").unwrap(), "\n\n");
    assert_eq!(passed[..start], bare[..start]);
    assert!(passed.ends_with(end));
    let shown: Value = serde_json::from_str(&passed[start + 6..passed.len() - end.len()]).unwrap();
    assert!(hint_in(&shown).is_some() && shown["id"] == 1);

    // The answer of a call whose stream has broken off comes by another.
    let server_side = Server::start(move |seen| match &*seen.name() {
        "tools/call" => events("id: 1\ndata:\n\n", true),
        "GET" => {
            let long = json!({"jsonrpc": "2.0", "id": 7, "result": {"content": [{"type": "text", "text": log()}]}});
            events(&format!("id: 2\ndata: {long}\n\n"), false)
        }
        _ => usual(seen),
    })
    .await;
    let mut client = before(&server_side).await;
    client.post(&request(0, "initialize", &json!({}))).await;
    client.set(SESSION, "s-4");
    let mut broken = client.post(&call(7, "log")).await;
    assert_eq!(broken.event().await.unwrap(), ("1".to_owned(), None));
    drop(broken);
    let mut again = client.get(Some("1")).await;
    assert!(hint_in(&again.message().await.unwrap()).is_some());
    let seen = server_side.seen();
    assert_eq!(seen.last().unwrap().header("last-event-id"), Some("1"));
}

/// Opens a session with these headers.
async fn opened(client: &Client, headers: &[(&str, &str)]) -> Client {
    let mut client = client.like();
    for (name, value) in headers {
        client.set(name, value);
    }
    let answer = client.post(&request(0, "initialize", &json!({}))).await;
    if let Some(id) = answer.header(SESSION) {
        client.set(SESSION, id);
    }
    client
}

async fn reads(client: &Client, path: &str) -> bool {
    let page = client.post(&read(9, path)).await.body().await;
    page.contains("00499")
}

#[tokio::test]
async fn m6_what_is_stored_has_a_name_that_nobody_can_guess() {
    let server = Server::start(usual).await;
    let client = before(&server).await;
    for headers in [&[][..], &[("authorization", "Bearer a")]] {
        let session = opened(&client, headers).await;
        for client in [&session, &client] {
            let one = stored(client.post(&call(1, "log")).await).await;
            let two = stored(client.post(&call(1, "log")).await).await;
            assert_ne!(one, two);
            let name = one.rsplit('/').next().unwrap();
            assert!(name.len() > 20 && name.ends_with("-1"), "{one}");
            // Whoever knows it reads it, also with a renewed token and without a session, as after a restart.
            assert!(reads(&session, &one).await && reads(client, &two).await);
        }
    }
    assert!(!reads(&client, "memory://t/trunc/1").await);
    // The server does not see the reader.
    assert!(
        server
            .seen()
            .iter()
            .all(|seen| !seen.body.starts_with(b"read_file"))
    );
}

#[tokio::test]
async fn ids_of_one_session_mean_nothing_in_another() {
    let streams = Mutex::new(Vec::new());
    let server = Server::start(move |seen| match &*seen.name() {
        "tools/call" if seen.message()["params"]["name"] == "wait" => {
            let (sender, answer) = http_server::open_events();
            streams.lock().unwrap().push(sender);
            answer
        }
        "ping" => {
            for stream in streams.lock().unwrap().drain(..) {
                let long = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": log()}]}});
                stream.send(format!("data: {long}\n\n")).unwrap();
            }
            json_answer(&result(seen, &json!({})))
        }
        _ => usual(seen),
    })
    .await;
    let client = before(&server).await;
    let mut all = Vec::new();
    for token in ["Bearer a", "Bearer bb", ""] {
        let client = match token {
            "" => client.like(),
            token => opened(&client, &[("authorization", token)]).await,
        };
        all.push(client.post(&call(1, "wait")).await);
    }
    client.post(&request(2, "ping", &json!({}))).await;
    for mut answer in all {
        assert!(hint_in(&answer.message().await.unwrap()).is_some());
    }
}

#[tokio::test]
async fn a_client_that_guesses_a_session_has_no_part_in_it() {
    let (sent, streams) = (Arc::new(Mutex::new(None)), http_server::open_events);
    let kept = sent.clone();
    let server = Server::start(move |seen| match &*seen.name() {
        "tools/call" if seen.header("authorization") == Some("Bearer a") => {
            let (sender, answer) = streams();
            *kept.lock().unwrap() = Some(sender);
            answer
        }
        "initialize" | "tools/list" => usual(seen),
        _ => status(403),
    })
    .await;
    let client = before(&server).await;
    let owner = opened(&client, &[("authorization", "Bearer a")]).await;
    let mut answer = owner.post(&call(1, "log")).await;
    let mut other = owner.like();
    other.set("authorization", "Bearer bb");
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    for message in [&cancelled, &call(1, "log")] {
        assert_eq!(other.post(message).await.status, 403);
    }
    let long = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": log()}]}});
    let sender = sent.lock().unwrap().take().unwrap();
    sender.send(format!("data: {long}\n\n")).unwrap();
    assert!(hint_in(&answer.message().await.unwrap()).is_some());
}

#[tokio::test]
async fn a_list_of_tools_that_fails_is_asked_for_again() {
    let failures = Mutex::new(vec![
        json_answer(&json!({"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "no"}})),
        status(503),
    ]);
    let server = Server::start(move |seen| match &*seen.name() {
        "tools/list" => failures
            .lock()
            .unwrap()
            .pop()
            .unwrap_or_else(|| usual(seen)),
        "tools/call" => {
            let rows: Vec<u32> = (0..9_000).collect();
            json_answer(&result(
                seen,
                &json!({"content": [], "structuredContent": {"rows": rows}}),
            ))
        }
        _ => usual(seen),
    })
    .await;
    let client = before(&server).await;
    let mut shown = Vec::new();
    for id in 1..5 {
        let answer = client.post(&call(id, "log")).await.body().await;
        shown.push(answer.len() < 10_000);
    }
    // Without the schema, nobody knows what may be left out.
    assert_eq!(shown, [false, false, true, true]);
    let names = server.names();
    assert_eq!(names.iter().filter(|name| *name == "tools/list").count(), 3);
}

#[tokio::test]
async fn refusals_and_what_can_not_be_read_pass_as_they_are_but_for_long_messages() {
    let server = Server::start(|seen| {
        let head = Response::builder();
        match seen.message()["id"].as_u64() {
            Some(1) => head.status(429).header("retry-after", "7").body("slow".into()),
            Some(2) => head
                .header("content-type", "application/json")
                .header("content-encoding", "gzip")
                .body("\u{1f}".into()),
            Some(3) => head.status(302).header("location", "http://evil.example/").body(Body::empty()),
            Some(4) => {
                let text = json!({"id": 4, "result": {"content": [{"type": "text", "text": "x".repeat(100_000)}]}});
                return json_answer(&text);
            }
            Some(6) => {
                let text = json!({"id": 6, "result": {"content": [{"type": "text", "text": "x".repeat(100_000)}]}});
                return events(&format!("data: {{\"method\":\"a\"}}\n\ndata: {text}\n\ndata: {{\"method\":\"b\"}}\n\n"), false);
            }
            Some(7) => {
                let long = json!({"method": "x", "params": "x".repeat(100_000)});
                let short = json!({"id": 7, "result": {"tools": []}});
                return events(&format!("data: {long}\n\ndata: {short}\n\ndata: {long}\n\n"), false);
            }
            _ => return status(202),
        }
        .unwrap()
    })
    .await;
    let (gateway, lines) = logged(McpGateway::new(reduction()).max_message(20_000));
    let client = listen(McpEndpoint::before(gateway, server.remote())).await;
    let listed = |id| request(id, "tools/list", &json!({}));
    let answer = client.post(&listed(1)).await;
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (429, Some("7"))
    );
    assert_eq!(answer.body().await, "slow");
    let answer = client.post(&listed(2)).await;
    assert_eq!(answer.header("content-encoding"), Some("gzip"));
    assert_eq!(answer.body().await, "\u{1f}");
    let answer = client.post(&listed(3)).await;
    assert_eq!((answer.status, answer.header("location")), (502, None));
    let refused = |error: Option<Value>, id: u64| {
        let error = error.unwrap();
        assert_eq!(
            (&error["id"], &error["error"]["code"]),
            (&json!(id), &json!(-32603))
        );
        assert!(
            error["error"]["message"]
                .as_str()
                .unwrap()
                .contains("--max-message")
        );
    };
    let mut answer = client.post(&listed(4)).await;
    assert_eq!(answer.status, 502);
    refused(answer.message().await, 4);
    let mut answer = client.post(&listed(6)).await;
    assert_eq!(answer.message().await.unwrap()["method"], "a");
    refused(answer.message().await, 6);
    assert_eq!(answer.message().await.unwrap()["method"], "b");
    // The long message may have been the answer.
    let mut answer = client.post(&listed(7)).await;
    refused(answer.message().await, 7);
    assert!(answer.message().await.unwrap()["result"].is_object());
    assert_eq!(answer.message().await, None);
    let before = server.seen().len();
    let long = json!({"id": 5, "method": "x", "params": "y".repeat(100_000)});
    let answer = client.post(&long).await;
    assert_eq!((answer.status, server.seen().len()), (413, before));
    assert!(answer.body().await.contains("--max-message"));
    let lines = lines.lock().unwrap();
    for from in ["of a client is longer", "of the server is longer"] {
        assert!(
            lines.iter().any(|line| line.contains(from)),
            "{from}: {lines:?}"
        );
    }
}

#[tokio::test]
async fn a_refusal_leads_a_client_to_the_servers_authorization_server() {
    let server = Server::start(|seen| {
        let own = format!("http://{}", seen.header("host").unwrap());
        if seen.path == "/elsewhere" {
            return json_answer(&json!({"resource": format!("{own}/mcp"), "authorization_servers": ["https://as.example/t"], "signed_metadata": "x", "scopes_supported": ["x"]}));
        }
        let mut answer = status(401);
        let challenge = format!("Bearer resource_metadata=\"{own}/elsewhere\", scope=\"x\"");
        answer.headers_mut().insert("www-authenticate", challenge.parse().unwrap());
        answer
    })
    .await;
    let client = before(&server).await;
    let own = format!("http://{}", client.authority());
    let answer = client.post(&request(0, "initialize", &json!({}))).await;
    let metadata = "/.well-known/oauth-protected-resource/mcp";
    let expected = format!("Bearer resource_metadata=\"{own}{metadata}\", scope=\"x\"");
    assert_eq!(
        (answer.status, answer.header("www-authenticate")),
        (401, Some(&*expected))
    );
    assert_eq!(
        shown(&client, metadata).await,
        json!({"resource": format!("{own}/mcp"), "authorization_servers": ["https://as.example/t"], "scopes_supported": ["x"]})
    );
    // No other place gets what a client sends.
    assert_eq!(client.send("POST", "/token", "code=1").await.status, 404);
}

/// The JSON at a path.
async fn shown(client: &Client, path: &str) -> Value {
    let body = client.send("GET", path, "").await.body().await;
    serde_json::from_str(&body).unwrap()
}

#[tokio::test]
async fn metadata_of_another_resource_is_shown_as_it_is() {
    let liar =
        json!({"resource": "https://evil.example/mcp", "authorization_servers": ["https://a"]});
    let said = liar.clone();
    let server = Server::start(move |seen| match &*seen.path {
        "/.well-known/oauth-protected-resource/mcp" => json_answer(&said),
        "/.well-known/oauth-authorization-server" => json_answer(&json!({"issuer": "x"})),
        _ => status(404),
    })
    .await;
    let client = before(&server).await;
    // For the client to refuse.
    let path = "/.well-known/oauth-protected-resource/mcp";
    assert_eq!(shown(&client, path).await, liar);
    let path = "/.well-known/oauth-authorization-server";
    assert_eq!(shown(&client, path).await, json!({"issuer": "x"}));
    // A server without metadata has none here.
    let bare = Server::start(|_| status(404)).await;
    let client = before(&bare).await;
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/openid-configuration",
    ] {
        let answer = client.send("GET", path, "").await;
        assert_eq!(answer.status, 404);
    }
}

#[tokio::test]
async fn metadata_is_read_at_the_server_or_over_tls() {
    let other = Server::start(|_| json_answer(&json!({"resource": "x"}))).await;
    let named = other.url.clone();
    let server = Server::start(move |_| {
        let mut answer = status(401);
        let challenge = format!("Bearer resource_metadata=\"{named}\"");
        answer
            .headers_mut()
            .insert("www-authenticate", challenge.parse().unwrap());
        answer
    })
    .await;
    let client = before(&server).await;
    client.post(&request(0, "initialize", &json!({}))).await;
    let path = "/.well-known/oauth-protected-resource/mcp";
    assert_eq!(client.send("GET", path, "").await.status, 404);
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn a_slash_at_the_end_of_the_path_is_none() {
    let server = Server::start(usual).await;
    let client = before(&server).await;
    for path in ["/mcp/", "/mcp//"] {
        let opening = request(0, "initialize", &json!({})).to_string();
        let answer = client.send("POST", path, &opening).await;
        assert_eq!(answer.status, 200, "{path}");
    }
    let asked = client.send("POST", "/mcpx", "{}").await;
    assert_eq!(asked.status, 404);
    assert!(asked.body().await.contains("/mcp"));
}

/// Far longer than anything takes.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

#[tokio::test]
async fn answers_that_are_held_take_bounded_memory() {
    for (kind, begin, end) in [
        ("application/json", "", ""),
        ("text/event-stream", "data: ", "\n\n"),
    ] {
        // Answers that begin, and do not end.
        let open: Arc<Mutex<Vec<_>>> = Arc::default();
        let kept = open.clone();
        let server = Server::start(move |seen| {
            let long = seen.message()["params"]["name"] == "exact";
            if !long && seen.name() != "tools/call" {
                return usual(seen);
            }
            let text = log().repeat(if long { 100 } else { 10 });
            let all = result(seen, &json!({"content": [{"type": "text", "text": text}]}));
            let (to_client, mut answer) = http_server::open_events();
            let all = format!("{begin}{all}{end}");
            if long {
                to_client
                    .send(all[..all.floor_char_boundary(900_000)].to_owned())
                    .unwrap();
                kept.lock().unwrap().push(to_client);
            } else {
                to_client.send(all).unwrap();
            }
            answer
                .headers_mut()
                .insert("content-type", kind.parse().unwrap());
            answer
        })
        .await;
        let gateway = McpGateway::new(reduction()).max_message(1 << 20);
        let client = listen(McpEndpoint::before(Arc::new(gateway), server.remote())).await;
        // There is room for some 20 of them. The first for which there is none is refused.
        let asked = (0..40).map(|id| {
            let client = client.like();
            Box::pin(async move { client.post(&call(id, "exact")).await.chunk().await })
        });
        let first = tokio::time::timeout(PATIENCE, futures_util::future::select_all(asked));
        let (first, _, others) = first.await.expect("room for all of them");
        assert!(
            first.starts_with(begin) && first.contains("--max-message"),
            "{first}"
        );
        // Once they are over, there is room again.
        drop(others);
        open.lock().unwrap().clear();
        while !client
            .post(&call(50, "log"))
            .await
            .body()
            .await
            .contains("offcut/1 truncated")
        {}
    }
}
