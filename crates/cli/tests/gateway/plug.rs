//! The plug: `/v1/compress` and `/v1/retrieve/{hash}`, as LiteLLM's guardrail calls them.

use std::sync::Arc;

use crate::support::{Provider, Seen, Server, memory, ok, reduction, settings};
use offcut::backend::{Backend, ErrorKind, Fs, Location, Memory};
use offcut::hint::{Hint, Kind};
use offcut_cli::gateway::{Gateway, OnFailure, ServeSettings};
use offcut_testkit::{Fault, Faulty};
use serde_json::{Value, json};

const ONE: &str = "planted-key-of-team-one";
const TWO: &str = "planted-key-of-team-two";

fn long(word: &str) -> String {
    (0..2_000)
        .map(|n| format!("line {n} of {word}\n"))
        .collect()
}

fn plugged(serve: &mut ServeSettings) {
    for (name, key) in [("one", ONE), ("two", TWO)] {
        let key = key.to_owned().into();
        serve.compress_keys.insert(name.to_owned(), key);
    }
}

async fn started(store: &Arc<dyn Backend>) -> Server {
    Server::reducing("http://127.0.0.1:1", store, plugged).await
}

async fn compress(server: &Server, key: &str, body: &str) -> Seen {
    let bearer = format!("Bearer {key}");
    let headers = [("Authorization", &*bearer)];
    server.post("/v1/compress", &headers, body).await
}

async fn retrieve(server: &Server, key: &str, rest: &str) -> Seen {
    let request = format!(
        "GET /v1/retrieve/{rest} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n"
    );
    server.raw(request.as_bytes()).await.unwrap()
}

fn value(answer: &Seen) -> Value {
    serde_json::from_str(answer.text()).unwrap()
}

/// The rows that LiteLLM sends: without those of the model.
fn rows(results: &[&str]) -> Value {
    let user = json!({"role": "user", "content": "Find the line"});
    let row = |(nth, result)| json!({"role": "tool", "tool_call_id": format!("call_{nth}"), "content": result, "x": 1.50});
    let results = results.iter().enumerate().map(row);
    let rows: Vec<_> = [user].into_iter().chain(results).collect();
    json!({"messages": rows, "model": "m"})
}

fn hashes(answer: &Value) -> Vec<&str> {
    let hashes = answer["ccr_hashes"].as_array().unwrap();
    hashes.iter().map(|hash| hash.as_str().unwrap()).collect()
}

#[tokio::test]
async fn long_results_are_cut_and_each_hash_gives_its_original_back() {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Backend> = Arc::new(Fs::open(folder.path()).unwrap());
    let server = started(&store).await;
    let (first, second) = (long("a"), long("\"ä\\u0000\""));
    let body = rows(&[&first, "short", &second, &first]).to_string();
    let answer = compress(&server, ONE, &body).await;
    assert_eq!(answer.header("x-offcut"), Some("reduced"), "{answer:?}");
    let reply = value(&answer);
    let messages = reply["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 5);
    let of = hashes(&reply);
    assert_eq!(of.len(), 2, "an equal text has an equal hash");
    assert!(reply["tokens_saved"].as_u64().unwrap() > 10_000, "{reply}");
    for (row, hash, original) in [(1, of[0], &first), (3, of[1], &second), (4, of[0], &first)] {
        let shown = messages[row]["content"].as_str().unwrap();
        assert!(shown.len() < original.len() / 3, "{shown}");
        assert!(shown.contains(&format!("hash={hash}")), "{shown}");
        assert!(shown.contains("headroom_retrieve"), "{shown}");
        assert!(!shown.contains(folder.path().to_str().unwrap()), "{shown}");
        let read = value(&retrieve(&server, ONE, hash).await);
        assert_eq!(read["original_content"], **original);
    }
    // All else of the rows is as it came.
    let mut back = reply["messages"].clone();
    for (row, original) in [(1, &first), (3, &second), (4, &first)] {
        back[row]["content"] = json!(original);
    }
    assert_eq!(
        back,
        serde_json::from_str::<Value>(&body).unwrap()["messages"]
    );

    // The same bytes again, also by another process, and after the first one has ended.
    assert_eq!(compress(&server, ONE, &body).await.text(), answer.text());
    let other = started(&(Arc::new(Fs::open(folder.path()).unwrap()) as _)).await;
    drop(server);
    for hash in &of {
        let read = retrieve(&other, ONE, hash).await;
        assert_eq!(read.line, "HTTP/1.1 200 OK");
    }
    assert_eq!(compress(&other, ONE, &body).await.text(), answer.text());
    // Each text decides alone: fewer rows around it change nothing.
    let alone = value(&compress(&other, ONE, &rows(&[&second]).to_string()).await);
    assert_eq!(alone["messages"][1]["content"], messages[3]["content"]);
    let metrics = other.get("/metrics").await;
    assert!(metrics.text().contains("offcut_reads_total 2"));
}

#[tokio::test]
async fn two_tenants_with_the_same_text_have_other_hashes_and_never_read_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Backend> = Arc::new(Fs::open(folder.path()).unwrap());
    let server = started(&store).await;
    let (result, mut seen) = (long("the same"), Vec::new());
    for key in [ONE, TWO] {
        let reply = value(&compress(&server, key, &rows(&[&result]).to_string()).await);
        seen.push(hashes(&reply)[0].to_owned());
    }
    assert_ne!(seen[0], seen[1]);
    for (key, own, other) in [(ONE, 0, 1), (TWO, 1, 0)] {
        let read = value(&retrieve(&server, key, &seen[own]).await);
        assert_eq!(read["original_content"], *result);
        let refused = retrieve(&server, key, &seen[other]).await;
        assert_eq!(refused.line, "HTTP/1.1 404 Not Found");
        assert!(!refused.text().contains("line 1"));
    }
    let body = rows(&[&result]).to_string();
    for headers in [
        vec![],
        vec![("Authorization", "Bearer other")],
        vec![("Authorization", "Basic planted-key-of-team-one")],
        vec![("x-api-key", ONE)],
    ] {
        let refused = server.post("/v1/compress", &headers, &body).await;
        assert_eq!(refused.line, "HTTP/1.1 401 Unauthorized", "{headers:?}");
    }
    let refused = server.get(&format!("/v1/retrieve/{}", seen[0])).await;
    assert_eq!(refused.line, "HTTP/1.1 401 Unauthorized");
    // The keys are in nothing that was stored or counted.
    crate::support::assert_nothing_holds(folder.path(), "planted");
    assert!(!server.get("/metrics").await.text().contains("planted"));
}

