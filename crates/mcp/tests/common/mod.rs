//! A client's end and a server's end, with a gateway between them.
// Each test uses only a part of this module.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::sync::{Arc, Mutex};

use offcut::backend::Memory;
use offcut::hint::Hint;
use offcut::{ToolPolicy, ToolReduction};
use offcut_mcp::{McpGateway, run};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::task::JoinHandle;

/// The limit, in bytes.
pub(crate) const LIMIT: usize = 2_000;
/// Number of bytes that a pipe holds.
const PIPE: usize = 4096;

pub(crate) fn reduction() -> ToolReduction {
    ToolReduction::builder()
        .backend(Memory::named("t").unwrap())
        .max_length_for_trunc(LIMIT)
        .preview_length(500)
        .tool("exact", ToolPolicy::new().skip_truncation(true))
        .build()
        .unwrap()
}

pub(crate) fn gateway(reduction: ToolReduction) -> Arc<McpGateway> {
    Arc::new(McpGateway::new(reduction))
}

/// The gateway, and the lines that it logs.
pub(crate) fn logged(gateway: McpGateway) -> (Arc<McpGateway>, Arc<Mutex<Vec<String>>>) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let to = lines.clone();
    let gateway = gateway.log(move |line| to.lock().unwrap().push(line.to_owned()));
    (Arc::new(gateway), lines)
}

/// A text over the limit.
pub(crate) fn log() -> String {
    (0..500)
        .map(|line| format!("{line:05} naïve \"行\"\n"))
        .collect()
}

/// The first hint in any string of `value`.
pub(crate) fn hint_in(value: &Value) -> Option<Hint> {
    match value {
        Value::String(text) => Hint::parse(text),
        Value::Array(items) => items.iter().find_map(hint_in),
        Value::Object(fields) => fields.values().find_map(hint_in),
        _ => None,
    }
}

/// Both ends of a running gateway.
pub(crate) struct Ends {
    to_server: Option<DuplexStream>,
    at_client: BufReader<DuplexStream>,
    to_client: Option<DuplexStream>,
    at_server: BufReader<DuplexStream>,
    running: JoinHandle<std::io::Result<()>>,
}

impl Ends {
    pub(crate) fn around(gateway: Arc<McpGateway>) -> Self {
        let (to_server, client_in) = duplex(PIPE);
        let (client_out, at_client) = duplex(PIPE);
        let (to_client, server_out) = duplex(PIPE);
        let (server_in, at_server) = duplex(PIPE);
        let running = tokio::spawn(async move {
            let conversation = gateway.conversation();
            run(
                &conversation,
                (client_in, client_out),
                (server_out, server_in),
            )
            .await
        });
        Self {
            to_server: Some(to_server),
            at_client: BufReader::new(at_client),
            to_client: Some(to_client),
            at_server: BufReader::new(at_server),
            running,
        }
    }

    /// The client sends a message.
    pub(crate) async fn send(&mut self, message: &Value) {
        write(self.to_server.as_mut(), &message.to_string()).await;
    }

    /// The server sends a message.
    pub(crate) async fn say(&mut self, message: &Value) {
        self.say_line(&message.to_string()).await;
    }

    pub(crate) async fn say_line(&mut self, message: &str) {
        write(self.to_client.as_mut(), message).await;
    }

    /// The next message that the server gets.
    pub(crate) async fn seen(&mut self) -> Value {
        serde_json::from_str(&line(&mut self.at_server).await).unwrap()
    }

    /// The next message that the client gets.
    pub(crate) async fn received(&mut self) -> Value {
        serde_json::from_str(&line(&mut self.at_client).await).unwrap()
    }

    /// The client sends a message, and the server gets it as it is.
    pub(crate) async fn ask(&mut self, message: &Value) {
        self.ask_line(&message.to_string()).await;
    }

    pub(crate) async fn ask_line(&mut self, text: &str) {
        let (_, seen) = tokio::join!(
            write(self.to_server.as_mut(), text),
            line(&mut self.at_server)
        );
        assert_eq!(seen, text);
    }

    /// The client sends a message. Returns the gateway's own answer.
    pub(crate) async fn answered_here(&mut self, message: &str) -> String {
        write(self.to_server.as_mut(), message).await;
        line(&mut self.at_client).await
    }

    /// The server sends a message. Returns what the client gets.
    pub(crate) async fn reply(&mut self, message: &Value) -> Value {
        serde_json::from_str(&self.reply_line(&message.to_string()).await).unwrap()
    }

    pub(crate) async fn reply_line(&mut self, message: &str) -> String {
        tokio::join!(
            write(self.to_client.as_mut(), message),
            line(&mut self.at_client)
        )
        .1
    }

    /// The client sends no more.
    pub(crate) fn client_closes(&mut self) {
        self.to_server = None;
    }

    /// Returns true if the server's stdin has not ended.
    pub(crate) async fn is_server_open(&mut self) -> bool {
        let read = self.at_server.fill_buf();
        let soon = std::time::Duration::from_secs(1);
        tokio::time::timeout(soon, read).await.is_err()
    }

    pub(crate) async fn client_leaves(&mut self) {
        self.client_closes();
        let mut rest = String::new();
        self.at_server.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "");
    }

    pub(crate) async fn server_ends(mut self) -> std::io::Result<()> {
        self.to_client = None;
        self.running.await.unwrap()
    }
}

async fn write(to: Option<&mut DuplexStream>, text: &str) {
    let to = to.expect("it is open");
    to.write_all(text.as_bytes()).await.unwrap();
    to.write_all(b"\n").await.unwrap();
}

async fn line(from: &mut BufReader<DuplexStream>) -> String {
    let mut line = String::new();
    from.read_line(&mut line).await.unwrap();
    assert_eq!(line.pop(), Some('\n'), "the stream has ended");
    line
}

/// Sends all bytes of both sides at once, and returns what the server and the client get.
pub(crate) async fn exchange(
    gateway: Arc<McpGateway>,
    up: &[u8],
    down: &[u8],
) -> (Vec<u8>, Vec<u8>) {
    let (mut to_server, client_in) = duplex(PIPE);
    let (client_out, mut at_client) = duplex(PIPE);
    let (mut to_client, server_out) = duplex(PIPE);
    let (server_in, mut at_server) = duplex(PIPE);
    let conversation = gateway.conversation();
    let running = run(
        &conversation,
        (client_in, client_out),
        (server_out, server_in),
    );
    let (mut seen, mut received) = (Vec::new(), Vec::new());
    let (done, (), (), ()) = tokio::join!(
        running,
        async {
            to_server.write_all(up).await.unwrap();
            drop(to_server);
        },
        async {
            to_client.write_all(down).await.unwrap();
            // A server ends after its client.
            at_server.read_to_end(&mut seen).await.unwrap();
            drop(to_client);
        },
        async {
            at_client.read_to_end(&mut received).await.unwrap();
        },
    );
    done.unwrap();
    (seen, received)
}
