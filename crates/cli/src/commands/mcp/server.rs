//! The server as a child process: its pipes, its signals and its end.

use std::ffi::OsString;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use offcut_mcp::Conversation;
use rustix::process::Signal;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::child;
use crate::failure::{Failure, OrFail as _};

/// Time for a server to end by itself once its client is gone. The client would have given it as long
/// after closing its stdin.
pub(super) const GRACE_WITHOUT_CLIENT: Duration = Duration::from_secs(2);

/// A running server.
pub(super) struct ServerProcess {
    process: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    signals: mpsc::UnboundedReceiver<Signal>,
}

/// Starts a server with pipes for its stdin and stdout; stderr is this program's own. It gets the signals
/// that come.
pub(super) fn start(
    words: &[OsString],
    signals: mpsc::UnboundedReceiver<Signal>,
) -> io::Result<ServerProcess> {
    let mut process = child::start(words, |mut command| {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut command = tokio::process::Command::from(command);
        command.kill_on_drop(true);
        Ok(command)
    })?;
    let no_pipe = || io::Error::from(io::ErrorKind::BrokenPipe);
    Ok(ServerProcess {
        stdin: process.stdin.take().ok_or_else(no_pipe)?,
        stdout: process.stdout.take().ok_or_else(no_pipe)?,
        process,
        signals,
    })
}

impl ServerProcess {
    /// Carries the messages between a client, a reader and a writer, and the server until both have
    /// ended. Returns the server's exit code: 128 and the signal's number if a signal ended it.
    pub(super) async fn carry(
        self,
        conversation: &Conversation,
        client: (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    ) -> Result<u8, Failure> {
        let Self {
            mut process,
            stdin,
            stdout,
            mut signals,
        } = self;
        let carried = offcut_mcp::run(conversation, client, (stdout, stdin));
        tokio::pin!(carried);
        let (mut is_carried, mut code, mut end) = (false, None, End::default());
        while !is_carried || code.is_none() {
            tokio::select! {
                done = &mut carried, if !is_carried => {
                    is_carried = true;
                    // The server's stdin is closed now.
                    if done.is_err() {
                        end.ask_after(GRACE_WITHOUT_CLIENT);
                    }
                }
                status = process.wait(), if code.is_none() => {
                    code = Some(child::exit_code(status.or_fail("waiting for the server failed")?));
                }
                Some(signal) = signals.recv() => {
                    child::pass_on(&process, signal);
                    if signal == Signal::TERM || signal == Signal::HUP {
                        end.asked(signal);
                    }
                    // Something else holds the pipe of a server that has ended.
                    if code.is_some() {
                        break;
                    }
                }
                () = tokio::time::sleep_until(end.next.unwrap_or_else(Instant::now)), if end.next.is_some() => {
                    if end.by.is_some() {
                        // It is killed when it is dropped.
                        break;
                    }
                    child::pass_on(&process, Signal::TERM);
                    end.asked(Signal::TERM);
                }
            }
        }
        Ok(code.unwrap_or_else(|| 128 + end.by.map_or(0, child::signal_number)))
    }
}

/// The end of a server that does not end by itself: first it is asked to, then it is killed.
#[derive(Default)]
struct End {
    /// The signal that has asked it.
    by: Option<Signal>,
    /// The time of the next step.
    next: Option<Instant>,
}

impl End {
    fn ask_after(&mut self, grace: Duration) {
        self.next.get_or_insert(Instant::now() + grace);
    }

    fn asked(&mut self, by: Signal) {
        if self.by.is_none() {
            self.by = Some(by);
            self.next = Some(Instant::now() + child::GRACE);
        }
    }
}
