//! A client over pipes and a server over HTTP on loopback, with the gateway between them.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
mod http_server;

use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::http::{Method, Response, StatusCode};
use common::{hint_in, log, logged, reduction};
use http_server::{Answer, Seen, Server, events, json_answer, open_events, result, status};
use offcut_mcp::{McpGateway, Remote};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Waits until something is so; fails if that takes too long.
async fn until(is_so: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed().as_secs() < 60, "it did not happen");
        tokio::task::yield_now().await;
    }
}

/// A client of a running gateway.
struct Client {
    to: Option<DuplexStream>,
    from: BufReader<DuplexStream>,
    running: JoinHandle<std::io::Result<()>>,
    lines: Arc<Mutex<Vec<String>>>,
    stop: Option<oneshot::Sender<()>>,
}

impl Client {
    fn of(remote: Remote) -> Self {
        Self::with(remote, McpGateway::new(reduction()))
    }

    fn with(remote: Remote, gateway: McpGateway) -> Self {
        let (gateway, lines) = logged(gateway);
        let (to, client_in) = duplex(4096);
        let (client_out, from) = duplex(4096);
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(async move {
            let conversation = gateway.conversation();
            let stop = async {
                if stopped.await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            remote
                .run(&conversation, (client_in, client_out), stop)
                .await
        });
        Self {
            to: Some(to),
            from: BufReader::new(from),
            running,
            lines,
            stop: Some(stop),
        }
    }

    async fn send_line(&mut self, line: &str) {
        let to = self.to.as_mut().unwrap();
        to.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string()).await;
    }

    async fn received_line(&mut self) -> String {
        let mut line = String::new();
        self.from.read_line(&mut line).await.unwrap();
        assert_eq!(line.pop(), Some('\n'), "the stream has ended");
        line
    }

    async fn received(&mut self) -> Value {
        serde_json::from_str(&self.received_line().await).unwrap()
    }

    async fn ask(&mut self, id: &Value, method: &str, params: Value) -> Value {
        self.send(&request(id, method, params)).await;
        self.received().await
    }

    /// Starts a session, and reads the list of tools.
    async fn open(&mut self) {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let welcome = self.ask(&json!(0), "initialize", params).await;
        assert_eq!(welcome["result"]["protocolVersion"], "2025-06-18");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
    }

    async fn leave(mut self) -> Vec<String> {
        self.to = None;
        let mut rest = String::new();
        assert_eq!(self.from.read_line(&mut rest).await.unwrap(), 0, "{rest}");
        self.running.await.unwrap().unwrap();
        let lines = self.lines.lock().unwrap();
        lines.clone()
    }
}

#[allow(clippy::needless_pass_by_value)]
fn request(id: &Value, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// The answers of a server with sessions, where `other` says nothing.
fn with_sessions(other: impl Fn(&Seen) -> Option<Answer>, seen: &Seen) -> Answer {
    if let Some(answer) = other(seen) {
        return answer;
    }
    match seen.name().as_str() {
        "initialize" => {
            let welcome = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}});
            let mut answer = json_answer(&result(seen, &welcome));
            answer
                .headers_mut()
                .insert("mcp-session-id", "s-1".parse().unwrap());
            answer
        }
        "tools/list" => json_answer(&result(
            seen,
            &json!({"tools": [{"name": "log", "inputSchema": {"type": "object"}}]}),
        )),
        "tools/call" => json_answer(&result(seen, &text(&log()))),
        "GET" => status(405),
        _ => status(202),
    }
}

fn call(id: &Value) -> Value {
    request(
        id,
        "tools/call",
        json!({"name": "log", "arguments": {"region": "here"}}),
    )
}

