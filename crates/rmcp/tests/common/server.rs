//! The wrapped server, and the results of its tools, so that the client's side can compare.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    CompletionInfo, ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult,
    JsonObject, ListPromptsResult, ListResourcesResult, ListToolsResult, MetaObject,
    PaginatedRequestParams, ProgressNotificationParam, Prompt, PromptMessage,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource,
    ResourceContents, Role, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};

pub(crate) const PNG: &str = "iVBORw0KGgo=";

/// A text of `lines` lines, with multi-byte characters.
pub(crate) fn log(lines: usize) -> String {
    (1..=lines)
        .map(|line| format!("{line:05} größte Zeile, naïve 行\n"))
        .collect()
}

/// A structured result over the limit.
pub(crate) fn table() -> Value {
    let rows: Vec<Value> = (0..200)
        .map(|row| json!({"row": row, "name": format!("Nº {row}")}))
        .collect();
    json!({"rows": rows})
}

pub(crate) fn document() -> String {
    format!("{{\"pages\":{}}}", json!(vec!["page"; 600]))
}

#[derive(Clone, Default)]
pub(crate) struct Server {
    pub(crate) was_cancelled: Arc<AtomicBool>,
    /// True if the server has a tool with the reader's name.
    pub(crate) has_reader: bool,
}

const TOOLS: [&str; 12] = [
    "log", "table", "rows", "document", "many", "fails", "short", "exact", "both", "progress",
    "wait", "changed",
];
const PAGE: usize = 5;

fn schema(fields: &Value) -> JsonObject {
    json!({"type": "object", "properties": fields})
        .as_object()
        .unwrap()
        .clone()
}

fn meta() -> MetaObject {
    serde_json::from_value(json!({"example.org/trace": "t-1"})).unwrap()
}

fn result(name: &str, arguments: &JsonObject) -> Option<CallToolResult> {
    let lines = arguments
        .get("lines")
        .and_then(Value::as_u64)
        .unwrap_or(500) as usize;
    Some(match name {
        "log" => {
            CallToolResult::success(vec![ContentBlock::text(log(lines))]).with_meta(Some(meta()))
        }
        "table" | "exact" => CallToolResult::structured(table()),
        // Structured content, and a text that differs from it.
        "rows" => {
            let mut result = CallToolResult::structured(table());
            result.content = vec![ContentBlock::text(r#"{"count":200}"#)];
            result
        }
        "document" => CallToolResult::success(vec![
            ContentBlock::image(PNG, "image/png"),
            ContentBlock::resource(
                ResourceContents::text(document(), "docs://manual")
                    .with_mime_type("application/json")
                    .with_meta(meta()),
            ),
            ContentBlock::resource(ResourceContents::blob("AAAA", "docs://cover")),
            ContentBlock::resource_link(Resource::new("docs://index", "index")),
            ContentBlock::text("the end"),
        ]),
        "many" => CallToolResult::success(
            (0..60)
                .map(|page| {
                    ContentBlock::resource(ResourceContents::text(
                        log(3),
                        format!("docs://page/{page}"),
                    ))
                })
                .collect(),
        ),
        "fails" => {
            CallToolResult::error(vec![ContentBlock::text(log(lines))]).with_meta(Some(meta()))
        }
        "short" => CallToolResult::structured(json!({"ok": true})),
        // Two texts; the short one equals the structured content.
        "both" => {
            let mut result = CallToolResult::structured(json!({"ok": true}));
            result.content.insert(0, ContentBlock::text(log(lines)));
            result
        }
        "read_file" => CallToolResult::success(vec![ContentBlock::text("a file of the server's")]),
        _ => return None,
    })
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_resources()
            .enable_completions()
            .build();
        ServerConfig::new(capabilities).with_instructions("Call log.")
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let from = request
            .and_then(|request| request.cursor)
            .map_or(0, |cursor| cursor.parse().unwrap());
        let mut names: Vec<&str> = TOOLS.to_vec();
        if self.has_reader {
            names.insert(0, "read_file");
        }
        let tools = names.iter().skip(from).take(PAGE).map(|name| {
            let tool = Tool::new(
                *name,
                format!("Returns {name}."),
                schema(&json!({"lines": {"type": "integer"}})),
            );
            match *name {
                "table" | "exact" | "rows" => tool
                    .with_raw_output_schema(Arc::new(schema(&json!({"rows": {"type": "array"}})))),
                _ => tool,
            }
        });
        let mut page = ListToolsResult::with_all_items(tools.collect());
        page.next_cursor = (from + PAGE < names.len()).then(|| (from + PAGE).to_string());
        Ok(page)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        (self.has_reader && name == "read_file")
            .then(|| Tool::new("read_file", "Reads.", schema(&json!({}))))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match request.name.as_ref() {
            "progress" => {
                let token = context
                    .meta
                    .get_progress_token()
                    .expect("a client asks for progress");
                let progress = ProgressNotificationParam::new(token, 0.5).with_message("half");
                context.peer.notify_progress(progress).await.unwrap();
            }
            "wait" => {
                context.ct.cancelled().await;
                self.was_cancelled.store(true, Ordering::SeqCst);
            }
            "changed" => context.peer.notify_tool_list_changed().await.unwrap(),
            name => {
                let found = result(name, &request.arguments.unwrap_or_default());
                return found
                    .map(Into::into)
                    .ok_or_else(|| ErrorData::invalid_params("no such tool", None));
            }
        }
        Ok(CallToolResult::success(vec![ContentBlock::text("done")]).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(vec![Prompt::new(
            "greet",
            Some("Greets."),
            None,
        )]))
    }

    async fn get_prompt(
        &self,
        _: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, log(500))]).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(vec![Resource::new(
            "docs://log",
            "log",
        )]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let text = match request.uri.as_str() {
            "state://cancelled" => self.was_cancelled.load(Ordering::SeqCst).to_string(),
            "docs://log" => log(500),
            _ => return Err(ErrorData::resource_not_found("no such resource", None)),
        };
        Ok(ReadResourceResult::new(vec![ResourceContents::text(text, request.uri)]).into())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Ok(CompleteResult::new(
            CompletionInfo::new(vec!["a".into(), "b".into()]).unwrap(),
        ))
    }
}
