//! An agent with three tools and 40 turns, over the real protocol, with checks of every request.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::sync::{Arc, Mutex};

use common::model::{ModelServer, Reply, prompt_tokens};
use common::tools::{Fetch, Grep, Stat, returned};
use futures_util::StreamExt;
use offcut::backend::{ErrorKind, Memory};
use offcut::handler::{Action, ToolOutcome};
use offcut::hint::{Hint, Kind};
use offcut::report::Outcome;
use offcut::{Builder, OnOffloadError, Report, TokenCounter, ToolReduction};
use offcut_rig::Reduction;
use offcut_testkit::{Fault, Faulty};
use rig::agent::{Agent, AgentBuilder, MultiTurnStreamItem};
use rig::message::Message;
use serde_json::{Value, json};

/// The limit for a result, in bytes. `THRESHOLD` is in tokens, which are estimated at four bytes
/// each.
const LIMIT: usize = 4_000;
const THRESHOLD: u64 = 8_000;
const TURNS: usize = 40;

/// Clear passes: the number of newly replaced results of each, and the provider's count.
type Passes = Arc<Mutex<Vec<(usize, Option<u64>)>>>;

fn reduction() -> (ToolReduction, Passes) {
    let passes = Passes::default();
    let seen = Arc::clone(&passes);
    let observe = move |report: &Report| {
        let is_new = |outcome| matches!(outcome, Outcome::Cleared | Outcome::Shortened);
        let new = report
            .decisions
            .iter()
            .filter(|decision| is_new(decision.outcome))
            .count();
        if let Some(tokens) = report.tokens {
            seen.lock().unwrap().push((new, tokens.usage));
        }
    };
    let reduction = ToolReduction::builder()
        .backend(Memory::named("t").unwrap())
        .max_length_for_trunc(LIMIT)
        .preview_length(1_000)
        .token_counter(TokenCounter::Estimate)
        .max_tokens_for_clear(THRESHOLD)
        .on_report(observe)
        .build()
        .unwrap();
    (reduction, passes)
}

fn agent(server: &ModelServer, reduction: &Reduction) -> Agent {
    AgentBuilder::new(server.model())
        .preamble("Look around.")
        .tool(Grep)
        .tool(Stat)
        .tool(Fetch)
        .dynamic_tool(reduction.reader().unwrap())
        .build()
}

/// Calls tools for `TURNS` turns, in one of which it reads a result back, and then answers.
fn script(messages: &[Value]) -> Reply {
    let turn = messages
        .iter()
        .filter(|message| message["role"] == "assistant")
        .count();
    let call = |name, arguments| (format!("call_{turn}_{name}"), name, arguments);
    if turn == TURNS {
        return Reply::Answer("That is all.");
    }
    Reply::Calls(match turn % 4 {
        _ if turn == TURNS / 2 => {
            let hint = messages
                .iter()
                .filter_map(hint)
                .next()
                .expect("something was stored");
            vec![call(
                "read_file",
                json!({"path": hint.location.unwrap().to_string(), "offset": 7}),
            )]
        }
        0 => vec![call("grep", json!({"n": turn}))],
        1 => vec![
            call("grep", json!({"n": turn})),
            call("stat", json!({"n": turn})),
        ],
        2 => vec![call("stat", json!({"n": turn, "all": true}))],
        _ => vec![call("fetch", json!({"n": turn}))],
    })
}

fn text(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .map(|part| part["text"].as_str().unwrap())
            .collect(),
        other => panic!("{other}"),
    }
}

fn hint(message: &Value) -> Option<Hint> {
    (message["role"] == "tool").then(|| Hint::parse(&text(message)))?
}

/// The original tool result that `message` holds or replaces.
fn original(message: &Value) -> String {
    let id = message["tool_call_id"].as_str().unwrap();
    let (turn, tool) = id.strip_prefix("call_").unwrap().split_once('_').unwrap();
    let turn = turn.parse().unwrap();
    returned(
        if tool == "stat" && turn % 4 == 2 {
            "rows"
        } else {
            tool
        },
        turn,
    )
}

fn messages(request: &Value) -> &[Value] {
    request["messages"].as_array().unwrap()
}

