//! Refusals of changed requests, and connections that break.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{Provider, Seen, Server, Step, find, memory, ok, reply, send};
use flate2::Compression;
use flate2::write::GzEncoder;
use offcut::hint::Hint;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::sync::Notify;

/// A request with one long result.
fn request() -> String {
    let call =
        json!({"id": "call_1", "type": "function", "function": {"name": "run", "arguments": "{}"}});
    let messages = json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "a line of a result\n".repeat(1_000)},
    ]);
    let tools = json!([{"type": "function", "function": {"name": "run"}}]);
    json!({"model": "m", "messages": messages, "tools": tools}).to_string()
}

async fn reducing(provider: &Provider) -> Server {
    Server::reducing(&provider.url, &memory(), |serve| {
        serve.cut_without_reader = true;
        serve.answer_seconds = 1;
    })
    .await
}

fn is_changed(seen: &Seen) -> bool {
    seen.text().contains("[offcut/1 ")
}

/// The answer to the changed request is `refusal`; the original is answered well.
async fn asked(refusal: impl Fn() -> Vec<Step> + Send + Sync + 'static) -> (Seen, Provider) {
    let provider = Provider::start(move |seen| {
        if is_changed(seen) {
            refusal()
        } else {
            ok("{\"good\": 1}")
        }
    })
    .await;
    let server = reducing(&provider).await;
    let answer = server.post("/v1/chat/completions", &[], &request()).await;
    (answer, provider)
}

#[tokio::test]
async fn a_refused_change_is_followed_by_the_original() {
    let cut = |head: &str| {
        vec![
            send(format!("HTTP/1.1 400 Bad Request\r\n{head}\r\n\r\n{{")),
            Step::Close,
        ]
    };
    let never = Arc::new(Notify::new());
    let refusals: Vec<Vec<Step>> = vec![
        reply("400 Bad Request", "application/json", "{}"),
        reply("422 Unprocessable Entity", "application/json", "{}"),
        // A server that repeats the request in its answer.
        reply("400 Bad Request", "text/plain", &"e".repeat(1_500_000)),
        cut("Content-Length: 100"),
        cut("Content-Encoding: x\r\nContent-Length: 100"),
        vec![
            send("HTTP/1.1 400 Bad Request\r\nContent-Length: 100\r\n\r\n{"),
            Step::Wait(never),
        ],
    ];
    for (number, refusal) in refusals.into_iter().enumerate() {
        let (answer, provider) = asked(move || refusal.clone()).await;
        assert_eq!(answer.line, "HTTP/1.1 200 OK", "{number}");
        assert_eq!(answer.text(), "{\"good\": 1}", "{number}");
        assert_eq!(answer.header("x-offcut"), Some("passed; reason=refused"));
        assert_eq!(provider.seen().len(), 2);
        assert_eq!(provider.last().text(), request());
    }
}

#[tokio::test]
async fn what_is_refused_either_way_was_not_refused_for_its_changes() {
    let provider =
        Provider::start(|_| reply("400 Bad Request", "application/json", "{\"model\": 1}")).await;
    let server = reducing(&provider).await;
    for _ in 0..2 {
        let answer = server.post("/v1/chat/completions", &[], &request()).await;
        assert_eq!(answer.line, "HTTP/1.1 400 Bad Request");
        assert_eq!(answer.header("x-offcut"), Some("unchanged"));
    }
    // The conversation is not left alone either.
    let changed = provider
        .seen()
        .iter()
        .filter(|seen| is_changed(seen))
        .count();
    assert_eq!((changed, provider.seen().len()), (2, 4));
    let metrics = server.get("/metrics").await;
    let refused = "offcut_unreduced_total{reason=\"refused\"} 0";
    assert!(metrics.text().contains(refused), "{metrics:?}");
    // They went on as they came.
    for when in ["before", "after"] {
        let bytes = 2 * request().len();
        let line = format!("offcut_bytes_total{{when=\"{when}\"}} {bytes}\n");
        assert!(metrics.text().contains(&line), "{metrics:?}");
    }
}

