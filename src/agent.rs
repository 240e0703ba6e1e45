//! A small chat-model agent loop, for programs that have none yet.
//!
//! The loop calls the model until it answers without a tool call. Middlewares see the conversation
//! before each model call, and the input and output of each tool call.

use std::fmt;
use std::sync::Arc;

use crate::backend::{debug_as_chain, with_source};
use async_trait::async_trait;
use auto_impl::auto_impl;
use futures_util::future::join_all;
use serde_json::{Map, Value};

use crate::content::{Part, ToolCall, ToolError, ToolOutput};
use crate::error::OffloadError;
use crate::format::{LoopFormat, Message, Messages, OpenAiChat, Plain};
use crate::guard::guard_future;
use crate::middleware::{Middleware, Next, Turn};

pub use crate::tool::{Tool, ToolDefinition};

/// A model that answers messages and calls tools.
#[async_trait]
#[auto_impl(Arc)]
pub trait ChatModel: Send + Sync {
    /// Returns the model's next message.
    ///
    /// # Errors
    ///
    /// The model could not be reached, or gave no answer.
    async fn complete(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError>;
}

/// A request to a model.
#[derive(Clone, Copy, Debug)]
pub struct ModelRequest<'a> {
    /// The conversation so far.
    pub messages: &'a [Message],
    /// Schemas of the tools it may call, as chat-completions function tools.
    pub tools: &'a [Value],
    /// Generation settings in the provider's terms, such as `temperature` or `max_tokens`. An
    /// [`Agent`] sets none.
    pub generation_config: Option<&'a Map<String, Value>>,
}

/// A model's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelReply {
    /// An assistant message.
    pub message: Message,
    /// Input tokens as counted by the provider, including cached ones.
    pub input_tokens: Option<u64>,
}

/// A model failed to answer.
#[derive(thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    message: String,
    is_rate_limit: bool,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

debug_as_chain!(ModelError);
with_source!(ModelError);

impl ModelError {
    /// A failure that a retry won't fix.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_rate_limit: false,
            source: None,
        }
    }

    /// A refusal that a later retry may get past.
    pub fn rate_limited(message: impl Into<String>) -> Self {
        Self {
            is_rate_limit: true,
            ..Self::new(message)
        }
    }

    /// Returns true if a later retry may help.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.is_rate_limit
    }
}

/// A model with its tools and the middlewares around them.
///
/// # Default
///
/// - no tools and no middlewares
/// - `max_model_calls`: 100
pub struct Agent {
    model: Arc<dyn ChatModel>,
    tools: Vec<Arc<dyn Tool>>,
    names: Vec<String>,
    schemas: Vec<Value>,
    middlewares: Vec<Arc<dyn Middleware>>,
    max_model_calls: usize,
}

/// Builder of an [`Agent`].
#[derive(Debug)]
#[must_use = "nothing happens until `build`"]
pub struct AgentBuilder(Agent);

/// An agent can't be built or could not finish.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// Two tools have the same name, so the model could not tell them apart.
    #[error(
        "two tools are named `{name}`: rename one; `read_file_tool_name` renames the reader of stored content"
    )]
    SameName {
        /// The shared name.
        name: String,
    },
    /// A middleware tells the model to use a tool that the agent does not have.
    #[error(
        "hints name the tool `{name}`, which the agent does not have: add it (`reduction.read_file_tool()`), or set `read_file_tool_name` to `None`"
    )]
    MissingTool {
        /// The missing tool's name.
        name: String,
    },
    /// The model failed.
    #[error("the model failed")]
    Model {
        /// The model's error.
        #[from]
        source: ModelError,
    },
    /// A middleware failed before a model call.
    #[error("a middleware failed before the model call")]
    Middleware {
        /// The middleware's error.
        #[from]
        source: OffloadError,
    },
    /// The model kept calling tools.
    #[error(
        "no answer after {calls} model calls: raise `max_model_calls`, or check the messages for a loop"
    )]
    TooManyModelCalls {
        /// Number of model calls made.
        calls: usize,
    },
}

debug_as_chain!(AgentError);

