//! The memory that messages within the maximum and over it take over HTTP, in each direction and with each transport.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// The beginnings and the end of messages, between which there are as many `x` as it is long.
const REQUEST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"t":""#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"t":""#;
const END: &str = r#""}}"#;
const SHORT: &str = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;

/// Writes a message with so many `x`. Whoever refuses it may have closed the connection before its end.
fn write_message(to: &mut impl Write, beginning: &str, length: usize) -> io::Result<()> {
    let chunk = [b'x'; 64 * 1024];
    to.write_all(beginning.as_bytes())?;
    let mut left = length;
    while left > 0 {
        let now = left.min(chunk.len());
        to.write_all(&chunk[..now])?;
        left -= now;
    }
    to.write_all(END.as_bytes())
}

/// Number of `x` until `is_end` says that the last bytes are the end.
fn count(from: &mut impl Read, is_end: impl Fn(&[u8]) -> bool) -> usize {
    let mut chunk = vec![0; 64 * 1024];
    let (mut count, mut last) = (0, Vec::new());
    loop {
        let length = from.read(&mut chunk).unwrap_or(0);
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
        if !matches!(from.read_line(&mut line), Ok(1..)) {
            break;
        }
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
            _ = write_message(&mut to, ANSWER, answered);
            _ = to.write_all(if is_stream { b"\n\n" } else { b"" });
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
        REQUEST.len() + length + END.len()
    };
    // Answers to this version of HTTP end with their connection.
    write!(to, "POST /mcp HTTP/1.0\r\nhost: {address}\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json\r\ncontent-length: {all}\r\n{session}\r\n").unwrap();
    let writer = std::thread::spawn(move || match length {
        0 => to.write_all(SHORT.as_bytes()),
        _ => write_message(&mut to, REQUEST, length),
    });
    let mut from = BufReader::new(&mut stream);
    let head = head(&mut from);
    let is_stream = head.contains("text/event-stream");
    // A server over stdio stays, and so does its session.
    let seen = count(&mut from, |last| is_stream && last.ends_with(b"}}\n\n"));
    _ = writer.join().unwrap();
    seen
}

/// The most memory that a process had, in MB.
fn peak(process: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.unwrap().trim().trim_end_matches(" kB");
    peak.parse::<u64>().unwrap() / 1024
}

/// The length of the answer to a message of this length at an endpoint, and the most memory that it takes.
fn listening(home: &Path, args: &[&str], sent: usize) -> (usize, u64) {
    let mut process = offcut(home, &[&["--listen", "127.0.0.1:0"], args].concat());
    let mut url = String::new();
    BufReader::new(process.stdout.take().unwrap())
        .read_line(&mut url)
        .unwrap();
    let session = match args.contains(&"--") {
        true => open(&url),
        false => String::new(),
    };
    let seen = post(&url, &session, sent);
    let peak = peak(&process);
    process.kill().unwrap();
    process.wait().unwrap();
    (seen, peak)
}

/// The same for a client over stdio.
fn over_stdio(home: &Path, args: &[&str], sent: usize) -> (usize, u64) {
    let mut process = offcut(home, args);
    let mut to = process.stdin.take().unwrap();
    let mut from = process.stdout.take().unwrap();
    let writer = std::thread::spawn(move || {
        match sent {
            0 => to.write_all(SHORT.as_bytes()).unwrap(),
            _ => write_message(&mut to, REQUEST, sent).unwrap(),
        }
        to.write_all(b"\n").unwrap();
        to
    });
    let seen = count(&mut from, |last| last.ends_with(b"}}\n"));
    let peak = peak(&process);
    drop(writer.join().unwrap());
    process.wait().unwrap();
    (seen, peak)
}

/// Measures messages of a length within the maximum and of one over it. Returns a row for each way.
///
/// # Panics
///
/// The shorter one does not come through, or the longer one does or takes more memory.
pub(crate) fn memory(home: &Path, options: &[&str], lengths: [usize; 2]) -> Vec<Value> {
    const JSON: &str = "application/json";
    const EVENTS: &str = "text/event-stream";
    type Way = fn(&Path, &[&str], usize) -> (usize, u64);
    let ways: [(&str, Way); 2] = [("--listen --url", listening), ("--url", over_stdio)];
    let mut table = Vec::new();
    let mut row = |way: &str, is_down: bool, measured: [(usize, u64); 2]| {
        let [shorter, longer] = lengths.map(|length| length >> 20);
        let [(seen, peak), (refused, peak_refused)] = measured;
        println!(
            "{way}: {peak} MB of memory at most for {shorter} MiB, {peak_refused} MB for {longer} MiB"
        );
        assert_eq!(seen, if is_down { lengths[0] } else { 0 }, "it passes");
        // The error has one, in the name of the option.
        assert!(refused < 10, "it is refused");
        assert!(
            peak_refused <= peak + peak / 4 + 8,
            "memory grows with the message"
        );
        table.push(
            json!({"way": way, "message_mib": [shorter, longer], "peak_mb": [peak, peak_refused]}),
        );
    };
    row(
        "--listen -- COMMAND, down",
        true,
        lengths.map(|length| {
            // Echoes the opening, and answers the next message with a long one.
            let script = format!(
                "read one; echo \"$one\"; read two; printf %s '{ANSWER}'; head -c {length} /dev/zero | tr '\\0' x; echo '{END}'; cat"
            );
            let args = [options, &["--", "sh", "-c", &script]].concat();
            listening(home, &args, 0)
        }),
    );
    for (name, way) in ways {
        for (direction, kind, is_down) in [
            ("up", JSON, false),
            ("down as JSON", JSON, true),
            ("down as an event", EVENTS, true),
        ] {
            let measured = lengths.map(|length| {
                let (sent, answered) = if is_down { (0, length) } else { (length, 0) };
                let url = upstream(kind, sent, answered);
                way(home, &[options, &["--url", &url]].concat(), sent)
            });
            row(&format!("{name}, {direction}"), is_down, measured);
        }
    }
    table
}