/// Returns true if the request `next` begins with all messages of `one`.
fn continues(one: &Value, next: &Value) -> bool {
    let (one_said, next_said) = (messages(one), messages(next));
    // Compared as text, since prompt caches also depend on the order of keys.
    let text = Value::to_string;
    let is_prefix = one_said
        .iter()
        .map(text)
        .zip(next_said.iter().map(text))
        .all(|(one, next)| one == next);
    assert_eq!(one["tools"].to_string(), next["tools"].to_string());
    is_prefix && one_said.len() <= next_said.len()
}

fn breaks(requests: &[Value]) -> usize {
    requests
        .windows(2)
        .filter(|pair| !continues(&pair[0], &pair[1]))
        .count()
}

async fn check(requests: &[Value], reduction: &ToolReduction, passes: &Passes) {
    assert_eq!(requests.len(), TURNS + 1);
    let whole: usize = messages(requests.last().unwrap())
        .iter()
        .filter(|message| {
            message["role"] == "tool"
                && !message["tool_call_id"]
                    .as_str()
                    .unwrap()
                    .contains("read_file")
        })
        .map(|message| original(message).len())
        .sum();
    let largest = requests
        .iter()
        .map(|request| request.to_string().len())
        .max()
        .unwrap();
    // Room for the threshold, one round that the model has not seen yet, the tools and the
    // preamble.
    assert!(
        largest < THRESHOLD as usize * 4 + 2 * LIMIT + 4_000,
        "{largest}"
    );
    assert!(whole > 8 * largest, "{whole} would have been sent");
    for message in requests
        .iter()
        .flat_map(messages)
        .filter(|message| message["role"] == "tool")
    {
        assert!(text(message).len() <= LIMIT, "{}", text(message).len());
    }

    let passes = passes.lock().unwrap().clone();
    let clears = passes.iter().filter(|(cleared, _)| *cleared > 0).count();
    assert!(clears > 1, "{passes:?}");
    assert_eq!(
        breaks(requests),
        clears,
        "the prefix breaks at a clear, and nowhere else"
    );
    // Each pass is given the usage of the previous request, which the server reports.
    let counted: Vec<Option<u64>> = requests
        .iter()
        .map(|request| Some(prompt_tokens(request)))
        .collect();
    let known: Vec<Option<u64>> = passes.iter().map(|(_, usage)| *usage).collect();
    assert_eq!(known, [&[None], &counted[..TURNS]].concat());

    let mut stored = 0;
    for message in messages(requests.last().unwrap()) {
        let Some(hint) = hint(message).filter(|hint| !matches!(hint.kind, Kind::Page { .. }))
        else {
            continue;
        };
        let location = hint.location.unwrap();
        let content = reduction.read_original(&location).await.unwrap().unwrap();
        if !message["tool_call_id"]
            .as_str()
            .unwrap()
            .contains("read_file")
        {
            assert_eq!(content, original(message), "{location}");
            stored += 1;
        }
    }
    assert!(stored > 30, "{stored}");
}

fn page_read_back(requests: &[Value]) -> Hint {
    let request = &requests[TURNS / 2 + 1];
    let page = messages(request)
        .iter()
        .find(|message| message["tool_call_id"] == "call_20_read_file")
        .unwrap();
    Hint::parse(&text(page)).expect("a page")
}

