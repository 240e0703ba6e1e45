//! `offcut sink`: takes the output of one line of a shell, for lines that `offcut_agents::shell` has
//! rewritten.
//!
//! The sink is a process of its own, not a child of the shell, so that `wait` and `jobs` do not see
//! it. It gets the output through pipes with names, and waits for the word of the shell that the line
//! has ended, or for the end of the shell.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use offcut_agents::layout::Home;
use offcut_agents::log;
use rustix::process::{Pid, setsid, test_kill_process};
use tokio::io::AsyncReadExt;
use tokio::net::UnixListener;
use tokio::net::unix::pipe;
use tokio::sync::{Mutex, watch};

use crate::child::{Output, QUIET, is_merged};
use crate::failure::Failure;
use crate::output::To;
use crate::stream::Stream;
use crate::{args, settings};

/// Name of the socket in a sink's directory.
const SOCKET: &str = "end";
/// Name of the file that the shell makes there once it has opened the pipes.
const OPENED: &str = "traps";
/// Time between two looks at the shell.
const LOOK: Duration = Duration::from_millis(100);
/// Time without output after which a shell that ends, and so still holds the pipes itself, has
/// written everything.
const QUIET_AT_EXIT: Duration = Duration::from_millis(50);
/// The word for a line that has ended.
const ENDED: &[u8] = b"e";
/// The word for a shell that is about to end.
const EXITS: &[u8] = b"x";

/// Runs the command. Writes nothing of its own, because its output would be taken for the line's.
pub(crate) fn run(args: &args::Sink) -> ExitCode {
    let is_done = match args {
        args::Sink::Open { serve: false, .. } => open().is_ok(),
        args::Sink::Open {
            directory,
            shell,
            shown,
            ..
        } => match serve(directory, *shell, shown) {
            Ok(()) => true,
            Err(failure) => {
                if let Some(home) = Home::from_env() {
                    // There is nowhere to report that the log can't be written.
                    _ = log::append(&home.log(), &format!("sink: {failure}"));
                }
                false
            }
        },
        args::Sink::Close { directory, now } => close(directory, *now).is_ok(),
    };
    ExitCode::from(u8::from(!is_done))
}

fn failed(error: &io::Error) -> Failure {
    Failure::new(format!("a pipe or socket failed: {error}"))
}

/// Starts the sink, and waits until it can be written to.
fn open() -> io::Result<()> {
    if io::stdout().is_terminal() || io::stderr().is_terminal() {
        // Commands must see it.
        return Err(io::ErrorKind::Unsupported.into());
    }
    let (mut ready, writer) = io::pipe()?;
    let mut sink = Command::new(std::env::current_exe()?);
    sink.args(std::env::args_os().skip(1)).arg("--serve");
    // Its stdin is the only stream that is not the shell's, so that is the one it writes to.
    sink.stdin(writer).spawn()?;
    drop(sink);
    ready.read_exact(&mut [0])
}

/// Runs as the sink.
fn serve(directory: &Path, shell: i32, shown: &args::Shown) -> Result<(), Failure> {
    // Signals to the shell and its children are not for the sink. It is not the first of its group,
    // so this can't fail.
    _ = setsid();
    let runtime = settings::runtime()?;
    let _inside = runtime.enter();
    let streams = Stream::both(shown, "{}")?;
    DirBuilder::new()
        .mode(0o700)
        .create(directory)
        .map_err(|error| failed(&error))?;
    let sink = Sink::new(directory, shell);
    let served = sink.map_err(|error| failed(&error)).and_then(|sink| {
        let stdin = io::stdin().as_fd().try_clone_to_owned();
        stdin
            .and_then(|ready| File::from(ready).write_all(b"r"))
            .map_err(|error| failed(&error))?;
        runtime.block_on(sink.follow(directory, streams))
    });
    // It still exists if something failed.
    _ = fs::remove_dir_all(directory);
    served
}

/// An open sink.
struct Sink {
    stdout: Arc<Mutex<Output>>,
    /// `None` if stdout and stderr are one file.
    stderr: Option<Arc<Mutex<Output>>>,
    has_ended: watch::Sender<Option<Duration>>,
    /// Hold the pipes open until the shell does.
    writers: Vec<File>,
    listener: UnixListener,
    shell: Option<Pid>,
}

