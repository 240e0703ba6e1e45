//! What a tool is: a name, a schema, and something to call.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use crate::content::{ToolCall, ToolError, ToolOutput};

/// A tool that a model can call.
#[async_trait]
pub trait Tool: Send + Sync {
    /// What the model is told about it.
    fn definition(&self) -> ToolDefinition;

    /// Does what `call` asks. Its arguments were written by a model.
    ///
    /// # Errors
    ///
    /// The text is shown to the model as a failed result.
    async fn call(&self, call: &ToolCall) -> Result<ToolOutput, ToolError>;
}

/// A tool that is shared is a tool.
#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<T: Tool + ?Sized> Tool for Arc<T> {
    fn definition(&self) -> ToolDefinition {
        (**self).definition()
    }

    async fn call(&self, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        (**self).call(call).await
    }
}

/// What a model is told about a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDefinition {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Its arguments, as a JSON schema.
    pub parameters: Value,
}
