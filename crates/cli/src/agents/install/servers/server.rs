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
    Missing { beginning: &'static str },
}

/// The texts by which a list of arguments begins where there was none: in JSON, in a table of TOML, and in an inline
/// one. By its space, such a list is told from an empty one that somebody wrote.
pub(super) const BEGINNINGS: [&str; 3] = [", \"args\": [ ", "\nargs = [ ", ", args = [ "];

impl ServerCommand {
    /// The words that run Offcut, if it is in front of the server.
    pub(super) fn offcut(&self) -> Option<&[String]> {
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

    /// The number of words that an installation has put in front of the server: those that run Offcut, `mcp` and `--`.
    /// One with others between these was written by the user.
    pub(super) fn front(&self) -> usize {
        let after = self.offcut().map_or(0, |words| words.len() + 1);
        match &self.words[after..] {
            [dashes, _, ..] if after > 0 && dashes == "--" => after + 1,
            _ => 0,
        }
    }
}