#[tokio::test]
async fn forty_turns_stay_small_valid_and_stable() {
    let server = ModelServer::start(script).await;

    let (tools, passes) = reduction();
    let hook = Reduction::new(tools.clone());
    let response = agent(&server, &hook)
        .prompt("Go.")
        .max_turns(TURNS + 1)
        .add_hook(hook)
        .await
        .unwrap();
    assert_eq!(response.output(), "That is all.");
    let waited = server.requests();
    check(&waited, &tools, &passes).await;
    let page = page_read_back(&waited);
    assert!(
        matches!(page.kind, Kind::Page { from } if from.line == 7),
        "{page:?}"
    );
    assert!(returned("grep", 0).contains(&page.preview) && page.preview.starts_with("src/0.rs:6:"));
    // rig's transcript has truncated results, but clearing does not change it.
    assert_eq!(response.messages.len(), 2 * TURNS + 2);

    let (tools, passes) = reduction();
    let hook = Reduction::new(tools.clone());
    let mut items = agent(&server, &hook)
        .prompt("Go.")
        .max_turns(TURNS + 1)
        .add_hook(hook)
        .stream();
    let mut answer = String::new();
    while let Some(item) = items.next().await {
        if let MultiTurnStreamItem::FinalResponse(response) = item.unwrap() {
            answer = response.output().clone();
        }
    }
    assert_eq!(answer, "That is all.");
    let streamed = server.requests();
    check(&streamed, &tools, &passes).await;
    let said = |requests: &[Value]| {
        requests
            .iter()
            .map(|request| messages(request).to_vec())
            .collect::<Vec<_>>()
    };
    assert!(
        said(&waited) == said(&streamed),
        "both surfaces send the same"
    );
}

#[tokio::test]
async fn errors_keep_their_mark() {
    let server = ModelServer::start(script).await;
    let marks = Arc::<Mutex<Vec<(String, bool)>>>::default();
    let seen = Arc::clone(&marks);
    let tools = ToolReduction::recommended(Memory::named("t").unwrap())
        .max_length_for_trunc(LIMIT)
        .trunc_handler(move |outcome: ToolOutcome| {
            seen.lock()
                .unwrap()
                .push((outcome.call.name, outcome.is_error));
            async { Ok(Action::Default) }
        })
        .build()
        .unwrap();
    let hook = Reduction::new(tools);
    let response = agent(&server, &hook)
        .prompt("Go.")
        .max_turns(TURNS + 1)
        .add_hook(hook)
        .await
        .unwrap();
    let messages = serde_json::to_value(&response.messages).unwrap();
    let results: Vec<&Value> = messages
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|message| message["content"].as_array().unwrap())
        .filter(|item| item["type"] == "toolresult")
        .collect();
    let (failed, fine): (Vec<&Value>, _) = results
        .into_iter()
        .partition(|result| result["name"] == "fetch");
    assert_eq!(failed.len(), 10);
    assert!(failed.iter().all(|result| result["is_error"] == true));
    assert!(failed.iter().all(|result| {
        result["content"][0]["text"]
            .as_str()
            .unwrap()
            .starts_with("[offcut/1 truncated")
    }));
    assert!(fine.iter().all(|result| result["is_error"].is_null()));
    // Offcut saw the same error marks.
    let marks = marks.lock().unwrap();
    assert!(
        marks.len() > TURNS
            && marks
                .iter()
                .all(|(tool, is_error)| *is_error == (tool == "fetch"))
    );
}

#[tokio::test]
async fn one_agent_serves_many_conversations() {
    let server = ModelServer::start(|messages| {
        let last = messages.last().unwrap();
        match (last["role"].as_str().unwrap(), text(last)) {
            ("user", order) => match order.strip_prefix("read ") {
                Some(path) => {
                    Reply::Calls(vec![("call_r".into(), "read_file", json!({"path": path}))])
                }
                None => Reply::Calls(vec![("call_1".into(), "grep", json!({"n": 1}))]),
            },
            _ => Reply::Answer("Done."),
        }
    })
    .await;
    let (tools, _) = reduction();
    let agent = agent(&server, &Reduction::new(tools.clone()));
    let (one, other) = (
        Reduction::new(tools.session("one")),
        Reduction::new(tools.session("other")),
    );
    let first = agent
        .prompt("find")
        .add_hook(one.clone())
        .max_turns(2)
        .await
        .unwrap();
    agent
        .prompt("find")
        .add_hook(other.clone())
        .max_turns(2)
        .await
        .unwrap();
    let requests = server.requests();
    let path = hint(messages(&requests[1]).last().unwrap())
        .unwrap()
        .location
        .unwrap()
        .to_string();
    assert_eq!(path, "memory://t/one/trunc/call_1");

    let read = |hook: Option<&Reduction>, history: Vec<Message>| {
        let runner = agent
            .prompt(format!("read {path}"))
            .history(history)
            .max_turns(2);
        match hook {
            Some(hook) => runner.add_hook(hook.clone()),
            None => runner,
        }
    };
    read(Some(&one), first.messages.clone()).await.unwrap();
    read(Some(&other), Vec::new()).await.unwrap();
    read(None, Vec::new()).await.unwrap();
    let requests = server.requests();
    let answers: Vec<String> = [1, 3, 5]
        .map(|at| text(messages(&requests[at]).last().unwrap()))
        .into();
    assert_eq!(
        Hint::parse(&answers[0]).unwrap().kind,
        Kind::Page {
            from: offcut::hint::Position::START
        }
    );
    assert!(
        answers[1].contains("is not a stored result of this conversation"),
        "{}",
        answers[1]
    );
    assert!(answers[2].contains("add_hook"), "{}", answers[2]);
}

