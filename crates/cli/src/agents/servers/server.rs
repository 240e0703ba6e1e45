//! A server as a file has it.

use std::ops::Range;

/// A server as a file has it.
#[derive(Debug, Clone)]
pub(super) struct Server {
    /// Names of the objects that lead to it, and its own.
    pub(super) path: Vec<String>,
    /// `None` for a server with a URL.
    pub(super) command: Option<ServerCommand>,
    /// True for a server whose command or arguments are not texts.
    pub(super) is_odd: bool,
}

/// The command of a server.
#[derive(Debug, Clone)]
pub(super) struct ServerCommand {
    /// The program and its arguments. There is at least the program.
    pub(super) words: Vec<String>,
    /// The place of each word.
    pub(super) places: Vec<Range<usize>>,
    pub(super) args: ArgsPlace,
}

/// The place of a command's arguments.
#[derive(Debug, Clone)]
pub(super) enum ArgsPlace {
    /// A list of their own that starts here.
    List { start: usize },
    /// They are in the same list as the command.
    Inside,
    /// There are none. This begins a list of them after the command.
    Missing { key: &'static str },
}

impl ServerCommand {
    /// Returns true if `front` is in front of other words.
    pub(super) fn is_behind(&self, front: &[String]) -> bool {
        self.words.len() > front.len() && self.words.starts_with(front)
    }

    /// The words that run Offcut, if it is in front of the server.
    pub(super) fn front(&self) -> Option<&[String]> {
        let at = match &self.words[..] {
            [env, home, ..] if env == "env" && home.starts_with("OFFCUT_HOME=") => 2,
            _ => 0,
        };
        let [program, mcp, ..] = self.words.get(at..)? else {
            return None;
        };
        let name = program.rsplit('/').next().unwrap_or_default();
        (name.starts_with("offcut") && mcp == "mcp").then(|| &self.words[..=at])
    }
}