#[tokio::test]
async fn a_session_is_opened_used_and_ended_and_long_results_are_stored() {
    let server = Server::start(|seen| with_sessions(|_| None, seen)).await;
    let remote = server
        .remote()
        .header("Authorization", "Bearer secret")
        .unwrap();
    let mut client = Client::of(remote);
    client.open().await;
    client.send(&call(&json!("a"))).await;
    let shown = client.received().await;
    assert_eq!(shown["id"], "a");
    let hint = hint_in(&shown).expect("it is long");
    let read = json!({"name": "read_file", "arguments": {"path": hint.location.unwrap().to_string(), "pattern": "^00499"}});
    let page = client.ask(&json!(2), "tools/call", read).await;
    assert!(hint_in(&page).unwrap().preview.contains("00499 naïve"));
    assert_eq!(client.leave().await, Vec::<String>::new());

    let names = server.names();
    assert_eq!(names[..2], ["initialize", "notifications/initialized"]);
    // The stream of messages is asked for at any time.
    let rest: Vec<_> = names[2..].iter().filter(|name| *name != "GET").collect();
    assert_eq!(rest, ["tools/list", "tools/call", "DELETE"]);
    for seen in server.seen() {
        assert_eq!(seen.header("authorization"), Some("Bearer secret"));
        let is_first = seen.name() == "initialize";
        let expected = |value| Some(value).filter(|_| !is_first);
        assert_eq!(seen.header("mcp-session-id"), expected("s-1"));
        assert_eq!(seen.header("mcp-protocol-version"), expected("2025-06-18"));
        assert_eq!(seen.header("mcp-method"), None);
        if seen.method == Method::POST {
            assert_eq!(
                seen.header("accept"),
                Some("application/json, text/event-stream")
            );
            assert_eq!(seen.header("content-type"), Some("application/json"));
        }
    }
}

#[tokio::test]
async fn messages_of_streams_come_in_order_and_the_servers_requests_are_answered() {
    let (pushed, stream) = open_events();
    let stream = Mutex::new(Some(stream));
    let server = Server::start(move |seen| {
        let other = |seen: &Seen| match seen.name().as_str() {
            "GET" => Some(stream.lock().unwrap().take().unwrap_or_else(|| status(405))),
            "tools/call" => {
                let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"n": 1}});
                let answer = result(seen, &text(&log()));
                Some(events(&format!("data: {progress}\n\ndata: {answer}\n\n"), false))
            }
            _ => None,
        };
        with_sessions(other, seen)
    })
    .await;
    let mut client = Client::of(server.remote());
    client.open().await;
    let asked = json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"});
    pushed.send(format!("id: 1\ndata: {asked}\n\n")).unwrap();
    assert_eq!(client.received().await, asked);
    let roots = json!({"jsonrpc": "2.0", "id": 1, "result": {"roots": []}});
    client.send(&roots).await;
    client.send(&call(&json!(1))).await;
    assert_eq!(client.received().await["method"], "notifications/progress");
    assert!(hint_in(&client.received().await).is_some());
    // The stream breaks, and is opened again after what was seen.
    drop(pushed);
    let is_resumed = |seen: &Seen| seen.header("last-event-id") == Some("1");
    until(|| server.seen().iter().any(is_resumed)).await;
    client.leave().await;
    assert!(server.seen().iter().any(|seen| seen.message() == roots));
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_taken_up_again_or_becomes_an_error() {
    let server = Server::start(|seen| {
        let other = |seen: &Seen| {
            let id = seen.message()["id"].clone();
            match (seen.name().as_str(), seen.header("last-event-id")) {
                ("tools/call", _) if id == "resumed" => {
                    Some(events("retry: 1\nid: e-1\ndata:\n\ndata: {\"cut\": ", true))
                }
                ("tools/call", _) if id == "lost" => Some(events("data: {\"cut\": ", true)),
                ("tools/call", _) if id == "polled" => {
                    Some(events("retry: 1\nid: p-1\ndata:\n\n", false))
                }
                ("GET", Some("e-1")) => {
                    let answer = json!({"jsonrpc": "2.0", "id": "resumed", "result": text("done")});
                    Some(events(&format!("id: e-2\ndata: {answer}\n\n"), false))
                }
                ("GET", Some("p-1")) => Some(events("id: p-2\ndata:\n\n", false)),
                ("GET", Some("p-2")) => Some(status(404)),
                _ => None,
            }
        };
        with_sessions(other, seen)
    })
    .await;
    let mut client = Client::of(server.remote());
    client.open().await;
    client.send(&call(&json!("resumed"))).await;
    assert_eq!(client.received().await["result"], text("done"));
    client.send(&call(&json!("lost"))).await;
    let error = client.received().await;
    assert_eq!(
        (&error["id"], &error["error"]["code"]),
        (&json!("lost"), &json!(-32603))
    );
    assert!(
        error["error"]["message"]
            .as_str()
            .unwrap()
            .contains("broke off"),
        "{error}"
    );
    client.send(&call(&json!("polled"))).await;
    let error = client.received().await;
    assert_eq!(error["error"]["data"]["status"], 404, "{error}");
    client.leave().await;
}