#[tokio::test]
async fn r3_a_users_tool_with_the_readers_name_is_not_the_reader() {
    struct ReadFile;

    impl rig::tool::Tool for ReadFile {
        const NAME: &'static str = "read_file";
        type Args = Value;
        type Output = String;
        type Error = std::convert::Infallible;

        fn description(&self) -> String {
            "Reads a file.".into()
        }

        fn parameters(&self) -> Value {
            json!({"type": "object"})
        }

        async fn call(
            &self,
            _: &mut rig::tool::ToolContext,
            _: Value,
        ) -> Result<String, Self::Error> {
            Ok("mine".into())
        }
    }

    let server = ModelServer::start(|messages| match messages.len() {
        1 => Reply::Calls(vec![("call_1".into(), "read_file", json!({"path": "a"}))]),
        _ => Reply::Answer("Done."),
    })
    .await;
    let (tools, _) = reduction();
    let agent = AgentBuilder::new(server.model())
        .tool(ReadFile)
        .add_hook(Reduction::new(tools))
        .build();
    agent.prompt("Go.").max_turns(2).await.unwrap();
    assert_eq!(
        text(messages(&server.requests()[1]).last().unwrap()),
        "mine"
    );
}

#[tokio::test]
async fn t8_a_failing_store_is_an_error_or_leaves_the_result_unchanged() {
    let server = ModelServer::start(|messages| match messages.len() {
        // The preamble and the prompt, then two messages for each round.
        2 | 4 => Reply::Calls(vec![(
            format!("call_{}", messages.len()),
            "grep",
            json!({"n": messages.len()}),
        )]),
        _ => Reply::Answer("Done."),
    })
    .await;
    let run = async |builder: Builder, on_error| {
        let store = Faulty::new(Memory::new());
        store.fault_on_every_write(Fault::Fail(ErrorKind::Unavailable));
        let tools = builder
            .preview_length(1_000)
            .backend(store)
            .on_offload_error(on_error)
            .build()
            .unwrap();
        let hook = Reduction::new(tools);
        let outcome = agent(&server, &hook)
            .prompt("Go.")
            .max_turns(3)
            .add_hook(hook)
            .await;
        (outcome.map(|response| response.output()), server.requests())
    };

    let (answer, requests) = run(
        ToolReduction::builder().max_length_for_trunc(LIMIT),
        OnOffloadError::KeepOriginal,
    )
    .await;
    assert_eq!(answer.unwrap(), "Done.");
    assert_eq!(text(&messages(&requests[1])[3]), returned("grep", 2));

    // If the store fails during a call, the call fails, and the model gets the error.
    let (answer, requests) = run(
        ToolReduction::builder().max_length_for_trunc(LIMIT),
        OnOffloadError::Fail,
    )
    .await;
    assert_eq!(answer.unwrap(), "Done.");
    let told = text(&messages(&requests[1])[3]);
    assert!(told.contains("store") && !told.contains("größte"), "{told}");

    // If the store fails during a pass, the run stops.
    let late = ToolReduction::builder()
        .max_length_for_trunc(1_000_000)
        .max_tokens_for_clear(1_000);
    let (answer, requests) = run(late, OnOffloadError::Fail).await;
    assert!(answer.unwrap_err().to_string().contains("store"));
    assert_eq!(
        requests.len(),
        2,
        "the request with an old result is not sent"
    );
}
