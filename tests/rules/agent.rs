//! The agent loop (H3, T7) and the middlewares around it.
#![cfg(feature = "fs")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crate::common::{builder, call, content, lines, memory, stored, text};
use async_trait::async_trait;
use futures_util::stream;
use offcut::agent::{
    Agent, AgentError, ChatModel, ModelError, ModelReply, ModelRequest, Tool, ToolDefinition,
};
use offcut::backend::Fs;
use offcut::format::Message;
use offcut::hint::{Hint, Kind};
use offcut::{
    Chunk, Middleware, Next, OffloadError, Part, ToolCall, ToolError, ToolOutput, ToolReduction,
    Turn,
};
use serde_json::{Value, json};
use tokio::sync::Barrier;

/// A model's next message, made from the messages shown to it.
type Reply = Box<dyn Fn(&[Message]) -> Message + Send + Sync>;

/// A model that follows a script and records the messages shown to it.
#[derive(Clone, Default)]
struct Script {
    turns: Arc<Mutex<VecDeque<Reply>>>,
    seen: Arc<Mutex<Vec<Vec<Message>>>>,
    usage: Option<u64>,
}

impl Script {
    fn then(self, turn: impl Fn(&[Message]) -> Message + Send + Sync + 'static) -> Self {
        self.turns.lock().unwrap().push_back(Box::new(turn));
        self
    }

    fn calls(self, calls: Vec<ToolCall>) -> Self {
        self.then(move |_| Message::calls(calls.clone()))
    }

    fn says(self, text: &'static str) -> Self {
        self.then(move |_| Message::assistant(text))
    }
}

#[async_trait]
impl ChatModel for Script {
    async fn complete(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        self.seen.lock().unwrap().push(request.messages.to_vec());
        let turn = self
            .turns
            .lock()
            .unwrap()
            .pop_front()
            .ok_or_else(|| ModelError::new("the script is over"))?;
        Ok(ModelReply {
            message: turn(request.messages),
            input_tokens: self.usage,
        })
    }
}

/// A tool made from a function.
struct Act<F>(&'static str, F);

#[async_trait]
impl<F, R> Tool for Act<F>
where
    F: Fn(ToolCall) -> R + Send + Sync,
    R: Future<Output = Result<ToolOutput, ToolError>> + Send,
{
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.0.into(),
            description: "acts".into(),
            parameters: json!({"type": "object"}),
        }
    }

    async fn call(&self, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        (self.1)(call.clone()).await
    }
}

fn echo(name: &'static str) -> impl Tool {
    Act(name, |call: ToolCall| async move {
        Ok(ToolOutput::from(format!(
            "{} says {}",
            call.name, call.arguments
        )))
    })
}

/// A middleware that logs everything that passes it.
#[derive(Clone)]
struct Probe {
    name: &'static str,
    log: Arc<Mutex<Vec<String>>>,
}

impl Probe {
    fn new(name: &'static str, log: &Arc<Mutex<Vec<String>>>) -> Self {
        Self {
            name,
            log: log.clone(),
        }
    }

    fn note(&self, what: impl std::fmt::Display) {
        self.log
            .lock()
            .unwrap()
            .push(format!("{} {what}", self.name));
    }
}

#[async_trait]
impl Middleware for Probe {
    async fn wrap_tool_call(
        &self,
        call: &ToolCall,
        next: Next<'_>,
    ) -> Result<ToolOutput, ToolError> {
        self.note(format_args!("before {}", call.id));
        let output = next.run(call).await;
        self.note(format_args!("after {}", call.id));
        output
    }

    async fn before_model(&self, turn: &mut Turn<'_>) -> Result<(), OffloadError> {
        self.note(format_args!(
            "{} messages, usage {:?}, {} tools",
            turn.conversation.len(),
            turn.last_usage,
            turn.tools.len()
        ));
        Ok(())
    }
}

async fn run(agent: &Agent) -> Vec<Message> {
    let mut messages = vec![Message::user("go")];
    agent.run(&mut messages).await.unwrap();
    messages
}

