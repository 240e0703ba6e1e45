//! A command that this program runs: its output, its signals and its end.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
#[cfg(feature = "serve")]
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::{CommandExt, ExitStatusExt};
#[cfg(feature = "serve")]
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use rustix::event::{PollFd, PollFlags, poll};
#[cfg(feature = "serve")]
use rustix::fs::Access;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use crate::failure::Failure;

/// Number of bytes that are read at once.
const CHUNK: usize = 64 * 1024;
/// Time after the command's end for which its pipes are read. A process in the background may hold them
/// forever.
const AFTER_END: Duration = Duration::from_millis(500);
/// Number of bytes that are read at most once the command has ended: more than a pipe holds, so
/// they include all of the command's own.
const MAX_AFTER_END: usize = 1 << 20;
/// Time for the command to end after a signal that asks it to. The sender of the signal is likely
/// to kill this program soon too, so the output so far has to be shown and stored before that.
pub(crate) const GRACE: Duration = Duration::from_millis(1_500);

/// Signals that are passed on to the command, unless this program was started to ignore them.
const PASSED_ON: [(SignalKind, Signal); 6] = [
    (SignalKind::terminate(), Signal::TERM),
    (SignalKind::hangup(), Signal::HUP),
    (SignalKind::interrupt(), Signal::INT),
    (SignalKind::quit(), Signal::QUIT),
    (SignalKind::user_defined1(), Signal::USR1),
    (SignalKind::user_defined2(), Signal::USR2),
];

/// A running command.
#[derive(Debug)]
pub(crate) struct Child {
    process: tokio::process::Child,
    signals: mpsc::UnboundedReceiver<Signal>,
    phase: watch::Sender<CommandPhase>,
}

/// The time in the life of a command, for those who read its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandPhase {
    Running,
    /// It has ended, and others may still write.
    Ended,
    /// Whatever else comes is not waited for.
    Over,
}

/// The end of a command.
#[derive(Debug)]
pub(crate) struct Ended<T> {
    /// Its exit code: 128 and the signal's number if a signal ended it.
    pub(crate) code: u8,
    /// False if it runs on although it was asked to end.
    pub(crate) has_ended: bool,
    /// The outcome of what was done with its output; `None` if that took too long after a signal.
    pub(crate) done: Option<T>,
}

impl Child {
    /// Starts a command with this program's stdin. It gets one pipe for both streams if this
    /// program's stdout and stderr are one file, so that they stay in order: then all of it is in the first output.
    pub(crate) fn spawn(words: &[OsString]) -> io::Result<(Self, (Output, Option<Output>))> {
        // Set up before the command starts, because this program may be ended at any time.
        let signals = listen()?;
        let (phase, seen) = watch::channel(CommandPhase::Running);
        let (reader, out) = io::pipe()?;
        let stdout = Output::new(reader, io::stdout(), seen.clone())?;
        let (stderr, err) = if is_merged()? {
            (None, out.try_clone()?)
        } else {
            let (reader, err) = io::pipe()?;
            (Some(Output::new(reader, io::stderr(), seen)?), err)
        };
        let process = start(words, |mut command| {
            command.stdout(out.try_clone()?).stderr(err.try_clone()?);
            Ok(command.into())
        })?;
        let child = Self {
            process,
            signals,
            phase,
        };
        Ok((child, (stdout, stderr)))
    }