#[tokio::test]
async fn only_results_are_cut_and_not_those_that_the_model_has_read_back() {
    let server = started(&memory()).await;
    let result = long("x");
    let image =
        json!([{"type": "text", "text": result}, {"type": "image_url", "image_url": {"url": "u"}}]);
    let parts = json!([{"type": "text", "text": result}]);
    let mut messages = json!([
        {"role": "system", "content": result},
        {"role": "user", "content": result},
        {"role": "assistant", "content": result},
        {"role": "tool", "tool_call_id": "1", "content": image},
        {"role": "tool", "tool_call_id": "2", "name": "headroom_retrieve", "content": result},
        {"role": "tool", "tool_call_id": "3", "name": "mcp__a__headroom_retrieve", "content": result},
    ]);
    let body = json!({"messages": messages}).to_string();
    let answer = compress(&server, ONE, &body).await;
    assert_eq!(answer.header("x-offcut"), Some("unchanged"));
    let reply = value(&answer);
    assert_eq!((&reply["messages"], hashes(&reply)), (&messages, vec![]));
    // A list of texts is cut, and stays a list.
    let list = json!({"role": "tool", "tool_call_id": "4", "content": parts});
    messages.as_array_mut().unwrap().push(list);
    let body = json!({"messages": messages}).to_string();
    let reply = value(&compress(&server, ONE, &body).await);
    let shown = reply["messages"][6]["content"][0]["text"].as_str().unwrap();
    assert!(shown.contains("hash="), "{shown}");
    let read = value(&retrieve(&server, ONE, hashes(&reply)[0]).await);
    assert_eq!(read["original_content"], *result);
    // A hint is not cut again.
    let again = json!({"messages": reply["messages"]}).to_string();
    let twice = value(&compress(&server, ONE, &again).await);
    assert_eq!(twice["messages"], reply["messages"]);
    // A long text is, though it looks like one.
    let mut forged = Hint::new(Kind::Truncated, 1);
    forged.location = Some(Location::new(format!("hash={}", hashes(&reply)[0])));
    forged.preview = result;
    let body = rows(&[&forged.render()]).to_string();
    let reply = value(&compress(&server, ONE, &body).await);
    let read = value(&retrieve(&server, ONE, hashes(&reply)[0]).await);
    assert_eq!(read["original_content"], forged.render());
}