/// The results in a conversation: id, content as one text, error mark.
fn results(messages: &[Message]) -> Vec<(&str, String, bool)> {
    let result = |message| match message {
        &Message::Tool {
            ref call_id,
            ref content,
            is_error,
            ..
        } => {
            let texts = content.iter().map(|part| {
                if let Part::Text(text) = part {
                    text.as_str()
                } else {
                    "?"
                }
            });
            Some((
                call_id.as_str(),
                texts.collect::<Vec<_>>().join("|"),
                is_error,
            ))
        }
        _ => None,
    };
    messages.iter().filter_map(result).collect()
}

#[tokio::test]
async fn h3_hints_must_not_name_a_reader_that_the_agent_lacks() {
    let reduction = builder(&memory()).build().unwrap();
    let error = Agent::builder(Script::default())
        .middleware(reduction.clone())
        .build()
        .unwrap_err();
    assert!(matches!(&error, AgentError::MissingTool { name, .. } if name == "read_file"));
    insta::assert_snapshot!(error, @"hints name the tool `read_file`, which the agent does not have: add it (`reduction.read_file_tool()`), or set `read_file_tool_name` to `None`");

    let with_reader = Agent::builder(Script::default())
        .middleware(reduction.clone())
        .tool(reduction.read_file_tool());
    assert!(with_reader.build().is_ok());
    let renamed = builder(&memory())
        .read_file_tool_name("fetch")
        .build()
        .unwrap();
    let other = Agent::builder(Script::default())
        .middleware(renamed)
        .tool(echo("read_file"))
        .build()
        .unwrap_err();
    assert!(matches!(&other, AgentError::MissingTool { name, .. } if name == "fetch"));
    let nameless = builder(&memory())
        .read_file_tool_name(None)
        .build()
        .unwrap();
    assert!(
        Agent::builder(Script::default())
            .middleware(nameless)
            .build()
            .is_ok()
    );
}

#[tokio::test]
async fn o2_two_tools_of_one_name_are_refused() {
    let reduction = builder(&memory()).build().unwrap();
    let agent = Agent::builder(Script::default())
        .tool(reduction.read_file_tool())
        .tool(echo("read_file"));
    let error = agent.build().unwrap_err();
    assert!(matches!(&error, AgentError::SameName { name, .. } if name == "read_file"));
    insta::assert_snapshot!(error, @"two tools are named `read_file`: rename one; `read_file_tool_name` renames the reader of stored content");
}

#[tokio::test]
async fn the_first_middleware_is_the_outermost() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let model = Script {
        usage: Some(77),
        ..Script::default()
    }
    .calls(vec![call("a", "echo")])
    .says("done");
    let agent = Agent::builder(model).tool(echo("echo"));
    let agent = agent
        .middleware(Probe::new("one", &log))
        .middleware(Probe::new("two", &log))
        .build()
        .unwrap();
    run(&agent).await;
    let expected = [
        "one 1 messages, usage None, 1 tools",
        "two 1 messages, usage None, 1 tools",
        "one before a",
        "two before a",
        "two after a",
        "one after a",
        "one 3 messages, usage Some(77), 1 tools",
        "two 3 messages, usage Some(77), 1 tools",
    ];
    assert_eq!(*log.lock().unwrap(), expected);
}

#[tokio::test]
async fn calls_run_at_the_same_time_and_results_keep_their_order() {
    // Each call waits for the other, so run in sequence neither would end.
    let barrier = Arc::new(Barrier::new(2));
    let (first_is_done, wait_for_first) = tokio::sync::oneshot::channel();
    let (sender, receiver) = (
        Mutex::new(Some(first_is_done)),
        tokio::sync::Mutex::new(Some(wait_for_first)),
    );
    let (here, there) = (barrier.clone(), barrier);
    // The first call ends last.
    let slow = Act("slow", move |_| {
        let (barrier, receiver) = (here.clone(), receiver.try_lock().unwrap().take().unwrap());
        async move {
            barrier.wait().await;
            receiver.await.unwrap();
            Ok(ToolOutput::from("slow"))
        }
    });
    let quick = Act("quick", move |_| {
        let (barrier, sender) = (there.clone(), sender.lock().unwrap().take().unwrap());
        async move {
            barrier.wait().await;
            sender.send(()).unwrap();
            Ok(ToolOutput::from("quick"))
        }
    });
    let model = Script::default()
        .calls(vec![call("a", "slow"), call("b", "quick")])
        .says("done");
    let agent = Agent::builder(model)
        .tool(quick)
        .tool(slow)
        .build()
        .unwrap();
    let messages = run(&agent).await;
    assert_eq!(
        results(&messages),
        [("a", "slow".into(), false), ("b", "quick".into(), false)]
    );
}

