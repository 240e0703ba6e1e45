//! Servers of `offcut serve`, each in a process of its own.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Ran, command, command_of_user, run_command, text};

/// The key that all requests bear.
pub const KEY: &str = "sk-planted-key";

/// A server on loopback that gives every request the same answer.
pub fn answering(status: &'static str, body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            if read_request(&stream).is_some() {
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                stream.write_all((head + &body).as_bytes()).unwrap();
            }
        }
    });
    address.to_string()
}

/// Reads a request with its body.
fn read_request(stream: &TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.is_empty() {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length]).ok()
}

/// A user with a folder of their own.
pub struct User(pub tempfile::TempDir);

/// A server of `offcut serve`.
pub struct Serving {
    child: Child,
    /// The address as it was printed.
    pub url: String,
    pub page: String,
    errors: Option<BufReader<ChildStderr>>,
}

impl User {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        let mut command = command(args);
        command.env("OFFCUT_HOME", self.0.path());
        run_command(&mut command, "")
    }

    pub fn json(&self, args: &[&str]) -> Value {
        let ran = self.run(args);
        serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}"))
    }

    /// Starts a server whose provider is at the address `provider`.
    pub fn serve(&self, provider: &str, table: &str, args: &[&str]) -> Serving {
        let settings = self.path("settings.toml");
        let written = format!(
            "preset = \"recommended\"\n[serve]\n{table}\n[serve.upstreams]\nopenai = \"http://{provider}\"\n"
        );
        fs::write(&settings, written).unwrap();
        let level = if args.contains(&"--json") {
            "info"
        } else {
            "warn"
        };
        let always = ["serve", "--config", text(&settings), "--log", level];
        // Its sweeps look for the transcripts of agents.
        let home = self.0.path();
        let mut command = command_of_user(&[&always, args].concat(), home, home);
        let mut child = command.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut url = String::new();
        out.read_line(&mut url).unwrap();
        if let Ok(said) = serde_json::from_str::<Value>(&url) {
            url = said["url"].as_str().unwrap().to_owned();
        }
        let port = url.trim_end().rsplit_once(':').unwrap().1;
        let is_own = |page: &String| page.contains(&format!(":{port}/"));
        let mut pages = self
            .files()
            .into_iter()
            .map(|file| fs::read_to_string(file).unwrap());
        let page = pages.find(is_own).unwrap();
        // The token is in that file, and in no log.
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut logged = String::new();
        while !logged.contains("`offcut status`") {
            assert_ne!(errors.read_line(&mut logged).unwrap(), 0, "{logged}");
        }
        let token = page.trim_end().split_once('#').unwrap().1;
        assert!(!logged.contains(token), "{logged}");
        Serving {
            child,
            url: url.trim_end().to_owned(),
            page: page.trim_end().to_owned(),
            errors: Some(errors),
        }
    }

    /// The files that say which servers run.
    pub fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("servers")).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

impl Serving {
    /// Closes the server's stderr at our end.
    pub fn close_log(&mut self) {
        self.errors = None;
    }

    /// The server's log after its start.
    pub fn log(&mut self) -> BufReader<ChildStderr> {
        self.errors.take().unwrap()
    }

    /// Posts `body` to a path of OpenAI's, and returns the status line.
    pub fn post(&self, body: &str) -> String {
        let address = self.url.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let request = format!(
            "POST /openai/v1/chat/completions HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {KEY}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line
    }

    /// Asks the server to end, by the signal of this name. Returns true if it does so soon.
    pub fn ends_by(mut self, signal: &str) -> bool {
        let mut waits = (0..200).map(|_| std::thread::sleep(Duration::from_millis(50)));
        self.has_ended_after(signal) || waits.any(|()| self.child.try_wait().unwrap().is_some())
    }

    /// Asks the server to end, by the signal of this name. Returns true if it had ended before, or does at once.
    pub fn has_ended_after(&mut self, signal: &str) -> bool {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &id]).status();
        assert!(sent.unwrap().success());
        std::thread::sleep(Duration::from_millis(50));
        self.child.try_wait().unwrap().is_some()
    }

    pub fn on_loopback(provider: &str, user: &User) -> Self {
        let args = ["--listen", "127.0.0.1:0"];
        user.serve(provider, "cut_without_reader = true", &args)
    }

    /// Sends the request of call `n` of a conversation.
    pub fn call(&self, n: usize) {
        self.call_of("run", n);
    }

    /// Sends the request of call `n` of a conversation whose tool has this name.
    pub fn call_of(&self, tool: &str, n: usize) {
        let mut messages = vec![json!({"role": "user", "content": "planted task"})];
        for at in 0..n {
            let call = json!({"id": format!("call_{at}"), "type": "function", "function": {"name": tool, "arguments": "{}"}});
            messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
            let result = format!("planted line of result {at}\n").repeat(1_000);
            messages.push(
                json!({"role": "tool", "tool_call_id": format!("call_{at}"), "content": result}),
            );
        }
        let tools = json!([{"type": "function", "function": {"name": tool}}]);
        let body = json!({"model": "m", "messages": messages, "tools": tools}).to_string();
        let mut stream = TcpStream::connect(self.url.strip_prefix("http://").unwrap()).unwrap();
        let head = format!(
            "POST /openai/v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    }

    pub fn token(&self) -> &str {
        self.page.split_once('#').unwrap().1
    }

    /// Ends as Ctrl-C ends it.
    pub fn stop(mut self) {
        let pid = i32::try_from(self.child.id()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        assert!(self.child.wait().unwrap().success());
    }

    pub fn kill(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.page.clone()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
