//! A real client and a real child process over stdio.
//!
//! The test is its own server, because the harness of `cargo test` would write to the standard
//! output that the protocol needs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod common;

use common::client::{Client, Watcher, call, is_listed, is_reduced, passes_through, tool_pages};
use common::reduction;
use common::server::Server;
use offcut_rmcp::Reduced;
use rmcp::ServiceExt;
use rmcp::model::{CallToolRequestParams, ReadResourceRequestParams};
use rmcp::transport::{TokioChildProcess, stdio};
use tokio::sync::mpsc;

#[tokio::main]
async fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("serve-bare") => drop(
            Server::default()
                .serve(stdio())
                .await
                .unwrap()
                .waiting()
                .await,
        ),
        Some("serve-reduced") => {
            let server = Reduced::new(Server::default(), reduction());
            drop(server.serve(stdio()).await.unwrap().waiting().await);
        }
        Some("--list") => {} // test runners pass it
        _ => {
            a_client_sees_the_server_reduced().await;
            a_cancelled_call_is_cancelled().await;
            println!("stdio: ok");
        }
    }
}

async fn connect(mode: &str) -> (Client, mpsc::UnboundedReceiver<String>) {
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    command.arg(mode);
    let (watcher, events) = Watcher::new();
    (
        watcher
            .serve(TokioChildProcess::new(command).unwrap())
            .await
            .unwrap(),
        events,
    )
}

async fn a_client_sees_the_server_reduced() {
    let (bare, mut bare_events) = connect("serve-bare").await;
    let (reduced, mut reduced_events) = connect("serve-reduced").await;
    is_listed(tool_pages(&bare).await, &tool_pages(&reduced).await);
    let untouched = passes_through(&bare, &mut bare_events).await;
    assert_eq!(
        untouched,
        passes_through(&reduced, &mut reduced_events).await
    );
    is_reduced(&reduced).await;
}

async fn a_cancelled_call_is_cancelled() {
    let (client, _events) = connect("serve-reduced").await;
    {
        let waiting = client.call_tool(CallToolRequestParams::new("wait"));
        let other = call(&client, "short", serde_json::json!({}));
        // By then the call that is dropped has been sent.
        tokio::select! {
            biased;
            _ = waiting => panic!("it waits until it is cancelled"),
            _ = other => {}
        }
    }
    loop {
        let state = client
            .read_resource(ReadResourceRequestParams::new("state://cancelled"))
            .await
            .unwrap();
        if serde_json::to_string(&state).unwrap().contains("\"true\"") {
            break;
        }
        tokio::task::yield_now().await;
    }
}
