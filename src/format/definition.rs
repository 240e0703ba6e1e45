//! Definitions of tools as providers want them.

use serde_json::{Value, json};

use super::{Anthropic, Gemini, OpenAiChat, Responses, WireFormat};
use crate::tool::{Tool, ToolDefinition};

impl OpenAiChat {
    /// The definition of a tool, such as the reader: an element of a request's `tools`.
    ///
    /// ```
    /// use offcut::{ToolReduction, backend::Memory, format::OpenAiChat};
    ///
    /// let reduction = ToolReduction::recommended(Memory::new()).build()?;
    /// let tools = vec![OpenAiChat::tool(&reduction.read_file_tool())];
    /// assert_eq!(tools[0]["function"]["name"], "read_file");
    /// # Ok::<(), offcut::BuildError>(())
    /// ```
    #[must_use]
    pub fn tool(tool: &(impl Tool + ?Sized)) -> Value {
        WireFormat::OpenAiChat.tool(tool)
    }
}

impl Responses {
    /// The definition of a tool, such as the reader: an element of a request's `tools`. It is not
    /// strict, since strict definitions can't have optional arguments.
    #[must_use]
    pub fn tool(tool: &(impl Tool + ?Sized)) -> Value {
        WireFormat::Responses.tool(tool)
    }
}

impl Anthropic {
    /// The definition of a tool, such as the reader: an element of a request's `tools`.
    #[must_use]
    pub fn tool(tool: &(impl Tool + ?Sized)) -> Value {
        WireFormat::Anthropic.tool(tool)
    }
}

impl Gemini {
    /// The definition of a tool, such as the reader: an element of a request's `tools`. Its
    /// arguments are a JSON schema, in `parametersJsonSchema`. For an endpoint that accepts only
    /// one element, add its `functionDeclarations` to yours.
    #[must_use]
    pub fn tool(tool: &(impl Tool + ?Sized)) -> Value {
        WireFormat::Gemini.tool(tool)
    }
}

impl WireFormat {
    /// The definition of a tool, such as the reader: an element of a request's `tools`.
    #[must_use]
    pub fn tool(self, tool: &(impl Tool + ?Sized)) -> Value {
        let ToolDefinition {
            name,
            description,
            parameters,
        } = tool.definition();
        match self {
            Self::OpenAiChat => {
                json!({"type": "function", "function": {"name": name, "description": description, "parameters": parameters}})
            }
            Self::Responses => {
                json!({"type": "function", "name": name, "description": description, "parameters": parameters, "strict": false})
            }
            Self::Anthropic => {
                json!({"name": name, "description": description, "input_schema": parameters})
            }
            Self::Gemini => {
                json!({"functionDeclarations": [{"name": name, "description": description, "parametersJsonSchema": parameters}]})
            }
        }
    }
}
