//! The node: asks the model, stores the inputs, condenses them.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use offcut::agent::{ChatModel, ModelReply, ModelRequest};
use offcut::backend::Location;
use offcut::format::Message;
use offcut::template::Template;
use offcut::{Part, ToolReduction};
use serde_json::{Map, Value};

use super::error::ReduceNodeError;

/// Wait after the first rate limit.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// Maximum wait for a rate limit.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Tells whether the output names the locations of its inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OriginalsNote {
    /// A last line names them: `[originals: notes at .offcut/clear/notes-1f2e…]`. Without a
    /// reduction there is no such line.
    #[default]
    Named,
    /// The output is the model's answer alone; [`Reduced::stored`] has the locations. For outputs
    /// that a program reads.
    Unnamed,
}

/// Asks a model to condense values of a state into one, and deletes them: Lár's `ReduceNode`.
///
/// # Default
///
/// - `input_keys`: none
/// - `output_key`: `reduced_output`
/// - `system_instruction`: none
/// - `generation_config`: empty
/// - `reduction`: none, so the inputs are gone once they are condensed
/// - `originals`: [`OriginalsNote::Named`]
/// - `max_model_calls`: 5; more than one only while the model reports a rate limit. The wait before
///   the second is 1 second, then doubled each time, up to 60 seconds
///
/// ```
/// use offcut::ToolReduction;
/// use offcut::backend::Memory;
/// use offcut_state::{OriginalsNote, ReduceNode};
/// use serde_json::{Map, Value, json};
/// # use offcut::agent::{ChatModel, ModelError, ModelReply, ModelRequest};
/// # struct Model;
/// # #[async_trait::async_trait] impl ChatModel for Model {
/// #     async fn complete(&self, _: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
/// #         Ok(ModelReply { message: offcut::format::Message::assistant("Both like it."), input_tokens: None })
/// #     }
/// # }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = ReduceNode::builder(Model, "Weigh up.\n\nA: {perspective_a}\n\nB: {perspective_b}")
///     .input_keys(["perspective_a", "perspective_b"])
///     .output_key("synthesis")
///     .reduction(ToolReduction::recommended(Memory::new()).build()?)
///     .originals(OriginalsNote::Unnamed)
///     .build()?;
///
/// let mut state = Map::from_iter([("perspective_a".into(), json!("…")), ("perspective_b".into(), json!("…"))]);
/// let reduced = node.run(&mut state).await?;
/// assert_eq!(state, Map::from_iter([("synthesis".into(), json!("Both like it."))]));
/// assert_eq!(reduced.stored.len(), 2);
/// # Ok(()) }
/// ```
///
/// # Guarantees
///
/// - All or nothing: after an error at any point, or a dropped future, the state is unchanged.
/// - With a reduction, inputs are stored before they are deleted, byte for byte: strings verbatim,
///   other values as compact JSON, where [`ToolReduction::store_original`] stores them. The
///   reduction's reader reads them back. The same input is stored at most once in 24 hours. A truncated
///   result or a page of the reader is not stored again; its own location is named. A hint that the
///   reduction did not write stays ([`Reduced::left_in_place`]).
/// - Without a reduction, deleted inputs are gone.
pub struct ReduceNode {
    pub(super) model: Arc<dyn ChatModel>,
    pub(super) template: Template,
    pub(super) input_keys: Vec<String>,
    pub(super) output_key: String,
    pub(super) system_instruction: String,
    pub(super) generation_config: Map<String, Value>,
    pub(super) reduction: Option<ToolReduction>,
    pub(super) originals: OriginalsNote,
    pub(super) max_model_calls: usize,
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reduced {
    /// The new value of the output key.
    pub output: String,
    /// The deleted keys.
    pub deleted: Vec<String>,
    /// The locations of the deleted values, by key. A key that pointed at several places occurs
    /// several times.
    pub stored: Vec<(String, Location)>,
    /// The input keys that stay. With a reduction, these hold a text that looks like one of its
    /// hints but is not. It is neither stored as an original nor lost.
    pub left_in_place: Vec<String>,
    /// Number of calls to the model.
    pub model_calls: usize,
    /// Input tokens as counted by the provider.
    pub input_tokens: Option<u64>,
}

impl ReduceNode {
    /// Renders the template, stores the inputs, asks the model, puts its answer under the output
    /// key and deletes the input keys other than the output key.
    ///
    /// Waits for rate limits use tokio's clock, so the runtime must have time enabled, as with
    /// `#[tokio::main]`. A `<think>…</think>` before the answer is removed.
    ///
    /// # Errors
    ///
    /// The template names a missing key, an input could not be stored, the model failed or gave no
    /// answer, or the answer would replace what is not stored. The state is unchanged.
    pub async fn run(&self, state: &mut Map<String, Value>) -> Result<Reduced, ReduceNodeError> {
        let prompt = self
            .template
            .render(|key| state.get(key).map(text_of))
            .map_err(|key| ReduceNodeError::MissingKey {
                key: key.to_owned(),
            })?;
        let mut reduced = self.store(state).await?;
        let (reply, model_calls) = self.ask(prompt).await?;
        (reduced.model_calls, reduced.input_tokens) = (model_calls, reply.input_tokens);
        reduced.output = answer(&reply.message).ok_or(ReduceNodeError::NoAnswer)?;
        if let (OriginalsNote::Named, false) = (self.originals, reduced.stored.is_empty()) {
            let places = reduced.stored.iter();
            let places: Vec<_> = places
                .map(|(key, location)| format!("{key} at {location}"))
                .collect();
            let note = format!("\n\n[originals: {}]", places.join(", "));
            reduced.output.push_str(&note);
        }
        for key in &reduced.deleted {
            state.remove(key);
        }
        state.insert(self.output_key.clone(), reduced.output.clone().into());
        tracing::info!(
            inputs = reduced.deleted.len(),
            stored = reduced.stored.len(),
            left_in_place = reduced.left_in_place.len(),
            bytes = reduced.output.len(),
            model_calls,
            "values condensed into one"
        );
        Ok(reduced)
    }

