//! Tests of the model against a server with the real protocol on loopback.
#![cfg(feature = "model")]
// Helpers may unwrap, as tests may.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    unreachable_pub
)]

mod server;

use std::sync::{Arc, Mutex};

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_trait::async_trait;
use offcut::agent::{Agent, ChatModel, ModelError, ModelReply, ModelRequest, Tool, ToolDefinition};
use offcut::backend::Memory;
use offcut::format::{Message, WireFormat};
use offcut::{Part, Report, TokenCounter, ToolCall, ToolError, ToolOutput, ToolReduction};
use offcut_async_openai::OpenAiChatModel;
use serde_json::{Value, json};

use server::{Reply, Server, chunks, completion};

fn model(server: &Server) -> OpenAiChatModel {
    at(&server.url)
}

fn at(url: &str) -> OpenAiChatModel {
    let config = OpenAIConfig::new()
        .with_api_base(url)
        .with_api_key("sk-secret");
    let http = reqwest::Client::builder()
        .tls_certs_only([])
        .no_proxy()
        .build()
        .unwrap();
    OpenAiChatModel::new(Client::build(http, config), "m")
}

async fn ask(model: &impl ChatModel) -> Result<ModelReply, ModelError> {
    let messages = [Message::user("go")];
    model
        .complete(ModelRequest {
            messages: &messages,
            tools: &[],
            generation_config: None,
        })
        .await
}

fn says(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

fn calls(calls: &[(&str, &str, &str)]) -> Value {
    let call = |(id, name, arguments): &(&str, &str, &str)| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    json!({"role": "assistant", "content": null, "tool_calls": calls.iter().map(call).collect::<Value>()})
}

/// Repeats a line as often as requested.
struct Lines;

#[async_trait]
impl Tool for Lines {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: "lines".into(),
            description: String::new(),
            parameters: json!({"type": "object"}),
        }
    }

    async fn call(&self, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        let arguments: Value =
            serde_json::from_str(&call.arguments).map_err(|_| ToolError::new("no JSON"))?;
        Ok(format!("{} of {}\n", "a line", call.id)
            .repeat(arguments["n"].as_u64().unwrap_or(1) as usize)
            .into())
    }
}

const TURNS: usize = 12;

/// Runs an agent over a server that calls `lines` twice a turn, reads one result back, and then
/// answers.
async fn run(is_streamed: bool) -> (Vec<Value>, Vec<Report>, Vec<Message>, String) {
    let server = Server::answering(move |nth, request| {
        let tokens = request.to_string().len() as u64 / 4;
        let [one, two] = [0, 1].map(|which| format!("call_{}", nth * 2 + which));
        let message = match nth {
            TURNS => says("Done. 完"),
            nth if nth == TURNS - 1 => {
                let shown = request["messages"][3]["content"].as_str().unwrap();
                let location = offcut::hint::Hint::parse(shown)
                    .expect("a hint")
                    .location
                    .expect("stored");
                let arguments = json!({"path": location.as_str(), "limit": 2}).to_string();
                calls(&[(&one, "read_file", &arguments)])
            }
            nth => calls(&[
                (&one, "lines", "{\"n\": 2000}"),
                (&two, "lines", &json!({"n": nth * 20}).to_string()),
            ]),
        };
        if is_streamed {
            Reply::Events(chunks(&message, tokens), 7)
        } else {
            Reply::Json(200, completion(&message, tokens))
        }
    })
    .await;
    let (reports, text) = (
        Arc::new(Mutex::new(Vec::new())),
        Arc::new(Mutex::new(String::new())),
    );
    let (seen, said) = (Arc::clone(&reports), Arc::clone(&text));
    let reduction = ToolReduction::recommended(Memory::new())
        .token_counter(TokenCounter::Estimate)
        .max_tokens_for_clear(4_000)
        .on_report(move |report| seen.lock().unwrap().push(report.clone()))
        .build()
        .unwrap();
    let mut model = model(&server);
    if is_streamed {
        model = model.on_text(move |text| said.lock().unwrap().push_str(text));
    }
    let agent = Agent::builder(model)
        .tool(Lines)
        .tool(reduction.read_file_tool())
        .middleware(reduction)
        .build()
        .unwrap();
    let mut messages = vec![Message::system("Be brief."), Message::user("go")];
    agent.run(&mut messages).await.unwrap();
    let (reports, text) = (
        reports.lock().unwrap().clone(),
        text.lock().unwrap().clone(),
    );
    (server.requests(), reports, messages, text)
}

