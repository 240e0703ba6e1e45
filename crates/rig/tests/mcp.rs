//! Tools of an MCP server go through the hook like any other tool.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::model::{ModelServer, Reply};
use offcut::ToolReduction;
use offcut::backend::Memory;
use offcut::hint::Hint;
use offcut_rig::Reduction;
use rig::agent::AgentBuilder;
use rig::message::{Message, ToolResultContent, UserContent};
use rig::tool::DynamicTool;
use rig_rmcp::rmcp::model::{
    CallToolRequestParams, CallToolResult, ContentBlock, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerInfo, Tool,
};
use rig_rmcp::rmcp::service::RequestContext;
use rig_rmcp::rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use rig_rmcp::tools_from_server;
use serde_json::json;

const PNG: &str = "iVBORw0KGgo=";

fn log() -> String {
    (0..500).map(|line| format!("{line} naïve 行\n")).collect()
}

struct Server;

impl ServerHandler for Server {
    fn get_info(&self) -> ServerInfo {
        ServerInfo::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({"type": "object", "properties": {}})
            .as_object()
            .unwrap()
            .clone();
        Ok(ListToolsResult::with_all_items(vec![Tool::new(
            "screen",
            "Shows the screen and its log.",
            schema,
        )]))
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        Ok(CallToolResult::success(vec![
            ContentBlock::image(PNG, "image/png"),
            ContentBlock::text(log()),
        ]))
    }
}

#[tokio::test]
async fn results_of_mcp_tools_are_bounded_and_images_stay() {
    let (here, there) = tokio::io::duplex(1 << 20);
    tokio::spawn(async move { Server.serve(there).await.unwrap().waiting().await });
    let client = ().serve(here).await.unwrap();
    let listed = client.list_all_tools().await.unwrap();
    let tools = tools_from_server(listed, client.peer());
    let tools: Vec<DynamicTool> = tools
        .into_iter()
        .map(|tool| tool.try_into().unwrap())
        .collect();

    let server = ModelServer::start(|messages| match messages.len() {
        1 => Reply::Calls(vec![("call_1".into(), "screen", json!({}))]),
        _ => Reply::Answer("Done."),
    })
    .await;
    let reduction = ToolReduction::recommended(Memory::named("t").unwrap())
        .max_length_for_trunc(4_000)
        .build()
        .unwrap();
    let hook = Reduction::new(reduction.clone());
    let agent = AgentBuilder::new(server.model())
        .dynamic_tools(tools)
        .dynamic_tool(hook.reader().unwrap())
        .add_hook(hook)
        .build();
    // Checked in the transcript, not in the requests, since chat completions can't carry images in
    // results.
    let history = agent.prompt("Go.").max_turns(2).await.unwrap().messages;
    let Message::User { content } = &history[2] else {
        panic!("results")
    };
    let [UserContent::ToolResult(result)] = &content[..] else {
        panic!("one result")
    };
    let [
        ToolResultContent::Image(image),
        ToolResultContent::Text(text),
    ] = &result.content[..]
    else {
        panic!("an image and a text: {:?}", result.content)
    };
    assert_eq!(image.data, rig::message::DocumentSourceKind::base64(PNG));
    let hint = Hint::parse(&text.text).expect("the text was over the limit");
    assert_eq!(
        hint.location.as_ref().unwrap().as_str(),
        "memory://t/trunc/call_1"
    );
    assert_eq!(
        reduction
            .read_original(&hint.location.unwrap())
            .await
            .unwrap()
            .unwrap(),
        log()
    );
}
