//! A client's view of the server.

use std::collections::HashSet;

use offcut::hint::{Hint, Kind};
use rmcp::model::{
    ArgumentInfo, CallToolRequestParams, CallToolResult, CompleteRequestParams, ContentBlock,
    GetPromptRequestParams, PaginatedRequestParams, ProgressNotificationParam,
    ReadResourceRequestParams, Reference, ResourceContents,
};
use rmcp::service::{NotificationContext, RunningService, ServiceError};
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::LIMIT;
use super::server::{PNG, document, log, table};

pub(crate) type Client = RunningService<RoleClient, Watcher>;

/// Reports the server's notifications.
pub(crate) struct Watcher(mpsc::UnboundedSender<String>);

impl Watcher {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<String>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }
}

impl ClientHandler for Watcher {
    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.0.send(format!(
            "progress {:?} {:?}",
            progress.progress, progress.message
        ));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        let _ = self.0.send("tools changed".into());
    }
}

pub(crate) async fn call(client: &Client, name: &'static str, arguments: Value) -> CallToolResult {
    try_call(client, name, arguments).await.unwrap()
}

pub(crate) async fn try_call(
    client: &Client,
    name: &'static str,
    arguments: Value,
) -> Result<CallToolResult, ServiceError> {
    let arguments = arguments.as_object().unwrap().clone();
    client
        .call_tool(CallToolRequestParams::new(name).with_arguments(arguments))
        .await
}

pub(crate) fn text(result: &CallToolResult, block: usize) -> &str {
    match &result.content[block] {
        ContentBlock::Text(text) => &text.text,
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { text, .. } => text,
            other => panic!("no text: {other:?}"),
        },
        other => panic!("no text: {other:?}"),
    }
}

pub(crate) fn hint(result: &CallToolResult, block: usize) -> Hint {
    let hint = Hint::parse(text(result, block)).expect("a hint");
    assert_eq!(hint.kind, Kind::Truncated);
    hint
}

fn size(result: &CallToolResult) -> usize {
    serde_json::to_string(result).unwrap().len()
}

/// Reads page after page, as a model would.
pub(crate) async fn read_back(client: &Client, hint: &Hint) -> String {
    let location = hint.location.as_ref().expect("it is stored").to_string();
    let (mut all, mut offset, mut seen) = (String::new(), "1".to_owned(), HashSet::new());
    loop {
        assert!(
            seen.insert(offset.clone()),
            "offset {offset} leads to itself"
        );
        let page = call(
            client,
            "read_file",
            json!({"path": location, "offset": offset}),
        )
        .await;
        assert_eq!(
            (page.is_error, page.structured_content.as_ref()),
            (Some(false), None)
        );
        assert!(
            text(&page, 0).len() <= LIMIT,
            "a page of {} bytes",
            text(&page, 0).len()
        );
        let page = Hint::parse(text(&page, 0)).expect("a page is a hint");
        all.push_str(&page.preview);
        match page.prose.split_once("offset ") {
            Some((_, next)) => offset = next.trim_end_matches('.').to_owned(),
            None => return all,
        }
    }
}

/// The pages of the tool list.
pub(crate) async fn tool_pages(client: &Client) -> Vec<Value> {
    let (mut pages, mut cursor) = (Vec::new(), None);
    loop {
        let request = PaginatedRequestParams::default().with_cursor(cursor.take());
        let page = client.list_tools(Some(request)).await.unwrap();
        pages.push(serde_json::to_value(&page).unwrap());
        cursor = page.next_cursor;
        if cursor.is_none() {
            return pages;
        }
    }
}

fn said(answer: Result<impl serde::Serialize, ServiceError>) -> Value {
    answer.map_or_else(
        |error| json!(error.to_string()),
        |answer| serde_json::to_value(answer).unwrap(),
    )
}

/// Collects everything that must be the same with and without a reduction.
pub(crate) async fn passes_through(
    client: &Client,
    events: &mut mpsc::UnboundedReceiver<String>,
) -> Vec<Value> {
    let mut all = vec![
        json!(client.peer_info()),
        said(client.list_prompts(None).await),
        said(
            client
                .get_prompt(GetPromptRequestParams::new("greet"))
                .await,
        ),
        said(client.list_resources(None).await),
        said(client.list_resource_templates(None).await),
        said(
            client
                .read_resource(ReadResourceRequestParams::new("docs://log"))
                .await,
        ),
        said(
            client
                .read_resource(ReadResourceRequestParams::new("docs://nothing"))
                .await,
        ),
        said(
            client
                .complete(CompleteRequestParams::new(
                    Reference::for_prompt("greet"),
                    ArgumentInfo::new("who", ""),
                ))
                .await,
        ),
        said(try_call(client, "short", json!({})).await),
        said(try_call(client, "log", json!({"lines": 10})).await),
        said(try_call(client, "exact", json!({})).await),
        said(try_call(client, "nothing", json!({})).await),
    ];
    for notifying in ["progress", "changed"] {
        all.push(said(try_call(client, notifying, json!({})).await));
        all.push(json!(events.recv().await));
    }
    all
}

