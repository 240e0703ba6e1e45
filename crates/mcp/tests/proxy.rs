//! Clients over HTTP on loopback, with an endpoint in front of a server over HTTP.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
mod http_client;
mod http_server;

use std::sync::Arc;

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
    listen(McpEndpoint::before(gateway, server.remote()).unwrap()).await
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
    let (start, end) = (bare.find("data: {\"jsonrpc").unwrap(), "\n\ndata: cut");
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

#[tokio::test]
async fn m6_no_client_reads_what_another_has_stored() {
    let server = Server::start(|seen| match seen.header("authorization") {
        Some("Bearer a" | "Bearer a2" | "Bearer bb") => usual(seen),
        _ => status(401),
    })
    .await;
    let mut one = before(&server).await;
    let mut other = one.like();
    one.set("authorization", "Bearer a");
    other.set("authorization", "Bearer bb");
    for client in [&mut one, &mut other] {
        let answer = client.post(&request(0, "initialize", &json!({}))).await;
        let id = answer.header(SESSION).unwrap().to_owned();
        client.set(SESSION, &id);
    }
    let path = stored(one.post(&call(1, "log")).await).await;
    let page = one.post(&read(2, &path)).await.body().await;
    assert!(page.contains("00499"), "{page}");
    let page = other.post(&read(2, &path)).await.body().await;
    assert!(
        page.contains("\"isError\":true") && !page.contains("00499"),
        "{page}"
    );
    // Without a session too.
    let mut stateless = one.like();
    stateless.unset(SESSION);
    stateless.set("authorization", "Bearer bb");
    lists(&stateless).await;
    let page = stateless.post(&read(2, &path)).await.body().await;
    assert!(page.contains("\"isError\":true"), "{page}");
    stateless.set("authorization", "Bearer a");
    lists(&stateless).await;
    let page = stateless.post(&read(2, &path)).await.body().await;
    assert!(page.contains("00499"), "the same credentials: {page}");

    // A new token in the same session reads on once the server has accepted it. The server does not see the reader, so
    // until then nobody reads.
    one.set("authorization", "Bearer a2");
    let mut answer = one.post(&read(3, &path)).await;
    assert_eq!(answer.status, 200);
    let refused = answer.message().await.unwrap();
    assert_eq!(refused["id"], 3);
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("another of its tools first"), "{message}");
    lists(&one).await;
    assert!(reads(&one, &path).await);
    for token in ["Bearer stolen", ""] {
        one.set("authorization", token);
        assert_eq!(lists(&one).await, 401);
        assert!(!reads(&one, &path).await);
    }
    one.unset(SESSION);
    assert!(!reads(&one, &path).await);
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

/// Has the server answer a client. Returns the status.
async fn lists(client: &Client) -> u16 {
    let answer = client.post(&request(8, "tools/list", &json!({}))).await;
    let status = answer.status;
    answer.body().await;
    status
}

async fn reads(client: &Client, path: &str) -> bool {
    let page = client.post(&read(9, path)).await.body().await;
    page.contains("00499")
}

