//! The memory that messages over the maximum take over HTTP, in each direction and with each transport.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// The beginning and the end of a message, between which there are as many `x` as it is long.
const BEGINNING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"t":""#;
const END: &str = r#""}}"#;
const SHORT: &str = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;

/// Writes a message with so many `x`.
fn write_message(to: &mut impl Write, length: usize) {
    let chunk = [b'x'; 64 * 1024];
    to.write_all(BEGINNING.as_bytes()).unwrap();
    let mut left = length;
    while left > 0 {
        let now = left.min(chunk.len());
        to.write_all(&chunk[..now]).unwrap();
        left -= now;
    }
    to.write_all(END.as_bytes()).unwrap();
}

/// Number of `x` until `is_end` says that the last bytes are the end.
fn count(from: &mut impl Read, is_end: impl Fn(&[u8]) -> bool) -> usize {
    let mut chunk = vec![0; 64 * 1024];
    let (mut count, mut last) = (0, Vec::new());
    loop {
        let length = from.read(&mut chunk).unwrap();
        if length == 0 {
            return count;
        }
        let read = &chunk[..length];
        count += read.iter().filter(|byte| **byte == b'x').count();
        last.extend_from_slice(&read[length.saturating_sub(8)..]);
        last.drain(..last.len().saturating_sub(8));
        if is_end(&last) {
            return count;
        }
    }
}

/// The head of a request or an answer, in lower case.
fn head(from: &mut impl BufRead) -> String {
    spelled_head(from).to_lowercase()
}

fn spelled_head(from: &mut impl BufRead) -> String {
    let (mut head, mut line) = (String::new(), String::new());
    while line != "\r\n" {
        line.clear();
        assert!(from.read_line(&mut line).unwrap() > 0, "{head}");
        head += &line;
    }
    head
}

/// A server that answers with a message of this length, in a kind of body, and expects one of another.
fn upstream(kind: &'static str, expected: usize, answered: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let head = head(&mut stream);
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            let seen = match length {
                Some(length) => count(&mut (&mut stream).take(length.parse().unwrap()), |_| false),
                // It comes in chunks.
                None => count(&mut stream, |last| last.ends_with(b"\r\n0\r\n\r\n")),
            };
            assert_eq!(
                seen, expected,
                "the server has not got what the client has sent"
            );
            let mut to = stream.into_inner();
            write!(
                to,
                "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n"
            )
            .unwrap();
            let is_stream = kind == "text/event-stream";
            to.write_all(if is_stream { b"data: " } else { b"" })
                .unwrap();
            write_message(&mut to, answered);
            to.write_all(if is_stream { b"\n\n" } else { b"" }).unwrap();
        }
    });
    url
}

fn offcut(home: &Path, args: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_offcut"));
    command.arg("mcp").args(args).env("OFFCUT_HOME", home);
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    piped.stderr(Stdio::null()).spawn().unwrap()
}

fn address(url: &str) -> &str {
    let address = url.strip_prefix("http://").unwrap();
    address.strip_suffix("/mcp\n").unwrap()
}

/// Opens a session. Returns the header that names it.
fn open(url: &str) -> String {
    let address = address(url);
    let opening = r#"{"jsonrpc":"2.0","id":0,"method":"initialize"}"#;
    let mut stream = TcpStream::connect(address).unwrap();
    let length = opening.len();
    write!(stream, "POST /mcp HTTP/1.0\r\nhost: {address}\r\naccept: */*\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{opening}").unwrap();
    let head = spelled_head(&mut BufReader::new(stream));
    let is_session = |line: &&str| line.to_lowercase().starts_with("mcp-session-id:");
    head.lines().find(is_session).expect("a session").to_owned() + "\r\n"
}

/// Sends a message to an endpoint, with this header. Returns the number of `x` in the answer.
fn post(url: &str, session: &str, length: usize) -> usize {
    let address = address(url);
    let mut stream = TcpStream::connect(address).unwrap();
    let mut to = stream.try_clone().unwrap();
    let all = if length == 0 {
        SHORT.len()
    } else {
        BEGINNING.len() + length + END.len()
    };
    // Answers to this version of HTTP end with their connection.
    write!(to, "POST /mcp HTTP/1.0\r\nhost: {address}\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json\r\ncontent-length: {all}\r\n{session}\r\n").unwrap();
    let writer = std::thread::spawn(move || match length {
        0 => to.write_all(SHORT.as_bytes()).unwrap(),
        _ => write_message(&mut to, length),
    });
    let mut from = BufReader::new(&mut stream);
    let head = head(&mut from);
    assert!(head.contains(" 200 "), "{head}");
    let is_stream = head.contains("text/event-stream");
    // A server over stdio stays, and so does its session.
    let seen = count(&mut from, |last| is_stream && last.ends_with(b"}}\n\n"));
    writer.join().unwrap();
    seen
}