#[tokio::test]
async fn what_is_no_refusal_is_the_clients() {
    let too_long =
        r#"{"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}}"#;
    for (status, body) in [
        ("400 Bad Request", too_long),
        ("401 Unauthorized", "{}"),
        ("413 Content Too Large", "{}"),
        ("429 Too Many Requests", "{}"),
        ("500 Internal Server Error", "{}"),
    ] {
        let (answer, provider) = asked(move || reply(status, "application/json", body)).await;
        assert_eq!(answer.line, format!("HTTP/1.1 {status}"));
        assert_eq!(answer.text(), body);
        assert_eq!(provider.seen().len(), 1);
    }
}

/// A conversation of `rounds`, none of whose results is over the limit.
fn overflowing(rounds: usize, tools: bool) -> String {
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    for n in 0..rounds {
        let id = format!("call_{n}");
        let result = format!("a line of result {n}\n").repeat(60);
        messages.extend([
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": {"name": "run", "arguments": "{}"}}]}),
            json!({"role": "tool", "tool_call_id": id, "content": result}),
        ]);
    }
    let mut body = json!({"model": "m", "messages": messages});
    if tools {
        body["tools"] = json!([{"type": "function", "function": {"name": "run"}}]);
    }
    body.to_string()
}

/// A provider whose window is `bytes` long.
async fn narrow(bytes: usize, status: &'static str) -> Provider {
    let too_long = r#"{"error": {"message": "This model's maximum context length is 8 tokens.", "code": "context_length_exceeded"}}"#;
    Provider::start(move |seen| match seen.body.len() > bytes {
        true => reply(status, "application/json", too_long),
        false => ok("{\"good\": 1}"),
    })
    .await
}

#[tokio::test]
async fn what_is_too_long_goes_out_once_more_with_old_results_cleared() {
    for status in ["400 Bad Request", "413 Content Too Large"] {
        let provider = narrow(8_000, status).await;
        let store = memory();
        let server = Server::reducing(&provider.url, &store, |serve| {
            serve.cut_without_reader = true;
        })
        .await;
        let (path, eight) = ("/v1/chat/completions", overflowing(8, true));
        let answer = server.post(path, &[], &eight).await;
        assert_eq!(answer.line, "HTTP/1.1 200 OK");
        assert_eq!(answer.header("x-offcut"), Some("recovered"));
        let seen = provider.seen();
        assert_eq!((seen.len(), seen[0].text()), (2, eight.as_str()));
        let messages = |seen: &Seen| -> Vec<Value> {
            let body: Value = serde_json::from_str(seen.text()).unwrap();
            body["messages"].as_array().unwrap().clone()
        };
        let (before, after) = (messages(&seen[0]), messages(&seen[1]));
        for (at, (before, after)) in before.iter().zip(&after).enumerate() {
            let is_old_result = at % 2 == 0 && at > 0 && at < 16;
            assert_eq!(before == after, !is_old_result, "message {at}");
            if is_old_result {
                let hint = Hint::parse(after["content"].as_str().unwrap()).unwrap();
                let key = store.resolve(hint.location.unwrap().as_str()).unwrap();
                let stored = store.read(&key, 0..u64::MAX).await.unwrap().bytes;
                assert_eq!(before["content"], str::from_utf8(&stored).unwrap());
            }
        }
        // It stays as short, so the next one is not refused.
        let answer = server.post(path, &[], &overflowing(9, true)).await;
        assert_eq!(answer.header("x-offcut"), Some("reduced"));
        assert_eq!(provider.seen().len(), 3);
        assert_eq!(messages(&provider.last())[..17], after);
        let metrics = server.get("/metrics").await;
        assert_eq!(answer.header("x-offcut-cache"), None);
        let after: usize = provider.seen()[1..]
            .iter()
            .map(|seen| seen.body.len())
            .sum();
        for line in [
            "offcut_requests_total{upstream=\"openai\",outcome=\"recovered\"} 1",
            &format!("offcut_bytes_total{{when=\"after\"}} {after}\n"),
        ] {
            assert!(metrics.text().contains(line), "{}", metrics.text());
        }
    }
}