#[tokio::test]
async fn an_unknown_tool_is_an_error_the_model_can_act_on() {
    let model = Script::default()
        .calls(vec![call("a", "grepp"), call("b", "grep")])
        .says("done");
    let agent = Agent::builder(model)
        .tool(echo("grep"))
        .tool(echo("read"))
        .build()
        .unwrap();
    let messages = run(&agent).await;
    let results = results(&messages);
    assert!(results[0].2 && !results[1].2, "only the unknown one failed");
    insta::assert_snapshot!(results[0].1, @"unknown tool; available tools: grep, read");
}

#[tokio::test]
async fn t7_a_failed_call_is_shown_as_an_error_and_truncated_like_any_result() {
    let store = memory();
    let reduction = builder(&store)
        .max_length_for_trunc(1_000)
        .preview_length(200)
        .build()
        .unwrap();
    let fails = Act("fails", |call: ToolCall| async move {
        Err(ToolError::new(if call.id == "short" {
            "no such file".to_owned()
        } else {
            lines(400)
        }))
    });
    let says = Act("says", |_| async { Ok(ToolOutput::error(lines(300))) });
    let model = Script::default()
        .calls(vec![
            call("short", "fails"),
            call("long", "fails"),
            call("own", "says"),
        ])
        .says("done");
    let agent = Agent::builder(model)
        .tool(fails)
        .tool(says)
        .tool(reduction.read_file_tool());
    let agent = agent.middleware(reduction.clone()).build().unwrap();
    let messages = run(&agent).await;
    let results = results(&messages);
    assert_eq!(results[0], ("short", "no such file".into(), true));
    for (result, original) in [(&results[1], lines(400)), (&results[2], lines(300))] {
        assert!(result.2, "the mark stays");
        let hint = Hint::parse(&result.1).unwrap();
        assert_eq!(hint.kind, Kind::Truncated);
        assert_eq!(
            reduction
                .read_original(&hint.location.unwrap())
                .await
                .unwrap()
                .unwrap(),
            original
        );
    }
    assert_eq!(stored(&store).await.len(), 2);
}

#[tokio::test]
async fn a_model_that_never_ends_is_stopped() {
    let mut model = Script::default();
    for _ in 0..10 {
        model = model.calls(vec![call("a", "echo")]);
    }
    let agent = Agent::builder(model.clone())
        .tool(echo("echo"))
        .max_model_calls(3)
        .build()
        .unwrap();
    let mut messages = vec![Message::user("go")];
    let error = agent.run(&mut messages).await.unwrap_err();
    assert!(matches!(
        error,
        AgentError::TooManyModelCalls { calls: 3, .. }
    ));
    insta::assert_snapshot!(error, @"no answer after 3 model calls: raise `max_model_calls`, or check the messages for a loop");
    assert_eq!((model.seen.lock().unwrap().len(), messages.len()), (3, 7));
    assert!(
        matches!(messages.last(), Some(Message::Tool { .. })),
        "every call has its result"
    );
    // The run can be continued.
    assert!(agent.run(&mut messages).await.is_err());
    assert_eq!(messages.len(), 13);
    let never = Agent::builder(Script::default())
        .max_model_calls(0)
        .build()
        .unwrap();
    assert!(matches!(
        never.run(&mut Vec::new()).await,
        Err(AgentError::TooManyModelCalls { calls: 0, .. })
    ));
}

#[tokio::test]
async fn a_model_that_fails_leaves_the_messages() {
    let model = Script::default().calls(vec![call("a", "echo")]);
    let agent = Agent::builder(model).tool(echo("echo")).build().unwrap();
    let mut messages = vec![Message::user("go")];
    let error = agent.run(&mut messages).await.unwrap_err();
    assert!(matches!(&error, AgentError::Model { .. }));
    assert_eq!(
        std::error::Error::source(&error).unwrap().to_string(),
        "the script is over"
    );
    assert_eq!(messages.len(), 3);
    assert!(
        ModelError::rate_limited("later").is_retryable() && !ModelError::new("no").is_retryable()
    );
}

