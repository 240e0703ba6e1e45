//! An agent through `offcut serve`, in front of a provider with a window of its own.

use std::cell::RefCell;
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use offcut::{Settings, TokenCounter};
use offcut_cli::gateway::{Gateway, ServeSettings};
use offcut_lab::scripted::Editor;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

const KEY: &str = "Authorization: Bearer scripted";

/// A server, and a provider that refuses what is longer than its window.
#[derive(Debug)]
pub(crate) struct ScriptedServer {
    address: SocketAddr,
    seen: Arc<Mutex<Option<Value>>>,
    /// The outcome of each request, by its header.
    outcomes: RefCell<Vec<String>>,
    _runtime: Runtime,
    _folder: tempfile::TempDir,
}

impl ScriptedServer {
    /// Starts both; without settings, the server changes nothing.
    pub(crate) fn start(settings: Option<&Settings>, window: u64) -> Result<Self, Box<dyn Error>> {
        let folder = tempfile::tempdir()?;
        let seen = Arc::default();
        let provider = provider(Arc::clone(&seen), window)?;
        let mut serve = ServeSettings::default();
        serve
            .upstreams
            .insert("openai".into(), format!("http://{provider}"));
        serve.holdout = f64::from(u8::from(settings.is_none()));
        let mut settings = settings.cloned().unwrap_or_default();
        let store = folder.path().join("store");
        settings.backend_url = Some(store.display().to_string().into());
        let gateway = Gateway::reducing(serve, &settings, offcut::backend::open)?;
        let runtime = Runtime::new()?;
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))?;
        let address = listener.local_addr()?;
        runtime.spawn(gateway.serve(listener, None, std::future::pending()));
        Ok(Self {
            address,
            seen,
            outcomes: RefCell::default(),
            _runtime: runtime,
            _folder: folder,
        })
    }

    /// The outcomes of all requests so far, as the server names them.
    pub(crate) fn outcomes(&self) -> Vec<String> {
        self.outcomes.borrow().clone()
    }

    fn ask(&self, line: &str, body: Option<&Value>) -> Result<(u16, Value), Box<dyn Error>> {
        let mut stream = TcpStream::connect(self.address)?;
        let body = body.map(Value::to_string).unwrap_or_default();
        write!(
            stream,
            "{line} HTTP/1.1\r\nHost: localhost\r\n{KEY}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
        let outcome = head
            .lines()
            .find_map(|line| line.strip_prefix("x-offcut: "));
        self.outcomes
            .borrow_mut()
            .extend(outcome.map(str::to_owned));
        let status = head.split(' ').nth(1).ok_or("no status")?.parse()?;
        Ok((status, serde_json::from_str(body)?))
    }
}

impl Editor for ScriptedServer {
    fn begin(&self) -> Result<Vec<Value>, Box<dyn Error>> {
        let (_, mut definitions) = self.ask("GET /v1/read", None)?;
        Ok(vec![definitions["openai-chat"].take()])
    }

    /// Returns the messages as they reached the provider.
    fn request(
        &self,
        tools: &[Value],
        messages: &[Value],
    ) -> Result<Option<Vec<Value>>, Box<dyn Error>> {
        let body = json!({"model": "m", "tools": tools, "messages": messages});
        let (status, _) = self.ask("POST /openai/v1/chat/completions", Some(&body))?;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = seen.take().filter(|_| status == 200);
        Ok(seen.and_then(|mut body| match body["messages"].take() {
            Value::Array(messages) => Some(messages),
            _ => None,
        }))
    }

    fn answer(
        &self,
        tool: &str,
        arguments: Value,
    ) -> Result<(Option<String>, Value), Box<dyn Error>> {
        if tool != "read_file" {
            return Ok((None, arguments));
        }
        let (_, answer) = self.ask("POST /v1/read", Some(&arguments))?;
        let text = answer["text"].as_str().unwrap_or_default();
        Ok((Some(text.to_owned()), arguments))
    }
}

/// A provider that keeps the last request that it took.
fn provider(seen: Arc<Mutex<Option<Value>>>, window: u64) -> Result<SocketAddr, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let counter = TokenCounter::O200kBase.build()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answered = answer(&stream, |body| {
                let parts = ["tools", "messages"].into_iter();
                let parts = parts.flat_map(|field| body[field].as_array().into_iter().flatten());
                let tokens: u64 = parts.map(|part| counter.count(&part.to_string())).sum();
                if tokens > window {
                    return (
                        "400 Bad Request",
                        json!({"error": {"message": "too long", "code": "context_length_exceeded"}}),
                    );
                }
                *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(body);
                ("200 OK", json!({"choices": []}))
            });
            if answered.is_err() {
                return;
            }
        }
    });
    Ok(address)
}

/// Reads a request and answers it.
fn answer(
    mut stream: &TcpStream,
    reply: impl FnOnce(Value) -> (&'static str, Value),
) -> Result<(), Box<dyn Error>> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(bytes) = line.strip_prefix("content-length: ") {
            length = bytes.parse()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let (status, body) = reply(serde_json::from_slice(&body)?);
    let body = body.to_string();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    Ok(())
}
