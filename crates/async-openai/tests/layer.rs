//! Tests of the layer: a loop sends its full history through a client, to a server with the real
//! protocol on loopback.
#![cfg(all(feature = "model", feature = "tower"))]
// Helpers may unwrap, as tests may.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    unreachable_pub
)]

mod server;

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::middleware::ReqwestService;
use async_openai::middleware::retry::OpenAIRetryLayer;
use futures_util::StreamExt;
use offcut::backend::Memory;
use offcut::format::WireFormat;
use offcut::{OnStoreFailure, TokenCounter, ToolReduction};
use offcut_async_openai::ClearLayer;
use offcut_testkit::{Fault, Faulty};
use serde_json::{Value, json};
use tower::Layer;

use server::{Reply, Server, chunks, completion};

fn client(server: &Server, reduction: ToolReduction) -> Client<OpenAIConfig> {
    let http = reqwest::Client::builder()
        .tls_certs_only([])
        .no_proxy()
        .build()
        .unwrap();
    let service = OpenAIRetryLayer::default().layer(ReqwestService::new(http.clone()));
    let config = OpenAIConfig::new()
        .with_api_base(&server.url)
        .with_api_key("sk-secret");
    Client::build(http, config).with_http_service(ClearLayer::new(reduction).layer(service))
}

fn builder() -> offcut::Builder {
    ToolReduction::builder()
        .skip_truncation(true)
        .token_counter(TokenCounter::Estimate)
        .max_tokens_for_clear(3_000)
}

fn result(n: usize) -> String {
    format!("line {n} of a result\n").repeat(200)
}

#[tokio::test]
async fn requests_are_bounded_valid_and_stable_and_the_loop_keeps_its_messages() {
    // The first attempt of the third request fails; the retry sends the same bytes.
    let server = Server::answering(|nth, _| match nth {
        2 => Reply::Json(500, json!({"error": {"message": "oops"}})),
        nth if nth % 2 == 0 => Reply::Events(chunks(&json!({"content": "ok"}), 1), 9),
        _ => Reply::Events(chunks(&json!({"content": "ok"}), 1), 50),
    })
    .await;
    let reduction = builder()
        .backend(Memory::named("t").unwrap())
        .build()
        .unwrap();
    let client = client(&server, reduction.clone());
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    for n in 0..12 {
        let call = json!({"id": format!("call_{n}"), "type": "function", "function": {"name": "f", "arguments": "{}"}});
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        messages.push(
            json!({"role": "tool", "tool_call_id": format!("call_{n}"), "content": result(n)}),
        );
        let body = json!({"model": "m", "messages": messages, "stream": true, "temperature": 0.7});
        let answer = client
            .chat()
            .create_stream_byot::<_, Value>(body)
            .await
            .unwrap();
        assert!(answer.collect::<Vec<_>>().await.iter().all(Result::is_ok));
    }
    assert!(
        messages
            .iter()
            .all(|message| !message.to_string().contains("offcut")),
        "the loop's own are as they were"
    );
    let sent = server.requests();
    assert_eq!(sent.len(), 13);
    assert_eq!(sent[2], sent[3], "a retry sends the same");
    let (mut breaks, mut cleared) = (0, 0);
    for pair in sent.windows(2) {
        let [before, after] = [0, 1].map(|nth| pair[nth]["messages"].as_array().unwrap());
        assert_eq!(
            offcut_testkit::validate(WireFormat::OpenAiChat, after),
            Ok(())
        );
        assert!(
            pair[1].to_string().len() < 25_000,
            "{}",
            pair[1].to_string().len()
        );
        breaks += usize::from(!after.starts_with(before));
        let hints = |list: &Vec<Value>| {
            list.iter()
                .filter(|message| message.to_string().contains("[offcut/1 cleared"))
                .count()
        };
        cleared += usize::from(hints(after) > hints(before));
    }
    assert!(
        cleared > 1 && breaks <= cleared,
        "{breaks} breaks, {cleared} passes that cleared"
    );
    for message in sent[12]["messages"].as_array().unwrap() {
        let Some(hint) = message["content"]
            .as_str()
            .and_then(offcut::hint::Hint::parse)
        else {
            continue;
        };
        let n: usize = message["tool_call_id"].as_str().unwrap()["call_".len()..]
            .parse()
            .unwrap();
        let content = reduction
            .read_original(&hint.location.unwrap())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(content, result(n));
    }
}

#[tokio::test]
async fn responses_are_cleared_too_and_everything_else_passes() {
    let server = Server::start(vec![Reply::Json(
        200,
        completion(&json!({"content": "ok"}), 1),
    )])
    .await;
    let client = client(&server, builder().backend(Memory::new()).build().unwrap());
    let item = |n: usize| {
        let call = json!({"type": "function_call", "call_id": format!("c{n}"), "name": "f", "arguments": "{}"});
        [
            call,
            json!({"type": "function_call_output", "call_id": format!("c{n}"), "output": result(n)}),
        ]
    };
    let input: Vec<Value> = (0..6).flat_map(item).collect();
    client
        .responses()
        .create_byot::<_, Value>(json!({"model": "m", "input": input}))
        .await
        .unwrap();
    let sent = &server.requests()[0];
    assert_eq!(
        offcut_testkit::validate(WireFormat::Responses, sent["input"].as_array().unwrap()),
        Ok(())
    );
    assert!(sent.to_string().contains("[offcut/1 cleared") && sent.to_string().len() < 8_000);

    // Tools count too.
    let tools = json!([{"type": "function", "name": "f", "description": "long ".repeat(3_000)}]);
    let short: Vec<Value> = (0..2).flat_map(item).collect();
    client
        .responses()
        .create_byot::<_, Value>(json!({"model": "m", "input": short, "tools": tools}))
        .await
        .unwrap();
    assert!(
        server.requests()[1]
            .to_string()
            .contains("[offcut/1 cleared")
    );

    for body in [
        json!({"model": "m", "input": result(1).repeat(9)}),
        json!({"model": "m", "input": [1, null]}),
    ] {
        client
            .responses()
            .create_byot::<_, Value>(body.clone())
            .await
            .unwrap();
        assert_eq!(server.requests().last(), Some(&body));
    }
}

#[tokio::test]
async fn a_failing_store_sends_nothing_if_settings_ask_for_an_error() {
    let server = Server::start(vec![Reply::Json(
        200,
        completion(&json!({"content": "ok"}), 1),
    )])
    .await;
    let store = Faulty::new(Memory::new());
    store.fault_on_write(1, Fault::Fail(offcut::backend::ErrorKind::Full));
    let reduction = builder()
        .backend(store)
        .on_offload_error(OnStoreFailure::Fail)
        .build()
        .unwrap();
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    for n in 0..6 {
        let call = json!({"id": format!("call_{n}"), "type": "function", "function": {"name": "f", "arguments": "{}"}});
        messages.push(json!({"role": "assistant", "tool_calls": [call]}));
        messages.push(
            json!({"role": "tool", "tool_call_id": format!("call_{n}"), "content": result(n)}),
        );
    }
    let asked = client(&server, reduction)
        .chat()
        .create_byot::<_, Value>(json!({"messages": messages}))
        .await;
    assert!(asked.is_err() && server.requests().is_empty());
}
