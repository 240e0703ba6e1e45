//! The facts about a line that its rewriting depends on.

use super::kind::Shell;

/// The facts that are collected from the names of a line's commands.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Facts {
    /// The shell may end inside the line.
    pub(super) exits: bool,
    /// The line sets or shows traps.
    pub(super) traps: bool,
    /// The line changes how the lines after it are parsed.
    pub(super) changes_parsing: bool,
}

impl Facts {
    /// Takes note of a command. `None` if a line with it can't be rewritten.
    pub(super) fn add(&mut self, command: &str, shell: Shell) -> Option<()> {
        match command {
            // `exec` moves the shell's own output, or leaves no shell to wait for the sink; limits
            // would hold for the sink too; `coproc` is syntax that is not checked here.
            "exec" | "ulimit" | "limit" | "coproc" => return None,
            "repeat" | "foreach" | "always" | "end" if shell == Shell::Zsh => return None,
            "exit" | "return" | "logout" | "set" => self.exits = true,
            "trap" => self.traps = true,
            "alias" | "unalias" | "shopt" | "setopt" | "unsetopt" | "emulate" | "enable"
            | "disable" => self.changes_parsing = true,
            _ => {}
        }
        Some(())
    }
}
