//! Signals that this program was started to ignore: SIGHUP under `nohup`, SIGINT in a shell's background.
//!
//! They stay ignored. A handler for one of them would end that, and the programs that are started from
//! here would die of it.

use rustix::process::Signal;

/// A set of signals that are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ignored(u64);

impl Ignored {
    /// The signals that are ignored now: at the start, if no handler is there yet. None where the system has no
    /// `/proc`: asking it in another way takes unsafe code.
    pub(crate) fn now() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mut lines = status.lines();
        let mask = lines.find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        Self(mask.unwrap_or(0))
    }

    pub(crate) fn contains(self, signal: Signal) -> bool {
        let bit = u32::try_from(signal.as_raw() - 1).ok();
        bit.and_then(|bit| self.0.checked_shr(bit))
            .is_some_and(|rest| rest & 1 == 1)
    }
}
