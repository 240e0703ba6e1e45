//! What the benches share: this process's memory, and children that measure in a process of their own.

use std::io;
use std::process::{Command, Stdio};

/// Memory of this process, in KiB, by the name that Linux has for it in `/proc/self/status`: `VmRSS`, `VmHWM`.
///
/// # Errors
///
/// Not on Linux.
pub fn memory_kib(name: &str) -> io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, format!("no {name} in /proc/self/status")))
}

/// Runs this program again with `arguments`, and reads the JSON that it writes.
///
/// # Errors
///
/// It can't be run, fails, or writes something else.
pub fn in_a_child(arguments: &[String]) -> io::Result<serde_json::Value> {
    let output = Command::new(std::env::current_exe()?).args(arguments).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("{arguments:?} failed: {}", output.status)));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
