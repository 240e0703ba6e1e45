//! An MCP server whose long results are kept out of the model's context.
//!
//! `cargo run -p offcut-rmcp --example reduced_server` starts the server as a child process and
//! shows a client's view of it. With `-- serve` it is the server alone, over stdio, as started from
//! an MCP client's configuration.
#![allow(clippy::print_stdout)]

use std::path::Path;

use offcut::ToolReduction;
use offcut::backend::Memory;
use offcut_rmcp::Reduced;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::{TokioChildProcess, stdio};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::json;

/// A server with one tool, which lists all files under the working directory.
struct Files;

impl ServerHandler for Files {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({"type": "object"})
            .as_object()
            .cloned()
            .unwrap_or_default();
        Ok(ListToolsResult::with_all_items(vec![Tool::new(
            "list_files",
            "Lists all files.",
            schema,
        )]))
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut found = String::new();
        Ok(match list(Path::new("."), &mut found) {
            Ok(()) => CallToolResult::success(vec![ContentBlock::text(found)]).into(),
            Err(error) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]).into(),
        })
    }
}

fn list(folder: &Path, found: &mut String) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let is_hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.is_dir() && !path.is_symlink() && !is_hidden && !path.ends_with("target") {
            list(&path, found)?;
        } else {
            found.push_str(&format!("{}\n", path.display()));
        }
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        // One process serves one client, so what it stores can go when it ends.
        let reduction = ToolReduction::recommended(Memory::new())
            .max_length_for_trunc(4_000)
            .build()?;
        Reduced::new(Files, reduction)
            .serve(stdio())
            .await?
            .waiting()
            .await?;
        return Ok(());
    }

    let mut server = tokio::process::Command::new(std::env::current_exe()?);
    server.arg("serve");
    let client = ().serve(TokioChildProcess::new(server)?).await?;
    for tool in client.list_all_tools().await? {
        println!(
            "tool {}: {}",
            tool.name,
            tool.description.unwrap_or_default()
        );
    }
    let result = client
        .call_tool(CallToolRequestParams::new("list_files"))
        .await?;
    let shown = result
        .content
        .first()
        .and_then(ContentBlock::as_text)
        .map_or("", |text| &text.text);
    println!("\nlist_files shows {} bytes:\n{shown}", shown.len());

    let hint =
        offcut::hint::Hint::parse(shown).ok_or("expected a hint: run this in a larger folder")?;
    let location = hint.location.ok_or("nothing was stored")?;
    let arguments = json!({"path": location.to_string(), "pattern": "Cargo\\.toml$"});
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    let found = client
        .call_tool(CallToolRequestParams::new("read_file").with_arguments(arguments))
        .await?;
    let found = found
        .content
        .first()
        .and_then(ContentBlock::as_text)
        .map_or("", |text| &text.text);
    println!("\nread_file finds in it:\n{found}");
    client.cancel().await?;
    Ok(())
}