#[tokio::test]
async fn an_agent_is_bounded_valid_and_stable_on_the_wire_and_the_count_is_fed_back() {
    let (whole, reports, messages, _) = run(false).await;
    let (streamed, _, streamed_messages, text) = run(true).await;

    assert_eq!(whole.len(), TURNS + 1);
    assert_eq!(messages.last(), Some(&Message::assistant("Done. 完")));
    assert_eq!(text, "Done. 完");
    assert_eq!(
        messages, streamed_messages,
        "streamed or whole, the conversation is the same"
    );
    for (nth, request) in whole.iter().enumerate() {
        let sent = request["messages"].as_array().unwrap();
        assert_eq!(
            offcut_testkit::validate(WireFormat::OpenAiChat, sent),
            Ok(()),
            "request {nth}"
        );
        assert_eq!(
            request["messages"], streamed[nth]["messages"],
            "request {nth}"
        );
        assert_eq!(
            (
                &request["model"],
                request["tools"].as_array().unwrap().len()
            ),
            (&json!("m"), 2)
        );
        assert!(
            sent.iter().all(|message| message.to_string().len() < 9_000),
            "request {nth} holds a whole result"
        );
        assert!(
            request["messages"].to_string().len() < 60_000,
            "request {nth}"
        );
    }
    assert_eq!(
        streamed[0]["stream_options"],
        json!({"include_usage": true})
    );

    // Earlier messages are sent again byte for byte, except after a pass that cleared some.
    let cleared = |report: &&Report| report.cleared_tool_uses() > 0;
    let breaks = whole.windows(2).filter(|pair| {
        let [before, after] = [0, 1].map(|nth| pair[nth]["messages"].as_array().unwrap());
        !after.starts_with(before)
    });
    let passes = reports.iter().filter(cleared).count();
    assert!(passes > 0 && breaks.count() <= passes, "{passes} passes");
    // The second pass and all later ones know the provider's count.
    let anchors: Vec<_> = reports
        .iter()
        .filter_map(|report| report.tokens?.usage)
        .collect();
    let counted: Vec<_> = whole[..whole.len() - 1]
        .iter()
        .map(|request| request.to_string().len() as u64 / 4)
        .collect();
    assert_eq!(anchors, counted);
}

#[tokio::test]
async fn rate_limits_and_server_errors_are_retried() {
    let limited = Reply::Json(
        429,
        json!({"error": {"message": "slow down", "type": "requests", "code": "rate_limit_exceeded"}}),
    );
    let broken = Reply::Json(500, json!({"error": {"message": "oops"}}));
    let fine = Reply::Json(200, completion(&says("hello"), 7));
    let server = Server::start(vec![limited.clone(), broken, fine]).await;
    let reply = ask(&model(&server)).await.unwrap();
    assert_eq!(
        reply,
        ModelReply {
            message: Message::assistant("hello"),
            input_tokens: Some(7)
        }
    );
    assert_eq!(server.requests().len(), 3);

    let server = Server::start(vec![
        limited.clone(),
        Reply::Events(chunks(&says("hello"), 7), 5),
    ])
    .await;
    assert_eq!(
        ask(&model(&server).on_text(|_| panic!("a callback's panic")))
            .await
            .unwrap(),
        reply
    );

    let server = Server::start(vec![limited]).await;
    let error = ask(&model(&server)).await.unwrap_err();
    assert!(
        error.is_retryable() && error.to_string().contains("slow down"),
        "{error}"
    );
    assert_eq!(server.requests().len(), 4);

    let quota = Reply::Json(
        429,
        json!({"error": {"message": "pay", "type": "insufficient_quota", "code": "insufficient_quota"}}),
    );
    let server = Server::start(vec![quota]).await;
    assert!(!ask(&model(&server)).await.unwrap_err().is_retryable());
    assert_eq!(server.requests().len(), 1);
}

