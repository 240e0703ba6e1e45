//! A command that this program runs: its output, its signals and its end.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

use crate::ignored::Ignored;

/// Number of bytes that are read at once.
const CHUNK: usize = 64 * 1024;
/// Time without output after which a pipe is left alone once the command itself has ended. A
/// process in the background may hold it forever.
const QUIET: Duration = Duration::from_millis(500);
/// Number of bytes that are read at most once the command has ended: more than a pipe holds, so
/// they include all of the command's own.
const MAX_AFTER_END: usize = 1 << 20;
/// Time for the command to end after a signal that asks it to. The sender of the signal is likely
/// to kill this program soon too, so the output so far has to be shown and stored before that.
pub(crate) const GRACE: Duration = Duration::from_millis(1_500);

/// Signals that are passed on to the command, unless this program was started to ignore them.
const PASSED_ON: [(SignalKind, Signal); 4] = [
    (SignalKind::terminate(), Signal::TERM),
    (SignalKind::hangup(), Signal::HUP),
    (SignalKind::interrupt(), Signal::INT),
    (SignalKind::quit(), Signal::QUIT),
];

/// A running command.
#[derive(Debug)]
pub(crate) struct Child {
    process: tokio::process::Child,
    signals: mpsc::UnboundedReceiver<Signal>,
    has_ended: watch::Sender<bool>,
}

/// The output of a running command.
#[derive(Debug)]
pub(crate) struct Outputs {
    /// Everything that the command writes to stdout, and to stderr if both are one file.
    pub(crate) stdout: Output,
    /// Everything that it writes to stderr, if that is a separate file.
    pub(crate) stderr: Option<Output>,
}

impl Child {
    /// Starts `command` with this program's stdin. It gets one pipe for both streams if this
    /// program's stdout and stderr are one file, so that they stay in order.
    pub(crate) fn spawn(mut command: Command) -> io::Result<(Self, Outputs)> {
        // Set up before the command starts, because this program may be ended at any time.
        let signals = listen()?;
        let (has_ended, ended) = watch::channel(false);
        let (reader, writer) = io::pipe()?;
        let stdout = Output::new(Receiver::from_owned_fd(reader.into())?, ended.clone());
        let stderr = if is_merged()? {
            command.stderr(writer.try_clone()?);
            None
        } else {
            let (reader, writer) = io::pipe()?;
            command.stderr(writer);
            let pipe = Receiver::from_owned_fd(reader.into())?;
            Some(Output::new(pipe, ended))
        };
        command.stdout(writer);
        // The command's ends of the pipes are closed here with `command`.
        let process = tokio::process::Command::from(command).spawn()?;
        let child = Self {
            process,
            signals,
            has_ended,
        };
        Ok((child, Outputs { stdout, stderr }))
    }

    /// Starts `command` with this program's stdin, stdout and stderr.
    pub(crate) fn inheriting(command: Command) -> io::Result<Self> {
        let signals = listen()?;
        Ok(Self {
            process: tokio::process::Command::from(command).spawn()?,
            signals,
            has_ended: watch::channel(false).0,
        })
    }

    /// Passes signals on until the command has ended. Returns its exit code: 128 and the signal's
    /// number if a signal ended it.
    pub(crate) async fn wait(mut self) -> io::Result<u8> {
        let mut ended_by = None;
        let code = loop {
            tokio::select! {
                status = self.process.wait() => break exit_code(status?),
                Some(signal) = self.signals.recv() => {
                    pass_on(&self.process, signal);
                    if signal == Signal::TERM || signal == Signal::HUP {
                        ended_by.get_or_insert(signal);
                    }
                }
                () = tokio::time::sleep(GRACE), if ended_by.is_some() => {
                    break 128 + ended_by.map_or(0, signal_number);
                }
            }
        };
        self.has_ended.send_replace(true);
        Ok(code)
    }
}

