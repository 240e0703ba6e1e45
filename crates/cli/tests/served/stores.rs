//! Stores that break while `offcut serve` runs over them: an S3 server whose connections meet faults, and a directory on
//! a file system that is full.
//!
//! `cargo test --release -p offcut-cli --features s3 --test served -- --ignored --nocapture stores`

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hyper::Method;
use serde_json::json;
use tempfile::TempDir;

use crate::http::{self, Provider};
use crate::s3::{Fault, Server as S3};
use crate::server::Server;

/// The pause after each request: several probes fall into those of a store that stays broken.
const PAUSE: Duration = Duration::from_millis(40);
const REQUESTS: u32 = 300;
/// The most milliseconds that a broken store may add to a request, at the 99th percentile.
const ADDED: f64 = 5.0;
/// The time between two probes, and that of one.
const RECOVERY: Duration = Duration::from_millis(6_500);

/// The fault that connections to a store meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Wire {
    Whole,
    /// Each is refused.
    Dead,
    /// Each answer comes five seconds late.
    Slow,
    /// Dead in every second second.
    Flapping,
}

/// A proxy before a store.
struct Proxy {
    address: SocketAddr,
    wire: Arc<AtomicU8>,
}

impl Proxy {
    fn before(store: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let wire = Arc::<AtomicU8>::default();
        let (own, begun) = (wire.clone(), Instant::now());
        std::thread::spawn(move || {
            let (mut listener, mut open) = (Some(listener), Vec::<TcpStream>::new());
            loop {
                std::thread::sleep(Duration::from_millis(1));
                let wire = own.load(Ordering::Relaxed);
                let is_odd = begun.elapsed().as_secs() % 2 == 1;
                if wire == Wire::Dead as u8 || wire == Wire::Flapping as u8 && is_odd {
                    listener = None;
                    for stream in open.drain(..) {
                        _ = stream.shutdown(Shutdown::Both);
                    }
                    continue;
                }
                if listener.is_none() {
                    listener = TcpListener::bind(address).ok();
                }
                let Some(listener) = &listener else {
                    continue;
                };
                listener.set_nonblocking(true).unwrap();
                let Ok((client, _)) = listener.accept() else {
                    continue;
                };
                client.set_nonblocking(false).unwrap();
                let server = TcpStream::connect(store).unwrap();
                let copies = [&client, &server].map(|stream| stream.try_clone().unwrap());
                let [to_client, to_server] = copies;
                open.extend([&client, &server].map(|stream| stream.try_clone().unwrap()));
                let wire = own.clone();
                std::thread::spawn(move || copy(client, to_server, || {}));
                std::thread::spawn(move || {
                    copy(server, to_client, || {
                        if wire.load(Ordering::Relaxed) == Wire::Slow as u8 {
                            std::thread::sleep(Duration::from_secs(5));
                        }
                    });
                });
            }
        });
        Self { address, wire }
    }

    fn set(&self, wire: Wire) {
        self.wire.store(wire as u8, Ordering::Relaxed);
    }
}

/// Copies what arrives, each piece after a pause.
fn copy(mut from: TcpStream, mut to: TcpStream, pause: impl Fn()) {
    let mut piece = [0; 65_536];
    while let Ok(count @ 1..) = from.read(&mut piece) {
        pause();
        if to.write_all(&piece[..count]).is_err() {
            break;
        }
    }
    _ = to.shutdown(Shutdown::Both);
}

/// A server over a store, its log, and the number of requests that it got.
struct Running {
    server: Server,
    home: TempDir,
    sent: usize,
}

impl Running {
    fn over(store: &str, provider: &Provider, more: &[&str]) -> Option<Self> {
        let home = tempfile::tempdir().unwrap();
        let settings = format!(
            "preset = \"recommended\"\n[serve]\ncut_without_reader = true\n[serve.upstreams]\nanthropic = \"{}\"\n",
            provider.url
        );
        let args = [
            "--log",
            "warn",
            "--listen",
            "127.0.0.1:0",
            "--backend",
            store,
        ];
        let server = Server::with(home.path(), &settings, &[&args, more].concat())?;
        Some(Self {
            server,
            home,
            sent: 0,
        })
    }

