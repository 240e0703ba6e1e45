//! A provider and a client on loopback that see every byte.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    dead_code,
    unreachable_pub,
    reason = "a test that can't be set up has failed, and no test uses all of it"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use offcut::Settings;
use offcut::backend::Backend;
use offcut_cli::gateway::{Gateway, ServeSettings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

/// A request as a provider received it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    pub line: String,
    /// The headers, in their own spelling, sorted.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut named = self
            .headers
            .iter()
            .filter(|(own, _)| own.eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        str::from_utf8(&self.body).unwrap()
    }
}

/// A step of a provider's answer.
#[derive(Clone)]
pub(crate) enum Step {
    Send(Vec<u8>),
    Wait(Arc<Notify>),
    /// Ends the connection, whatever is missing.
    Close,
}

/// Sends text.
pub(crate) fn send(text: impl Into<String>) -> Step {
    Step::Send(text.into().into_bytes())
}

/// A whole answer.
pub(crate) fn reply(status: &str, kind: &str, body: &str) -> Vec<Step> {
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    vec![send(text)]
}

/// A whole answer in JSON.
pub(crate) fn ok(body: &str) -> Vec<Step> {
    reply("200 OK", "application/json", body)
}

type Answer = Arc<dyn Fn(&Seen) -> Vec<Step> + Send + Sync>;

/// A provider on loopback.
pub(crate) struct Provider {
    pub url: String,
    pub seen: Arc<Mutex<Vec<Seen>>>,
    /// Is notified when a connection ends before its answer.
    pub gone: Arc<Notify>,
}

impl Provider {
    pub(crate) async fn start(answer: impl Fn(&Seen) -> Vec<Step> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (seen, gone) = (Arc::<Mutex<Vec<Seen>>>::default(), Arc::new(Notify::new()));
        let answer: Answer = Arc::new(answer);
        let (log, noted) = (seen.clone(), gone.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, answer.clone(), log.clone(), noted.clone()));
            }
        });
        Self { url, seen, gone }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn last(&self) -> Seen {
        self.seen().pop().expect("a request")
    }
}

async fn serve(
    mut stream: TcpStream,
    answer: Answer,
    log: Arc<Mutex<Vec<Seen>>>,
    gone: Arc<Notify>,
) {
    let mut buffer = Vec::new();
    while let Some(seen) = read_message(&mut stream, &mut buffer).await {
        log.lock().unwrap().push(seen.clone());
        for step in answer(&seen) {
            match step {
                Step::Send(bytes) => {
                    if stream.write_all(&bytes).await.is_err() {
                        return gone.notify_one();
                    }
                }
                Step::Wait(go) => {
                    let mut byte = [0];
                    tokio::select! {
                        () = go.notified() => {}
                        _ = stream.read(&mut byte) => return gone.notify_one(),
                    }
                }
                Step::Close => return,
            }
        }
    }
}

/// Reads a message with its body; `None` at the end of the connection.
pub(crate) async fn read_message(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Seen> {
    let end = loop {
        if let Some(at) = find(buffer, b"\r\n\r\n") {
            break at;
        }
        fill(stream, buffer).await?;
    };
    let head = String::from_utf8(buffer[..end].to_vec()).unwrap();
    buffer.drain(..end + 4);
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap().to_owned();
    let header = |line: &str| {
        let (name, value) = line.split_once(':').unwrap();
        (name.to_owned(), value.trim().to_owned())
    };
    let mut headers: Vec<_> = lines.map(header).collect();
    headers.sort();
    let mut seen = Seen {
        line,
        headers,
        body: Vec::new(),
    };
    if let Some(length) = seen.header("content-length") {
        let length: usize = length.parse().unwrap();
        while buffer.len() < length {
            fill(stream, buffer).await?;
        }
        seen.body = buffer.drain(..length).collect();
    } else if seen.header("transfer-encoding").is_some() {
        loop {
            let at = loop {
                if let Some(at) = find(buffer, b"\r\n") {
                    break at;
                }
                fill(stream, buffer).await?;
            };
            let size = str::from_utf8(&buffer[..at]).unwrap();
            let size = usize::from_str_radix(size.trim(), 16).unwrap();
            while buffer.len() < at + 2 + size + 2 {
                fill(stream, buffer).await?;
            }
            seen.body.extend_from_slice(&buffer[at + 2..at + 2 + size]);
            buffer.drain(..at + 2 + size + 2);
            if size == 0 {
                break;
            }
        }
    }
    Some(seen)
}

async fn fill(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    let mut piece = vec![0; 65_536];
    let read = stream
        .read(&mut piece)
        .await
        .ok()
        .filter(|read| *read > 0)?;
    buffer.extend_from_slice(&piece[..read]);
    Some(())
}

pub(crate) fn find(bytes: &[u8], word: &[u8]) -> Option<usize> {
    bytes.windows(word.len()).position(|window| window == word)
}

/// Asserts that no file below `folder` has `word` in its path or in its content.
pub(crate) fn assert_nothing_holds(folder: &Path, word: &str) {
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            assert!(!path.to_str().unwrap().contains(word), "{path:?}");
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = std::fs::read(&path).unwrap();
                assert!(find(&bytes, word.as_bytes()).is_none(), "{path:?}");
            }
        }
    }
}

