//! The hook.

use offcut::agent::Tool as _;
use offcut::format::Messages;
use offcut::{Body, OffloadError, ToolCall, ToolReduction, Turn};
use rig::agent::{
    AgentHook, CompletionCallAction, CompletionCallEvent, HookContext, ModelTurnAction,
    ModelTurnFinished, OutcomeAction, OutcomeEvent, RequestPatch, StepEventKind,
};
use rig::effect::Outcome;
use rig::message::{EmptyToolName, Message, ProviderCallId, ToolName};
use rig::tool::{DynamicTool, ToolExecutionError, ToolOutput, ToolResult};

use crate::content::{from_part, to_part};
use crate::format::RigMessages;

/// The error code of the listed reader, which tells it from any other tool of that name.
const READER: &str = "offcut_rig::reader";

/// A hook that bounds tool results, and clears old ones before each model call.
///
/// - **After a tool returns**, any tool, including MCP's: a result over the limit is stored whole
///   and replaced by a preview and a hint. rig's transcript has the replacement.
/// - **Before each model call**: over the token threshold, old results are stored and replaced by
///   hints, in this request only. rig keeps the original history and passes it in each time. The
///   hook repeats its decisions byte for byte, so that the provider's prompt cache sees the same
///   prefix.
/// - **The reader** is listed as a tool and answered by the hook, in the hook's own session.
///
/// Clones share everything. The provider's count of input tokens covers all that a run has sent,
/// tools and preamble included.
///
/// # Conversations
///
/// One hook is one conversation, since its decisions apply to one history. Keep it for the whole
/// conversation. If one agent serves several, give the agent the [`reader`](Self::reader), and each
/// request the hook of its conversation:
///
/// ```
/// # use offcut::{ToolReduction, backend::Memory};
/// # use offcut_rig::Reduction;
/// # use rig::agent::{Agent, AgentBuilder};
/// # async fn example(model: impl Into<rig::DynModel<rig::operation::Completion>>) -> Result<(), Box<dyn std::error::Error>> {
/// let all = ToolReduction::recommended(Memory::new()).build()?;
/// let agent = AgentBuilder::new(model).dynamic_tool(Reduction::new(all.clone()).reader()?).build();
///
/// let chat = Reduction::new(all.session("chat-42"));
/// let first = agent.prompt("Where is the leak?").add_hook(chat.clone()).await?;
/// let then = agent.prompt("Mend it.").history(first.messages).add_hook(chat.clone()).await?;
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// If the store fails, results and history are passed on whole. If `on_offload_error` is `Fail`,
/// the tool call fails, or the run stops, with the store's error.
#[derive(Clone, Debug)]
pub struct Reduction {
    reduction: ToolReduction,
}

/// The input tokens of the run's last request, as counted by the provider.
#[derive(Clone, Copy)]
struct LastUsage(u64);

impl Reduction {
    /// Creates a hook for the conversation whose session is `reduction`.
    #[must_use]
    pub fn new(reduction: ToolReduction) -> Self {
        Self { reduction }
    }

    /// Returns the tool that reads stored content back, for `AgentBuilder::dynamic_tool`. Hooks
    /// answer it, each in its own session.
    ///
    /// # Errors
    ///
    /// Never in practice: a reduction whose reader has no name does not build.
    pub fn reader(&self) -> Result<DynamicTool, EmptyToolName> {
        let definition = self.reduction.read_file_tool().definition();
        let name = ToolName::new(definition.name)?;
        Ok(DynamicTool::new(
            name,
            definition.description,
            definition.parameters,
            |_| {
                let missing = "no hook in this conversation reads stored results: add offcut_rig::Reduction with `add_hook`";
                Box::pin(async move { Err(ToolExecutionError::other(missing).with_code(READER)) })
            },
        ))
    }

