//! A server that wraps another server.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use offcut::{ToolCall, ToolReduction};
use offcut_mcp::{OutputSchema, ReduceError};
#[expect(deprecated, reason = "clients of older protocols use it")]
use rmcp::model::SetLevelRequestParams;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams,
    CancelledNotificationParam, CompleteRequestParams, CompleteResult, CustomNotification,
    CustomRequest, CustomResult, DiscoverResult, GetPromptRequestParams, GetPromptResponse,
    GetSkillRequestParams, GetSkillResult, GetTaskParams, GetTaskResult, InitializeRequestParams,
    InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListSkillsResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ProtocolVersion, ReadResourceDirectoryRequestParams, ReadResourceDirectoryResult,
    ReadResourceRequestParams, ReadResourceResponse, ResultType, ServerConfig,
    SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::from_value;

use crate::schemas::Schemas;

type Request = RequestContext<RoleServer>;
type Notification = NotificationContext<RoleServer>;

/// Names the session of a request.
type SessionOf = Arc<dyn Fn(&Request) -> Option<String> + Send + Sync>;

/// An MCP server with bounded tool results: those over the limit are stored, and the client sees a
/// preview and a hint.
///
/// - **`tools/call`**: long texts, embedded text resources and `structuredContent` are stored whole.
///   Texts are replaced. Structured content is shortened and checked against its tool's
///   `outputSchema`, and one string in it carries the hint; see [`offcut_mcp::reduce`]. `isError`,
///   `_meta`, images, audio, blobs and links stay.
/// - **`tools/list`**: the reader named in hints is added after the last page.
/// - **Everything else** passes through untouched: prompts, resources, completions, notifications,
///   progress, cancellation, cursors.
///
/// Results that a server returns as *tasks* are not reduced, since `tasks/get` does not name their
/// tool.
///
/// # Sessions
///
/// The reader reads only content that its own session stored. Anyone with access to a session's
/// reader can read the whole session, so **each client needs a session of its own**. Over stdio
/// there is only one client. Over HTTP, give each service that the factory creates
/// `reduction.session(id)` with an id that never repeats. If the server keeps no sessions, use
/// [`session_by`](Self::session_by) with the identity of the requester.
///
/// # Errors
///
/// If the server has a tool with the reader's name, `tools/list` fails with advice on how to rename
/// the reader. If the store fails, the result is passed on whole, unless `on_offload_error` is
/// `Fail`.
#[derive(Clone)]
pub struct Reduced<S> {
    service: S,
    reduction: ToolReduction,
    session_of: Option<SessionOf>,
    schemas: Schemas,
}

impl<S> Reduced<S> {
    /// Wraps `service` and bounds its results with `reduction`.
    pub fn new(service: S, reduction: ToolReduction) -> Self {
        Self {
            service,
            reduction,
            session_of: None,
            schemas: Schemas::default(),
        }
    }

    /// Runs each request in the session that `session_of` names; requests for which it returns
    /// `None` share the reduction's own session.
    ///
    /// For servers in which one service handles several clients. Name the session after something
    /// that the client can't choose, such as its authenticated identity: a client that can name
    /// another client's session can read it.
    ///
    /// ```
    /// # use offcut::{ToolReduction, backend::Memory};
    /// # use offcut_rmcp::Reduced;
    /// # struct MyServer;
    /// # impl rmcp::ServerHandler for MyServer {}
    /// #[derive(Clone)]
    /// struct Tenant(String); // put there by a layer that checks who asks
    ///
    /// # let reduction = ToolReduction::recommended(Memory::new()).build()?;
    /// let server = Reduced::new(MyServer, reduction)
    ///     .session_by(|request| {
    ///         let head = request.extensions.get::<axum::http::request::Parts>()?; // of the HTTP request
    ///         Some(head.extensions.get::<Tenant>()?.0.clone())
    ///     });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn session_by(
        mut self,
        session_of: impl Fn(&RequestContext<RoleServer>) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.session_of = Some(Arc::new(session_of));
        self
    }

    fn session(&self, request: &Request) -> ToolReduction {
        let id = self
            .session_of
            .as_ref()
            .and_then(|session_of| session_of(request));
        id.map_or_else(|| self.reduction.clone(), |id| self.reduction.session(&id))
    }

    /// The reader's name, if hints name one.
    fn reader(&self) -> Option<&str> {
        self.reduction.settings().read_file_tool_name.as_deref()
    }

    fn listed_reader(&self) -> serde_json::Result<Tool> {
        from_value(offcut_mcp::listed_reader(&self.reduction.read_file_tool()))
    }

    /// Returns true if `tool` is the reader's name.
    fn is_reader(&self, tool: &str) -> bool {
        self.reader() == Some(tool)
    }
}