/// A server under test.
pub(crate) struct Server {
    pub address: std::net::SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    pub ended: JoinHandle<()>,
}

impl Server {
    /// Starts a server whose providers are all at `url`.
    pub(crate) async fn start(url: &str, change: impl FnOnce(&mut ServeSettings)) -> Self {
        Self::reducing(url, &memory(), change).await
    }

    /// Starts a server that reduces, with its content in `store`.
    pub(crate) async fn reducing(
        url: &str,
        store: &Arc<dyn Backend>,
        change: impl FnOnce(&mut ServeSettings),
    ) -> Self {
        let mut settings = settings(url);
        change(&mut settings);
        Self::with(settings, &reduction(), store).await
    }

    /// Starts a server that reduces as `reduction` says.
    pub(crate) async fn with(
        settings: ServeSettings,
        reduction: &Settings,
        store: &Arc<dyn Backend>,
    ) -> Self {
        let open = |_: &str| Ok::<_, std::io::Error>(store.clone());
        Self::run(Gateway::reducing(settings, reduction, open).unwrap()).await
    }

    pub(crate) async fn run(gateway: Gateway) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let monitor = match gateway.settings().metrics_listen {
            Some(address) => Some(TcpListener::bind(address).await.unwrap()),
            None => None,
        };
        let (stop, stopped) = oneshot::channel();
        let ended = tokio::spawn(async move {
            let stopped = async { _ = stopped.await };
            gateway.serve(listener, monitor, stopped).await;
        });
        Self {
            address,
            stop: Some(stop),
            ended,
        }
    }

    pub(crate) fn stop(&mut self) {
        _ = self.stop.take().unwrap().send(());
    }

    /// Opens a connection and sends bytes.
    pub(crate) async fn open(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream
    }

    /// Sends bytes and reads one answer.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> Option<Seen> {
        let mut stream = self.open(bytes).await;
        read_message(&mut stream, &mut Vec::new()).await
    }

    /// Sends a JSON body to a path and returns the answer.
    pub(crate) async fn post(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Seen {
        let headers: String = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.raw(request.as_bytes()).await.expect("an answer")
    }

    pub(crate) async fn get(&self, path: &str) -> Seen {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        self.raw(request.as_bytes()).await.expect("an answer")
    }
}

/// Settings of a reduction, whose store is not a directory.
pub(crate) fn reduction() -> Settings {
    let mut reduction = Settings::recommended();
    reduction.backend_url = Some("memory:".to_owned().into());
    reduction
}

/// A store in memory.
pub(crate) fn memory() -> Arc<dyn Backend> {
    Arc::new(offcut::backend::Memory::new())
}

/// Settings in which every known provider is at `url`.
pub(crate) fn settings(url: &str) -> ServeSettings {
    let upstreams = ["openai", "anthropic", "gemini"].map(|name| (name.to_owned(), url.to_owned()));
    let mut settings = ServeSettings::default();
    settings.upstreams = BTreeMap::from(upstreams);
    settings
}