    /// Passes signals on until the command has ended, and waits until `done` is, which reads its output. A
    /// signal after the command's end, and one that asks the command to end, is an end for `done` too.
    pub(crate) async fn wait_for<T>(
        mut self,
        done: impl Future<Output = T>,
    ) -> io::Result<Ended<T>> {
        tokio::pin!(done);
        let (mut code, mut has_ended, mut result) = (None, true, None);
        // The next end: of waiting for the command, for its output, or for whoever reads that.
        let mut until: Option<Instant> = None;
        let mut asked_by = None;
        while code.is_none() || result.is_none() {
            tokio::select! {
                status = self.process.wait(), if code.is_none() => {
                    code = Some(exit_code(status?));
                    let (phase, time) = match asked_by {
                        None => (CommandPhase::Ended, AFTER_END),
                        Some(_) => (CommandPhase::Over, GRACE),
                    };
                    until = Some(Instant::now() + time);
                    self.phase.send_replace(phase);
                }
                finished = &mut done, if result.is_none() => result = Some(finished),
                Some(signal) = self.signals.recv() => {
                    if code.is_none() {
                        pass_on(&self.process, signal);
                    }
                    let asks = signal == Signal::TERM || signal == Signal::HUP || code.is_some();
                    if asks && asked_by.is_none() {
                        asked_by = Some(signal);
                        until = Some(Instant::now() + GRACE);
                        if code.is_some() {
                            self.phase.send_replace(CommandPhase::Over);
                        }
                    }
                }
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {
                    match asked_by {
                        // Others hold the pipes.
                        None => until = None,
                        Some(signal) if code.is_none() => {
                            (code, has_ended) = (Some(128 + signal_number(signal)), false);
                            until = Some(Instant::now() + GRACE);
                        }
                        // Nobody takes the output.
                        Some(_) => break,
                    }
                    self.phase.send_replace(CommandPhase::Over);
                }
            }
        }
        Ok(Ended {
            code: code.unwrap_or(u8::MAX),
            has_ended,
            done: result,
        })
    }
}

/// Starts a command that `set_up` prepares: by `/bin/sh` if it is a script without `#!`, as `execvp` does.
pub(crate) fn start(
    words: &[OsString],
    set_up: impl Fn(Command) -> io::Result<tokio::process::Command>,
) -> io::Result<tokio::process::Child> {
    match set_up(command(words))?.spawn() {
        Err(error) if is_script(&error) => set_up(by_shell(words))?.spawn(),
        started => started,
    }
}

/// Returns true if a command can begin with `name`: a path to a program, or the name of one in a folder of the `PATH`.
#[cfg(feature = "serve")]
pub(crate) fn is_program(name: &OsStr) -> bool {
    let can_run = |path: &Path| path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok();
    if name.as_bytes().contains(&b'/') {
        return can_run(Path::new(name));
    }
    let folders = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    std::env::split_paths(&folders).any(|folder| can_run(&folder.join(name)))
}

/// The command that `words` are: a program, and its arguments.
fn command(words: &[OsString]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// The same as a command of a shell, which finds scripts on the `PATH` and runs those without `#!`.
fn by_shell(words: &[OsString]) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", r#"exec "$0" "$@""#]).args(words);
    shell
}

fn is_script(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error())
}

/// Replaces this program with a command, which then runs as if this program were not there. Returns
/// only if that fails.
pub(crate) fn replace_with(words: &[OsString]) -> io::Error {
    match command(words).exec() {
        error if is_script(&error) => by_shell(words).exec(),
        error => error,
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
    for (kind, passed_on) in PASSED_ON {
        if is_ignored(passed_on) {
            continue;
        }
        let (mut signal, sender) = (signal(kind)?, sender.clone());
        tokio::spawn(async move {
            while signal.recv().await.is_some() && sender.send(passed_on).is_ok() {}
        });
    }
    // The channel stays open even if no signal is heard: its end would mean something else.
    tokio::spawn(async move { sender.closed().await });
    Ok(signals)
}

/// Returns true if this program was started to ignore `signal`: SIGHUP under `nohup`, SIGINT in a shell's background. It
/// stays ignored. A handler would end that, and the programs that are started from here would die of it. False where the
/// system has no `/proc`: asking it in another way takes unsafe code.
pub(crate) fn is_ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let mask = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal.as_raw() - 1) & 1 == 1)
}