    /// Sends the request of another conversation, with two results that must be stored. Returns its outcome and time.
    fn send(&mut self) -> (String, Duration) {
        // Servers share stores, and what is known needs no room.
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        self.sent += 1;
        let ids = [(); 2].map(|()| format!("toolu_{}", CALLS.fetch_add(1, Ordering::Relaxed)));
        let calls = ids
            .each_ref()
            .map(|id| json!({"type": "tool_use", "id": id, "name": "run", "input": {}}));
        let results = ids.each_ref().map(|id| {
            let line = |line: usize| format!("{line}: value_{line} of {id} is {}\n", line * 7);
            json!({"type": "tool_result", "tool_use_id": id, "content": (0..200).map(line).collect::<String>()})
        });
        let body = json!({"model": "m", "max_tokens": 9, "messages": [
            {"role": "user", "content": "Go on."},
            {"role": "assistant", "content": calls},
            {"role": "user", "content": results},
        ], "tools": [{"name": "run", "input_schema": {"type": "object"}}]});
        let begun = Instant::now();
        let path = "/anthropic/v1/messages";
        let reply = http::post(self.server.address, path, &[], &body.to_string()).unwrap();
        let time = begun.elapsed();
        // The provider has answered.
        assert!(reply.head.starts_with("HTTP/1.1 200 "), "{reply:?}");
        assert!(reply.body.starts_with(r#"{"number":"#), "{reply:?}");
        (reply.header("x-offcut").unwrap().to_owned(), time)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.home.path().join("log")).unwrap()
    }

    fn get(&self, path: &str) -> String {
        http::post(self.server.address, path, &[], "").unwrap().body
    }

    fn is_available(&self) -> bool {
        let metrics = self.get("/metrics");
        let mut lines = metrics
            .lines()
            .filter(|line| line.starts_with("offcut_store_available"));
        lines.all(|line| line.ends_with(" 1"))
    }
}

/// A folder that a file system may be mounted on.
struct Mounted(TempDir);

impl Drop for Mounted {
    fn drop(&mut self) {
        _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

/// Milliseconds at the median and the 99th percentile.
fn quantiles(mut times: Vec<Duration>) -> [f64; 2] {
    times.sort_unstable();
    [50, 99].map(|part| times[(times.len() - 1) * part / 100].as_secs_f64() * 1_000.0)
}

/// Takes a server from a store that works to one that is broken and back, beside a server whose store stays `whole`.
fn broken(name: &str, store: &str, whole: &str, is_seldom_there: bool, set: impl Fn(bool)) {
    let provider = Provider::start();
    let mut running = Running::over(store, &provider, &[]).unwrap();
    let mut other = Running::over(whole, &provider, &[]).unwrap();
    for _ in 0..20 {
        assert_eq!([running.send().0, other.send().0], ["reduced"; 2], "{name}");
    }
    assert_eq!(running.get("/readyz"), "ok\n", "{name}");

    let lines = |log: &str| log.lines().count() as f64;
    let before = running.log().len();
    set(true);
    let (begun, mut first) = (Instant::now(), 0);
    while running.is_available() {
        running.send();
        first += 1;
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "{name}: never seen"
        );
    }
    let seen = begun.elapsed().as_secs_f64();
    std::thread::sleep(PAUSE);
    let log = running.log().split_off(before);
    assert!(lines(&log) <= 2.0 * f64::from(first), "{name}: {log}");
    let before = running.log().len();
    let (mut times, mut reduced) = ([Vec::new(), Vec::new()], 0);
    for _ in 0..REQUESTS {
        let (outcome, time) = running.send();
        reduced += usize::from(outcome == "reduced");
        times[0].push(time);
        times[1].push(other.send().1);
        std::thread::sleep(PAUSE);
    }
    let log = running.log().split_off(before);
    assert_ne!(running.get("/readyz"), "ok\n", "{name}");
    assert!(!running.is_available(), "{name}");
    let another = Running::over(store, &provider, &["--require-store"]);
    // One that comes and goes may answer once.
    assert!(another.is_none() || is_seldom_there, "{name}: it started");

    set(false);
    let healed = Instant::now();
    while running.send().0 != "reduced" {
        std::thread::sleep(Duration::from_millis(50));
        assert!(healed.elapsed() < Duration::from_secs(60), "{name}");
    }
    let recovery = healed.elapsed();
    assert_eq!(running.get("/readyz"), "ok\n", "{name}");
    assert!(running.is_available(), "{name}");
    let sent = running.sent + other.sent;
    assert_eq!(provider.take().len(), sent, "{name}: each went out once");

    let lines = lines(&log) / f64::from(REQUESTS);
    let [[p50, p99], whole] = times.map(quantiles);
    println!(
        "{name}: p50 / p99 {p50:.1} / {p99:.1} ms, {:.1} / {:.1} ms with a whole store; seen after {first} requests, {seen:.1} s; {reduced} of {REQUESTS} reduced; {lines:.2} lines of log for each request; back after {:.1} s",
        whole[0],
        whole[1],
        recovery.as_secs_f64(),
    );
    assert!(lines <= 2.0, "{name}: {}", &log[..2_000]);
    assert!(recovery <= RECOVERY, "{name}: {recovery:?}");
    assert!(p99 - whole[1] <= ADDED, "{name}");
}

#[test]
#[ignore = "takes three minutes"]
fn a_store_that_breaks_costs_nothing_once_it_is_left_alone() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let [s3, other] = [(); 2].map(|()| runtime.block_on(S3::start()));
    // As patient as by default.
    let [direct, whole] = [&s3, &other].map(|s3| s3.url("serve", "").replace("&backoff=1ms", ""));
    let (before, rest) = direct.split_once("endpoint=http://").unwrap();
    let (address, after) = rest.split_once('&').unwrap();
    let proxy = Proxy::before(address.parse().unwrap());
    let url = format!("{before}endpoint=http://{}&{after}", proxy.address);
    for wire in [Wire::Dead, Wire::Slow, Wire::Flapping] {
        let set = |is_broken| proxy.set(if is_broken { wire } else { Wire::Whole });
        let is_seldom_there = wire == Wire::Flapping;
        broken(&format!("{wire:?}"), &url, &whole, is_seldom_there, set);
    }
    broken(
        "Full bucket",
        &direct,
        &whole,
        false,
        |is_broken| match is_broken {
            true => s3.fault_always(&Method::PUT, Fault::Refuse(507)),
            false => s3.heal(),
        },
    );
    broken("Every second call", &direct, &whole, true, |is_broken| {
        s3.fault_often(if is_broken { 2 } else { usize::MAX });
    });
}

#[test]
#[ignore = "takes half a minute"]
fn a_full_file_system_costs_nothing_and_is_seen() {
    let folder = Mounted(tempfile::tempdir().unwrap());
    let at = folder.0.path().to_str().unwrap();
    let mount = ["-t", "tmpfs", "-o", "size=64m", "tmpfs", at];
    if !Command::new("mount")
        .args(mount)
        .status()
        .is_ok_and(|status| status.success())
    {
        println!("SKIPPED: this user can't mount a file system of its own");
        return;
    }
    let whole = tempfile::tempdir().unwrap();
    let [store, whole] = [format!("{at}/store"), whole.path().display().to_string()];
    let filler = folder.0.path().join("filler");
    broken(
        "Full directory",
        &store,
        &whole,
        false,
        |is_broken| match is_broken {
            true => {
                let mut file = std::fs::File::create(&filler).unwrap();
                while file.write_all(&[0; 4096]).is_ok() {}
            }
            false => std::fs::remove_file(&filler).unwrap(),
        },
    );
}
