//! MCP over HTTP: whatever a client or a server writes to its connection, the other one gets an answer of
//! HTTP, and the endpoint goes on.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use offcut::ToolReduction;
use offcut::backend::Memory;
use offcut_mcp::{Conversation, McpEndpoint, McpGateway, Remote, run};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::timeout;

/// A request that any server answers.
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"log"}}"#;
/// Time for the bytes that follow the head of an answer; a stream may stay open.
const REST: Duration = Duration::from_millis(20);
/// Time for the head of an answer.
const HEAD: Duration = Duration::from_secs(600);
/// A server that has more connections than this has no answer yet: each of its streams ended with an event to go on
/// after, and the client waits.
const POLLS: usize = 12;

/// The first byte says who writes the rest: a client to an endpoint in front of a server over pipes, or a
/// server over HTTP in answer to a client's call.
pub(crate) fn mcp_http(data: &[u8]) {
    let Some((side, bytes)) = data.split_first() else {
        return;
    };
    outlive_closed_connections();
    // Time passes as soon as nothing else can happen, so that nothing waits and every run is the same.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build();
    runtime.unwrap().block_on(async {
        if *side == b'<' {
            answered(bytes.to_vec()).await;
        } else {
            asked(bytes).await;
        }
    });
}

/// Takes the signal by which writing to a closed connection ends a process. Programs of Rust ignore it from
/// their start, which programs of libFuzzer do not.
fn outlive_closed_connections() {
    #[cfg(unix)]
    {
        static TAKEN: std::sync::Once = std::sync::Once::new();
        TAKEN.call_once(|| {
            signal_hook::flag::register(signal_hook::consts::SIGPIPE, Arc::default()).unwrap();
        });
    }
}

fn gateway() -> Arc<McpGateway> {
    static REDUCTION: OnceLock<ToolReduction> = OnceLock::new();
    let new = || ToolReduction::recommended(Memory::new()).build().unwrap();
    let reduction = REDUCTION.get_or_init(new).clone();
    Arc::new(McpGateway::new(reduction).max_message(10_000))
}

/// Sends a request, and returns what comes back.
async fn exchange(address: SocketAddr, request: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    read(stream).await
}

/// Reads until nothing more comes.
async fn read(mut stream: TcpStream) -> Vec<u8> {
    let (mut answer, mut time) = (Vec::new(), HEAD);
    while let Ok(Ok(1..)) = timeout(time, stream.read_buf(&mut answer)).await {
        time = REST;
    }
    answer
}

fn post(host: SocketAddr, message: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nhost: {host}\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{message}",
        message.len()
    )
}

/// A port of the endpoint or of the server, the same for all inputs: looking for a free one takes ever longer while ports
/// of earlier inputs are not free yet.
fn port(of: &'static OnceLock<std::net::TcpListener>) -> TcpListener {
    let bind = || {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        listener
    };
    TcpListener::from_std(of.get_or_init(bind).try_clone().unwrap()).unwrap()
}

fn listen(endpoint: McpEndpoint) -> SocketAddr {
    static PORT: OnceLock<std::net::TcpListener> = OnceLock::new();
    let listener = port(&PORT);
    let address = listener.local_addr().unwrap();
    tokio::spawn(endpoint.serve(listener, std::future::pending()));
    address
}

/// Lets a client write these bytes.
async fn asked(bytes: &[u8]) {
    let endpoint = McpEndpoint::hosting(gateway(), serve);
    let address = listen(endpoint.allow_host("h"));
    let mut stream = TcpStream::connect(address).await.unwrap();
    // An endpoint that has had enough may have closed the connection.
    _ = stream.write_all(bytes).await;
    let answer = if bytes.len().is_multiple_of(2) {
        _ = timeout(REST, stream.readable()).await;
        _ = stream.shutdown().await;
        read(stream).await
    } else {
        // The client goes without waiting. While it sends a long message, others wait for its end.
        drop(stream);
        Vec::new()
    };
    assert!(
        answer.is_empty() || answer.starts_with(b"HTTP/1."),
        "it is not an answer: {}",
        String::from_utf8_lossy(&answer)
    );
    // Others are served as if nothing had been.
    let opening = r#"{"jsonrpc":"2.0","id":"p","method":"initialize","params":{}}"#;
    let answer = exchange(address, &post(address, opening)).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(
        answer.contains(r#""id":"p""#) && answer.contains("200 OK"),
        "{answer}"
    );
}

/// Runs a server over pipes that answers each request.
async fn serve(conversation: Conversation, client: (DuplexStream, DuplexStream)) {
    let (to_server, server_in) = duplex(4096);
    let (mut server_out, from_server) = duplex(4096);
    let server = async move {
        let mut lines = BufReader::new(server_in).split(b'\n');
        while let Ok(Some(line)) = lines.next_segment().await {
            // A message that was not read may be anything.
            let Ok(message) = serde_json::from_slice::<Value>(&line) else {
                continue;
            };
            if let (Some(id), Some(_)) = (message.get("id"), message.get("method")) {
                let answer = json!({"jsonrpc": "2.0", "id": id, "result": {}});
                if server_out
                    .write_all(format!("{answer}\n").as_bytes())
                    .await
                    .is_err()
                {
                    return;
                }
            }
        }
    };
    _ = tokio::join!(run(&conversation, client, (from_server, to_server)), server);
}

/// Lets a server write these bytes in answer to a call.
async fn answered(bytes: Vec<u8>) {
    static PORT: OnceLock<std::net::TcpListener> = OnceLock::new();
    let listener = port(&PORT);
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let is_polled = Arc::new(Notify::new());
    let polled = is_polled.clone();
    tokio::spawn(async move {
        let mut connections = 0;
        while let Ok((mut stream, _)) = listener.accept().await {
            connections += 1;
            if connections > POLLS {
                polled.notify_one();
                return;
            }
            let bytes = bytes.clone();
            tokio::spawn(async move {
                let mut request = vec![0; 4096];
                _ = stream.read(&mut request).await;
                _ = stream.write_all(&bytes).await;
                _ = stream.shutdown().await;
            });
        }
    });
    let remote = Remote::new(&url).unwrap();
    let address = listen(McpEndpoint::before(gateway(), remote));
    let call = post(address, CALL);
    tokio::select! {
        biased;
        () = is_polled.notified() => {}
        answer = exchange(address, &call) => assert!(
            answer.starts_with(b"HTTP/1.1 "),
            "the client got no answer: {}",
            String::from_utf8_lossy(&answer)
        ),
    }
}
