//! Programs that serve over HTTP on loopback and write their URL to stdout.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A running program.
pub(crate) struct Listening {
    process: Child,
    pub(crate) url: String,
}

impl Listening {
    /// Starts `offcut mcp --listen` with a store of its own.
    pub(crate) fn start(args: &[&str], home: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_offcut"));
        command.args(["mcp", "--listen", "127.0.0.1:0"]).args(args);
        command.env("OFFCUT_HOME", home);
        Self::of(command)
    }

    pub(crate) fn of(mut command: Command) -> Self {
        let mut process = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut url = String::new();
        let stdout = process.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut url).unwrap();
        assert!(url.starts_with("http://"), "it has not started");
        Self {
            process,
            url: url.trim().to_owned(),
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}