#[tokio::test]
async fn a_session_that_the_server_has_ended_is_started_again() {
    let openings = Mutex::new(0);
    let server = Server::start(move |seen| {
        let other = |seen: &Seen| {
            let mut openings = openings.lock().unwrap();
            if seen.name() == "initialize" {
                *openings += 1;
                let welcome = json!({"protocolVersion": "2025-06-18", "n": *openings});
                let mut answer = json_answer(&result(seen, &welcome));
                let id = format!("s-{openings}").parse().unwrap();
                answer.headers_mut().insert("mcp-session-id", id);
                return Some(answer);
            }
            let is_old = seen.header("mcp-session-id") == Some("s-1");
            (is_old && seen.name() == "tools/call").then(|| status(404))
        };
        with_sessions(other, seen)
    })
    .await;
    let mut client = Client::of(server.remote());
    client.open().await;
    client.send(&call(&json!("a"))).await;
    client.send(&call(&json!("b"))).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let shown = client.received().await;
        assert!(hint_in(&shown).is_some(), "{shown}");
        ids.push(shown["id"].as_str().unwrap().to_owned());
    }
    ids.sort();
    assert_eq!(ids, ["a", "b"]);
    let lines = client.leave().await;
    assert!(lines[0].contains("starting a new one"), "{lines:?}");
    let names = server.names();
    assert_eq!(names.iter().filter(|name| *name == "initialize").count(), 2);
    let last = server.seen().pop().unwrap();
    assert_eq!(
        (last.name(), last.header("mcp-session-id")),
        ("DELETE".to_owned(), Some("s-2"))
    );
}

#[tokio::test]
async fn a_400_that_speaks_of_a_session_that_has_worked_is_one_that_has_ended() {
    let openings = Arc::new(Mutex::new(0));
    let counted = openings.clone();
    let server = Server::start(move |seen| {
        let other = |seen: &Seen| {
            let mut openings = counted.lock().unwrap();
            if seen.name() == "initialize" {
                *openings += 1;
                let welcome = json!({"protocolVersion": "2025-06-18"});
                let mut answer = json_answer(&result(seen, &welcome));
                let id = format!("s-{openings}").parse().unwrap();
                answer.headers_mut().insert("mcp-session-id", id);
                return Some(answer);
            }
            let (code, words) = match seen.name().as_str() {
                // Only the first session has ended.
                "a/gone" if *openings == 1 => (410, "Session expired"),
                "tools/call" if *openings < 3 => (400, "Bad Request: No valid SESSION ID provided"),
                "a/restart" if *openings == 3 => (400, "Bad Request: Server not initialized"),
                "a/always" => (400, "no session"),
                "a/argument" => (400, "the argument is wrong"),
                "a/forbidden" => (403, "no session"),
                "a/gone" | "a/restart" => return Some(json_answer(&result(seen, &json!({})))),
                _ => return None,
            };
            let error = json!({"code": -32000, "message": words});
            let mut answer = json_answer(&json!({"jsonrpc": "2.0", "id": null, "error": error}));
            *answer.status_mut() = StatusCode::from_u16(code).unwrap();
            Some(answer)
        };
        with_sessions(other, seen)
    })
    .await;
    let mut client = Client::of(server.remote());
    client.open().await;
    let answer = client.ask(&json!(1), "a/gone", json!({})).await;
    assert_eq!(
        (&answer["result"], *openings.lock().unwrap()),
        (&json!({}), 2)
    );
    client.send(&call(&json!(2))).await;
    assert!(hint_in(&client.received().await).is_some());
    assert_eq!(*openings.lock().unwrap(), 3);
    let answer = client.ask(&json!(3), "a/restart", json!({})).await;
    assert_eq!(
        (&answer["result"], *openings.lock().unwrap()),
        (&json!({}), 4)
    );
    // Once for each message, and nothing else is taken for that.
    for (method, sessions) in [("a/always", 5), ("a/argument", 5), ("a/forbidden", 5)] {
        let answer = client.ask(&json!(3), method, json!({})).await;
        assert_eq!(answer["error"]["code"], -32000, "{answer}");
        assert_eq!(*openings.lock().unwrap(), sessions, "{method}");
    }
    client.leave().await;
}