impl AgentBuilder {
    /// Adds a tool.
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.0.tools.push(Arc::new(tool));
        self
    }

    /// Adds a middleware. The first one added is the outermost.
    pub fn middleware(mut self, middleware: impl Middleware + 'static) -> Self {
        self.0.middlewares.push(Arc::new(middleware));
        self
    }

    /// Sets the maximum number of model calls in one run.
    pub fn max_model_calls(mut self, calls: usize) -> Self {
        self.0.max_model_calls = calls;
        self
    }

    /// Checks that names are unique and that every tool named in hints is there.
    ///
    /// # Errors
    ///
    /// [`AgentError::SameName`] or [`AgentError::MissingTool`].
    pub fn build(self) -> Result<Agent, AgentError> {
        let Self(mut agent) = self;
        for tool in &agent.tools {
            let name = tool.definition().name;
            if agent.names.contains(&name) {
                return Err(AgentError::SameName { name });
            }
            agent.names.push(name);
            agent.schemas.push(OpenAiChat.tool(tool));
        }
        let required = agent.middlewares.iter();
        let missing = required
            .flat_map(Middleware::required_tools)
            .find(|name| !agent.names.contains(name));
        match missing {
            Some(name) => Err(AgentError::MissingTool { name }),
            None => Ok(agent),
        }
    }
}

impl Agent {
    /// Starts building an agent around `model`.
    pub fn builder(model: impl ChatModel + 'static) -> AgentBuilder {
        AgentBuilder(Agent {
            model: Arc::new(model),
            tools: Vec::new(),
            names: Vec::new(),
            schemas: Vec::new(),
            middlewares: Vec::new(),
            max_model_calls: 100,
        })
    }

    /// Calls the model until it answers without a tool call. Adds every message to `messages`; the
    /// last one is the answer.
    ///
    /// # Errors
    ///
    /// The model or a middleware failed, or the model was called too often. `messages` holds
    /// everything up to the failure.
    pub async fn run(&self, messages: &mut Vec<Message>) -> Result<(), AgentError> {
        let mut last_usage = None;
        for _ in 0..self.max_model_calls {
            for middleware in &self.middlewares {
                let mut conversation = Messages::new(Plain, messages);
                let mut turn = Turn {
                    tools: &self.schemas,
                    last_usage,
                    ..Turn::new(&mut conversation)
                };
                middleware.before_model(&mut turn).await?;
            }
            let request = ModelRequest {
                messages,
                tools: &self.schemas,
                generation_config: None,
            };
            let reply = self.model.complete(request).await?;
            last_usage = reply.input_tokens;
            let calls = match &reply.message {
                Message::Assistant { calls, .. } => calls.clone(),
                _ => Vec::new(),
            };
            messages.push(reply.message);
            if calls.is_empty() {
                return Ok(());
            }
            messages.extend(join_all(calls.iter().map(|call| self.answer(call))).await);
        }
        Err(AgentError::TooManyModelCalls {
            calls: self.max_model_calls,
        })
    }

    /// Returns the result of one call as shown to the model. A panic in a tool or its middleware
    /// fails only its own call, since other results may already be stored.
    async fn answer(&self, call: &ToolCall) -> Message {
        let tool = |call: ToolCall| async move {
            let at = self.names.iter().position(|name| *name == call.name);
            let unknown = || {
                let known = self.names.join(", ");
                ToolError::new(format!("unknown tool; available tools: {known}"))
            };
            self.tools[at.ok_or_else(unknown)?].call(&call).await
        };
        let run = async {
            let output = ToolOutput::from(Next::new(&self.middlewares, &tool).run(call).await);
            let is_error = output.is_error;
            let (mut parts, interrupted) = output.into_parts().await;
            let is_error = is_error || interrupted.is_some();
            parts.extend(interrupted.map(|error| Part::Text(error.to_string())));
            Ok((parts, is_error))
        };
        let answer = guard_future("the tool", run).await;
        let (parts, is_error) =
            answer.unwrap_or_else(|error| (vec![Part::Text(error.to_string())], true));
        Message::tool(call, parts, is_error)
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("tools", &self.names)
            .field("middlewares", &self.middlewares.len())
            .finish_non_exhaustive()
    }
}
