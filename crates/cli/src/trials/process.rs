//! A process with a limit of time, ended with all that it has started.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// Time between two looks at a process.
const LOOK: Duration = Duration::from_millis(10);
/// Time that a process has to end by itself once it is asked to: it may have started what is not in its group, such as a
/// container.
const GRACE: Duration = Duration::from_secs(2);

/// The end of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProcessEnd {
    /// By itself.
    Exit(ExitStatus),
    /// By the limit of time.
    OverTime,
    /// Because the trial was stopped.
    Stopped,
}

/// Runs `command` to its end, at most for `limit`, or until `stop` is set.
pub(crate) fn run(
    command: &mut Command,
    limit: Duration,
    stop: &AtomicBool,
) -> io::Result<ProcessEnd> {
    let mut child = command.process_group(0).spawn()?;
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            // Processes that it has left would go on beside the next run.
            end_group(&child, Signal::KILL);
            return Ok(ProcessEnd::Exit(status));
        }
        let is_stopped = stop.load(Ordering::Relaxed);
        if is_stopped || began.elapsed() > limit {
            end_group(&child, Signal::TERM);
            let asked = Instant::now();
            while asked.elapsed() < GRACE && child.try_wait()?.is_none() {
                std::thread::sleep(LOOK);
            }
            end_group(&child, Signal::KILL);
            child.wait()?;
            return Ok(match is_stopped {
                true => ProcessEnd::Stopped,
                false => ProcessEnd::OverTime,
            });
        }
        std::thread::sleep(LOOK);
    }
}

/// Sends a signal to the process's group. One that has ended is not an error.
fn end_group(child: &Child, signal: Signal) {
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(group) = id {
        let _ = kill_process_group(group, signal);
    }
}