#[tokio::test]
async fn m6_credentials_are_whatever_a_server_may_tell_clients_apart_by() {
    for name in [
        "X-Api-Key",
        "cookie",
        "api-key",
        "mcp-token",
        "x-forwarded-user",
        "?key",
    ] {
        let of_client = move |seen: &Seen| match name.strip_prefix('?') {
            Some(name) => {
                let query = seen.path.split_once('?').map(|(_, query)| query.to_owned());
                query
                    .and_then(|query| Some(query.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
            }
            None => seen.header(name).map(str::to_owned),
        };
        for has_session in [false, true] {
            let server = Server::start(move |seen| match of_client(seen).as_deref() {
                Some("alice" | "bob") => {
                    let mut answer = usual(seen);
                    if !has_session {
                        answer.headers_mut().remove(SESSION);
                    }
                    answer
                }
                _ => status(401),
            })
            .await;
            let client = before(&server).await;
            let with = |who: &str| {
                let mut client = client.like();
                match name.strip_prefix('?') {
                    Some(name) => client.path = format!("/mcp?{name}={who}"),
                    None => client.set(name, who),
                }
                client
            };
            let alice = opened(&with("alice"), &[]).await;
            let bob = opened(&with("bob"), &[]).await;
            let path = stored(alice.post(&call(1, "log")).await).await;
            assert!(reads(&alice, &path).await, "{name}");
            for mut other in [bob, with("bob"), with("eve"), client.like()] {
                assert!(!reads(&other, &path).await, "{name}");
                if let Some(session) = alice.get_header(SESSION) {
                    other.set(SESSION, &session);
                    assert!(!reads(&other, &path).await, "{name}");
                }
            }
            // The gateway's own requests have them too.
            let asked = |seen: &Seen| seen.name() == "tools/list" && of_client(seen).is_some();
            assert!(server.seen().iter().any(asked));
        }
    }
}

#[tokio::test]
async fn m6_one_session_of_several_clients_is_a_place_for_each() {
    for id in ["one", "a-long-and-random-looking-session-id"] {
        let server = Server::start(move |seen| {
            let mut answer = usual(seen);
            if seen.name() == "initialize" {
                answer.headers_mut().insert(SESSION, id.parse().unwrap());
            }
            answer
        })
        .await;
        let client = before(&server).await;
        let mut alice = opened(&client, &[("authorization", "Bearer a")]).await;
        let path = stored(alice.post(&call(1, "log")).await).await;
        let bob = opened(&client, &[("authorization", "Bearer b")]).await;
        let basic = opened(&client, &[("authorization", "Basic b")]).await;
        let key = opened(&client, &[("authorization", "Bearer c"), ("x-key", "k")]).await;
        for other in [&bob, &basic, &key, &opened(&client, &[]).await] {
            assert!(!reads(other, &path).await);
        }
        assert!(reads(&alice, &path).await, "others have opened it too");
        // In a session of hers alone, her new token would read on; here it may be anybody's.
        alice.set("authorization", "Bearer new");
        lists(&alice).await;
        assert!(!reads(&alice, &path).await);
    }
}

#[tokio::test]
async fn m6_a_session_that_nobody_has_opened_here_gives_no_place_to_another_token() {
    // The server gives one session to all. As after a restart of this program: nobody opens it again.
    let server = Server::start(usual).await;
    let client = before(&server).await;
    let with = |token: &str| {
        let mut client = client.like();
        client.set(SESSION, "one");
        client.set("authorization", token);
        client
    };
    let (bob, alice) = (with("Bearer b"), with("Bearer a"));
    lists(&bob).await;
    let path = stored(alice.post(&call(2, "log")).await).await;
    assert!(!reads(&bob, &path).await);
    assert!(reads(&alice, &path).await);
}

#[tokio::test]
async fn m6_a_session_is_named_once_and_in_ascii() {
    let server = Server::start(usual).await;
    let mut client = before(&server).await;
    client.set(SESSION, "é");
    assert_eq!(client.post(&call(1, "log")).await.status, 400);
    client.set(SESSION, "one");
    assert_eq!(client.post(&call(1, "log")).await.status, 200);
    client.set(&SESSION.to_uppercase(), "two");
    assert_eq!(client.post(&call(1, "log")).await.status, 400);
    assert_eq!(client.delete().await.status, 400);
}

#[tokio::test]
async fn m6_only_a_result_shows_that_the_server_knows_a_token() {
    // Everything but what bears a known token is answered as anybody is.
    for odd in 0..5 {
        let server = Server::start(move |seen| match seen.header("authorization") {
            Some("Bearer a") => usual(seen),
            _ => {
                let error =
                    json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no"}});
                let refused =
                    json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "no"}});
                let mut answer = match odd {
                    0 => status(202),
                    1 => status(204),
                    2 => json_answer(&refused),
                    _ => json_answer(&error),
                };
                match odd {
                    3 => *answer.status_mut() = http::StatusCode::UNAUTHORIZED,
                    4 => *answer.status_mut() = http::StatusCode::FORBIDDEN,
                    _ => {}
                }
                answer
            }
        })
        .await;
        let client = before(&server).await;
        let alice = opened(&client, &[("authorization", "Bearer a")]).await;
        let path = stored(alice.post(&call(1, "log")).await).await;
        let mut eve = alice.like();
        eve.set("authorization", "Bearer made-up");
        eve.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        lists(&eve).await;
        assert!(!reads(&eve, &path).await, "{odd}");
        assert!(reads(&alice, &path).await, "{odd}");
    }
}

#[tokio::test]
async fn m6_a_token_that_was_another_clients_stays_that_clients() {
    let server = Server::start(usual).await;
    let client = before(&server).await;
    let bob = opened(&client, &[("authorization", "Bearer b")]).await;
    let alice = opened(&client, &[("authorization", "Bearer a")]).await;
    let path = stored(alice.post(&call(1, "log")).await).await;
    bob.delete().await;
    let in_session_of_alice = |token: &str| {
        let mut client = alice.like();
        client.set("authorization", token);
        client
    };
    // A token that nobody has used is hers, renewed, once the server takes it.
    let new = in_session_of_alice("Bearer new");
    assert!(!reads(&new, &path).await);
    lists(&new).await;
    assert!(reads(&new, &path).await);
    let eve = in_session_of_alice("Bearer b");
    lists(&eve).await;
    assert!(!reads(&eve, &path).await);
}

