//! Chromium, controlled over its debugging protocol.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

use crate::support::text;

/// The browser's program, from `OFFCUT_CHROMIUM` or `PATH`.
pub fn chromium() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("OFFCUT_CHROMIUM") {
        return Some(named.into());
    }
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|path| path.is_file())
}

/// A browser with one page, controlled over its debugging protocol.
pub struct Browser {
    child: Child,
    socket: WebSocket<MaybeTlsStream<TcpStream>>,
    session: String,
    next: u64,
    /// Events that the page has sent unasked.
    pub events: Vec<Value>,
    _profile: TempDir,
}

impl Browser {
    pub fn open(program: &Path) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let mut child = Command::new(program)
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
            ])
            .args([
                "--remote-debugging-port=0",
                &format!("--user-data-dir={}", text(profile.path())),
                "about:blank",
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a browser that starts");
        let mut said = BufReader::new(child.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let address = said.find_map(|line| {
            line.strip_prefix("DevTools listening on ")
                .map(str::to_owned)
        });
        // The rest of its output must be read, or it blocks.
        std::thread::spawn(move || said.for_each(drop));
        let (socket, _) = tungstenite::connect(address.expect("an address")).expect("a connection");
        let mut browser = Self {
            child,
            socket,
            session: String::new(),
            next: 0,
            events: Vec::new(),
            _profile: profile,
        };
        let target =
            browser.ask("Target.createTarget", &json!({"url": "about:blank"}))["targetId"].clone();
        let attached = browser.ask(
            "Target.attachToTarget",
            &json!({"targetId": target, "flatten": true}),
        );
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.ask(&format!("{domain}.enable"), &json!({}));
        }
        browser
    }

    fn receive(&mut self) -> Value {
        loop {
            if let Message::Text(text) = self.socket.read().expect("a message") {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }

    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let mut request = json!({"id": self.next, "method": method, "params": params});
        if !self.session.is_empty() {
            request["sessionId"] = json!(self.session);
        }
        self.socket
            .send(Message::text(request.to_string()))
            .expect("an open connection");
        loop {
            let message = self.receive();
            if message["id"] == self.next {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    /// Opens a page and waits until it has loaded.
    pub fn load(&mut self, url: &str) {
        self.ask("Page.navigate", &json!({"url": url}));
        let is_loaded = |event: &Value| event["method"] == "Page.loadEventFired";
        while !self.events.iter().any(is_loaded) {
            let event = self.receive();
            self.events.push(event);
        }
        self.events.retain(|event| !is_loaded(event));
    }

    /// Shows pages at this width and in this theme from now on.
    pub fn view(&mut self, width: u32, is_phone: bool, theme: &str) {
        let size =
            json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": is_phone});
        self.ask("Emulation.setDeviceMetricsOverride", &size);
        let scheme = json!([{"name": "prefers-color-scheme", "value": theme}]);
        self.ask("Emulation.setEmulatedMedia", &json!({"features": scheme}));
    }

    /// Asserts that no script failed or complained, and that everything was requested from `from`.
    #[track_caller]
    pub fn assert_quiet(&self, from: &str) {
        for event in &self.events {
            let method = event["method"].as_str().unwrap_or_default();
            assert_ne!(method, "Runtime.exceptionThrown", "{event}");
            assert!(
                method != "Log.entryAdded" || event["params"]["entry"]["level"] != "error",
                "{event}"
            );
            assert!(method != "Runtime.consoleAPICalled", "{event}");
            let requested = event["params"]["request"]["url"]
                .as_str()
                .unwrap_or_default();
            assert!(
                method != "Network.requestWillBeSent"
                    || requested.starts_with(from)
                    || requested.starts_with("data:"),
                "a request: {event}"
            );
        }
    }

    /// Evaluates an expression, and waits for it if it is a promise.
    pub fn evaluate(&mut self, script: &str) -> Value {
        let done = self.ask(
            "Runtime.evaluate",
            &json!({"expression": script, "returnByValue": true, "awaitPromise": true}),
        );
        assert!(done.get("exceptionDetails").is_none(), "{done}");
        done["result"]["value"].clone()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
