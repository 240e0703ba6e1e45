//! The servers under test, as processes of their own.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::plain;

/// A server under test. It ends with this value.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// `offcut serve` before the provider at `url`, with its settings and its store in `home`.
    pub(crate) fn offcut(url: &str, home: &Path) -> Self {
        let upstream = format!("preset = \"recommended\"\n[serve.upstreams]\nopenai = \"{url}\"\n");
        let settings = home.join("settings.toml");
        std::fs::write(&settings, upstream).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_offcut"));
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--log", "error"])
            .arg("--config")
            .arg(settings)
            .arg("--backend")
            .arg(home.join("store"))
            .env("OFFCUT_HOME", home);
        Self::start(command)
    }

    /// The plain proxy before the provider at `url`.
    pub(crate) fn plain(url: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([plain::WORD, url]);
        Self::start(command)
    }

    fn start(mut command: Command) -> Self {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").expect("an address");
        let address = address.parse().unwrap();
        Self { child, address }
    }

    /// The time that its threads have computed.
    pub(crate) fn work(&self) -> Duration {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let of_thread = |entry: std::io::Result<std::fs::DirEntry>| {
            let text = std::fs::read_to_string(entry.ok()?.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        };
        Duration::from_nanos(threads.into_iter().flatten().filter_map(of_thread).sum())
    }

    /// Its memory in MiB.
    pub(crate) fn memory(&self) -> f64 {
        let status = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(status).unwrap_or_default();
        let mut lines = status.lines();
        let kib = lines.find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next());
        kib.map_or(0.0, |kib| kib.parse::<f64>().unwrap() / 1024.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
