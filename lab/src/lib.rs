//! Measurements: agents that act only on what they are shown, and for the benches texts, comparable times, this
//! process's memory.

pub mod scripted;
pub mod texts;

use std::io;
use std::time::{Duration, Instant};

/// The outcome of work that may fail in any way.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Memory of this process in KiB. `name` is Linux's name for it in `/proc/self/status`: `VmRSS`,
/// `VmHWM`.
///
/// # Errors
///
/// On systems other than Linux.
pub fn memory_kib(name: &str) -> io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::Unsupported,
            format!("no {name} in /proc/self/status"),
        )
    })
}

/// Measures the time that `run` takes.
pub fn time<T>(run: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let result = run();
    (start.elapsed(), result)
}

/// The shortest time, because other work on the machine only ever adds to it.
pub fn fastest(times: &[Duration]) -> Duration {
    times.iter().min().copied().unwrap_or_default()
}

/// Tells whether cargo wants figures. If not, everything runs only once.
pub fn is_bench() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}

/// Tells whether a part of a bench is wanted: all parts are, unless some are named.
pub fn is_wanted(part: &str) -> bool {
    let mut named = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .peekable();
    named.peek().is_none() || named.any(|name| name == part)
}
