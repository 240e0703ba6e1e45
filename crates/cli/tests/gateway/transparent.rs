//! Whatever is not replaced passes byte for byte.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::support::{Provider, Seen, Server, Step, ok, read_message, reply, send};
use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

#[tokio::test]
async fn a_request_and_its_reply_pass_byte_for_byte() {
    let provider = Provider::start(|_| {
        vec![send(
            "HTTP/1.1 201 Created indeed\r\nX-Request-Id: r1\r\nRateLimit-Left: 7\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 7\r\n\r\n{\"a\":1}",
        )]
    })
    .await;
    let server = Server::start(&provider.url, |_| ()).await;
    let body = "{ \"seed\": 1E5, \"messages\" : [{\"role\":\"user\",\"content\":\"caf\\u00e9\", \"n\":1.00}], \"model\":\"m\" }\n";
    let head = format!(
        "POST /v1/messages?beta=true&x=%20a HTTP/1.1\r\nHost: localhost:9\r\nX-Api-Key: k1\r\nanthropic-beta: a\r\nanthropic-beta: b,c\r\nAnthropic-Version: 2023-06-01\r\nAccept-Encoding: gzip, br\r\nUser-Agent: x\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let answer = server
        .raw(format!("{head}{body}").as_bytes())
        .await
        .unwrap();

    let seen = provider.last();
    assert_eq!(seen.line, "POST /v1/messages?beta=true&x=%20a HTTP/1.1");
    assert_eq!(seen.text(), body);
    let host = provider.url.strip_prefix("http://").unwrap();
    let length = body.len().to_string();
    let mut expected = vec![
        ("X-Api-Key", "k1"),
        ("anthropic-beta", "a"),
        ("anthropic-beta", "b,c"),
        ("Anthropic-Version", "2023-06-01"),
        ("Accept-Encoding", "gzip, br"),
        ("User-Agent", "x"),
        ("Content-Length", length.as_str()),
        ("Host", host),
    ];
    expected.sort_unstable();
    let headers: Vec<_> = seen
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let spelled = |headers: &[(&str, &str)]| -> Vec<String> {
        // The host's header is this server's own.
        let name = |name: &str| {
            if name.eq_ignore_ascii_case("host") {
                "Host".to_owned()
            } else {
                name.to_owned()
            }
        };
        let mut lines: Vec<_> = headers
            .iter()
            .map(|(own, value)| format!("{}: {value}", name(own)))
            .collect();
        lines.sort();
        lines
    };
    assert_eq!(spelled(&headers), spelled(&expected));

    assert_eq!(answer.line, "HTTP/1.1 201 Created indeed");
    assert_eq!(answer.text(), "{\"a\":1}");
    let cookies: Vec<_> = answer
        .headers
        .iter()
        .filter(|(name, _)| name == "Set-Cookie")
        .collect();
    assert_eq!(cookies.len(), 2);
    assert_eq!(answer.header("x-request-id"), Some("r1"));
    assert_eq!(answer.header("x-offcut"), Some("unchanged"));
}

#[tokio::test]
async fn requests_without_a_conversation_pass_without_a_word() {
    let provider = Provider::start(|seen| {
        if seen.line.starts_with("HEAD") {
            return vec![send("HTTP/1.1 200 OK\r\nContent-Length: 42\r\n\r\n")];
        }
        ok("{\"data\":[]}")
    })
    .await;
    let server = Server::start(&provider.url, |_| ()).await;
    let answer = server.get("/openai/v1/models?after=x").await;
    assert_eq!(provider.last().line, "GET /v1/models?after=x HTTP/1.1");
    assert_eq!(
        (answer.text(), answer.header("x-offcut")),
        ("{\"data\":[]}", None)
    );

    let mut stream = server
        .open(b"HEAD /anthropic/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .await;
    let mut head = String::new();
    stream.read_to_string(&mut head).await.unwrap();
    assert!(
        head.to_ascii_lowercase().contains("content-length: 42"),
        "{head}"
    );
    assert_eq!(provider.last().line, "HEAD / HTTP/1.1");

    let upload = "--x\r\nanything \u{e9}\r\n--x--";
    server.post("/v1/files", &[], upload).await;
    assert_eq!(provider.last().text(), upload);
    let chunked = b"POST /openai/v1/audio HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    server.raw(chunked).await.unwrap();
    assert_eq!(provider.last().text(), "abcde");
}

#[tokio::test]
async fn compressed_bodies_pass_as_they_came() {
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::reducing(&provider.url, &crate::support::memory(), |_| ()).await;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder
        .write_all(br#"{"messages":[{"role":"user","content":"hello"}]}"#)
        .unwrap();
    let gzip = encoder.finish().unwrap();
    let post = |encoding: &str, body: &[u8]| {
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: {encoding}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        [head.as_bytes(), body].concat()
    };
    for (encoding, body, outcome) in [
        ("gzip", &gzip[..], "unchanged"),
        ("gzip", b"no gzip", "passed; reason=encoding"),
        ("deflate", b"??", "passed; reason=encoding"),
        ("identity", b"\xff\xfe", "passed; reason=not-understood"),
    ] {
        let answer = server.raw(&post(encoding, body)).await.unwrap();
        let seen = provider.last();
        assert_eq!(seen.body, body, "{encoding}");
        assert_eq!(seen.header("content-encoding"), Some(encoding));
        assert_eq!(answer.header("x-offcut"), Some(outcome), "{encoding}");
    }
    let metrics = server.get("/metrics").await;
    assert!(
        metrics
            .text()
            .contains("offcut_unreduced_total{reason=\"encoding\"} 2"),
        "{}",
        metrics.text()
    );
}

#[tokio::test]
async fn the_first_event_of_a_stream_arrives_before_the_second_is_sent() {
    let go = Arc::new(Notify::new());
    let waiting = go.clone();
    let provider = Provider::start(move |_| {
        vec![
            send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\nb\r\ndata: one\n\n\r\n"),
            Step::Wait(waiting.clone()),
            send("b\r\ndata: two\n\n\r\n0\r\n\r\n"),
        ]
    })
    .await;
    let server = Server::start(&provider.url, |_| ()).await;
    let body = r#"{"stream":true,"messages":[{"role":"user","content":"hello"}]}"#;
    let request = format!(
        "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = server.open(request.as_bytes()).await;
    let mut read = Vec::new();
    while crate::support::find(&read, b"data: one\n\n").is_none() {
        let mut piece = [0; 1_000];
        let count = stream.read(&mut piece).await.unwrap();
        assert!(count > 0, "the stream ended early");
        read.extend_from_slice(&piece[..count]);
    }
    go.notify_one();
    let answer = read_message(&mut stream, &mut read).await.unwrap();
    assert_eq!(answer.text(), "data: one\n\ndata: two\n\n");
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
}

#[tokio::test]
async fn errors_pass_with_their_bodies() {
    for status in [
        "400 Bad Request",
        "401 Unauthorized",
        "429 Too Many Requests",
        "500 Internal Server Error",
        "529 Overloaded",
    ] {
        let error = format!("{{\"error\":{{\"message\":\"{status}\"}}}}");
        let text = error.clone();
        let provider = Provider::start(move |_| {
            let length = text.len();
            vec![send(format!(
                "HTTP/1.1 {status}\r\nRetry-After: 3\r\nContent-Length: {length}\r\n\r\n{text}"
            ))]
        })
        .await;
        let server = Server::start(&provider.url, |_| ()).await;
        let answer = server
            .post(
                "/v1/chat/completions",
                &[],
                r#"{"messages":[{"role":"user","content":"x"}]}"#,
            )
            .await;
        assert_eq!(answer.line, format!("HTTP/1.1 {status}"));
        assert_eq!(answer.text(), error);
        assert_eq!(answer.header("retry-after"), Some("3"));
        assert_eq!(provider.seen().len(), 1);
    }
}

#[tokio::test]
async fn a_stream_that_breaks_is_broken_for_the_client_too() {
    let begun =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let body = r#"{"messages":[{"role":"user","content":"x"}]}"#;
    let request = format!(
        "POST /anthropic/v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    // It breaks off after its last part, together with it, or before its first one.
    for (part, end) in [
        ("data: {\"a", ""),
        ("data: {\"a", "no length\r\n"),
        ("", "no length\r\n"),
    ] {
        let sent = if part.is_empty() {
            String::new()
        } else {
            format!("{:x}\r\n{part}\r\n", part.len())
        };
        let sent = format!("{begun}{sent}{end}");
        let provider = Provider::start(move |_| vec![send(sent.clone()), Step::Close]).await;
        let server = Server::start(&provider.url, |_| ()).await;
        let mut stream = server.open(request.as_bytes()).await;
        let mut read = Vec::new();
        _ = stream.read_to_end(&mut read).await;
        let text = String::from_utf8(read).unwrap();
        assert!(
            text.starts_with("HTTP/1.1 200 OK\r\n")
                && text.contains(part)
                && !text.ends_with("0\r\n\r\n"),
            "{text}"
        );
        let metrics = server.get("/metrics").await;
        let counted = "offcut_broken_replies_total{upstream=\"anthropic\"} 1";
        assert!(metrics.text().contains(counted), "{}", metrics.text());
    }

    // A reply of known length that is half of it; no reply at all; garbage.
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"half\":";
    let provider = Provider::start(move |_| vec![send(half), Step::Close]).await;
    let server = Server::start(&provider.url, |_| ()).await;
    assert_eq!(server.raw(request.as_bytes()).await, None);
    for garbage in ["", "garbage\r\n\r\n"] {
        let provider = Provider::start(move |_| vec![send(garbage), Step::Close]).await;
        let server = Server::start(&provider.url, |_| ()).await;
        let answer = server.raw(request.as_bytes()).await.unwrap();
        assert_eq!(answer.line, "HTTP/1.1 502 Bad Gateway");
        assert!(
            answer.text().contains("did not answer"),
            "{}",
            answer.text()
        );
    }
}

#[tokio::test]
async fn a_client_that_goes_away_ends_its_request_at_the_provider() {
    let provider = Provider::start(|_| {
        let begun = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n";
        vec![send(begun), Step::Wait(Arc::new(Notify::new()))]
    })
    .await;
    let server = Server::start(&provider.url, |_| ()).await;
    let mut stream = server
        .open(b"GET /openai/v1/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    let mut piece = [0; 1_000];
    assert!(stream.read(&mut piece).await.unwrap() > 0);
    drop(stream);
    provider.gone.notified().await;
}

#[tokio::test]
async fn a_client_that_does_not_wait_for_a_provider_is_counted() {
    let asked = Arc::new(Notify::new());
    let noted = asked.clone();
    let provider = Provider::start(move |_| {
        noted.notify_one();
        vec![Step::Wait(Arc::new(Notify::new()))]
    })
    .await;
    let server = Server::start(&provider.url, |_| ()).await;
    let stream = server
        .open(b"GET /openai/v1/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    asked.notified().await;
    drop(stream);
    provider.gone.notified().await;
    let text = server.get("/metrics").await;
    let line = "offcut_replies_total{upstream=\"openai\",status=\"499\"} 1\n";
    assert!(text.text().contains(line), "{}", text.text());
}

#[tokio::test]
async fn a_body_over_the_limit_passes_unread() {
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::start(&provider.url, |settings| {
        settings.max_body = bytesize::ByteSize::kib(1);
    })
    .await;
    let body = format!(
        r#"{{"messages":[{{"role":"user","content":"{}"}}]}}"#,
        "x".repeat(300_000)
    );
    let answer = server.post("/v1/chat/completions", &[], &body).await;
    assert_eq!(answer.header("x-offcut"), Some("passed; reason=too-long"));
    assert_eq!(provider.last().text(), body);
    let counted = async |bytes: usize| {
        let metrics = server.get("/metrics").await;
        let bytes = format!(" {bytes}");
        let lines = metrics.text().lines().filter(|line| line.ends_with(&bytes));
        lines
            .filter(|line| line.starts_with("offcut_sender_bytes_total"))
            .count()
    };
    assert_eq!(counted(body.len()).await, 2);
    let head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunked = format!("{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let answer = server.raw(chunked.as_bytes()).await.unwrap();
    assert_eq!(answer.header("x-offcut"), Some("passed; reason=too-long"));
    assert_eq!(provider.last().text(), body);
    assert_eq!(counted(body.len()).await, 2, "it does not say its length");
}

#[tokio::test]
async fn shutdown_lets_streams_end() {
    let go = Arc::new(Notify::new());
    let waiting = go.clone();
    let provider = Provider::start(move |_| {
        vec![
            send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n"),
            Step::Wait(waiting.clone()),
            send("3\r\ntwo\r\n0\r\n\r\n"),
        ]
    })
    .await;
    let monitor = free_address();
    let mut server = Server::start(&provider.url, |settings| {
        settings.metrics_listen = Some(monitor);
    })
    .await;
    let mut stream = server
        .open(b"GET /openai/v1/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    let mut read = vec![0; 1_000];
    let count = stream.read(&mut read).await.unwrap();
    read.truncate(count);
    server.stop();
    // Once nobody can connect any more, the server is stopping.
    while TcpStream::connect(server.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(!server.ended.is_finished());
    let metrics = ask(monitor, "localhost", "/metrics").await;
    assert!(
        metrics.text().contains("offcut_connections 1\n"),
        "{metrics:?}"
    );
    go.notify_one();
    let answer = read_message(&mut stream, &mut read).await.unwrap();
    assert_eq!(answer.text(), "onetwo");
    server.ended.await.unwrap();
}

#[tokio::test]
async fn a_websocket_is_told_to_use_http() {
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::start(&provider.url, |_| ()).await;
    let answer = server
        .raw(b"GET /openai/v1/responses HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(answer.line, "HTTP/1.1 426 Upgrade Required");
    assert_eq!(provider.seen(), []);
}

#[tokio::test]
async fn the_providers_own_count_is_in_the_metrics() {
    let provider = Provider::start(|_| {
        let usage =
            r#"{"usage":{"prompt_tokens":100,"prompt_tokens_details":{"cached_tokens":60}}}"#;
        reply("200 OK", "application/json", usage)
    })
    .await;
    let server = Server::start(&provider.url, |_| ()).await;
    server
        .post(
            "/v1/chat/completions",
            &[],
            r#"{"messages":[{"role":"user","content":"x"}]}"#,
        )
        .await;
    let text = server.get("/metrics").await;
    for line in [
        "offcut_requests_total{upstream=\"openai\",outcome=\"unchanged\"} 1",
        "offcut_replies_total{upstream=\"openai\",status=\"200\"} 1",
        "offcut_provider_tokens_total{upstream=\"openai\",kind=\"fresh\"} 40",
        "offcut_provider_tokens_total{upstream=\"openai\",kind=\"cached\"} 60",
        "offcut_added_seconds_count 1",
    ] {
        assert!(
            text.text().lines().any(|written| written == line),
            "{line} in\n{}",
            text.text()
        );
    }
    assert_eq!(server.get("/healthz").await.text(), "ok\n");
}

#[tokio::test]
async fn a_provider_of_http_1_0_is_answered_for_by_http_1_1() {
    let provider =
        Provider::start(|_| vec![send("HTTP/1.0 200 OK\r\n\r\nhello"), Step::Close]).await;
    let server = Server::start(&provider.url, |_| ()).await;
    let answer = server.post("/v1/messages", &[], "{}").await;
    assert_eq!((&*answer.line, answer.text()), ("HTTP/1.1 200 OK", "hello"));
}

#[tokio::test]
async fn a_length_beside_chunks_is_not_passed_on() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 3 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunks = "5\r\nhello\r\n0\r\n\r\n";
    let provider = Provider::start(move |_| vec![send(head), send(chunks)]).await;
    let server = Server::start(&provider.url, |_| ()).await;
    let answer = server.post("/v1/messages", &[], "{}").await;
    assert_eq!((&*answer.line, answer.text()), ("HTTP/1.1 200 OK", "hello"));
}

#[tokio::test]
async fn more_connections_than_allowed_wait_for_their_turn() {
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::start(&provider.url, |settings| settings.max_connections = 1).await;
    let first = server.open(b"").await;
    let mut second = server
        .open(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    drop(first);
    let answer = read_message(&mut second, &mut Vec::new()).await.unwrap();
    assert_eq!(answer.text(), "ok\n");
    second.shutdown().await.unwrap();
}

/// An address that nobody listens on.
fn free_address() -> SocketAddr {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap()
}

/// The answer at an address to a request for a path.
async fn ask(address: SocketAddr, host: &str, path: &str) -> Seen {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let answer = read_message(&mut stream, &mut Vec::new()).await;
    answer.unwrap()
}

#[tokio::test]
async fn metrics_may_have_an_address_of_their_own() {
    let address = free_address();
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::start(&provider.url, |settings| {
        settings.metrics_listen = Some(address);
    })
    .await;
    let asked = async |host: &str, path: &str| ask(address, host, path).await;
    assert_eq!(server.get("/healthz").await.line, "HTTP/1.1 200 OK");
    assert_eq!(server.get("/metrics").await.line, "HTTP/1.1 404 Not Found");
    for path in ["/metrics", "/healthz", "/readyz"] {
        assert_eq!(asked("localhost", path).await.line, "HTTP/1.1 200 OK");
    }
    assert!(
        asked("localhost", "/metrics")
            .await
            .text()
            .contains("offcut_connections")
    );
    assert_eq!(
        asked("localhost", "/page").await.line,
        "HTTP/1.1 404 Not Found"
    );
    let elsewhere = asked("evil.example", "/metrics").await;
    assert_eq!(elsewhere.line, "HTTP/1.1 421 Misdirected Request");
}