impl Sink {
    fn new(directory: &Path, shell: i32) -> io::Result<Self> {
        let (out, err) = (directory.join("out"), directory.join("err"));
        let (has_ended, ended) = watch::channel(None);
        let mut writers = Vec::new();
        let mut pipe = |path: &Path| {
            // By its program, because macOS has no call for it that is safe Rust.
            let mut made = Command::new("mkfifo");
            made.args(["-m", "600"]).arg(path);
            made.stdin(Stdio::null()).stdout(Stdio::null());
            let is_made = made.stderr(Stdio::null()).status()?.success();
            is_made
                .then_some(())
                .ok_or(io::ErrorKind::PermissionDenied)?;
            let reader = pipe::OpenOptions::new().open_receiver(path)?;
            writers.push(OpenOptions::new().write(true).open(path)?);
            Ok::<_, io::Error>(Arc::new(Mutex::new(Output::new(reader, ended.clone()))))
        };
        let stdout = pipe(&out)?;
        let stderr = if is_merged()? {
            // One pipe keeps lines in order.
            symlink("out", err)?;
            None
        } else {
            Some(pipe(&err)?)
        };
        Ok(Self {
            stdout,
            stderr,
            has_ended,
            writers,
            listener: UnixListener::bind(directory.join(SOCKET))?,
            shell: Pid::from_raw(shell),
        })
    }

    /// Shows the output of the line once it has ended, and passes on what comes after that.
    async fn follow(self, directory: &Path, [out, err]: [Stream; 2]) -> Result<(), Failure> {
        let Self {
            stdout,
            stderr,
            has_ended,
            mut writers,
            listener,
            shell,
        } = self;
        let second = async {
            match &stderr {
                Some(stderr) => err.show(stderr).await,
                None => Ok(()),
            }
        };
        let both = async {
            let (first, second) = tokio::join!(out.show(&stdout), second);
            first.and(second)
        };
        tokio::pin!(both);
        let mut waiting = None;
        let shown = tokio::select! {
            shown = &mut both => shown,
            (connection, quiet) = end_of_line(&listener, shell, directory, &mut writers) => {
                waiting = connection;
                writers.clear();
                has_ended.send_replace(Some(quiet));
                both.await
            }
        };
        // Before the shell goes on, which looks for it.
        _ = fs::remove_dir_all(directory);
        drop((waiting, listener));
        shown?;
        // Later output of processes in the background goes where it would have gone.
        let second = async {
            match &stderr {
                Some(stderr) => pass_on(stderr, To::Stderr).await,
                None => Ok(()),
            }
        };
        let (first, second) = tokio::join!(pass_on(&stdout, To::Stdout), second);
        first.and(second)
    }
}

/// Waits until the line has ended. Returns the connection on which the shell waits, and the time
/// without output after which the line's own is complete.
///
/// Once the shell has opened the pipes, their end is the end of the line too: the process of a shell
/// that was killed may be there until its parent looks after it.
async fn end_of_line(
    listener: &UnixListener,
    shell: Option<Pid>,
    directory: &Path,
    writers: &mut Vec<File>,
) -> (Option<tokio::net::UnixStream>, Duration) {
    loop {
        tokio::select! {
            Ok((mut waiting, _)) = listener.accept() => {
                let mut word = [0];
                // A shell that was killed says nothing.
                _ = waiting.read(&mut word).await;
                let quiet = if word == EXITS { QUIET_AT_EXIT } else { QUIET };
                return (Some(waiting), quiet);
            }
            () = tokio::time::sleep(LOOK) => {
                if directory.join(OPENED).exists() {
                    writers.clear();
                }
                let is_gone = |shell| test_kill_process(shell) == Err(rustix::io::Errno::SRCH);
                if shell.is_none_or(is_gone) {
                    return (None, QUIET);
                }
            }
        }
    }
}

async fn pass_on(output: &Mutex<Output>, to: To) -> Result<(), Failure> {
    let mut output = output.lock().await;
    loop {
        let bytes = output.read_rest().await.map_err(|error| failed(&error))?;
        if bytes.is_empty() {
            return Ok(());
        }
        to.write(&bytes)?;
    }
}

/// Waits for the sink. Fails if it has ended already.
fn close(directory: &Path, now: bool) -> io::Result<()> {
    let mut sink = UnixStream::connect(directory.join(SOCKET))?;
    sink.write_all(if now { EXITS } else { ENDED })?;
    sink.read_to_end(&mut Vec::new()).map(|_| ())
}