#[tokio::test]
async fn what_a_server_says_to_a_notification_or_an_answer_is_dropped() {
    let bodies = [
        "null",
        "{}",
        "[]",
        "noise",
        r#"{"jsonrpc":"2.0","id":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}"#,
    ];
    let server = Server::start(move |seen| {
        let n = seen.message()["params"]["n"].as_u64();
        let n = n.or_else(|| seen.message()["result"]["n"].as_u64());
        let Some(n) = n.and_then(|n| usize::try_from(n).ok()) else {
            return with_sessions(|_| None, seen);
        };
        let head = Response::builder();
        match n % 2 {
            0 => head
                .header("content-type", "application/json")
                .body(bodies[n / 2].into())
                .unwrap(),
            // Only what is a message of the server's own counts.
            _ => events(
                &format!(
                    "data: {}\n\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"own\"}}\n\n",
                    bodies[n / 2]
                ),
                false,
            ),
        }
    })
    .await;
    let mut client = Client::of(server.remote());
    client.open().await;
    for n in 0..2 * bodies.len() {
        let told = json!({"jsonrpc": "2.0", "method": "notifications/x", "params": {"n": n}});
        let answer = json!({"jsonrpc": "2.0", "id": "of-server", "result": {"n": n}});
        for message in [told, answer] {
            client.send(&message).await;
            if n % 2 == 1 {
                assert_eq!(client.received().await["method"], "own");
            }
        }
    }
    let welcome = client.ask(&json!(9), "tools/list", json!({})).await;
    assert_eq!(welcome["id"], 9);
    client.leave().await;
}

#[tokio::test]
async fn an_answer_may_come_after_a_202_and_after_a_byte_order_mark() {
    let (pushed, stream) = open_events();
    let stream = Mutex::new(Some(stream));
    let server = Server::start(move |seen| {
        let other = |seen: &Seen| match seen.name().as_str() {
            "GET" => stream.lock().unwrap().take(),
            "tools/call" => {
                let nothing = futures_util::stream::empty::<std::io::Result<String>>();
                let body = axum::body::Body::from_stream(nothing);
                let answer = result(seen, &text("late"));
                pushed.send(format!("data: {answer}\n\n")).unwrap();
                Some(Response::builder().status(202).body(body).unwrap())
            }
            "prompts/list" => {
                let answer = result(seen, &json!({"prompts": []}));
                Some(json_answer(&answer).map(|_| format!("\u{feff}{answer}").into()))
            }
            _ => None,
        };
        with_sessions(other, seen)
    })
    .await;
    let mut client = Client::of(server.remote());
    client.open().await;
    let late = client
        .ask(
            &json!(7),
            "tools/call",
            json!({"name": "short", "arguments": {}}),
        )
        .await;
    assert_eq!(late["result"], text("late"));
    let listed = client.ask(&json!(8), "prompts/list", json!({})).await;
    assert_eq!(listed["result"], json!({"prompts": []}));
    client.leave().await;
}

