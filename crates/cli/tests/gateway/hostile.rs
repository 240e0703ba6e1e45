//! Requests that try to get more than is theirs.

use std::sync::Arc;

use crate::support::{Provider, Server, ok};
use offcut::backend::{Backend, Memory};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn a_request_with_two_lengths_is_one_request_or_none() {
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::start(&provider.url, |_| ()).await;
    let inner = "GET /openai/v1/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for head in [
        format!(
            "Transfer-Encoding: chunked\r\nContent-Length: {}",
            inner.len() + 5
        ),
        format!("Content-Length: 5\r\nContent-Length: {}", inner.len() + 5),
        "Transfer-Encoding: xchunked\r\nContent-Length: 5".to_owned(),
        "Transfer-Encoding: chunked, identity\r\nContent-Length: 5".to_owned(),
        "Content-Length: +5".to_owned(),
        "Transfer-Encoding : chunked".to_owned(),
    ] {
        for path in ["/v1/chat/completions", "/openai/v1/files"] {
            let request = format!(
                "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{head}\r\n\r\n0\r\n\r\n{inner}"
            );
            let mut stream = server.open(request.as_bytes()).await;
            _ = stream.shutdown().await;
            _ = stream.read_to_end(&mut Vec::new()).await;
        }
    }
    for seen in provider.seen() {
        assert!(!seen.line.contains("smuggled"), "{seen:?}");
        let lengths = seen.headers.iter().filter(|(name, _)| {
            name.eq_ignore_ascii_case("content-length")
                || name.eq_ignore_ascii_case("transfer-encoding")
        });
        assert!(lengths.count() <= 1, "{seen:?}");
    }
}

#[tokio::test]
async fn headers_of_the_connection_do_not_reach_the_provider() {
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::start(&provider.url, |_| ()).await;
    server
        .raw(b"GET /openai/v1/x HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, X-Secret, Content-Length\r\nX-Secret: 1\r\nProxy-Authorization: Basic x\r\nTE: trailers\r\n\r\n")
        .await
        .unwrap();
    let seen = provider.last();
    for name in ["connection", "x-secret", "proxy-authorization", "te"] {
        assert_eq!(seen.header(name), None, "{name}");
    }
}