impl<S: ServerHandler> Reduced<S> {
    /// The schema of a tool's structured results. A client may have kept it from an earlier list, so
    /// the server is asked for its tools if it does not know the tool without a list.
    async fn schema(&self, tool: &str, request: Request) -> OutputSchema {
        self.get_tool(tool);
        if self.schemas.of(tool).is_none()
            && let Ok(page) = self.service.list_tools(None, request).await
        {
            page.tools.iter().for_each(|tool| self.schemas.learn(tool));
        }
        self.schemas.of(tool).unwrap_or_default()
    }
}

/// Stores and replaces the parts of `result` over the limit. Within the limit it is unchanged, and so is
/// a result whose meaning is not certain as JSON.
async fn reduce(
    reduction: &ToolReduction,
    call: &ToolCall,
    result: CallToolResult,
    schema: &OutputSchema,
) -> Result<CallToolResult, ErrorData> {
    let Ok(spelled) = serde_json::to_string(&result) else {
        return Ok(result);
    };
    match offcut_mcp::reduce(reduction, call, spelled, schema).await {
        Ok(Some(new)) => serde_json::from_str(&new).map_err(internal),
        Ok(None) | Err(ReduceError::Ambiguous) => Ok(result),
        Err(ReduceError::Offload(error)) => Err(internal(error)),
        Err(error) => Err(internal(error)),
    }
}