#[tokio::test]
async fn runs_can_be_spawned_and_middlewares_shared() {
    let store = memory();
    let reduction = builder(&store)
        .max_length_for_trunc(1_000)
        .preview_length(200)
        .build()
        .unwrap();
    let runs = (0..8).map(|n| {
        let session = reduction.session(&format!("chat-{n}"));
        let shared: Arc<dyn Middleware> = Arc::new(session.clone());
        let model = Script::default()
            .calls(vec![call("a", "long")])
            .says("done");
        let long = Act("long", move |_| async move {
            Ok(ToolOutput::from(lines(400 + n)))
        });
        tokio::spawn(async move {
            let tool = |_: ToolCall| async { Ok(ToolOutput::from(lines(200))) };
            let shown = Next::new(std::slice::from_ref(&shared), &tool)
                .run(&call("direct", "f"))
                .await
                .unwrap();
            assert!(Hint::parse(text(&shown.into_parts().await.0)).is_some());
            let agent = Agent::builder(model)
                .tool(long)
                .tool(session.read_file_tool())
                .middleware(session)
                .build();
            run(&agent.unwrap()).await
        })
    });
    for (n, run) in runs.collect::<Vec<_>>().into_iter().enumerate() {
        let messages = run.await.unwrap();
        let hint = Hint::parse(text(content(&messages[2]))).unwrap();
        assert_eq!(
            hint.location.unwrap().as_str(),
            format!("memory://t/chat-{n}/trunc/a")
        );
    }
    assert_eq!(store.len(), 16);
}

#[tokio::test]
async fn a_handler_may_borrow() {
    let reduction = builder(&memory())
        .max_length_for_trunc(1_000)
        .preview_length(200)
        .build()
        .unwrap();
    let (result, count) = (lines(400), std::sync::atomic::AtomicUsize::new(0));
    let tool = async |_: ToolCall| -> Result<ToolOutput, ToolError> {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(ToolOutput::from(result.as_str()))
    };
    let by_reference = |call: ToolCall| {
        let tool = &tool;
        async move { tool(call).await }
    };
    let middlewares: [Arc<dyn Middleware>; 1] = [Arc::new(reduction)];
    let next = Next::new(&middlewares, &by_reference);
    for id in ["a", "b"] {
        assert!(
            Hint::parse(text(
                &next.run(&call(id, "f")).await.unwrap().into_parts().await.0
            ))
            .is_some()
        );
    }
    assert_eq!(count.into_inner(), 2);
}

/// A middleware that answers in the tool's place.
struct Cached;

#[async_trait]
impl Middleware for Cached {
    async fn wrap_tool_call(
        &self,
        call: &ToolCall,
        next: Next<'_>,
    ) -> Result<ToolOutput, ToolError> {
        match call.id.as_str() {
            "cached" => Ok(lines(400).into()),
            "denied" => Err(ToolError::new("not allowed")),
            _ => {
                next.run(&ToolCall {
                    arguments: r#"{"changed":true}"#.into(),
                    ..call.clone()
                })
                .await
            }
        }
    }
}

