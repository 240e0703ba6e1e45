//! The server as a child process: its pipes, its signals and its end.

use std::ffi::OsString;
use std::process::Stdio;
use std::time::Duration;

use offcut_mcp::Conversation;
use rustix::process::Signal;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::child;
use crate::failure::{Failure, OrFail as _};

/// Time for a server to end by itself once its client is gone. The client would have given it as long
/// after closing its stdin.
pub(super) const GRACE_WITHOUT_CLIENT: Duration = Duration::from_secs(2);

/// Advice for a command that does not start.
pub(super) const COMMAND: &str = "write the server's own command after `offcut mcp --`";

/// Starts a server with pipes for its stdin and stdout; stderr is this program's own. Carries the messages between a
/// client, a reader and a writer, and the server until both have ended, and passes `signals` on to the server. Returns
/// the server's exit code: 128 and the signal's number if a signal ended it.
pub(super) async fn run(
    words: &[OsString],
    mut signals: mpsc::UnboundedReceiver<Signal>,
    conversation: &Conversation,
    client: (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
) -> Result<u8, Failure> {
    let started = child::start(words, |mut command| {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut command = tokio::process::Command::from(command);
        command.kill_on_drop(true);
        Ok(command)
    });
    let mut server = started.map_err(|error| child::not_started(&words[0], &error, COMMAND))?;
    let (Some(stdin), Some(stdout)) = (server.stdin.take(), server.stdout.take()) else {
        return Err(Failure::new("the server has no pipes"));
    };
    let carried = offcut_mcp::run(conversation, client, (stdout, stdin));
    tokio::pin!(carried);
    let (mut is_carried, mut code) = (false, None);
    // A server that does not end by itself is asked to, and then killed: who has asked it, and the time of the next step.
    let (mut asked_by, mut next) = (None, None);
    while !is_carried || code.is_none() {
        tokio::select! {
            done = &mut carried, if !is_carried => {
                is_carried = true;
                // The server's stdin is closed now.
                if done.is_err() {
                    next.get_or_insert(Instant::now() + GRACE_WITHOUT_CLIENT);
                }
            }
            status = server.wait(), if code.is_none() => {
                code = Some(child::exit_code(status.or_fail("waiting for the server failed")?));
            }
            Some(signal) = signals.recv() => {
                child::pass_on(&server, signal);
                let asks = signal == Signal::TERM || signal == Signal::HUP;
                if asks && asked_by.is_none() {
                    asked_by = Some(signal);
                    next = Some(Instant::now() + child::GRACE);
                }
                // Something else holds the pipe of a server that has ended.
                if code.is_some() {
                    break;
                }
            }
            () = tokio::time::sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {
                if asked_by.is_some() {
                    // It is killed when it is dropped.
                    break;
                }
                child::pass_on(&server, Signal::TERM);
                asked_by = Some(Signal::TERM);
                next = Some(Instant::now() + child::GRACE);
            }
        }
    }
    Ok(code.unwrap_or_else(|| 128 + asked_by.map_or(0, child::signal_number)))
}