#[tokio::test]
async fn it_is_no_open_proxy() {
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::start(&provider.url, |_| ()).await;
    let status = async |request: &str| server.raw(request.as_bytes()).await.unwrap().line;
    let connect = status("CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(connect, "HTTP/1.1 405 Method Not Allowed");
    // The name in the address is not where the request goes.
    status("GET http://127.0.0.1/openai/v1/x HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(provider.last().line, "GET /v1/x HTTP/1.1");
    let climbing = status("GET /openai/../x HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(climbing, "HTTP/1.1 400 Bad Request");
    let unknown = status("GET /other/x HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(unknown, "HTTP/1.1 404 Not Found");
}

#[tokio::test]
async fn a_web_page_with_a_name_of_its_own_and_a_proxys_client_are_refused() {
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::start(&provider.url, |settings| {
        settings.hosts = vec!["box.lan".to_owned()];
    })
    .await;
    for (host, status) in [
        ("evil.example", "421 Misdirected Request"),
        ("localhost.evil.example:8787", "421 Misdirected Request"),
        ("localhost\r\nHost: evil.example", "400 Bad Request"),
        ("box.lan:8787", "200 OK"),
        ("[::1]:8787", "200 OK"),
        // A proxy in front would make one tenant of all its clients.
        (
            "localhost\r\nX-Forwarded-For: ::1, 10.0.0.9",
            "421 Misdirected Request",
        ),
        (
            "localhost\r\nX-Real-IP: ::ffff:10.0.0.9",
            "421 Misdirected Request",
        ),
        ("localhost\r\nX-Forwarded-For: 127.0.0.1, unknown", "200 OK"),
    ] {
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let answer = server.raw(request.as_bytes()).await.unwrap();
        assert_eq!(answer.line, format!("HTTP/1.1 {status}"), "{host}");
    }
}

#[tokio::test]
async fn a_web_page_does_not_post() {
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::start(&provider.url, |settings| {
        settings.hosts = vec!["box.lan".to_owned()];
    })
    .await;
    let own = "http://localhost:8787";
    for (headers, status) in [
        ("", "200 OK"),
        ("Origin: http://localhost:8787\r\n", "200 OK"),
        ("Origin: http://127.0.0.1:8787\r\n", "403 Forbidden"),
        ("Origin: http://[::1]:8787\r\n", "403 Forbidden"),
        ("Origin: https://box.lan:8787\r\n", "403 Forbidden"),
        ("Origin: app://localhost:8787\r\n", "403 Forbidden"),
        ("Sec-Fetch-Site: same-origin\r\n", "200 OK"),
        ("Sec-Fetch-Site: none\r\n", "200 OK"),
        ("Origin: https://evil.example\r\n", "403 Forbidden"),
        ("Origin: http://evil.example:8787\r\n", "403 Forbidden"),
        ("Origin: http://localhost:3000\r\n", "403 Forbidden"),
        ("Origin: http://localhost\r\n", "403 Forbidden"),
        ("Origin: null\r\n", "403 Forbidden"),
        ("Origin: \r\n", "403 Forbidden"),
        ("Origin: file://\r\n", "403 Forbidden"),
        ("Origin: chrome-extension://abc\r\n", "403 Forbidden"),
        ("Origin: http://x@localhost:8787\r\n", "403 Forbidden"),
        (
            &format!("Origin: {own}\r\nOrigin: http://evil.example\r\n"),
            "403 Forbidden",
        ),
        ("Sec-Fetch-Site: cross-site\r\n", "403 Forbidden"),
        ("Sec-Fetch-Site: same-site\r\n", "403 Forbidden"),
        (
            &format!("Origin: {own}\r\nSec-Fetch-Site: cross-site\r\n"),
            "403 Forbidden",
        ),
    ] {
        for path in [
            "/v1/chat/completions",
            "/openai/v1/files",
            "/v1/read",
            "/v1/compress",
        ] {
            let request = format!(
                "POST {path} HTTP/1.1\r\nHost: localhost:8787\r\n{headers}Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{{}}"
            );
            let answer = server.raw(request.as_bytes()).await.unwrap();
            if status == "200 OK" {
                assert!(!answer.line.contains("403"), "{path} {headers}");
            } else {
                assert_eq!(
                    answer.line,
                    format!("HTTP/1.1 {status}"),
                    "{path} {headers}"
                );
            }
        }
    }
    assert_eq!(provider.seen().len(), 4 * 2);
    // A link leads to the page, which shows no figures yet.
    let link = "GET /page HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n\r\n";
    assert_eq!(
        server.raw(link.as_bytes()).await.unwrap().line,
        "HTTP/1.1 200 OK"
    );
}

#[tokio::test]
async fn what_was_meant_for_this_server_reaches_no_provider() {
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::start(&provider.url, |settings| {
        settings.default_upstream = Some("openai".to_owned());
    })
    .await;
    for path in [
        "/v1/compress",
        "/v1/compress/",
        "/v1/compress%2f",
        "/v1/compress/x",
        "//v1/compress",
        "/V1/COMPRESS",
        "/v1/%63ompress",
        "/v1/read/",
        "/v1/retrieve",
        "/v1/retrieve%2Fabc",
        "/page/",
        "/metrics/",
        "/healthz/",
        "/readyz/",
        "/v1/compress%3Fx",
        "/v1/read%23",
        "/v1/%2563ompress/100%25",
    ] {
        let key = [("Authorization", "Bearer COMPRESS-KEY-0123456")];
        let answer = server.post(path, &key, "{}").await;
        let is_read = path.starts_with("/v1/read") && answer.text().contains("is_error");
        let is_own = answer.line.starts_with("HTTP/1.1 4") || is_read;
        assert!(is_own, "{path}: {answer:?}");
    }
    assert_eq!(provider.seen(), []);
}

#[tokio::test]
async fn a_key_of_this_server_reaches_no_provider_wherever_it_is() {
    const KEY: &str = "COMPRESS-KEY-0123456";
    let provider = Provider::start(|_| ok("{}")).await;
    let store: Arc<dyn Backend> = Arc::new(Memory::new());
    let server = Server::reducing(&provider.url, &store, |settings| {
        settings.compress_keys = [("team".to_owned(), KEY.to_owned().into())].into();
    })
    .await;
    // `user:KEY` and `KEY:`, as `Basic` has them.
    let basic = [
        "dXNlcjpDT01QUkVTUy1LRVktMDEyMzQ1Ng==",
        "Q09NUFJFU1MtS0VZLTAxMjM0NTY6",
    ];
    let [user, key] = basic.map(|pair| format!("Basic {pair}"));
    for (name, value) in [
        ("Authorization", format!("Bearer {KEY}")),
        ("Authorization", format!("bearer\t{KEY}")),
        ("Authorization", KEY.to_owned()),
        ("Authorization", format!("Bearer x, Bearer {KEY}")),
        ("Authorization", user),
        ("Authorization", key),
        ("x-api-key", KEY.to_owned()),
        ("x-goog-api-key", KEY.to_owned()),
        ("Cookie", format!("a=1; key={KEY}")),
        ("X-Anything", format!("\"{KEY}\"")),
        ("Authorization", format!("Token {KEY}")),
        ("Authorization", format!("Bearer|{KEY}")),
        ("X-Keys", format!("[a,{KEY}]")),
        ("X-Keys", format!("%22{}%22", KEY.replace('-', "%2d"))),
    ] {
        let answer = server.post("/openai/v1/x", &[(name, &value)], "{}").await;
        assert!(answer.line.starts_with("HTTP/1.1 404"), "{name}: {value}");
        assert!(!answer.text().contains(KEY));
    }
    for rest in [
        format!("x?key={KEY}"),
        format!("x?a=b&k={}", KEY.replace('-', "%2D")),
        format!("x?k=a/{KEY}"),
        format!("{KEY}/x"),
        format!("bot%3A{KEY}/x"),
    ] {
        let path = format!("/openai/v1/{rest}");
        let answer = server.post(&path, &[], "{}").await;
        assert!(answer.line.starts_with("HTTP/1.1 404"), "{path}");
    }
    assert_eq!(provider.seen(), []);
}

#[tokio::test]
async fn a_client_that_reads_nothing_keeps_no_place() {
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::start(&provider.url, |settings| {
        settings.max_connections = 2;
        settings.body_seconds = 1;
    })
    .await;
    let requests = b"GET /page/page.js HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(2_000);
    let mut deaf = Vec::new();
    for _ in 0..2 {
        deaf.push(server.open(&requests).await);
    }
    let answer = server.raw(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(answer.await.unwrap().line, "HTTP/1.1 200 OK");
}

#[tokio::test]
async fn a_key_that_is_not_known_to_be_the_providers_is_refused_and_sent_nowhere() {
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::start(&provider.url, |_| ()).await;
    for (path, header) in [
        ("/v1/messages", ("Authorization", "Bearer planted")),
        ("/v1/messages", ("Authorization", "Bearer gsk_planted")),
        ("/v1/messages?key=planted", ("x-api-key", "planted")),
        ("/v1/chat/completions?access_token=planted", ("x", "y")),
    ] {
        let answer = server.post(path, &[header], "{}").await;
        assert_eq!(answer.line, "HTTP/1.1 400 Bad Request", "{path}");
        assert!(!answer.text().contains("planted"));
    }
    assert_eq!(provider.seen(), []);
}

#[tokio::test]
async fn a_huge_head_is_refused() {
    let many = |count| -> String { (0..count).map(|n| format!("X-{n}: 1\r\n")).collect() };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{}\r\n", many(150));
    let provider = Provider::start(move |_| vec![crate::support::send(&*head)]).await;
    let server = Server::start(&provider.url, |_| ()).await;
    let request = format!(
        "GET /openai/v1/x HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
        "x".repeat(200_000)
    );
    let mut stream = server.open(b"").await;
    _ = stream.write_all(request.as_bytes()).await;
    let mut answer = Vec::new();
    _ = stream.read_to_end(&mut answer).await;
    assert!(
        answer.is_empty() || answer.starts_with(b"HTTP/1.1 431 "),
        "{answer:?}"
    );
    let get =
        |headers: &str| format!("GET /openai/v1/x HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
    let mut stream = server.open(get(&many(500)).as_bytes()).await;
    let mut answer = Vec::new();
    _ = stream.read_to_end(&mut answer).await;
    assert!(answer.starts_with(b"HTTP/1.1 431 "), "{answer:?}");
    assert_eq!(provider.seen(), []);
    // More than a hundred are rare, and pass both ways.
    let answer = server.raw(get(&many(150)).as_bytes()).await.unwrap();
    assert_eq!(answer.line, "HTTP/1.1 200 OK");
    assert!(provider.last().headers.len() > 150 && answer.headers.len() > 150);
}

#[tokio::test]
async fn slow_heads_and_slow_bodies_are_given_up() {
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::start(&provider.url, |settings| {
        settings.header_seconds = 1;
        settings.body_seconds = 1;
    })
    .await;
    let mut stream = server.open(b"GET /openai/v1/x HTTP/1.1\r\nHo").await;
    let mut answer = Vec::new();
    _ = stream.read_to_end(&mut answer).await;
    let head = "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"messages\":";
    let answer = server.raw(head.as_bytes()).await.unwrap();
    assert_eq!(answer.line, "HTTP/1.1 408 Request Timeout");
    assert_eq!(provider.seen(), []);
}

#[tokio::test]
async fn a_body_of_drops_is_given_up_and_leaves_places_for_others() {
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::start(&provider.url, |settings| {
        settings.max_connections = 8;
        settings.body_seconds = 2;
    })
    .await;
    let mut clients = Vec::new();
    for path in ["/v1/chat/completions", "/openai/v1/files"] {
        for _ in 0..3 {
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000000\r\n\r\n"
            );
            clients.push(server.open(head.as_bytes()).await);
        }
    }
    let dripping: Vec<_> = clients
        .into_iter()
        .map(|mut client| {
            tokio::spawn(async move {
                let mut answer = Vec::new();
                loop {
                    let drop = tokio::time::sleep(std::time::Duration::from_millis(100));
                    tokio::select! {
                        read = client.read_buf(&mut answer) => if read.unwrap_or(0) == 0 { break },
                        () = drop => if client.write_all(b" ").await.is_err() { break },
                    }
                }
                String::from_utf8(answer).unwrap()
            })
        })
        .collect();
    // One more finds no place for its body, and two connections are left for whoever has none.
    assert_eq!(server.get("/healthz").await.line, "HTTP/1.1 200 OK");
    let more = server.post("/v1/chat/completions", &[], "{}").await;
    assert_eq!(more.line, "HTTP/1.1 503 Service Unavailable");
    for answer in dripping {
        let answer = answer.await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    }
    assert_eq!(
        server.post("/v1/files", &[], "{}").await.line,
        "HTTP/1.1 200 OK"
    );
}

#[tokio::test]
async fn a_chunk_that_is_none_is_the_clients_mistake() {
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::start(&provider.url, |_| ()).await;
    for path in ["/v1/chat/completions", "/openai/v1/files"] {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\nzz\r\n"
        );
        let answer = server.raw(request.as_bytes()).await.unwrap();
        assert_eq!(answer.line, "HTTP/1.1 400 Bad Request", "{path}");
    }
}

#[tokio::test]
async fn dense_bodies_pass_unread_and_the_server_answers_meanwhile() {
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::reducing(&provider.url, &crate::support::memory(), |settings| {
        settings.cut_without_reader = true;
    })
    .await;
    let many = |item: &str| vec![item; 2_000_000 / item.len()].join(",");
    for body in [
        format!("{{\"messages\":[{}]}}", many("1")),
        format!("{{\"messages\":[{}]}}", many("{}")),
        format!("{{\"messages\":[{}]}}", many("[]")),
        format!("{{\"messages\":[{}]}}", many("\"\"")),
        format!("{{\"messages\":[],\"tools\":[{}]}}", many("1")),
        format!("{{\"messages\":[],\"tools\":[{}]}}", many("{\"a\":{}}")),
        format!(
            "{{\"messages\":[{{\"role\":\"user\",\"content\":[{}]}}]}}",
            many("{}")
        ),
    ] {
        let asked = server.post("/v1/chat/completions", &[], &body);
        let (answer, health) = tokio::join!(asked, server.get("/healthz"));
        assert_eq!(
            answer.header("x-offcut"),
            Some("passed; reason=too-long"),
            "{}",
            &body[..30]
        );
        assert_eq!(health.line, "HTTP/1.1 200 OK");
        assert_eq!(provider.last().body, body.as_bytes());
    }
}

#[tokio::test]
async fn a_message_of_too_many_results_passes_whole() {
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::reducing(&provider.url, &crate::support::memory(), |settings| {
        settings.cut_without_reader = true;
    })
    .await;
    let text = "word ".repeat(300);
    let result = |n| format!(r#"{{"type":"tool_result","tool_use_id":"{n}","content":"{text}"}}"#);
    let results: Vec<String> = (0..3_000).map(result).collect();
    let body = format!(
        r#"{{"messages":[{{"role":"user","content":[{}]}}],"tools":[{{"name":"x"}}]}}"#,
        results.join(",")
    );
    let answer = server.post("/v1/messages", &[], &body).await;
    assert_eq!(answer.header("x-offcut"), Some("passed; reason=too-long"));
    assert_eq!(provider.last().body, body.as_bytes());
}

#[tokio::test]
async fn a_gzip_bomb_passes_unread() {
    use std::io::Write;
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::reducing(&provider.url, &crate::support::memory(), |settings| {
        settings.max_body = bytesize::ByteSize::mib(1);
    })
    .await;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..200 {
        encoder.write_all(&[b' '; 1_000_000]).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        bomb.len()
    );
    let answer = server
        .raw(&[head.as_bytes(), &bomb].concat())
        .await
        .unwrap();
    assert_eq!(answer.header("x-offcut"), Some("passed; reason=encoding"));
    assert_eq!(provider.last().body, bomb);
}

#[tokio::test]
async fn a_key_is_in_no_answer_of_the_server_itself() {
    // Nobody listens there.
    let server = Server::start("http://127.0.0.1:1", |_| ()).await;
    let key = "sk-planted-credential";
    let bearer = format!("Bearer {key}");
    let headers = [
        ("Authorization", bearer.as_str()),
        ("x-api-key", key),
        ("x-goog-api-key", key),
    ];
    let path = format!("/gemini/v1beta/models/m:generateContent?key={key}");
    let answer = server
        .post(
            &path,
            &headers,
            r#"{"contents":[{"role":"user","parts":[{"text":"x"}]}]}"#,
        )
        .await;
    assert_eq!(answer.line, "HTTP/1.1 502 Bad Gateway");
    assert!(!answer.text().contains(key), "{}", answer.text());
    let metrics = server.get("/metrics").await;
    assert!(
        !metrics.text().contains(key) && metrics.text().contains("status=\"0\""),
        "{}",
        metrics.text()
    );
}