#[tokio::test]
async fn m6_a_server_must_take_the_credentials_of_a_reader_without_a_session() {
    let server = Server::start(|seen| match seen.header("x-key") {
        None => {
            let mut answer = json_answer(&json!({"message": "a key is missing"}));
            *answer.status_mut() = http::StatusCode::BAD_REQUEST;
            answer
        }
        _ => usual(seen),
    })
    .await;
    let mut client = before(&server).await;
    client.set("x-key", "k");
    let path = stored(client.post(&call(1, "log")).await).await;
    // As after a restart of this program, where nothing has been accepted yet.
    let mut again = before(&server).await;
    let answered = async |client: &Client| {
        let answer = client.post(&read(2, &path)).await.message().await;
        answer.unwrap()["error"].is_null()
    };
    assert_eq!(lists(&again).await, 400);
    assert!(!answered(&again).await);
    again.set("x-key", "k");
    assert!(!answered(&again).await);
    lists(&again).await;
    assert!(answered(&again).await);
}

#[tokio::test]
async fn what_is_stored_without_credentials_has_a_name_that_nobody_can_guess() {
    let server = Server::start(usual).await;
    let client = before(&server).await;
    let one = stored(client.post(&call(1, "log")).await).await;
    let two = stored(client.post(&call(1, "log")).await).await;
    assert_ne!(one, two);
    let name = one.rsplit('/').next().unwrap();
    assert!(name.len() > 20 && name.ends_with("-1"), "{one}");
    // Whoever knows it reads it.
    let session = opened(&client, &[]).await;
    assert!(reads(&client, &two).await && reads(&session, &one).await);
}

#[tokio::test]
async fn a_list_of_tools_without_an_end_is_not_read_for_ever() {
    let server = Server::start(|seen| match &*seen.name() {
        "tools/list" => {
            let cursor = &seen.message()["params"]["cursor"];
            let next = format!("{}x", cursor.as_str().unwrap_or_default());
            json_answer(&result(seen, &json!({"tools": [], "nextCursor": next})))
        }
        _ => usual(seen),
    })
    .await;
    let client = before(&server).await;
    stored(client.post(&call(1, "log")).await).await;
    assert_eq!(server.names().len(), 101);
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
    let client = listen(McpEndpoint::before(gateway, server.remote()).unwrap()).await;
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
    for from in [
        "of a client is longer",
        "of the server is longer",
        "compressed",
    ] {
        assert!(
            lines.iter().any(|line| line.contains(from)),
            "{from}: {lines:?}"
        );
    }
}

