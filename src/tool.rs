//! A tool: a name, a schema and a function to call.

use async_trait::async_trait;
use auto_impl::auto_impl;
use serde_json::Value;

use crate::content::{ToolCall, ToolError, ToolOutput};

/// A tool that a model can call.
#[async_trait]
#[auto_impl(Arc)]
pub trait Tool: Send + Sync {
    /// Describes the tool to the model.
    fn definition(&self) -> ToolDefinition;

    /// Runs `call`. A model wrote the arguments, so they may be invalid.
    ///
    /// # Errors
    ///
    /// The model sees the error's text as a failed result.
    async fn call(&self, call: &ToolCall) -> Result<ToolOutput, ToolError>;
}

/// A tool's description for the model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDefinition {
    /// Its name.
    pub name: String,
    /// Its purpose.
    pub description: String,
    /// Its arguments, as a JSON schema.
    pub parameters: Value,
}