/// A text of a user, which the model has answered, can be too long.
#[tokio::test]
async fn a_long_text_of_a_user_is_stored_where_nothing_else_helps() {
    let provider = narrow(20_000, "400 Bad Request").await;
    let store = memory();
    let server = Server::reducing(&provider.url, &store, |serve| {
        serve.cut_without_reader = true;
    })
    .await;
    let paste = "a pasted line\n".repeat(6_000);
    let mut body: Value = serde_json::from_str(&overflowing(2, true)).unwrap();
    body["messages"][0]["content"] = paste.clone().into();
    let answer = server
        .post("/v1/chat/completions", &[], &body.to_string())
        .await;
    assert_eq!(answer.header("x-offcut"), Some("recovered"));
    let sent: Value = serde_json::from_str(provider.last().text()).unwrap();
    let hint = Hint::parse(sent["messages"][0]["content"].as_str().unwrap()).unwrap();
    let key = store.resolve(hint.location.unwrap().as_str()).unwrap();
    let stored = store.read(&key, 0..u64::MAX).await.unwrap().bytes;
    assert_eq!(str::from_utf8(&stored).unwrap(), paste);
}

const STREAM: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// A piece of a stream, which ends with an empty one.
fn chunk(text: &str) -> Step {
    send(format!("{:x}\r\n{text}\r\n", text.len()))
}

/// A stream of the Responses API, in which a window is found to be too small after the reply has begun.
#[tokio::test]
async fn what_a_stream_says_is_too_long_goes_out_once_more() {
    const OPENING: &str = "event: response.created\ndata: {\"type\": \"response.created\"}\n\nevent: response.in_progress\ndata: {\"type\": \"response.in_progress\"}\n\n";
    const DONE: &str = "event: response.completed\ndata: {\"type\": \"response.completed\"}\n\n";
    let failed = |code: &str| {
        let failed = json!({"type": "response.failed", "response": {"error": {"code": code, "message": "Your input exceeds it."}}});
        format!("event: response.failed\ndata: {failed}\n\n")
    };
    let body = |rounds: usize| {
        let mut input = vec![json!({"role": "user", "content": "go"})];
        for n in 0..rounds {
            let id = format!("call_{n}");
            input.extend([
                json!({"type": "function_call", "call_id": id, "name": "run", "arguments": "{}"}),
                json!({"type": "function_call_output", "call_id": id, "output": format!("a line of result {n}\n").repeat(60)}),
            ]);
        }
        json!({"model": "m", "stream": true, "input": input, "tools": [{"type": "function", "name": "run"}]}).to_string()
    };
    let error = json!({"type": "error", "error": {"message": "prompt is too long: 9 tokens"}});
    for (failed, is_recovered) in [
        (failed("context_length_exceeded"), true),
        (failed("server_error"), false),
        (
            format!("data: {{\"type\": \"ping\"}}\n\ndata: {error}\n\n"),
            true,
        ),
        (format!("data: {error}\r\r"), true),
        ("data: the context window\n\n".to_owned(), false),
    ] {
        let end = failed.clone();
        let provider = Provider::start(move |seen| {
            let rest = match seen.body.len() > 8_000 {
                true => &*end,
                false => DONE,
            };
            vec![send(STREAM), chunk(OPENING), chunk(rest), chunk("")]
        })
        .await;
        let server = Server::reducing(&provider.url, &memory(), |serve| {
            serve.cut_without_reader = true;
        })
        .await;
        let answer = server.post("/v1/responses", &[], &body(8)).await;
        let expected = if is_recovered {
            "recovered"
        } else {
            "unchanged"
        };
        assert_eq!(answer.header("x-offcut"), Some(expected), "{failed}");
        let end = if is_recovered { DONE } else { &*failed };
        assert_eq!(answer.text(), format!("{OPENING}{end}"));
        assert_eq!(provider.seen().len(), 1 + usize::from(is_recovered));
    }
}