/// Returns an error with its chain of causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

#[tokio::test]
async fn invalid_answers_are_errors_that_quote_none_of_the_answer() {
    let refused = |status, message: &str, code: &str| {
        Reply::Json(
            status,
            json!({"error": {"message": message, "type": code, "code": code}}),
        )
    };
    let piece = json!({"choices": [{"index": 0, "delta": {"content": "spoken"}}]});
    for (reply, is_streamed, expected) in [
        (
            Reply::Text(200, "<html>spoken</html>"),
            false,
            "not JSON: set OPENAI_BASE_URL",
        ),
        (
            Reply::Text(200, "{\"choices\": [{\"message\": {\"content\": \"spoken"),
            false,
            "not JSON",
        ),
        (
            Reply::Json(200, json!({"spoken": 1})),
            false,
            "no `choices`",
        ),
        (
            Reply::Json(200, json!({"choices": []})),
            false,
            "no `choices`",
        ),
        (
            Reply::Json(
                200,
                json!({"choices": [{"message": {"content": null}, "finish_reason": "content_filter"}]}),
            ),
            false,
            "content_filter",
        ),
        (
            Reply::Json(200, json!({"choices": "spoken"})),
            false,
            "no `choices`",
        ),
        (
            refused(401, "wrong key", "invalid_api_key"),
            false,
            "check OPENAI_API_KEY",
        ),
        (
            refused(404, "no such model", "model_not_found"),
            false,
            "check the model's name",
        ),
        (
            refused(400, "too long", "context_length_exceeded"),
            false,
            "lower `max_tokens_for_clear`",
        ),
        (Reply::Events(vec![piece.clone()], 9), true, "cut off"),
        (Reply::Cut(vec![piece.clone()]), true, "cut off"),
        (
            Reply::Events(
                vec![
                    piece,
                    json!({"error": {"message": "overloaded", "code": 503}}),
                ],
                9,
            ),
            true,
            "overloaded",
        ),
        (Reply::Text(200, "data: {spoken\n\n"), true, "not JSON"),
        (Reply::Text(200, "<html>spoken</html>"), true, "cut off"),
        (Reply::Events(vec![], 9), true, "cut off"),
    ] {
        let server = Server::start(vec![reply.clone()]).await;
        let model = model(&server);
        let asked = if is_streamed {
            ask(&model.on_text(|_| {})).await
        } else {
            ask(&model).await
        };
        let error = chain(&asked.expect_err(&format!("{reply:?}")));
        assert!(error.contains(expected), "{reply:?}: {error}");
        assert!(
            !error.contains("spoken") && !error.contains("sk-secret"),
            "{reply:?}: {error}"
        );
    }
    let nobody = ask(&at("http://127.0.0.1:9/v1")).await.unwrap_err();
    assert!(nobody.to_string().contains("can't be reached"), "{nobody}");
}

#[tokio::test]
async fn endpoints_that_leave_things_out_are_understood() {
    let whole = json!({"choices": [{"message": {"tool_calls": [
        {"function": {"name": "f", "arguments": {"a": 1}}}, {"id": "b", "function": {"name": "g"}},
    ]}}]});
    let delta = |call: Value| json!({"choices": [{"delta": {"tool_calls": [call]}}]});
    let pieces = vec![
        delta(json!({"function": {"name": "f", "arguments": "{\"a\""}})),
        delta(json!({"function": {"arguments": ":1}"}})),
        delta(json!({"id": "b", "function": {"name": "g", "arguments": ""}})),
        json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}),
    ];
    let expected = Message::calls(vec![
        ToolCall::new("", "f", "{\"a\":1}"),
        ToolCall::new("b", "g", ""),
    ]);
    let server = Server::start(vec![Reply::Json(200, whole), Reply::Events(pieces, 100)]).await;
    let reply = ask(&model(&server)).await.unwrap();
    assert_eq!(
        reply,
        ModelReply {
            message: expected,
            input_tokens: None
        }
    );
    assert_eq!(
        ask(&model(&server).on_text(|_| panic!("a callback's panic")))
            .await
            .unwrap(),
        reply
    );
}