/// Passes a signal on to a process, unless its terminal has sent it the same.
pub(crate) fn pass_on(process: &tokio::process::Child, signal: Signal) {
    let id = process.id();
    let pid = id.and_then(|id| Pid::from_raw(id.cast_signed()));
    if let Some(pid) = pid.filter(|_| !is_from_terminal(signal)) {
        // It may have ended just now.
        _ = kill_process(pid, signal);
    }
}

/// Collects the signals that are to be passed on. What this program was started to ignore stays ignored, by it
/// and by the command.
pub(crate) fn listen() -> io::Result<mpsc::UnboundedReceiver<Signal>> {
    let (sender, signals) = mpsc::unbounded_channel();
    let ignored = Ignored::now();
    let heard = PASSED_ON
        .iter()
        .filter(|(_, signal)| !ignored.contains(*signal));
    for &(kind, passed_on) in heard {
        let (mut signal, sender) = (signal(kind)?, sender.clone());
        tokio::spawn(async move {
            while signal.recv().await.is_some() && sender.send(passed_on).is_ok() {}
        });
    }
    // The channel stays open even if no signal is heard: its end would mean something else.
    tokio::spawn(async move { sender.closed().await });
    Ok(signals)
}

/// One stream of a command's output.
#[derive(Debug)]
pub(crate) struct Output {
    pipe: Receiver,
    buffer: BytesMut,
    /// Tells when the command has ended.
    ended: watch::Receiver<bool>,
    after_end: usize,
}

impl Output {
    fn new(pipe: Receiver, ended: watch::Receiver<bool>) -> Self {
        Self {
            pipe,
            buffer: BytesMut::new(),
            ended,
            after_end: 0,
        }
    }

    /// Reads the next bytes; empty at the end. If another process holds the pipe, the end is
    /// reported soon after the command has ended.
    pub(crate) async fn read(&mut self) -> io::Result<Bytes> {
        if self.after_end > MAX_AFTER_END {
            return Ok(Bytes::new());
        }
        self.buffer.reserve(CHUNK);
        let quiet = async {
            // An error means that the command is no longer waited for.
            _ = self.ended.wait_for(|ended| *ended).await;
            tokio::time::sleep(QUIET).await;
        };
        tokio::select! {
            biased;
            read = self.pipe.read_buf(&mut self.buffer) => {
                read?;
                let read = self.buffer.split().freeze();
                if *self.ended.borrow() {
                    self.after_end += read.len();
                }
                Ok(read)
            }
            () = quiet => Ok(Bytes::new()),
        }
    }
}

/// Replaces this program with `command`, which then runs as if this program were not there. Returns
/// only if that fails.
pub(crate) fn replace_with(mut command: Command) -> io::Error {
    command.exec()
}

/// The exit code for a command that does not start, as shells give it.
pub(crate) fn start_code(error: &io::Error) -> u8 {
    match error.kind() {
        io::ErrorKind::NotFound => 127,
        _ => 126,
    }
}

/// The exit code of a process: 128 and the signal's number if a signal ended it.
pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok())
        .unwrap_or(u8::MAX)
}

/// The number of a signal, for exit codes.
pub(crate) fn signal_number(signal: Signal) -> u8 {
    u8::try_from(signal.as_raw()).unwrap_or(0)
}

/// Returns true if the terminal has sent `signal` to the command too, because both are in its
/// foreground group.
fn is_from_terminal(signal: Signal) -> bool {
    let is_key = signal == Signal::INT || signal == Signal::QUIT;
    is_key
        && File::open("/dev/tty")
            .ok()
            .and_then(|terminal| rustix::termios::tcgetpgrp(&terminal).ok())
            .is_some_and(|group| group == rustix::process::getpgrp())
}

/// Returns true if stdout and stderr are one file, such as one pipe.
pub(crate) fn is_merged() -> io::Result<bool> {
    let file = |fd: io::Result<OwnedFd>| File::from(fd?).metadata();
    let stdout = file(io::stdout().as_fd().try_clone_to_owned())?;
    let stderr = file(io::stderr().as_fd().try_clone_to_owned())?;
    Ok((stdout.dev(), stdout.ino()) == (stderr.dev(), stderr.ino()))
}
