//! A server as a file has it.

/// A server as a file has it.
#[derive(Debug, Clone)]
pub(super) struct Server {
    /// Names of the objects that lead to it, and its own.
    pub(super) path: Vec<String>,
    /// `None` for a server with a URL.
    pub(super) command: Option<Command>,
}

/// The command of a server, and the place of its parts in the text.
#[derive(Debug, Clone)]
pub(super) struct Command {
    pub(super) words: Vec<String>,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) args: Args,
}

/// The place of a command's arguments.
#[derive(Debug, Clone)]
pub(super) enum Args {
    /// A list of their own that starts here.
    List { start: usize, is_empty: bool },
    /// They are in the same list as the command.
    Inside,
    /// There are none. This begins a list of them after the command.
    Missing { key: &'static str },
}

impl Command {
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