#[tokio::test]
async fn what_a_compressed_stream_says_is_too_long_goes_out_once_more() {
    let error = json!({"error": {"message": "prompt is too long: 9 tokens"}});
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    write!(gzip, "data: {error}\n\n").unwrap();
    // As it is sent while the stream goes on.
    gzip.flush().unwrap();
    let gzip = gzip.get_ref().clone();
    let provider = Provider::start(move |seen| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
            gzip.len()
        );
        match seen.body.len() > 8_000 {
            true => vec![send(head), Step::Send(gzip.clone())],
            false => ok("{\"good\": 1}"),
        }
    })
    .await;
    let server = Server::reducing(&provider.url, &memory(), |serve| {
        serve.cut_without_reader = true;
    })
    .await;
    let path = "/v1/chat/completions";
    let answer = server.post(path, &[], &overflowing(8, true)).await;
    assert_eq!(answer.header("x-offcut"), Some("recovered"));
    assert_eq!(answer.text(), "{\"good\": 1}");
}

/// The first events of a stream do not wait for long.
#[tokio::test]
async fn a_stream_that_goes_on_slowly_begins_all_the_same() {
    let go = Arc::new(Notify::new());
    let wait = go.clone();
    let provider = Provider::start(move |_| {
        let [first, last] = ["created", "completed"]
            .map(|kind| chunk(&format!("data: {{\"type\": \"response.{kind}\"}}\n\n")));
        vec![
            send(STREAM),
            first,
            Step::Wait(wait.clone()),
            last,
            chunk(""),
        ]
    })
    .await;
    let server = Server::reducing(&provider.url, &memory(), |_| {}).await;
    let body = json!({"model": "m", "stream": true, "input": [{"role": "user", "content": "go"}]});
    let body = body.to_string();
    let head = format!(
        "POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = server.open(format!("{head}{body}").as_bytes()).await;
    let (mut read, mut piece) = (Vec::new(), [0; 1_000]);
    while find(&read, b"response.created").is_none() {
        let length = stream.read(&mut piece).await.unwrap();
        read.extend_from_slice(&piece[..length]);
    }
    go.notify_one();
    while find(&read, b"response.completed").is_none() {
        let length = stream.read(&mut piece).await.unwrap();
        read.extend_from_slice(&piece[..length]);
    }
}

/// A provider that is busy has taken nothing: neither is the request recovered, nor does its cache hold anything.
#[tokio::test]
async fn a_second_try_that_is_not_taken_is_no_recovery() {
    let busy = r#"{"error": {"message": "slow down"}}"#;
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let provider = Provider::start(move |seen| {
        let nth = counted.fetch_add(1, Ordering::Relaxed);
        match (seen.body.len() > 8_000, nth) {
            (true, _) => reply("400 Bad Request", "application/json", r#"{"error": {"message": "maximum context length"}}"#),
            (false, 1) => reply("429 Too Many Requests", "application/json", busy),
            (false, _) => ok(&json!({"usage": {"prompt_tokens": 1_700, "prompt_tokens_details": {"cached_tokens": 0}}}).to_string()),
        }
    })
    .await;
    let server = Server::reducing(&provider.url, &memory(), |serve| {
        serve.cut_without_reader = true;
    })
    .await;
    let path = "/v1/chat/completions";
    let answer = server.post(path, &[], &overflowing(8, true)).await;
    assert_eq!(
        (answer.line.as_str(), answer.text()),
        ("HTTP/1.1 429 Too Many Requests", busy)
    );
    assert_eq!(answer.header("x-offcut"), Some("unchanged"));
    let answer = server.post(path, &[], &overflowing(8, true)).await;
    assert_eq!(answer.header("x-offcut"), Some("reduced"));
    assert_eq!(answer.header("x-offcut-cache"), None);
    let metrics = server.get("/metrics").await;
    for wrong in ["recovered", "cache_missed_tokens_total{"] {
        assert!(
            !metrics.text().contains(wrong),
            "{wrong}: {}",
            metrics.text()
        );
    }
}

#[tokio::test]
async fn what_stays_too_long_is_the_clients_to_know() {
    let asked = async |bytes, tools, retries| {
        let provider = narrow(bytes, "400 Bad Request").await;
        let server = Server::reducing(&provider.url, &memory(), |serve| {
            serve.cut_without_reader = true;
            serve.retry_too_long = retries;
        })
        .await;
        let body = overflowing(8, tools);
        let answer = server.post("/v1/chat/completions", &[], &body).await;
        assert_eq!(answer.line, "HTTP/1.1 400 Bad Request");
        assert_eq!(answer.header("x-offcut"), Some("unchanged"));
        assert!(answer.text().contains("maximum context length"));
        provider.seen().len()
    };
    assert_eq!(asked(100, true, true).await, 2, "it does not help");
    assert_eq!(asked(8_000, true, false).await, 1, "the settings forbid it");
    assert_eq!(asked(8_000, false, true).await, 1, "a compaction reads all");
}

/// If the original gets no answer, the refusal is the answer, however long.
#[tokio::test]
async fn a_refusal_outlives_a_second_try_that_fails() {
    let long = "e".repeat(1_500_000);
    for body in ["{\"error\": 1}", long.as_str()] {
        let refusal = reply("400 Bad Request", "application/json", body);
        let provider = Provider::start(move |seen| {
            if is_changed(seen) {
                refusal.clone()
            } else {
                vec![Step::Close]
            }
        })
        .await;
        let server = reducing(&provider).await;
        let answer = server.post("/v1/chat/completions", &[], &request()).await;
        assert_eq!(answer.line, "HTTP/1.1 400 Bad Request");
        assert_eq!(answer.text(), body);
    }
}

/// Servers close connections that are idle, at times just when a request is on its way.
#[tokio::test]
async fn a_request_on_a_connection_that_was_closed_as_idle_is_sent_again() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let provider = Provider::start(move |_| {
        // Each of two connections breaks at its second request.
        match counted.fetch_add(1, Ordering::Relaxed) {
            1 | 4 => vec![Step::Close],
            _ => ok("{}"),
        }
    })
    .await;
    let server = Server::start(&provider.url, |_| ()).await;
    let body = "{\"messages\": []}";
    for path in [
        "/v1/chat/completions",
        "/v1/messages",
        "/v1/embeddings",
        "/v1/models",
    ] {
        let path = format!("/openai{path}");
        let answer = match &*path {
            "/openai/v1/models" => server.get(&path).await,
            path => server.post(path, &[], body).await,
        };
        assert_eq!(answer.line, "HTTP/1.1 200 OK", "{path}");
    }
    assert_eq!(count.load(Ordering::Relaxed), 6);
}

/// Whoever has worked on a request for a while would do it twice.
#[tokio::test]
async fn a_request_is_not_sent_again_once_the_provider_was_at_work() {
    let (count, broken) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let (counted, breaks) = (count.clone(), broken.clone());
    let provider = Provider::start(move |_| match counted.fetch_add(1, Ordering::Relaxed) {
        0 => ok("{}"),
        _ => vec![Step::Wait(breaks.clone()), Step::Close],
    })
    .await;
    let server = Server::start(&provider.url, |_| ()).await;
    let path = "/v1/chat/completions";
    server.post(path, &[], "{\"messages\": []}").await;
    let late = async {
        while count.load(Ordering::Relaxed) < 2 {
            tokio::task::yield_now().await;
        }
        tokio::time::pause();
        tokio::time::advance(std::time::Duration::from_secs(2)).await;
        tokio::time::resume();
        broken.notify_one();
    };
    let (answer, ()) = tokio::join!(server.post(path, &[], "{\"messages\": []}"), late);
    assert_eq!(answer.line, "HTTP/1.1 502 Bad Gateway");
    assert_eq!(count.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_request_on_a_new_connection_is_sent_once() {
    let provider = Provider::start(|_| vec![Step::Close]).await;
    let server = Server::start(&provider.url, |_| ()).await;
    let answer = server
        .post("/v1/chat/completions", &[], "{\"messages\": []}")
        .await;
    assert_eq!(answer.line, "HTTP/1.1 502 Bad Gateway");
    assert_eq!(provider.seen().len(), 1);
}

/// Ports are used again: each provider's own first one is anywhere, and one in fourteen of these was used before.
#[tokio::test]
async fn a_new_connection_with_the_port_of_a_used_one_is_not_taken_for_it() {
    let used = Provider::start(|_| {
        let mut answer = ok("{}");
        answer.push(Step::Close);
        answer
    })
    .await;
    let mut others = Vec::new();
    for _ in 0..150 {
        others.push(Provider::start(|_| vec![Step::Close]).await);
    }
    let server = Server::start(&used.url, |serve| {
        let named = others.iter().enumerate();
        serve
            .upstreams
            .extend(named.map(|(number, other)| (format!("p{number}"), other.url.clone())));
    })
    .await;
    for _ in 0..1_000 {
        server.get("/openai/v1/x").await;
    }
    for (number, other) in others.iter().enumerate() {
        let answer = server.get(&format!("/p{number}/v1/x")).await;
        assert_eq!(answer.line, "HTTP/1.1 502 Bad Gateway");
        assert_eq!(other.seen().len(), 1, "{number}");
    }
}

#[tokio::test]
async fn a_body_of_unknown_length_passes_whatever_the_method() {
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::start(&provider.url, |_| ()).await;
    for method in ["GET", "DELETE", "PUT", "POST"] {
        let request = format!(
            "{method} /openai/v1/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
        );
        server.raw(request.as_bytes()).await.unwrap();
        assert_eq!(provider.last().text(), "hello", "{method}");
    }
    let coded = "POST /openai/v1/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n";
    let answer = server.raw(coded.as_bytes()).await.unwrap();
    assert_eq!(answer.line, "HTTP/1.1 501 Not Implemented");
    assert_eq!(provider.seen().len(), 4);
}

#[tokio::test]
async fn a_change_of_protocol_does_not_pass() {
    let provider = Provider::start(|_| {
        vec![send(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
        )]
    })
    .await;
    let server = Server::start(&provider.url, |_| ()).await;
    let answer = server.get("/v1/models").await;
    assert_eq!(answer.line, "HTTP/1.1 502 Bad Gateway");
}

/// Nobody would decode it: the header that names it is for the provider's connection alone.
#[tokio::test]
async fn a_reply_in_another_transfer_encoding_does_not_pass() {
    for (coding, is_passed) in [
        ("gzip, chunked", false),
        ("gzip", false),
        ("GZIP,Chunked", false),
        ("chunked\r\nTransfer-Encoding: chunked", false),
        ("gzip\r\nTransfer-Encoding: chunked", false),
        ("Chunked", true),
        (" , chunked", true),
        ("identity", true),
    ] {
        let head = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: {coding}\r\n\r\n");
        let body = "5\r\nhello\r\n0\r\n\r\n";
        let provider = Provider::start(move |_| vec![send(head.clone()), send(body), Step::Close]);
        let provider = provider.await;
        let server = Server::start(&provider.url, |_| ()).await;
        let answer = server.get("/openai/v1/x").await;
        let status = if is_passed {
            "200 OK"
        } else {
            "502 Bad Gateway"
        };
        assert_eq!(answer.line, format!("HTTP/1.1 {status}"), "{coding}");
        let text = answer.text();
        assert_eq!(text.contains("hello"), is_passed, "{coding}: {text}");
        assert_eq!(
            text.contains("transfer encoding"),
            !is_passed,
            "{coding}: {text}"
        );
    }
}
