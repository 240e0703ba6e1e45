//! The report in a real browser: no script errors, no requests, and nothing wider than the screen,
//! at two widths and in both themes.
//!
//! Needs Chromium, from `OFFCUT_CHROMIUM` or `PATH`. Without it, the test says that it was skipped,
//! and passes.
// Helpers are part of the tests.
#![allow(clippy::unwrap_used, clippy::expect_used, unreachable_pub)]

mod support;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use support::{succeed, text};
use tempfile::TempDir;
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

fn chromium() -> Option<PathBuf> {
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
struct Browser {
    child: Child,
    socket: WebSocket<MaybeTlsStream<TcpStream>>,
    session: String,
    next: u64,
    /// Events that the page has sent unasked.
    events: Vec<Value>,
    _profile: TempDir,
}

impl Browser {
    fn open(program: &Path) -> Self {
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

    fn ask(&mut self, method: &str, params: &Value) -> Value {
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
    fn load(&mut self, url: &str) {
        self.ask("Page.navigate", &json!({"url": url}));
        let is_loaded = |event: &Value| event["method"] == "Page.loadEventFired";
        while !self.events.iter().any(is_loaded) {
            let event = self.receive();
            self.events.push(event);
        }
        self.events.retain(|event| !is_loaded(event));
    }

    fn evaluate(&mut self, script: &str) -> Value {
        let done = self.ask(
            "Runtime.evaluate",
            &json!({"expression": script, "returnByValue": true}),
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

/// Opens everything that can be opened, and describes what is there.
const LOOK: &str = r##"(() => {
  const looks = [];
  const wide = () => document.documentElement.scrollWidth - document.documentElement.clientWidth;
  for (const trace of document.getElementById("trace").options) {
    for (const policy of document.getElementById("policy").options) {
      for (const [id, value] of [["trace", trace.value], ["policy", policy.value]]) {
        const select = document.getElementById(id);
        select.value = value;
        select.dispatchEvent(new Event("change"));
      }
      document.querySelectorAll("details").forEach((details) => { details.open = true; });
      document.querySelectorAll("#contexts svg").forEach((svg) => {
        const box = svg.getBoundingClientRect();
        svg.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + box.width / 2, clientY: box.top + 5 }));
      });
      looks.push({
        trace: trace.value, policy: policy.text, wide: wide(),
        rows: document.querySelectorAll("#policies tbody tr").length,
        charts: document.querySelectorAll("#contexts svg polyline").length,
        reading: document.querySelector("#contexts .reading")?.textContent ?? "",
        changes: document.querySelectorAll("#changes details").length,
        moments: document.querySelectorAll("#moments details").length,
        marked: document.querySelector("#moments mark")?.textContent ?? "",
        smallest: Math.min(...[...document.querySelectorAll("p, td, th, text, summary")]
          .filter((it) => it.getClientRects().length).map((it) => parseFloat(getComputedStyle(it).fontSize))),
      });
    }
  }
  const ground = getComputedStyle(document.body).backgroundColor, ink = getComputedStyle(document.body).color;
  return { looks, ground, ink, marks: document.images.length, hacked: window.hacked === true };
})()"##;

/// Writes two transcripts in which a string is used long after its result, and which try to break
/// out of the page.
fn transcripts(folder: &Path) {
    for name in ["one", "two"] {
        let mut messages =
            vec![json!({"role": "user", "content": "go </script><script>hacked = true</script>"})];
        for round in 0..6 {
            let (id, filler) = (
                format!("c{round}"),
                "filler words that go on and on\n".repeat(600),
            );
            let result = format!(
                "{filler}needle_{round} </script><img src=\"https://example.org/x.png\" onerror=\"hacked = true\">{{{{style}}}}\n{filler}"
            );
            let call = json!({"id": id, "type": "function", "function": {"name": "<b>read</b>", "arguments": "{}"}});
            messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": result}));
        }
        messages.push(
            json!({"role": "assistant", "content": "I saw needle_0 </script><img src=x onerror=\"hacked = true\">"}),
        );
        std::fs::write(
            folder.join(format!("{name}.json")),
            json!({"messages": messages}).to_string(),
        )
        .unwrap();
    }
}

#[test]
fn the_report_works_in_a_browser() {
    let Some(program) = chromium() else {
        let skipped = "SKIPPED the_report_works_in_a_browser: there is no Chromium in PATH or OFFCUT_CHROMIUM";
        writeln!(std::io::stderr(), "{skipped}").unwrap();
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    transcripts(folder.path());
    succeed(
        &[
            "replay",
            text(folder.path()),
            "--policy",
            "eino",
            "--policy",
            "cache-friendly",
            "--html",
            text(&page),
        ],
        "",
    );

    let url = format!("file://{}", text(&page));
    let mut browser = Browser::open(&program);
    let mut grounds = Vec::new();
    for (width, is_phone) in [(360, true), (1280, false)] {
        for theme in ["light", "dark"] {
            let at = format!("{width} pixels, {theme}");
            let size =
                json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": is_phone});
            browser.ask("Emulation.setDeviceMetricsOverride", &size);
            let scheme = json!([{"name": "prefers-color-scheme", "value": theme}]);
            browser.ask("Emulation.setEmulatedMedia", &json!({"features": scheme}));
            browser.load(&url);
            let seen = browser.evaluate(LOOK);
            assert_eq!(
                (&seen["hacked"], &seen["marks"]),
                (&json!(false), &json!(0)),
                "{at}: content is markup"
            );
            grounds.push((
                theme,
                seen["ground"].as_str().unwrap().to_owned(),
                seen["ink"].as_str().unwrap().to_owned(),
            ));
            let looks = seen["looks"].as_array().unwrap();
            assert_eq!(
                looks.len(),
                9,
                "{at}: three transcripts to choose, three policies"
            );
            for look in looks {
                let at = format!("{at}: {look}");
                assert!(
                    look["wide"].as_f64().unwrap() <= 0.0,
                    "wider than the screen: {at}"
                );
                assert!(
                    look["smallest"].as_f64().unwrap() >= 12.0,
                    "too small to read: {at}"
                );
                assert_eq!(look["rows"], 3, "{at}");
                let (is_all, is_none) = (look["trace"] == "-1", look["policy"] == "none");
                assert_eq!(look["charts"], if is_all { 6 } else { 3 }, "{at}");
                assert_eq!(
                    look["reading"].as_str().unwrap().starts_with("Call "),
                    !is_all,
                    "{at}"
                );
                assert_eq!(
                    look["changes"].as_u64().unwrap() > 0,
                    !is_all && !is_none,
                    "{at}"
                );
                assert_eq!(look["moments"].as_u64().unwrap() > 0, !is_none, "{at}");
                assert_eq!(
                    look["marked"],
                    if is_none { "" } else { "needle_0" },
                    "{at}"
                );
            }
        }
    }
    assert_eq!(
        grounds[..2],
        grounds[2..],
        "the themes are the same at both widths"
    );
    assert!(
        grounds[0].1 != grounds[1].1 && grounds[0].2 != grounds[1].2,
        "the themes differ: {grounds:?}"
    );

    for event in &browser.events {
        let method = event["method"].as_str().unwrap_or_default();
        assert_ne!(method, "Runtime.exceptionThrown", "{event}");
        assert!(
            method != "Log.entryAdded" || event["params"]["entry"]["level"] != "error",
            "{event}"
        );
        assert!(method != "Runtime.consoleAPICalled", "{event}");
        let requested = &event["params"]["request"]["url"];
        assert!(
            method != "Network.requestWillBeSent" || *requested == url.as_str(),
            "a request: {event}"
        );
    }
    let requests = browser
        .events
        .iter()
        .filter(|event| event["method"] == "Network.requestWillBeSent")
        .count();
    assert_eq!(
        requests, 4,
        "the page itself, each time: the browser does say what it requests"
    );
}