#[tokio::test]
async fn a_middleware_may_answer_without_calling_the_tool() {
    let store = memory();
    let reduction = builder(&store)
        .max_length_for_trunc(1_000)
        .preview_length(200)
        .build()
        .unwrap();
    let model = Script::default()
        .calls(vec![
            call("cached", "f"),
            call("denied", "f"),
            call("other", "f"),
        ])
        .says("done");
    let agent = Agent::builder(model)
        .tool(echo("f"))
        .tool(reduction.read_file_tool());
    let messages = run(&agent
        .middleware(reduction)
        .middleware(Cached)
        .build()
        .unwrap())
    .await;
    let results = results(&messages);
    assert_eq!(
        Hint::parse(&results[0].1).unwrap().kind,
        Kind::Truncated,
        "the outer one sees what the inner one says"
    );
    assert_eq!(results[1], ("denied", "not allowed".into(), true));
    assert_eq!(results[2].1, r#"f says {"changed":true}"#);
}

/// A middleware that refuses every model call.
struct Refuses;

#[async_trait]
impl Middleware for Refuses {
    async fn before_model(&self, _: &mut Turn<'_>) -> Result<(), OffloadError> {
        let source =
            offcut::backend::BackendError::new(offcut::backend::ErrorKind::Full, "no room");
        Err(OffloadError::new("f", "a", source))
    }
}

#[tokio::test]
async fn a_middleware_that_fails_ends_the_run_before_the_model_is_called() {
    let model = Script::default().says("done");
    let agent = Agent::builder(model.clone())
        .middleware(Refuses)
        .build()
        .unwrap();
    let error = agent.run(&mut vec![Message::user("go")]).await.unwrap_err();
    assert!(matches!(error, AgentError::Middleware { .. }));
    assert!(model.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn t11_a_stream_that_breaks_off_is_text_and_an_error_mark() {
    let store = memory();
    let reduction = builder(&store)
        .max_length_for_trunc(1_000)
        .preview_length(200)
        .build()
        .unwrap();
    let broken = |call: ToolCall| async move {
        let output = if call.id == "long" {
            lines(400)
        } else {
            "so far".to_owned()
        };
        let chunks = [
            Ok(Chunk::Bytes(output.into())),
            Err(ToolError::new("connection lost")),
        ];
        Ok(ToolOutput::stream(stream::iter(chunks)))
    };
    for with_reduction in [false, true] {
        let model = Script::default()
            .calls(vec![call("short", "s"), call("long", "s")])
            .says("done");
        let mut agent = Agent::builder(model)
            .tool(Act("s", broken))
            .tool(reduction.read_file_tool());
        if with_reduction {
            agent = agent.middleware(reduction.clone());
        }
        let messages = run(&agent.build().unwrap()).await;
        let results = results(&messages);
        assert_eq!(results[0], ("short", "so far|connection lost".into(), true));
        let (shown, error) = results[1].1.rsplit_once('|').unwrap();
        assert_eq!((error, results[1].2), ("connection lost", true));
        assert_eq!(
            Hint::parse(shown).is_some_and(|hint| hint.flags.interrupted),
            with_reduction
        );
    }
}

#[tokio::test]
async fn t7_output_of_a_broken_stream_is_truncated_like_any_result() {
    let store = memory();
    let reduction = builder(&store)
        .max_length_for_trunc(1_000)
        .preview_length(200)
        .build()
        .unwrap();
    let broken = Act("s", |_| async {
        let chunks = [
            Ok(Chunk::Bytes(lines(300).into())),
            Err(ToolError::new(lines(400))),
        ];
        Ok(ToolOutput::stream(stream::iter(chunks)))
    });
    let model = Script::default().calls(vec![call("a", "s")]).says("done");
    let agent = Agent::builder(model)
        .tool(broken)
        .tool(reduction.read_file_tool())
        .middleware(reduction.clone());
    let messages = run(&agent.build().unwrap()).await;
    let Message::Tool {
        content,
        is_error: true,
        ..
    } = &messages[2]
    else {
        panic!("no failed result")
    };
    for (part, original) in content.iter().zip([lines(300), lines(400)]) {
        let hint = Hint::parse(text(std::slice::from_ref(part))).unwrap();
        assert_eq!(
            reduction
                .read_original(&hint.location.unwrap())
                .await
                .unwrap()
                .unwrap(),
            original
        );
    }
    assert_eq!((content.len(), stored(&store).await.len()), (2, 2));
}

#[tokio::test]
async fn odd_replies_are_accepted() {
    // Text and a call at once, a call without id and name, and a reply with another role.
    let both = Message::Assistant {
        content: vec!["let me see".into()],
        calls: vec![call("a", "echo")],
    };
    let model = Script::default()
        .then(move |_| both.clone())
        .calls(vec![call("", "")])
        .then(|_| Message::user("hm"));
    let agent = Agent::builder(model).tool(echo("echo")).build().unwrap();
    let messages = run(&agent).await;
    assert_eq!(messages.len(), 6);
    assert_eq!(
        results(&messages)
            .iter()
            .map(|result| result.2)
            .collect::<Vec<_>>(),
        [false, true]
    );
}

#[tokio::test]
async fn a_whole_loop_over_files_reads_back_what_was_truncated() {
    let home = tempfile::tempdir().unwrap();
    let reduction = ToolReduction::builder()
        .backend(Fs::open(home.path()).unwrap())
        .max_length_for_trunc(2_000);
    let reduction = reduction
        .preview_length(400)
        .max_tokens_for_clear(800)
        .build()
        .unwrap();
    let log: String = (1..=2_000)
        .map(|n| format!("{n} {}\n", if n == 1_234 { "ERROR disk" } else { "ok" }))
        .collect();
    let returned = log.clone();
    let build = Act("build", move |_| {
        let log = returned.clone();
        async move { Ok(ToolOutput::from(log)) }
    });
    let last_hint = |messages: &[Message]| {
        let hints = messages.iter().rev().filter_map(|message| match message {
            Message::Tool { content, .. } => Hint::parse(text(content)),
            _ => None,
        });
        hints.into_iter().next().unwrap()
    };
    let read = move |id: &'static str, more: Value| {
        move |messages: &[Message]| {
            let mut arguments = json!({"path": last_hint(messages).location.unwrap()});
            arguments
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            Message::calls(vec![ToolCall::new(id, "read_file", arguments.to_string())])
        }
    };
    let model = Script::default()
        .calls(vec![call("call_1", "build")])
        .then(read("call_2", json!({"pattern": "ERROR"})))
        .then(read("call_3", json!({"offset": 1_230, "limit": 9})))
        .then(read("call_4", json!({"offset": -1})))
        .says("The disk failed.");
    let seen = model.seen.clone();
    let agent = Agent::builder(model)
        .tool(build)
        .tool(reduction.read_file_tool())
        .middleware(reduction.clone());
    let messages = run(&agent.build().unwrap()).await;

    let seen = seen.lock().unwrap();
    let shown_last = |turn: usize| Hint::parse(text(content(seen[turn].last().unwrap()))).unwrap();
    let truncated = shown_last(1);
    assert_eq!(
        (truncated.kind, truncated.bytes),
        (Kind::Truncated, log.len() as u64)
    );
    assert_eq!(shown_last(2).preview, "1234:1234 ERROR disk");
    let expected: String = log
        .lines()
        .skip(1_229)
        .take(9)
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(shown_last(3).preview, expected);
    assert_eq!(shown_last(4).preview, "2000 ok\n");
    // After all that reading and clearing there is one copy, and it is the tool's result.
    let location = truncated.location.unwrap();
    assert_eq!(std::fs::read(location.as_str()).unwrap(), log.as_bytes());
    let folder = std::path::Path::new(location.as_str())
        .parent()
        .unwrap()
        .parent()
        .unwrap();
    assert_eq!(std::fs::read_dir(folder.join("trunc")).unwrap().count(), 1);
    assert!(!folder.join("clear").exists());
    for hint in messages
        .iter()
        .filter(|message| matches!(message, Message::Tool { .. }))
    {
        assert_eq!(
            Hint::parse(text(content(hint))).unwrap().location.unwrap(),
            location
        );
    }
    assert_eq!(
        messages.last(),
        Some(&Message::assistant("The disk failed."))
    );
}

#[tokio::test]
async fn l1_a_tool_that_panics_takes_no_other_result_with_it() {
    let store = memory();
    let reduction = builder(&store)
        .max_length_for_trunc(1_000)
        .preview_length(200)
        .build()
        .unwrap();
    let long = Act("long", |_: ToolCall| async {
        Ok(ToolOutput::from(lines(400)))
    });
    let bad = Act("bad", |call: ToolCall| async move {
        assert!(call.name.is_empty(), "a tool's panic");
        Ok(ToolOutput::from("never"))
    });
    let streams = Act("streams", |_: ToolCall| async {
        Ok(ToolOutput::stream(stream::poll_fn(
            |_| -> std::task::Poll<Option<Result<Chunk, ToolError>>> { panic!("a stream's panic") },
        )))
    });
    let model = Script::default()
        .calls(vec![
            call("a", "long"),
            call("b", "bad"),
            call("c", "streams"),
        ])
        .says("done");
    let agent = Agent::builder(model)
        .tool(long)
        .tool(bad)
        .tool(streams)
        .tool(reduction.read_file_tool());
    let mut messages = vec![Message::user("go")];
    agent
        .middleware(reduction)
        .build()
        .unwrap()
        .run(&mut messages)
        .await
        .unwrap();
    assert_eq!(messages.len(), 6);
    assert!(Hint::parse(text(content(&messages[2]))).is_some_and(|hint| hint.location.is_some()));
    for message in &messages[3..5] {
        let Message::Tool {
            content,
            is_error: true,
            ..
        } = message
        else {
            panic!("no failed result")
        };
        assert_eq!(text(content), "the tool panicked");
    }
}