/// Servers close connections that are idle, at times just when a request is on its way.
#[tokio::test]
async fn a_request_on_a_connection_that_was_closed_as_idle_is_sent_again() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answering = tokio::spawn(async move {
        let mut asked = 0;
        for _ in 0..2 {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = BufReader::new(stream);
            // The second request on a connection breaks it.
            for _ in 0..2 {
                let (mut length, mut line) = (0, String::new());
                while stream.read_line(&mut line).await.unwrap() > 2 {
                    let header = line.to_lowercase();
                    if let Some(value) = header.strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                    line.clear();
                }
                let mut body = vec![0; length];
                tokio::io::AsyncReadExt::read_exact(&mut stream, &mut body)
                    .await
                    .unwrap();
                asked += 1;
                if asked == 2 {
                    break;
                }
                let message: Value = serde_json::from_slice(&body).unwrap();
                let answer =
                    json!({"jsonrpc": "2.0", "id": message["id"], "result": {}}).to_string();
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                    answer.len()
                );
                stream
                    .get_mut()
                    .write_all((head + &answer).as_bytes())
                    .await
                    .unwrap();
                if asked == 3 {
                    return asked;
                }
            }
        }
        asked
    });
    let remote = Remote::new(&format!("http://{address}/mcp")).unwrap();
    let mut client = Client::of(remote);
    for id in 1..=2 {
        let answer = client.ask(&json!(id), "ping", json!({})).await;
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": id, "result": {}}));
    }
    assert_eq!(answering.await.unwrap(), 3);
    client.leave().await;
}

#[tokio::test]
async fn errors_of_http_become_errors_of_the_request() {
    let server = Server::start(|seen| {
        let bare = json!({"jsonrpc": "2.0", "error": {"code": -32000, "message": "Bad Request", "data": 1}, "id": null});
        match seen.name().as_str() {
            "a/401" => {
                let mut answer = status(401);
                let challenge = "Bearer resource_metadata=\"https://a/b\"".parse().unwrap();
                answer.headers_mut().insert("www-authenticate", challenge);
                answer
            }
            "a/400" => {
                let mut answer = json_answer(&bare);
                *answer.status_mut() = StatusCode::BAD_REQUEST;
                answer
            }
            "a/200" => json_answer(&bare),
            "a/empty" => json_answer(&json!({})),
            // Long, but read as a whole.
            "a/long" => json_answer(&json!({"data": "x".repeat(2 << 20)})),
            // Too many values to be read, on several lines.
            "a/dense" => {
                let values = "1,".repeat(1 << 20);
                let body = format!("{{\n\"jsonrpc\": \"2.0\",\n \"id\": 3,\n \"result\": [{values}1]\n}}");
                Response::builder().header("content-type", "application/json").body(body.into()).unwrap()
            }
            "a/other" => json_answer(&json!({"jsonrpc": "2.0", "id": "3", "result": {}})),
            "a/page" => Response::builder().header("content-type", "text/html").body("<html>".into()).unwrap(),
            "a/null" => Response::builder().header("content-type", "application/json").body(" null".into()).unwrap(),
            "a/nothing" => Response::builder().header("content-type", "application/json").body("".into()).unwrap(),
            "a/noise" => Response::builder().header("content-type", "application/json").body("{\"cut\":\n".into()).unwrap(),
            _ => status(500),
        }
    })
    .await;
    let remote = server.remote().header("X-Key", "secret").unwrap();
    let mut client = Client::of(remote);
    let answer = client.ask(&json!(1), "a/401", json!({})).await;
    assert_eq!(answer["id"], 1);
    assert_eq!(answer["error"]["data"], json!({"status": 401}));
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("--header")
    );
    for method in ["a/400", "a/200"] {
        let answer = client.ask(&json!("two"), method, json!({})).await;
        assert_eq!(
            answer,
            json!({"jsonrpc": "2.0", "id": "two", "error": {"code": -32000, "message": "Bad Request", "data": 1}})
        );
    }
    for (method, words) in [
        ("a/page", "neither"),
        ("a/nothing", "neither"),
        ("a/null", "neither"),
        ("a/empty", "neither"),
        ("a/long", "neither"),
        ("a/other", "neither"),
        ("a/noise", "neither"),
        ("a/500", "500"),
    ] {
        let answer = client.ask(&json!(3), method, json!({})).await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(words), "{message}");
    }
    let answer = client.ask(&json!(3), "a/dense", json!({})).await;
    let values = answer["result"].as_array().map(Vec::len);
    assert_eq!(values, Some((1 << 20) + 1));
    client
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/x"}))
        .await;
    client.send_line("no JSON").await;
    let lines = client.leave().await.concat();
    assert!(
        !lines.contains("secret") && lines.contains("401"),
        "{lines}"
    );
    assert!(server.seen().iter().any(|seen| seen.body == "no JSON"));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error_and_later_calls_reach_it() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let remote = Remote::new(&format!("http://{address}/mcp?key=secret")).unwrap();
    let mut client = Client::of(remote);
    let answer = client.ask(&json!(1), "ping", json!({})).await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("can't be reached") && !message.contains("secret"),
        "{message}"
    );
    let listener = tokio::net::TcpListener::bind(address).await.unwrap();
    let pong = |body: Bytes| async move {
        let asked: Value = serde_json::from_slice(&body).unwrap();
        json_answer(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}}))
    };
    let router = axum::Router::new().fallback(pong);
    tokio::spawn(async move { axum::serve(listener, router).await });
    assert_eq!(
        client.ask(&json!(2), "ping", json!({})).await["result"],
        json!({})
    );
}

