//! Builds a `ReduceNode`.

use std::fmt;
use std::sync::Arc;

use offcut::ToolReduction;
use offcut::agent::ChatModel;
use offcut::template::{Template, TemplateError};
use serde_json::{Map, Value};

use super::node::{OriginalsNote, ReduceNode};

impl ReduceNode {
    /// Creates a builder for a node that sends `prompt_template` to `model`.
    ///
    /// `{key}` in the template is the value of that key in the state: a string verbatim, anything
    /// else as compact JSON. Placeholders in inserted values are not expanded. `{{` and `}}` stand
    /// for braces.
    pub fn builder(
        model: impl ChatModel + 'static,
        prompt_template: impl Into<String>,
    ) -> ReduceNodeBuilder {
        let node = Self {
            model: Arc::new(model),
            template: Template::default(),
            input_keys: Vec::new(),
            output_key: "reduced_output".into(),
            system_instruction: String::new(),
            generation_config: Map::new(),
            reduction: None,
            originals: OriginalsNote::default(),
            max_model_calls: 5,
        };
        ReduceNodeBuilder {
            prompt_template: prompt_template.into(),
            node,
        }
    }
}

/// Builds a [`ReduceNode`]. See there for the defaults.
#[must_use = "nothing happens until `build`"]
pub struct ReduceNodeBuilder {
    prompt_template: String,
    node: ReduceNode,
}

impl ReduceNodeBuilder {
    /// Sets the keys to delete once the model has answered. A missing key is not an error, unless
    /// the template names it.
    pub fn input_keys<K: Into<String>>(mut self, keys: impl IntoIterator<Item = K>) -> Self {
        self.node.input_keys = keys.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the key for the answer. If it is also an input key, its value is replaced and not
    /// deleted.
    pub fn output_key(mut self, key: impl Into<String>) -> Self {
        self.node.output_key = key.into();
        self
    }

    /// Sets the instructions to the model, sent as a system message.
    pub fn system_instruction(mut self, text: impl Into<String>) -> Self {
        self.node.system_instruction = text.into();
        self
    }

    /// Sets generation options by their provider's names: `temperature`, `max_tokens`.
    pub fn generation_config(mut self, config: Map<String, Value>) -> Self {
        self.node.generation_config = config;
        self
    }

    /// Sets the reduction that stores inputs before they are deleted.
    pub fn reduction(mut self, reduction: ToolReduction) -> Self {
        self.node.reduction = Some(reduction);
        self
    }

    /// Sets whether the output names the locations of its inputs.
    pub fn originals(mut self, originals: OriginalsNote) -> Self {
        self.node.originals = originals;
        self
    }

    /// Sets the maximum number of calls to the model, including the first, which is always made.
    pub fn max_model_calls(mut self, calls: usize) -> Self {
        self.node.max_model_calls = calls;
        self
    }

    /// Builds the node.
    ///
    /// # Errors
    ///
    /// The template is invalid.
    pub fn build(mut self) -> Result<ReduceNode, TemplateError> {
        self.node.template = Template::parse(&self.prompt_template)?;
        Ok(self.node)
    }
}

impl fmt::Debug for ReduceNodeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.node.fmt(f)
    }
}
