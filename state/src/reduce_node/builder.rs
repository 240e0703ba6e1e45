//! Setting a `ReduceNode` up.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use offcut::ToolReduction;
use offcut::agent::ChatModel;
use offcut::template::{Template, TemplateError};
use serde_json::{Map, Value};

use super::error::ReduceNodeBuildError;
use super::node::{OriginalsNote, ReduceNode};

impl ReduceNode {
    /// A node that asks `model` what `prompt_template` says.
    ///
    /// `{key}` in the template is the value under this key of the state: a string as it is,
    /// anything else as compact JSON. What it holds is not looked into again. `{{` and `}}` are
    /// braces.
    pub fn builder(
        model: impl ChatModel + 'static,
        prompt_template: impl Into<String>,
    ) -> ReduceNodeBuilder {
        ReduceNodeBuilder::new(Arc::new(model), prompt_template.into())
    }
}

/// Sets a [`ReduceNode`] up. Its type's doc has the defaults.
#[must_use = "nothing happens until `build`"]
pub struct ReduceNodeBuilder {
    prompt_template: String,
    node: ReduceNode,
}

impl ReduceNodeBuilder {
    fn new(model: Arc<dyn ChatModel>, prompt_template: String) -> Self {
        let node = ReduceNode {
            model,
            template: Template::default(),
            input_keys: Vec::new(),
            output_key: "reduced_output".into(),
            system_instruction: String::new(),
            generation_config: Map::new(),
            next_node: None,
            reduction: None,
            originals: OriginalsNote::default(),
            max_model_calls: 5,
            first_wait: Duration::from_secs(1),
        };
        Self {
            prompt_template,
            node,
        }
    }

    /// The keys to be deleted once the model has answered. A key that is not there is no error,
    /// unless the template names it.
    pub fn input_keys<K: Into<String>>(mut self, keys: impl IntoIterator<Item = K>) -> Self {
        self.node.input_keys = keys.into_iter().map(Into::into).collect();
        self
    }

    /// The key that the answer goes to. One that is an input key too is replaced, not deleted.
    pub fn output_key(mut self, key: impl Into<String>) -> Self {
        self.node.output_key = key.into();
        self
    }

    /// Instructions to the model, as a system message.
    pub fn system_instruction(mut self, text: impl Into<String>) -> Self {
        self.node.system_instruction = text.into();
        self
    }

    /// What the model is asked of the generation, as its provider names it: `temperature`,
    /// `max_tokens`.
    pub fn generation_config(mut self, config: Map<String, Value>) -> Self {
        self.node.generation_config = config;
        self
    }

    /// The node to run next: returned in [`Reduced::next_node`](crate::Reduced::next_node), never
    /// run.
    pub fn next_node(mut self, name: impl Into<String>) -> Self {
        self.node.next_node = Some(name.into());
        self
    }

    /// What stores inputs before they are deleted.
    pub fn reduction(mut self, reduction: ToolReduction) -> Self {
        self.node.reduction = Some(reduction);
        self
    }

    /// Whether the output says where its inputs are stored.
    pub fn originals(mut self, originals: OriginalsNote) -> Self {
        self.node.originals = originals;
        self
    }

    /// How often the model is called at most, the first time included.
    pub fn max_model_calls(mut self, calls: usize) -> Self {
        self.node.max_model_calls = calls;
        self
    }

    /// How long a rate limit is waited out before the second call.
    pub fn first_wait(mut self, wait: Duration) -> Self {
        self.node.first_wait = wait;
        self
    }

    /// Checks the template and the options.
    ///
    /// # Errors
    ///
    /// The template can't be read, a key is empty, or the model may never be called.
    pub fn build(self) -> Result<ReduceNode, ReduceNodeBuildError> {
        let Self {
            prompt_template,
            mut node,
        } = self;
        node.template = Template::parse(&prompt_template).map_err(
            |TemplateError { at, problem, .. }| ReduceNodeBuildError::Template { at, problem },
        )?;
        if node.template.is_empty() {
            let problem = "nothing: write what the model is to do";
            return Err(ReduceNodeBuildError::Template { at: 0, problem });
        }
        if node.input_keys.iter().any(String::is_empty) {
            return Err(ReduceNodeBuildError::EmptyKey {
                option: "input_keys",
            });
        }
        if node.output_key.is_empty() {
            return Err(ReduceNodeBuildError::EmptyKey {
                option: "output_key",
            });
        }
        if node.max_model_calls == 0 {
            return Err(ReduceNodeBuildError::NoModelCalls);
        }
        Ok(node)
    }
}

impl fmt::Debug for ReduceNodeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.node.fmt(f)
    }
}