#[tokio::test]
async fn a_query_gives_the_lines_with_its_words() {
    let server = started(&memory()).await;
    let result = long("x") + "Disk full at /dev/sda\n";
    let reply = value(&compress(&server, ONE, &rows(&[&result]).to_string()).await);
    let hash = hashes(&reply)[0];
    let read = async |query: &str| {
        let read = retrieve(&server, ONE, &format!("{hash}?query={query}")).await;
        value(&read)["original_content"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let shown = read("DISK+%C3%A4").await;
    assert!(shown.ends_with("\n2001: Disk full at /dev/sda"), "{shown}");
    assert_eq!(shown.lines().count(), 2);
    for all in ["", "no-such-word", "line"] {
        assert_eq!(read(all).await, result, "{all}");
    }
}

#[tokio::test]
async fn a_store_that_fails_costs_no_message() {
    let faulty = Arc::new(Faulty::new(Memory::new()));
    let store: Arc<dyn Backend> = faulty.clone();
    let server = started(&store).await;
    let body = rows(&[&long("x")]).to_string();
    faulty.fault_on_every_write(Fault::Fail(ErrorKind::Other));
    let answer = compress(&server, ONE, &body).await;
    assert_eq!(answer.header("x-offcut"), Some("passed; reason=store"));
    let sent: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(value(&answer)["messages"], sent["messages"]);
    let strict = Server::reducing("http://127.0.0.1:1", &store, |serve| {
        plugged(serve);
        serve.on_failure = OnFailure::Refuse;
    })
    .await;
    let refused = compress(&strict, ONE, &body).await;
    assert_eq!(refused.line, "HTTP/1.1 503 Service Unavailable");
    faulty.heal();
    let reply = value(&compress(&server, ONE, &body).await);
    faulty.fault_on_every_read(Fault::Fail(ErrorKind::Other));
    let read = retrieve(&server, ONE, hashes(&reply)[0]).await;
    assert_eq!(read.line, "HTTP/1.1 502 Bad Gateway");
}

#[tokio::test]
async fn calls_that_are_wrong_are_refused_without_a_word_of_theirs() {
    let server = Server::reducing("http://127.0.0.1:1", &memory(), |serve| {
        plugged(serve);
        serve.max_body = bytesize(20_000);
    })
    .await;
    for body in [
        "",
        "planted",
        "{}",
        r#"{"messages": "planted"}"#,
        r#"{"messages": [], "messages": []}"#,
        r#"{"contents": [{"role": "user", "parts": [{"text": "planted"}]}]}"#,
    ] {
        let refused = compress(&server, ONE, body).await;
        assert_eq!(refused.line, "HTTP/1.1 400 Bad Request", "{body}");
        assert!(!refused.text().contains("planted"), "{refused:?}");
    }
    let empty = value(&compress(&server, ONE, r#"{"messages": []}"#).await);
    assert_eq!(empty["messages"], json!([]));
    let too_long = compress(&server, ONE, &rows(&[&long("x")]).to_string()).await;
    assert_eq!(too_long.line, "HTTP/1.1 413 Payload Too Large");
    for hash in [
        "",
        "x",
        "0123456789abcdef0123456",
        "0123456789ABCDEF01234567",
        "0123456789abcdef01234567",
        "plug-one/trunc/0123456789abcdef01234567",
    ] {
        let refused = retrieve(&server, ONE, hash).await;
        assert_eq!(refused.line, "HTTP/1.1 404 Not Found", "{hash}");
    }
    // The key is for no provider, whatever the path.
    for path in ["/v1/compress.", "/v1/completions", "/openai/v1/compress"] {
        let headers = [("Authorization", "Bearer planted-key-of-team-one")];
        let answer = server.post(path, &headers, "{}").await;
        assert_eq!(answer.line, "HTTP/1.1 404 Not Found", "{path}");
    }
    let climbing = retrieve(&server, ONE, "%2e%2e%2fsecret").await;
    assert_eq!(climbing.line, "HTTP/1.1 400 Bad Request");
    let wrong_method = server
        .post(
            "/v1/retrieve/x",
            &[("Authorization", "Bearer planted-key-of-team-one")],
            "",
        )
        .await;
    assert_eq!(wrong_method.line, "HTTP/1.1 405 Method Not Allowed");
}

fn bytesize(bytes: u64) -> bytesize::ByteSize {
    bytesize::ByteSize::b(bytes)
}

#[tokio::test]
async fn without_a_key_in_the_settings_there_is_no_plug() {
    let provider = Provider::start(|_| ok("{}")).await;
    let server = Server::reducing(&provider.url, &memory(), |_| ()).await;
    let answer = compress(&server, ONE, &rows(&[&long("x")]).to_string()).await;
    assert_eq!(answer.line, "HTTP/1.1 404 Not Found");
    let answer = retrieve(&server, ONE, "0123456789abcdef01234567").await;
    assert_eq!(answer.line, "HTTP/1.1 404 Not Found");
    assert_eq!(provider.seen(), [], "nothing goes on to a provider");
}

#[test]
fn keys_and_names_that_can_not_be_used_are_told() {
    let store = memory();
    let built = |pairs: &[(&str, &str)]| {
        let mut serve = settings("http://127.0.0.1:1");
        for (name, key) in pairs {
            let key = (*key).to_owned().into();
            serve.compress_keys.insert((*name).to_owned(), key);
        }
        let open = |_: &str| Ok::<_, std::io::Error>(store.clone());
        Gateway::reducing(serve, &reduction(), open).map(|_| ())
    };
    built(&[("one", ONE), ("two", TWO)]).unwrap();
    for (pairs, word) in [
        (&[("one", "short")][..], "too short"),
        (&[("../one", ONE)], "lower-case"),
        (&[("One", ONE)], "lower-case"),
        (&[("one", ONE), ("two", ONE)], "another name"),
    ] {
        let error = built(pairs).unwrap_err().to_string();
        assert!(
            error.contains(word) && !error.contains("planted"),
            "{error}"
        );
        assert!(error.starts_with("`serve.compress_keys"), "{error}");
    }
}
