//! `offcut serve` as a process.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A server. Its process is killed with this value.
#[derive(Debug)]
pub struct Server {
    child: Child,
    pub address: SocketAddr,
}

impl Server {
    /// Starts a server that listens on a free port of loopback.
    pub fn start(home: &Path, settings: &str) -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        Self::listening(home, settings, any).expect("a server")
    }

    /// Starts a server with its store and its log in `home`; `None` if it can't listen on `address`.
    pub fn listening(home: &Path, settings: &str, address: SocketAddr) -> Option<Self> {
        let (address, store) = (address.to_string(), home.join("store"));
        let store = store.to_str().expect("a name");
        let args = ["--log", "debug", "--listen", &address, "--backend", store];
        Self::with(home, settings, &args)
    }

    /// Starts a server with `args`, and its log in `home`; `None` if it does not start.
    pub fn with(home: &Path, settings: &str, args: &[&str]) -> Option<Self> {
        let file = home.join("settings.toml");
        std::fs::write(&file, settings).expect("a file");
        let log = File::options()
            .append(true)
            .create(true)
            .open(home.join("log"));
        // Many systems allow more only to those who ask.
        let mut command = Command::new("sh");
        command
            .args(["-c", "ulimit -S -n 64; exec \"$0\" \"$@\""])
            .arg(env!("CARGO_BIN_EXE_offcut"))
            .arg("serve")
            .args(args)
            .arg("--config")
            .arg(file)
            .env("OFFCUT_HOME", home)
            .stdout(Stdio::piped())
            .stderr(log.expect("a file"));
        let mut child = command.spawn().expect("the program");
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        out.read_line(&mut line).expect("a line");
        let Some(address) = line.trim().strip_prefix("http://") else {
            _ = child.wait();
            return None;
        };
        let address = address.parse().expect("an address");
        Some(Self { child, address })
    }

    #[allow(dead_code, reason = "only a bench asks for the memory of a process")]
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