#[tokio::test]
async fn requests_are_what_the_api_takes() {
    let server = Server::start(vec![Reply::Json(200, completion(&says("."), 1))]).await;
    let [a, b] = ["a", "b"].map(|id| ToolCall::new(id, "look", "{}"));
    let image = Part::Media {
        mime: "image/png".into(),
        data: vec![0].into(),
    };
    let messages = [
        Message::system("Be brief."),
        Message::User {
            content: vec!["What is it?".into(), image.clone()],
        },
        Message::calls(vec![a.clone(), b.clone()]),
        Message::tool(&a, vec!["seen".into(), image.clone()], false),
        Message::tool(&b, vec![image], false),
        Message::assistant("hm"),
        Message::user("So?"),
    ];
    let generation = serde_json::from_value(json!({"temperature": 0})).unwrap();
    let request = ModelRequest {
        messages: &messages,
        tools: &[],
        generation_config: Some(&generation),
    };
    model(&server)
        .with("max_completion_tokens", 9)
        .complete(request)
        .await
        .unwrap();
    let sent = &server.requests()[0];
    assert_eq!(
        offcut_testkit::validate(WireFormat::OpenAiChat, sent["messages"].as_array().unwrap()),
        Ok(())
    );
    let url = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}});
    let from = json!({"type": "text", "text": "From look:"});
    let call =
        |id| json!({"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}});
    let expected = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "What is it?"}, url]},
        {"role": "assistant", "content": null, "tool_calls": [call("a"), call("b")]},
        {"role": "tool", "tool_call_id": "a", "content": "seen"},
        {"role": "tool", "tool_call_id": "b", "content": "Its image follows."},
        {"role": "user", "content": [from, url, from, url]},
        {"role": "assistant", "content": "hm"},
        {"role": "user", "content": "So?"},
    ]);
    assert_eq!(sent["messages"], expected);
    assert_eq!(
        (
            &sent["temperature"],
            &sent["max_completion_tokens"],
            sent.get("tools")
        ),
        (&json!(0), &json!(9), None)
    );
}

/// The endpoint's URL may hold a password or a key, and an endpoint may repeat its request.
#[tokio::test]
async fn l12_no_error_shows_the_endpoints_url_or_the_key() {
    const SECRET: &str = "pLanTeD";
    let said = |error: ModelError| {
        let mut text = format!("{error} {error:?}");
        let mut next = std::error::Error::source(&error);
        while let Some(cause) = next {
            text.push_str(&format!(" {cause} {cause:?}"));
            next = cause.source();
        }
        text
    };
    for base in [
        "http://me:pLanTeD@127.0.0.1:1/v1",
        "http://127.0.0.1:1/v1?key=pLanTeD",
        "http://me:pLanTeD@/v1",
        "pLanTeD",
    ] {
        let error = said(ask(&at(base)).await.unwrap_err());
        assert!(!error.contains(SECRET), "{base}: {error}");
        assert!(!format!("{:?}", at(base)).contains(SECRET));
    }
    for status in [401, 403] {
        let repeated = json!({"error": {"message": "Incorrect API key provided: pLanTeD", "code": "invalid_api_key"}});
        let server = Server::start(vec![Reply::Json(status, repeated)]).await;
        let error = said(ask(&model(&server)).await.unwrap_err());
        assert!(
            !error.contains(SECRET) && error.contains("check OPENAI_API_KEY"),
            "{status}: {error}"
        );
    }
}

#[tokio::test]
async fn a_model_shows_no_key() {
    let server = Server::start(vec![Reply::Json(200, completion(&says("."), 1))]).await;
    assert!(!format!("{:?}", model(&server)).contains("sk-secret"));
    assert!(OpenAiChatModel::named("m").is_ok(), "TLS can be set up");
}
