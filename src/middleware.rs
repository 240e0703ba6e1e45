//! Both moments of an agent loop: around a tool call, and before a model call.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::content::{ToolCall, ToolError, ToolOutput};
use crate::error::OffloadError;
use crate::format::Conversation;

/// Something that stands between a loop and its tools and model. Both methods pass everything on
/// unless they are overridden.
#[async_trait]
pub trait Middleware: Send + Sync {
    /// Stands around a tool call: may change what goes in and what comes out, or not call at all.
    ///
    /// # Errors
    ///
    /// The tool's error, or one of its own.
    async fn wrap_tool_call(
        &self,
        call: &ToolCall,
        next: Next<'_>,
    ) -> Result<ToolOutput, ToolError> {
        next.run(call).await
    }

    /// Runs before each model call and may change the conversation.
    ///
    /// # Errors
    ///
    /// The model is not called then.
    async fn before_model(&self, turn: &mut Turn<'_>) -> Result<(), OffloadError> {
        let _ = turn;
        Ok(())
    }

    /// Stands between a call that failed and the model: `shown` is what the loop is going to show,
    /// marked as an error.
    ///
    /// # Errors
    ///
    /// One of its own.
    async fn wrap_failed_call(
        &self,
        call: &ToolCall,
        shown: ToolOutput,
    ) -> Result<ToolOutput, ToolError> {
        let _ = call;
        Ok(shown)
    }

    /// The tools that it tells the model to use. [`Agent`](crate::agent::Agent) refuses to build
    /// without them.
    fn required_tools(&self) -> Vec<String> {
        Vec::new()
    }
}

const _: Option<&dyn Middleware> = None; // stays object-safe

/// A middleware that is shared is a middleware.
#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<M: Middleware + ?Sized> Middleware for Arc<M> {
    async fn wrap_tool_call(
        &self,
        call: &ToolCall,
        next: Next<'_>,
    ) -> Result<ToolOutput, ToolError> {
        (**self).wrap_tool_call(call, next).await
    }

    async fn before_model(&self, turn: &mut Turn<'_>) -> Result<(), OffloadError> {
        (**self).before_model(turn).await
    }

    async fn wrap_failed_call(
        &self,
        call: &ToolCall,
        shown: ToolOutput,
    ) -> Result<ToolOutput, ToolError> {
        (**self).wrap_failed_call(call, shown).await
    }

    fn required_tools(&self) -> Vec<String> {
        (**self).required_tools()
    }
}

/// What a middleware sees before a model call.
pub struct Turn<'a> {
    /// The messages that are going to be sent.
    pub conversation: &'a mut dyn Conversation,
    /// The schemas of the tools that are going to be sent.
    pub tools: &'a [Value],
    /// The input tokens that the provider counted for the last request, cached ones included.
    pub last_usage: Option<u64>,
    /// Whether the provider has nothing of the last request in its cache any more: it has expired,
    /// or the model is another. Then a rewrite costs nothing, and the [cost-aware
    /// pass](crate::Settings::cost_aware) makes it.
    pub cache_is_cold: bool,
}

impl<'a> Turn<'a> {
    /// A turn of which nothing is known but the messages.
    pub fn new(conversation: &'a mut dyn Conversation) -> Self {
        Self {
            conversation,
            tools: &[],
            last_usage: None,
            cache_is_cold: false,
        }
    }
}

impl fmt::Debug for Turn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("messages", &self.conversation.len())
            .field("tools", &self.tools.len())
            .field("last_usage", &self.last_usage)
            .field("cache_is_cold", &self.cache_is_cold)
            .finish()
    }
}

/// What answers a tool call in the end. Functions are handlers:
/// `|call: ToolCall| async move { Ok("…".into()) }`.
///
/// `'a` is how long the handler is borrowed, so that a closure's future may borrow what the closure
/// does.
pub trait ToolHandler<'a>: Send + Sync {
    /// Answers `call`.
    fn handle(&'a self, call: ToolCall) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

impl<'a, F, R> ToolHandler<'a> for F
where
    F: Fn(ToolCall) -> R + Send + Sync,
    R: Future<Output = Result<ToolOutput, ToolError>> + Send + 'a,
{
    fn handle(&'a self, call: ToolCall) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self(call).boxed()
    }
}

/// The rest of the way of a tool call: the middlewares that are left, then the tool.
///
/// ```
/// use std::sync::Arc;
/// use offcut::{Middleware, Next, ToolCall, ToolOutput, ToolReduction, backend::Memory};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let middlewares: [Arc<dyn Middleware>; 1] = [Arc::new(ToolReduction::recommended(Memory::new()).build()?)];
/// let tool = |call: ToolCall| async move { Ok(ToolOutput::from(call.arguments.repeat(10_000))) };
/// let output = Next::new(&middlewares, &tool).run(&ToolCall::new("call_1", "echo", "hello ")).await?;
/// let (parts, _) = output.into_parts().await;
/// assert_eq!(parts.len(), 1);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy)]
pub struct Next<'a> {
    middlewares: &'a [Arc<dyn Middleware>],
    tool: &'a dyn ToolHandler<'a>,
}

impl<'a> Next<'a> {
    /// The way through all `middlewares`, the first one outermost, to `tool`.
    pub fn new(middlewares: &'a [Arc<dyn Middleware>], tool: &'a dyn ToolHandler<'a>) -> Self {
        Self { middlewares, tool }
    }

    /// Goes on with `call`.
    ///
    /// # Errors
    ///
    /// What the tool or a middleware on the way says.
    pub async fn run(self, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        match self.middlewares.split_first() {
            Some((first, rest)) => {
                first
                    .wrap_tool_call(
                        call,
                        Self {
                            middlewares: rest,
                            tool: self.tool,
                        },
                    )
                    .await
            }
            None => self.tool.handle(call.clone()).await,
        }
    }
}

impl fmt::Debug for Next<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next")
            .field("middlewares_left", &self.middlewares.len())
            .finish_non_exhaustive()
    }
}
