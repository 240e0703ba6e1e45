//! HTTP as far as these tests need it: one request for each connection, and bodies of known length.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// A request or a reply.
#[derive(Clone, Debug)]
pub struct Message {
    pub head: String,
    pub body: String,
}

impl Message {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        let named = lines.find(|(own, _)| own.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.trim())
    }

    /// Reads a message; fails if it breaks off.
    fn read(stream: &mut TcpStream) -> io::Result<Self> {
        let (mut bytes, mut piece) = (Vec::new(), [0; 65_536]);
        let mut fill = |bytes: &mut Vec<u8>| match stream.read(&mut piece)? {
            0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            count => {
                bytes.extend_from_slice(&piece[..count]);
                Ok(())
            }
        };
        let end = loop {
            if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break at;
            }
            fill(&mut bytes)?;
        };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let mut message = Self {
            head,
            body: String::new(),
        };
        let length = message.header("content-length").unwrap_or("0");
        let all = end + 4 + length.parse::<usize>().unwrap();
        while bytes.len() < all {
            fill(&mut bytes)?;
        }
        message.body = String::from_utf8(bytes[end + 4..all].to_vec()).unwrap();
        Ok(message)
    }
}

/// Sends a request and returns the reply.
pub fn post(
    address: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<Message> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(120)))?;
    let headers: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let method = if body.is_empty() { "GET" } else { "POST" };
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes())?;
    Message::read(&mut stream)
}

/// The body of the answer to a request, by its number.
type Answer = dyn Fn(usize, &Message) -> String + Send + Sync;

/// A provider that keeps all requests.
pub struct Provider {
    pub url: String,
    seen: Arc<(Mutex<Vec<Message>>, Condvar)>,
}

impl Provider {
    /// Answers each request with its number.
    pub fn start() -> Self {
        Self::answering(|number, _| format!(r#"{{"number":{number}}}"#))
    }

    pub fn answering(answer: impl Fn(usize, &Message) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::<(Mutex<Vec<Message>>, Condvar)>::default();
        let (log, answer) = (seen.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, answer) = (log.clone(), answer.clone());
                std::thread::spawn(move || serve(stream, &log, &*answer));
            }
        });
        Self { url, seen }
    }

    /// Waits until `count` requests have arrived.
    pub fn wait_for(&self, count: usize) {
        let (seen, changed) = &*self.seen;
        let seen = seen.lock().unwrap();
        drop(changed.wait_while(seen, |seen| seen.len() < count).unwrap());
    }

    /// Takes all requests that have arrived.
    pub fn take(&self) -> Vec<Message> {
        std::mem::take(&mut *self.seen.0.lock().unwrap())
    }
}

fn serve(mut stream: TcpStream, seen: &(Mutex<Vec<Message>>, Condvar), answer: &Answer) {
    while let Ok(message) = Message::read(&mut stream) {
        let number = {
            let mut seen = seen.0.lock().unwrap();
            seen.push(message.clone());
            seen.len() - 1
        };
        seen.1.notify_all();
        let body = answer(number, &message);
        let reply = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        if stream.write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}