fn internal(error: impl fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

fn same_name(reader: &str) -> ErrorData {
    let message = format!(
        "the server has a tool `{reader}` of its own, which the reader of stored results would hide: give the reader another \
         name with `read_file_tool_name`"
    );
    ErrorData::internal_error(message, None)
}

/// Converts a request to a tool call. MCP has no call ids, but Claude Code sends the model's own, and
/// a client's request ids are unique.
fn called(params: &CallToolRequestParams, request: &Request) -> ToolCall {
    let arguments = params.arguments.clone().unwrap_or_default();
    let given = request.meta.get("claudecode/toolUseId");
    let given = given.and_then(|id| id.as_str()).map(str::to_owned);
    ToolCall::new(
        given.unwrap_or_else(|| request.id.to_string()),
        params.name.as_ref(),
        serde_json::Value::Object(arguments).to_string(),
    )
}

/// Forwards requests and notifications unchanged.
macro_rules! pass_on {
    ($($(#[$attribute:meta])* $name:ident($($argument:ident: $type:ty),*) $(-> $answer:ty)?;)*) => {
        $($(#[$attribute])* async fn $name(&self, $($argument: $type),*) $(-> Result<$answer, ErrorData>)? {
            self.service.$name($($argument),*).await
        })*
    };
}

// A missing method would hide a capability of the wrapped server.
#[deny(clippy::missing_trait_methods)]
impl<S: ServerHandler> ServerHandler for Reduced<S> {
    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        request: Request,
    ) -> Result<CallToolResponse, ErrorData> {
        let (call, session) = (called(&params, &request), self.session(&request));
        if self.is_reader(&call.name) {
            return match self.service.get_tool(&call.name) {
                Some(_) => Err(same_name(&call.name)),
                None => {
                    let read = offcut_mcp::read_back(&session.read_file_tool(), &call).await;
                    let mut result: CallToolResult = from_value(read).map_err(internal)?;
                    // rmcp leaves it out for clients of older revisions.
                    result.result_type = Some(ResultType::COMPLETE);
                    Ok(result.into())
                }
            };
        }
        match self.service.call_tool(params, request.clone()).await? {
            CallToolResponse::Complete(result) => {
                let schema = match result.structured_content {
                    Some(_) if session.truncates(&call.name) => {
                        self.schema(&call.name, request).await
                    }
                    _ => OutputSchema::None,
                };
                Ok(reduce(&session, &call, result, &schema).await?.into())
            }
            other => Ok(other),
        }
    }

    async fn list_tools(
        &self,
        cursor: Option<PaginatedRequestParams>,
        request: Request,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut page = self.service.list_tools(cursor, request).await?;
        if let Some(reader) = self.reader() {
            if page.tools.iter().any(|tool| tool.name == reader) {
                return Err(same_name(reader));
            }
            if page.next_cursor.is_none() {
                page.tools.push(self.listed_reader().map_err(internal)?);
            }
        }
        page.tools.iter().for_each(|tool| self.schemas.learn(tool));
        Ok(page)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        match self.service.get_tool(name) {
            None if self.is_reader(name) => self.listed_reader().ok(),
            tool => tool.inspect(|tool| self.schemas.learn(tool)),
        }
    }

    fn get_info(&self) -> ServerConfig {
        self.service.get_info()
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.service.supported_protocol_versions()
    }

    fn negotiate_initialize(
        &self,
        params: &InitializeRequestParams,
    ) -> Result<InitializeResult, ErrorData> {
        self.service.negotiate_initialize(params)
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.service.accepted_subscription_filter(requested)
    }

    pass_on! {
        ping(request: Request) -> ();
        initialize(params: InitializeRequestParams, request: Request) -> InitializeResult;
        discover(request: Request) -> DiscoverResult;
        complete(params: CompleteRequestParams, request: Request) -> CompleteResult;
        #[expect(deprecated, reason = "clients of older protocols use it")]
        set_level(params: SetLevelRequestParams, request: Request) -> ();
        get_prompt(params: GetPromptRequestParams, request: Request) -> GetPromptResponse;
        list_prompts(cursor: Option<PaginatedRequestParams>, request: Request) -> ListPromptsResult;
        list_resources(cursor: Option<PaginatedRequestParams>, request: Request) -> ListResourcesResult;
        list_resource_templates(cursor: Option<PaginatedRequestParams>, request: Request) -> ListResourceTemplatesResult;
        read_resource(params: ReadResourceRequestParams, request: Request) -> ReadResourceResponse;
        read_resource_directory(params: ReadResourceDirectoryRequestParams, request: Request) -> ReadResourceDirectoryResult;
        listen(subscription: SubscriptionContext) -> ();
        #[expect(deprecated, reason = "clients of older protocols use it")]
        subscribe(params: SubscribeRequestParams, request: Request) -> ();
        #[expect(deprecated, reason = "clients of older protocols use it")]
        unsubscribe(params: UnsubscribeRequestParams, request: Request) -> ();
        list_skills(cursor: Option<PaginatedRequestParams>, request: Request) -> ListSkillsResult;
        get_skill(params: GetSkillRequestParams, request: Request) -> GetSkillResult;
        get_task(params: GetTaskParams, request: Request) -> GetTaskResult;
        update_task(params: UpdateTaskParams, request: Request) -> ();
        cancel_task(params: CancelTaskParams, request: Request) -> ();
        on_custom_request(custom: CustomRequest, request: Request) -> CustomResult;
        on_custom_notification(custom: CustomNotification, notification: Notification);
        on_cancelled(params: CancelledNotificationParam, notification: Notification);
        on_progress(params: ProgressNotificationParam, notification: Notification);
        on_initialized(notification: Notification);
        on_roots_list_changed(notification: Notification);
    }
}

impl<S> fmt::Debug for Reduced<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reduced")
            .field("reduction", &self.reduction)
            .finish_non_exhaustive()
    }
}
