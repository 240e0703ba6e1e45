//! Hooks into an agent loop: around a tool call, and before a model call.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use auto_impl::auto_impl;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::content::{ToolCall, ToolError, ToolOutput};
use crate::error::OffloadError;
use crate::format::Conversation;

/// A layer between a loop and its tools and model. The default methods pass everything on
/// unchanged.
#[async_trait]
#[auto_impl(Arc)]
pub trait Middleware: Send + Sync {
    /// Wraps a tool call: may change its input and output, or not make the call at all.
    ///
    /// # Errors
    ///
    /// The tool's error, or the middleware's own.
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
    /// The loop then does not call the model.
    async fn before_model(&self, turn: &mut Turn<'_>) -> Result<(), OffloadError> {
        let _ = turn;
        Ok(())
    }

    /// Names of the tools that this middleware tells the model to use.
    /// [`Agent`](crate::agent::Agent) refuses to build without them.
    fn required_tools(&self) -> Vec<String> {
        Vec::new()
    }
}

const _: Option<&dyn Middleware> = None; // stays object-safe

/// The state of a loop before a model call. Its `Debug` shows numbers, never messages or schemas.
pub struct Turn<'a> {
    /// The messages about to be sent.
    pub conversation: &'a mut dyn Conversation,
    /// Schemas of the tools about to be sent.
    pub tools: &'a [Value],
    /// Input tokens that the provider counted for the last request, including cached ones.
    pub last_usage: Option<u64>,
    /// True if the provider has just refused these messages as too long. All results before the newest round are
    /// then cleared, whatever the thresholds say (C10).
    pub is_too_long: bool,
    /// True if the provider's cache holds nothing of this conversation any more. A pass then costs nothing there, and is
    /// made from half of the threshold on (C18).
    pub is_cold: bool,
    /// True if earlier decisions are repeated and none is made, as for a request that only counts: nothing is stored.
    pub repeats_only: bool,
}

impl fmt::Debug for Turn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("conversation", &self.conversation)
            .field("tools", &self.tools.len())
            .field("last_usage", &self.last_usage)
            .field("is_too_long", &self.is_too_long)
            .field("is_cold", &self.is_cold)
            .field("repeats_only", &self.repeats_only)
            .finish()
    }
}

impl<'a> Turn<'a> {
    /// A turn with messages only.
    pub fn new(conversation: &'a mut dyn Conversation) -> Self {
        Self {
            conversation,
            tools: &[],
            last_usage: None,
            is_too_long: false,
            is_cold: false,
            repeats_only: false,
        }
    }
}

/// The final handler of a tool call. Functions are handlers: `|call: ToolCall| async move {
/// Ok("…".into()) }`.
///
/// `'a` is the time for which the handler is borrowed, so that a closure's future may borrow what
/// the closure borrows.
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

/// The rest of a tool call's path: the remaining middlewares, then the tool.
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
    /// The path through all `middlewares`, the first one outermost, to `tool`.
    pub fn new(middlewares: &'a [Arc<dyn Middleware>], tool: &'a dyn ToolHandler<'a>) -> Self {
        Self { middlewares, tool }
    }

    /// Passes `call` on.
    ///
    /// # Errors
    ///
    /// Errors of the tool or of a middleware on the path.
    pub async fn run(self, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        match self.middlewares {
            [first, middlewares @ ..] => {
                let next = Self {
                    middlewares,
                    ..self
                };
                first.wrap_tool_call(call, next).await
            }
            [] => self.tool.handle(call.clone()).await,
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
