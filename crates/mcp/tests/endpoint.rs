//! Clients over HTTP on loopback, with an endpoint in front of servers over pipes.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
mod http_client;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use common::{hint_in, log, logged, reduction};
use http_client::{Client, SESSION, listen};
use offcut_mcp::{McpEndpoint, McpGateway, run};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::sync::mpsc;

/// The server's end of its pipes.
struct Server {
    lines: tokio::io::Lines<BufReader<DuplexStream>>,
    to_client: DuplexStream,
}

impl Server {
    /// The next message; `None` once the client has gone.
    async fn next(&mut self) -> Option<Value> {
        let line = self.lines.next_line().await.unwrap()?;
        Some(serde_json::from_str(&line).unwrap())
    }

    async fn say(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.to_client.write_all(line.as_bytes()).await.unwrap();
    }

    async fn answer(&mut self, request: &Value, result: &Value) {
        let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        self.say(&answer).await;
    }
}

/// An endpoint, and the servers that it starts.
async fn hosting(gateway: McpGateway) -> (Client, mpsc::UnboundedReceiver<Server>) {
    let (started, servers) = mpsc::unbounded_channel();
    let endpoint = McpEndpoint::hosting(Arc::new(gateway), move |conversation, client| {
        let started = started.clone();
        async move {
            let (to_server, server_in) = duplex(4096);
            let (server_out, from_server) = duplex(4096);
            let server = Server {
                lines: BufReader::new(server_in).lines(),
                to_client: server_out,
            };
            _ = started.send(server);
            _ = run(&conversation, client, (from_server, to_server)).await;
        }
    });
    (listen(endpoint).await, servers)
}

fn request(id: u32, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn call(id: u32, tool: &str) -> Value {
    request(id, "tools/call", &json!({"name": tool, "arguments": {}}))
}

fn long_result() -> Value {
    json!({"content": [{"type": "text", "text": log()}]})
}

/// Begins a session. Returns its server.
async fn session(client: &mut Client, servers: &mut mpsc::UnboundedReceiver<Server>) -> Server {
    let opening = request(0, "initialize", &json!({"protocolVersion": "2025-11-25"}));
    let mut answer = client.post(&opening).await;
    let mut server = servers.recv().await.unwrap();
    let seen = server.next().await.unwrap();
    assert_eq!(seen, opening);
    let result = json!({"protocolVersion": "2025-11-25"});
    server.answer(&seen, &result).await;
    assert_eq!(answer.message().await.unwrap()["result"], result);
    assert_eq!(answer.message().await, None, "the stream has ended");
    client.set(SESSION, answer.header(SESSION).unwrap());
    client.set("mcp-protocol-version", "2025-11-25");
    let listed = request(1, "tools/list", &json!({}));
    let mut answer = client.post(&listed).await;
    let seen = server.next().await.unwrap();
    let tools = json!({"tools": [{"name": "log", "inputSchema": {"type": "object"}}]});
    server.answer(&seen, &tools).await;
    let answer = answer.message().await.unwrap();
    assert_eq!(answer["result"]["tools"][1]["name"], "read_file");
    server
}

#[tokio::test]
async fn a_session_has_a_server_of_its_own_and_long_results_are_shortened() {
    let (mut client, mut servers) = hosting(McpGateway::new(reduction())).await;
    let mut server = session(&mut client, &mut servers).await;
    let mut answer = client.post(&call(2, "log")).await;
    let seen = server.next().await.unwrap();
    server.answer(&seen, &long_result()).await;
    let shown = answer.message().await.unwrap();
    assert_eq!(shown["id"], 2);
    let hint = hint_in(&shown).unwrap();
    let path = hint.location.unwrap().as_str().to_owned();
    let read = json!({"name": "read_file", "arguments": {"path": path, "offset": 500}});
    let mut page = client.post(&request(3, "tools/call", &read)).await;
    let page = page.message().await.unwrap().to_string();
    assert!(page.contains("00499"), "{page}");

    // A notification has no answer.
    let told = json!({"jsonrpc": "2.0", "method": "notifications/x"});
    assert_eq!(client.post(&told).await.status, 202);
    assert_eq!(server.next().await.unwrap(), told);

    // Another client has another server.
    let mut other = client.like();
    other.unset(SESSION);
    let mut second = session(&mut other, &mut servers).await;
    assert_eq!(client.delete().await.status, 200);
    assert_eq!(server.next().await, None, "its client has gone");
    assert_eq!(client.post(&call(4, "log")).await.status, 404);
    let mut answer = other.post(&call(4, "short")).await;
    let seen = second.next().await.unwrap();
    second.answer(&seen, &json!({"content": []})).await;
    assert_eq!(answer.message().await.unwrap()["id"], 4);
}

#[tokio::test]
async fn m6_ids_of_sessions_can_not_be_guessed() {
    let (client, mut servers) = hosting(McpGateway::new(reduction())).await;
    let mut ids = std::collections::HashSet::new();
    for _ in 0..20 {
        let mut one = client.like();
        _ = session(&mut one, &mut servers).await;
        let id = one.get_header(SESSION).unwrap();
        let random = BASE64_URL_SAFE_NO_PAD.decode(&id).unwrap();
        assert!(random.len() * 8 >= 128, "{id}");
        // One that differs in a letter is nobody's.
        let mut guess = client.like();
        let end = if id.ends_with('A') { "B" } else { "A" };
        guess.set(SESSION, &format!("{}{end}", &id[..id.len() - 1]));
        assert_eq!(guess.post(&call(1, "log")).await.status, 404);
        assert!(ids.insert(id), "an id comes twice");
    }
    let parts = |nth: usize| ids.iter().map(move |id| &id[nth..=nth]);
    for nth in 0..24 {
        let letters: std::collections::HashSet<_> = parts(nth).collect();
        assert!(
            letters.len() > 5,
            "letter {nth} is hardly random: {letters:?}"
        );
    }
}

#[tokio::test]
async fn messages_come_by_the_streams_that_they_belong_to() {
    let (mut client, mut servers) = hosting(McpGateway::new(reduction())).await;
    let mut server = session(&mut client, &mut servers).await;
    let mut own = client.get(None).await;
    let mut ask = async |id: u32| {
        let params = json!({"name": "short", "_meta": {"progressToken": format!("t{id}")}});
        let answer = client.post(&request(id, "tools/call", &params)).await;
        let seen = server.next().await.unwrap();
        (answer, seen)
    };
    let ((mut first, one), (mut second, two)) = (ask(11).await, ask(12).await);
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "t11", "progress": 1}});
    let asked = json!({"jsonrpc": "2.0", "id": "s", "method": "roots/list"});
    // They name no request, so the newest has them.
    for message in [&progress, &asked] {
        server.say(message).await;
        assert_eq!(second.message().await.unwrap(), *message);
    }
    let roots = json!({"jsonrpc": "2.0", "id": "s", "result": {"roots": []}});
    assert_eq!(client.post(&roots).await.status, 202);
    assert_eq!(server.next().await.unwrap(), roots);
    server.answer(&two, &json!({"content": []})).await;
    assert_eq!(second.message().await.unwrap()["id"], 12);
    // The only request that is left.
    server.say(&asked).await;
    server.answer(&one, &json!({"content": []})).await;
    assert_eq!(first.message().await.unwrap(), asked);
    assert_eq!(first.message().await.unwrap()["id"], 11);
    assert_eq!(first.message().await, None);
    // Without one, it is the session's own stream.
    server.say(&asked).await;
    assert_eq!(own.message().await.unwrap(), asked);
}