/// The most memory that a process had, in MB.
fn peak(process: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.unwrap().trim().trim_end_matches(" kB");
    peak.parse::<u64>().unwrap() / 1024
}

/// The most memory of an endpoint while a message of one length comes, and one of another is answered.
fn listening(home: &Path, args: &[&str], sent: usize, answered: usize) -> u64 {
    let mut process = offcut(home, &[&["--listen", "127.0.0.1:0"], args].concat());
    let mut url = String::new();
    BufReader::new(process.stdout.take().unwrap())
        .read_line(&mut url)
        .unwrap();
    let session = match args.contains(&"--") {
        true => open(&url),
        false => String::new(),
    };
    assert_eq!(
        post(&url, &session, sent),
        answered,
        "the client has not got what the server has sent"
    );
    let peak = peak(&process);
    process.kill().unwrap();
    process.wait().unwrap();
    peak
}

/// The same for a client over stdio.
fn over_stdio(home: &Path, args: &[&str], sent: usize, answered: usize) -> u64 {
    let mut process = offcut(home, args);
    let mut to = process.stdin.take().unwrap();
    let mut from = process.stdout.take().unwrap();
    let writer = std::thread::spawn(move || {
        match sent {
            0 => to.write_all(SHORT.as_bytes()).unwrap(),
            _ => write_message(&mut to, sent),
        }
        to.write_all(b"\n").unwrap();
        to
    });
    let seen = count(&mut from, |last| last.ends_with(b"}}\n"));
    assert_eq!(
        seen, answered,
        "the client has not got what the server has sent"
    );
    let peak = peak(&process);
    drop(writer.join().unwrap());
    process.wait().unwrap();
    peak
}

/// Measures messages of two lengths over the maximum. Returns a row for each way.
///
/// # Panics
///
/// The longer one takes more memory.
pub(crate) fn memory(home: &Path, options: &[&str], lengths: [usize; 2]) -> Vec<Value> {
    const JSON: &str = "application/json";
    const EVENTS: &str = "text/event-stream";
    type Way = fn(&Path, &[&str], usize, usize) -> u64;
    let ways: [(&str, Way); 2] = [("--listen --url", listening), ("--url", over_stdio)];
    let mut table = Vec::new();
    let mut row = |way: &str, peaks: [u64; 2]| {
        let [shorter, longer] = lengths.map(|length| length >> 20);
        println!(
            "{way}: {} MB of memory at most for {shorter} MiB, {} MB for {longer} MiB",
            peaks[0], peaks[1]
        );
        assert!(
            peaks[1] <= peaks[0] + peaks[0] / 4 + 8,
            "memory grows with the message"
        );
        table.push(json!({"way": way, "message_mib": [shorter, longer], "peak_mb": peaks}));
    };
    row(
        "--listen -- COMMAND, down",
        lengths.map(|length| {
            // Echoes the opening, and answers the next message with a long one.
            let script = format!(
                "read one; echo \"$one\"; read two; printf %s '{BEGINNING}'; head -c {length} /dev/zero | tr '\\0' x; echo '{END}'; cat"
            );
            let args = [options, &["--", "sh", "-c", &script]].concat();
            listening(home, &args, 0, length)
        }),
    );
    for (name, way) in ways {
        for (direction, kind, up, down) in [
            ("up", JSON, true, false),
            ("down as JSON", JSON, false, true),
            ("down as an event", EVENTS, false, true),
        ] {
            let peaks = lengths.map(|length| {
                let (sent, answered) = (if up { length } else { 0 }, if down { length } else { 0 });
                let url = upstream(kind, sent, answered);
                way(home, &[options, &["--url", &url]].concat(), sent, answered)
            });
            row(&format!("{name}, {direction}"), peaks);
        }
    }
    table
}