#[tokio::test]
async fn without_sessions_headers_repeat_the_message_and_a_cancelled_request_ends() {
    let (kept, stream) = open_events();
    let stream = Mutex::new(Some(stream));
    let server = Server::start(move |seen| {
        let other = |seen: &Seen| {
            let waits = seen.message()["params"]["name"] == "wait";
            waits.then(|| stream.lock().unwrap().take().unwrap())
        };
        with_sessions(other, seen)
    })
    .await;
    let mut client = Client::of(server.remote());
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    client
        .ask(&json!(1), "tools/list", json!({"_meta": meta}))
        .await;
    let params = json!({"name": "log", "arguments": {"region": "Zürich"}, "_meta": meta});
    client.ask(&json!(2), "tools/call", params).await;
    client
        .send(&request(
            &json!(3),
            "tools/call",
            json!({"name": "wait", "_meta": meta}),
        ))
        .await;
    until(|| server.seen().len() >= 3).await;
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}})).await;
    // The server sees that the connection has ended.
    kept.closed().await;
    client.leave().await;
    let seen = server.seen();
    assert_eq!(seen.len(), 3, "{:?}", server.names());
    assert_eq!(seen[0].header("mcp-method"), Some("tools/list"));
    assert_eq!(seen[1].header("mcp-name"), Some("log"));
    for seen in seen {
        assert_eq!(seen.header("mcp-protocol-version"), Some("2026-07-28"));
    }
}

#[tokio::test]
async fn messages_over_the_maximum_are_refused_in_both_directions() {
    let server = Server::start(|seen| match seen.name().as_str() {
        "a/json" => json_answer(&result(seen, &text(&"j".repeat(300_000)))),
        "a/other" => {
            let other = json!({"method": "x", "params": "o".repeat(300_000)});
            let short = result(seen, &text("short"));
            events(&format!("data: {other}\n\ndata: {short}\n\n"), false)
        }
        _ => events(
            &format!(
                "data: {}\r\n\r\n",
                result(seen, &text(&"e".repeat(300_000)))
            ),
            false,
        ),
    })
    .await;
    let mut client = Client::with(
        server.remote(),
        McpGateway::new(reduction()).max_message(10_000),
    );
    let long = "y".repeat(300_000);
    for (method, params) in [
        ("a/json", json!({})),
        ("a/events", json!({})),
        // The long message may have been the answer.
        ("a/other", json!({})),
        ("a/long", json!({"x": long})),
    ] {
        let answer = client.ask(&json!(method), method, params).await;
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(method), &json!(-32603))
        );
        let problem = answer["error"]["message"].as_str().unwrap();
        assert!(problem.contains("--max-message"), "{problem}");
    }
    let lines = client.leave().await;
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert_eq!(server.names(), ["a/json", "a/events", "a/other"]);
}