/// Checks that a table is shortened by rows, and returns the hint that it carries.
fn is_shortened(shown: &CallToolResult) -> Hint {
    let shown = shown
        .structured_content
        .as_ref()
        .expect("it keeps its shape");
    let (rows, all) = (shown["rows"].as_array().unwrap(), table());
    assert!(
        rows.len() < 200
            && rows
                .iter()
                .zip(all["rows"].as_array().unwrap())
                .all(|(row, own)| row == own)
    );
    Hint::parse(shown["offcut"].as_str().expect("the schema allows a field")).expect("a hint")
}

/// Checks every effect of a reduction.
pub(crate) async fn is_reduced(client: &Client) {
    let shown = call(client, "log", json!({})).await;
    let hint_of_log = hint(&shown, 0);
    assert!(text(&shown, 0).len() <= LIMIT && text(&shown, 0).starts_with("[offcut/1 truncated "));
    assert_eq!(shown.is_error, Some(false));
    assert_eq!(json!(shown.meta), json!({"example.org/trace": "t-1"}));
    assert_eq!(read_back(client, &hint_of_log).await, log(500));

    let found = call(
        client,
        "read_file",
        json!({"path": hint_of_log.location.unwrap().to_string(), "pattern": "^0?0499"}),
    )
    .await;
    assert!(
        text(&found, 0).contains("00499 größte Zeile"),
        "{}",
        text(&found, 0)
    );

    // Equal content in two forms: stored once, and the structured form is shortened in its shape.
    let shown = call(client, "table", json!({})).await;
    assert_eq!(shown.content.len(), 1);
    let carrier = is_shortened(&shown);
    assert_eq!(carrier.location, hint(&shown, 0).location);
    assert_eq!(
        read_back(client, &hint(&shown, 0)).await,
        table().to_string()
    );
    assert!(size(&shown) < 2 * LIMIT);

    // Different content: each is handled separately.
    let shown = call(client, "rows", json!({})).await;
    assert_eq!(
        (text(&shown, 0), shown.content.len()),
        (r#"{"count":200}"#, 1)
    );
    let carrier = is_shortened(&shown);
    let back: Value = serde_json::from_str(&read_back(client, &carrier).await).unwrap();
    assert_eq!(back, table());

    // Structured content that equals an unchanged text stays.
    let shown = call(client, "both", json!({})).await;
    assert_eq!(
        (text(&shown, 1), &shown.structured_content),
        (r#"{"ok":true}"#, &Some(json!({"ok": true})))
    );
    assert_eq!(read_back(client, &hint(&shown, 0)).await, log(500));

    let shown = call(client, "document", json!({})).await;
    let blocks = json!(shown.content);
    assert_eq!(
        blocks[0],
        json!({"type": "image", "data": PNG, "mimeType": "image/png"})
    );
    assert_eq!(blocks[1]["resource"]["uri"], "docs://manual");
    assert_eq!(blocks[1]["resource"]["mimeType"], "text/plain");
    assert_eq!(
        blocks[1]["resource"]["_meta"],
        json!({"example.org/trace": "t-1"})
    );
    assert_eq!(
        blocks[2],
        json!({"type": "resource", "resource": {"uri": "docs://cover", "blob": "AAAA"}})
    );
    assert_eq!(
        blocks[3],
        json!({"type": "resource_link", "uri": "docs://index", "name": "index"})
    );
    assert_eq!(blocks[4], json!({"type": "text", "text": "the end"}));
    assert_eq!(read_back(client, &hint(&shown, 1)).await, document());

    // Too many to store separately: they are stored as one, and the resources stay as links.
    let shown = call(client, "many", json!({})).await;
    let stored = read_back(client, &hint(&shown, 0)).await;
    assert_eq!(stored.matches(&log(3)).count(), 60);
    let links: Vec<String> = (0..60).map(|page| format!("docs://page/{page}")).collect();
    let linked: Vec<&str> = shown.content[1..]
        .iter()
        .map(|block| &*block.as_resource_link().unwrap().uri)
        .collect();
    assert_eq!(linked, links);

    let shown = call(client, "fails", json!({})).await;
    assert_eq!(shown.is_error, Some(true));
    assert_eq!(json!(shown.meta), json!({"example.org/trace": "t-1"}));
    assert_eq!(read_back(client, &hint(&shown, 0)).await, log(500));

    let refused = call(client, "read_file", json!({"path": "/etc/passwd"})).await;
    assert_eq!(refused.is_error, Some(true));
}

/// Checks that the tool list differs from the server's only in the reader after its last page.
pub(crate) fn is_listed(mut bare: Vec<Value>, reduced: &[Value]) {
    assert_eq!(bare.len(), 3, "the list has pages");
    let reader = &reduced.last().unwrap()["tools"]
        .as_array()
        .unwrap()
        .last()
        .unwrap();
    assert_eq!(reader["name"], "read_file");
    assert_eq!(reader["annotations"]["readOnlyHint"], true);
    assert!(reader["inputSchema"]["properties"]["pattern"].is_object());
    bare.last_mut().unwrap()["tools"]
        .as_array_mut()
        .unwrap()
        .push((*reader).clone());
    assert_eq!(bare, reduced);
}
