//! An S3 server in its own process.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

#[allow(dead_code, reason = "the tests of the store use the rest")]
#[allow(clippy::unwrap_used, reason = "as in those tests")]
#[path = "../../../backends/object-store/tests/server/mod.rs"]
mod server;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Serves until its standard input ends. The first line that it prints is a URL without a spool.
pub(super) fn serve() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let server = runtime.block_on(server::Server::start());
    let mut out = std::io::stdout();
    writeln!(out, "{}", server.url("bench", ""))?;
    out.flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

pub(super) struct Server {
    child: Child,
    url: String,
}

impl Server {
    pub(super) fn start() -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut url = String::new();
        BufReader::new(child.stdout.take().ok_or("the server has no output")?)
            .read_line(&mut url)?;
        Ok(Self {
            child,
            url: url.trim().to_owned(),
        })
    }

    /// The URL, with its spool in `directory`.
    pub(super) fn url(&self, directory: &str) -> String {
        let parameters = self
            .url
            .split('&')
            .filter(|parameter| !parameter.starts_with("spool="));
        format!(
            "{}&spool={directory}",
            parameters.collect::<Vec<_>>().join("&")
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