#[tokio::test]
async fn redirects_are_followed_within_the_origin_alone() {
    let other = Server::start(|seen| json_answer(&result(seen, &json!({})))).await;
    let elsewhere = other.url.clone();
    let server = Server::start(move |seen| {
        let location = match seen.name().as_str() {
            "a/near" if seen.header("x-key").is_some() => "/mcp/",
            _ => &elsewhere,
        };
        let mut answer = status(307);
        answer
            .headers_mut()
            .insert("location", location.parse().unwrap());
        if seen.name() == "a/near" && seen.message()["id"] == 2 {
            *answer.status_mut() = StatusCode::FOUND;
        }
        answer
    })
    .await;
    let mut client = Client::of(server.remote().header("X-Key", "secret").unwrap());
    // It goes in a circle, which ends.
    for (id, method, tries) in [(1, "a/near", 6), (2, "a/near", 1), (3, "a/far", 1)] {
        let before = server.seen().len();
        let answer = client.ask(&json!(id), method, json!({})).await;
        assert!(
            answer["error"]["message"]
                .as_str()
                .unwrap()
                .contains("elsewhere"),
            "{answer}"
        );
        assert_eq!(server.seen().len() - before, tries);
    }
    assert_eq!(other.seen().len(), 0);
}

#[tokio::test]
async fn a_signal_ends_a_call_and_the_session() {
    let (_kept, stream) = open_events();
    let stream = Mutex::new(Some(stream));
    let server = Server::start(move |seen| {
        let other = |seen: &Seen| {
            (seen.name() == "tools/call").then(|| stream.lock().unwrap().take().unwrap())
        };
        with_sessions(other, seen)
    })
    .await;
    let mut client = Client::of(server.remote());
    client.open().await;
    client.send(&call(&json!(1))).await;
    until(|| server.names().iter().any(|name| name == "tools/call")).await;
    client.stop.take().unwrap().send(()).unwrap();
    client.running.await.unwrap().unwrap();
    assert_eq!(server.names().last().unwrap(), "DELETE");
}

#[tokio::test]
async fn the_end_waits_for_answers_and_not_for_streams() {
    let (open, stream) = open_events();
    let (pushed, pushes) = open_events();
    let streams = Mutex::new((Some(stream), Some(pushes)));
    let server = Server::start(move |seen| {
        let other = |seen: &Seen| match seen.name().as_str() {
            "GET" => streams.lock().unwrap().1.take(),
            "tools/call" if seen.message()["id"] == "elsewhere" => {
                Some(events("retry: 600000\nid: p-1\ndata:\n\n", false))
            }
            "tools/call" => streams.lock().unwrap().0.take(),
            _ => None,
        };
        with_sessions(other, seen)
    })
    .await;
    let mut client = Client::of(server.remote());
    client.open().await;
    // One answer comes in the server's own stream, the other in a stream that stays open.
    for (id, sender) in [("elsewhere", &pushed), ("kept", &open)] {
        client.send(&call(&json!(id))).await;
        until(|| server.seen().iter().any(|seen| seen.message()["id"] == id)).await;
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": text("done")});
        sender.send(format!("data: {answer}\n\n")).unwrap();
        assert_eq!(client.received().await, answer);
    }
    let end = tokio::time::timeout(std::time::Duration::from_secs(30), client.leave());
    end.await.expect("it ends");
    assert_eq!(server.names().last().unwrap(), "DELETE");
}
