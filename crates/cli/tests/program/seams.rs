//! The Python program in docs/seams.md, unchanged, against a provider on loopback.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use offcut::format::WireFormat;
use offcut::hint::{Hint, Kind};
use serde_json::{Value, json};

/// A line in the middle of the result, which no preview shows.
const DEEP: &str = "./steps.rs:1234:fn step_1234() -> u64 { 1234 * 7 }";

#[test]
fn a_loop_in_python_works_through_the_program() {
    if Command::new("python3")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_err()
    {
        eprintln!("SKIPPED: no loop in Python without python3");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let page = include_str!("../../../../docs/seams.md");
    let program = page
        .split_once("```python\n")
        .unwrap()
        .1
        .split_once("```")
        .unwrap()
        .0;
    std::fs::write(home.path().join("loop.py"), program).unwrap();
    let steps: String = (1..=3_000)
        .map(|n| format!("fn step_{n}() -> u64 {{ {n} * 7 }}\n"))
        .collect();
    std::fs::write(home.path().join("steps.rs"), steps).unwrap();

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let provider = thread::spawn(move || {
        (0..3)
            .map(|_| serve(&listener.accept().unwrap().0))
            .collect::<Vec<_>>()
    });

    let offcut = Path::new(env!("CARGO_BIN_EXE_offcut")).parent().unwrap();
    let path = format!("{}:{}", offcut.display(), std::env::var("PATH").unwrap());
    let done = Command::new("python3")
        .args(["loop.py", "scripted-1", "What does step_1234 return?"])
        .current_dir(home.path())
        .envs([
            ("PATH", &*path),
            ("OPENAI_BASE_URL", &url),
            ("OPENAI_API_KEY", "k"),
        ])
        .env("no_proxy", "127.0.0.1")
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{error}");
    assert_eq!(String::from_utf8_lossy(&done.stdout), "8638.\n", "{error}");
    assert_eq!(provider.join().unwrap(), [Ok(()), Ok(()), Ok(())]);
}

/// Answers one request, or returns what is wrong with it.
fn serve(mut to: &TcpStream) -> Result<(), String> {
    let mut from = BufReader::new(to);
    let mut length = 0;
    loop {
        let mut line = String::new();
        from.read_line(&mut line)
            .map_err(|error| error.to_string())?;
        let line = line.trim().to_ascii_lowercase();
        if let Some(given) = line.strip_prefix("content-length:") {
            length = given.trim().parse().map_err(|_| "no length")?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)
        .map_err(|error| error.to_string())?;
    let body: Value = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
    let message = reply(&body)?;
    let reply = json!({"choices": [{"index": 0, "message": message}]}).to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        reply.len()
    );
    to.write_all((head + &reply).as_bytes())
        .map_err(|error| error.to_string())
}

/// A search, then a look at what was left out, then an answer.
fn reply(body: &Value) -> Result<Value, String> {
    let messages = body["messages"].as_array().ok_or("no messages")?;
    offcut_testkit::validate(WireFormat::OpenAiChat, messages)
        .map_err(|error| error.to_string())?;
    let names = ["/tools/0/function/name", "/tools/1/function/name"].map(|name| body.pointer(name));
    if names != [Some(&json!("grep")), Some(&json!("read_file"))] {
        return Err(format!("the tools are wrong: {}", body["tools"]));
    }
    let results: Vec<&str> = messages
        .iter()
        .filter(|message| message["role"] == "tool")
        .filter_map(|message| message["content"].as_str())
        .collect();
    let call = |said: String, name: &str, arguments: Value| {
        let function = json!({"name": name, "arguments": arguments.to_string()});
        let call = json!({"id": format!("call_{}", results.len()), "type": "function", "function": function});
        Ok(json!({"role": "assistant", "content": said, "tool_calls": [call]}))
    };
    match &results[..] {
        // A pattern so long that clearing it is worth a pass.
        [] => {
            let pattern = "fn \\|".to_owned() + &"Considering every step. ".repeat(2_500);
            call(String::new(), "grep", json!({ "pattern": pattern }))
        }
        [long] => {
            let hint = Hint::parse(long).filter(|hint| hint.kind == Kind::Truncated);
            let location = hint.and_then(|hint| hint.location).ok_or("not truncated")?;
            let asked = json!({"path": location, "pattern": "step_1234\\b", "limit": 5});
            // With enough prose that the next pass clears old results.
            call(
                "Considering every step. ".repeat(15_000),
                "read_file",
                asked,
            )
        }
        [long, page] => {
            let hint = Hint::parse(long).filter(|hint| hint.kind == Kind::Cleared);
            hint.ok_or("not cleared")?;
            page.contains(DEEP)
                .then(|| json!({"role": "assistant", "content": "8638."}))
                .ok_or_else(|| format!("the page lacks the line: {page}"))
        }
        _ => Err("too many rounds".into()),
    }
}
