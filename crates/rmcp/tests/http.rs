//! A real client over streamable HTTP on loopback.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::client::{
    Client, Watcher, call, hint, is_listed, is_reduced, passes_through, read_back, tool_pages,
    try_call,
};
use common::reduction;
use common::server::{Server, log};
use offcut_rmcp::Reduced;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientLifecycleMode, ClientServiceExt};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, ServiceExt};
use serde_json::json;
use tokio::sync::mpsc;

/// Serves the service that `service` creates for each session, and returns the URL.
async fn serve<S: ServerHandler>(service: impl Fn() -> S + Send + Sync + 'static) -> String {
    let config = StreamableHttpServerConfig::default();
    let http = StreamableHttpService::new(
        move || Ok(service()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move {
        axum::serve(listener, axum::Router::new().nest_service("/mcp", http)).await
    });
    url
}

async fn connect(url: &str) -> (Client, mpsc::UnboundedReceiver<String>) {
    let (watcher, events) = Watcher::new();
    (
        watcher
            .serve(StreamableHttpClientTransport::from_uri(url))
            .await
            .unwrap(),
        events,
    )
}

/// Connects a client without a session: each of its requests stands alone.
async fn connect_as(url: &str, token: &str) -> Client {
    let config = StreamableHttpClientTransportConfig::with_uri(url).auth_header(token);
    let lifecycle = ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    };
    let (watcher, _) = Watcher::new();
    watcher
        .serve_with_lifecycle(
            StreamableHttpClientTransport::from_config(config),
            lifecycle,
        )
        .await
        .unwrap()
}

#[tokio::test]
async fn a_client_sees_the_server_reduced() {
    let (bare, mut bare_events) = connect(&serve(Server::default).await).await;
    let reduction = reduction();
    let url = serve(move || Reduced::new(Server::default(), reduction.clone())).await;
    let (reduced, mut reduced_events) = connect(&url).await;
    is_listed(tool_pages(&bare).await, &tool_pages(&reduced).await);
    let untouched = passes_through(&bare, &mut bare_events).await;
    assert_eq!(
        untouched,
        passes_through(&reduced, &mut reduced_events).await
    );
    is_reduced(&reduced).await;
}

#[tokio::test]
async fn each_session_reads_its_own_results_alone() {
    let (reduction, sessions) = (reduction(), AtomicUsize::new(0));
    let url = serve(move || {
        let id = format!("client-{}", sessions.fetch_add(1, Ordering::Relaxed));
        Reduced::new(Server::default(), reduction.session(&id))
    })
    .await;
    let ((one, _), (other, _)) = (connect(&url).await, connect(&url).await);
    let seen = hint(&call(&one, "log", json!({})).await, 0);
    assert_eq!(read_back(&one, &seen).await, log(500));
    let path = seen.location.unwrap().to_string();
    assert!(path.contains("client-"), "{path}");
    assert_eq!(
        call(&other, "read_file", json!({"path": path}))
            .await
            .is_error,
        Some(true)
    );
}

#[tokio::test]
async fn without_sessions_the_user_decides() {
    let reduction = reduction();
    let url = serve(move || {
        Reduced::new(Server::default(), reduction.clone()).session_by(|request| {
            let head = request.extensions.get::<axum::http::request::Parts>()?;
            Some(head.headers.get("authorization")?.to_str().ok()?.to_owned())
        })
    })
    .await;
    let (one, other) = (
        connect_as(&url, "one").await,
        connect_as(&url, "other").await,
    );
    let (once, again) = (
        call(&one, "log", json!({})).await,
        call(&other, "log", json!({"lines": 400})).await,
    );
    assert_eq!(
        serde_json::to_value(&once).unwrap()["resultType"],
        "complete"
    );
    assert_eq!(read_back(&one, &hint(&once, 0)).await, log(500));
    assert_eq!(read_back(&other, &hint(&again, 0)).await, log(400));
    let path = hint(&once, 0).location.unwrap().to_string();
    for (client, is_error) in [(&one, false), (&other, true)] {
        let read = call(client, "read_file", json!({"path": path})).await;
        assert_eq!(read.is_error, Some(is_error));
        assert_eq!(
            serde_json::to_value(&read).unwrap()["resultType"],
            "complete"
        );
    }
}

#[tokio::test]
async fn a_tool_by_the_readers_name_is_an_error_that_says_what_to_do() {
    let server = || Server {
        has_reader: true,
        ..Server::default()
    };
    let whole = reduction();
    let (clashing, _events) =
        connect(&serve(move || Reduced::new(server(), whole.clone())).await).await;
    let error = clashing.list_tools(None).await.unwrap_err().to_string();
    assert!(
        error.contains("`read_file` of its own") && error.contains("`read_file_tool_name`"),
        "{error}"
    );
    let error = try_call(&clashing, "read_file", json!({}))
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("`read_file` of its own"), "{error}");

    let renamed = offcut::ToolReduction::recommended(offcut::backend::Memory::new())
        .read_file_tool_name("read_stored")
        .build()
        .unwrap();
    let (fine, _events) =
        connect(&serve(move || Reduced::new(server(), renamed.clone())).await).await;
    let names = fine
        .list_all_tools()
        .await
        .unwrap()
        .into_iter()
        .map(|tool| tool.name.into_owned());
    let names: Vec<String> = names.collect();
    assert!(
        names.first().is_some_and(|name| name == "read_file")
            && names.ends_with(&["read_stored".to_owned()])
    );
    assert!(
        serde_json::to_string(&call(&fine, "read_file", json!({})).await)
            .unwrap()
            .contains("of the server's")
    );
    let shown = try_call(&fine, "log", json!({})).await.unwrap();
    assert!(hint(&shown, 0).prose.contains("read_stored"));

    // If hints name no reader, none is listed.
    let silent = offcut::ToolReduction::recommended(offcut::backend::Memory::new())
        .read_file_tool_name(None)
        .build()
        .unwrap();
    let (bare, _events) =
        connect(&serve(move || Reduced::new(server(), silent.clone())).await).await;
    assert_eq!(bare.list_all_tools().await.unwrap().len(), 13);
    assert!(
        serde_json::to_string(&call(&bare, "read_file", json!({})).await)
            .unwrap()
            .contains("of the server's")
    );
}

#[tokio::test]
async fn t8_a_failing_store_leaves_results_unchanged() {
    let broken = |on_error| {
        let store = offcut_testkit::Faulty::new(offcut::backend::Memory::new());
        store.fault_on_every_write(offcut_testkit::Fault::Fail(
            offcut::backend::ErrorKind::Unavailable,
        ));
        offcut::ToolReduction::recommended(store)
            .on_offload_error(on_error)
            .build()
            .unwrap()
    };
    let keeps = broken(offcut::OnOffloadError::KeepOriginal);
    let (client, _events) =
        connect(&serve(move || Reduced::new(Server::default(), keeps.clone())).await).await;
    let (bare, _events) = connect(&serve(Server::default).await).await;
    for tool in ["log", "table", "rows", "document", "many", "fails"] {
        assert_eq!(
            call(&client, tool, json!({})).await,
            call(&bare, tool, json!({})).await,
            "{tool}"
        );
    }
    let fails = broken(offcut::OnOffloadError::Fail);
    let (client, _events) =
        connect(&serve(move || Reduced::new(Server::default(), fails.clone())).await).await;
    assert!(
        try_call(&client, "log", json!({}))
            .await
            .unwrap_err()
            .to_string()
            .contains("store")
    );
}