/// One stream of a command's output.
#[derive(Debug)]
pub(crate) struct Output {
    /// `None` once nothing more comes or is wanted.
    pipe: Option<Receiver>,
    buffer: BytesMut,
    /// True once nobody reads the stream of this program on which it is shown.
    is_unread: watch::Receiver<bool>,
    phase: watch::Receiver<CommandPhase>,
    after_end: usize,
}

impl Output {
    fn new(
        pipe: io::PipeReader,
        shown_on: impl AsFd + Send + 'static,
        phase: watch::Receiver<CommandPhase>,
    ) -> io::Result<Self> {
        Ok(Self {
            pipe: Some(Receiver::from_owned_fd(pipe.into())?),
            buffer: BytesMut::new(),
            is_unread: watch_reader(shown_on),
            phase,
            after_end: 0,
        })
    }

    /// Reads the next bytes; empty at the end. If another process holds the pipe, the end is
    /// reported soon after the command has ended. If nobody reads what is shown any more, the pipe is
    /// [closed](Self::close).
    pub(crate) async fn read(&mut self) -> io::Result<Bytes> {
        let Some(pipe) = &mut self.pipe else {
            return Ok(Bytes::new());
        };
        if self.after_end > MAX_AFTER_END {
            return Ok(Bytes::new());
        }
        self.buffer.reserve(CHUNK);
        let read = tokio::select! {
            biased;
            () = reached(&mut self.is_unread, true) => Some(0),
            read = pipe.read_buf(&mut self.buffer) => Some(read?),
            () = reached(&mut self.phase, CommandPhase::Over) => None,
        };
        match read {
            Some(0) => self.close(),
            Some(read) if *self.phase.borrow() != CommandPhase::Running => self.after_end += read,
            _ => {}
        }
        Ok(self.buffer.split().freeze())
    }

    /// Ends the pipe: who writes to it is told by SIGPIPE.
    pub(crate) fn close(&mut self) {
        self.pipe = None;
    }

    /// Leaves the pipe to a process that reads it to its end, so that whoever still writes to it lives on as
    /// without this program.
    pub(crate) fn leave(&mut self) -> io::Result<()> {
        let Some(pipe) = self.pipe.take() else {
            return Ok(());
        };
        // In a group of its own: whoever ends this program's does not mean it.
        Command::new("cat")
            .process_group(0)
            .current_dir("/")
            .stdin(pipe.into_blocking_fd()?)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(())
    }
}

async fn reached<T: PartialEq>(seen: &mut watch::Receiver<T>, value: T) {
    if seen.wait_for(|now| *now == value).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Tells when nobody reads from a pipe or a socket any more.
fn watch_reader(stream: impl AsFd + Send + 'static) -> watch::Receiver<bool> {
    let (told, is_unread) = watch::channel(false);
    let wait = move || {
        loop {
            // An error is told although no event is asked for.
            match poll(&mut [PollFd::new(&stream, PollFlags::empty())], None) {
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
                Ok(_) => {
                    told.send_replace(true);
                    return;
                }
            }
        }
    };
    // Without a thread, the next write tells. It never ends by itself, so the runtime must not wait for it.
    _ = std::thread::Builder::new().spawn(wait);
    is_unread
}

/// The failure of a command that does not start, with the exit code that shells give it.
pub(crate) fn not_started(program: &OsStr, error: &io::Error, advice: &str) -> Failure {
    let code = match error.kind() {
        io::ErrorKind::NotFound => 127,
        _ => 126,
    };
    Failure::new(format!("{} does not start: {error}", program.display()))
        .hint(advice)
        .with_code(code)
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
fn is_merged() -> io::Result<bool> {
    let (stdout, stderr) = (
        rustix::fs::fstat(io::stdout())?,
        rustix::fs::fstat(io::stderr())?,
    );
    Ok((stdout.st_dev, stdout.st_ino) == (stderr.st_dev, stderr.st_ino))
}
