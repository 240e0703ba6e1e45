//! The cases that Python and TypeScript run too.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use offcut::agent::{ChatModel, ModelError, ModelReply, ModelRequest};
use offcut::backend::Memory;
use offcut::format::Message;
use offcut::{ErrorChain, ToolReduction};
use offcut_state::{OriginalsNote, ReduceNode, Reducers, Schema, State};
use serde_json::Value;

use crate::common;

/// A model that gives the case's answer and keeps the prompt.
struct Answering {
    answer: String,
    prompt: Arc<Mutex<Option<String>>>,
}

#[async_trait]
impl ChatModel for Answering {
    async fn complete(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        if let Some(Message::User { content }) = request.messages.last() {
            *self.prompt.lock().unwrap() = Some(common::text(content).to_owned());
        }
        Ok(ModelReply {
            message: Message::assistant(self.answer.as_str()),
            input_tokens: None,
        })
    }
}

fn merged(case: &Value) -> Result<Value, &'static str> {
    let schema = Schema::from_json(&case["schema"].to_string(), &Reducers::new())
        .map_err(|error| error.code())?;
    let mut state = match case.get("state") {
        None => schema.state(),
        Some(state) => State::restore(&schema, state.clone()).map_err(|error| error.code())?,
    };
    for update in case["updates"].as_array().unwrap() {
        state.apply(update.clone()).map_err(|error| error.code())?;
    }
    Ok(serde_json::to_value(&state).unwrap())
}

async fn condensed(case: &Value) -> Result<Value, String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let (node, prompt) = (&case["node"], Arc::default());
    let model = Answering {
        answer: text(&case["answer"]),
        prompt: Arc::clone(&prompt),
    };
    let keys = node["input_keys"].as_array().into_iter().flatten();
    let mut builder = ReduceNode::builder(model, text(&node["prompt_template"]))
        .input_keys(keys.map(text))
        .originals(OriginalsNote::Unnamed)
        .reduction(ToolReduction::recommended(Memory::new()).build().unwrap());
    if let Some(key) = node.get("output_key") {
        builder = builder.output_key(text(key));
    }
    let mut state = case["state"].as_object().unwrap().clone();
    let built = builder
        .build()
        .map_err(|error| ErrorChain(&error).to_string())?;
    let ran = built.run(&mut state).await;
    assert_eq!(
        prompt.lock().unwrap().as_deref(),
        case["prompt"].as_str(),
        "{case}"
    );
    ran.map_err(|error| {
        assert_eq!(Value::Object(state.clone()), case["state"], "{case}");
        ErrorChain(&error).to_string()
    })?;
    Ok(Value::Object(state))
}

#[tokio::test]
async fn the_cases_of_all_languages_hold() {
    let cases: Value = serde_json::from_str(include_str!("cases.json")).unwrap();
    for case in cases.as_array().unwrap() {
        let after = if case.get("node").is_some() {
            condensed(case).await
        } else {
            merged(case).map_err(str::to_owned)
        };
        match after {
            Ok(after) => assert_eq!(Some(&after), case.get("after"), "{case}"),
            Err(problem) => assert!(
                case["error"]
                    .as_str()
                    .is_some_and(|error| problem.starts_with(error)),
                "{case}: {problem}"
            ),
        }
    }
}
