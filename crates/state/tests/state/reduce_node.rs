//! `ReduceNode`, rule by rule (N1–N5). "Lár" is its document on the node of the same name.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use offcut::agent::{ChatModel, ModelError, ModelReply, ModelRequest, Tool};
use offcut::backend::{Backend, ErrorKind};
use offcut::format::Message;
use offcut::{Part, TokenCounter, ToolCall, ToolReduction};
use offcut_state::{OriginalsNote, ReduceNode, ReduceNodeBuilder, ReduceNodeError};
use offcut_testkit::{Fault, Faulty};
use serde_json::{Map, Value, json};

use crate::common::{self, call, memory, stored};

/// A model that replies as told and records its requests.
#[derive(Clone, Default)]
struct Model {
    says: Arc<Mutex<VecDeque<Result<Message, ModelError>>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// The messages and the generation config.
type Asked = (Vec<Message>, Value);

impl Model {
    fn says(answers: impl IntoIterator<Item = Result<Message, ModelError>>) -> Self {
        Self {
            says: Arc::new(Mutex::new(answers.into_iter().collect())),
            ..Self::default()
        }
    }

    fn answers(text: &str) -> Self {
        Self::says([Ok(Message::assistant(text))])
    }

    fn calls(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    fn prompt(&self) -> String {
        match self
            .asked
            .lock()
            .unwrap()
            .last()
            .and_then(|(messages, _)| messages.last().cloned())
        {
            Some(Message::User { content }) => common::text(&content).to_owned(),
            other => panic!("no prompt: {other:?}"),
        }
    }
}

#[async_trait]
impl ChatModel for Model {
    async fn complete(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        assert!(request.tools.is_empty());
        self.asked
            .lock()
            .unwrap()
            .push((request.messages.to_vec(), json!(request.generation_config)));
        let message = self.says.lock().unwrap().pop_front().unwrap()?;
        Ok(ModelReply {
            message,
            input_tokens: Some(42),
        })
    }
}

fn notes() -> Map<String, Value> {
    let notes = json!({"a": "one {b} {{x}}", "b": {"k": [1, null]}, "kept": true});
    notes.as_object().unwrap().clone()
}

/// Creates a reduction over `store`, without the tokenizer's start-up time.
fn over(store: impl Backend) -> ToolReduction {
    let builder = ToolReduction::builder().backend(store);
    let builder = builder.max_length_for_trunc(9_000);
    builder
        .token_counter(TokenCounter::Estimate)
        .build()
        .unwrap()
}

fn node(model: &Model) -> ReduceNodeBuilder {
    ReduceNode::builder(model.clone(), "A: {a}\nB: {b}").input_keys(["a", "b"])
}

/// Lár: the template's keys are filled in, the answer goes to `output_key` (default
/// `reduced_output`), the inputs are deleted.
#[tokio::test]
async fn a_node_condenses_and_deletes() {
    let model = Model::answers("In short.");
    let mut state = notes();
    let reduced = node(&model).build().unwrap().run(&mut state).await.unwrap();
    assert_eq!(
        Value::Object(state),
        json!({"kept": true, "reduced_output": "In short."})
    );
    assert_eq!(
        (reduced.output.as_str(), reduced.deleted.join("+")),
        ("In short.", "a+b".to_owned())
    );
    assert_eq!(
        (
            reduced.stored.len(),
            reduced.model_calls,
            reduced.input_tokens
        ),
        (0, 1, Some(42))
    );
    assert_eq!(model.asked.lock().unwrap()[0].1, json!({}));
}

/// Lár's other parameters.
#[tokio::test]
async fn options_reach_the_model_and_the_caller() {
    let model = Model::answers("s");
    let config = json!({"temperature": 0.4}).as_object().unwrap().clone();
    let builder = node(&model)
        .system_instruction("Be brief.")
        .generation_config(config)
        .output_key("synthesis");
    let node = builder.build().unwrap();
    node.run(&mut notes()).await.unwrap();
    let asked = model.asked.lock().unwrap();
    assert_eq!(asked[0].0[0], Message::system("Be brief."));
    assert_eq!(
        (asked[0].0.len(), &asked[0].1),
        (2, &json!({"temperature": 0.4}))
    );
}

/// N1: Lár sends the raw template, then deletes the inputs.
#[tokio::test]
async fn n1_a_missing_key_is_an_error_before_any_call() {
    let model = Model::default();
    let store = memory();
    let mut state = notes();
    state.remove("b");
    let before = state.clone();
    let error = node(&model)
        .reduction(over(store.clone()))
        .build()
        .unwrap()
        .run(&mut state)
        .await
        .unwrap_err();
    assert!(
        matches!(&error, ReduceNodeError::MissingKey { key } if key == "b"),
        "{error:?}"
    );
    assert_eq!(
        error.to_string(),
        "the prompt template names `b`, which the state lacks: set it first, or write `{{` for a brace"
    );
    assert_eq!(
        (state, model.calls(), store.len(), error.is_retryable()),
        (before, 0, 0, false)
    );
}

/// N2: an empty answer, or a thought alone, changes nothing.
#[tokio::test]
async fn n2_no_answer_leaves_the_state() {
    let call = ToolCall::new("1", "f", "{}");
    let nothing = [
        Message::assistant(""),
        Message::assistant(" \n"),
        Message::assistant("<think>hm</think>\n"),
        Message::assistant("<think>hm"),
        Message::assistant("<think>a</think> <think>b</think>"),
        Message::user("x"),
        Message::calls(vec![call]),
        Message::Assistant {
            content: vec![],
            calls: vec![],
        },
    ];
    for message in nothing {
        let mut state = notes();
        let error = node(&Model::says([Ok(message)]))
            .build()
            .unwrap()
            .run(&mut state)
            .await
            .unwrap_err();
        assert!(matches!(error, ReduceNodeError::NoAnswer) && error.is_retryable());
        assert_eq!(state, notes());
    }
}

/// N2: the model's thought is not part of its answer.
#[tokio::test]
async fn n2_thoughts_are_left_out() {
    for (says, expected) in [
        ("<think>hm</think>\n\nShort.", "Short."),
        ("Use <think>tags</think>.", "Use <think>tags</think>."),
        ("  Short. \n", "Short."),
    ] {
        let reduced = node(&Model::answers(says))
            .build()
            .unwrap()
            .run(&mut notes())
            .await
            .unwrap();
        assert_eq!(reduced.output, expected);
    }
    let parts = vec![
        Part::Text("<think>x</think>".into()),
        Part::Text("one".into()),
        Part::Text("two".into()),
    ];
    let model = Model::says([Ok(Message::Assistant {
        content: parts,
        calls: vec![],
    })]);
    assert_eq!(
        node(&model)
            .build()
            .unwrap()
            .run(&mut notes())
            .await
            .unwrap()
            .output,
        "one\ntwo"
    );
}

/// N2: after each rate limit the wait doubles.
#[tokio::test(start_paused = true)]
async fn n2_rate_limits_are_retried_with_backoff() {
    let limited = || Err(ModelError::rate_limited("429"));
    let model = Model::says([limited(), limited(), limited(), Ok(Message::assistant("s"))]);
    let begin = tokio::time::Instant::now();
    let reduced = node(&model)
        .build()
        .unwrap()
        .run(&mut notes())
        .await
        .unwrap();
    assert_eq!((reduced.model_calls, model.calls()), (4, 4));
    assert_eq!(begin.elapsed().as_secs(), 1 + 2 + 4);

    let model = Model::says([limited(), limited(), limited()]);
    let mut state = notes();
    let error = node(&model)
        .max_model_calls(2)
        .build()
        .unwrap()
        .run(&mut state)
        .await
        .unwrap_err();
    assert!(matches!(error, ReduceNodeError::Model { model_calls: 2, .. }) && error.is_retryable());
    assert_eq!((state, model.calls()), (notes(), 2));

    let model = Model::says([limited()]);
    let node_ = node(&model).max_model_calls(0).build().unwrap();
    assert!(node_.run(&mut notes()).await.is_err());
    assert_eq!(model.calls(), 1, "the first call is always made");

    let begin = tokio::time::Instant::now();
    let model = Model::says(
        (0..9)
            .map(|_| limited())
            .chain([Ok(Message::assistant("s"))]),
    );
    let patient = node(&model).max_model_calls(10).build().unwrap();
    patient.run(&mut notes()).await.unwrap();
    assert_eq!(
        begin.elapsed().as_secs(),
        1 + 2 + 4 + 8 + 16 + 32 + 3 * 60,
        "no wait is over a minute"
    );
}

/// N2: other errors are not retried.
#[tokio::test]
async fn n2_other_errors_are_not_retried() {
    let model = Model::says([Err(ModelError::new("bad request"))]);
    let mut state = notes();
    let error = node(&model)
        .build()
        .unwrap()
        .run(&mut state)
        .await
        .unwrap_err();
    assert!(
        matches!(error, ReduceNodeError::Model { model_calls: 1, .. }) && !error.is_retryable()
    );
    assert_eq!(error.source().unwrap().to_string(), "bad request");
    assert_eq!((state, model.calls()), (notes(), 1));
}

/// N3: the input keys other than the output key are deleted; a missing one is not an error.
#[tokio::test]
async fn n3_inputs_other_than_the_output_are_deleted() {
    let model = Model::answers("new a");
    let mut state = notes();
    let builder = ReduceNode::builder(model, "{a}")
        .input_keys(["a", "gone", "b", "b"])
        .output_key("a");
    let reduced = builder.build().unwrap().run(&mut state).await.unwrap();
    assert_eq!(reduced.deleted, ["b"]);
    assert_eq!(Value::Object(state), json!({"a": "new a", "kept": true}));

    let mut state = notes();
    let reduced = ReduceNode::builder(Model::answers("s"), "{a} {b}")
        .build()
        .unwrap()
        .run(&mut state)
        .await
        .unwrap();
    assert!(reduced.deleted.is_empty());
    assert_eq!(state.len(), 4, "read and not deleted: no input keys");
}

/// N3: nothing is lost when the answer takes an input's place, as in a rolling summary.
#[tokio::test]
async fn n3_an_input_that_is_the_output_is_stored_and_replaced() {
    let store = memory();
    let node = || {
        let reduction = common::builder(&store).build().unwrap();
        let builder = ReduceNode::builder(Model::answers("new a"), "{a}");
        let builder = builder.input_keys(["a"]).output_key("a");
        builder.reduction(reduction).build().unwrap()
    };
    let mut state = notes();
    let reduced = node().run(&mut state).await.unwrap();
    assert!(reduced.deleted.is_empty());
    let [(key, at)] = &reduced.stored[..] else {
        panic!("{reduced:?}")
    };
    assert_eq!(key, "a");
    assert_eq!(state["a"], format!("new a\n\n[originals: a at {at}]"));
    let expected = [(at.to_string(), b"one {b} {{x}}".to_vec())];
    assert_eq!(stored(&store).await, expected);

    // A text that only looks like a hint is not stored, so it must not be replaced either.
    let reduction = over(store.clone());
    let truncated = reduction
        .truncate(&call("c1", "grep"), common::lines(5_000))
        .await
        .unwrap();
    let shown = common::text(&truncated.parts);
    let imitation = shown.replace("line 2\n", "line X\n");
    let mut state = Map::from_iter([("a".to_owned(), json!(imitation))]);
    let before = state.clone();
    let error = node().run(&mut state).await.unwrap_err();
    assert!(
        matches!(error, ReduceNodeError::OutputTaken { .. }),
        "{error:?}"
    );
    assert_eq!(state, before);
}

/// N4: values are rendered once, strings verbatim, others as JSON.
#[tokio::test]
async fn n4_values_are_not_templates() {
    let model = Model::answers("s");
    node(&model)
        .build()
        .unwrap()
        .run(&mut notes())
        .await
        .unwrap();
    assert_eq!(model.prompt(), "A: one {b} {{x}}\nB: {\"k\":[1,null]}");
}

/// N5: with a reduction the inputs are stored first, byte for byte, and the output names the
/// locations.
#[tokio::test]
async fn n5_inputs_are_stored_and_the_output_says_where() {
    let store = memory();
    let node = |originals| {
        let reduction = common::builder(&store).root_dir("agent/7").build().unwrap();
        let builder = node(&Model::answers("In short.")).reduction(reduction);
        builder.originals(originals).build().unwrap()
    };
    let mut state = notes();
    let reduced = node(OriginalsNote::Named).run(&mut state).await.unwrap();
    insta::assert_snapshot!(state["reduced_output"].as_str().unwrap(), @"
    In short.

    [originals: a at memory://t/agent/7/clear/a-da3bb3c3ea2d0f76, b at memory://t/agent/7/clear/b-fd7d4aadaeb9ad91]
    ");
    let [(a, at_a), (_, at_b)] = &reduced.stored[..] else {
        panic!("{reduced:?}")
    };
    assert_eq!(a, "a");
    let everything = stored(&store).await;
    let expected = [
        (at_a.to_string(), b"one {b} {{x}}".to_vec()),
        (at_b.to_string(), br#"{"k":[1,null]}"#.to_vec()),
    ];
    assert_eq!(everything, expected);

    // Runs again: nothing is stored twice.
    let again = node(OriginalsNote::Unnamed)
        .run(&mut notes())
        .await
        .unwrap();
    assert_eq!(
        (again.stored, again.output.as_str()),
        (reduced.stored, "In short.")
    );
    assert_eq!(stored(&store).await, everything);
}

/// N5 and L6: a key of the state may be anything.
#[tokio::test]
async fn l6_hostile_keys_never_become_paths() {
    let store = memory();
    for key in ["../../etc/passwd", "a/b", "呼叫", "con", &"x".repeat(300)] {
        let mut state = Map::from_iter([(key.to_owned(), json!("content"))]);
        let node = ReduceNode::builder(Model::answers("s"), "go")
            .input_keys([key])
            .reduction(over(store.clone()))
            .build()
            .unwrap();
        node.run(&mut state).await.unwrap();
    }
    assert_eq!(
        stored(&store).await,
        [(
            "memory://t/clear/ed7002b439e9ac84".to_owned(),
            b"content".to_vec()
        )]
    );
}

/// N5: the store fails before the model is asked; the state is unchanged, and trying again is safe.
#[tokio::test]
async fn n5_a_store_that_fails() {
    let (store, model) = (Faulty::new(memory()), Model::answers("s"));
    store.fault_on_write(2, Fault::Fail(ErrorKind::Full));
    let node = node(&model).reduction(over(store.clone())).build().unwrap();
    let mut state = notes();
    let error = node.run(&mut state).await.unwrap_err();
    assert!(
        matches!(&error, ReduceNodeError::Store { key, .. } if key == "b") && !error.is_retryable()
    );
    assert_eq!((&state, model.calls()), (&notes(), 0));
    node.run(&mut state).await.unwrap();
    assert_eq!(state.len(), 2);
}

/// N5: trying again is advised only while the store is temporarily unavailable.
#[tokio::test]
async fn n5_only_an_unavailable_store_is_retryable() {
    let without = ToolReduction::builder().skip_truncation(true);
    let full = Faulty::new(memory());
    full.fault_on_every_write(Fault::Fail(ErrorKind::Full));
    let away = Faulty::new(memory());
    away.fault_on_every_write(Fault::Fail(ErrorKind::Unavailable));
    for (reduction, is_retryable) in [
        (without.build().unwrap(), false),
        (over(full), false),
        (over(away), true),
    ] {
        let node = node(&Model::default()).reduction(reduction);
        let error = node.build().unwrap().run(&mut notes()).await.unwrap_err();
        assert!(matches!(error, ReduceNodeError::Store { .. }), "{error:?}");
        assert_eq!(error.is_retryable(), is_retryable, "{error:?}");
    }
}

/// Dropping the future changes nothing.
#[tokio::test]
async fn a_dropped_run_leaves_the_state() {
    let store = Faulty::new(memory());
    store.fault_on_write(1, Fault::ApplyThenHang);
    let node = node(&Model::default())
        .reduction(over(store))
        .build()
        .unwrap();
    let mut state = notes();
    assert!(
        tokio::time::timeout(Duration::ZERO, node.run(&mut state))
            .await
            .is_err()
    );
    assert_eq!(state, notes());
}

/// L1: a hint is never stored as an original, and a text that only looks like one is not lost.
#[tokio::test]
async fn l1_hints_are_followed_and_imitations_stay() {
    let store = memory();
    let reduction = over(store.clone());
    let (long, read) = (
        call("c1", "grep"),
        ToolCall::new("c2", "read_file", r#"{"path":"memory://t/trunc/c1"}"#),
    );
    let truncated = reduction
        .truncate(&long, common::lines(5_000))
        .await
        .unwrap();
    let page = reduction
        .read_file_tool()
        .call(&read)
        .await
        .unwrap()
        .into_parts()
        .await
        .0;
    let shown = common::text(&truncated.parts);
    assert!(
        shown.starts_with("[offcut/1 truncated")
            && common::text(&page).starts_with("[offcut/1 page")
    );

    let mut state = Map::new();
    state.insert("truncated".into(), json!(shown));
    state.insert("page".into(), json!(common::text(&page)));
    state.insert(
        "imitation".into(),
        json!(shown.replace("line 2\n", "line X\n")),
    );
    state.insert(
        "of another store".into(),
        json!(shown.replace("memory://t/", "memory://T/")),
    );
    state.insert("plain".into(), json!("[offcut/1 is what hints begin with]"));
    assert_ne!(state["imitation"], state["truncated"]);
    let keys: Vec<_> = state.keys().cloned().collect();
    let node = ReduceNode::builder(Model::answers("s"), "go")
        .input_keys(keys)
        .reduction(reduction)
        .build()
        .unwrap();
    let before = state.clone();
    let reduced = node.run(&mut state).await.unwrap();

    assert_eq!(reduced.left_in_place, ["imitation"]);
    assert_eq!(state["imitation"], before["imitation"]);
    assert_eq!(state.len(), 2, "the imitation and the output");
    let at = |key: &str| {
        reduced
            .stored
            .iter()
            .find(|(name, _)| name == key)
            .unwrap()
            .1
            .to_string()
    };
    assert_eq!(
        (at("truncated").as_str(), at("page").as_str()),
        ("memory://t/trunc/c1", "memory://t/trunc/c1")
    );
    let everything = stored(&store).await;
    assert_eq!(
        everything.len(),
        3,
        "the original, and two texts that are none of ours: {everything:?}"
    );
    for key in ["of another store", "plain"] {
        let text = before[key].as_str().unwrap().as_bytes();
        assert!(everything.contains(&(at(key), text.to_vec())), "{key}");
    }
}

/// A store that can't be read is a store that fails.
#[tokio::test]
async fn n5_a_hint_that_can_not_be_followed() {
    let store = Faulty::new(memory());
    let reduction = over(store.clone());
    let truncated = reduction
        .truncate(&call("c1", "grep"), common::lines(5_000))
        .await
        .unwrap();
    let mut state = Map::from_iter([("a".to_owned(), json!(common::text(&truncated.parts)))]);
    let model = Model::default();
    let node = ReduceNode::builder(model.clone(), "go")
        .input_keys(["a"])
        .reduction(reduction)
        .build()
        .unwrap();
    store.fault_on_next_read(Fault::Fail(ErrorKind::Unavailable));
    let before = state.clone();
    assert!(
        matches!(node.run(&mut state).await.unwrap_err(), ReduceNodeError::Store { key, .. } if key == "a")
    );
    assert_eq!((state, model.calls()), (before, 0));
}

/// Futures of the node are `Send`.
#[test]
fn runs_can_be_spawned() {
    fn is_send<T: Send>(_: &T) {}
    let node = node(&Model::default()).build().unwrap();
    is_send(&node.run(&mut notes()));
}

/// L11: a node that can't work does not build.
#[test]
fn l11_wrong_nodes_do_not_build() {
    let node = ReduceNode::builder(Model::default(), "a {");
    assert_eq!(
        node.build().unwrap_err().to_string(),
        "invalid template at byte 2: an opening brace that nothing closes: write `{{` for a brace"
    );
}

/// The defaults are those of the type's doc.
#[test]
fn l11_the_defaults() {
    let node = ReduceNode::builder(Model::default(), "{a}")
        .build()
        .unwrap();
    insta::assert_snapshot!(format!("{node:?}"), @r#"ReduceNode { template_keys: ["a"], input_keys: [], output_key: "reduced_output", system_instruction: "", generation_config: {}, reduction: None, originals: Named, max_model_calls: 5, .. }"#);
}