#[tokio::test]
async fn a_session_goes_on_after_a_stream_that_breaks() {
    let (mut client, mut servers) = hosting(McpGateway::new(reduction())).await;
    let mut server = session(&mut client, &mut servers).await;
    let params = json!({"name": "short", "_meta": {"progressToken": 1}});
    let mut answer = client.post(&request(5, "tools/call", &params)).await;
    let seen = server.next().await.unwrap();
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}});
    server.say(&progress).await;
    let (id, message) = answer.event().await.unwrap();
    assert_eq!((id.as_str(), message), ("", Some(progress)));
    drop(answer);
    server.answer(&seen, &json!({"content": []})).await;
    // Its client calls again.
    let mut answer = client.post(&call(6, "short")).await;
    let seen = server.next().await.unwrap();
    server.answer(&seen, &json!({"content": []})).await;
    assert_eq!(answer.message().await.unwrap()["id"], 6);
    assert_eq!(answer.message().await, None);
}

#[tokio::test]
async fn messages_wait_for_a_client_that_does_not_listen_yet() {
    let (mut client, mut servers) = hosting(McpGateway::new(reduction())).await;
    let mut server = session(&mut client, &mut servers).await;
    let asked = json!({"jsonrpc": "2.0", "id": "s", "method": "ping"});
    server.say(&asked).await;
    // Its answer shows that the endpoint has read both.
    let mut answer = client.post(&call(6, "short")).await;
    let seen = server.next().await.unwrap();
    server.answer(&seen, &json!({"content": []})).await;
    assert_eq!(answer.message().await.unwrap()["id"], 6);
    let mut own = client.get(None).await;
    assert_eq!(own.message().await.unwrap(), asked);
    // A second one has to wait until the first has gone.
    assert_eq!(client.get(None).await.status, 409);
    drop(own);
    let mut second = client.get(None).await;
    while second.status == 409 {
        second = client.get(None).await;
    }
    server.say(&asked).await;
    assert_eq!(second.message().await.unwrap(), asked);
}