    /// Returns the history to send before `prompt`; `None` if `history` is unchanged.
    ///
    /// The hook calls it. If you drive [`rig::run::AgentRun`] yourself, pass the returned history
    /// to [`RequestPatch::history`]. `last_usage` is the provider's count of input tokens for the
    /// last request, if known.
    ///
    /// # Errors
    ///
    /// The store failed, and `on_offload_error` is `Fail`.
    pub async fn clear(
        &self,
        history: &[Message],
        prompt: &Message,
        last_usage: Option<u64>,
    ) -> Result<Option<Vec<Message>>, OffloadError> {
        // The newest message can't be replaced, but holds only what is not answered yet, which always stays.
        let mut messages = [history, std::slice::from_ref(prompt)].concat();
        let mut conversation = Messages::new(RigMessages, &mut messages);
        let mut turn = Turn::new(&mut conversation);
        turn.last_usage = last_usage;
        self.reduction.clear_turn(&mut turn).await?;
        messages.pop();
        Ok((messages != history).then_some(messages))
    }

    /// Returns the output to show to the model; `None` if `result` is unchanged.
    async fn truncate(
        &self,
        call: &ToolCall,
        result: &ToolResult,
    ) -> Result<Option<ToolOutput>, OffloadError> {
        let given = result.output();
        let is_error = result.is_error() || result.is_refused();
        let parts = given.as_content().iter().map(to_part).collect();
        let shown = self
            .reduction
            .truncate(
                call,
                offcut::ToolOutput {
                    body: Body::Parts(parts),
                    is_error,
                },
            )
            .await?;
        // An empty output replaces nothing.
        let shown = ToolOutput::content(shown.parts.into_iter().map(from_part).collect()).ok();
        Ok(shown.filter(|shown| shown != given))
    }

    /// The reader's answer, which is always below the limit.
    async fn answer(&self, call: &ToolCall) -> ToolResult {
        match self.reduction.read_file_tool().call(call).await {
            Ok(output) => {
                let (parts, _) = output.into_parts().await;
                match ToolOutput::content(parts.into_iter().map(from_part).collect()) {
                    Ok(output) => ToolResult::success(output),
                    Err(error) => ToolResult::failed(error),
                }
            }
            Err(error) => ToolResult::failed(ToolExecutionError::other(error.to_string())),
        }
    }
}

impl AgentHook for Reduction {
    async fn on_outcome(&self, _: &HookContext, event: OutcomeEvent<'_>) -> OutcomeAction {
        let (Some(result), Some(name)) = (event.tool_result(), event.tool_name()) else {
            return OutcomeAction::proceed();
        };
        let id = event
            .call_id
            .and_then(|id| id.provider())
            .map_or("", ProviderCallId::as_str);
        let call = ToolCall::new(id, name, event.tool_args().unwrap_or_default());
        if result
            .error()
            .is_some_and(|error| error.code() == Some(READER))
        {
            return OutcomeAction::replace(Ok(Outcome::ToolResult {
                result: self.answer(&call).await,
            }));
        }
        match self.truncate(&call, result).await {
            Ok(None) => OutcomeAction::proceed(),
            Ok(Some(output)) => OutcomeAction::rewrite_tool_output(&event, output),
            Err(error) => {
                let result = ToolResult::failed(
                    ToolExecutionError::other("the tool's result could not be stored, so it is not shown: call the tool again later")
                        .with_source(error),
                );
                OutcomeAction::replace(Ok(Outcome::ToolResult { result }))
            }
        }
    }

    async fn on_completion_call(
        &self,
        run: &HookContext,
        event: CompletionCallEvent<'_>,
    ) -> CompletionCallAction {
        let last_usage = run.scratchpad().get().map(|LastUsage(tokens)| tokens);
        match self.clear(event.history, event.prompt, last_usage).await {
            Ok(None) => CompletionCallAction::continue_run(),
            Ok(Some(history)) => CompletionCallAction::patch(RequestPatch::new().history(history)),
            Err(error) => CompletionCallAction::stop(error.to_string()),
        }
    }

    async fn on_model_turn_finished(
        &self,
        run: &HookContext,
        event: ModelTurnFinished<'_>,
    ) -> ModelTurnAction {
        if let Some(tokens) = event.usage.input_tokens {
            run.scratchpad().insert(LastUsage(tokens));
        }
        ModelTurnAction::continue_run()
    }

    fn observes(&self, kind: StepEventKind) -> bool {
        matches!(
            kind,
            StepEventKind::CompletionCall
                | StepEventKind::ModelTurnFinished
                | StepEventKind::ToolDispatch
        )
    }
}
