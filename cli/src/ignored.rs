//! Signals that this program was started to ignore: SIGHUP under `nohup`, SIGINT in a shell's background.
//!
//! They stay ignored. A handler for one of them would end that, and the programs that are started from
//! here would die of it.

use std::process::{Command, Stdio};

use rustix::process::Signal;

/// The signals that anybody asks about.
const ASKED_ABOUT: [(&str, Signal); 4] = [
    ("TERM", Signal::TERM),
    ("HUP", Signal::HUP),
    ("INT", Signal::INT),
    ("QUIT", Signal::QUIT),
];

/// A set of signals that are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ignored(u64);

impl Ignored {
    /// The signals that are ignored now: at the start, if no handler is there yet.
    pub(crate) fn now() -> Self {
        // Asking the system itself takes unsafe code.
        let status = std::fs::read_to_string("/proc/self/status").ok();
        status
            .and_then(|status| Self::in_status(&status))
            .unwrap_or_else(Self::by_shell)
    }

    pub(crate) fn contains(self, signal: Signal) -> bool {
        self.0 & bit(signal) != 0
    }

    /// Reads Linux's description of a process.
    fn in_status(status: &str) -> Option<Self> {
        let mask = status
            .lines()
            .find_map(|line| line.strip_prefix("SigIgn:"))?;
        u64::from_str_radix(mask.trim(), 16).ok().map(Self)
    }

    /// Starts a shell for each signal, which sends it to itself and lives on only if it has inherited that
    /// the signal is ignored.
    fn by_shell() -> Self {
        const SCRIPT: &str = r#"ulimit -c 0
for name do sh -c 'kill -"$1" $$; echo "$1"' sh "$name"; done"#;
        let output = Command::new("sh")
            .args(["-c", SCRIPT, "sh"])
            .args(ASKED_ABOUT.map(|(name, _)| name))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output();
        let printed = output.map_or_else(|_| Vec::new(), |output| output.stdout);
        let printed = String::from_utf8_lossy(&printed);
        Self::named(|name| printed.lines().any(|line| line == name))
    }

    /// The signals whose names are chosen.
    fn named(is_chosen: impl Fn(&str) -> bool) -> Self {
        let chosen = ASKED_ABOUT.iter().filter(|(name, _)| is_chosen(name));
        Self(chosen.fold(0, |set, (_, signal)| set | bit(*signal)))
    }
}

fn bit(signal: Signal) -> u64 {
    let number = u32::try_from(signal.as_raw()).unwrap_or(0);
    1_u64.checked_shl(number.wrapping_sub(1)).unwrap_or(0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Set in the process that ignores signals.
    const INSIDE: &str = "OFFCUT_TEST_IGNORES";

    #[test]
    fn the_shell_finds_what_the_system_says() {
        let names = |ignored: Ignored| {
            ASKED_ABOUT
                .iter()
                .filter(|(_, signal)| ignored.contains(*signal))
                .map(|(name, _)| *name)
                .collect::<Vec<_>>()
                .join(" ")
        };
        let here = Ignored::now();
        if let Ok(expected) = std::env::var(INSIDE) {
            assert_eq!(names(here), expected);
            assert_eq!(names(Ignored::by_shell()), expected);
            return;
        }
        let name = "ignored::tests::the_shell_finds_what_the_system_says";
        for ignored in ["", "HUP", "TERM INT QUIT", "TERM HUP INT QUIT"] {
            // A shell can't undo what these tests were started to ignore.
            let trapped = Ignored::named(|name| ignored.split(' ').any(|it| it == name));
            let expected = names(Ignored(here.0 | trapped.0));
            let script = format!(
                "{} exec \"$@\"",
                match ignored {
                    "" => String::new(),
                    names => format!("trap '' {names};"),
                }
            );
            let status = Command::new("sh")
                .args(["-c", &script, "sh"])
                .arg(std::env::current_exe().unwrap())
                .args(["--exact", name])
                .env(INSIDE, expected)
                .status()
                .unwrap();
            assert!(status.success(), "{ignored}");
        }
    }

    #[test]
    fn a_status_without_the_line_says_nothing() {
        assert_eq!(
            Ignored::in_status("Name:\tx\nSigIgn:\t0000000000001001\n"),
            Some(Ignored(0x1001))
        );
        assert_eq!(Ignored::in_status("SigCgt:\t01\n"), None);
        assert_eq!(Ignored::in_status("SigIgn:\tnone\n"), None);
    }
}