#[tokio::test]
async fn those_who_wait_for_a_server_that_dies_get_an_error() {
    let (mut client, mut servers) = hosting(McpGateway::new(reduction())).await;
    let mut server = session(&mut client, &mut servers).await;
    let mut answer = client.post(&call(7, "short")).await;
    server.next().await.unwrap();
    drop(server);
    let error = answer.message().await.unwrap();
    assert_eq!(
        (&error["id"], &error["error"]["code"]),
        (&json!(7), &json!(-32603))
    );
    assert_eq!(answer.message().await, None);
    assert_eq!(client.post(&call(8, "short")).await.status, 404);
    // One that never was there.
    let gateway = Arc::new(McpGateway::new(reduction()));
    let client = listen(McpEndpoint::hosting(gateway, |_, _| async {})).await;
    let mut answer = client.post(&request(0, "initialize", &json!({}))).await;
    assert_eq!(answer.message().await.unwrap()["error"]["code"], -32603);
}

#[tokio::test]
async fn long_bodies_at_the_same_time_are_not_all_held() {
    let gateway = McpGateway::new(reduction()).max_message(16 << 20);
    let (client, _servers) = hosting(gateway).await;
    let (answered, mut answers) = mpsc::unbounded_channel();
    // Bodies that do not end: 12 MiB of each have come.
    for _ in 0..6 {
        let mut stream = tokio::net::TcpStream::connect(client.authority())
            .await
            .unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\naccept: */*\r\ncontent-type: application/json\r\nmcp-session-id: x\r\ncontent-length: 16777216\r\n\r\n",
            client.authority()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        // One that is not held is answered before its end.
        _ = stream.write_all(&vec![b' '; 12 << 20]).await;
        let answered = answered.clone();
        tokio::spawn(async move {
            let mut status = [0; 12];
            if stream.read_exact(&mut status).await.is_ok() {
                _ = answered.send(status);
            }
        });
    }
    assert_eq!(&answers.recv().await.unwrap(), b"HTTP/1.1 413");
}

#[tokio::test]
async fn lines_that_are_no_messages_are_logged_and_not_sent() {
    let (gateway, lines) = logged(McpGateway::new(reduction()).max_message(10_000));
    let gateway = Arc::into_inner(gateway).unwrap();
    let (mut client, mut servers) = hosting(gateway).await;
    let mut server = session(&mut client, &mut servers).await;
    let mut own = client.get(None).await;
    let mut answer = client.post(&call(2, "short")).await;
    let seen = server.next().await.unwrap();
    let long = format!("[LONG] {}", "x".repeat(50_000));
    let others = [
        "[INFO] called\u{1b}[0m",
        "{}",
        "null",
        "[]",
        "",
        " \r",
        r#"[{"jsonrpc":"2.0","method":"x"}]"#,
        r#"{"level":"error","id":2,"error":"log"}"#,
        r#"{"method":"GET","path":"/x"}"#,
        r#"{"jsonrpc":"2.0","id":2}"#,
        &long,
        "{\"jsonrpc\": cut",
    ];
    for line in others {
        server
            .to_client
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
    }
    server.to_client.write_all(b"\xff\xfe\n").await.unwrap();
    server.answer(&seen, &json!({"content": []})).await;
    assert_eq!(answer.message().await.unwrap()["id"], 2);
    assert_eq!(answer.message().await, None);
    // The last line may lack its end.
    server.to_client.write_all(b"[INFO] bye").await.unwrap();
    drop(server);
    assert_eq!(own.message().await, None);
    let lines = lines.lock().unwrap();
    let logged: Vec<&String> = lines
        .iter()
        .filter(|line| line.contains("not a message"))
        .collect();
    // All but the two blank ones.
    assert_eq!(logged.len(), others.len(), "{logged:?}");
    assert!(
        logged[0].ends_with(r#""[INFO] called\u{1b}[0m""#),
        "{logged:?}"
    );
    assert!(logged.iter().all(|line| line.len() < 2_000));
    assert!(logged.last().unwrap().ends_with("\"[INFO] bye\""));
}

#[tokio::test]
async fn clients_of_revisions_without_sessions_are_told_to_fall_back() {
    let (mut client, mut servers) = hosting(McpGateway::new(reduction())).await;
    let revision = "2026-07-28";
    let meta = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": revision}});
    for method in ["server/discover", "tools/call", "initialize"] {
        let mut answer = client.post(&request(7, method, &meta)).await;
        assert_eq!(answer.status, 400);
        let answer = answer.message().await.unwrap();
        let error = &answer["error"];
        assert_eq!((&answer["id"], &error["code"]), (&json!(7), &json!(-32022)));
        assert_eq!(error["data"]["requested"], revision);
        assert_eq!(error["data"]["supported"][0], "2025-11-25");
    }
    client.set("mcp-protocol-version", revision);
    assert_eq!(client.post(&call(7, "log")).await.status, 400);
    let long = client.send("POST", "/mcp", &"[".repeat(100)).await;
    assert_eq!(long.status, 400);
    assert!(servers.try_recv().is_err(), "no server runs for them");
    // They fall back whatever their headers say.
    session(&mut client, &mut servers).await;
}

#[tokio::test]
async fn a_server_that_does_not_read_keeps_nobody_else_waiting() {
    let (mut client, mut servers) = hosting(McpGateway::new(reduction())).await;
    let mut other = client.like();
    let _server = session(&mut client, &mut servers).await;
    // The gateway holds one, and no pipe holds another.
    let told = json!({"jsonrpc": "2.0", "method": "x", "params": {"text": "x".repeat(300_000)}});
    assert_eq!(client.post(&told).await.status, 202);
    let stuck = client.like();
    let stuck = tokio::spawn(async move { stuck.post(&told).await.status });
    session(&mut other, &mut servers).await;
    assert_eq!(client.delete().await.status, 200);
    assert_eq!(stuck.await.unwrap(), 404, "its session has ended");
}

#[tokio::test]
async fn m5_requests_that_may_come_from_elsewhere_are_refused() {
    let started = Arc::new(AtomicUsize::new(0));
    let counted = started.clone();
    let gateway = Arc::new(McpGateway::new(reduction()));
    let endpoint = McpEndpoint::hosting(gateway, move |conversation, client| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move {
            std::future::pending::<()>().await;
            drop((conversation, client));
        }
    });
    let mut client = listen(endpoint.allow_host("box.lan")).await;
    let opening = request(0, "initialize", &json!({}));
    let own = client.authority();
    for (name, value) in [
        ("host", "evil.example"),
        ("host", "10.0.0.1"),
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
    ] {
        client.set(name, value);
        assert_eq!(client.post(&opening).await.status, 403, "{name}: {value}");
        client.unset(name);
    }
    for (name, value, status) in [(SESSION, "unknown", 404)] {
        let before = client.get_header(name);
        client.set(name, value);
        assert_eq!(client.post(&call(1, "x")).await.status, status, "{name}");
        match before {
            Some(before) => client.set(name, &before),
            None => client.unset(name),
        }
    }
    assert_eq!(
        client.post(&call(1, "x")).await.status,
        400,
        "there is no session"
    );
    for body in ["", "{", "[]", "1", r#"{"id":1,"id":2,"method":"a"}"#] {
        assert_eq!(
            client.send("POST", "/mcp", body).await.status,
            400,
            "{body}"
        );
    }
    assert_eq!(client.send("PUT", "/mcp", "").await.status, 405);
    let answer = client.send("GET", "/other", "").await;
    assert_eq!(answer.status, 404);
    assert!(answer.body().await.contains("/mcp"));
    assert_eq!(client.send("PUT", "/mcp/", "").await.status, 405);
    assert_eq!(started.load(Ordering::Relaxed), 0, "no server was started");

    for (name, value) in [
        ("host", "box.lan:1".to_owned()),
        ("origin", format!("http://{own}")),
    ] {
        client.set(name, &value);
        let answer = client.post(&opening).await;
        assert_eq!(answer.status, 200, "{name}: {value}");
        client.unset(name);
    }
}

#[tokio::test]
async fn messages_over_the_maximum_are_refused() {
    let gateway = McpGateway::new(reduction()).max_message(10_000);
    let (mut client, mut servers) = hosting(gateway).await;
    let mut server = session(&mut client, &mut servers).await;
    let text = "x".repeat(300_000);
    let long = json!({"jsonrpc": "2.0", "id": 9, "method": "x", "params": {"text": text}});
    let answer = client.post(&long).await;
    assert_eq!(answer.status, 413);
    assert!(answer.body().await.contains("--max-message"));
    let mut answer = client.post(&call(9, "x")).await;
    server.next().await.unwrap();
    let result = json!({"content": [{"type": "text", "text": text}]});
    let said = json!({"jsonrpc": "2.0", "id": 9, "result": result});
    let (received, ()) = tokio::join!(answer.message(), server.say(&said));
    let error = received.unwrap();
    assert_eq!(error["id"], 9);
    assert!(
        error["error"]["message"]
            .as_str()
            .unwrap()
            .contains("--max-message")
    );
    assert_eq!(answer.message().await, None);
}