#[tokio::test]
async fn a_refusal_leads_a_client_to_the_servers_authorization_server() {
    let issuer = Server::start(|seen| match &*seen.path {
        "/.well-known/oauth-authorization-server/t" => {
            let issuer = format!("http://{}", seen.header("host").unwrap());
            json_answer(&json!({
                "issuer": format!("{issuer}/t"),
                "authorization_endpoint": format!("{issuer}/t/authorize?tenant=1"),
                "token_endpoint": format!("{issuer}/t/token"),
                "registration_endpoint": format!("{issuer}/t/register"),
            }))
        }
        "/t/token" => json_answer(&json!({"access_token": "secret", "token_type": "Bearer"})),
        _ => status(404),
    })
    .await;
    let at = issuer.url.trim_end_matches("/mcp").to_owned();
    let named = format!("{at}/t");
    let server = Server::start(move |seen| {
        let own = format!("http://{}", seen.header("host").unwrap());
        if seen.path == "/elsewhere" {
            return json_answer(&json!({"resource": format!("{own}/mcp"), "authorization_servers": [named], "scopes_supported": ["x"]}));
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
    let get = async |path: &str| client.send("GET", path, "").await;
    let shown: Value = serde_json::from_str(&get(metadata).await.body().await).unwrap();
    assert_eq!(
        shown,
        json!({"resource": format!("{own}/mcp"), "authorization_servers": [own], "scopes_supported": ["x"]})
    );
    let shown = get("/.well-known/oauth-authorization-server")
        .await
        .body()
        .await;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["issuer"], own);
    assert_eq!(shown["registration_endpoint"], format!("{at}/t/register"));

    // Requests to the authorization server are for the server's own URL.
    let encoded = own.replace(':', "%3A").replace('/', "%2F") + "%2Fmcp";
    let path = format!("/authorize?client_id=1&resource={encoded}");
    let answer = get(&path).await;
    let server_url = server.url.replace(':', "%3A").replace('/', "%2F");
    let expected = format!("{at}/t/authorize?tenant=1&client_id=1&resource={server_url}");
    assert_eq!(
        (answer.status, answer.header("location")),
        (302, Some(&*expected))
    );
    let mut form = client.like();
    form.set("content-type", "application/x-www-form-urlencoded");
    form.set("authorization", "Basic abc");
    let answer = form
        .send("POST", "/token", &format!("code=1&resource={encoded}"))
        .await;
    assert!(answer.body().await.contains("secret"));
    let seen = issuer.seen();
    let token = seen.last().unwrap();
    assert_eq!(token.body, format!("code=1&resource={server_url}"));
    assert_eq!(token.header("authorization"), Some("Basic abc"));
    assert!(
        seen[..seen.len() - 1]
            .iter()
            .all(|one| one.header("authorization").is_none())
    );
}

#[tokio::test]
async fn a_browser_is_led_only_where_secrets_may_go() {
    for place in [
        "javascript:alert(1)//",
        "http://evil.example/authorize",
        "file:///etc/passwd",
        "//evil.example/authorize",
        "",
    ] {
        let server = Server::start(move |seen| match &*seen.path {
            "/.well-known/oauth-authorization-server" => {
                json_answer(&json!({"issuer": "x", "authorization_endpoint": place}))
            }
            _ => status(404),
        })
        .await;
        let client = before(&server).await;
        let answer = client.send("GET", "/authorize?client_id=1", "").await;
        assert_eq!((answer.status, answer.header("location")), (400, None));
    }
}

#[tokio::test]
async fn an_authorization_server_that_names_itself_is_shown_as_it_is() {
    let server = Server::start(|seen| {
        let own = format!("http://{}", seen.header("host").unwrap());
        match &*seen.path {
            "/.well-known/oauth-protected-resource/mcp" => json_answer(
                &json!({"resource": format!("{own}/mcp"), "authorization_servers": [own]}),
            ),
            "/.well-known/oauth-authorization-server" => json_answer(
                &json!({"issuer": own, "authorization_response_iss_parameter_supported": true}),
            ),
            _ => status(404),
        }
    })
    .await;
    let client = before(&server).await;
    let shown = client
        .send("GET", "/.well-known/oauth-protected-resource/mcp", "")
        .await;
    let shown: Value = serde_json::from_str(&shown.body().await).unwrap();
    assert_eq!(
        shown["authorization_servers"][0],
        server.url.trim_end_matches("/mcp")
    );
    // A server that says that it is another one is shown as it is, for the client to refuse.
    let liar = Server::start(|seen| match &*seen.path {
        "/.well-known/oauth-protected-resource/mcp" => {
            json_answer(&json!({"resource": "https://evil.example/mcp"}))
        }
        _ => status(404),
    })
    .await;
    let client = before(&liar).await;
    let shown = client
        .send("GET", "/.well-known/oauth-protected-resource/mcp", "")
        .await;
    let shown: Value = serde_json::from_str(&shown.body().await).unwrap();
    assert_eq!(shown["resource"], "https://evil.example/mcp");
    // Nor is a token for that one given to it.
    let own = format!("http%3A%2F%2F{}%2Fmcp", client.authority());
    let answer = client
        .send("GET", &format!("/authorize?client_id=1&resource={own}"), "")
        .await;
    assert_eq!((answer.status, answer.header("location")), (400, None));
    let form = format!("code=1&resource={own}");
    assert_eq!(client.send("POST", "/token", &form).await.status, 400);
    assert!(liar.seen().iter().all(|seen| seen.method == "GET"));
    // A server without metadata has none here.
    let bare = Server::start(|_| status(404)).await;
    let client = before(&bare).await;
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/openid-configuration",
    ] {
        let answer = client.send("GET", path, "").await;
        assert_eq!(answer.status, 404);
        assert!(answer.body().await.contains(path));
    }
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
    assert!(asked.body().await.contains("/mcpx"));
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
        let open: Arc<std::sync::Mutex<Vec<_>>> = Arc::default();
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
        let client = listen(McpEndpoint::before(Arc::new(gateway), server.remote()).unwrap()).await;
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