    /// Stores the input keys that exist, each once. The outcome has no output yet.
    async fn store(&self, state: &Map<String, Value>) -> Result<Reduced, ReduceNodeError> {
        let mut reduced = Reduced {
            output: String::new(),
            deleted: Vec::new(),
            stored: Vec::new(),
            left_in_place: Vec::new(),
            model_calls: 0,
            input_tokens: None,
        };
        for (at, key) in self.input_keys.iter().enumerate() {
            let is_new = !self.input_keys[..at].contains(key);
            let Some(value) = state.get(key).filter(|_| is_new) else {
                continue;
            };
            let locations = match &self.reduction {
                Some(reduction) => reduction.store_original(key, &text_of(value)).await,
                None => Ok(Some(Vec::new())),
            };
            match locations {
                Ok(Some(locations)) => {
                    let at = |location| (key.clone(), location);
                    reduced.stored.extend(locations.into_iter().map(at));
                    if *key != self.output_key {
                        reduced.deleted.push(key.clone());
                    }
                }
                Ok(None) if *key == self.output_key => {
                    return Err(ReduceNodeError::OutputTaken { key: key.clone() });
                }
                Ok(None) => reduced.left_in_place.push(key.clone()),
                Err(source) => {
                    let key = key.clone();
                    return Err(ReduceNodeError::Store { key, source });
                }
            }
        }
        Ok(reduced)
    }

    async fn ask(&self, prompt: String) -> Result<(ModelReply, usize), ReduceNodeError> {
        let mut messages = Vec::new();
        if !self.system_instruction.is_empty() {
            messages.push(Message::system(self.system_instruction.as_str()));
        }
        messages.push(Message::user(prompt));
        let generation_config = Some(&self.generation_config);
        let request = ModelRequest {
            messages: &messages,
            tools: &[],
            generation_config,
        };
        let mut wait = FIRST_WAIT;
        let mut model_calls = 0;
        loop {
            model_calls += 1;
            match self.model.complete(request).await {
                Ok(reply) => return Ok((reply, model_calls)),
                Err(error) if error.is_retryable() && model_calls < self.max_model_calls => {
                    tracing::debug!(
                        model_calls,
                        wait_ms = wait.as_millis(),
                        "the model is rate limited; waiting before the next call"
                    );
                    tokio::time::sleep(wait.min(MAX_WAIT)).await;
                    wait = wait.saturating_mul(2).min(MAX_WAIT);
                }
                Err(source) => {
                    return Err(ReduceNodeError::Model {
                        model_calls,
                        source,
                    });
                }
            }
        }
    }
}

/// Returns the model's answer without its leading thought; `None` if nothing is left.
fn answer(message: &Message) -> Option<String> {
    let Message::Assistant { content, .. } = message else {
        return None;
    };
    let texts = content.iter().filter_map(|part| match part {
        Part::Text(text) => Some(&**text),
        _ => None,
    });
    let said = texts.collect::<Vec<_>>().join("\n");
    let mut text = said.trim();
    while let Some(thought) = text.strip_prefix("<think>") {
        // An unfinished thought takes up the rest of the text.
        text = thought
            .split_once("</think>")
            .map_or("", |(_, behind)| behind.trim_start());
    }
    Some(text)
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

impl fmt::Debug for ReduceNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReduceNode")
            .field("template_keys", &self.template.keys().collect::<Vec<_>>())
            .field("input_keys", &self.input_keys)
            .field("output_key", &self.output_key)
            .field("system_instruction", &self.system_instruction)
            .field("generation_config", &self.generation_config)
            .field("reduction", &self.reduction)
            .field("originals", &self.originals)
            .field("max_model_calls", &self.max_model_calls)
            .finish_non_exhaustive()
    }
}

/// Returns a string verbatim, anything else as compact JSON.
fn text_of(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => text.into(),
        other => other.to_string().into(),
    }
}
